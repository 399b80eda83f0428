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

    /// Appends the figures in Prometheus' text form.
    pub fn write(&self, text: &mut String) {
        let gauge =
            [("purview_sessions_open", "Connections that are open now.", &self.sessions_open)];
        let counters = [
            ("purview_sessions_total", "Connections ever accepted.", &self.sessions_total),
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
