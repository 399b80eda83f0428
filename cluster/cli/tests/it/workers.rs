//! Logic workers over gRPC: real servers, real sockets, workers in Rust.

mod admission;
mod cluster;
mod commands;
mod hunt;
mod leases;
mod refusals;
mod resume;
pub mod support;
