//! The Purview server, from one process to many machines: gateway, console, bots, replay and the
//! `purview` command.

pub mod bench;
pub mod cli;
pub mod config;
pub mod console;
pub mod gateway;
pub mod logs;
pub mod oracle;
pub mod report;
pub mod trace;
