//! The Purview server, from one process to many machines: gateway, console, bots, replay and the
//! `purview` command.

pub mod console;
pub mod gateway;
pub mod cli;
pub mod config;
pub mod logs;
