//! How clients play the game `hunt`: they run to drops and monsters, take and hit. And what they tell the judge of
//! properties.

use purview::scene::movement::ServerMs;
use purview::scene::properties::Properties;
use purview::scene::{EntityId, Pos};
use purview::wire::Frame;

use super::Walker;
use super::life::Life;
use crate::game::is_secret;
use crate::game::rules::{DROP, MONSTER, REACH_CM};
use crate::rng::Rng;
use crate::sim::Logic;

impl Walker {
    /// What the client asks of the game now. If there is nothing near, it may run to what it sees.
    pub(super) fn hunts(&self, life: &mut Life, rng: &mut Rng) -> Option<String> {
        self.ground.logic.filter(|logic| *logic == Logic::Hunt)?;
        let near = |kind| {
            let all = life.view.iter().filter(|(_, seen)| seen.kind == kind);
            let places = all.map(|(id, seen)| (seen.position(ServerMs(0)), id));
            places.min_by_key(|(pos, id)| (life.pos.dist2(*pos), *id))
        };
        let (drop, monster) = (near(DROP), near(MONSTER));
        if self.will().meeting(self.number).is_none() && rng.one_in(3) {
            life.goal = drop.or(monster).map_or(life.goal, |(pos, _)| pos);
        }
        let reaches = |(pos, _): &(Pos, EntityId)| {
            life.pos.dist2(*pos) <= u64::from(REACH_CM.unsigned_abs()).pow(2)
        };
        if !rng.one_in(2) {
            return None;
        }
        // As long as no number that clients act.
        let take = drop.filter(reaches).map(|(_, id)| format!("take {:020}", id.0));
        take.or_else(|| monster.filter(reaches).map(|(_, id)| format!("hit {:020}", id.0)))
    }

    /// Tells the judge at rest what the client knows of the entities in view.
    pub(super) fn tell_properties(&self, life: &Life) {
        let asked = self.ground.judge.has_game() && self.will().is_to_stand();
        if !asked || life.is_disconnected {
            return;
        }
        let properties =
            |known: &std::collections::BTreeMap<_, purview::scene::properties::Value>| {
                let mut all = Properties::default();
                known.iter().for_each(|(id, value)| all.begin_with(*id, value.clone()));
                all
            };
        let seen = life.view.iter().map(|(id, seen)| (id, properties(&seen.properties)));
        let own = (life.id, properties(&life.view.own().properties));
        self.ground.judge.sees_properties(life.id, seen.chain([own]));
    }

    pub(super) fn look_for_secrets(&self, me: EntityId, frame: &Frame) {
        if !self.ground.judge.has_game() {
            return;
        }
        let entered = frame.enters.iter().flat_map(|e| e.properties.iter().map(|p| (e.id, p.id)));
        let changed = frame.properties.iter().map(|p| (p.entity, p.id));
        if let Some((of, id)) = entered.chain(changed).find(|(_, id)| is_secret(*id)) {
            self.ground.judge.told_a_secret(me, of, &format!("property {id}"));
        }
    }
}
