//! The gateway's counters as metrics. Sessions and connections count; the metrics page reads.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::DescriptorEncoder;
use purview::wire::CloseCode;

use crate::metrics::{Collector, Families};

/// Counters of a gateway. Bytes are those of messages, without framing.
#[derive(Debug, Default)]
pub struct GatewayMetrics {
    /// Sessions open now: connections with a valid hello.
    pub sessions_open: AtomicU64,
    /// Sessions started.
    pub sessions_total: AtomicU64,
    /// Connections open now.
    pub connections_open: AtomicU64,
    /// Connections accepted.
    pub connections_total: AtomicU64,
    /// Connections without a valid hello yet.
    pub waiting: AtomicU64,
    /// Invalid tokens.
    pub tokens_failed: AtomicU64,
    /// Connections that ended without a close from the server.
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
    refusals: [AtomicU64; Refusal::ALL.len()],
}

/// Why a connection was refused before a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There was no free session.
    Full,
    /// The address has too many connections.
    Address,
    /// The address sent too many invalid tokens.
    Blocked,
    /// The connection was evicted before its login.
    Evicted,
    /// The connection came from a listed proxy without a valid header.
    Proxy,
    /// The HTTP request was not a valid WebSocket handshake.
    Http,
}

impl Refusal {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Refusal; 6] = [
        Refusal::Full,
        Refusal::Address,
        Refusal::Blocked,
        Refusal::Evicted,
        Refusal::Proxy,
        Refusal::Http,
    ];

    /// The reason's name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Refusal::Full => "full",
            Refusal::Address => "address",
            Refusal::Blocked => "blocked",
            Refusal::Evicted => "evicted",
            Refusal::Proxy => "proxy",
            Refusal::Http => "http",
        }
    }
}

impl GatewayMetrics {
    /// Sessions closed by the server, by code.
    pub fn closes(&self) -> impl Iterator<Item = (CloseCode, u64)> + '_ {
        let counts = self.closes.iter().map(|n| n.load(Ordering::Relaxed));
        CloseCode::ALL.iter().copied().zip(counts)
    }

    /// Connections refused before a session, by reason.
    pub fn refusals(&self) -> impl Iterator<Item = (Refusal, u64)> + '_ {
        let counts = self.refusals.iter().map(|n| n.load(Ordering::Relaxed));
        Refusal::ALL.iter().copied().zip(counts)
    }

    pub(super) fn refused(&self, why: Refusal) {
        let at = Refusal::ALL.iter().position(|known| *known == why);
        if let Some(counter) = at.and_then(|at| self.refusals.get(at)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
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
        let mut out = Families::from(encoder);
        let gauges = [
            ("purview_sessions_open", "Sessions open now.", &self.sessions_open),
            ("purview_connections_open", "Connections open now.", &self.connections_open),
            (
                "purview_connections_unauthenticated",
                "Connections without a valid hello yet.",
                &self.waiting,
            ),
        ];
        for (name, help, value) in gauges {
            out.gauge(name, help, value.load(Ordering::Relaxed))?;
        }
        let counters = [
            ("purview_sessions", "Sessions started.", &self.sessions_total),
            ("purview_connections", "Connections accepted.", &self.connections_total),
            ("purview_tokens_failed", "Invalid tokens.", &self.tokens_failed),
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
        for (why, count) in self.refusals() {
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
