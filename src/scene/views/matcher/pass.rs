//! The order of a pass: pairs and searches by ascending key.
//!
//! What is known before the pass is sorted once. What turns up during the pass waits in a heap, and
//! the two are merged.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{Pair, Standing};
use crate::scene::EntityId;
use crate::scene::views::Key;

/// A pair that is due at its key. A pair of one player with itself stands for a search.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub key: Key,
    pub pair: Pair,
    pub standing: Standing,
}

/// Events in ascending order of their keys.
#[derive(Debug, Default)]
pub struct Pass {
    /// Known before the pass.
    early: Vec<Event>,
    /// The next of these.
    next: usize,
    /// Turned up during the pass.
    late: BinaryHeap<Reverse<Event>>,
}

impl Pass {
    pub fn clear(&mut self) {
        self.early.clear();
        self.late.clear();
        self.next = 0;
    }

    /// A pair that is known before the pass.
    #[inline]
    pub fn push(&mut self, key: Key, pair: Pair) {
        self.early.push(Event { key, pair, standing: Standing::No });
    }

    /// A pair that turns up during the pass.
    #[inline]
    pub fn push_late(&mut self, key: Key, pair: Pair) {
        self.late.push(Reverse(Event { key, pair, standing: Standing::No }));
    }

    /// A pair that stood when the pass began and has given way.
    #[inline]
    pub fn push_again(&mut self, key: Key, pair: Pair, standing: Standing) {
        self.late.push(Reverse(Event { key, pair, standing }));
    }

    /// A search that is due before the first pair of this rank.
    #[inline]
    pub fn push_search(&mut self, rank: u64, player: u32) {
        let key = Key::of(rank, EntityId(0), EntityId(0));
        self.late.push(Reverse(Event { key, pair: (player, player), standing: Standing::No }));
    }

    /// All that is known before the pass was pushed.
    pub fn sort(&mut self) {
        self.early.sort_unstable();
    }

    /// The next event.
    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        let early = self.early.get(self.next);
        let late = self.late.peek();
        if early.is_some_and(|early| late.is_none_or(|Reverse(late)| early <= late)) {
            self.next += 1;
            return early.copied();
        }
        self.late.pop().map(|Reverse(event)| event)
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Event) -> Ordering {
        self.key.cmp(&other.key)
    }
}
