//! Several threads for one tick, handed in from outside: the scene starts no thread.
//!
//! A tick cuts long loops into parts and gives them to the [`Workers`] of its region
//! ([`Region::set_workers`](super::Region::set_workers)) or of its world
//! ([`World::set_workers`](crate::interest::World::set_workers)). Parts are contiguous, and their results are
//! put together in order. So what a tick does depends neither on the number of threads nor on their
//! timing. *Must never happen here:* a part that writes what another part reads.

use std::fmt::Debug;

/// A part of the work of a tick.
pub type Task<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Runs the parts of a tick, at the same time where it can.
pub trait Workers: Debug + Send + Sync {
    /// Number of threads that may work at the same time, the calling one included; at least 1.
    fn threads(&self) -> usize;

    /// Runs all tasks, in any order and on any threads, and returns when all are done.
    fn run(&self, tasks: Vec<Task<'_>>);
}

/// The calling thread alone: the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneThread;

impl Workers for OneThread {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, tasks: Vec<Task<'_>>) {
        tasks.into_iter().for_each(|task| task());
    }
}

/// Parts for each thread: threads that are done early take over parts of slow ones.
const PARTS_PER_THREAD: usize = 4;

/// Fewest players of a part that is worth a thread, in each step of a region's tick: about 0.1 ms.
/// Regions with fewer than two such parts never share their ticks.
pub(crate) const LEAST_PLAYERS: usize = if cfg!(test) { 2 } else { 128 };

/// How many parts of `len` items there are to be, each of `least` items or more; 1: work on the calling
/// thread, without any preparation.
pub(crate) fn parts(workers: &dyn Workers, len: usize, least: usize) -> usize {
    match workers.threads() {
        0 | 1 => 1,
        threads => (threads * PARTS_PER_THREAD).min(len / least.max(1)).max(1),
    }
}

/// Cuts `items` into as many parts as there are `states`, and calls `work` for each part with its
/// state and the index of its first item.
pub(crate) fn share<T: Send, S: Send>(
    workers: &dyn Workers,
    items: &mut [T],
    states: &mut [S],
    work: impl Fn(&mut S, usize, &mut [T]) + Sync,
) {
    if let [state] = states {
        return work(state, 0, items);
    }
    let size = items.len().div_ceil(states.len().max(1)).max(1);
    let work = &work;
    let parts = items.chunks_mut(size).enumerate().zip(states);
    let task =
        |((part, chunk), state)| -> Task<'_> { Box::new(move || work(state, part * size, chunk)) };
    workers.run(parts.map(task).collect());
}

/// The same without items: `work` gets the range of indices of its part.
pub(crate) fn share_range<S: Send>(
    workers: &dyn Workers,
    len: usize,
    states: &mut [S],
    work: impl Fn(&mut S, std::ops::Range<usize>) + Sync,
) {
    let mut none = vec![(); len];
    share(workers, &mut none, states, |state, first, part| work(state, first..first + part.len()));
}

/// For tests: as many threads as it says, all of them the calling one; the last task comes first.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Backwards(pub usize);

#[cfg(test)]
impl Workers for Backwards {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, tasks: Vec<Task<'_>>) {
        tasks.into_iter().rev().for_each(|task| task());
    }
}

/// For tests: threads that live for one step.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Scoped(pub usize);

#[cfg(test)]
impl Workers for Scoped {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, tasks: Vec<Task<'_>>) {
        std::thread::scope(|scope| tasks.into_iter().for_each(|task| drop(scope.spawn(task))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once_whatever_the_order_of_the_parts() {
        for (len, states) in [(0, 3), (1, 3), (7, 1), (7, 3), (7, 7), (100, 8)] {
            let mut items: Vec<usize> = (0..len).collect();
            let mut found = vec![Vec::new(); states];
            share(&Backwards(8), &mut items, &mut found, |found, first, part| {
                for (at, item) in part.iter_mut().enumerate() {
                    assert_eq!(*item, first + at);
                    found.push(*item);
                    *item += 1_000;
                }
            });
            assert_eq!(found.concat(), (0..len).collect::<Vec<_>>());
            assert!(items.iter().all(|item| *item >= 1_000));
        }
    }

    #[test]
    fn small_work_and_one_thread_have_one_part() {
        assert_eq!(parts(&OneThread, 10_000, 10), 1);
        assert_eq!(parts(&Backwards(0), 10_000, 10), 1);
        assert_eq!(parts(&Backwards(2), 10_000, 10), 8);
        assert_eq!(parts(&Backwards(2), 35, 10), 3);
        assert_eq!(parts(&Backwards(2), 0, 10), 1);
    }
}
