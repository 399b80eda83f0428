//! The sessions of a process by subject. When a subject has two sessions with different players,
//! one of them yields, wherever in the cluster they are: processes exchange their claims
//! (`node::logins`), and all decide alike by the stamps of the claims.
//!
//! | policy | of two claims | the claim of a session whose client is gone |
//! |---|---|---|
//! | replace | the newer one stands | yields to any newer one |
//! | refuse | the older one stands | yields to any |
//! | allow | there are none | |
//!
//! Two claims of one subject must never both stand once the processes have exchanged them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::Recipient;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use parking_lot::Mutex;
use purview::actor::logins::{Logins, SubjectTaken, Verdict};
use purview::clock;
use purview::scene::{EntityId, SessionId};
use purview::wire::peer::query::{Stamp, SubjectClaim};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// The policy for two sessions of one subject.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Duplicate {
    #[default]
    Replace,
    Refuse,
    Allow,
}

/// How long a session that may be refused waits for other processes.
const ANSWERS: Duration = Duration::from_secs(1);

/// Joins that a subject has at once, where it is one player's.
pub const JOINS_BURST: u32 = 20;

/// Time that pays for another join of a subject.
pub const JOIN_EVERY: Duration = Duration::from_secs(1);

/// Longest time for which new sessions of a subject can be refused.
const BAR_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

#[derive(Debug)]
struct Session {
    subject: String,
    to: Recipient<Verdict>,
    /// Its claim and the claim's number, if it has made one that has not yielded.
    claim: Option<(u64, SubjectClaim)>,
    disconnected: bool,
}

#[derive(Debug, Default)]
struct KnownLogins {
    last: u64,
    /// The newest stamp of any claim that is known, milliseconds.
    newest_ms: u64,
    sessions: BTreeMap<SessionId, Session>,
    of: BTreeMap<String, Vec<SessionId>>,
    barred: BTreeMap<String, Instant>,
    /// When time will have paid for all joins of a subject.
    joined: BTreeMap<String, Instant>,
}

impl KnownLogins {
    fn join(&mut self, subject: &str, now: Instant) -> Result<(), Duration> {
        if self.joined.len() > 2 * self.of.len() + 1_024 {
            self.joined.retain(|_, paid| *paid > now);
        }
        let paid = self.joined.entry(subject.to_owned()).or_insert(now);
        let next = (*paid).max(now) + JOIN_EVERY;
        let wait = next.duration_since(now).saturating_sub(JOIN_EVERY * JOINS_BURST);
        if wait.is_zero() {
            *paid = next;
            return Ok(());
        }
        Err(wait)
    }
}

/// The sessions of a process. Clones share them.
#[derive(Debug, Clone)]
pub struct Subjects(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    duplicate: Duplicate,
    held: Mutex<KnownLogins>,
    /// There is a claim that others do not know.
    news: Notify,
    /// The number up to which other processes know the claims; `None`: there are no others.
    told: watch::Sender<Option<u64>>,
}

impl Inner {
    /// Whether a claim wins against that of a local session.
    fn beats(&self, claim: &SubjectClaim, own: &SubjectClaim, disconnected: bool) -> bool {
        match self.duplicate {
            Duplicate::Allow => false,
            Duplicate::Replace => claim.stamp > own.stamp,
            Duplicate::Refuse => disconnected || claim.stamp < own.stamp,
        }
    }

    /// A claim meets those of this process: sessions whose claims yield are told; the claims that
    /// stand against it are given.
    fn meet(&self, held: &mut KnownLogins, claim: &SubjectClaim) -> Vec<SubjectClaim> {
        held.newest_ms = held.newest_ms.max(claim.stamp.at_ms);
        let sessions = held.of.get(&claim.subject).cloned().unwrap_or_default();
        let mut stand = Vec::new();
        for id in sessions.into_iter().filter(|id| *id != claim.stamp.session) {
            let Some(session) = held.sessions.get_mut(&id) else { continue };
            // Of one player's sessions its region knows which counts.
            let Some((number, own)) = session.claim.take_if(|(_, own)| own.entity != claim.entity)
            else {
                continue;
            };
            if self.beats(claim, &own, session.disconnected) {
                session.to.do_send(Verdict::Yields(number));
            } else {
                stand.push(own.clone());
                session.claim = Some((number, own));
            }
        }
        stand
    }

    fn new_claim(
        &self,
        session: SessionId,
        entity: EntityId,
        now: Duration,
    ) -> Result<u64, SubjectTaken> {
        let mut held = self.held.lock();
        let at_ms = (now.as_millis() as u64).max(held.newest_ms + 1);
        let Some(subject) = held.sessions.get(&session).map(|own| own.subject.clone()) else {
            return Ok(0);
        };
        let claim = SubjectClaim { subject, stamp: Stamp { at_ms, session }, entity };
        if !self.meet(&mut held, &claim).is_empty() {
            return Err(SubjectTaken);
        }
        held.last += 1;
        let number = held.last;
        if let Some(own) = held.sessions.get_mut(&session) {
            (own.claim, own.disconnected) = (Some((number, claim)), false);
        }
        drop(held);
        self.news.notify_one();
        Ok(number)
    }

    /// Whether a session's claim of this number has not yielded.
    fn stands(&self, session: SessionId, number: u64) -> bool {
        let held = self.held.lock();
        let own = held.sessions.get(&session).and_then(|own| own.claim.as_ref());
        own.is_some_and(|(own, _)| *own == number)
    }
}

impl Subjects {
    pub fn new(duplicate: Duplicate) -> Subjects {
        let (held, news) = Default::default();
        Subjects(Arc::new(Inner { duplicate, held, news, told: watch::Sender::new(None) }))
    }

    /// Applies the claims of another process; returns the local claims that win against them.
    pub fn meet(&self, claims: &[SubjectClaim]) -> Vec<SubjectClaim> {
        let mut held = self.0.held.lock();
        claims.iter().flat_map(|claim| self.0.meet(&mut held, claim)).collect()
    }

    /// The claims of this process after this number, at most so many, in their order and each with
    /// its number.
    pub fn claims_after(&self, number: u64, most: usize) -> Vec<(u64, SubjectClaim)> {
        let held = self.0.held.lock();
        let claims = held.sessions.values().filter_map(|session| session.claim.clone());
        let mut claims: Vec<_> = claims.filter(|(n, _)| *n > number).collect();
        claims.sort_unstable_by_key(|(n, _)| *n);
        claims.truncate(most);
        claims
    }

    pub fn last(&self) -> u64 {
        self.0.held.lock().last
    }

    /// Waits for a claim that others do not know.
    pub async fn news(&self) {
        self.0.news.notified().await;
    }

    /// The others know all claims up to this number; `None`: there are no others.
    pub fn set_told(&self, upto: Option<u64>) {
        self.0.told.send_if_modified(|told| std::mem::replace(told, upto) != upto);
    }
}

impl Logins for Subjects {
    fn begin(
        &self,
        session: SessionId,
        subject: &str,
        to: Recipient<Verdict>,
    ) -> Result<(), Duration> {
        let mut held = self.0.held.lock();
        let left = held.barred.get(subject).map(|until| until.duration_since(clock::now()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            return Err(left);
        }
        held.barred.remove(subject);
        let subject = subject.to_owned();
        held.of.entry(subject.clone()).or_default().push(session);
        held.sessions.insert(session, Session { subject, to, claim: None, disconnected: false });
        Ok(())
    }

    fn join(&self, session: SessionId) -> Result<(), Duration> {
        // All players may have one subject.
        if self.0.duplicate == Duplicate::Allow {
            return Ok(());
        }
        let mut held = self.0.held.lock();
        let subject = held.sessions.get(&session).map(|own| own.subject.clone());
        subject.map_or(Ok(()), |subject| held.join(&subject, clock::now()))
    }

    fn end(&self, session: SessionId) {
        let mut held = self.0.held.lock();
        let Some(Session { subject, .. }) = held.sessions.remove(&session) else { return };
        if let Some(all) = held.of.get_mut(&subject) {
            all.retain(|other| *other != session);
            if all.is_empty() {
                held.of.remove(&subject);
            }
        }
    }

    fn disconnected(&self, session: SessionId) {
        if let Some(session) = self.0.held.lock().sessions.get_mut(&session) {
            session.disconnected = true;
        }
    }

    fn claim(
        &self,
        session: SessionId,
        entity: EntityId,
        now: Duration,
    ) -> BoxFuture<'static, Result<u64, SubjectTaken>> {
        if self.0.duplicate == Duplicate::Allow {
            return ready(Ok(0)).boxed();
        }
        let number = match self.0.new_claim(session, entity, now) {
            Ok(number) if self.0.duplicate == Duplicate::Refuse => number,
            made => return ready(made).boxed(),
        };
        let (inner, mut told) = (self.0.clone(), self.0.told.subscribe());
        async move {
            let known = told.wait_for(|told| told.is_none_or(|told| told >= number));
            // Claims of processes that answer late are decided later.
            let _late = tokio::time::timeout(ANSWERS, known).await.is_err();
            if inner.stands(session, number) { Ok(number) } else { Err(SubjectTaken) }
        }
        .boxed()
    }

    fn kick(&self, subject: &str, bar: Option<Duration>) -> usize {
        let (mut held, now) = (self.0.held.lock(), clock::now());
        held.barred.retain(|_, until| *until > now);
        match bar {
            None => {}
            Some(Duration::ZERO) => drop(held.barred.remove(subject)),
            Some(bar) => drop(held.barred.insert(subject.to_owned(), now + bar.min(BAR_MAX))),
        }
        let sessions = held.of.get(subject).into_iter().flatten();
        let sessions = sessions.filter_map(|id| held.sessions.get(id));
        sessions.map(|session| session.to.do_send(Verdict::Kicked)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_joins_so_often_at_once_and_then_once_a_second() {
        let (mut held, start) = (KnownLogins::default(), clock::now());
        for _ in 0..JOINS_BURST {
            held.join("ada", start).unwrap();
        }
        assert_eq!(held.join("ada", start), Err(JOIN_EVERY));
        held.join("bob", start).unwrap();
        let later = start + JOIN_EVERY / 4;
        assert_eq!(held.join("ada", later), Err(JOIN_EVERY * 3 / 4));
        let later = start + JOIN_EVERY;
        held.join("ada", later).unwrap();
        assert!(held.join("ada", later).is_err());
    }

    #[test]
    fn subjects_that_joined_long_ago_take_no_memory() {
        let (mut held, start) = (KnownLogins::default(), clock::now());
        for n in 0..10_000_u64 {
            held.join(&n.to_string(), start + Duration::from_millis(n)).unwrap();
        }
        assert!(held.joined.len() <= 2_048, "{}", held.joined.len());
    }
}
