//! `purview-lab bench cluster`: what players notice when regions migrate and when nodes shut down, crash, fall silent or
//! are cut off, and the cost of more nodes. It runs a real cluster of processes.

mod console;
mod fault_trial;
pub mod market;
pub mod relocation;
mod walkers;

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tokio::runtime::Runtime;

use super::{Shown, one_thread, percentile};
use crate::shown::{lines, table};
use crate::testbed::local_cluster::{LocalCluster, Parts};
use crate::testbed::program;
use crate::usage::children_cpu_s;
use console::values_of;
use purview_server::config::Config;
use walkers::{Ended, WalkArea, Walkers};

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab bench cluster\n  \
    purview-lab bench cluster --players 200 --moves 50 --drains 50 --kills 50 --silences 0\n  \
    purview-lab bench cluster --players 200 --moves 0 --drains 0 --kills 0 --silences 0 --partitions 50\n  \
    purview-lab bench cluster --cost --players 2000 --json\n\n\
    Starts an etcd, a PostgreSQL, nodes and a gateway as separate processes, and clients. A pause is the \
    longest time between two frames of a client around an event, minus a tick.\n\n\
    Exit codes: 0 done, 1 failed, or a client was disconnected, or an input was not acknowledged, 2 invalid \
    command line.")]
pub struct BenchClusterArgs {
    /// The number of players, all in one region.
    #[arg(long, default_value_t = 500)]
    pub players: usize,
    /// How often that region migrates to another node.
    #[arg(long, default_value_t = 20)]
    pub moves: usize,
    /// How often its node shuts down and a new node takes its place.
    #[arg(long, default_value_t = 5)]
    pub drains: usize,
    /// How often its node is killed and a new node takes its place.
    #[arg(long, default_value_t = 5)]
    pub kills: usize,
    /// How often its node is suspended for longer than its lease.
    #[arg(long, default_value_t = 3)]
    pub silences: usize,
    /// How often its node is cut off: in turn from all other processes, from etcd and PostgreSQL alone, and from its
    /// peers alone; needs the right to create network namespaces.
    #[arg(long, default_value_t = 3)]
    pub partitions: usize,
    /// How long the players walk to and fro across a border between two nodes, seconds.
    #[arg(long, default_value_t = 20)]
    pub borders: u64,
    /// Only compare the CPU time of one node with that of four.
    #[arg(long)]
    pub cost: bool,
}

/// The longest time without a frame, milliseconds beyond a tick.
#[derive(Debug, Clone, Serialize)]
struct Pauses {
    what: &'static str,
    events: usize,
    measured: usize,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

impl Pauses {
    fn of(what: &'static str, events: usize, all: Vec<Duration>) -> Pauses {
        let ms: Vec<f64> = all.iter().map(|pause| pause.as_secs_f64() * 1e3).collect();
        let [p50_ms, p99_ms, max_ms] = [0.5, 0.99, 1.0].map(|share| percentile(ms.clone(), share));
        Pauses { what, events, measured: all.len(), p50_ms, p99_ms, max_ms }
    }
}

/// What regions count while all players walk across a border between two nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct AtBorders {
    /// The number of checks of a neighbour's ghosts, summed over ticks; of these, those with ghosts older than the
    /// tick; and the greatest age since the start, ticks.
    border_ticks: u64,
    stale: u64,
    stalest_ticks: u64,
    /// The number of entities handed off, and of those that acted later than in the next tick.
    handed_over: u64,
    late: u64,
}

impl AtBorders {
    fn add(&mut self, metrics: &str) {
        let sum = |name: &str| values_of(metrics, name).into_iter().sum::<u64>();
        self.border_ticks += sum("purview_border_ticks_total");
        self.stale += sum("purview_border_ticks_stale_total");
        let stalest = values_of(metrics, "purview_ghosts_stalest_ticks").into_iter().max();
        self.stalest_ticks = self.stalest_ticks.max(stalest.unwrap_or(0));
        self.handed_over += sum("purview_arrivals_total");
        self.late += sum("purview_arrivals_late_total");
    }

    fn since(self, before: AtBorders) -> AtBorders {
        AtBorders {
            border_ticks: self.border_ticks.saturating_sub(before.border_ticks),
            stale: self.stale.saturating_sub(before.stale),
            stalest_ticks: self.stalest_ticks,
            handed_over: self.handed_over.saturating_sub(before.handed_over),
            late: self.late.saturating_sub(before.late),
        }
    }
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct ClusterBench {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pauses: Vec<Pauses>,
    borders: AtBorders,
    players: usize,
    inputs_unacknowledged: usize,
    #[serde(flatten)]
    ended: Ended,
    /// CPU microseconds per player and second on one node and on four, etcd, PostgreSQL and the gateway counted.
    cost_us: Option<[f64; 2]>,
}

impl Shown for ClusterBench {
    fn is_valid(&self) -> bool {
        self.ended.disconnected + self.inputs_unacknowledged == 0
    }

    fn text(&self) -> serde_json::Result<String> {
        let counts = ClusterBench { pauses: Vec::new(), ..self.clone() };
        Ok(table(&self.pauses)? + "\n" + &lines(&counts)?)
    }
}

pub fn bench_cluster(args: &BenchClusterArgs) -> anyhow::Result<ClusterBench> {
    let runtime = one_thread()?;
    if !args.cost {
        return fault_trial::run(args, &runtime);
    }
    let [one, four] = [1, 4].map(|nodes| cost_us(args.players, nodes, &runtime));
    Ok(ClusterBench { cost_us: Some([one?, four?]), ..ClusterBench::default() })
}

const COST_S: u64 = 20;

/// The CPU time of all processes that serve so many players, microseconds per player and second.
fn cost_us(players: usize, nodes: u16, runtime: &Runtime) -> anyhow::Result<f64> {
    let cluster = start(Parts { nodes, gateways: 1 }, &config(4)?)?;
    let all = WalkArea { x: (1_000, 100_000), z: (1_000, 23_000) };
    let walkers = Walkers::start(runtime, (&cluster.url(0)?, cluster.tokens()), players, all)?;
    std::thread::sleep(Duration::from_secs(5));
    let before = children_cpu_s();
    std::thread::sleep(Duration::from_secs(COST_S));
    let used_s = children_cpu_s() - before;
    let ended = walkers.ended();
    anyhow::ensure!(ended.disconnected == 0, "{ended:?}");
    Ok(used_s * 1e6 / players as f64 / COST_S as f64)
}

/// Regions side by side, 256 m each, with a lease of two seconds.
fn config(regions: u16) -> anyhow::Result<Config> {
    Ok(Config::parse(&format!(
        "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n[console]\nlisten = \"127.0.0.1:0\"\n\
         [cluster]\nlease = \"2s\"\ncheckpoint = \"1s\"\n\
         [[scene]]\nteleports = \"clients\"\n\
         name = \"field\"\nwidth = \"{}m\"\ndepth = \"256m\"\nland = \"128m\"\n\
         region = [2, 2]\npatch = \"32m\"\nmoves = \"trusted\"\ntop_speed = \"20m/s\"\n",
        256 * u32::from(regions)
    ))?)
}

fn start(parts: Parts, config: &Config) -> anyhow::Result<LocalCluster> {
    let program = program::purview()?;
    let said = &mut |line: String| eprintln!("bench: {line}");
    LocalCluster::start(&program, config, parts, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_metrics() {
        let text = "# TYPE purview_border_ticks_total counter\n\
            purview_border_ticks_total{scene=\"a b\",region=\"R0\"} 10\n\
            purview_border_ticks_total{scene=\"a b\",region=\"R1\"} 7\n\
            purview_border_ticks_stale_total{region=\"R1\"} 2\n\
            purview_ghosts_stalest_ticks{region=\"R0\"} 3\npurview_ghosts_stalest_ticks{region=\"R1\"} 1\n\
            purview_arrivals_total{region=\"R0\"} 5\npurview_arrivals_late_total{region=\"R0\"} 1\n";
        let mut sum = AtBorders::default();
        sum.add(text);
        let want =
            AtBorders { border_ticks: 17, stale: 2, stalest_ticks: 3, handed_over: 5, late: 1 };
        assert_eq!(sum, want);
        assert_eq!(sum.since(want), AtBorders { stalest_ticks: 3, ..AtBorders::default() });
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_pauses() {
        let all = (1..=200).rev().map(Duration::from_millis).collect();
        let pauses = Pauses::of("x", 2, all);
        assert_eq!((pauses.measured, pauses.p50_ms, pauses.p99_ms), (200, 101.0, 198.0));
        assert_eq!(pauses.max_ms, 200.0);
        assert_eq!(Pauses::of("nothing", 0, Vec::new()).max_ms, 0.0);
        assert_eq!(config(2).unwrap().build_scenes().unwrap()[0].map.regions.len(), 2);
    }
}
