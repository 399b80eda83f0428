//! The real command and real servers from outside: processes, sockets, signals.

pub mod process;
mod proxy;
mod trace;

mod attack;
mod cluster;
mod ctl;
mod hostile;
mod newcomer;
pub mod operations;
mod pages;
pub mod persistence;
mod picture;
mod recordings;
mod relogin;
mod runs;
mod sabotage;
mod serve;
