//! How long a node may act. A region asks before every tick and before effects leave the node.
//!
//! A node that cannot renew its lease stops *before* the lease ends and its regions get new owners:
//! 0.8 of the time to
//! live after its last successful keep-alive was sent. The store counts from the arrival of the
//! keep-alive, which is later, so the clocks of store and node need only run at about the same
//! speed. A node must never act after the store has ended its lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The part of the time to live that a node relies on, in tenths.
const TRUSTED_TENTHS: u32 = 8;

/// Held permanently: 584 years after the join.
const ALWAYS: u64 = u64::MAX;

/// Ended permanently.
const ENDED: u64 = 0;

/// Whether a node's lease still allows it to act. Clones share the state; a query is one atomic
/// read.
#[derive(Debug, Clone)]
pub struct Authority {
    origin: Instant,
    /// Nanoseconds after `origin`.
    until: Arc<AtomicU64>,
}

impl Authority {
    /// The authority of a lease that was granted for `ttl` by a request sent at `sent`.
    pub(super) fn new(sent: Instant, ttl: Duration) -> Authority {
        let authority = Authority { origin: sent, until: Arc::new(AtomicU64::new(ENDED + 1)) };
        authority.renewed(sent, ttl);
        authority
    }

    /// Whether the node may act at `now`, a time of the monotonic clock. It can become true again:
    /// a lease that outlived an outage of the store goes on.
    pub fn holds(&self, now: Instant) -> bool {
        now < self.holds_until()
    }

    /// Until when the node may act if the store does not answer again.
    pub fn holds_until(&self) -> Instant {
        self.origin + Duration::from_nanos(self.until.load(Ordering::Acquire))
    }

    /// Records that the keep-alive sent at `sent` was granted `ttl`. An older keep-alive changes
    /// nothing.
    pub(super) fn renewed(&self, sent: Instant, ttl: Duration) {
        let until = sent.saturating_duration_since(self.origin) + ttl * TRUSTED_TENTHS / 10;
        let until = u64::try_from(until.as_nanos()).unwrap_or(ALWAYS);
        self.change(|now| now.max(until));
    }

    /// The store runs in this process and renews by itself.
    pub(super) fn always(&self) {
        self.change(|_| ALWAYS);
    }

    /// The store in this process stopped renewing at `stopped`.
    pub(super) fn always_no_more(&self, stopped: Instant, ttl: Duration) {
        self.change(|_| ENDED + 1);
        self.renewed(stopped, ttl);
    }

    pub(super) fn end(&self) {
        self.until.store(ENDED, Ordering::Release);
    }

    fn change(&self, to: impl Fn(u64) -> u64) {
        let change = |now| (now != ENDED).then(|| to(now));
        // The update fails only if the authority has ended, and then it stays ended.
        let _ended = self.until.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(5);

    #[test]
    fn it_holds_for_four_fifths_of_the_time_to_live_after_the_request_was_sent() {
        let sent = Instant::now();
        let authority = Authority::new(sent, TTL);
        assert!(authority.holds(sent));
        assert!(authority.holds(sent + Duration::from_millis(3_999)));
        assert!(!authority.holds(sent + Duration::from_millis(4_000)));
        assert_eq!(authority.holds_until(), sent + Duration::from_secs(4));
    }

    #[test]
    fn a_late_answer_counts_from_its_request_and_never_shortens() {
        let sent = Instant::now();
        let authority = Authority::new(sent, TTL);
        let clone = authority.clone();
        authority.renewed(sent + Duration::from_secs(2), TTL);
        authority.renewed(sent + Duration::from_secs(1), TTL);
        assert_eq!(clone.holds_until(), sent + Duration::from_secs(6));
    }

    #[test]
    fn an_ended_authority_is_not_renewed() {
        let sent = Instant::now();
        let authority = Authority::new(sent, TTL);
        authority.end();
        authority.renewed(sent + Duration::from_secs(1), TTL);
        authority.always();
        authority.always_no_more(sent + Duration::from_secs(1), TTL);
        assert!(!authority.holds(sent));
    }

    #[test]
    fn a_store_in_the_same_process_renews_until_it_stops() {
        let sent = Instant::now();
        let authority = Authority::new(sent, TTL);
        authority.always();
        assert!(authority.holds(sent + Duration::from_secs(3_600)));
        authority.always_no_more(sent + Duration::from_secs(10), TTL);
        assert_eq!(authority.holds_until(), sent + Duration::from_secs(14));
    }
}
