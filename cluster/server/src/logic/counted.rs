//! Which batch of each worker a region has counted last: a worker that begins a lease again learns from it which of its
//! batches were not counted, and never will be.

use std::collections::BTreeMap;

use purview::scene::{Epoch, Tick};

/// A batch: the epoch and the number of its lease, and the tick that it has handled.
pub type Name = (Epoch, u64, Tick);

/// Most workers of which it is known; those with the lowest numbers, which are the oldest ones, give way.
const MOST: usize = 64;

/// The last batch of each worker.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counted(BTreeMap<u64, Name>);

impl Counted {
    /// A batch of a worker counts.
    pub fn set(&mut self, worker: u64, batch: Name) {
        self.0.insert(worker, batch);
        if self.0.len() > MOST {
            self.0.pop_first();
        }
    }

    /// The last batch of a worker; all zero: there was none.
    pub fn of(&self, worker: u64) -> Name {
        self.0.get(&worker).copied().unwrap_or((Epoch(0), 0, Tick(0)))
    }

    /// As numbers, to be sent along with the region.
    pub fn to_numbers(&self) -> Vec<u64> {
        let all = self.0.iter();
        all.flat_map(|(worker, (epoch, lease, tick))| [*worker, epoch.0, *lease, tick.0]).collect()
    }

    /// As it was elsewhere.
    pub fn from_numbers(numbers: &[u64]) -> Counted {
        let mut counted = Counted::default();
        for numbers in numbers.chunks_exact(4) {
            counted.set(numbers[0], (Epoch(numbers[1]), numbers[2], Tick(numbers[3])));
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_batch_of_each_worker_goes_along_with_a_region() {
        let mut counted = Counted::default();
        assert_eq!(counted.of(5), (Epoch(0), 0, Tick(0)));
        for tick in 1..4 {
            counted.set(5, (Epoch(7), 1, Tick(tick)));
            counted.set(6, (Epoch(7), 2, Tick(10 * tick)));
        }
        let elsewhere = Counted::from_numbers(&counted.to_numbers());
        assert_eq!(elsewhere, counted);
        assert_eq!(elsewhere.of(6), (Epoch(7), 2, Tick(30)));
        (0..200).for_each(|worker| counted.set(worker, (Epoch(8), 1, Tick(1))));
        assert_eq!(counted.to_numbers().len(), 4 * MOST);
    }
}
