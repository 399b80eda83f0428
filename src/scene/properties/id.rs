//! How a property is named, and why one is not set.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Most bytes of all values of one entity.
pub const MAX_ENTITY_BYTES: usize = 4_096;

/// Most properties of a kind: ids go from 0 to 63.
pub const MAX_PROPERTIES: usize = 64;

/// Every kind's property 0, which [`Schema::of`](super::Schema::of) adds where a kind does not declare it.
pub const APPEARANCE: PropertyId = PropertyId(0);

/// A property's number within its kind, below [`MAX_PROPERTIES`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct PropertyId(pub u8);

impl fmt::Display for PropertyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a property was not set. Nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum PropertyRefusal {
    /// The kind has no property of this number.
    #[error("the entity's kind has no property {0}")]
    Unknown(PropertyId),
    /// Only logic sets it.
    #[error("only the game's logic sets property {0}")]
    MayNotWrite(PropertyId),
    /// The value is of another type.
    #[error("the value is not of the type of property {0}")]
    WrongType(PropertyId),
    /// The value is longer than the property's limit.
    #[error("a value of {len} bytes; property {id} takes at most {max}")]
    TooLong {
        /// The property.
        id: PropertyId,
        /// The value's length, bytes.
        len: u16,
        /// The limit, bytes.
        max: u16,
    },
    /// All values of the entity together would be longer than [`MAX_ENTITY_BYTES`].
    #[error("all values of an entity have at most {MAX_ENTITY_BYTES} bytes")]
    Full,
    /// The client sets properties more often than it may.
    #[error("properties are set too often")]
    TooOften,
}
