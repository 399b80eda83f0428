//! Threads for regions and sessions.

use actix::{Arbiter, ArbiterHandle};

/// Threads beyond this many do not count for what a node can do.
const MOST: usize = 10_000;

/// How many threads a setting means; 0: one per core.
fn count(wanted: usize) -> usize {
    match wanted {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        wanted => wanted,
    }
}

/// The capacity of a node, 100 for a core; 0 in the configuration: a core for each of its threads.
pub(super) fn capacity(configured: u32, arbiters: usize) -> u32 {
    match configured {
        0 => 100 * count(arbiters).min(MOST) as u32,
        configured => configured,
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

    pub(super) fn handles(&self) -> Vec<ArbiterHandle> {
        self.0.iter().map(Arbiter::handle).collect()
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_can_do_what_its_threads_can_unless_the_configuration_says_otherwise() {
        assert_eq!((capacity(0, 3), capacity(250, 3)), (300, 250));
        assert_eq!(capacity(0, 0), 100 * count(0) as u32);
        assert_eq!(capacity(0, usize::MAX), 1_000_000);
    }
}
