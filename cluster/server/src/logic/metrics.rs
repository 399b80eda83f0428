//! The counters of logic workers.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::admission::Counters;

/// The counters of all workers.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Sessions that began.
    pub sessions: AtomicU64,
    /// Streams that resumed a session.
    pub resumed: AtomicU64,
    /// Leases that began.
    pub leases: AtomicU64,
    /// Leases that ended since the worker was late, or away.
    pub taken_over: AtomicU64,
    /// Times at which a worker was late.
    pub late: AtomicU64,
    /// Streams that have ended since a request was malformed.
    pub malformed_streams: AtomicU64,
    /// Streams whose sessions another stream has resumed.
    pub replaced_streams: AtomicU64,
    /// Times at which everything that waited for a worker was dropped.
    pub dropped: AtomicU64,
    /// Batches that were taken.
    pub batches: AtomicU64,
    /// Batches that were refused.
    pub refused_batches: AtomicU64,
    /// Commands that were taken.
    pub commands: AtomicU64,
    /// Commands that were refused.
    pub refused_commands: AtomicU64,
    /// Events that were sent.
    pub events: AtomicU64,
    /// Actions that no worker will be told of.
    pub missed: AtomicU64,
    /// Calls without a token, or with a wrong one.
    pub denied: Arc<AtomicU64>,
    /// Connections.
    pub connections: Arc<Counters>,
}
