//! Escrow: what a region remembers of entities that it has handed to other regions, and of entities
//! that have arrived.
//!
//! A new owner may die before a checkpoint of its own has the entity: then the last owner hands the entity over again.
//! Entities that have come are noted so that a region knows a repeated handoff. An entry is forgotten only when no
//! checkpoint is old enough to need it.

use std::collections::{BTreeSet, VecDeque};

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
    /// Of each of these the entity, its epoch, and how many went before.
    lent_of: BTreeSet<(EntityId, Epoch, u64)>,
    /// How many are not remembered any more.
    lent_before: u64,
    came: VecDeque<(Tick, EntityId, Epoch)>,
    /// Of each entity that came: under which epoch it did last, and how many came before.
    came_last: FxHashMap<EntityId, (Epoch, u64)>,
    /// How many are not remembered any more.
    came_before: u64,
    /// Notes of this tick and later stay, however old they are.
    since: Tick,
}

impl Default for Escrow {
    fn default() -> Escrow {
        Escrow {
            lent: VecDeque::new(),
            lent_of: BTreeSet::new(),
            lent_before: 0,
            came: VecDeque::new(),
            came_last: FxHashMap::default(),
            came_before: 0,
            since: Tick(u64::MAX),
        }
    }
}

impl Escrow {
    /// As it was saved.
    pub fn restored(
        lent: &[(Tick, RegionId, Handoff)],
        came: &[(Tick, EntityId, Epoch)],
    ) -> Escrow {
        let mut escrow = Escrow::default();
        lent.iter().cloned().for_each(|lent| escrow.push_lent(lent));
        came.iter().copied().for_each(|came| escrow.push_came(came));
        escrow
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
            self.pop_lent();
        }
        self.push_lent((now, to, handoff.alone()));
    }

    fn push_lent(&mut self, lent: (Tick, RegionId, Handoff)) {
        let number = self.lent_before + self.lent.len() as u64;
        self.lent_of.insert((lent.2.state.id, lent.2.epoch, number));
        self.lent.push_back(lent);
    }

    fn pop_lent(&mut self) {
        let Some((.., handoff)) = self.lent.pop_front() else { return };
        self.lent_of.remove(&(handoff.state.id, handoff.epoch, self.lent_before));
        self.lent_before += 1;
    }

    /// An entity has come.
    pub fn note(&mut self, now: Tick, id: EntityId, epoch: Epoch) {
        // For longer than others keep what they sent.
        let before = |tick: Tick| Tick(tick.0.saturating_sub(ESCROW_TICKS));
        let (due, since) = (before(now), before(self.since));
        while self.came.len() >= 4 * MAX_LENT || is_old(due, since, self.came.front().map(|c| c.0))
        {
            self.pop_came();
        }
        self.push_came((now, id, epoch));
    }

    fn push_came(&mut self, came: (Tick, EntityId, Epoch)) {
        let number = self.came_before + self.came.len() as u64;
        self.came_last.insert(came.1, (came.2, number));
        self.came.push_back(came);
    }

    fn pop_came(&mut self) {
        let Some((_, id, _)) = self.came.pop_front() else { return };
        if self.came_last.get(&id).is_some_and(|(_, number)| *number == self.came_before) {
            self.came_last.remove(&id);
        }
        self.came_before += 1;
    }

    /// Entities that went, the last one last.
    pub fn lent(&self) -> impl DoubleEndedIterator<Item = &(Tick, RegionId, Handoff)> {
        self.lent.iter()
    }

    /// Of an entity that went: where it went under its highest epoch, the last time that it did.
    pub fn lent_of(&self, id: EntityId) -> Option<&(Tick, RegionId, Handoff)> {
        let all = (id, Epoch(0), 0)..=(id, Epoch(u64::MAX), u64::MAX);
        let (.., number) = self.lent_of.range(all).next_back()?;
        self.lent.get((number - self.lent_before) as usize)
    }

    /// Entities that came.
    pub fn came(&self) -> impl Iterator<Item = &(Tick, EntityId, Epoch)> {
        self.came.iter()
    }

    /// Under which epoch an entity came last.
    pub fn came_under(&self, id: EntityId) -> Option<Epoch> {
        self.came_last.get(&id).map(|(epoch, _)| *epoch)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::region::custody::Past;
    use crate::scene::region::fixtures;
    use crate::scene::{Pos, SceneSpec};

    fn handoff() -> Handoff {
        let mut region = fixtures::region(SceneSpec::default(), 0);
        fixtures::enter(&mut region, 1, Pos::ground(100, 100));
        region.tick(Tick(1), &mut Vec::new());
        let slot = region.entities.real_slot(EntityId(1)).unwrap();
        region.describe(slot, Past::Left)
    }

    /// What a search through all notes finds.
    fn searched(escrow: &Escrow, id: EntityId) -> (Option<(Tick, RegionId, Epoch)>, Option<Epoch>) {
        let lent = escrow.lent().filter(|(.., handoff)| handoff.state.id == id);
        let lent = lent.max_by_key(|(.., handoff)| handoff.epoch);
        let came = escrow.came().filter(|(_, of, _)| *of == id).last();
        (lent.map(|(at, to, h)| (*at, *to, h.epoch)), came.map(|(.., epoch)| *epoch))
    }

    fn found(escrow: &Escrow, id: EntityId) -> (Option<(Tick, RegionId, Epoch)>, Option<Epoch>) {
        let lent = escrow.lent_of(id);
        (lent.map(|(at, to, h)| (*at, *to, h.epoch)), escrow.came_under(id))
    }

    #[test]
    fn what_is_found_of_an_entity_is_what_a_search_through_all_notes_finds() {
        let (mut escrow, one) = (Escrow::default(), handoff());
        let mut random = 1_u64;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for n in 0..4_000_u64 {
            // Notes of thousands of ticks: many are forgotten meanwhile.
            let now = Tick(2 * n);
            let (id, epoch) = (EntityId(draw(40)), Epoch(draw(9)));
            let mut handoff = one.clone();
            (handoff.state.id, handoff.epoch) = (id, epoch);
            match draw(3) {
                0 => escrow.note(now, id, epoch),
                _ => escrow.lend(now, RegionId(draw(5) as u32), &handoff),
            }
            let id = EntityId(draw(40));
            assert_eq!(found(&escrow, id), searched(&escrow, id), "{id} after {n} notes");
            if n % 500 == 0 {
                let saved: Vec<_> = escrow.lent().cloned().collect();
                escrow = Escrow::restored(&saved, &escrow.came().copied().collect::<Vec<_>>());
            }
        }
        assert!(escrow.lent().count() < 700, "old notes are forgotten");
        let all = (0..41).map(EntityId);
        all.for_each(|id| assert_eq!(found(&escrow, id), searched(&escrow, id), "{id}"));
    }

    #[test]
    fn no_entry_is_kept_of_a_note_that_gave_way() {
        let (mut escrow, one) = (Escrow::default(), handoff());
        for n in 0..MAX_LENT as u64 + 500 {
            let mut handoff = one.clone();
            handoff.state.id = EntityId(n);
            escrow.lend(Tick(1), RegionId(1), &handoff);
        }
        (0..4 * MAX_LENT as u64 + 500).for_each(|n| escrow.note(Tick(1), EntityId(n), Epoch(1)));
        assert_eq!((escrow.lent.len(), escrow.lent_of.len()), (MAX_LENT, MAX_LENT));
        assert_eq!((escrow.came.len(), escrow.came_last.len()), (4 * MAX_LENT, 4 * MAX_LENT));
        let known = |id| (escrow.lent_of(id).is_some(), escrow.came_under(id).is_some());
        assert_eq!([499, 500].map(EntityId).map(known), [(false, false), (true, true)]);
    }
}
