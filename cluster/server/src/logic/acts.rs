//! Actions that no worker has handled yet: if a worker dies, the next one is told of them.
//!
//! All else that a region tells is a level, which `Started` says anew; an action happens once.

use std::collections::VecDeque;

use purview::scene::Tick;
use purview::scene::mutants::{self, Mutant};

use super::proto::Acted;

/// Most actions that wait; the oldest ones give way.
const MOST: usize = 16_384;

/// The actions of a region, in their order.
#[derive(Debug, Default)]
pub struct Acts {
    waiting: VecDeque<(Tick, Acted)>,
    /// Actions that gave way since a worker was told so.
    missed: u64,
}

impl Acts {
    /// An action that is told in this tick, or will be.
    pub fn add(&mut self, tick: Tick, act: Acted) {
        if self.waiting.len() >= MOST {
            self.waiting.pop_front();
            self.missed += 1;
        }
        self.waiting.push_back((tick, act));
    }

    /// Actions of a region that was elsewhere before, and how many are missing.
    pub fn of(acts: Vec<Acted>, missed: u64) -> Acts {
        Acts { waiting: acts.into_iter().map(|act| (Tick(0), act)).collect(), missed }
    }

    /// All of them, and how many are missing.
    pub fn all(&self) -> (Vec<Acted>, u64) {
        (self.waiting.iter().map(|(_, act)| act.clone()).collect(), self.missed)
    }

    /// What was told in this tick and before was handled.
    pub fn handled(&mut self, tick: Tick) {
        if mutants::has(Mutant::ActsToldAgain) {
            return;
        }
        while self.waiting.front().is_some_and(|(told, _)| *told <= tick) {
            self.waiting.pop_front();
        }
    }

    /// All of them, which are told in this tick, and how many are missing.
    pub fn tell_all(&mut self, tick: Tick) -> (Vec<Acted>, u64) {
        if mutants::has(Mutant::ActsForgotten) {
            self.waiting.clear();
        }
        self.waiting.iter_mut().for_each(|(told, _)| *told = tick);
        let acts = self.waiting.iter().map(|(_, act)| act.clone()).collect();
        (acts, std::mem::take(&mut self.missed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(n: u64) -> Acted {
        Acted { entity: n, ..Acted::default() }
    }

    #[test]
    fn what_a_worker_has_not_handled_is_told_to_the_next_one_once() {
        let mut acts = Acts::default();
        (1..6).for_each(|n| acts.add(Tick(n), act(n)));
        acts.handled(Tick(2));
        let (told, missed) = acts.tell_all(Tick(9));
        assert_eq!((told.iter().map(|a| a.entity).collect::<Vec<_>>(), missed), (vec![3, 4, 5], 0));
        acts.handled(Tick(8));
        assert_eq!(acts.tell_all(Tick(10)).0.len(), 3, "they were told in tick 9");
        let (all, missed) = acts.all();
        let (told, _) = Acts::of(all, missed).tell_all(Tick(12));
        assert_eq!(told.len(), 3, "they go with the region");
        acts.handled(Tick(10));
        assert_eq!(acts.tell_all(Tick(11)), (vec![], 0));
    }

    #[test]
    fn the_oldest_actions_give_way_and_their_number_is_told() {
        let mut acts = Acts::default();
        (0..MOST as u64 + 3).for_each(|n| acts.add(Tick(n), act(n)));
        let (told, missed) = acts.tell_all(Tick(0));
        assert_eq!((told.len(), told[0].entity, missed), (MOST, 3, 3));
        assert_eq!(acts.tell_all(Tick(0)).1, 0);
    }
}
