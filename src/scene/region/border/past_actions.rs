//! The actions that a neighbour was told lately.
//!
//! An action is in the batch of its tick. That batch may be lost: while a link is cut a newer batch replaces it, and the
//! neighbour may die. So a full batch repeats the actions of the ticks before, and the neighbour takes those that it
//! has missed.

use std::collections::VecDeque;

use crate::scene::messages::{EntityAction, PastAction};
use crate::scene::{EntityId, Tick};

/// For how many ticks actions are kept: longer than a lease and the takeover after it.
const KEPT_TICKS: u64 = 300;

/// Most bytes of the actions that are kept for one neighbour; the oldest ones give way.
const KEPT_BYTES: usize = 256 << 10;

/// Bytes of an action beside its payload.
const HEAD_BYTES: usize = 32;

/// Actions in the order of their ticks.
#[derive(Debug, Default)]
pub struct PastActions {
    kept: VecDeque<PastAction>,
    bytes: usize,
}

fn bytes(action: &PastAction) -> usize {
    HEAD_BYTES + action.content.payload.len()
}

impl PastActions {
    /// The neighbour is told these actions in this tick.
    pub fn note(&mut self, tick: Tick, acts: &[(EntityId, EntityAction)]) {
        let old = |first: &PastAction| first.tick.0.saturating_add(KEPT_TICKS) <= tick.0;
        while self.kept.front().is_some_and(old) {
            self.forget_first();
        }
        for (id, content) in acts {
            self.push(PastAction { tick, id: *id, content: content.clone() });
        }
    }

    fn push(&mut self, action: PastAction) {
        self.bytes += bytes(&action);
        self.kept.push_back(action);
        while self.bytes > KEPT_BYTES {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some(first) = self.kept.pop_front() {
            self.bytes -= bytes(&first);
        }
    }

    /// Those of the ticks before this one.
    pub fn before(&self, tick: Tick) -> Vec<PastAction> {
        self.kept.iter().filter(|action| action.tick < tick).cloned().collect()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &PastAction> {
        self.kept.iter()
    }
}

impl FromIterator<PastAction> for PastActions {
    fn from_iter<I: IntoIterator<Item = PastAction>>(actions: I) -> PastActions {
        let mut all = PastActions::default();
        actions.into_iter().for_each(|action| all.push(action));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(of: impl IntoIterator<Item = PastAction>) -> Vec<(u64, u64)> {
        of.into_iter().map(|action| (action.tick.0, action.id.0)).collect()
    }

    fn act(id: u64, length: usize) -> (EntityId, EntityAction) {
        (EntityId(id), EntityAction::new(vec![0; length]))
    }

    #[test]
    fn actions_of_the_ticks_before_are_repeated_until_they_are_old() {
        let mut acts = PastActions::default();
        acts.note(Tick(10), &[act(1, 8), act(2, 8)]);
        acts.note(Tick(11), &[act(1, 8)]);
        assert_eq!(numbers(acts.before(Tick(11))), [(10, 1), (10, 2)]);
        acts.note(Tick(10 + KEPT_TICKS), &[]);
        assert_eq!(numbers(acts.before(Tick(400))), [(11, 1)]);
    }

    #[test]
    fn the_oldest_give_way_where_there_are_too_many() {
        let mut acts = PastActions::default();
        let fit = KEPT_BYTES / (HEAD_BYTES + 1_000);
        (1..=fit as u64 + 2).for_each(|tick| acts.note(Tick(tick), &[act(tick, 1_000)]));
        let kept = numbers(acts.iter().cloned());
        assert_eq!((kept.len(), kept[0]), (fit, (3, 3)));
        let again: PastActions = acts.iter().cloned().collect();
        assert_eq!((again.bytes, numbers(again.kept)), (acts.bytes, kept));
    }
}
