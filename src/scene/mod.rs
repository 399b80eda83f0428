//! The rules of the world, sans IO: no actor, socket, clock, thread or global randomness.

pub mod account;
pub mod contents;
pub mod facing;
mod footprint;
pub mod geo;
pub mod ids;
pub mod index;
pub mod inspect;
pub mod layout;
pub mod lines;
pub mod load;
pub mod messages;
pub mod movement;
pub mod mutants;
pub mod names;
pub mod pace;
pub mod patch;
pub(crate) mod pieces;
pub mod player;
pub mod portals;
mod prefetch;
pub mod properties;
pub mod range;
pub mod region;
pub mod spec;
mod spec_error;
pub mod stamp;
pub mod terrain;
mod tile;
pub mod views;
pub mod workers;

pub use account::Account;
pub use facing::Facing;
pub use footprint::{Footprint, MAX_FOOTPRINT_TILES};
pub use geo::{Pos, Rect};
pub(crate) use ids::COUNT_BITS;
pub use ids::{
    EntityHandle, EntityId, Epoch, Kind, MAX_CONTENTS, Plane, RegionId, SceneId, Seq, SessionId,
    SubjectHash, Tick,
};
pub use patch::PatchRule;
pub use range::{Heights, RangeSet, ViewCap, ViewLimits, Visibility};
pub use region::Region;
pub use spec::{Scene, SceneSpec};
pub use stamp::TickStamp;
pub use tile::{Tile, TileRect};
