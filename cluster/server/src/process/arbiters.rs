//! Threads for regions and sessions.

use actix::{Arbiter, ArbiterHandle};

/// How many threads a setting means; 0: one per core.
pub(super) fn count(wanted: usize) -> usize {
    match wanted {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        wanted => wanted,
    }
}

/// The threads of one process. They run until [`Arbiters::stop`].
#[derive(Debug)]
pub(super) struct Arbiters(Vec<Arbiter>);

impl Arbiters {
    /// So many threads; 0: one per core.
    pub(super) fn start(wanted: usize) -> Arbiters {
        Arbiters((0..count(wanted)).map(|_| Arbiter::new()).collect())
    }

    /// No thread of its own: regions and sessions run where they are started.
    pub(super) fn none() -> Arbiters {
        Arbiters(Vec::new())
    }

    /// Where work is given to them.
    pub(super) fn handles(&self) -> Vec<ArbiterHandle> {
        self.0.iter().map(Arbiter::handle).collect()
    }

    /// Stops all of them and waits for their ends.
    pub(super) fn stop(self) {
        for arbiter in &self.0 {
            arbiter.stop();
        }
        for arbiter in self.0 {
            if arbiter.join().is_err() {
                tracing::error!("a region thread ended in a panic");
            }
        }
    }
}
