//! A region with all players migrates, and its node shuts down, crashes, falls silent, and is cut off.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::runtime::Runtime;

use super::console::Console;
use super::walkers::{WalkArea, Walkers};
use super::{AtBorders, BenchClusterArgs, ClusterBench, Pauses, config, start};
use crate::testbed::local_cluster::{LocalCluster, Member, Parts};
use crate::testbed::network_namespace::{Cut, NetworkNamespace};
use purview_server::admin::orders::{DrainOrder, MoveCommand};

const TICK: Duration = Duration::from_millis(100);

const PATIENCE: Duration = Duration::from_secs(60);

/// A ground inside the first region.
const INSIDE: WalkArea = WalkArea { x: (3_000, 18_000), z: (3_000, 18_000) };

/// A ground across the border between the two regions.
const OVER: WalkArea = WalkArea { x: (23_600, 4_000), z: (3_000, 18_000) };

const REGION: u32 = 0;

struct FaultTrial<'a> {
    runtime: &'a Runtime,
    cluster: LocalCluster,
    walkers: Walkers,
    nodes: usize,
    console: Console<'a>,
    unacknowledged: usize,
    at_borders: AtBorders,
}

pub fn run(args: &BenchClusterArgs, runtime: &Runtime) -> anyhow::Result<ClusterBench> {
    let cluster = start(Parts { nodes: 3, gateways: 1 }, &config(2)?)?;
    let mut trial = FaultTrial::on(cluster, args, runtime)?;
    let mut pauses = Vec::new();
    let quiet = trial.events("nothing happens", 3, |t| t.lasts(Duration::from_secs(1)))?;
    pauses.push(quiet);
    pauses.push(trial.borders(args.borders)?);
    pauses.push(trial.events("the region moves", args.moves, FaultTrial::relocate)?);
    pauses.push(trial.events("its node is drained", args.drains, FaultTrial::drain)?);
    pauses.push(trial.events("its node is killed", args.kills, FaultTrial::kill)?);
    pauses.push(trial.events("its node is silent", args.silences, FaultTrial::silence)?);
    let mut outcome = trial.outcome(pauses);
    if args.partitions > 0 {
        match NetworkNamespace::create() {
            Ok(namespace) => partitions(args, runtime, &namespace, &mut outcome)?,
            Err(error) => eprintln!(
                "bench: skipping partitions, because no network namespace can be created: {error}"
            ),
        }
    }
    Ok(outcome)
}

/// Runs the partitions, on a cluster with one node in a network namespace.
fn partitions(
    args: &BenchClusterArgs,
    runtime: &Runtime,
    namespace: &NetworkNamespace,
    outcome: &mut ClusterBench,
) -> anyhow::Result<()> {
    let mut config = config(2)?;
    config.cluster.listen.set_ip(namespace.peers().into());
    config.cluster.insecure = true;
    let cluster = start(Parts { nodes: 2, gateways: 1 }, &config)?;
    let mut trial = FaultTrial::on(cluster, args, runtime)?;
    let mut pauses = Vec::new();
    for (i, what, cut) in [
        (2, "its node is cut off from all processes", Cut::AllProcesses),
        (1, "its node is cut off from etcd and PostgreSQL", Cut::Stores),
        (0, "its node is cut off from its peers for 2 s", Cut::Peers),
    ] {
        let count = (args.partitions + i) / 3;
        pauses.push(trial.events(what, count, |t| t.partition(namespace, cut))?);
    }
    let more = trial.outcome(pauses);
    outcome.pauses.extend(more.pauses);
    outcome.inputs_unacknowledged += more.inputs_unacknowledged;
    outcome.ended.add(more.ended);
    Ok(())
}

impl<'a> FaultTrial<'a> {
    fn on(
        cluster: LocalCluster,
        args: &BenchClusterArgs,
        runtime: &'a Runtime,
    ) -> anyhow::Result<FaultTrial<'a>> {
        let console = Console::of(&cluster.gateways()[0], runtime)?;
        let walkers =
            Walkers::start(runtime, (&cluster.url(0)?, cluster.tokens()), args.players, INSIDE)?;
        let (nodes, unacknowledged) = (cluster.nodes().len(), 0);
        let at_borders = AtBorders::default();
        let trial =
            FaultTrial { runtime, cluster, walkers, nodes, console, unacknowledged, at_borders };
        sleep(Duration::from_secs(3));
        Ok(trial)
    }

    fn outcome(self, pauses: Vec<Pauses>) -> ClusterBench {
        ClusterBench {
            pauses,
            borders: self.at_borders,
            players: self.walkers.count(),
            inputs_unacknowledged: self.unacknowledged,
            ended: self.walkers.ended(),
            cost_us: None,
        }
    }

    fn events(
        &mut self,
        what: &'static str,
        count: usize,
        event: impl Fn(&mut Self) -> anyhow::Result<(Instant, Instant)>,
    ) -> anyhow::Result<Pauses> {
        let mut all = Vec::new();
        for i in 1..=count {
            eprintln!("bench: {what}, {i} of {count}");
            self.walkers.forget();
            sleep(Duration::from_millis(300));
            let (from, to) = event(self)?;
            sleep(Duration::from_millis(500));
            all.extend(self.walkers.longest(from, to).into_iter().map(|d| d.saturating_sub(TICK)));
        }
        let unacknowledged = self.walkers.rest(Duration::from_secs(10));
        if unacknowledged > 0 {
            eprintln!("bench: inputs of {unacknowledged} players are not acknowledged");
        }
        self.unacknowledged += unacknowledged;
        Ok(Pauses::of(what, count, all))
    }

    fn lasts(&mut self, length: Duration) -> anyhow::Result<(Instant, Instant)> {
        let from = Instant::now();
        sleep(length);
        Ok((from, Instant::now()))
    }

    /// Lets all players walk across a border between two nodes.
    fn borders(&mut self, seconds: u64) -> anyhow::Result<Pauses> {
        let survey = self.console.survey()?;
        let nodes: Vec<&str> = survey.regions.iter().map(|r| r.node.as_str()).collect();
        if nodes.first() == nodes.get(1) {
            self.relocate()?;
        }
        eprintln!("bench: all players walk across a border between two nodes");
        self.walkers.go(OVER);
        sleep(Duration::from_secs(2));
        self.walkers.forget();
        let before = self.counted()?;
        let from = Instant::now();
        sleep(Duration::from_secs(seconds));
        self.at_borders = self.counted()?.since(before);
        let within = TICK * 4;
        let all: Vec<_> = self.walkers.at_crossings(from, within);
        self.walkers.go(INSIDE);
        sleep(Duration::from_secs(2));
        self.unacknowledged += self.walkers.rest(Duration::from_secs(10));
        let events = all.len();
        let all = all.into_iter().map(|d| d.saturating_sub(TICK)).collect();
        Ok(Pauses::of("a player is handed over", events, all))
    }

    /// The counts of all regions at their borders, on all nodes.
    fn counted(&self) -> anyhow::Result<AtBorders> {
        let mut sum = AtBorders::default();
        for node in self.cluster.nodes().iter().filter(|node| node.ended().is_none()) {
            sum.add(&Console::of(node, self.runtime)?.metrics()?);
        }
        Ok(sum)
    }

    fn owner(&self) -> anyhow::Result<Option<String>> {
        Ok(self.console.owners()?.remove(&REGION))
    }

    fn wait_for(
        &self,
        what: &str,
        holds: impl Fn(&Self) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let begin = Instant::now();
        while !holds(self)? {
            if begin.elapsed() > PATIENCE {
                bail!("timed out waiting for {what}; last warnings:\n{}", self.warnings());
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn warnings(&self) -> String {
        let mut all = Vec::new();
        for node in self.cluster.nodes() {
            let said = node.said();
            let warns = said.lines().filter(|line| line.contains("WARN") || line.contains("ERROR"));
            let last = warns.map(|line| format!("{}: {line}", node.name)).collect::<Vec<_>>();
            all.extend(last.into_iter().rev().take(5).rev());
        }
        all.join("\n")
    }

    fn node(&self) -> anyhow::Result<&Member> {
        let owner = self.owner()?.context("the region has no owner")?;
        let all = self.cluster.nodes();
        all.iter()
            .find(|node| node.name == owner)
            .context("the owner is not a node of this cluster")
    }

    fn add_node(&mut self) -> anyhow::Result<()> {
        self.nodes += 1;
        self.cluster.add_node(format!("node-{}", self.nodes))?;
        Ok(())
    }

    fn relocate(&mut self) -> anyhow::Result<(Instant, Instant)> {
        let owner = self.owner()?.context("the region has no owner")?;
        let survey = self.console.survey()?;
        let least = survey.nodes.iter().filter(|n| n.takes_regions && n.name != owner);
        let to = least.min_by_key(|n| n.owns).context("there is no other node")?.name.clone();
        self.relocate_to(to)
    }

    fn relocate_to(&mut self, to: String) -> anyhow::Result<(Instant, Instant)> {
        let from = Instant::now();
        self.console
            .order("/api/cluster/move", &MoveCommand { region: REGION, node: to.clone() })?;
        self.wait_for("the move", |o| Ok(o.owner()?.as_ref() == Some(&to)))?;
        Ok((from, Instant::now() + TICK * 2))
    }

    fn drain(&mut self) -> anyhow::Result<(Instant, Instant)> {
        self.add_node()?;
        // The new node may receive a region before the players' region.
        sleep(Duration::from_secs(2));
        let node = self.node()?.name.clone();
        let from = Instant::now();
        self.console.order("/api/cluster/drain", &DrainOrder { node: node.clone() })?;
        self.wait_for("the drain", |o| {
            Ok(o.console.survey()?.nodes.iter().all(|n| n.name != node))
        })?;
        Ok((from, Instant::now() + TICK * 2))
    }

    fn kill(&mut self) -> anyhow::Result<(Instant, Instant)> {
        let (_, from) = self.fail(Member::kill)?;
        Ok((from, Instant::now() + TICK * 10))
    }

    /// A node comes, the region's node fails, and another node takes the region over. Gives the name of the failed
    /// node, and when it failed.
    fn fail(&mut self, fails: fn(&Member)) -> anyhow::Result<(String, Instant)> {
        self.add_node()?;
        sleep(Duration::from_secs(3));
        let node = self.node()?;
        let (old, from) = (node.name.clone(), Instant::now());
        fails(node);
        self.is_taken_over(&old)?;
        Ok((old, from))
    }

    fn silence(&mut self) -> anyhow::Result<(Instant, Instant)> {
        let (old, from) = self.fail(Member::pause)?;
        let to = Instant::now() + TICK * 10;
        sleep(Duration::from_secs(2));
        // The node notices that its lease is gone, and ends.
        let silent = self.cluster.nodes().iter().find(|node| node.name == old);
        silent.context("the suspended node is gone")?.resume();
        Ok((from, to))
    }

    /// Gives the region to a node in the namespace and cuts that node off until another node has the region, or for
    /// two seconds if the node keeps its lease.
    fn partition(
        &mut self,
        namespace: &NetworkNamespace,
        cut: Cut,
    ) -> anyhow::Result<(Instant, Instant)> {
        let last = self.cluster.nodes().last().filter(|node| node.name.starts_with("namespace"));
        if last.is_none_or(|node| node.ended().is_some()) {
            self.nodes += 1;
            let etcd = self.cluster.etcd().url();
            let set = namespace.settings(&etcd, &self.cluster.postgres().address())?;
            let name = format!("namespace-{}", self.nodes);
            self.cluster.add_node_within(name, &namespace.within(), &set)?;
        }
        let name = self.cluster.nodes().last().context("no node was started")?.name.clone();
        // The node may receive the region without an order.
        sleep(Duration::from_secs(3));
        if self.owner()?.as_ref() != Some(&name) {
            self.relocate_to(name.clone())?;
            sleep(Duration::from_secs(1));
        }
        let from = Instant::now();
        namespace.cut(cut)?;
        if cut == Cut::Peers {
            sleep(Duration::from_secs(2));
            namespace.mend(cut)?;
            return Ok((from, Instant::now() + TICK * 10));
        }
        self.is_taken_over(&name)?;
        let to = Instant::now() + TICK * 10;
        sleep(Duration::from_secs(2));
        namespace.mend(cut)?;
        // The node notices that its lease is gone, and ends.
        let ended =
            |o: &Self| Ok(o.cluster.nodes().iter().all(|n| n.name != name || n.ended().is_some()));
        self.wait_for("the end of a node without a lease", ended)?;
        Ok((from, to))
    }

    fn is_taken_over(&self, old: &str) -> anyhow::Result<()> {
        self.wait_for("another owner", |o| Ok(o.owner()?.is_some_and(|owner| owner != old)))?;
        sleep(Duration::from_secs(1));
        Ok(())
    }
}
