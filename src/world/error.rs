//! Why a world refuses something.

use crate::scene::properties::{PropertyRefusal, ValueError};
use crate::scene::spec::SpecError;
use crate::scene::{EntityId, Pos};

/// Why a call changed nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WorldError {
    /// The scene breaks its own rules.
    #[error("the scene is not possible: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Scene(Vec<SpecError>),
    /// No entity of the world has this id.
    #[error("there is no entity {0}")]
    UnknownEntity(EntityId),
    /// The scene has no such kind.
    #[error("there is no kind {kind}: the scene has the kinds 0 to {last}")]
    UnknownKind {
        /// The kind asked for.
        kind: u8,
        /// The last kind of the scene.
        last: u8,
    },
    /// A command creates or removes an entity.
    #[error("entities are added by `World::add` and removed by `World::remove`")]
    NotByCommand,
    /// The position is outside the map.
    #[error(
        "{pos:?} is outside the map of {width_cm} cm x {depth_cm} cm and heights within {height_limit_cm} cm of 0"
    )]
    OutOfBounds {
        /// The position asked for.
        pos: Pos,
        /// Size of the map along x, centimetres.
        width_cm: i32,
        /// Size of the map along z, centimetres.
        depth_cm: i32,
        /// How far from height 0 a position may be, centimetres.
        height_limit_cm: i32,
    },
    /// An input of a client is not the next one.
    #[error("input {got} of entity {id} is not the next one: want {want}")]
    WrongSeq {
        /// The player.
        id: EntityId,
        /// The number of the input.
        got: u32,
        /// The number of the next input.
        want: u32,
    },
    /// A property of an entity cannot have a value.
    #[error("{0}")]
    Property(#[from] PropertyRefusal),
    /// The appearance of an entity is too long.
    #[error("an appearance: {0}")]
    Value(#[from] ValueError),
    /// The payload of an action is too long.
    #[error("{what} of {len} bytes is too long: want at most {max}")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// Its length, bytes.
        len: usize,
        /// The limit, bytes.
        max: usize,
    },
    /// The scene has no such kind of bond.
    #[error("bonds of kind {kind:?} are unknown: want one of {kinds:?}")]
    UnknownBondKind {
        /// The kind.
        kind: String,
        /// Those of the scene.
        kinds: Vec<String>,
    },
    /// A player has too many bonds.
    #[error("{count} bonds are too many: want at most {max}")]
    TooManyBonds {
        /// How many.
        count: usize,
        /// The limit.
        max: usize,
    },
}
