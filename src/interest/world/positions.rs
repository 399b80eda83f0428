//! Positions of subjects that the caller does not know yet.

use super::View;
use super::changes::Changes;
use super::classes::NOBODY;
use crate::interest::Position;
use crate::scene::Pos;

/// What the caller knows of positions, by slot.
#[derive(Debug, Clone, Default)]
pub struct Positions {
    /// Number of observers.
    seen_by: Vec<u32>,
    /// The position that was told; `None`: no entity sees this one.
    known: Vec<Option<Pos>>,
    /// Entities whose position may have to be told.
    queue: Vec<u32>,
    queued: Vec<bool>,
    told: Vec<Position>,
}

impl Positions {
    /// An entity may have moved.
    #[inline]
    pub fn moved(&mut self, slot: u32) {
        let at = slot as usize;
        if at >= self.queued.len() {
            self.queued.resize(at + 1, false);
        }
        if !std::mem::replace(&mut self.queued[at], true) {
            self.queue.push(slot);
        }
    }

    /// Finds what is to be told, after the changes of a tick.
    pub fn tick(&mut self, view: View, changes: &Changes) {
        let slots = view.states.len();
        self.seen_by.resize(slots, 0);
        self.known.resize(slots, None);
        for change in changes.iter() {
            let count = &mut self.seen_by[change.subject() as usize];
            *count = if change.appears() { *count + 1 } else { count.saturating_sub(1) };
            self.moved(change.subject());
        }
        super::clear(&mut self.told);
        for slot in self.queue.drain(..) {
            let (at, state) = (slot as usize, view.states[slot as usize]);
            self.queued[at] = false;
            let is_seen = self.seen_by[at] > 0 && state.class != NOBODY;
            let now = is_seen.then_some(state.pos);
            if std::mem::replace(&mut self.known[at], now) != now
                && let Some(pos) = now
            {
                self.told.push(Position { id: view.ids[at], pos });
            }
        }
        self.told.sort_unstable_by_key(|one| one.id);
    }

    /// What the last tick tells, by ascending ids.
    pub fn told(&self) -> &[Position] {
        &self.told
    }
}
