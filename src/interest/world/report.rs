//! The changes of a tick as events in order, part by part.
//!
//! A part has the changes of a range of keys. Several threads put the keys of a part into bins by
//! their leading bits; then each sorts bins. The bins are of about the same size. Most ticks have one
//! part: with more, a tick needs eight bytes for each of its changes, and those of a part for
//! sorting.

use std::ops::Range;

use super::changes::{Change, Changes};
use super::ranks::Keys;
use super::{Event, radix};
use crate::scene::workers::{self, Workers};

/// Changes that are worth a thread, which is started twice.
const LEAST: usize = if cfg!(test) { 2 } else { 25_000 };

/// Leading bits of keys that parts and bins tell apart.
const LEADING: u32 = 10;

/// Changes of a part, if there are not too many parts: each reads all changes.
const PART: usize = if cfg!(test) { 40 } else { 1 << 20 };
const PARTS: usize = 32;

/// Tells the changes of a tick. It keeps buffers, and what is not told yet.
#[derive(Debug, Clone, Default)]
pub struct Report {
    bins: Vec<Vec<Vec<u64>>>,
    sorters: Vec<Sorter>,
    /// Number of changes for each value of the leading bits.
    counts: Vec<usize>,
    /// The next part, as a range of leading values.
    next: usize,
    part_len: usize,
    /// What is told next of the part in hand: sorter, and place in it.
    at: (usize, usize),
    left: usize,
}

#[derive(Debug, Clone, Default)]
struct Sorter {
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

    fn count(&mut self, keys: Keys, changes: &Changes) {
        self.counts.resize(1 << LEADING, 0);
        let shift = shift(keys);
        changes.iter().for_each(|change| self.counts[(keys.of(change) >> shift) as usize] += 1);
    }

    /// Changes that are not told.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Tells the next changes, at most so many.
    pub fn tell(
        &mut self,
        (keys, changes): (Keys, &Changes),
        workers: &dyn Workers,
        most: usize,
        events: &mut Vec<Event>,
    ) {
        let mut room = most.min(self.left);
        self.left -= room;
        events.reserve(room);
        while room > 0 {
            let Some(sorter) = self.sorters.get(self.at.0) else {
                self.sort_next(keys, changes, workers);
                continue;
            };
            let rest = &sorter.keys[self.at.1..];
            let some = &rest[..rest.len().min(room)];
            events.extend(some.iter().map(|key| keys.event(*key)));
            room -= some.len();
            self.at = if some.len() < rest.len() {
                (self.at.0, self.at.1 + some.len())
            } else {
                (self.at.0 + 1, 0)
            };
        }
        if self.left == 0 {
            self.drop_part();
        }
    }

    /// Forgets a part that was told, and keeps memory for one more.
    fn drop_part(&mut self) {
        for Sorter { keys, spare } in &mut self.sorters {
            for buffer in [keys, spare] {
                super::clear(buffer);
                buffer.shrink_to(PART);
            }
        }
        self.bins.clear();
        self.at = (self.sorters.len(), 0);
    }

    /// Sorts the next part.
    fn sort_next(&mut self, keys: Keys, changes: &Changes, workers: &dyn Workers) {
        let all = changes.len();
        if all <= self.part_len && workers::parts(workers, all, LEAST) == 1 {
            return self.sort_all(keys, changes);
        }
        if self.counts.is_empty() {
            self.count(keys, changes);
        }
        let from = self.next;
        let mut len = 0;
        while let Some(count) = self.counts.get(self.next)
            && (len == 0 || len + count <= self.part_len)
        {
            len += count;
            self.next += 1;
        }
        let parts = workers::parts(workers, len, LEAST);
        self.sorters.resize_with(parts, Sorter::default);
        self.sorters.iter_mut().for_each(|sorter| sorter.keys.clear());
        self.at = (0, 0);
        let values = from..self.next;
        if let [sorter] = &mut self.sorters[..] {
            let is_in = |key: &u64| values.contains(&((key >> shift(keys)) as usize));
            sorter.keys.reserve(len);
            sorter.keys.extend(changes.iter().map(|change| keys.of(change)).filter(is_in));
            return radix::sort(&mut sorter.keys, &mut sorter.spare, keys.bits());
        }
        self.fill_bins(keys, changes, values, len, workers);
        let (bins, mut numbers) = (&self.bins, vec![(); parts]);
        workers::share(workers, &mut numbers, &mut self.sorters, |sorter, bin, _| {
            bins.iter().for_each(|of| sorter.keys.extend_from_slice(&of[bin]));
            radix::sort(&mut sorter.keys, &mut sorter.spare, keys.bits());
        });
        self.bins.clear();
    }

    /// Sorts all changes at once, on this thread.
    fn sort_all(&mut self, keys: Keys, changes: &Changes) {
        self.sorters.resize_with(1, Sorter::default);
        self.at = (0, 0);
        let Sorter { keys: sorted, spare } = &mut self.sorters[0];
        sorted.clear();
        sorted.reserve(changes.len());
        sorted.extend(changes.iter().map(|change| keys.of(change)));
        radix::sort(sorted, spare, keys.bits());
    }

    /// Puts the keys of a part into as many bins as there are sorters.
    fn fill_bins(
        &mut self,
        keys: Keys,
        changes: &Changes,
        values: Range<usize>,
        len: usize,
        workers: &dyn Workers,
    ) {
        let (shift, count) = (shift(keys), self.sorters.len());
        let bin_of = bins(&self.counts, values, (len, count));
        self.bins.resize_with(count, || vec![Vec::new(); count]);
        let chunks = changes.chunks();
        workers::share_range(workers, changes.len(), &mut self.bins, |bins, range| {
            for change in slice(&chunks, range) {
                let key = keys.of(change);
                if let Some(bin) = bin_of[(key >> shift) as usize] {
                    bins[usize::from(bin)].push(key);
                }
            }
        });
    }
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

/// The bin of each value of the leading bits that is in the part.
fn bins(counts: &[usize], values: Range<usize>, (all, count): (usize, usize)) -> Vec<Option<u16>> {
    let mut before = 0;
    let mut bin = |(value, here): (usize, &usize)| {
        values.contains(&value).then(|| {
            let bin = before * count / all.max(1);
            before += here;
            bin.min(count - 1) as u16
        })
    };
    counts.iter().enumerate().map(&mut bin).collect()
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
                let mut events = Vec::new();
                report.begin(&changes);
                while report.left() > 0 {
                    let most = 1 + rng.below(70) as usize;
                    report.tell((ranks.keys(), &changes), workers, most, &mut events);
                }
                let got: Vec<_> =
                    events.iter().map(|e| (e.observer, e.subject, e.appears)).collect();
                assert_eq!(got, want, "{n} entities, {len} changes");
            }
        }
    }
}
