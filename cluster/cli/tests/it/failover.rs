//! Failover of a cluster of processes: nodes shut down, crash and fall silent, regions migrate, and clients notice at
//! most a moment.

mod deaths;
mod maps;
mod moves;
mod partitions;
mod trial;
