//! Where a session can be reached: in this process, or at a gateway of another process over what
//! the server puts behind [`RemoteGateway`].

use std::fmt::Debug;
use std::sync::Arc;

use actix::dev::SendError;

use super::delivery::Delivery;
use super::thread::LocalSession;
use crate::scene::messages::{FrameBatch, Notice};
use crate::scene::{EntityId, RegionId, SessionId};

/// A gateway of another process: the sessions that it holds.
pub trait RemoteGateway: Debug + Send + Sync {
    /// The process's number; see [`Directory::process`](crate::actor::directory::Directory::process).
    fn process(&self) -> u64;

    /// Takes the frames of the sessions at these places of [`FrameBatch::sessions`].
    ///
    /// # Errors
    /// `Full` when too much is under way to that process: none of the frames will be shown.
    fn frames(&self, from: RegionId, batch: &FrameBatch, which: &[u32]) -> Result<(), RemoteError>;

    /// Takes news of the entity of one session.
    ///
    /// # Errors
    /// As [`RemoteGateway::frames`].
    fn notice(&self, session: SessionId, notice: &Notice) -> Result<(), RemoteError>;

    /// Whether the process is there, and has not said that this session is no more.
    fn connected(&self, session: SessionId) -> bool;
}

/// Why a gateway takes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// Too much is under way to it.
    #[error("the channel to the gateway is full")]
    Full,
    /// Its process is no more.
    #[error("the gateway's process has ended")]
    Closed,
}

/// Where a session can be reached.
#[derive(Debug, Clone)]
pub enum SessionAddress {
    /// In this process.
    Here(LocalSession),
    /// At a gateway of another one.
    Remote(Arc<dyn RemoteGateway>),
}

impl SessionAddress {
    /// Tells news of its entity.
    ///
    /// # Errors
    /// `Full` when there is no room for it now, `Closed` when the session is no more.
    pub fn notice(&self, session: SessionId, notice: Notice) -> Result<(), SendError<Notice>> {
        match self {
            SessionAddress::Here(to) => {
                to.try_send(Delivery::Notice(notice.clone())).map_err(|e| match e {
                    SendError::Full(_) => SendError::Full(notice),
                    SendError::Closed(_) => SendError::Closed(notice),
                })
            }
            SessionAddress::Remote(gateway) => {
                gateway.notice(session, &notice).map_err(|e| match e {
                    RemoteError::Full => SendError::Full(notice),
                    RemoteError::Closed => SendError::Closed(notice),
                })
            }
        }
    }

    /// Whether a session is still there.
    pub fn connected(&self, session: SessionId) -> bool {
        match self {
            SessionAddress::Here(to) => to.connected(),
            SessionAddress::Remote(gateway) => gateway.connected(session),
        }
    }
}

impl From<LocalSession> for SessionAddress {
    fn from(to: LocalSession) -> Self {
        SessionAddress::Here(to)
    }
}

/// A session of this process, as other processes' regions reach it.
#[derive(Debug, Clone)]
pub struct SessionEntry {
    /// Its entity.
    pub entity: EntityId,
    /// Where it is reached.
    pub to: LocalSession,
}
