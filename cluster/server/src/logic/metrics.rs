//! The counters of logic workers.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::admission::Counters;

#[derive(Debug, Default)]
pub struct Metrics {
    pub sessions: AtomicU64,
    pub leases: AtomicU64,
    /// Leases that ended since the worker did not answer in time, or its session had ended.
    pub taken_over: AtomicU64,
    /// Times at which a worker did not answer in time.
    pub late: AtomicU64,
    /// Streams that have ended since a request was malformed.
    pub malformed_streams: AtomicU64,
    pub answers: AtomicU64,
    /// Answers that did not count, since their leases had ended.
    pub late_answers: AtomicU64,
    pub commands: AtomicU64,
    pub refused_commands: AtomicU64,
    /// Actions that no worker will be told of.
    pub missed: AtomicU64,
    /// Calls without a token, or with a wrong one.
    pub denied: Arc<AtomicU64>,
    pub connections: Arc<Counters>,
}
