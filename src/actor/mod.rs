//! Thin shells around the pure scene: region actors, player actors, and the one place where effects
//! become deliveries.

pub mod address;
pub mod directory;
pub mod doors;
pub mod messages;
pub mod metrics;
pub mod player;
pub mod region;
pub mod sink;
mod turns;
