//! What a region remembers of those whom it has handed to others, in case that one of these dies before a
//! checkpoint of its own knows them; and of those who have come to it, so that it tells whom its checkpoint
//! knows already.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::scene::border::Handoff;
use crate::scene::mutants::{self, Mutant};
use crate::scene::{EntityId, Epoch, RegionId, Tick};

/// For how many ticks an entity's state is kept after it was handed on: no checkpoint that a region goes
/// on from may be older. Two minutes by default.
pub const ESCROW_TICKS: u64 = 1_200;

/// Most entities that are remembered; the oldest ones give way.
const MAX_LENT: usize = 16_384;

/// Who went, and who came.
#[derive(Debug, Default)]
pub struct Escrow {
    lent: VecDeque<(Tick, RegionId, Handoff)>,
    came: VecDeque<(Tick, EntityId, Epoch)>,
}

impl Escrow {
    /// As it was saved.
    pub fn restored(
        lent: &[(Tick, RegionId, Handoff)],
        came: &[(Tick, EntityId, Epoch)],
    ) -> Escrow {
        Escrow { lent: lent.iter().cloned().collect(), came: came.iter().copied().collect() }
    }

    /// An entity was handed to another region.
    pub fn lend(&mut self, now: Tick, to: RegionId, handoff: &Handoff) {
        if mutants::has(Mutant::NoEscrow) {
            return;
        }
        while self.lent.len() >= MAX_LENT || is_old(now, self.lent.front().map(|l| l.0)) {
            self.lent.pop_front();
        }
        self.lent.push_back((now, to, handoff.alone()));
    }

    /// An entity has come.
    pub fn note(&mut self, now: Tick, id: EntityId, epoch: Epoch) {
        // For longer than others keep what they sent.
        while self.came.len() >= 4 * MAX_LENT
            || is_old(Tick(now.0.saturating_sub(ESCROW_TICKS)), self.came.front().map(|c| c.0))
        {
            self.came.pop_front();
        }
        self.came.push_back((now, id, epoch));
    }

    /// Everybody who went, the last one last.
    pub fn lent(&self) -> impl DoubleEndedIterator<Item = &(Tick, RegionId, Handoff)> {
        self.lent.iter()
    }

    /// Everybody who came.
    pub fn came(&self) -> impl Iterator<Item = &(Tick, EntityId, Epoch)> {
        self.came.iter()
    }

    /// Under which epoch each of these came last.
    pub fn who_has_come(&self) -> FxHashMap<EntityId, Epoch> {
        self.came.iter().map(|(_, id, epoch)| (*id, *epoch)).collect()
    }
}

fn is_old(now: Tick, then: Option<Tick>) -> bool {
    then.is_some_and(|then| then.0.saturating_add(ESCROW_TICKS) <= now.0)
}
