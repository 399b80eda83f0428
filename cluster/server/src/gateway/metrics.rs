//! The gateway's counters as metrics. Sessions and connections count; the metrics page reads.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::DescriptorEncoder;
use purview::wire::CloseCode;

use crate::admission::Counters;
use crate::metrics::{Collector, Families};

/// Counters of a gateway. Bytes are those of messages, without framing.
#[derive(Debug, Default)]
pub struct GatewayMetrics {
    /// Sessions, connections without a valid hello, and refused connections.
    pub admission: Arc<Counters>,
    pub connections_open: AtomicU64,
    pub connections_total: AtomicU64,
    /// Connections that ended without a close from the server.
    pub sessions_gone: AtomicU64,
    pub messages_in: AtomicU64,
    pub messages_out: AtomicU64,
    pub bytes_in: AtomicU64,
    pub bytes_out: AtomicU64,
    closes: [AtomicU64; CloseCode::ALL.len()],
}

impl GatewayMetrics {
    /// Sessions closed by the server, by code.
    pub fn closes(&self) -> impl Iterator<Item = (CloseCode, u64)> + '_ {
        let counts = self.closes.iter().map(|n| n.load(Ordering::Relaxed));
        CloseCode::ALL.iter().copied().zip(counts)
    }

    pub(super) fn ended(&self, how: Option<CloseCode>) {
        let closed = how.and_then(|code| CloseCode::ALL.iter().position(|c| *c == code));
        let counter = closed.and_then(|at| self.closes.get(at)).unwrap_or(&self.sessions_gone);
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.messages_in.fetch_add(1, Ordering::Relaxed);
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, messages: u64, bytes: u64) {
        self.messages_out.fetch_add(messages, Ordering::Relaxed);
        self.bytes_out.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Collector for GatewayMetrics {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let (mut out, admission) = (Families::from(encoder), &*self.admission);
        let gauges = [
            ("purview_sessions_open", "Sessions open now.", &admission.sessions_open),
            ("purview_connections_open", "Connections open now.", &self.connections_open),
            (
                "purview_connections_unauthenticated",
                "Connections without a valid hello yet.",
                &admission.waiting,
            ),
        ];
        for (name, help, value) in gauges {
            out.gauge(name, help, value.load(Ordering::Relaxed))?;
        }
        let counters = [
            ("purview_sessions", "Sessions started.", &admission.sessions_total),
            ("purview_connections", "Connections accepted.", &self.connections_total),
            ("purview_tokens_failed", "Invalid tokens.", &admission.tokens_failed),
            (
                "purview_sessions_gone",
                "Connections that ended without a close from the server.",
                &self.sessions_gone,
            ),
            ("purview_messages_received", "Messages from clients.", &self.messages_in),
            ("purview_messages_sent", "Messages to clients.", &self.messages_out),
            ("purview_received_bytes", "Bytes from clients.", &self.bytes_in),
            ("purview_sent_bytes", "Bytes to clients.", &self.bytes_out),
        ];
        for (name, help, value) in counters {
            out.counter(name, help, value.load(Ordering::Relaxed))?;
        }
        let mut closes = out.counters("purview_closes", "Sessions closed by the server.")?;
        for (code, count) in self.closes() {
            closes.counter(&[("code", code.name())], count)?;
        }
        let help = "Connections refused before a session.";
        let mut refusals = out.counters("purview_connections_refused", help)?;
        for (why, count) in admission.refusals() {
            refusals.counter(&[("reason", why.name())], count)?;
        }
        Ok(())
    }
}

/// Counts a connection as open until dropped.
#[derive(Debug)]
pub(super) struct Open {
    metrics: Arc<GatewayMetrics>,
}

impl Open {
    pub(super) fn new(metrics: &Arc<GatewayMetrics>) -> Open {
        metrics.connections_total.fetch_add(1, Ordering::Relaxed);
        metrics.connections_open.fetch_add(1, Ordering::Relaxed);
        Open { metrics: Arc::clone(metrics) }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.connections_open.fetch_sub(1, Ordering::Relaxed);
    }
}
