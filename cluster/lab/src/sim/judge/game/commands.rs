//! Commands of the judge's own: each is applied at most once, and ends as it was applied.
//!
//! A command may stay unanswered only where a region has got a new owner, or messages were cut off, since it was given.

use std::collections::BTreeMap;
use std::time::Duration;

use purview::scene::messages::CommandError;
use purview::scene::region::Commands;
use purview::scene::{EntityId, Epoch, Region, RegionId};

use super::super::{Inner, Invariant, Judge, STARTS, TICK};
use super::{Game, When, Wrong};
use crate::rng::Rng;

/// How long an entity lives that was seen a moment ago.
const LIVES: Duration = Duration::from_secs(1);

/// How long a region searches an entity.
const SEARCH: Duration = Duration::from_secs(5);

/// A command of the judge's own.
#[derive(Debug, Clone, Copy)]
struct Probe {
    given: Duration,
    /// Where it was applied.
    applied: Option<When>,
}

/// All commands of the judge.
#[derive(Debug, Default)]
pub(super) struct Probes {
    all: BTreeMap<u64, Probe>,
    /// By the region that has given them and the number of the command.
    given: BTreeMap<(RegionId, Epoch, u64), u64>,
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
        id: EntityId,
        name: u64,
    ) -> Result<(), Wrong> {
        let Some(probe) = self.probes.all.get_mut(&name) else { return Ok(()) };
        let Some(before) = probe.applied.replace(here) else { return Ok(()) };
        let text = format!("command {name} for {id} was applied in {before:?} and {here:?}");
        Err((Invariant::CommandOnce, vec![id], text))
    }
}

impl Inner {
    /// The judge's own command has ended.
    pub(super) fn probe_ended(
        &mut self,
        (region, epoch): (RegionId, Epoch),
        command: u64,
        refused: Option<CommandError>,
    ) -> Result<(), Wrong> {
        let probes = &mut self.game.probes;
        let Some(name) = probes.given.remove(&(region, epoch, command)) else { return Ok(()) };
        let Some(probe) = probes.all.get(&name).copied() else { return Ok(()) };
        // A region has got a new owner since, or messages were cut off.
        let disturbed = probe.given < self.game.upset.max(self.cut).max(STARTS);
        let wrong = match refused {
            None => probe.applied.is_none(),
            Some(CommandError::Unanswered) => !disturbed,
            Some(_) if probe.applied.is_some() => true,
            // The command may have joined a search that had begun before.
            Some(CommandError::Busy) => !disturbed && probe.given > self.game.upset + SEARCH,
            Some(CommandError::Unknown(id)) => !disturbed && self.game.lived_since(id, probe.given),
            Some(_) => !disturbed,
        };
        let text = format!("command {name} of {region} has ended with {refused:?}: {probe:?}");
        if wrong { Err((Invariant::CommandOnce, Vec::new(), text)) } else { Ok(()) }
    }
}

impl Game {
    /// Whether an entity lives, and has lived for all the time since.
    fn lived_since(&self, id: EntityId, since: Duration) -> bool {
        self.entities.get(&id).is_some_and(|seen| seen.at > since + TICK * 8)
    }
}
