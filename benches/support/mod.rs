//! What the benchmarks share with those of the command line: crowds, and random numbers.

// Not every benchmark uses every part.
#![allow(dead_code, unused_imports)]

pub use crowd::{Crowd, Density};
pub use rng::Rng;

#[path = "../../cluster/lab/src/bench/interest/crowd.rs"]
mod crowd;
#[path = "../../cluster/demo/src/rng.rs"]
mod rng;
