//! `purview interest` as a process of its own, by real connections: everything that its page promises.

mod access;
mod bench;
mod bounds;
mod errors;
mod examples;
mod garbage;
mod memory;
mod metrics;
mod modes;
mod pressure;
mod queries;
mod replay;
mod resume;
pub mod support;
