//! What operators are told of a worker's conduct, so that one that is outdated or slow is found.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The conduct of a worker, as its process knows it, or as the regions of another process do.
#[derive(Debug, Default)]
pub struct Conduct {
    late_answers: AtomicU64,
    refused_commands: AtomicU64,
}

impl Conduct {
    /// An answer did not count, since its lease had ended.
    pub fn answered_late(&self) {
        self.late_answers.fetch_add(1, Relaxed);
    }

    /// How many answers did not count.
    pub fn late_answers(&self) -> u64 {
        self.late_answers.load(Relaxed)
    }

    /// A command was refused.
    pub fn command_refused(&self) {
        self.refused_commands.fetch_add(1, Relaxed);
    }

    /// How many commands were refused.
    pub fn refused_commands(&self) -> u64 {
        self.refused_commands.load(Relaxed)
    }
}
