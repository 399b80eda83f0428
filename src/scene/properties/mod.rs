//! Properties: named, versioned values of an entity. Pure data and rules.
//!
//! A kind declares its properties ([`PropertySpec`]), and a [`Schema`] answers questions about them.
//! An entity has [`Properties`]: a level for each property that was ever set. Regions keep and
//! replicate levels; sessions remember those of their player. Nothing here knows an entity, a
//! region or a client.
//!
//! A property is a *level* and not an event: of two levels of one property the higher version
//! counts, so that a lost, late or repeated update heals by itself. A value that a client may not
//! see must never be put into what that client is sent: [`Audience`] says who may see it.

mod id;
mod level;
mod schema;
mod value;

pub use self::id::{APPEARANCE, MAX_ENTITY_BYTES, MAX_PROPERTIES, PropertyId, PropertyRefusal};
pub use self::level::{Level, MalformedProperties, Properties};
pub use self::schema::{Audience, Detail, PropertySpec, Schema, ValueType, Writer};
pub use self::value::{MAX_VALUE_BYTES, MAX_VALUE_DEPTH, Value, ValueError};
