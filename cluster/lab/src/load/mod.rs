//! Load: bots and recordings played by real clients and checked by the oracle.

pub mod bots;
pub mod clients;
pub mod replay;
pub mod report;
pub mod script;
pub mod surveys;
pub mod trace;
