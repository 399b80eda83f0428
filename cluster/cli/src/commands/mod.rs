//! The subcommands, one file each: its flags with their help texts, and a function that runs it.

pub mod backup;
#[cfg(feature = "lab")]
pub mod bench;
#[cfg(feature = "lab")]
pub mod bots;
pub mod certs;
pub mod check;
#[cfg(feature = "lab")]
mod clients;
pub mod config;
pub mod ctl;
#[cfg(feature = "lab")]
pub mod dev;
pub mod interest;
pub mod node;
#[cfg(feature = "lab")]
pub mod replay;
#[cfg(feature = "lab")]
mod replay_interest;
#[cfg(feature = "lab")]
pub mod sim;
pub mod token;
