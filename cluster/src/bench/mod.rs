//! `purview bench`: what the scene costs, measured in process without sockets.

pub mod crowd;
pub mod ledger;
pub mod scene;
