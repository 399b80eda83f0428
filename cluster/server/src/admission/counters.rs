//! What a listener counts of its admission.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::metrics::Families;

/// Why a connection was refused before a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    Full,
    Address,
    /// The address sent too many invalid tokens.
    Blocked,
    /// The subject of the token has too many sessions.
    Subject,
    /// The connection was evicted before its login.
    Evicted,
    /// The connection came from a listed proxy without a valid header.
    Proxy,
    /// The HTTP request was not a valid WebSocket handshake.
    Http,
}

impl RefusalReason {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [RefusalReason; 7] = [
        RefusalReason::Full,
        RefusalReason::Address,
        RefusalReason::Blocked,
        RefusalReason::Subject,
        RefusalReason::Evicted,
        RefusalReason::Proxy,
        RefusalReason::Http,
    ];

    pub fn name(self) -> &'static str {
        match self {
            RefusalReason::Full => "full",
            RefusalReason::Address => "address",
            RefusalReason::Blocked => "blocked",
            RefusalReason::Subject => "subject",
            RefusalReason::Evicted => "evicted",
            RefusalReason::Proxy => "proxy",
            RefusalReason::Http => "http",
        }
    }
}

#[derive(Debug, Default)]
pub struct Counters {
    /// Sessions open now: connections with a login.
    pub sessions_open: AtomicU64,
    pub sessions_total: AtomicU64,
    /// Connections without a login yet.
    pub waiting: AtomicU64,
    pub tokens_failed: AtomicU64,
    refusals: [AtomicU64; RefusalReason::ALL.len()],
}

impl Counters {
    /// Connections refused before a session, by reason.
    pub fn refusals(&self) -> impl Iterator<Item = (RefusalReason, u64)> + '_ {
        let counts = self.refusals.iter().map(|n| n.load(Relaxed));
        RefusalReason::ALL.iter().copied().zip(counts)
    }

    /// Writes what a listener other than the gateway refuses: families whose names begin with
    /// `prefix`.
    pub(crate) fn encode(&self, prefix: &str, out: &mut Families<'_>) -> fmt::Result {
        let name = format!("{prefix}_connections_unauthenticated");
        out.gauge(&name, "Connections without a login yet.", self.waiting.load(Relaxed))?;
        let name = format!("{prefix}_connections_refused");
        let mut refused = out.counters(&name, "Connections refused, or ended before a login.")?;
        let reasons = [RefusalReason::Full, RefusalReason::Address, RefusalReason::Evicted];
        for (why, count) in self.refusals().filter(|(why, _)| reasons.contains(why)) {
            refused.counter(&[("reason", why.name())], count)?;
        }
        Ok(())
    }

    pub(crate) fn refused(&self, why: RefusalReason) {
        self.refusals[why as usize].fetch_add(1, Relaxed);
    }
}
