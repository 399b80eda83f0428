//! Messages of the game's logic to clients: to one player, to a group wherever its members are, or to a
//! plane or a scene.
//!
//! A message is an event: a client is told it once, in the order in which its sender sent it. Messages for
//! groups go to every region; their ids keep a player that changes the region meanwhile from being told
//! twice.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::scene::views::NamedBond;
use crate::scene::{Plane, SceneId};

/// Most bytes of a message.
pub const MAX_MESSAGE_BYTES: usize = 1_024;

/// Names a message for a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MessageId {
    /// The sender: a process, in one of its lives.
    pub sender: u64,
    /// How many it had sent before.
    pub number: u64,
}

/// For whom a message is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Recipients {
    /// All players with this bond, in every scene.
    Bond(NamedBond),
    /// All players in a plane of a scene.
    Plane(SceneId, Plane),
    /// All players in a scene.
    Scene(SceneId),
}

/// A message for a group. Every region that may have a member is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMessage {
    /// Its name.
    pub id: MessageId,
    /// For whom it is.
    pub to: Recipients,
    /// What it says; opaque, at most [`MAX_MESSAGE_BYTES`].
    pub payload: Bytes,
    /// When it was sent, milliseconds of the cluster's clock.
    pub sent_ms: u64,
}

/// How a message came to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageKind {
    /// To this player alone.
    Tell,
    /// To all who share a bond.
    Bond,
    /// To a plane or a scene.
    Announcement,
}

impl Recipients {
    /// How a message for these comes to a client.
    pub fn kind(&self) -> MessageKind {
        match self {
            Recipients::Bond(_) => MessageKind::Bond,
            Recipients::Plane(..) | Recipients::Scene(_) => MessageKind::Announcement,
        }
    }
}

/// A message as a client is told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogicMessage {
    /// How it came.
    pub kind: MessageKind,
    /// What it says.
    pub payload: Bytes,
}
