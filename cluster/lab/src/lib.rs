//! Tools that test and measure a Purview server: the oracle, bots and replays, the cheat trial, benchmarks, the
//! judge of the interest service, the simulator, and clusters on one machine for tests.
//!
//! Nothing of this crate is part of a production server.

#![allow(missing_docs, reason = "a tool without an API: comments say what names do not")]

pub mod args;
pub mod bench;
pub mod cheat;
pub mod game;
pub mod interest;
pub mod load;
pub mod oracle;
pub mod shown;
pub mod sim;
pub mod testbed;
pub mod usage;

pub use purview_demo::rng;
