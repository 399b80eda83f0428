//! The changes of a tick as events in order.
//!
//! Several threads put the keys of changes into bins by their leading bits, each a part of the
//! changes; then each sorts bins. The bins are chosen by a sample, so that they are of about the same
//! size.

use super::ranks::Keys;
use super::{Change, Event, radix};
use crate::scene::workers::{self, Workers};

/// Changes that are worth a thread, which is started twice.
const LEAST: usize = if cfg!(test) { 2 } else { 25_000 };

/// Leading bits of keys that bins tell apart.
const LEADING: u32 = 10;

/// One change of so many is in the sample.
const SAMPLE: usize = 16;

const BLANK: Event = Event { observer: 0, subject: 0, appears: false };

/// Sorts events. It keeps buffers alone.
#[derive(Debug, Clone, Default)]
pub struct Report {
    parts: Vec<Vec<Vec<u64>>>,
    sorters: Vec<Sorter>,
}

#[derive(Debug, Clone, Default)]
struct Sorter {
    keys: Vec<u64>,
    spare: Vec<u64>,
}

impl Report {
    /// Makes `events` the changes, sorted.
    pub fn sort(
        &mut self,
        keys: Keys,
        changes: &[Change],
        workers: &dyn Workers,
        events: &mut Vec<Event>,
    ) {
        let parts = workers::parts(workers, changes.len(), LEAST);
        self.sorters.resize_with(parts, Sorter::default);
        // What they were is overwritten.
        events.truncate(changes.len());
        events.shrink_to(4 * changes.len() + 1_024);
        events.resize(changes.len(), BLANK);
        if let [sorter] = &mut self.sorters[..] {
            super::clear(&mut sorter.keys);
            sorter.keys.extend(changes.iter().map(|change| keys.of(change)));
            return sorter.sort(keys, events);
        }
        let sizes = self.fill_bins(keys, changes, workers);
        let mut rest = &mut events[..];
        let mut slices: Vec<_> =
            sizes.into_iter().filter_map(|size| rest.split_off_mut(..size)).collect();
        let parts = &self.parts;
        workers::share(workers, &mut slices, &mut self.sorters, |sorter, first, slices| {
            for (bin, events) in (first..).zip(slices) {
                super::clear(&mut sorter.keys);
                parts.iter().for_each(|bins| sorter.keys.extend_from_slice(&bins[bin]));
                sorter.sort(keys, events);
            }
        });
    }

    /// Puts the keys of all changes into as many bins as there are sorters. Returns the sizes of the
    /// bins.
    fn fill_bins(&mut self, keys: Keys, changes: &[Change], workers: &dyn Workers) -> Vec<usize> {
        let count = self.sorters.len();
        let shift = keys.bits().saturating_sub(LEADING);
        let bins = bins(keys, changes, (shift, count));
        self.parts.resize_with(count, Vec::new);
        for part in &mut self.parts {
            // The last ones may get no changes.
            part.resize_with(count, Vec::new);
            part.iter_mut().for_each(super::clear);
        }
        workers::share_range(workers, changes.len(), &mut self.parts, |part, range| {
            for change in &changes[range] {
                let key = keys.of(change);
                part[usize::from(bins[(key >> shift) as usize])].push(key);
            }
        });
        (0..count).map(|bin| self.parts.iter().map(|bins| bins[bin].len()).sum()).collect()
    }
}

impl Sorter {
    fn sort(&mut self, keys: Keys, events: &mut [Event]) {
        radix::sort(&mut self.keys, &mut self.spare, keys.bits());
        for (event, key) in events.iter_mut().zip(&self.keys) {
            *event = keys.event(*key);
        }
    }
}

/// The bin of each value of the leading bits.
fn bins(keys: Keys, changes: &[Change], (shift, count): (u32, usize)) -> Vec<u16> {
    let mut counts = vec![0_usize; 1 << LEADING];
    let sample = changes.iter().step_by(SAMPLE);
    let all = sample.len().max(1);
    sample.for_each(|change| counts[(keys.of(change) >> shift) as usize] += 1);
    let mut before = 0;
    let bin = |here: usize| {
        let bin = before * count / all;
        before += here;
        bin.min(count - 1) as u16
    };
    counts.into_iter().map(bin).collect()
}

#[cfg(test)]
mod tests {
    use super::super::ranks::Ranks;
    use super::*;
    use crate::interest::tests::Rng;
    use crate::scene::workers::{Backwards, OneThread};

    /// Changes of `n` entities, most of them of a few.
    fn changes(rng: &mut Rng, n: u64, len: usize) -> Vec<Change> {
        let few = (n / 9).max(1);
        let slot = |rng: &mut Rng| {
            let most = if rng.next().is_multiple_of(3) { n } else { few };
            (rng.next() % most) as u32
        };
        let appears = |rng: &mut Rng| rng.next().is_multiple_of(2);
        (0..len)
            .map(|_| Change { observer: slot(rng), subject: slot(rng), appears: appears(rng) })
            .collect()
    }

    #[test]
    fn events_are_sorted_alike_on_any_number_of_threads() {
        let mut rng = Rng(11);
        let mut reports = [Report::default(), Report::default(), Report::default()];
        for (n, len) in [(1, 3), (2, 40), (300, 0), (300, 900), (70_000, 5_000), (300, 1)] {
            let mut ranks = Ranks::default();
            let ids: Vec<u64> = (0..n).map(|_| rng.next()).collect();
            ids.iter().enumerate().for_each(|(slot, id)| ranks.add(*id, slot as u32));
            ranks.update(ids.len(), |id, slot| ids[slot as usize] == id);
            let changes = changes(&mut rng, n, len);
            let id = |slot: u32| ids[slot as usize];
            let of = |c: &Change| (id(c.observer), id(c.subject), c.appears);
            let mut want: Vec<_> = changes.iter().map(of).collect();
            want.sort_unstable();
            let threads: [&dyn Workers; 3] = [&OneThread, &Backwards(2), &Backwards(16)];
            for (report, workers) in reports.iter_mut().zip(threads) {
                let mut events = vec![BLANK; 70];
                report.sort(ranks.keys(), &changes, workers, &mut events);
                let got: Vec<_> =
                    events.iter().map(|e| (e.observer, e.subject, e.appears)).collect();
                assert_eq!(got, want, "{n} entities, {len} changes");
            }
        }
    }
}
