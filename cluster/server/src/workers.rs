//! The pool of threads that help with long ticks of regions, and of scenes of the interest service.
//! All ticks of a process share it. A tick that finds no thread free works alone, and waits for
//! none. Threads without work sleep; there are none until the first tick enters the pool.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use parking_lot::Mutex;
use purview::scene::workers::{Task, Workers};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use tracing::warn;

/// At most so many threads in the shared steps of all ticks, the calling threads included.
#[derive(Debug)]
pub struct TickThreads {
    threads: usize,
    free: AtomicUsize,
    /// One thread fewer than may work; `None`: the system has no threads to give.
    pool: OnceLock<Option<ThreadPool>>,
}

impl TickThreads {
    /// `threads` at the same time, the calling ones included; 0: one per core.
    pub fn new(threads: usize) -> TickThreads {
        let threads = match threads {
            0 => available_parallelism().map_or(1, |cores| cores.get()),
            threads => threads,
        };
        TickThreads { threads, free: AtomicUsize::new(threads), pool: OnceLock::new() }
    }

    pub fn shared(threads: usize) -> Arc<dyn Workers> {
        Arc::new(TickThreads::new(threads))
    }

    /// Whether a tick has entered the pool.
    pub fn is_started(&self) -> bool {
        self.pool.get().is_some()
    }

    /// Reserves the calling thread and helpers, `most` in all. Without a free thread the calling one
    /// works alone.
    fn reserve(&self, most: usize) -> Reserved<'_> {
        let rest = |free: usize| Some(free - free.min(most));
        let before = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        Reserved { of: self, threads: before.unwrap_or(0).min(most) }
    }

    fn pool(&self) -> Option<&ThreadPool> {
        let start = || {
            let name = |thread| format!("tick-{thread}");
            let pool = ThreadPoolBuilder::new().num_threads(self.threads - 1).thread_name(name);
            pool.build()
                .inspect_err(|error| {
                    warn!(%error, "no threads for long ticks: each tick uses one thread");
                })
                .ok()
        };
        self.pool.get_or_init(start).as_ref()
    }
}

/// Threads of one step; they are free again when it is over, even if it panics.
struct Reserved<'a> {
    of: &'a TickThreads,
    threads: usize,
}

impl Reserved<'_> {
    fn helpers(&self) -> usize {
        self.threads.saturating_sub(1)
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.of.free.fetch_add(self.threads, Ordering::Relaxed);
    }
}

impl Workers for TickThreads {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, tasks: Vec<Task<'_>>) {
        let reserved = self.reserve(tasks.len());
        let pool = if reserved.helpers() > 0 { self.pool() } else { None };
        let Some(pool) = pool else {
            return tasks.into_iter().for_each(|task| task());
        };
        let tasks = Mutex::new(tasks.into_iter());
        let next = || tasks.lock().next();
        let work = || {
            while let Some(task) = next() {
                task();
            }
        };
        pool.in_place_scope(|scope| {
            for _ in 0..reserved.helpers() {
                scope.spawn(|_| work());
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
            assert_eq!(workers.free.into_inner(), workers.threads);
        }
    }

    #[test]
    fn one_thread_or_one_task_starts_no_pool() {
        let done = AtomicU64::new(0);
        let (one, three) = (TickThreads::new(1), TickThreads::new(3));
        one.run(tasks(5, &done));
        three.run(tasks(1, &done));
        assert_eq!([one.is_started(), three.is_started()], [false; 2]);
        three.run(tasks(2, &done));
        assert!(three.is_started());
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
        let workers = TickThreads::new(2);
        for _ in 0..3 {
            workers.run(vec![task(), task()]);
        }
    }

    #[test]
    fn a_region_whose_helpers_are_taken_works_alone() {
        let workers = TickThreads::new(3);
        let taken = workers.reserve(9);
        assert_eq!((taken.threads, taken.helpers()), (3, 2));
        let done = AtomicU64::new(0);
        workers.run(tasks(3, &done));
        assert_eq!(done.into_inner(), 1 + (1 << 8) + (1 << 16));
        assert!(!workers.is_started());
        drop(taken);
        assert_eq!(workers.reserve(1).helpers(), 0);
        assert_eq!(workers.free.into_inner(), 3);
    }

    /// The panic of a task reaches the caller, whichever thread it is on, and costs no thread.
    #[test]
    fn a_task_that_panics_leaves_the_pool_as_it_was() {
        let workers = TickThreads::new(2);
        let tasks = || -> Vec<Task<'_>> { vec![Box::new(|| panic!("a bug")), Box::new(|| ())] };
        let run = std::panic::AssertUnwindSafe(|| workers.run(tasks()));
        assert!(std::panic::catch_unwind(run).is_err());
        assert_eq!(workers.reserve(2).helpers(), 1);
    }
}
