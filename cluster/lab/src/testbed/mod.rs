//! Clusters of real processes on one machine, and networks that can be cut.

pub mod local_cluster;
pub mod network_namespace;
pub mod program;
