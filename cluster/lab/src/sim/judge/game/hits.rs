//! Hit points change only by commands of the rules, and only so: a hit takes some, and a player that falls stands up with
//! all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use purview::scene::messages::{Command, Order};
use purview::scene::region::Commands;
use purview::scene::{EntityId, Plane, Region};

use super::super::{Invariant, Wrong};
use super::Seen;
use super::history::{History, When};
use crate::game::rules::{HIT, HP, PLAYER, PLAYER_HP};

/// Hit points that rules have set.
#[derive(Debug, Clone, Copy)]
struct Hit {
    hp: i64,
    when: When,
    at: Duration,
}

/// For how long a command waits for an entity, at most.
const WAITS: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Hits {
    last: BTreeMap<EntityId, Hit>,
    /// Hits of entities that are between two scenes, or were searched when they came: they wait for them.
    waiting: BTreeMap<EntityId, Vec<Hit>>,
}

fn hp_set(command: &Command) -> Option<(EntityId, i64)> {
    let Command::Order(id, Order::Set(set)) = command else { return None };
    (set.id == HP).then(|| (*id, set.value.read().unwrap_or_default()))
}

impl Hits {
    /// The rules of a region have given commands.
    pub fn commanded(
        &mut self,
        region: &Region,
        commands: &Commands,
        at: Duration,
    ) -> Result<(), Wrong> {
        let when = When::now_in(region);
        let mut now: BTreeMap<EntityId, i64> = BTreeMap::new();
        for (id, hp) in commands.given().filter_map(|(_, command)| hp_set(command)) {
            let Some(known) = region.known(id) else { continue };
            if !known.is_real {
                let text = format!("the rules set the hit points of {id}, which lives elsewhere");
                return Err((Invariant::HitPoints, vec![id], text));
            }
            if known.plane == Plane::LIMBO || region.is_searched(id) {
                self.waiting.entry(id).or_default().push(Hit { hp, when, at });
                continue;
            }
            let was = now.get(&id).copied().unwrap_or_else(|| known.properties.read(HP));
            let stands_up = known.kind == PLAYER && hp == PLAYER_HP && was <= HIT;
            if hp >= was && !stands_up {
                let text = format!("the rules give {id}, which has {was} hit points, {hp}");
                return Err((Invariant::HitPoints, vec![id], text));
            }
            now.insert(id, hp);
        }
        self.last.extend(now.into_iter().map(|(id, hp)| (id, Hit { hp, when, at })));
        Ok(())
    }

    pub fn sees(
        &mut self,
        id: EntityId,
        (before, seen): (&Seen, &Seen),
        history: &History,
    ) -> Result<(), Wrong> {
        let hit = self.last.get(&id).copied().filter(|hit| hit.at >= before.at);
        let due = match hit.filter(|hit| !history.is_undone(hit.when)) {
            Some(hit) => hit.hp,
            None if history.is_undone(before.when) => return Ok(()),
            None => before.what.hp,
        };
        if seen.what.hp == due || self.has_waited(id, seen) {
            return Ok(());
        }
        let text =
            format!("{id} has {} hit points, and not {due}: {before:?}, {hit:?}", seen.what.hp);
        Err((Invariant::HitPoints, vec![id], text))
    }

    /// Whether an entity has the hit points of a command that has waited for it. Those before were applied, too.
    fn has_waited(&mut self, id: EntityId, seen: &Seen) -> bool {
        let Some(waiting) = self.waiting.get_mut(&id) else { return false };
        waiting.retain(|hit| seen.at.saturating_sub(hit.at) <= WAITS);
        let applied = waiting.iter().rposition(|hit| hit.hp == seen.what.hp);
        if let Some(applied) = applied {
            waiting.drain(..=applied);
        }
        applied.is_some()
    }
}
