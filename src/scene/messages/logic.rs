//! What a region tells the game's logic, and what the logic wants done.
//!
//! The region calls the logic inside its tick with the events since the last call, in order, and applies the
//! commands at once. A command for an entity of another region travels there as a [`SentCommand`], and its result
//! comes back as a [`CommandResult`]. Both sets are closed.

mod entries;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use self::entries::{After, Asked, Mark, Sight, Taken};
use super::frame::Refusal;
use super::logic_message::{MAX_MESSAGE_BYTES, Recipients};
use super::order::{EntityAction, Motion, Order, Spawn, Speaker};
#[cfg(doc)]
use crate::scene::account::SUBJECT_MAX;
use crate::scene::spec::WatchSpec;
use crate::scene::views::{MAX_BONDS, MAX_RELATIONS, NamedBond, Relation};
use crate::scene::{EntityId, Epoch, Kind, Plane, Pos, RegionId, Tick};

/// Why an entity lives in a region from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnterCause {
    /// Logic has created it.
    Spawned,
    /// Its client has joined.
    Joined,
    /// It has come from this region, where it lived until this tick, by walking or by a change of the layout.
    HandedOff(RegionId, Tick),
    /// It has come from this region, where it lived until this tick, by a teleport.
    Teleported(RegionId, Tick),
    /// Its region has died, and it goes on from what a checkpoint or its session knows.
    Recovered,
}

/// Why an entity does not live in a region any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveCause {
    /// Logic has removed it.
    Despawned,
    /// Its client has left.
    Left,
    /// Its client was gone for longer than the grace period, and for longer than the scene and logic let it stay.
    Expired,
    /// It lives in this region now.
    HandedOff(RegionId),
    /// It turned out to live elsewhere, after the death of a region.
    Displaced,
}

impl LeaveCause {
    /// Whether the entity lives nowhere any more.
    pub fn is_final(self) -> bool {
        match self {
            LeaveCause::Despawned | LeaveCause::Left | LeaveCause::Expired => true,
            LeaveCause::HandedOff(_) | LeaveCause::Displaced => false,
        }
    }
}

/// What has happened in a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogicEvent {
    /// The logic of this region begins: always the first event. What lives here already says the region itself.
    Started {
        /// The region.
        region: RegionId,
        /// The epoch under which it acts.
        epoch: Epoch,
    },
    /// An entity lives here from now on.
    Entered {
        /// The entity.
        id: EntityId,
        /// Why.
        cause: EnterCause,
    },
    /// An entity that lives here has teleported within the region's ground; its plane may be another one.
    Arrived {
        /// The entity.
        id: EntityId,
    },
    /// An entity does not live here any more.
    Left {
        /// The entity.
        id: EntityId,
        /// Its kind.
        kind: Kind,
        /// Where it was.
        place: (Plane, Pos),
        /// Why.
        cause: LeaveCause,
    },
    /// An entity that watches has another one in its radius, which may be a ghost.
    Sighted {
        /// The entity that watches. It lives here.
        watcher: EntityId,
        /// The other one.
        id: EntityId,
    },
    /// An entity that watches has another one no more in its radius, or that one is gone.
    Lost {
        /// The entity that watches. It lives here.
        watcher: EntityId,
        /// The other one.
        id: EntityId,
    },
    /// An entity that lives here acts.
    Acted {
        /// The entity.
        id: EntityId,
        /// Who speaks.
        by: Speaker,
        /// The payload.
        payload: Bytes,
        /// The player at which the action is aimed.
        aim: Option<EntityId>,
    },
    /// A player's client is gone. The player stays until it `Left`, or its client has `Resumed`: by another connection,
    /// or by another login.
    Disconnected {
        /// The player.
        id: EntityId,
    },
    /// A player's client has come back.
    Resumed {
        /// The player.
        id: EntityId,
    },
    /// A command for an entity of another region was applied there, and the death of no process undoes that. Of
    /// commands that this region applies itself only refusals are told.
    Done {
        /// The command's number.
        command: u64,
    },
    /// A command was refused and has changed nothing, except where [`CommandError::Unanswered`] says that this is
    /// not known.
    Refused {
        /// The command's number.
        command: u64,
        /// For which batch of a worker it was given.
        asked: Option<Asked>,
        /// Why.
        why: CommandError,
    },
}

/// Why a command was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum CommandError {
    /// The entity lives nowhere in the scene.
    #[error("entity {0} lives in no region of the scene")]
    Unknown(EntityId),
    /// The id is in use.
    #[error("entity {0} exists already")]
    InUse(EntityId),
    /// There is no id left for a new entity.
    #[error("the process has used all of its ids for entities: start it anew")]
    NoIds,
    /// The scene has no such kind.
    #[error("kind {0} is none of the scene's")]
    UnknownKind(Kind),
    /// The position lies outside the scene, or on the plane of entities that are between scenes.
    #[error("the place lies outside the scene")]
    OutOfBounds,
    /// The properties are not those of the kind.
    #[error("the properties do not fit the kind")]
    Properties,
    /// The kind of the entity does not watch, so that its rules cannot be set.
    #[error("the kind of entity {0} does not watch")]
    WatchesNot(EntityId),
    /// The radius is not legal.
    #[error(
        "the enter radius must be above 0 and at most the leave radius, which must be at most {most_cm} cm"
    )]
    WatchRadius {
        /// The longest leave radius of the scene's kinds, centimetres.
        most_cm: i32,
    },
    /// Several rules name the kind.
    #[error("kind {0} is watched by several rules")]
    WatchedTwice(Kind),
    /// The order was refused.
    #[error("the order was refused: {0:?}")]
    Order(Refusal),
    /// No player of the subject plays; where bonds are to be set, there is no record of one either.
    #[error("no player of this subject is known")]
    NoSubject,
    /// The command cannot be given by subject.
    #[error(
        "by subject a player's bonds can be set, and it can be held or kicked: name the entity"
    )]
    NotBySubject,
    /// The entity is no player, so that it has no client and no bonds.
    #[error("entity {0} is no player")]
    NoPlayer(EntityId),
    /// A message is too long.
    #[error("a message of {0} bytes is too long: at most {MAX_MESSAGE_BYTES} are allowed")]
    TooLong(usize),
    /// A player has too many bonds.
    #[error("{0} bonds are too many: at most {MAX_BONDS} are allowed")]
    TooManyBonds(usize),
    /// A player cannot be held for so long, milliseconds.
    #[error("{0} ms are too long: a player can be held for at most {MAX_HOLD_MS} ms")]
    HeldTooLong(u32),
    /// The scene's map has no such door, or the plane is that of entities between scenes.
    #[error("the scene has no such door")]
    NoDoor,
    /// The scene has no bonds of this kind.
    #[error("the scene has no bonds of this kind: `bonds.kinds` names them")]
    NoBondKind,
    /// A group was named twice.
    #[error("a group has no relation to itself: name two groups")]
    OneGroup,
    /// The table is full.
    #[error("a scene has at most {MAX_RELATIONS} relations: make some neutral")]
    TooManyRelations,
    /// There is no scene of this name, or the place lies outside it.
    #[error("there is no such place in a scene of this name")]
    NoPlace,
    /// Too much waits for the region, or not every region could say in time whether the entity lives there. The
    /// command may be given again.
    #[error("the region of the entity cannot be told now; try again")]
    Busy,
    /// Some regions of the scene could not be told. All others were told.
    #[error("some regions could not be told; the others were told")]
    Missed,
    /// No answer has come within [`UNANSWERED_TICKS`] to a message, to an order for the scene, or to a call. It may have
    /// been carried out.
    #[error("there was no answer; the command may have been applied")]
    Unanswered,
    /// The entity does not live in the region under the epoch that the command names: it has gone elsewhere, or went on
    /// after a death.
    #[error("entity {0} does not live in the region under this epoch any more: look again")]
    NotAsTold(EntityId),
    /// A command together with which it was to be done was refused.
    #[error("a command together with which it was to be done was refused")]
    NotTogether,
}

/// For how many ticks the answer to a message, or to an order for the scene, is waited for.
pub const UNANSWERED_TICKS: u64 = 100;

/// Longest time for which logic can hold a player, and longest linger time of a scene, milliseconds.
pub const MAX_HOLD_MS: u32 = 3_600_000;

/// What the game's logic wants done. A command for an entity of another region goes to that region; its result comes
/// back as [`LogicEvent::Done`] or [`LogicEvent::Refused`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Create an entity. It lives here from the end of the tick's moves on.
    Spawn(Box<Spawn>),
    /// Remove an entity.
    Despawn(EntityId),
    /// Place, turn, teleport or act, or set a property.
    Order(EntityId, Order),
    /// Let an entity walk, or set its speed, where moves are judged.
    Motion(EntityId, Motion),
    /// Let an entity watch by other rules than its kind; none: let it watch nothing.
    Watch(EntityId, Vec<WatchSpec>),
    /// Show a player what is no player only within so many centimetres on the ground, and within its sight; `None`:
    /// its sight alone counts again.
    Sight(EntityId, Option<u32>),
    /// Set a player's bonds of the kinds that the scene has. They stay with the player: over logins, scenes and the
    /// death of a region.
    Bonds(EntityId, Vec<NamedBond>),
    /// Tell a player's client something, at most [`MAX_MESSAGE_BYTES`].
    Tell(EntityId, Bytes),
    /// Tell all clients of a bond, a plane or a scene something, in every region.
    TellGroup(Recipients, Bytes),
    /// Open (true) or close a door of the map in one plane, by its name.
    Door(Plane, String, bool),
    /// Put a plane back to how the map and the configuration have it, its doors and what it contains: for an
    /// instance that has ended.
    ResetPlane(Plane),
    /// Let two groups of a kind of bonds be allies, neutral or enemies, in the whole scene.
    Relate(String, [u64; 2], Relation),
    /// End a player's session; the player leaves at once, whatever holds it.
    Kick(EntityId),
    /// Let a player stay for so many milliseconds from now, at most [`MAX_HOLD_MS`], even if its client goes. A
    /// longer hold stays in force; 0 ends it.
    Hold(EntityId, u32),
    /// Do this with the player of a subject, wherever it plays: [`Command::Bonds`], [`Command::Hold`] or
    /// [`Command::Kick`], whose entity does not count. Bonds of a player that does not play are kept for it.
    OfSubject(Box<str>, Box<Command>),
}

impl Command {
    /// Whether the command can be given by subject.
    pub fn is_by_subject(&self) -> bool {
        matches!(self, Command::Bonds(..) | Command::Hold(..) | Command::Kick(_))
    }

    /// A command that was given by subject, for its player.
    pub fn of_player(self, id: EntityId) -> Command {
        match self {
            Command::Bonds(_, bonds) => Command::Bonds(id, bonds),
            Command::Hold(_, ms) => Command::Hold(id, ms),
            Command::Kick(_) => Command::Kick(id),
            other => other,
        }
    }

    /// What the regions are asked for, if the entity of the command does not live here.
    pub fn sought(&self) -> Option<Sought> {
        match self {
            Command::OfSubject(subject, _) => Some(Sought::Subject(subject.clone())),
            command => command.entity().map(Sought::Entity),
        }
    }

    /// An action of an entity, by logic.
    pub fn act(id: EntityId, payload: impl Into<Bytes>) -> Command {
        Command::Order(id, Order::Act(EntityAction::new(payload)))
    }

    /// Whether the command creates an entity on this plane.
    pub fn spawns_on(&self, plane: Plane) -> bool {
        matches!(self, Command::Spawn(spawn) if spawn.plane == plane)
    }

    /// The entity that is to live in the region that applies the command; `None`: any region applies it.
    pub fn entity(&self) -> Option<EntityId> {
        match self {
            Command::Despawn(id)
            | Command::Order(id, _)
            | Command::Motion(id, _)
            | Command::Watch(id, _)
            | Command::Sight(id, _)
            | Command::Bonds(id, _)
            | Command::Tell(id, _)
            | Command::Hold(id, _)
            | Command::Kick(id) => Some(*id),
            Command::Spawn(_)
            | Command::TellGroup(..)
            | Command::Door(..)
            | Command::ResetPlane(_)
            | Command::OfSubject(..)
            | Command::Relate(..) => None,
        }
    }
}

/// Where the result of a command goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asker {
    /// To a region, whose logic gave it under this epoch.
    Logic(RegionId, Epoch),
    /// To a process of the cluster, by its number, which has called.
    Process(u64),
}

/// Names a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandId {
    /// Where its result goes.
    pub from: Asker,
    /// The number that it has there.
    pub number: u64,
}

/// A command on its way to the region of its entity. The region that applies or refuses it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentCommand {
    /// Its name.
    pub id: CommandId,
    /// What is to be done.
    pub command: Command,
    /// How often all regions were asked where the entity lives.
    pub searches: u8,
    /// Of an entry of an outbox, which may come again; `None`: a call, which comes once.
    pub after: Option<After>,
}

/// What regions ask each other for: the entity of a command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Sought {
    /// An entity.
    Entity(EntityId),
    /// The player of a subject, at most [`SUBJECT_MAX`] bytes.
    Subject(Box<str>),
}

/// An entity, and where it lives as far as a region knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The entity.
    pub id: EntityId,
    /// The region.
    pub region: RegionId,
}

/// Regions ask each other where an entity lives for which there is a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Locate {
    /// Does the entity live there?
    Asked {
        /// The entity.
        sought: Sought,
        /// The region that asks.
        by: RegionId,
    },
    /// The answer.
    Told {
        /// The entity.
        sought: Sought,
        /// The region that answers.
        from: RegionId,
        /// Where the entity lives as far as that region knows: there, or where that has sent the entity.
        lives: Option<Found>,
    },
}

/// What has become of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandResult {
    /// Its name.
    pub id: CommandId,
    /// Applied, or why not.
    pub result: Result<(), CommandError>,
}

/// What the game's logic has to do with an entity: what it watches, what it has in its radius, which commands of other
/// regions it has taken, and how far it is shown others. Part of its state.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct WatchState {
    /// Its own rules, in place of its kind's.
    pub own: Option<Vec<WatchSpec>>,
    /// The entities in its radius, in the order of their ids.
    pub sighted: Vec<EntityId>,
    /// The last commands of other regions' logic.
    pub taken: Taken,
    /// A player is shown what is no player only within so many centimetres.
    pub sight_cm: Option<u32>,
}
