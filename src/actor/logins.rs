//! Sessions by the subjects that their tokens name: what a session asks the registry of all sessions, and
//! what the registry tells it. A session claims its subject when it joins or comes back for a player.

use std::fmt::Debug;
use std::time::Duration;

use actix::{Message, Recipient};
use futures::future::BoxFuture;

use crate::scene::{EntityId, SessionId};

/// What a session is told.
#[derive(Message, Debug, Clone, Copy, PartialEq, Eq)]
#[rtype(result = "()")]
pub enum Verdict {
    /// Its claim of this number yields to the claim of another session of the subject.
    Yields(u64),
    /// An operator ends it.
    Kicked,
}

/// Another session of the subject holds the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubjectTaken;

/// Knows the sessions of a cluster by their subjects.
pub trait Logins: Debug + Send + Sync {
    /// A session begins.
    ///
    /// # Errors
    /// The subject is barred for this long: the session must end.
    fn begin(
        &self,
        session: SessionId,
        subject: &str,
        to: Recipient<Verdict>,
    ) -> Result<(), Duration>;

    /// A session is about to ask for a new player.
    ///
    /// # Errors
    /// The subject has joined too often of late: it may again after this time.
    fn join(&self, session: SessionId) -> Result<(), Duration>;

    /// A session ends.
    fn end(&self, session: SessionId);

    /// A session's client is disconnected, and its player stays for a while.
    fn disconnected(&self, session: SessionId);

    /// A session claims its subject for a player, at this time of the cluster's clock; the claim's
    /// number, once the session may go on. It may yield later.
    ///
    /// # Errors
    /// [`SubjectTaken`]: it claims nothing.
    fn claim(
        &self,
        session: SessionId,
        entity: EntityId,
        now: Duration,
    ) -> BoxFuture<'static, Result<u64, SubjectTaken>>;

    /// Ends all sessions of a subject in this process, and lets none begin for so long; zero: they may begin
    /// again at once. Returns how many were ended.
    fn kick(&self, subject: &str, bar: Option<Duration>) -> usize;
}
