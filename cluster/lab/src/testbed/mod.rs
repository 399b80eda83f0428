//! Clusters of real processes on one machine, networks that can be cut, and demo NPCs.

pub mod demo_npcs;
pub mod local_cluster;
pub mod network_namespace;
