//! `purview-lab bench`: the cost of a scene and the stability of its view lists, measured in process without sockets;
//! what players notice of a cluster of processes; and the cost of interest management.

pub mod balance;
pub mod cluster;
mod command_walkers;
pub mod counting;
mod density;
pub mod interest;
mod ledger;
pub mod live;
pub mod logic;
mod npcs;
pub mod prediction;
pub mod recovery;
pub(crate) mod regions;
pub mod scene;
mod straight_walkers;
pub mod takeover;
pub mod views;
mod watching;

use anyhow::Context;
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::process::Background;
use tokio::runtime::{Builder, Runtime};

use crate::shown::Shown;
use crate::usage::{process_cpu, thread_cpu};

/// A server that lets logic workers in, with a scene of `side` x `side` regions. `logic` has more keys of the workers.
fn worker_server(side: u32, logic: &str, kinds: &str) -> anyhow::Result<Background> {
    let metres = 256 * side;
    let text = format!(
        r#"
[gateway]
ws = "127.0.0.1:0"
tcp = "off"
rate_limit = 1000
burst = 1000
[console]
listen = "off"
[logic]
listen = "127.0.0.1:0"
{logic}
[[scene]]
name = "bench"
width = "{metres}m"
depth = "{metres}m"
land = "256m"
region = [1, 1]
patch = "32m"
moves = "trusted"
teleports = "clients"
{kinds}"#
    );
    Ok(Background::start(Config::parse(&text)?, Tokens::dev())?)
}

/// One thread for the clients of a benchmark.
fn one_thread() -> anyhow::Result<Runtime> {
    let built = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    built.context("cannot start a runtime for the clients")
}

/// The value below which a share of the values are; 0 of none.
fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len().saturating_sub(1) as f64 * share).round() as usize;
    values.get(at).copied().unwrap_or(0.0)
}

/// The CPU time of this thread, microseconds.
fn cpu_us() -> f64 {
    thread_cpu().as_secs_f64() * 1e6
}

/// The CPU time of all threads of this process, microseconds.
fn cpu_us_of_process() -> f64 {
    process_cpu().as_secs_f64() * 1e6
}
