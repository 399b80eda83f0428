//! The cost of more nodes: the CPU time of all processes that serve the same players, on one node and on four.

use std::fs;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use tokio::runtime::Runtime;

use super::walkers::{WalkArea, Walkers};
use super::{BenchClusterArgs, config, start};
use crate::testbed::local_cluster::Parts;

/// The length of the measurement.
const LENGTH: Duration = Duration::from_secs(20);

/// The walking ground: the whole scene.
const ALL: WalkArea = WalkArea { x: (1_000, 100_000), z: (1_000, 23_000) };

/// CPU microseconds per player and second.
#[derive(Debug, Clone, Serialize)]
pub struct Cost {
    players: usize,
    one_node_us: f64,
    four_nodes_us: f64,
    ratio: f64,
}

impl Cost {
    /// Prints a table.
    pub fn print(&self) {
        println!("| nodes | CPU us per player and second |\n|---|---|");
        println!("| 1 | {:.0} |\n| 4 | {:.0} |", self.one_node_us, self.four_nodes_us);
        println!(
            "\nratio {:.2}, {} players; etcd, PostgreSQL and the gateway counted",
            self.ratio, self.players
        );
    }
}

/// Measures both clusters.
pub fn compare(args: &BenchClusterArgs, runtime: &Runtime) -> anyhow::Result<Cost> {
    let one_node_us = of(args.players, 1, runtime)?;
    let four_nodes_us = of(args.players, 4, runtime)?;
    let ratio = four_nodes_us / one_node_us;
    Ok(Cost { players: args.players, one_node_us, four_nodes_us, ratio })
}

fn of(players: usize, nodes: u16, runtime: &Runtime) -> anyhow::Result<f64> {
    let cluster = start(Parts { nodes, gateways: 1 }, &config(4)?)?;
    let walkers = Walkers::start(runtime, (&cluster.url(0)?, cluster.tokens()), players, ALL)?;
    std::thread::sleep(Duration::from_secs(5));
    let before = served()?;
    std::thread::sleep(LENGTH);
    let used = served()?.saturating_sub(before);
    let (ended, fault) = walkers.faults();
    anyhow::ensure!(ended == 0, "{ended} players were disconnected: {fault:?}");
    Ok(used.as_secs_f64() * 1e6 / players as f64 / LENGTH.as_secs_f64())
}

/// The CPU time of all child processes of this process so far, and of their children.
fn served() -> anyhow::Result<Duration> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").context("there is no /proc")? {
        let path = entry?.path().join("stat");
        // A process may end in the meantime.
        let Ok(text) = fs::read_to_string(path) else { continue };
        all.extend(parse(&text));
    }
    let mut ours = vec![std::process::id()];
    let mut ticks = 0;
    while let Some(parent) = ours.pop() {
        for (pid, _, used) in all.iter().filter(|(_, ppid, _)| *ppid == parent) {
            ours.push(*pid);
            ticks += used;
        }
    }
    let hz = rustix::param::clock_ticks_per_second().max(1);
    Ok(Duration::from_secs_f64(ticks as f64 / hz as f64))
}

/// Process id, parent and CPU ticks of a process, from its line in /proc.
fn parse(stat: &str) -> Option<(u32, u32, u64)> {
    let pid = stat.split(' ').next()?.parse().ok()?;
    // The name may contain anything; the last bracket ends it.
    let rest: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |i: usize| rest.get(i)?.parse::<u64>().ok();
    Some((pid, rest.get(1)?.parse().ok()?, ticks(11)? + ticks(12)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_is_parsed() {
        let line = "42 (a (b) c) S 7 42 42 0 -1 4194560 1 2 3 4 50 60 0 0 20 0 1 0 9 8 7";
        assert_eq!(parse(line), Some((42, 7, 110)));
        assert_eq!(parse("42 (a"), None);
        let own = fs::read_to_string("/proc/self/stat").unwrap();
        assert_eq!(parse(&own).unwrap().0, std::process::id());
        assert!(served().is_ok());
    }
}
