//! Tools that test and measure a Purview server: the oracle, bots and replays, the trial of cheats,
//! benchmarks, the simulator, and clusters on one machine to test with.
//!
//! Nothing of this crate is part of a production server.

pub mod args;
pub mod bench;
pub mod cheat;
pub mod load;
pub mod oracle;
pub mod rng;
pub mod sim;
pub mod testbed;
