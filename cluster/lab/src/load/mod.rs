//! Load: bots and recordings as real clients, judged by the oracle.

pub mod admin;
pub mod bots;
pub mod clients;
pub mod replay;
pub mod report;
pub mod trace;
