//! Commands of the judge's own: each is applied at most once, and ends as it was applied.
//!
//! What has ended as refused was not applied, unless that is undone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use purview::scene::messages::CommandError;
use purview::scene::region::Commands;
use purview::scene::{EntityId, Epoch, Region, RegionId};

use super::super::{Inner, Invariant, Judge, STARTS, Wrong};
use super::{Game, When};
use crate::rng::Rng;

/// How long an entity lives that was seen a moment ago.
const LIVES: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
struct Probe {
    given: Duration,
    applied: Option<When>,
}

#[derive(Debug, Default)]
pub(super) struct Probes {
    all: BTreeMap<u64, Probe>,
    given: BTreeMap<(RegionId, Epoch, u64), u64>,
    /// Entities of which commands have ended as there is no such entity.
    unknown: BTreeMap<EntityId, Unknown>,
}

#[derive(Debug, Clone, Copy)]
struct Unknown {
    name: u64,
    given: Duration,
    ended: Duration,
}

/// The number of a command, by the text of its action.
pub(super) fn probe_of(payload: &[u8]) -> Option<u64> {
    std::str::from_utf8(payload).ok()?.strip_prefix("probe ")?.parse().ok()
}

impl Judge {
    /// Gives a command for any entity of the scene, which is to be applied once.
    pub(super) fn probe(&self, region: &Region, rng: &mut Rng, commands: &mut Commands) {
        let (now, mut inner) = (self.journal.now(), self.inner());
        let Inner { game, .. } = &mut *inner;
        let lives = |seen: &&super::Seen| now.saturating_sub(seen.at) < LIVES;
        let all: Vec<EntityId> =
            game.entities.iter().filter(|(_, seen)| lives(seen)).map(|(id, _)| *id).collect();
        let Some(id) = all.get((rng.unit() * all.len() as f64) as usize) else { return };
        let name = game.probes.all.len() as u64;
        // Longer than the numbers that clients act.
        let command = commands.act(*id, format!("probe {name:020}"));
        game.probes.all.insert(name, Probe { given: now, applied: None });
        game.probes.given.insert((region.id(), region.epoch(), command), name);
    }
}

impl Game {
    /// The judge's own command was applied.
    pub(super) fn probe_applied(
        &mut self,
        here: When,
        (id, name): (EntityId, u64),
        unsaved: &BTreeSet<EntityId>,
    ) -> Result<(), Wrong> {
        let Some(probe) = self.probes.all.get_mut(&name) else { return Ok(()) };
        let Some(before) = probe.applied.replace(here) else { return Ok(()) };
        // It came again to an entity that goes on as it was before, or as its session alone knows it.
        if self.history.is_undone(before) || unsaved.contains(&id) {
            return Ok(());
        }
        let text = format!("command {name} for {id} was applied in {before:?} and {here:?}");
        Err((Invariant::CommandOnce, vec![id], text))
    }
}

impl Inner {
    /// The judge's own command has ended.
    pub(super) fn probe_ended(
        &mut self,
        (region, epoch): (RegionId, Epoch),
        (command, now): (u64, Duration),
        refused: Option<CommandError>,
    ) -> Result<(), Wrong> {
        let undisturbed_since = self.undisturbed_since();
        let probes = &mut self.game.probes;
        let Some(name) = probes.given.remove(&(region, epoch, command)) else { return Ok(()) };
        let Some(probe) = probes.all.get(&name).copied() else { return Ok(()) };
        let disturbed = probe.given < undisturbed_since;
        let is_done = probe.applied.is_some_and(|when| !self.game.is_undone(when));
        let probes = &mut self.game.probes;
        let wrong = match refused {
            None => probe.applied.is_none(),
            Some(_) if is_done => true,
            Some(CommandError::Unanswered | CommandError::Busy) => true,
            // That it lives after all is seen later.
            Some(CommandError::Unknown(id)) => {
                let unknown = Unknown { name, given: probe.given, ended: now };
                probes.unknown.insert(id, unknown);
                false
            }
            Some(_) => !disturbed,
        };
        let text = format!("command {name} of {region} has ended with {refused:?}: {probe:?}");
        if wrong { Err((Invariant::CommandOnce, Vec::new(), text)) } else { Ok(()) }
    }

    /// Since when no region has got a new owner, and no messages are cut off.
    fn undisturbed_since(&self) -> Duration {
        self.game.upset.max(self.cut).max(STARTS)
    }

    /// An entity acts now: no command has ended before because there is no such entity.
    pub(super) fn is_no_unknown(&mut self, id: EntityId, now: Duration) -> Result<(), Wrong> {
        let undisturbed_since = self.undisturbed_since();
        let Some(unknown) = self.game.probes.unknown.get(&id).copied() else { return Ok(()) };
        // What happens at the same time has no order.
        if now <= unknown.ended {
            return Ok(());
        }
        self.game.probes.unknown.remove(&id);
        let Unknown { name, given, ended } = unknown;
        let text = format!(
            "{id} lives, and command {name} for it, given at {given:?}, has ended at {ended:?} as unknown"
        );
        let wrong = given >= undisturbed_since;
        if wrong { Err((Invariant::CommandOnce, vec![id], text)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Scope, TICK};
    use super::*;
    use crate::sim::journal::Journal;

    const ID: EntityId = EntityId(7);

    /// A judge of a command that has ended as unknown after this time, two seconds after it was given.
    fn unknown_after(ended: Duration) -> Judge {
        let judge = Judge::new(Journal::new(false, None), Scope::default());
        let unknown = Unknown { name: 1, given: ended - Duration::from_secs(2), ended };
        judge.inner().game.probes.unknown.insert(ID, unknown);
        judge
    }

    #[test]
    fn an_entity_that_acts_after_a_command_for_it_has_ended_as_unknown_is_a_violation() {
        let ended = STARTS + Duration::from_secs(3);
        let (judge, later) = (unknown_after(ended), ended + TICK);
        let acts = |judge: &Judge, id, at| judge.inner().is_no_unknown(id, at).is_ok();
        assert!(acts(&judge, EntityId(8), later), "another one");
        assert!(acts(&judge, ID, ended), "it may act just before it is gone");
        assert!(!acts(&judge, ID, later));
        let disturbed = unknown_after(ended);
        disturbed.inner().game.upset = ended - Duration::from_secs(1);
        assert!(acts(&disturbed, ID, later), "a region goes on from a checkpoint");
        let cut = unknown_after(ended);
        cut.inner().cut = ended;
        assert!(acts(&cut, ID, later), "a message of the entity's region was lost");
    }
}
