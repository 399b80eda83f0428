//! Purview: a seamless scene cluster for massively multiplayer worlds.
//!
//! This crate is the scene and its actors; `purview-server` makes a server of it. Directions of
//! import, which a test checks: [`scene`] imports nothing of ours, [`wire`] imports `scene`,
//! [`actor`] imports both. To embed a scene in a server of your own, begin with [`world`].

#[cfg(feature = "actors")]
pub mod actor;
#[cfg(feature = "actors")]
pub mod clock;
pub mod interest;
pub mod log_limit;
pub mod log_limited;
pub mod scene;
pub mod wire;
pub mod world;
