//! Threads that help with the ticks of regions, and of scenes of the interest service. All ticks of
//! a process share them: one that finds none free is done alone, and waits for no other one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, scope};

use parking_lot::Mutex;
use purview::scene::workers::{Task, Workers};

/// At most so many threads for one tick, and as many helpers for all ticks at the same time.
///
/// A helper lives for one step of a tick. A short step is not worth starting
/// one: the scene shares none that has few players.
#[derive(Debug)]
pub struct TickThreads {
    threads: usize,
    /// Helpers that may be started.
    free: AtomicUsize,
}

impl TickThreads {
    /// `threads` for one tick, the calling one included; 0 counts as 1.
    pub fn new(threads: usize) -> TickThreads {
        let threads = threads.max(1);
        TickThreads { threads, free: AtomicUsize::new(threads - 1) }
    }

    /// The same, to be shared.
    pub fn shared(threads: usize) -> Arc<dyn Workers> {
        Arc::new(TickThreads::new(threads))
    }

    /// Reserves up to `most` helpers.
    fn reserve(&self, most: usize) -> Reserved<'_> {
        let rest = |free: usize| Some(free - free.min(most));
        let before = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        Reserved { of: self, helpers: before.unwrap_or(0).min(most) }
    }
}

/// Helpers of one step; they are free again when it is over, even if it panics.
struct Reserved<'a> {
    of: &'a TickThreads,
    helpers: usize,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.of.free.fetch_add(self.helpers, Ordering::Relaxed);
    }
}

impl Workers for TickThreads {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, tasks: Vec<Task<'_>>) {
        let reserved = self.reserve(tasks.len().saturating_sub(1));
        let tasks = Mutex::new(tasks.into_iter());
        let next = || tasks.lock().next();
        let work = || {
            while let Some(task) = next() {
                task();
            }
        };
        scope(|scope| {
            for _ in 0..reserved.helpers {
                let helper = Builder::new().name("tick".into());
                if helper.spawn_scoped(scope, work).is_err() {
                    // The system has no thread to give: those that run do everything.
                    break;
                }
            }
            work();
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn tasks<'a>(count: u64, done: &'a AtomicU64) -> Vec<Task<'a>> {
        let task = |i: u64| -> Task<'a> {
            Box::new(move || {
                done.fetch_add(1 << (8 * i), Ordering::Relaxed);
            })
        };
        (0..count).map(task).collect()
    }

    #[test]
    fn every_task_runs_once_whatever_the_number_of_threads() {
        for threads in [0, 1, 2, 3, 8] {
            let workers = TickThreads::new(threads);
            for count in [0, 1, 5] {
                let done = AtomicU64::new(0);
                workers.run(tasks(count, &done));
                let want: u64 = (0..count).map(|i| 1 << (8 * i)).sum();
                assert_eq!(done.into_inner(), want);
            }
            assert_eq!(workers.free.into_inner(), threads.max(1) - 1);
        }
    }

    /// Each task waits for the other: one thread would wait for ever.
    #[test]
    fn tasks_run_at_the_same_time() {
        let together = Barrier::new(2);
        let task = || -> Task<'_> {
            Box::new(|| {
                together.wait();
            })
        };
        TickThreads::new(2).run(vec![task(), task()]);
    }

    #[test]
    fn a_region_whose_helpers_are_taken_works_alone() {
        let workers = TickThreads::new(3);
        let taken = workers.reserve(9);
        assert_eq!(taken.helpers, 2);
        let done = AtomicU64::new(0);
        workers.run(tasks(3, &done));
        assert_eq!(done.into_inner(), 1 + (1 << 8) + (1 << 16));
        drop(taken);
        assert_eq!(workers.reserve(1).helpers, 1);
        assert_eq!(workers.free.into_inner(), 2);
    }
}
