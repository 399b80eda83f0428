//! What the gateway counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use purview::wire::CloseCode;

/// Counters of a gateway, for the metrics page. Bytes are those of messages, without framing.
#[derive(Debug, Default)]
pub struct GatewayMetrics {
    /// Connections that are open now.
    pub sessions_open: AtomicU64,
    /// Connections that were ever accepted.
    pub sessions_total: AtomicU64,
    /// Connections that ended without a close by the server.
    pub sessions_gone: AtomicU64,
    /// Messages from clients.
    pub messages_in: AtomicU64,
    /// Messages to clients.
    pub messages_out: AtomicU64,
    /// Bytes from clients.
    pub bytes_in: AtomicU64,
    /// Bytes to clients.
    pub bytes_out: AtomicU64,
    closes: [AtomicU64; CloseCode::ALL.len()],
}

impl GatewayMetrics {
    /// Sessions that the server closed, by code.
    pub fn closes(&self) -> impl Iterator<Item = (CloseCode, u64)> + '_ {
        let counts = self.closes.iter().map(|n| n.load(Ordering::Relaxed));
        CloseCode::ALL.iter().copied().zip(counts)
    }

    pub(super) fn ended(&self, how: Option<CloseCode>) {
        let closed = how.and_then(|code| CloseCode::ALL.iter().position(|c| *c == code));
        let counter = closed.and_then(|at| self.closes.get(at)).unwrap_or(&self.sessions_gone);
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn heard(&self, bytes: usize) {
        self.messages_in.fetch_add(1, Ordering::Relaxed);
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, messages: u64, bytes: u64) {
        self.messages_out.fetch_add(messages, Ordering::Relaxed);
        self.bytes_out.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Counts a connection as open for as long as it lives.
#[derive(Debug)]
pub(super) struct Open {
    metrics: Arc<GatewayMetrics>,
    /// How many were open before this one.
    pub(super) before: u64,
}

impl Open {
    pub(super) fn new(metrics: &Arc<GatewayMetrics>) -> Open {
        metrics.sessions_total.fetch_add(1, Ordering::Relaxed);
        let before = metrics.sessions_open.fetch_add(1, Ordering::Relaxed);
        Open { metrics: Arc::clone(metrics), before }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.sessions_open.fetch_sub(1, Ordering::Relaxed);
    }
}
