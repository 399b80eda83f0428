//! What a region wants done. The region's actor delivers each effect in one exhaustive `match`.
//!
//! An effect names a region or a session, never an address: the scene knows neither actors nor sockets.

use bytes::Bytes;

use super::border::{BorderBatch, BorderRoundBatch, Handoff};
use super::frame::FrameBatch;
use super::input::Input;
use super::logic::{CommandId, CommandResult, Sought};
use super::logic_message::Recipients;
use super::order::SceneChange;
use super::session::{Departed, Notice};
use crate::scene::views::{NamedBond, ViewMsg};
use crate::scene::{RegionId, SessionId};

/// What a region wants done.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one in a tick, whose memory is used again")]
pub enum Effect {
    /// Frames for clients.
    Frames(FrameBatch),
    /// Ghosts for a neighbour: replaceable, the next batch after a lost one is a full one.
    Border(RegionId, Box<BorderBatch>),
    /// This region's part of a border round; must arrive.
    BorderRound(RegionId, Box<BorderRoundBatch>),
    /// For a player of another region; must arrive.
    View(RegionId, ViewMsg),
    /// An entity moves to another region; must arrive.
    Handoff(RegionId, Box<Handoff>),
    /// An input for an entity that has moved to another region; must arrive.
    Forward(RegionId, Box<Input>),
    /// A notice for a session.
    Notice(SessionId, Notice),
    /// A player has left for good: its state is to be stored, and then the region to be told so by
    /// `Region::departed`.
    Depart(Box<Departed>),
    /// What has become of a command that a process has given by a call.
    Answer(u64, CommandResult),
    /// A message of the game's logic for a group: every region that may have a member is to be told.
    TellGroup(CommandId, Recipients, Bytes),
    /// Something is to be changed in every region of the scene.
    Scene(CommandId, SceneChange),
    /// No region of the scene has an entity for which there is a command: the region is to be told all
    /// regions that there are, by `Region::search_elsewhere`.
    Locate(Sought),
    /// No player of this subject is in the world: the bonds of the scene's kinds in its record are to become these.
    KeepBonds(CommandId, Box<str>, Vec<NamedBond>),
}
