//! Escrow: what a region remembers of entities that it has handed to other regions, and of entities
//! that have arrived.
//!
//! A new owner may die before a checkpoint of its own has the entity: then the last owner hands the entity over again.
//! Entities that have come are noted so that a region knows a repeated handoff. An entry is forgotten only when no
//! checkpoint is old enough to need it.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::scene::messages::Handoff;
use crate::scene::mutants::{self, Mutant};
use crate::scene::region::Region;
use crate::scene::{EntityId, Epoch, RegionId, Tick};

/// For how many ticks an entity's state is kept after it was handed on, at least: recovery assumes that no
/// checkpoint is older. Two minutes by default. While checkpoints are not saved notes are kept for longer
/// (`Escrow::keep_since`).
pub const ESCROW_TICKS: u64 = 1_200;

/// Most entities that are remembered; the oldest ones give way.
const MAX_LENT: usize = 16_384;

/// Entities that were handed on, and entities that arrived.
#[derive(Debug)]
pub struct Escrow {
    lent: VecDeque<(Tick, RegionId, Handoff)>,
    came: VecDeque<(Tick, EntityId, Epoch)>,
    /// Notes of this tick and later stay, however old they are.
    since: Tick,
}

impl Default for Escrow {
    fn default() -> Escrow {
        Escrow { lent: VecDeque::new(), came: VecDeque::new(), since: Tick(u64::MAX) }
    }
}

impl Escrow {
    /// As it was saved.
    pub fn restored(
        lent: &[(Tick, RegionId, Handoff)],
        came: &[(Tick, EntityId, Epoch)],
    ) -> Escrow {
        let (lent, came) = (lent.iter().cloned().collect(), came.iter().copied().collect());
        Escrow { lent, came, ..Escrow::default() }
    }

    /// The oldest checkpoint from which any region may go on is of this tick: what was noted since then is
    /// kept, up to the bounds of memory.
    pub fn keep_since(&mut self, tick: Tick) {
        self.since = tick;
    }

    /// An entity was handed to another region.
    pub fn lend(&mut self, now: Tick, to: RegionId, handoff: &Handoff) {
        if mutants::has(Mutant::NoEscrow) {
            return;
        }
        while self.lent.len() >= MAX_LENT || is_old(now, self.since, self.lent.front().map(|l| l.0))
        {
            self.lent.pop_front();
        }
        self.lent.push_back((now, to, handoff.alone()));
    }

    /// An entity has come.
    pub fn note(&mut self, now: Tick, id: EntityId, epoch: Epoch) {
        // For longer than others keep what they sent.
        let before = |tick: Tick| Tick(tick.0.saturating_sub(ESCROW_TICKS));
        let (due, since) = (before(now), before(self.since));
        while self.came.len() >= 4 * MAX_LENT || is_old(due, since, self.came.front().map(|c| c.0))
        {
            self.came.pop_front();
        }
        self.came.push_back((now, id, epoch));
    }

    /// Entities that went, the last one last.
    pub fn lent(&self) -> impl DoubleEndedIterator<Item = &(Tick, RegionId, Handoff)> {
        self.lent.iter()
    }

    /// Entities that came.
    pub fn came(&self) -> impl Iterator<Item = &(Tick, EntityId, Epoch)> {
        self.came.iter()
    }

    /// Under which epoch each of these came last.
    pub fn who_has_come(&self) -> FxHashMap<EntityId, Epoch> {
        self.came.iter().map(|(_, id, epoch)| (*id, *epoch)).collect()
    }
}

impl Region {
    /// No region goes on from a checkpoint that is older than this tick. Where that is longer ago than
    /// [`ESCROW_TICKS`] what a recovery would ask for is remembered for longer, as far as memory allows.
    pub fn keep_notes_since(&mut self, tick: Tick) {
        self.custody.escrow.keep_since(tick);
    }
}

fn is_old(now: Tick, since: Tick, then: Option<Tick>) -> bool {
    then.is_some_and(|then| then < since && then.0.saturating_add(ESCROW_TICKS) <= now.0)
}
