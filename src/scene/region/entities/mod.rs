//! The entities that a region knows: their identity, their positions, and their movement.
//!
//! [`EntityStore`] is the part; its records are read everywhere and written here alone. `groups`, `positions` and
//! `memory_order` are rules over the store alone. `movement` is a rule over the store and the viewers, called by the
//! tick.

mod blockers;
mod floor;
mod groups;
#[cfg(test)]
pub mod lookups;
mod memory_order;
mod movement;
mod planes;
mod positions;
mod properties;
mod records;
mod store;
mod trajectories;

pub use self::floor::Floor;
pub use self::memory_order::SORT_TICKS;
pub use self::movement::own_of;
pub use self::planes::nearer_than;
pub use self::records::{
    Body, Bound, Ghost, Location, NO_SLOT, NewEntity, Real, Renumbering, Role, TAG_BONDED,
};
pub use self::store::EntityStore;
pub use self::trajectories::{MovingEntity, Trajectories};
