//! Admission: limits per source address, and a bounded number of connections without a login. Every
//! listener has one: the gateway, the console, the services over gRPC, and peers.
//!
//! ```text
//! accepted ──► waiting ──login──► session ──► ended
//!    │            │
//!    │            └ evicted: too many wait; this is the oldest connection of the busiest source
//!    └ refused: the source has too many connections or failed tokens, or there is no free session
//! ```
//!
//! A login is what the listener takes for one: a valid hello at the gateway, a request with the
//! token at a service, a peer's hello and certificate, a request that is no health check at the
//! console. A listener asks before it serves a connection. A waiting connection uses no session,
//! whatever it sends, and the number of waiting connections is bounded, so they cannot keep out
//! connections with a login.
//!
//! An IPv6 address counts by its first 64 bits and, with `NETWORK_FACTOR` times the limits, by
//! its first 48.
//!
//! What must never happen here: an await while the state is locked, a cost that grows with the
//! number of sources, or a count that outlives its `Ticket`.

mod counters;
mod failures;
mod limits;
mod places;
mod source;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use purview::clock;
use tokio::sync::oneshot;
use tokio::time::Instant;

pub use self::counters::{Counters, RefusalReason};
pub use self::limits::AddressLimits;

use self::failures::Failures;
use self::places::Places;
use self::source::NETWORK_FACTOR;
pub(crate) use self::source::Source;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdmissionError {
    #[error("the server is full")]
    Full,
    #[error("too many connections from your address; at most {0} are allowed")]
    Address(u32),
    #[error("too many connections from your IPv6 network; at most {0} are allowed")]
    Network(u32),
    #[error("too many invalid tokens from your address; try again in {} s", .0.as_secs().max(1))]
    Blocked(Duration),
}

impl AdmissionError {
    fn kind(self) -> RefusalReason {
        match self {
            AdmissionError::Full => RefusalReason::Full,
            AdmissionError::Address(_) | AdmissionError::Network(_) => RefusalReason::Address,
            AdmissionError::Blocked(_) => RefusalReason::Blocked,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotIn {
    #[error("the server is full")]
    Full,
    #[error("the subject of the token has {0} sessions, as many as it may have")]
    Subject(u32),
    #[error("the connection was evicted")]
    Evicted,
}

/// What all connections of a listener may have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Most connections with a login.
    pub(crate) sessions: u64,
    /// Most connections without one.
    pub(crate) waiting: usize,
    pub(crate) per_subject: u32,
    /// Whether connections are refused while there is no free session.
    pub(crate) refuses_when_full: bool,
}

#[derive(Debug)]
pub(crate) struct AdmissionControl {
    limits: AddressLimits,
    bounds: Bounds,
    counters: Arc<Counters>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    sessions: u64,
    waiting: BTreeMap<u64, WaitingConnection>,
    addresses: Places,
    networks: Places,
    subjects: BTreeMap<Arc<str>, u32>,
    failures: Failures,
}

#[derive(Debug)]
struct WaitingConnection {
    source: Source,
    evict: oneshot::Sender<()>,
}

impl State {
    fn stop_waiting(&mut self, source: Source, number: u64) -> Option<WaitingConnection> {
        let waiting = self.waiting.remove(&number)?;
        self.addresses.stop_waiting(source, number);
        self.networks.stop_waiting(source.network(), number);
        Some(waiting)
    }
}

impl AdmissionControl {
    pub(crate) fn new(
        limits: AddressLimits,
        bounds: Bounds,
        counters: Arc<Counters>,
    ) -> Arc<AdmissionControl> {
        Arc::new(AdmissionControl { limits, bounds, counters, state: Mutex::default() })
    }

    /// The admission of a listener whose logins are no guesses: failed ones are not counted. It has
    /// so many connections with a login, so many without, and of one address so many, of which so
    /// many without a login.
    pub(crate) fn of_listener(
        sessions: u64,
        waiting: usize,
        (connections, handshakes): (u32, u32),
        counters: Arc<Counters>,
    ) -> Arc<AdmissionControl> {
        let limits = AddressLimits {
            connections,
            handshakes,
            failed_tokens: u32::MAX,
            block: Duration::ZERO,
            ..AddressLimits::default()
        };
        let per_subject = u32::MAX;
        let bounds = Bounds { sessions, waiting, per_subject, refuses_when_full: false };
        AdmissionControl::new(limits, bounds, counters)
    }

    /// Admits or refuses a connection. The receiver fires when the connection is evicted.
    pub(crate) fn admit(
        self: &Arc<Self>,
        addr: Option<IpAddr>,
    ) -> Result<(Ticket, oneshot::Receiver<()>), AdmissionError> {
        self.judged(addr).inspect_err(|refused| self.counters.refused(refused.kind()))
    }

    fn judged(
        self: &Arc<Self>,
        addr: Option<IpAddr>,
    ) -> Result<(Ticket, oneshot::Receiver<()>), AdmissionError> {
        let (source, now) = (Source::of(addr), clock::now());
        let is_exempt = source.is_in(&self.limits.exempt);
        let mut state = self.state.lock();
        if !is_exempt {
            self.judge(&mut state, source, now)?;
        }
        if self.bounds.refuses_when_full && state.sessions >= self.bounds.sessions {
            return Err(AdmissionError::Full);
        }
        if let Some(number) = self.who_gives_way(&state, source, is_exempt) {
            self.evict(&mut state, number);
        }
        state.last += 1;
        let (number, (evict, evicted)) = (state.last, oneshot::channel());
        state.waiting.insert(number, WaitingConnection { source, evict });
        state.addresses.add(source, number);
        state.networks.add(source.network(), number);
        self.tell(&state);
        let ticket =
            Ticket { admission: self.clone(), number, source, logged_in: Mutex::default() };
        Ok((ticket, evicted))
    }

    fn judge(&self, state: &mut State, source: Source, now: Instant) -> Result<(), AdmissionError> {
        for source in [source, source.network()] {
            if let Some(left) = state.failures.blocked(source, now) {
                return Err(AdmissionError::Blocked(left));
            }
        }
        let most = self.limits.connections;
        if state.addresses.connections(source) >= most {
            return Err(AdmissionError::Address(most));
        }
        let most = most.saturating_mul(NETWORK_FACTOR);
        match state.networks.connections(source.network()) >= most {
            true => Err(AdmissionError::Network(most)),
            false => Ok(()),
        }
    }

    /// The waiting connection that makes room for a new one of this source, if one must.
    fn who_gives_way(&self, state: &State, source: Source, is_exempt: bool) -> Option<u64> {
        let (network, most) = (source.network(), self.limits.handshakes);
        if !is_exempt && state.addresses.waiting(source) >= most as usize {
            return state.addresses.oldest(source);
        }
        let most = most.saturating_mul(NETWORK_FACTOR);
        if !is_exempt && state.networks.waiting(network) >= most as usize {
            return state.networks.oldest(network);
        }
        let is_full = state.waiting.len() >= self.bounds.waiting;
        if is_full { state.networks.oldest_of_most() } else { None }
    }

    /// Evicts the oldest waiting connection of the source with the most waiting connections; false:
    /// none waits.
    pub(crate) fn make_room(&self) -> bool {
        let mut state = self.state.lock();
        let number = state.networks.oldest_of_most();
        if let Some(number) = number {
            self.evict(&mut state, number);
        }
        self.tell(&state);
        number.is_some()
    }

    fn evict(&self, state: &mut State, number: u64) {
        let Some(source) = state.waiting.get(&number).map(|waiting| waiting.source) else { return };
        let Some(WaitingConnection { evict, .. }) = state.stop_waiting(source, number) else {
            return;
        };
        self.counters.refused(RefusalReason::Evicted);
        if evict.send(()).is_err() {
            tracing::trace!("a connection ended just before its eviction");
        }
    }

    fn failed(&self, source: Source) {
        self.counters.tokens_failed.fetch_add(1, Ordering::Relaxed);
        if source.is_in(&self.limits.exempt) {
            return;
        }
        let (now, most, block) = (clock::now(), self.limits.failed_tokens, self.limits.block);
        let mut state = self.state.lock();
        let mut blocked = state.failures.add(source, now, most, block).then_some(source);
        let network = source.network();
        let most = most.saturating_mul(NETWORK_FACTOR);
        if network != source && state.failures.add(network, now, most, block) {
            blocked = Some(network);
        }
        drop(state);
        if let Some(source) = blocked {
            tracing::warn!(?source, ?block, "too many invalid tokens: the address is blocked");
        }
    }

    fn tell(&self, state: &State) {
        self.counters.waiting.store(state.waiting.len() as u64, Ordering::Relaxed);
        self.counters.sessions_open.store(state.sessions, Ordering::Relaxed);
    }
}

/// The place of a connection. Dropping it releases all its counts.
#[derive(Debug)]
pub(crate) struct Ticket {
    admission: Arc<AdmissionControl>,
    number: u64,
    source: Source,
    logged_in: Mutex<LoggedIn>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum LoggedIn {
    #[default]
    NotYet,
    Yes(Option<Arc<str>>),
    /// The login is valid, but there is no session for it.
    Not(NotIn),
}

impl Ticket {
    /// Records a valid login, of a subject if there is one.
    pub(crate) fn log_in(&self, subject: Option<&str>) -> Result<(), NotIn> {
        let mut logged_in = self.logged_in.lock();
        if matches!(*logged_in, LoggedIn::Yes(_)) {
            return Ok(());
        }
        let admission = &self.admission;
        let mut state = admission.state.lock();
        let bounds = admission.bounds;
        let of_subject = subject.and_then(|s| state.subjects.get(s)).copied().unwrap_or(0);
        let refused = if state.sessions >= bounds.sessions {
            Some((NotIn::Full, RefusalReason::Full))
        } else if of_subject >= bounds.per_subject {
            Some((NotIn::Subject(bounds.per_subject), RefusalReason::Subject))
        } else {
            None
        };
        if let Some((why, counted)) = refused {
            admission.counters.refused(counted);
            *logged_in = LoggedIn::Not(why);
            return Err(why);
        }
        state.stop_waiting(self.source, self.number).ok_or(NotIn::Evicted)?;
        let subject = subject.map(Arc::from);
        if let Some(subject) = &subject {
            *state.subjects.entry(Arc::clone(subject)).or_default() += 1;
        }
        state.sessions += 1;
        *logged_in = LoggedIn::Yes(subject);
        admission.counters.sessions_total.fetch_add(1, Ordering::Relaxed);
        admission.tell(&state);
        Ok(())
    }

    pub(crate) fn is_logged_in(&self) -> bool {
        matches!(*self.logged_in.lock(), LoggedIn::Yes(_))
    }

    pub(crate) fn fail(&self) {
        self.admission.failed(self.source);
    }

    /// Why the connection has no session, although its login is valid.
    pub(crate) fn refusal(&self) -> Option<NotIn> {
        match *self.logged_in.lock() {
            LoggedIn::Not(why) => Some(why),
            LoggedIn::NotYet | LoggedIn::Yes(_) => None,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let logged_in = self.logged_in.lock().clone();
        let mut state = self.admission.state.lock();
        state.waiting.remove(&self.number);
        state.addresses.remove(self.source, self.number);
        state.networks.remove(self.source.network(), self.number);
        if let LoggedIn::Yes(subject) = logged_in {
            state.sessions -= 1;
            if let Some(subject) = subject
                && let Some(count) = state.subjects.get_mut(&subject)
            {
                *count -= 1;
                if *count == 0 {
                    state.subjects.remove(&subject);
                }
            }
        }
        self.admission.tell(&state);
    }
}

#[cfg(test)]
mod tests;
