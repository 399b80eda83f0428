//! Actions that no worker has handled yet. They are part of the region's state: whoever has the region next is told of
//! them.

use std::collections::VecDeque;

use prost::Message;
use purview::scene::mutants::{self, Mutant};

use super::proto::Acted;

/// Most actions that wait; the oldest ones give way.
const MOST: usize = 16_384;

#[derive(Debug, Default)]
pub struct Acts {
    waiting: VecDeque<Acted>,
    /// The number of the first one.
    first: u64,
    /// Actions that gave way since a worker has heard of it.
    missed: u64,
}

/// What a worker is told, and has handled when its answer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handled {
    below: u64,
    missed: u64,
}

impl Handled {
    pub fn missed(self) -> u64 {
        self.missed
    }
}

impl Acts {
    /// An entity has acted. Whether an older action gave way.
    pub fn add(&mut self, act: Acted) -> bool {
        let is_full = self.waiting.len() >= MOST;
        if is_full {
            self.waiting.pop_front();
            self.first += 1;
            self.missed += 1;
        }
        self.waiting.push_back(act);
        is_full
    }

    /// Actions of a region that was elsewhere before, and how many are missing.
    pub fn of(acts: Vec<Acted>, missed: u64) -> Acts {
        Acts { waiting: acts.into(), first: 0, missed }
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// All of them, and how many are missing.
    pub fn all(&self) -> (Vec<Acted>, u64) {
        (self.waiting.iter().cloned().collect(), self.missed)
    }

    /// The first ones, as many as have so many bytes, but at least one.
    pub fn next(&self, bytes: usize) -> (Vec<Acted>, Handled) {
        let (mut acts, mut sum) = (Vec::new(), 0);
        for act in &self.waiting {
            // With its tag and its length.
            sum += act.encoded_len() + 4;
            if sum > bytes && !acts.is_empty() {
                break;
            }
            acts.push(act.clone());
        }
        let below = self.first + acts.len() as u64;
        (acts, Handled { below, missed: self.missed })
    }

    pub fn handled(&mut self, handled: Handled) {
        self.missed -= handled.missed.min(self.missed);
        if mutants::has(Mutant::ActsToldAgain) {
            return;
        }
        while self.first < handled.below && self.waiting.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// A worker is told no more, and has not handled what it was told.
    pub fn not_handled(&mut self, handled: Handled) {
        if mutants::has(Mutant::ActsForgotten) {
            self.handled(handled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(n: u64) -> Acted {
        Acted { entity: n, ..Acted::default() }
    }

    fn entities(acts: &[Acted]) -> Vec<u64> {
        acts.iter().map(|act| act.entity).collect()
    }

    #[test]
    fn actions_are_told_until_they_are_handled() {
        let mut acts = Acts::default();
        (1..6).for_each(|n| assert!(!acts.add(act(n))));
        let (told, handled) = acts.next(usize::MAX);
        assert_eq!(entities(&told), [1, 2, 3, 4, 5]);
        acts.add(act(6));
        let (told, few) = acts.next(30);
        assert_eq!(entities(&told), [1, 2]);
        acts.handled(few);
        assert_eq!(entities(&acts.next(1).0), [3], "at least one");
        acts.handled(handled);
        assert_eq!(entities(&acts.next(usize::MAX).0), [6]);
        let (all, missed) = acts.all();
        assert_eq!(entities(&Acts::of(all, missed).next(99).0), [6], "they go with the region");
    }

    #[test]
    fn the_oldest_actions_give_way_and_their_number_is_told() {
        let mut acts = Acts::default();
        (0..MOST as u64).for_each(|n| assert!(!acts.add(act(n))));
        let (_, told_before) = acts.next(usize::MAX);
        (0..3).for_each(|n| assert!(acts.add(act(100_000 + n))));
        let (told, handled) = acts.next(usize::MAX);
        assert_eq!((told.len(), told[0].entity, handled.missed()), (MOST, 3, 3));
        acts.handled(told_before);
        assert_eq!((entities(&acts.next(usize::MAX).0).len(), acts.missed), (3, 3));
        acts.handled(handled);
        assert_eq!((acts.waiting.len(), acts.missed), (0, 0));
    }
}
