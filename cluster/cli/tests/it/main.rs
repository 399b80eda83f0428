//! Tests of the server from outside: the real command, real processes, sockets, browsers, etcd and PostgreSQL. All are one
//! program, so that the server is linked once.

// The random numbers of the tests of the crate `purview` are part of two of its modules.
#![allow(clippy::duplicate_mod)]

mod backup;
mod command;
mod common;
mod console;
mod crowds;
mod ctl;
mod end_to_end;
mod engine;
mod etcd_admin;
mod examples;
mod failover;
mod foreign;
mod fuzz;
mod gateway;
mod interest;
mod late_stores;
mod links;
mod links_busy;
mod logins;
mod movement;
mod nodes;
mod overdue;
mod people;
mod play;
mod player_records;
mod proxy;
mod readiness;
mod recordings;
mod resume;
mod secrets;
mod siege;
mod tls;
mod typescript;
mod walkers;
mod workers;
