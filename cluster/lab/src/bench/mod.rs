//! `purview-lab bench`: the cost of a scene and the quality of its view lists, measured in process without sockets; and
//! what players notice of a cluster of processes, and the cost of interest management.

pub mod balance;
pub mod cluster;
pub mod counting;
pub mod crowd;
mod density;
pub mod interest;
pub mod ledger;
pub mod live;
pub mod logic;
mod npcs;
pub mod recovery;
pub mod scene;
pub mod squad;
pub mod takeover;
#[cfg(test)]
mod updates;
pub mod views;
mod walk;
mod watching;

use rustix::time::{ClockId, clock_gettime};

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
