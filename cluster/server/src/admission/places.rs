//! The connections of each source, and which source gives way when one must: the one with most
//! waiting connections, and of several such the one whose connection has waited longest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::source::Source;

#[derive(Debug, Default)]
pub(super) struct SourceConnections {
    pub(super) connections: u32,
    /// The numbers of the waiting ones, oldest first.
    waiting: BTreeSet<u64>,
}

impl SourceConnections {
    /// The source's place in the order of those that give way.
    fn rank(&self, source: Source) -> Option<Rank> {
        let oldest = *self.waiting.first()?;
        Some((self.waiting.len(), Reverse(oldest), source))
    }
}

type Rank = (usize, Reverse<u64>, Source);

#[derive(Debug, Default)]
pub(super) struct Places {
    of: BTreeMap<Source, SourceConnections>,
    /// The sources with waiting connections; the last one gives way.
    ranks: BTreeSet<Rank>,
}

impl Places {
    pub(super) fn connections(&self, source: Source) -> u32 {
        self.of.get(&source).map_or(0, |held| held.connections)
    }

    pub(super) fn waiting(&self, source: Source) -> usize {
        self.of.get(&source).map_or(0, |held| held.waiting.len())
    }

    /// The connection of this source that has waited longest.
    pub(super) fn oldest(&self, source: Source) -> Option<u64> {
        self.of.get(&source)?.waiting.first().copied()
    }

    pub(super) fn oldest_of_most(&self) -> Option<u64> {
        self.ranks.last().map(|(_, Reverse(oldest), _)| *oldest)
    }

    pub(super) fn add(&mut self, source: Source, number: u64) {
        self.change(source, |held| {
            held.connections += 1;
            held.waiting.insert(number);
        });
    }

    pub(super) fn stop_waiting(&mut self, source: Source, number: u64) {
        self.change(source, |held| {
            held.waiting.remove(&number);
        });
    }

    pub(super) fn remove(&mut self, source: Source, number: u64) {
        self.change(source, |held| {
            held.waiting.remove(&number);
            held.connections -= 1;
        });
    }

    fn change(&mut self, source: Source, change: impl FnOnce(&mut SourceConnections)) {
        let held = self.of.entry(source).or_default();
        let before = held.rank(source);
        change(held);
        let (after, is_empty) = (held.rank(source), held.connections == 0);
        if before != after {
            if let Some(rank) = before {
                self.ranks.remove(&rank);
            }
            self.ranks.extend(after);
        }
        if is_empty {
            self.of.remove(&source);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty() && self.ranks.is_empty()
    }
}
