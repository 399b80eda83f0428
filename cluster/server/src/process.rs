//! Assembles one process: scenes, storage, peers, regions, gateway, console.
//!
//! ```text
//! purview serve, dev ─► Server           a cluster of one: everything in one process
//! purview node ───────► ClusterProcess   a member of a cluster: node, gateway or both
//! ```
//!
//! Commands, benches and the simulator call this. It is the only module that knows all the others; none of them knows
//! it.

mod advertise;
mod arbiters;
mod assemble;
mod background;
mod cluster;
mod console;
mod environment;
mod error;
pub mod figures;
mod inside;
mod observe;
mod patience;
mod plain_text;
mod reach;
mod runtime;
mod server;
mod start;
pub mod stores;
mod tokens;
mod workers;

pub use background::Background;
pub use cluster::ClusterProcess;
pub use environment::Simulated;
pub use error::{ProcessError, ServerError};
pub use inside::Inside;
pub use reach::ServerReach;
pub use server::Server;
pub use tokens::{dev_tokens, run_tokens, tokens};

#[cfg(test)]
mod tests;
