//! What operators are told of a worker's conduct, so that one that is malicious, outdated, doubled or slow is found.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::metrics::Metrics;

/// Longest text about the end of a stream, characters.
const LONGEST: usize = 200;

/// The conduct of a worker, as its process knows it, or as the regions of another process do.
#[derive(Debug, Default)]
pub struct Conduct {
    streams: AtomicU64,
    refused_batches: AtomicU64,
    refused_commands: AtomicU64,
    drops: AtomicU64,
    last_end: Mutex<String>,
}

/// The same at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConductNow {
    /// Streams of its session; each after the first has resumed it.
    pub streams: u64,
    /// Batches that were refused, since it does not have the region under that epoch and lease.
    pub refused_batches: u64,
    /// Commands that were refused.
    pub refused_commands: u64,
    /// Times at which all that waited for it was dropped.
    pub drops: u64,
    /// Why its last stream that has ended did.
    pub last_end: String,
}

impl Conduct {
    /// A stream begins.
    pub fn stream_begins(&self) {
        self.streams.fetch_add(1, Relaxed);
    }

    /// A stream has ended.
    pub fn stream_ended(&self, why: &str) {
        let why = why.chars().take(LONGEST).collect();
        *self.last_end.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// A batch was refused.
    pub fn batch_refused(&self, all: &Metrics) {
        self.refused_batches.fetch_add(1, Relaxed);
        all.refused_batches.fetch_add(1, Relaxed);
    }

    /// Commands were refused.
    pub fn commands_refused(&self, count: usize, all: &Metrics) {
        self.refused_commands.fetch_add(count as u64, Relaxed);
        all.refused_commands.fetch_add(count as u64, Relaxed);
    }

    /// All that waited was dropped.
    pub fn dropped(&self, all: &Metrics) {
        self.drops.fetch_add(1, Relaxed);
        all.dropped.fetch_add(1, Relaxed);
    }

    /// The conduct until now.
    pub fn now(&self) -> ConductNow {
        ConductNow {
            streams: self.streams.load(Relaxed),
            refused_batches: self.refused_batches.load(Relaxed),
            refused_commands: self.refused_commands.load(Relaxed),
            drops: self.drops.load(Relaxed),
            last_end: self.last_end.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
