//! Where a session can be reached: in this process, or at a gateway of another process over what
//! the server puts behind [`RemoteGateway`].

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use actix::dev::SendError;
use actix::{Message, Recipient};

use crate::scene::messages::{FrameBatch, Notice};
use crate::scene::{EntityId, Epoch, RegionId, SessionId, Tick};
use crate::wire::EncodedBatch;

/// Something for a player's session. When the player's mailbox is full the frame is lost and the
/// region is told to resync; a notice waits in the region's outbox.
#[derive(Message, Debug, Clone)]
#[rtype(result = "()")]
pub enum Delivery {
    /// The frame at this index of the batch is for this session.
    Frame(Arc<EncodedBatch>, u32),
    /// News of the entity.
    Notice(Notice),
    /// A region goes on from a checkpoint under a new owner, of this epoch.
    Owner(RegionId, Epoch),
}

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
    Here(Arc<Recipient<Delivery>>),
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

impl From<Recipient<Delivery>> for SessionAddress {
    fn from(to: Recipient<Delivery>) -> Self {
        SessionAddress::Here(Arc::new(to))
    }
}

/// A session of this process, as other processes' regions reach it.
#[derive(Debug, Clone)]
pub struct SessionEntry {
    /// Its entity.
    pub entity: EntityId,
    /// Its mailbox; shared: each copy of a recipient has a place of its own beyond the mailbox's bound.
    pub to: Arc<Recipient<Delivery>>,
    /// Notes a frame that found no room: later frames make no sense without it.
    pub lost: Arc<LostFrames>,
}

/// Of which ticks frames for a session found no room: the first, and the last.
#[derive(Debug, Default)]
pub struct LostFrames(AtomicU64);

/// How a frame stands to those that were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::actor) enum Beside {
    /// It was made before them, or none were lost.
    Before,
    /// It was made among them: even one that tells everything anew is followed by a gap.
    Among,
    /// It was made after them, which are known now.
    After,
}

impl LostFrames {
    /// A frame of this tick found no room.
    pub fn note(&self, tick: Tick) {
        let tick = tick.0 & u64::from(u32::MAX);
        let with = |lost: u64| {
            let (first, last) = (lost >> 32, lost & u64::from(u32::MAX));
            let first = if lost == 0 { tick } else { first.min(tick) };
            Some(first << 32 | last.max(tick))
        };
        // It always gives a value.
        self.0.fetch_update(Relaxed, Relaxed, with).ok();
    }

    /// How a frame of this tick stands to those that were lost.
    pub(in crate::actor) fn beside(&self, tick: Tick) -> Beside {
        let lost = self.0.load(Relaxed);
        let (first, last) = (lost >> 32, lost & u64::from(u32::MAX));
        match tick.0 & u64::from(u32::MAX) {
            tick if lost == 0 || tick < first => Beside::Before,
            tick if tick <= last => Beside::Among,
            // Another one may have been lost in this moment: then it is so with the next frame, too.
            _ => {
                self.0.compare_exchange(lost, 0, Relaxed, Relaxed).ok();
                Beside::After
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_frames_stand_between_earlier_and_later_frames() {
        let lost = LostFrames::default();
        let beside = |tick| lost.beside(Tick(tick));
        assert_eq!(beside(5), Beside::Before);
        [9, 7, 12].into_iter().for_each(|tick| lost.note(Tick(tick)));
        // Those wait in the mailbox yet.
        assert_eq!([beside(5), beside(6)], [Beside::Before; 2]);
        // Some found room between two that did not.
        assert_eq!([beside(8), beside(10), beside(12)], [Beside::Among; 3]);
        assert_eq!([beside(13), beside(14)], [Beside::After, Beside::Before]);
        lost.note(Tick(20));
        assert_eq!(
            [beside(19), beside(21), beside(22)],
            [Beside::Before, Beside::After, Beside::Before]
        );
    }
}
