//! Logic workers over gRPC: real servers, real sockets, workers in Rust.

mod accounts;
mod admission;
mod cluster;
mod commands;
mod conduct;
mod deaths;
mod hunt;
mod instances;
mod leases;
mod player;
mod refusals;
mod slow_link;
pub mod support;
mod takeover;
