//! Where a region can be reached: in this process, or in another one over what the server puts
//! behind [`RemoteRegion`].

use std::fmt::Debug;
use std::sync::Arc;

use actix::dev::SendError;
use actix::{Message, Recipient};

use super::session::SessionAddress;
use crate::scene::messages::Input;
use crate::wire::peer::Mark;

/// Something for a region. When the region's mailbox is full: a client's input stays in the
/// player's buffer of unacknowledged inputs and is sent again; ghosts are replaced by a full batch
/// later; negotiation and handoffs wait in the sender's outbox, and handoffs are never dropped; an order
/// about a door waits for room.
#[derive(Message, Debug)]
#[rtype(result = "()")]
pub struct ToRegion {
    /// The input.
    pub input: Input,
    /// With [`Input::Enter`], [`Input::Handoff`], [`Input::Present`] and [`Input::Resume`] of a player:
    /// where its session's deliveries go.
    pub client: Option<SessionAddress>,
}

impl Message for Mark {
    type Result = ();
}

/// A region of another process. What it takes arrives, in order and once, or is given back to the
/// server when that process is no more.
pub trait RemoteRegion: Debug + Send + Sync {
    /// Takes a message.
    ///
    /// # Errors
    /// `Full` when too much is under way to that process, `Closed` when the process is no more.
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    fn try_send(&self, msg: ToRegion) -> Result<(), SendError<ToRegion>>;

    /// Takes what comes by the old way for a region that has moved there.
    ///
    /// # Errors
    /// As [`RemoteRegion::try_send`].
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    fn pass_on(&self, passing: Passing) -> Result<(), SendError<Passing>>;

    /// Whether this is only where one waits for the region.
    fn is_waiting(&self) -> bool {
        false
    }

    /// The process where it is; `None`: it is not known.
    fn process(&self) -> Option<u64> {
        None
    }
}

/// What comes by the old way to a region that has moved.
#[derive(Debug)]
pub enum Passing {
    /// Something for the region.
    Message(ToRegion),
    /// A sender says nothing more by this way.
    Mark(Mark),
}

/// Where a region can be reached.
#[derive(Debug, Clone)]
pub enum RegionAddress {
    /// In this process. Shared: each copy of a recipient has a place of its own beyond the mailbox's
    /// bound.
    Here(Arc<Recipient<ToRegion>>),
    /// In another one.
    Remote(Arc<dyn RemoteRegion>),
}

impl RegionAddress {
    /// Sends without waiting.
    ///
    /// # Errors
    /// `Full` when there is no room for it now, `Closed` when the region is no more; the message is
    /// given back.
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    pub fn try_send(&self, msg: ToRegion) -> Result<(), SendError<ToRegion>> {
        match self {
            RegionAddress::Here(region) => region.try_send(msg),
            RegionAddress::Remote(region) => region.try_send(msg),
        }
    }

    /// Sends as soon as there is room; true when it was sent, false when the region is no more.
    pub async fn send(&self, mut msg: ToRegion) -> bool {
        match self {
            RegionAddress::Here(region) => region.send(msg).await.is_ok(),
            RegionAddress::Remote(region) => loop {
                msg = match region.try_send(msg) {
                    Ok(()) => return true,
                    Err(SendError::Closed(_)) => return false,
                    Err(SendError::Full(msg)) => msg,
                };
                actix_rt::time::sleep(std::time::Duration::from_millis(5)).await;
            },
        }
    }
}

impl From<Recipient<ToRegion>> for RegionAddress {
    fn from(region: Recipient<ToRegion>) -> Self {
        RegionAddress::Here(Arc::new(region))
    }
}
