//! The Purview server, from one process to many machines: gateway, console, bots, replay and the
//! `purview` command.

pub mod admin;
mod archive;
pub mod bench;
pub mod bots;
pub mod certs;
pub mod cheat;
pub mod cli;
pub mod commands;
pub mod config;
pub mod console;
pub mod crowd;
pub mod ctl;
pub mod dev;
pub mod durable;
pub mod ends;
pub mod engine;
pub mod fauna;
pub mod gateway;
pub mod home;
pub mod http;
pub mod link;
pub mod local;
pub mod logs;
pub mod node;
pub mod oracle;
pub mod placement;
pub mod places;
pub mod replay;
pub mod report;
pub mod rng;
pub mod server;
pub mod sim;
pub mod terrain;
pub mod tls;
pub mod trace;
