//! `purview-lab bench`: the cost of a scene and the stability of its view lists, measured in process without sockets;
//! what players notice of a cluster of processes; and the cost of interest management.

pub mod balance;
pub mod cluster;
pub mod counting;
mod crowd;
mod density;
pub mod interest;
mod ledger;
pub mod live;
pub mod logic;
mod npcs;
pub mod recovery;
pub(crate) mod regions;
pub mod scene;
mod squad;
pub mod takeover;
#[cfg(test)]
mod updates;
pub mod views;
mod walk;
mod watching;

use std::fmt::Display;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

pub trait Shown: Serialize + Display {
    fn is_valid(&self) -> bool {
        true
    }

    /// Prints the result as text, or as one JSON object. The exit code says whether it is valid.
    fn show(&self, json: bool) -> anyhow::Result<u8> {
        match json {
            true => println!("{}", serde_json::to_string(self)?),
            false => print!("{self}"),
        }
        Ok(u8::from(!self.is_valid()))
    }
}

/// The CPU time of this thread, microseconds.
fn cpu_us() -> f64 {
    cpu_us_of(ClockId::ThreadCPUTime)
}

/// The CPU time of all threads of this process, microseconds.
fn cpu_us_of_process() -> f64 {
    cpu_us_of(ClockId::ProcessCPUTime)
}

fn cpu_us_of(clock: ClockId) -> f64 {
    let t = clock_gettime(clock);
    t.tv_sec as f64 * 1e6 + t.tv_nsec as f64 / 1e3
}
