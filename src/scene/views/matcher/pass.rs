//! The order of a pass: pairs and searches by ascending key.
//!
//! Most ranks are distances without a bond, in centimetres: those have a bucket each, which is
//! sorted when its turn comes. All others wait in a heap.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{LinkState, Pair};
use crate::scene::EntityId;
use crate::scene::prefetch;
use crate::scene::views::Key;

/// Ranks with a bucket of their own: up to 327 m.
const BUCKETS: usize = 1 << 15;

/// The end of a bucket.
const NONE: u32 = u32::MAX;

/// A pair that is due at its key. A pair of one player with itself stands for a search.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub key: Key,
    pub pair: Pair,
    pub link: LinkState,
}

impl Event {
    /// The player searches.
    pub fn is_search(&self) -> bool {
        self.pair.0 == self.pair.1
    }
}

/// An event in a bucket, and the next one there.
#[derive(Debug, Clone, Copy)]
struct Queued {
    pair: Pair,
    link: LinkState,
    next: u32,
}

/// Events in ascending order of their keys.
#[derive(Debug, Default)]
pub struct Pass {
    /// Rank of the first bucket.
    first: u64,
    /// The first event of each bucket.
    buckets: Vec<u32>,
    queued: Vec<Queued>,
    /// The bucket in hand.
    at: usize,
    /// The last bucket that has events.
    last: usize,
    /// The events of that bucket, the last ones first.
    due: Vec<Event>,
    /// Events whose ranks have no bucket.
    others: BinaryHeap<Reverse<Event>>,
}

impl Pass {
    /// Forgets all events. `first` is the least rank of a pair without a bond.
    pub fn begin(&mut self, first: u64) {
        self.first = first;
        // A pass leaves every bucket empty.
        self.buckets.resize(BUCKETS, NONE);
        self.queued.clear();
        (self.at, self.last) = (0, 0);
        self.due.clear();
        self.others.clear();
    }

    /// Adds a pair.
    #[inline]
    pub fn push(&mut self, key: Key, pair: Pair, link: LinkState) {
        match self.bucket_of(key.rank) {
            Some(bucket) if bucket == self.at && !self.due.is_empty() => {
                // The bucket in hand has been sorted.
                let event = Event { key, pair, link };
                let to = self.due.partition_point(|due| *due > event);
                self.due.insert(to, event);
            }
            Some(bucket) => {
                self.last = self.last.max(bucket);
                let next = std::mem::replace(&mut self.buckets[bucket], self.queued.len() as u32);
                self.queued.push(Queued { pair, link, next });
            }
            None => self.others.push(Reverse(Event { key, pair, link })),
        }
    }

    /// Adds a search that is due before the first pair of this rank.
    #[inline]
    pub fn push_search(&mut self, rank: u64, player: u32) {
        let key = Key::of(rank, EntityId(0), EntityId(0));
        self.push(key, (player, player), LinkState::No);
    }

    #[inline]
    fn bucket_of(&self, rank: u64) -> Option<usize> {
        let bucket = rank.checked_sub(self.first)?;
        (bucket >= self.at as u64 && bucket < BUCKETS as u64).then_some(bucket as usize)
    }

    /// The next event. `key_of` gives the key of a pair by its rank. Events that `is_hopeless` may
    /// be left out: it is asked when their bucket is opened.
    #[inline]
    pub fn pop(
        &mut self,
        key_of: impl Fn(u64, Pair) -> Key,
        is_hopeless: impl Fn(&Event) -> bool,
    ) -> Option<Event> {
        if self.due.is_empty() {
            self.open_next(key_of, is_hopeless);
        }
        let due = self.due.last();
        let other = self.others.peek();
        if due.is_some_and(|due| other.is_none_or(|Reverse(other)| due <= other)) {
            return self.due.pop();
        }
        self.others.pop().map(|Reverse(event)| event)
    }

    /// A pair that is due soon.
    #[inline]
    pub fn ahead(&self) -> Option<Pair> {
        let at = self.due.len().checked_sub(1 + prefetch::PLAYERS)?;
        Some(self.due[at].pair)
    }

    /// Sorts the next bucket that has events, unless one of the others is due before.
    fn open_next(
        &mut self,
        key_of: impl Fn(u64, Pair) -> Key,
        is_hopeless: impl Fn(&Event) -> bool,
    ) {
        let other = self.others.peek().map_or(u64::MAX, |Reverse(event)| event.key.rank);
        while self.at <= self.last && self.due.is_empty() {
            let rank = self.first + self.at as u64;
            if other < rank {
                return;
            }
            let mut next = std::mem::replace(&mut self.buckets[self.at], NONE);
            if next == NONE {
                self.at += 1;
                continue;
            }
            while next != NONE {
                let Queued { pair, link, next: after } = self.queued[next as usize];
                let key = match pair {
                    (a, b) if a == b => Key::of(rank, EntityId(0), EntityId(0)),
                    pair => key_of(rank, pair),
                };
                let event = Event { key, pair, link };
                if !is_hopeless(&event) {
                    self.due.push(event);
                }
                next = after;
            }
            self.due.sort_unstable_by(|a, b| b.cmp(a));
        }
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
        // A link that has lost its place comes before the same pair as a scan has found it: without a margin both have
        // the same key.
        let is_new = |event: &Event| event.link == LinkState::No;
        self.key.cmp(&other.key).then_with(|| is_new(self).cmp(&is_new(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_comes_before_the_same_pair_as_a_scan_has_found_it() {
        let key = Key::of(700, EntityId(7), EntityId(5));
        let found = ((7, 5), LinkState::No);
        let link = ((5, 7), LinkState::OneSided);
        for events in [[found, link], [link, found]] {
            let mut pass = Pass::default();
            pass.begin(0);
            events.into_iter().for_each(|(pair, link)| pass.push(key, pair, link));
            let first = pass.pop(|_, _| key, |_| false).map(|event| event.pair);
            assert_eq!(first, Some(link.0));
            // One that is evicted while the bucket is open.
            pass.push(key, (6, 7), LinkState::Yes);
            let next = pass.pop(|_, _| key, |_| false).map(|event| event.pair);
            assert_eq!(next, Some((6, 7)));
        }
    }
}
