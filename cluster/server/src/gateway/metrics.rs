//! The gateway's counters and their Prometheus text. Sessions and connections count; the metrics
//! page reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use purview::wire::CloseCode;

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
    pub fn word(self) -> &'static str {
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

    /// Appends the counters in Prometheus text format.
    pub fn write(&self, text: &mut String) {
        let gauge = [
            ("purview_sessions_open", "Sessions open now.", &self.sessions_open),
            ("purview_connections_open", "Connections open now.", &self.connections_open),
            (
                "purview_connections_unauthenticated",
                "Connections without a valid hello yet.",
                &self.waiting,
            ),
        ];
        let counters = [
            ("purview_sessions_total", "Sessions started.", &self.sessions_total),
            ("purview_connections_total", "Connections accepted.", &self.connections_total),
            ("purview_tokens_failed_total", "Invalid tokens.", &self.tokens_failed),
            (
                "purview_sessions_gone_total",
                "Connections that ended without a close from the server.",
                &self.sessions_gone,
            ),
            ("purview_messages_in_total", "Messages from clients.", &self.messages_in),
            ("purview_messages_out_total", "Messages to clients.", &self.messages_out),
            ("purview_bytes_in_total", "Bytes from clients.", &self.bytes_in),
            ("purview_bytes_out_total", "Bytes to clients.", &self.bytes_out),
        ];
        let kinds = [("gauge", &gauge[..]), ("counter", &counters[..])];
        for (kind, families) in kinds {
            for (name, help, value) in families {
                let value = value.load(Ordering::Relaxed);
                *text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
            }
        }
        *text += "# HELP purview_closes_total Sessions closed by the server.\n";
        *text += "# TYPE purview_closes_total counter\n";
        for (code, n) in self.closes() {
            *text += &format!("purview_closes_total{{code=\"{}\"}} {n}\n", code.word());
        }
        let name = "purview_connections_refused_total";
        *text += &format!("# HELP {name} Connections refused before a session.\n");
        *text += &format!("# TYPE {name} counter\n");
        for (why, n) in self.refusals() {
            *text += &format!("{name}{{reason=\"{}\"}} {n}\n", why.word());
        }
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

    pub(super) fn heard(&self, bytes: usize) {
        self.messages_in.fetch_add(1, Ordering::Relaxed);
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, messages: u64, bytes: u64) {
        self.messages_out.fetch_add(messages, Ordering::Relaxed);
        self.bytes_out.fetch_add(bytes, Ordering::Relaxed);
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
