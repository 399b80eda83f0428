//! What a cluster of processes is there for: machines end, die and fall silent, regions move, and nobody who walks
//! on it notices more than a moment.

mod deaths;
mod maps;
mod moves;
mod partitions;
mod trial;
