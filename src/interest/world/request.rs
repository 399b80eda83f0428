//! What a world is asked to do, and what it answers.

use super::rules::{KindSet, Reach, ReachError};
use crate::scene::Pos;

/// What an entity sees, where it differs from the rules of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Sight {
    /// How far it sees every kind that it observes; `None`: as far as the rules say.
    pub reach: Option<Reach>,
    /// The kinds that it observes; `None`: those that the rules say. A kind that neither `reach`
    /// nor a rule gives a reach for is not observed.
    pub kinds: Option<KindSet>,
}

/// An entity to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entity {
    /// Chosen by the caller; unique among the entities of the world.
    pub id: u64,
    /// Its kind.
    pub kind: u8,
    /// Entities see each other only within a plane.
    pub plane: i32,
    /// Where it is.
    pub pos: Pos,
    /// What it sees.
    pub sight: Sight,
}

/// A change of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Creates an entity.
    Create(Entity),
    /// Moves an entity by any distance.
    Move {
        /// The entity.
        id: u64,
        /// Its new position.
        pos: Pos,
    },
    /// Deletes an entity. Its id may be used again at once, for another entity.
    Delete(u64),
    /// Changes an entity's kind.
    SetKind {
        /// The entity.
        id: u64,
        /// Its new kind.
        kind: u8,
    },
    /// Changes an entity's plane.
    SetPlane {
        /// The entity.
        id: u64,
        /// Its new plane.
        plane: i32,
    },
    /// Changes how far an entity sees; `None`: as far as the rules say.
    SetReach {
        /// The entity.
        id: u64,
        /// Its new reach.
        reach: Option<Reach>,
    },
    /// Changes the kinds that an entity observes; `None`: those that the rules say.
    SetKinds {
        /// The entity.
        id: u64,
        /// The kinds.
        kinds: Option<KindSet>,
    },
    /// Makes an entity a member of a group whose members prefer each other, in a world with a
    /// [`Cap`](super::Cap). It leaves its former group of the same strength.
    SetBond {
        /// The entity.
        id: u64,
        /// The rank among bonds: 0, the strongest, to [`BONDS`] - 1.
        strength: u8,
        /// The group; 0: none.
        group: u64,
    },
}

/// Bonds that an entity can have, each of a strength of its own.
pub const BONDS: usize = 4;

/// Most members of a group of bonded entities.
pub const MOST_BONDED: usize = 100;

impl Request {
    /// The entity that the request is about.
    pub fn id(&self) -> u64 {
        match *self {
            Request::Create(Entity { id, .. }) | Request::Delete(id) => id,
            Request::Move { id, .. }
            | Request::SetKind { id, .. }
            | Request::SetPlane { id, .. }
            | Request::SetReach { id, .. }
            | Request::SetKinds { id, .. }
            | Request::SetBond { id, .. } => id,
        }
    }
}

/// Why a request changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No entity has this id.
    #[error("no entity has the id {0}")]
    Unknown(u64),
    /// An entity with this id exists.
    #[error("an entity with the id {0} exists")]
    Duplicate(u64),
    /// The position is not on the ground.
    #[error("entity {id}: ({}, {}) is not on the ground", pos.x, pos.z)]
    OutOfBounds {
        /// The entity.
        id: u64,
        /// The position.
        pos: Pos,
    },
    /// The reach is not legal.
    #[error("entity {id}: {why}")]
    Reach {
        /// The entity.
        id: u64,
        /// What is wrong with it.
        why: ReachError,
    },
    /// Too many different combinations of kind and [`Sight`] are in use.
    #[error("entity {0}: {most} combinations of kind and sight are in use", most = MOST_CLASSES)]
    TooManyClasses(u64),
    /// The world has as many entities as slots.
    #[error("entity {0}: the world is full: it has {most} entities", most = MOST_ENTITIES)]
    Full(u64),
    /// Bonds rank lists, and the world has none.
    #[error("entity {0}: the world has no cap, so that bonds have no meaning")]
    NoCap(u64),
    /// No bond has this strength.
    #[error("entity {id}: a bond of strength {strength}; 0 to 3 is legal")]
    Strength {
        /// The entity.
        id: u64,
        /// The strength.
        strength: u8,
    },
    /// A group has as many members as it may have.
    #[error("entity {id}: group {group} has {most} members", most = MOST_BONDED)]
    GroupFull {
        /// The entity.
        id: u64,
        /// The group.
        group: u64,
    },
}

impl RequestError {
    /// The entity that the request was about.
    pub fn id(&self) -> u64 {
        match *self {
            RequestError::Unknown(id)
            | RequestError::Duplicate(id)
            | RequestError::OutOfBounds { id, .. }
            | RequestError::Reach { id, .. }
            | RequestError::TooManyClasses(id)
            | RequestError::Full(id)
            | RequestError::NoCap(id)
            | RequestError::Strength { id, .. }
            | RequestError::GroupFull { id, .. } => id,
        }
    }
}

/// Most combinations of kind and [`Sight`] that may be in use in a world.
pub const MOST_CLASSES: usize = 4_096;

/// Most entities of a world.
pub const MOST_ENTITIES: usize = 1 << 28;

/// A change of what an observer sees. Events sort by observer, then by subject; where an id was
/// used again within a tick, the old entity disappears before the new one appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Event {
    /// The entity that sees.
    pub observer: u64,
    /// The entity that is seen.
    pub subject: u64,
    /// Whether the subject appears; otherwise it disappears.
    pub appears: bool,
}

/// Where a subject is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The subject.
    pub id: u64,
    /// Its position at the end of the tick.
    pub pos: Pos,
}
