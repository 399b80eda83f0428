//! Admission: limits per source address, and a bounded number of connections without a login.
//!
//! ```text
//! accepted ──► waiting ──valid hello──► session ──► ended
//!    │            │
//!    │            └ evicted: too many wait; this is the oldest connection of the busiest address
//!    └ refused: the address has too many connections or failed tokens, or there is no free session
//! ```
//!
//! The gateway asks before it serves a connection. A waiting connection uses no session, whatever
//! it sends, and the number of waiting connections is bounded, so they cannot keep out logged-in
//! players. What must never happen here: an await while the state is locked, or a count that
//! outlives its [`Ticket`].

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use purview::clock;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::address_limits::AddressLimits;
use super::metrics::{GatewayMetrics, Refusal};

/// The time window in which failed tokens are counted.
const FAILURES_OVER: Duration = Duration::from_secs(60);

/// Most addresses whose failed tokens are remembered.
const FAILURES_MAX: usize = 16_384;

/// The source of a connection, as limits count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// A simulated client.
    Nowhere,
    Net(IpAddr),
}

impl Source {
    fn of(addr: Option<IpAddr>) -> Source {
        Source::Net(match addr.map(|addr| addr.to_canonical()) {
            None => return Source::Nowhere,
            Some(IpAddr::V6(v6)) => {
                let bits = u128::from(v6) & (u128::MAX << 64);
                IpAddr::V6(Ipv6Addr::from(bits))
            }
            Some(v4) => v4,
        })
    }
}

/// Why a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("the server is full")]
    Full,
    #[error("too many connections from your address; at most {0} are allowed")]
    Address(u32),
    #[error("too many invalid tokens from your address; try again in {} s", .0.as_secs().max(1))]
    Blocked(Duration),
}

impl Refused {
    /// The reason in metrics.
    pub(super) fn kind(self) -> Refusal {
        match self {
            Refused::Full => Refusal::Full,
            Refused::Address(_) => Refusal::Address,
            Refused::Blocked(_) => Refusal::Blocked,
        }
    }
}

/// Decides which connections may go on.
pub(super) struct Admission {
    limits: AddressLimits,
    max_sessions: u64,
    max_waiting: usize,
    metrics: Arc<GatewayMetrics>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of the newest connection.
    last: u64,
    sessions: u64,
    /// Connections without a login, each with the sender of its eviction.
    waiting: BTreeMap<u64, oneshot::Sender<()>>,
    sources: BTreeMap<Source, Held>,
    failures: BTreeMap<Source, Failures>,
}

/// The connections of one source.
#[derive(Default)]
struct Held {
    connections: u32,
    /// Oldest first.
    waiting: BTreeSet<u64>,
}

/// The failed tokens of one source.
#[derive(Clone, Copy)]
struct Failures {
    since: Instant,
    count: u32,
    blocked_until: Option<Instant>,
}

impl Failures {
    fn is_over(&self, now: Instant) -> bool {
        self.blocked_until.unwrap_or(self.since + FAILURES_OVER) <= now
    }
}

impl Admission {
    pub(super) fn new(
        limits: AddressLimits,
        max_sessions: u64,
        max_waiting: usize,
        metrics: Arc<GatewayMetrics>,
    ) -> Arc<Admission> {
        let state = Mutex::default();
        Arc::new(Admission { limits, max_sessions, max_waiting, metrics, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_exempt(&self, source: Source) -> bool {
        match source {
            Source::Nowhere => true,
            Source::Net(addr) => self.limits.exempt.iter().any(|net| {
                // A listed network narrower than one counted address exempts the whole counted
                // address.
                net.contains(&addr) || Source::of(Some(net.network())) == source
            }),
        }
    }

    /// Admits or refuses a connection. The receiver fires when the connection is evicted.
    pub(super) fn admit(
        self: &Arc<Self>,
        addr: Option<IpAddr>,
    ) -> Result<(Ticket, oneshot::Receiver<()>), Refused> {
        let (source, now) = (Source::of(addr), clock::now());
        let is_exempt = self.is_exempt(source);
        let mut state = self.state();
        if !is_exempt {
            self.judge(&mut state, source, now)?;
        }
        if state.sessions >= self.max_sessions {
            return Err(Refused::Full);
        }
        let own = state.sources.get(&source).map_or(0, |held| held.waiting.len());
        if !is_exempt && own >= self.limits.handshakes as usize {
            self.evict(&mut state, source);
        } else if state.waiting.len() >= self.max_waiting {
            self.evict_of_most(&mut state);
        }
        state.last += 1;
        let (number, (evict, evicted)) = (state.last, oneshot::channel());
        state.waiting.insert(number, evict);
        let held = state.sources.entry(source).or_default();
        held.connections += 1;
        held.waiting.insert(number);
        self.tell(&state);
        let ticket =
            Ticket { admission: self.clone(), number, source, logged_in: Mutex::default() };
        Ok((ticket, evicted))
    }

    fn judge(&self, state: &mut State, source: Source, now: Instant) -> Result<(), Refused> {
        if let Some(failures) = state.failures.get(&source) {
            if failures.is_over(now) {
                state.failures.remove(&source);
            } else if let Some(until) = failures.blocked_until {
                return Err(Refused::Blocked(until - now));
            }
        }
        let connections = state.sources.get(&source).map_or(0, |held| held.connections);
        match connections >= self.limits.connections {
            true => Err(Refused::Address(self.limits.connections)),
            false => Ok(()),
        }
    }

    /// Evicts the oldest waiting connection of the address with the most waiting connections;
    /// false: none waits.
    pub(super) fn make_room(&self) -> bool {
        let mut state = self.state();
        self.evict_of_most(&mut state);
        let any = state.waiting.is_empty();
        self.tell(&state);
        !any
    }

    fn evict_of_most(&self, state: &mut State) {
        let most = state.sources.iter().max_by_key(|(_, held)| held.waiting.len());
        if let Some(source) = most.map(|(source, _)| *source) {
            self.evict(state, source);
        }
    }

    fn evict(&self, state: &mut State, source: Source) {
        let oldest = state.sources.get_mut(&source).and_then(|held| held.waiting.pop_first());
        let Some(evict) = oldest.and_then(|number| state.waiting.remove(&number)) else { return };
        self.metrics.refused(Refusal::Evicted);
        if evict.send(()).is_err() {
            tracing::trace!("a connection ended just before its eviction");
        }
    }

    /// Counts an invalid token of this source.
    fn failed(&self, source: Source) {
        self.metrics.tokens_failed.fetch_add(1, Ordering::Relaxed);
        if self.is_exempt(source) {
            return;
        }
        let now = clock::now();
        let mut state = self.state();
        if !state.failures.contains_key(&source) && state.failures.len() >= FAILURES_MAX {
            state.failures.retain(|_, failures| !failures.is_over(now));
            let oldest = state.failures.iter().min_by_key(|(_, failures)| failures.since);
            if let Some(oldest) = oldest.map(|(source, _)| *source)
                && state.failures.len() >= FAILURES_MAX
            {
                state.failures.remove(&oldest);
            }
        }
        let new = Failures { since: now, count: 0, blocked_until: None };
        let failures = state.failures.entry(source).or_insert(new);
        if failures.is_over(now) {
            *failures = new;
        }
        failures.count += 1;
        if failures.count >= self.limits.failed_tokens && failures.blocked_until.is_none() {
            failures.blocked_until = Some(now + self.limits.block);
            tracing::warn!(?source, block = ?self.limits.block, "too many invalid tokens: the address is blocked");
        }
    }

    fn tell(&self, state: &State) {
        self.metrics.waiting.store(state.waiting.len() as u64, Ordering::Relaxed);
        self.metrics.sessions_open.store(state.sessions, Ordering::Relaxed);
    }
}

/// The place of a connection. Dropping it releases all its counts.
pub(super) struct Ticket {
    admission: Arc<Admission>,
    number: u64,
    source: Source,
    logged_in: Mutex<LoggedIn>,
}

/// The outcome of a connection's hello.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LoggedIn {
    #[default]
    NotYet,
    Yes,
    /// The token is valid, but there is no free session.
    Full,
}

impl Ticket {
    fn logged_in(&self) -> MutexGuard<'_, LoggedIn> {
        self.logged_in.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a valid hello; false: there is no session for it.
    pub(super) fn log_in(&self) -> bool {
        let mut logged_in = self.logged_in();
        if *logged_in == LoggedIn::Yes {
            return true;
        }
        let mut state = self.admission.state();
        if state.sessions >= self.admission.max_sessions {
            *logged_in = LoggedIn::Full;
            return false;
        }
        // An evicted connection is closing already.
        if state.waiting.remove(&self.number).is_none() {
            return false;
        }
        if let Some(held) = state.sources.get_mut(&self.source) {
            held.waiting.remove(&self.number);
        }
        state.sessions += 1;
        *logged_in = LoggedIn::Yes;
        self.admission.metrics.sessions_total.fetch_add(1, Ordering::Relaxed);
        self.admission.tell(&state);
        true
    }

    /// Records an invalid token.
    pub(super) fn fail(&self) {
        self.admission.failed(self.source);
    }

    /// Whether the connection failed only because there was no free session.
    pub(super) fn is_too_many(&self) -> bool {
        *self.logged_in() == LoggedIn::Full
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let logged_in = *self.logged_in();
        let mut state = self.admission.state();
        state.waiting.remove(&self.number);
        if let Some(held) = state.sources.get_mut(&self.source) {
            held.waiting.remove(&self.number);
            held.connections -= 1;
            if held.connections == 0 {
                state.sources.remove(&self.source);
            }
        }
        if logged_in == LoggedIn::Yes {
            state.sessions -= 1;
        }
        self.admission.tell(&state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(max_sessions: u64, max_waiting: usize) -> Arc<Admission> {
        let limits = AddressLimits {
            connections: 4,
            handshakes: 2,
            failed_tokens: 3,
            block: Duration::from_secs(90),
            exempt: Vec::new(),
        };
        Admission::new(limits, max_sessions, max_waiting, Arc::default())
    }

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    /// Whether the connection was evicted.
    fn is_evicted(evicted: &mut oneshot::Receiver<()>) -> bool {
        evicted.try_recv().is_ok()
    }

    #[test]
    fn waiting_connections_use_no_session() {
        let admission = admission(1, 100);
        let idle: Vec<_> = (0..50).map(|i| admission.admit(ip(&format!("10.0.0.{i}")))).collect();
        assert!(idle.iter().all(Result::is_ok));
        let (honest, _evicted) = admission.admit(ip("10.0.1.1")).unwrap();
        assert!(honest.log_in() && honest.log_in());
        assert_eq!(admission.admit(ip("10.0.1.2")).err(), Some(Refused::Full));
        // A valid hello that arrives when the last session is in use.
        let (late, _evicted) = idle.into_iter().next().unwrap().unwrap();
        assert!(!late.log_in() && late.is_too_many());
        drop(honest);
        assert!(late.log_in() && admission.metrics.sessions_total.load(Ordering::Relaxed) == 2);
    }

    #[test]
    fn connections_and_handshakes_per_address_are_limited() {
        let admission = admission(100, 100);
        let (first, mut first_evicted) = admission.admit(ip("10.0.0.1")).unwrap();
        let (second, mut second_evicted) = admission.admit(ip("10.0.0.1")).unwrap();
        assert!(first.log_in());
        let third = admission.admit(ip("10.0.0.1")).unwrap();
        // The oldest connection that still waits is evicted.
        let fourth = admission.admit(ip("10.0.0.1")).unwrap();
        assert!(!is_evicted(&mut first_evicted) && is_evicted(&mut second_evicted));
        assert!(!second.log_in() && !second.is_too_many());
        assert_eq!(admission.admit(ip("10.0.0.1")).err(), Some(Refused::Address(4)));
        assert!(admission.admit(ip("10.0.0.2")).is_ok());
        drop((first, second, third, fourth));
        assert!(admission.admit(ip("10.0.0.1")).is_ok());
        assert!(admission.state().sources.is_empty() && admission.state().sessions == 0);
    }

    #[test]
    fn the_address_with_most_connections_loses_one() {
        let admission = admission(100, 3);
        let mut many = [0; 2].map(|_| admission.admit(ip("10.0.0.1")).unwrap());
        let mut one = admission.admit(ip("10.0.0.2")).unwrap();
        let mut new = admission.admit(ip("10.0.0.3")).unwrap();
        assert!(is_evicted(&mut many[0].1) && !is_evicted(&mut many[1].1));
        assert!(!is_evicted(&mut one.1) && !is_evicted(&mut new.1));
        assert!(one.0.log_in() && new.0.log_in());
    }

    #[tokio::test(start_paused = true)]
    async fn failed_tokens_block_their_address_for_a_while() {
        let admission = admission(100, 100);
        let fail = |addr, n| {
            for _ in 0..n {
                admission.admit(ip(addr)).unwrap().0.fail();
            }
        };
        fail("10.0.0.1", 2);
        tokio::time::advance(FAILURES_OVER).await;
        fail("10.0.0.1", 3);
        let refused = admission.admit(ip("10.0.0.1")).err();
        assert_eq!(refused, Some(Refused::Blocked(Duration::from_secs(90))));
        assert!(admission.admit(ip("10.0.0.2")).is_ok());
        tokio::time::advance(Duration::from_secs(90)).await;
        assert!(admission.admit(ip("10.0.0.1")).is_ok());
    }

    #[test]
    fn an_ipv6_network_of_one_customer_counts_as_one_address() {
        let same = |a, b| Source::of(ip(a)) == Source::of(ip(b));
        assert!(same("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"));
        assert!(!same("2001:db8:1:2::1", "2001:db8:1:3::1"));
        assert!(same("10.0.0.1", "::ffff:10.0.0.1") && !same("10.0.0.1", "10.0.0.2"));
        let admission = Admission::new(AddressLimits::default(), 1, 1, Arc::default());
        let exempt = |addr| admission.is_exempt(Source::of(ip(addr)));
        assert!(
            exempt("127.0.0.9") && exempt("::1") && !exempt("10.0.0.1") && !exempt("2001:db8::1")
        );
    }
}
