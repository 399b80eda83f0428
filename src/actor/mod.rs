//! Thin shells around the pure scene: region actors, player actors, and the one place where effects
//! become deliveries.
//!
//! From the lowest floor up: `address` and `messages` (how actors are reached, and what they say), the traits
//! `logins`, `player_store`, `admission` and `logic`, `directory` (what every actor may look up), then `player` and `region`,
//! which know nothing of each other.

pub mod address;
pub mod admission;
pub mod cluster_clock;
pub mod directory;
pub mod idle_gate;
pub mod logic;
pub mod logins;
pub mod messages;
pub mod player;
pub mod player_store;
pub mod region;
