//! What the gateway counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use purview::wire::CloseCode;

/// Counters of a gateway, for the metrics page. Bytes are those of messages, without framing.
#[derive(Debug, Default)]
pub struct GatewayMetrics {
    /// Sessions that are open now: connections that have said a valid hello.
    pub sessions_open: AtomicU64,
    /// Sessions that ever began.
    pub sessions_total: AtomicU64,
    /// Connections that are open now.
    pub connections_open: AtomicU64,
    /// Connections that were ever accepted.
    pub connections_total: AtomicU64,
    /// Connections that have not said a valid hello.
    pub waiting: AtomicU64,
    /// Tokens that did not hold.
    pub tokens_failed: AtomicU64,
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
    refusals: [AtomicU64; Refusal::ALL.len()],
}

/// Why a connection is refused before it has a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// All sessions are taken.
    Full,
    /// Its address has too many connections.
    Address,
    /// Too many tokens of its address did not hold.
    Blocked,
    /// It had not logged in and made room for another.
    Evicted,
    /// It comes from a listed proxy and does not begin with a header.
    Proxy,
    /// Its request of HTTP becomes no WebSocket.
    Http,
}

impl Refusal {
    /// All, in their order.
    pub const ALL: [Refusal; 6] = [
        Refusal::Full,
        Refusal::Address,
        Refusal::Blocked,
        Refusal::Evicted,
        Refusal::Proxy,
        Refusal::Http,
    ];

    /// Its name in metrics.
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
    /// Sessions that the server closed, by code.
    pub fn closes(&self) -> impl Iterator<Item = (CloseCode, u64)> + '_ {
        let counts = self.closes.iter().map(|n| n.load(Ordering::Relaxed));
        CloseCode::ALL.iter().copied().zip(counts)
    }

    /// Connections that were refused before they had a session, by reason.
    pub fn refusals(&self) -> impl Iterator<Item = (Refusal, u64)> + '_ {
        let counts = self.refusals.iter().map(|n| n.load(Ordering::Relaxed));
        Refusal::ALL.iter().copied().zip(counts)
    }

    /// Appends the figures in Prometheus' text form.
    pub fn write(&self, text: &mut String) {
        let gauge = [
            ("purview_sessions_open", "Sessions that are open now.", &self.sessions_open),
            ("purview_connections_open", "Connections that are open now.", &self.connections_open),
            (
                "purview_connections_unauthenticated",
                "Connections that have not said a valid hello.",
                &self.waiting,
            ),
        ];
        let counters = [
            ("purview_sessions_total", "Sessions that ever began.", &self.sessions_total),
            ("purview_connections_total", "Connections ever accepted.", &self.connections_total),
            ("purview_tokens_failed_total", "Tokens that did not hold.", &self.tokens_failed),
            (
                "purview_sessions_gone_total",
                "Connections that ended without a close by the server.",
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
        *text += "# HELP purview_closes_total Sessions that the server closed.\n";
        *text += "# TYPE purview_closes_total counter\n";
        for (code, n) in self.closes() {
            *text += &format!("purview_closes_total{{code=\"{}\"}} {n}\n", code.word());
        }
        let name = "purview_connections_refused_total";
        *text += &format!("# HELP {name} Connections refused before they had a session.\n");
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

/// Counts a connection as open for as long as it lives.
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
