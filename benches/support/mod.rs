//! What the benchmarks share with those of the command line: walkers, and random numbers.

// Not every benchmark uses every part.
#![allow(dead_code, unused_imports)]

pub use rng::Rng;
pub use waypoint_walkers::{Density, WaypointWalkers};

#[path = "../../cluster/demo/src/rng.rs"]
mod rng;
#[path = "../../cluster/lab/src/bench/interest/waypoint_walkers.rs"]
mod waypoint_walkers;
