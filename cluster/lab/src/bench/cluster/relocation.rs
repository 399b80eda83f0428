//! `purview-lab bench relocation`: what it costs to move a region to another node, and to shift the border of two regions
//! across all players of one.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use purview_server::admin::orders::MoveCommand;
use purview_server::node::layout_change::MapOrder;
use serde::Serialize;
use tokio::runtime::Runtime;

use super::console::{Console, values_of};
use super::walkers::{Ended, Places, STEP, WalkArea, Walkers};
use super::{Pauses, Shown, config, one_thread, start};
use crate::bench::percentile;
use crate::shown::{lines, table};
use crate::testbed::local_cluster::{LocalCluster, Parts};
use crate::usage::threads_cpu_s;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab bench relocation\n  \
    purview-lab bench relocation --players 1000 --events 50 --json\n\n\
    Starts an etcd, a PostgreSQL, three nodes and a gateway as separate processes, and clients, which stand in one \
    strip of a region. Costs are those of all nodes and the gateway, beyond what they use in the same time before. \
    Pauses are measured while all walk.\n\n\
    Exit codes: 0 done, 1 failed, or a client was disconnected, 2 invalid command line.")]
pub struct BenchRelocationArgs {
    /// The numbers of players.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 200, 1_000])]
    pub players: Vec<usize>,
    /// How often the region moves, and how often the border shifts, with each of them.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub events: u32,
}

/// The strip of the first region that shifts.
const STRIP: WalkArea = WalkArea { x: (14_000, 10_000), z: (3_000, 18_000) };

/// The time over which costs are compared; an event ends within it.
const WINDOW: Duration = Duration::from_secs(4);

const PATIENCE: Duration = Duration::from_secs(30);

/// What one kind of event costs with so many players, medians; and the longest time without a frame of each client
/// that walks.
#[derive(Debug, Clone, Serialize)]
struct Cost {
    players: usize,
    /// What processes sent each other.
    kbytes: f64,
    cpu_ms: f64,
    #[serde(flatten)]
    pauses: Pauses,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct RelocationBench {
    costs: Vec<Cost>,
    #[serde(flatten)]
    ended: Ended,
}

impl Shown for RelocationBench {
    fn is_valid(&self) -> bool {
        self.ended.disconnected == 0
    }

    fn text(&self) -> serde_json::Result<String> {
        Ok(table(&self.costs)? + "\n" + &lines(&self.ended)?)
    }
}

/// Runs the benchmark.
///
/// # Errors
/// A process does not start, or a command is not carried out.
pub fn bench_relocation(args: &BenchRelocationArgs) -> anyhow::Result<RelocationBench> {
    let runtime = one_thread()?;
    let mut bench = RelocationBench::default();
    for &players in &args.players {
        let trial = Trial::start(&runtime, players)?;
        let events: [(&str, Event); 2] = [
            ("a region moves", |trial, _| trial.relocate()),
            ("a border shifts", |trial, number| trial.shift(number)),
        ];
        for (what, event) in events {
            eprintln!("bench: {what}, {players} players");
            bench.costs.push(trial.cost(what, args.events, event)?);
        }
        bench.ended.add(trial.walkers.ended());
    }
    Ok(bench)
}

/// Carries out the event of this number and waits until the console shows it.
type Event = fn(&Trial<'_>, u32) -> anyhow::Result<()>;

struct Trial<'a> {
    runtime: &'a Runtime,
    cluster: LocalCluster,
    walkers: Walkers,
    console: Console<'a>,
}

/// What all nodes and the gateway have used so far: CPU milliseconds, and kilobytes sent to each other.
#[derive(Clone, Copy)]
struct Used([f64; 2]);

impl<'a> Trial<'a> {
    fn start(runtime: &'a Runtime, players: usize) -> anyhow::Result<Trial<'a>> {
        let cluster = start(Parts { nodes: 3, gateways: 1 }, &config(2)?)?;
        let console = Console::of(&cluster.gateways()[0], runtime)?;
        let join = (&*cluster.url(0)?, cluster.tokens());
        let walkers = Walkers::start(runtime, join, players, STRIP)?;
        Ok(Trial { runtime, cluster, walkers, console })
    }

    fn cost(&self, what: &'static str, events: u32, event: Event) -> anyhow::Result<Cost> {
        self.walkers.go(Arc::new(|who, _| STRIP.at(who, 0)) as Places);
        sleep(WINDOW);
        let mut used = [const { Vec::new() }; 2];
        for number in 0..events {
            let quiet = self.over_a_window(|| Ok(()))?;
            let busy = self.over_a_window(|| event(self, number))?;
            (0..2).for_each(|i| used[i].push(busy.0[i] - quiet.0[i]));
        }
        let pauses = Pauses::of(what, events as usize, self.pauses(events, event)?);
        let [cpu_ms, kbytes] = used.map(|all| percentile(all, 0.5));
        let players = self.walkers.count();
        Ok(Cost { players, kbytes, cpu_ms, pauses })
    }

    fn pauses(&self, events: u32, event: Event) -> anyhow::Result<Vec<Duration>> {
        self.walkers.go(STRIP);
        sleep(WINDOW);
        let mut all = Vec::new();
        for number in 0..events {
            self.walkers.forget();
            let begin = Instant::now();
            event(self, events + number)?;
            let end = Instant::now() + STEP * 2;
            sleep(STEP * 5);
            let longest = self.walkers.longest(begin, end);
            all.extend(longest.into_iter().map(|pause| pause.saturating_sub(STEP)));
        }
        Ok(all)
    }

    /// What is used in a window that begins with some work.
    fn over_a_window(&self, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Used> {
        let (begin, before) = (Instant::now(), self.used()?);
        work()?;
        let left = WINDOW.checked_sub(begin.elapsed());
        sleep(left.context("an event took longer than is measured")?);
        let after = self.used()?;
        Ok(Used([0, 1].map(|i| after.0[i] - before.0[i])))
    }

    fn used(&self) -> anyhow::Result<Used> {
        let mut used = [0.0; 2];
        for member in self.cluster.nodes().iter().chain(self.cluster.gateways()) {
            let metrics = Console::of(member, self.runtime)?.metrics()?;
            let bytes = values_of(&metrics, "purview_link_bytes_total").into_iter().sum::<u64>();
            used[0] += threads_cpu_s(member.pid()) * 1e3;
            used[1] += bytes as f64 / 1e3;
        }
        Ok(Used(used))
    }

    /// The first region moves to the next node that runs neither region.
    fn relocate(&self) -> anyhow::Result<()> {
        let owners = self.console.owners()?;
        let nodes = self.cluster.nodes().iter().map(|node| &node.name);
        let mut free = nodes.filter(|name| owners.values().all(|owner| owner != *name));
        let to = free.next_back().context("every node runs a region")?.clone();
        self.console.order("/api/cluster/move", &MoveCommand { region: 0, node: to.clone() })?;
        self.wait(|| Ok(self.console.owners()?.get(&0) == Some(&to)))
    }

    /// The strip goes to the second region, and back.
    fn shift(&self, number: u32) -> anyhow::Result<()> {
        let (from, to) = if number.is_multiple_of(2) { (0, 1) } else { (1, 0) };
        let versions = || -> anyhow::Result<(u64, Option<u64>)> {
            let survey = self.console.survey()?;
            let map = survey.maps.first().context("the scene has no layout")?;
            Ok((map.version, map.next))
        };
        let (before, _) = versions()?;
        self.console.order("/api/cluster/map", &MapOrder::Shift { from, to, lands: 1 })?;
        self.wait(|| Ok(versions()? == (before + 1, None)))?;
        // The layout is decided; it counts two seconds after the order.
        sleep(Duration::from_millis(2_200));
        Ok(())
    }

    fn wait(&self, holds: impl Fn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
        let begin = Instant::now();
        while !holds()? {
            ensure!(begin.elapsed() < PATIENCE, "a command was not carried out");
            sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}
