//! The changes of a tick as events in order, part by part.
//!
//! A part has the changes of a range of keys. Several threads sort keys of a part by their leading
//! bits, each some of them. Then each thread sorts all keys of a range of leading bits, a *bin*, and
//! at last turns them into events: a bin has a place of its own among the events. The bins are of
//! about the same size. Most ticks have one part: with more, a tick needs eight bytes for each of its
//! changes, and those of a part for sorting.

use std::ops::Range;

use super::changes::{Change, Changes};
use super::ranks::Keys;
use super::{Event, radix};
use crate::scene::workers::{self, Workers};

/// Changes that are worth a thread: about 0.3 ms.
const LEAST: usize = if cfg!(test) { 2 } else { 8_000 };

/// Leading bits of keys that parts and bins tell apart.
const LEADING: u32 = 10;

/// Changes of a part, if there are not too many parts: each reads all changes.
const PART: usize = if cfg!(test) { 40 } else { 1 << 20 };
const PARTS: usize = 32;

/// Tells the changes of a tick. It keeps buffers, and what is not told yet.
#[derive(Debug, Clone, Default)]
pub struct Report {
    drafts: Vec<Draft>,
    bins: Vec<Bin>,
    /// Number of changes for each value of the leading bits.
    counts: Vec<usize>,
    /// The next part, as a range of leading values.
    next: usize,
    part_len: usize,
    /// What is told next of the part in hand: bin, and place in it.
    at: (usize, usize),
    left: usize,
}

/// Keys that one thread has sorted by their leading bits.
#[derive(Debug, Clone, Default)]
struct Draft {
    keys: Vec<u64>,
    spare: Vec<u64>,
    /// Where the keys of each leading value of the part end.
    ends: Vec<usize>,
}

/// Sorted keys.
#[derive(Debug, Clone, Default)]
struct Bin {
    keys: Vec<u64>,
    spare: Vec<u64>,
}

impl Report {
    /// Begins to tell changes.
    pub fn begin(&mut self, changes: &Changes) {
        self.drop_part();
        (self.left, self.next) = (changes.len(), 0);
        self.part_len = PART.max(self.left / PARTS);
        self.counts.clear();
    }

    /// Changes that are not told.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Tells as many of the next changes as there is room for, which must not be more than are left.
    pub fn tell(
        &mut self,
        (keys, changes): (Keys, &Changes),
        workers: &dyn Workers,
        mut room: &mut [Event],
    ) {
        self.left -= room.len();
        while !room.is_empty() {
            if self.at.0 >= self.bins.len() {
                self.sort_next(keys, changes, workers);
            }
            room = self.tell_bins(keys, workers, room);
        }
        if self.left == 0 {
            self.drop_part();
        }
    }

    /// Tells what is sorted, and returns the room that is left.
    fn tell_bins<'a>(
        &mut self,
        keys: Keys,
        workers: &dyn Workers,
        mut room: &'a mut [Event],
    ) -> &'a mut [Event] {
        let mut pieces = Vec::new();
        let all = room.len();
        while let Some(bin) = self.bins.get(self.at.0)
            && !room.is_empty()
        {
            let rest = &bin.keys[self.at.1..];
            let (piece, behind) = room.split_at_mut(rest.len().min(room.len()));
            room = behind;
            self.at = match piece.len() == rest.len() {
                true => (self.at.0 + 1, 0),
                false => (self.at.0, self.at.1 + piece.len()),
            };
            pieces.push((piece, rest));
        }
        let parts = workers::parts(workers, all - room.len(), LEAST).min(pieces.len().max(1));
        workers::share(workers, &mut pieces, &mut vec![(); parts], |(), _, pieces| {
            for (events, sorted) in pieces {
                let told = sorted.iter().map(|key| keys.event(*key));
                events.iter_mut().zip(told).for_each(|(event, told)| *event = told);
            }
        });
        room
    }

    /// Forgets a part that was told, and keeps memory for one more.
    fn drop_part(&mut self) {
        let of_drafts = self.drafts.iter_mut().flat_map(|one| [&mut one.keys, &mut one.spare]);
        let of_bins = self.bins.iter_mut().flat_map(|one| [&mut one.keys, &mut one.spare]);
        // What is empty was told before, and has memory for as much again.
        for buffer in of_drafts.chain(of_bins).filter(|buffer| !buffer.is_empty()) {
            super::clear(buffer);
            buffer.shrink_to(PART);
        }
        self.at = (self.bins.len(), 0);
    }

    /// Sorts the next part.
    fn sort_next(&mut self, keys: Keys, changes: &Changes, workers: &dyn Workers) {
        let (values, len) = self.next_part(keys, changes, workers);
        self.at = (0, 0);
        let parts = workers::parts(workers, len, LEAST);
        self.bins.resize_with(parts, Bin::default);
        if let [bin] = &mut self.bins[..] {
            let is_in = |key: &u64| values.contains(&((key >> shift(keys)) as usize));
            bin.keys.clear();
            bin.keys.reserve(len);
            bin.keys.extend(changes.iter().map(|change| keys.of(change)).filter(is_in));
            return radix::sort(&mut bin.keys, &mut bin.spare, keys.bits());
        }
        self.drafts.resize_with(parts, Draft::default);
        self.drafts.iter_mut().for_each(|draft| draft.begin(values.len()));
        let chunks = changes.chunks();
        workers::share_range(workers, changes.len(), &mut self.drafts, |draft, range| {
            draft.fill(keys, slice(&chunks, range), &values);
        });
        let bounds = bounds(&self.drafts, values.len(), parts);
        let (drafts, mut numbers) = (&self.drafts, vec![(); parts]);
        workers::share(workers, &mut numbers, &mut self.bins, |bin, at, _| {
            bin.keys.clear();
            for draft in drafts {
                let sorted = draft.range(bounds[at]..bounds[at + 1]);
                bin.keys.extend_from_slice(&draft.keys[sorted]);
            }
            radix::sort(&mut bin.keys, &mut bin.spare, keys.bits());
        });
        if len < changes.len() {
            self.drafts.clear();
        }
    }

    /// The leading values of the next part, and the number of its changes.
    fn next_part(
        &mut self,
        keys: Keys,
        changes: &Changes,
        workers: &dyn Workers,
    ) -> (Range<usize>, usize) {
        let all = changes.len();
        if all <= self.part_len {
            return (0..1 << LEADING, all);
        }
        if self.counts.is_empty() {
            self.counts = count(keys, changes, workers);
        }
        let (from, mut len) = (self.next, 0);
        while let Some(count) = self.counts.get(self.next)
            && (len == 0 || len + count <= self.part_len)
        {
            len += count;
            self.next += 1;
        }
        (from..self.next, len)
    }
}

impl Draft {
    /// Forgets all keys; the part has so many leading values.
    fn begin(&mut self, values: usize) {
        self.keys.clear();
        self.spare.clear();
        self.ends.clear();
        self.ends.resize(values, 0);
    }

    /// Sorts the keys of changes that have these leading values.
    fn fill(&mut self, keys: Keys, changes: impl Iterator<Item = Change>, values: &Range<usize>) {
        let Draft { keys: sorted, spare, ends } = self;
        let value = |key: u64| (key >> shift(keys)) as usize;
        for key in changes.map(|change| keys.of(change)) {
            if values.contains(&value(key)) {
                ends[value(key) - values.start] += 1;
                spare.push(key);
            }
        }
        let mut start = 0;
        for count in ends.iter_mut() {
            start += std::mem::replace(count, start);
        }
        sorted.resize(spare.len(), 0);
        for key in spare.iter() {
            // What begins as the start of a value ends as its end.
            let next = &mut ends[value(*key) - values.start];
            sorted[*next] = *key;
            *next += 1;
        }
        if values.len() < 1 << LEADING {
            // Of a large outcome nothing is kept that is not needed.
            *spare = Vec::new();
        }
    }

    /// Where the keys of a range of the part's values are.
    fn range(&self, values: Range<usize>) -> Range<usize> {
        let end = |count: usize| count.checked_sub(1).map_or(0, |last| self.ends[last]);
        end(values.start)..end(values.end)
    }
}

/// Number of changes for each value of the leading bits.
fn count(keys: Keys, changes: &Changes, workers: &dyn Workers) -> Vec<usize> {
    let parts = workers::parts(workers, changes.len(), LEAST);
    let mut counts = vec![vec![0; 1 << LEADING]; parts];
    let chunks = changes.chunks();
    workers::share_range(workers, changes.len(), &mut counts, |counts, range| {
        slice(&chunks, range).for_each(|one| counts[(keys.of(one) >> shift(keys)) as usize] += 1);
    });
    let sum = |value: usize| counts.iter().map(|counts| counts[value]).sum();
    (0..1 << LEADING).map(sum).collect()
}

/// Where the values of each bin begin, and where those of the last one end.
fn bounds(drafts: &[Draft], values: usize, bins: usize) -> Vec<usize> {
    let before = |value: usize| drafts.iter().map(|draft| draft.range(0..value).end).sum::<usize>();
    let starts: Vec<usize> = (0..=values).map(before).collect();
    let all = before(values);
    let first = |bin: usize| starts.partition_point(|start| *start < bin * all / bins);
    (0..bins).map(first).chain([values]).collect()
}

/// A range of the changes of several chunks.
fn slice<'a>(chunks: &'a [&[Change]], range: Range<usize>) -> impl Iterator<Item = Change> + 'a {
    let mut start = 0;
    chunks.iter().flat_map(move |chunk| {
        let from = range.start.saturating_sub(start).min(chunk.len());
        let to = range.end.saturating_sub(start).min(chunk.len());
        start += chunk.len();
        chunk[from..to].iter().copied()
    })
}

fn shift(keys: Keys) -> u32 {
    keys.bits().saturating_sub(LEADING)
}

#[cfg(test)]
mod tests {
    use super::super::changes::{Found, Room};
    use super::super::ranks::Ranks;
    use super::*;
    use crate::interest::tests::Rng;
    use crate::scene::workers::{Backwards, OneThread};

    /// Changes of `n` entities, most of them of a few.
    fn changes(rng: &mut Rng, n: u64, len: usize) -> Changes {
        let few = (n / 9).max(1);
        let slot = |rng: &mut Rng| {
            let most = if rng.next().is_multiple_of(3) { n } else { few };
            (rng.next() % most) as u32
        };
        let room = Room::new(usize::MAX);
        let mut found = Found::new(&room);
        for _ in 0..len {
            let (observer, subject) = (slot(rng), slot(rng));
            found.push(Change::new(observer, subject, rng.next().is_multiple_of(2)));
        }
        let mut changes = Changes::default();
        changes.add(found);
        changes
    }

    #[test]
    fn events_are_sorted_alike_on_any_number_of_threads_and_in_any_parts() {
        let mut rng = Rng(11);
        let mut reports = [Report::default(), Report::default(), Report::default()];
        for (n, len) in [(1, 3), (2, 40), (300, 0), (300, 900), (70_000, 5_000), (300, 1)] {
            let mut ranks = Ranks::default();
            let ids: Vec<u64> = (0..n).map(|_| rng.next()).collect();
            ids.iter().enumerate().for_each(|(slot, id)| ranks.add(*id, slot as u32));
            ranks.update(ids.len(), |id, slot| ids[slot as usize] == id);
            let changes = changes(&mut rng, n, len);
            let id = |slot: u32| ids[slot as usize];
            let of = |c: Change| (id(c.observer()), id(c.subject()), c.appears());
            let mut want: Vec<_> = changes.iter().map(of).collect();
            want.sort_unstable();
            let threads: [&dyn Workers; 3] = [&OneThread, &Backwards(2), &Backwards(16)];
            for (report, workers) in reports.iter_mut().zip(threads) {
                let none = Event { observer: 0, subject: 0, appears: false };
                let mut events = vec![none; len];
                report.begin(&changes);
                while report.left() > 0 {
                    let (from, most) = (len - report.left(), 1 + rng.below(70) as usize);
                    let room = &mut events[from..(from + most).min(len)];
                    report.tell((ranks.keys(), &changes), workers, room);
                }
                let got: Vec<_> =
                    events.iter().map(|e| (e.observer, e.subject, e.appears)).collect();
                assert_eq!(got, want, "{n} entities, {len} changes");
            }
        }
    }
}
