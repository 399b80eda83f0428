//! Thin shells around the pure scene: region actors, player actors, and the one place where effects
//! become deliveries.

pub mod address;
pub mod cluster_clock;
pub mod departing;
pub mod directory;
pub mod doors;
pub mod logins;
pub mod messages;
pub mod metrics;
mod moving;
mod outbox;
pub mod places;
pub mod player;
pub mod region;
mod routes;
pub mod seldom;
pub mod sink;
mod turns;
