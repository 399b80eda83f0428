//! Wire forms of properties and facings (`docs/properties.md`). A value is a byte string that
//! contains one MessagePack value.

use serde::{Deserialize, Serialize};

use crate::scene::properties::{APPEARANCE, PropertyId, Value, ValueError};
use crate::scene::{EntityId, Facing};

/// A property of an entity that comes into view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnteredProperty {
    /// The property.
    pub id: PropertyId,
    /// How often it was set.
    pub version: u32,
    /// Its value.
    pub value: Value,
}

/// A property of an entity in view, or of the player itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedProperty {
    /// The entity.
    pub entity: EntityId,
    /// The property.
    pub id: PropertyId,
    /// How often it was set.
    pub version: u32,
    /// Its value.
    pub value: Value,
}

/// A property with which a player begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstProperty {
    /// The property.
    pub id: PropertyId,
    /// Its value.
    pub value: Value,
}

impl FirstProperty {
    /// Opaque bytes as the player's appearance, property 0.
    ///
    /// # Errors
    /// They are too long.
    pub fn appearance(content: &[u8]) -> Result<FirstProperty, ValueError> {
        Ok(FirstProperty { id: APPEARANCE, value: Value::binary(content)? })
    }
}

/// An entity in view, or the player itself, faces another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turned {
    /// The entity.
    pub id: EntityId,
    /// The way it faces.
    pub facing: Facing,
}
