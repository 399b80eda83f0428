//! What a region is told, by clients, by the game's logic, by other regions and by sessions.
//!
//! The region's actor hands every input to `Region::handle`. The set is closed: a new kind of input is a
//! new variant, and the compiler names every place that must know it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::border::{BorderBatch, BorderRoundBatch, Claim, Claims, Handoff, MapNews, Recovered};
use super::logic::{Command, CommandId, CommandResult, Locate, SentCommand};
use super::logic_message::GroupMessage;
use super::order::SceneOrder;
use super::order::{Order, Spawn};
use super::session::{Presented, Resume};
use crate::scene::views::{Bond, ViewMsg};
use crate::scene::{EntityHandle, EntityId, RegionId, Seq, SessionId, SubjectHash, Tick};

/// What a region is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Input {
    /// Add an entity. Takes effect at the end of the tick's moves.
    Enter(Box<Spawn>),
    /// Remove an entity. A session that leaves sends [`Input::Disconnected`] instead.
    Leave(EntityId),
    /// A numbered input of a player's client. The region applies it only if its number is the last one
    /// plus one. An older input is dropped, and a newer one waits to be sent again.
    Client {
        /// The player's entity.
        id: EntityId,
        /// The session of the client; an input of any other session than the player's is dropped.
        session: SessionId,
        /// The input's number.
        seq: Seq,
        /// What to do.
        order: Order,
        /// As the region's last frame for the session says.
        #[serde(default)]
        handle: EntityHandle,
    },
    /// Set a player's bonds (at most [`MAX_BONDS`](crate::scene::views::MAX_BONDS); the rest is ignored).
    Bonds {
        /// The player.
        id: EntityId,
        /// All its bonds.
        bonds: Vec<Bond>,
    },
    /// A message of the game logic for a player's client.
    Tell {
        /// The player.
        id: EntityId,
        /// What it says; at most [`MAX_MESSAGE_BYTES`](super::logic_message::MAX_MESSAGE_BYTES).
        payload: Bytes,
    },
    /// A message of the game logic for a group, a plane or a scene. Every region that may have a member is
    /// told.
    Group(Box<GroupMessage>),
    /// The client reads too slowly: send it no frames until [`Input::Release`]. What changes
    /// meanwhile is merged to the latest state.
    Hold {
        /// The player.
        id: EntityId,
        /// The session of the client.
        session: SessionId,
    },
    /// The client has caught up.
    Release {
        /// The player.
        id: EntityId,
        /// The session of the client.
        session: SessionId,
    },
    /// Frames were lost: the next one tells the client everything anew.
    Resync {
        /// The player.
        id: EntityId,
        /// The session of the client.
        session: SessionId,
        /// The tick of the last frame that the client was sent; 0: not known.
        told: Tick,
        /// The number of the session's question, which may come twice; 0: it is no question of the session's.
        question: u32,
    },
    /// A neighbour's ghosts of a tick.
    Border(Box<BorderBatch>),
    /// A neighbour has missed a batch of this region, or may have: send it a full batch.
    BorderLost(RegionId),
    /// A neighbour's part of a border round.
    BorderRound(Box<BorderRoundBatch>),
    /// A view message from a player of another region, outside of border rounds.
    View(ViewMsg),
    /// An entity comes to live here.
    Handoff(Box<Handoff>),
    /// A session presents its player, because the player's region continues from a checkpoint. The shell
    /// adds the session's address.
    Present(Box<Presented>),
    /// A player's client is gone. The player leaves when its grace period, the scene's linger time and the hold of
    /// the game's logic are over. Until then other players notice nothing.
    Disconnected {
        /// The player.
        id: EntityId,
        /// The session; if the player has another session by now, nothing happens.
        session: SessionId,
        /// The grace period, milliseconds; 0: none, or it is over.
        ms: u32,
    },
    /// An operator has ended the session: the player leaves now, whatever holds it.
    Kicked {
        /// The player.
        id: EntityId,
        /// The session; if the player has another session by now, nothing happens.
        session: SessionId,
    },
    /// A player's client has come back. The shell adds the session's address.
    Resume(Resume),
    /// A session has presented its player here, and has learned since that the player lives
    /// elsewhere under a higher epoch: two regions between which the player walked have died, and
    /// cannot tell each other.
    Elsewhere {
        /// Where the player lives.
        claim: Claim,
        /// The session.
        session: SessionId,
        /// Whose the session is.
        subject: SubjectHash,
    },
    /// A region continues from a checkpoint. Every region is told.
    Recovered(Box<Recovered>),
    /// Where entities live that this region may believe to have.
    Claims(Box<Claims>),
    /// Another region's step in a layout change.
    Map(Box<MapNews>),
    /// A change of what all regions of the scene have in common. Every one is told.
    Scene(SceneOrder),
    /// A command of the game's logic of another region, or of a call; its result is told.
    Command(Box<SentCommand>),
    /// Where an entity lives for which there is a command.
    Locate(Locate),
    /// What has become of a command of this region's logic.
    CommandResult(CommandResult),
}

impl From<SentCommand> for Input {
    fn from(sent: SentCommand) -> Input {
        Input::Command(Box::new(sent))
    }
}

impl Input {
    /// A command of a call: the region that applies or refuses it tells what has become of `id`.
    pub fn command(id: CommandId, command: Command) -> Input {
        SentCommand { id, command, searches: 0, after: None }.into()
    }

    /// The player that a session presents.
    pub fn presented(&self) -> Option<EntityId> {
        match self {
            Input::Present(presented) => Some(presented.id),
            _ => None,
        }
    }

    /// The session in whose name the input is sent; `None`: no session sends this input.
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Input::Enter(spawn) => spawn.session,
            Input::Present(presented) => Some(presented.session),
            Input::Resume(resume) => Some(resume.session),
            Input::Client { session, .. }
            | Input::Hold { session, .. }
            | Input::Release { session, .. }
            | Input::Resync { session, .. }
            | Input::Disconnected { session, .. }
            | Input::Kicked { session, .. }
            | Input::Elsewhere { session, .. } => Some(*session),
            Input::Leave(_)
            | Input::Bonds { .. }
            | Input::Tell { .. }
            | Input::Group(_)
            | Input::Border(_)
            | Input::BorderLost(_)
            | Input::BorderRound(_)
            | Input::View(_)
            | Input::Handoff(_)
            | Input::Recovered(_)
            | Input::Claims(_)
            | Input::Map(_)
            | Input::Scene(_)
            | Input::Command(_)
            | Input::Locate(_)
            | Input::CommandResult(_) => None,
        }
    }

    /// The entity that the input is for, if the input may follow the entity to another region.
    pub fn entity(&self) -> Option<EntityId> {
        match self {
            Input::Leave(id)
            | Input::Client { id, .. }
            | Input::Hold { id, .. }
            | Input::Release { id, .. }
            | Input::Resync { id, .. }
            | Input::Bonds { id, .. }
            | Input::Tell { id, .. }
            | Input::Disconnected { id, .. }
            | Input::Kicked { id, .. }
            | Input::Resume(Resume { id, .. }) => Some(*id),
            Input::Command(sent) => sent.command.entity(),
            Input::Enter(_)
            | Input::Group(_)
            | Input::Border(_)
            | Input::BorderLost(_)
            | Input::BorderRound(_)
            | Input::View(_)
            | Input::Handoff(_)
            | Input::Present(_)
            | Input::Elsewhere { .. }
            | Input::Recovered(_)
            | Input::Claims(_)
            | Input::Map(_)
            | Input::Scene(_)
            | Input::Locate(_)
            | Input::CommandResult(_) => None,
        }
    }
}
