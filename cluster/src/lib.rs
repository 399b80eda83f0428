//! The Purview server, from one process to many machines: gateway, console, bots, replay and the
//! `purview` command.

pub mod console;
pub mod gateway;
pub mod cli;
pub mod config;
pub mod logs;
//! The Purview server as a library.

pub mod oracle;
pub mod report;
pub mod trace;
