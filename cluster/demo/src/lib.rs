//! What the commands `purview` and `purview-lab` share: the flags of a configuration, and the world of `purview dev`, which
//! is a scene, the rules of the example game `hunt`, NPCs, and players that walk and hunt.
//!
//! `purview dev` serves that world, and the tools of the lab play and judge the same game. No other server has any of it.

pub mod flags;
pub mod hunt;
pub mod land;
pub mod npcs;
pub mod players;
pub mod rng;
pub mod scene;
