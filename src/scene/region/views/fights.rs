//! Fights: bonds that acts aimed at others make, and that fade.
//!
//! Every region that knows both players learns of the act in the same tick, by the border batch
//! that carries it, and begins the fight for both of them, real or ghost: so both ends agree on it
//! before they evaluate their views.

use std::collections::VecDeque;

use super::{ViewEngine, range_query};
use crate::scene::messages::Speaker;
use crate::scene::region::actions::TickActions;
use crate::scene::region::entities::EntityStore;
use crate::scene::views::NO_BOND;
use crate::scene::{EntityId, Kind, Scene, Tick};

/// When fights end, and their players; in order, except for arrived players.
#[derive(Debug, Default)]
pub struct Fights {
    ends: VecDeque<(Tick, EntityId)>,
}

impl ViewEngine {
    /// Begins the fights of this tick's actions.
    pub fn begin_fights(
        &mut self,
        tick: Tick,
        actions: &TickActions,
        entities: &mut EntityStore,
        scene: &Scene,
    ) {
        if self.rules.fight == NO_BOND {
            return;
        }
        let counts = |by: Speaker| by == Speaker::Logic || scene.spec.bonds.client_fights;
        let counted = actions.iter().filter(|act| counts(act.content.by));
        let aimed = counted.filter_map(|act| Some((act.id, act.content.aim?)));
        let mut aimed: Vec<_> = aimed.map(|(a, b)| (a.min(b), a.max(b))).collect();
        // The order in which actions came differs between regions.
        aimed.sort_unstable();
        aimed.dedup();
        let until = Tick(tick.0.saturating_add(self.rules.fight_ticks));
        for (a, b) in aimed {
            if can_fight(a, b, entities, scene) {
                self.tie(a, b, until, entities);
                self.tie(b, a, until, entities);
            }
        }
    }

    fn tie(&mut self, id: EntityId, with: EntityId, until: Tick, entities: &mut EntityStore) {
        let Some(slot) = entities.slot(id) else { return };
        entities.change_ties(slot, |ties| ties.fight(with, until));
        self.fights.ends.push_back((until, id));
        if let Some(real) = entities.real_mut(slot) {
            // For neighbours that do not know the other one.
            real.restate = true;
        }
    }

    /// Expects the fights of an entity that has come with them to end.
    pub fn expect_ends(&mut self, slot: u32, entities: &EntityStore) {
        let (body, record) = (entities.body(slot), entities.record(slot));
        self.fights.ends.extend(record.ties.fights.iter().map(|f| (f.until, body.id)));
    }

    /// Expects all fights to end that any entity known here has.
    pub fn expect_all_ends(&mut self, entities: &EntityStore) {
        let fights = |slot: u32| {
            let id = entities.body(slot).id;
            let fights = &entities.record(slot).ties.fights;
            fights.iter().map(move |f| (f.until, id))
        };
        let mut ends: Vec<_> = entities.slots().flat_map(fights).collect();
        ends.sort_unstable();
        self.fights.ends = ends.into();
    }

    /// Ends the fights that are over at this tick. One that is overlooked for a while does not count
    /// any more either.
    pub fn end_fights(&mut self, tick: Tick, entities: &mut EntityStore) {
        while self.fights.ends.front().is_some_and(|(until, _)| *until <= tick) {
            let Some((_, id)) = self.fights.ends.pop_front() else { return };
            if let Some(slot) = entities.slot(id) {
                entities.change_ties(slot, |ties| ties.fade(tick));
            }
        }
    }
}

/// Only players in range of each other fight.
fn can_fight(a: EntityId, b: EntityId, entities: &EntityStore, scene: &Scene) -> bool {
    let (Some(a), Some(b)) = (entities.slot(a), entities.slot(b)) else { return false };
    let is_player = |slot: u32| entities.body(slot).kind == Kind::PLAYER;
    let players = is_player(a) && is_player(b) && a != b;
    let (a, b) = (entities.place(a), entities.place(b));
    let vis = &scene.spec.visibility;
    players
        && range_query::same_plane(entities, a, b)
        && range_query::in_range(entities, vis, a, b, true).is_some()
}
