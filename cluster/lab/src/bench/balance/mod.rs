//! `purview-lab bench balance`: the balancer on paper. Players walk by a scenario, loads follow from a model of costs,
//! and policies decide; no server runs.

mod cluster;
mod field;
mod large;
mod world;

use std::fmt;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::Shown;
use cluster::Cluster;
pub use cluster::Policy;
pub use large::Large;
pub use world::Scenario;
use world::World;

/// Lands along the side of the map.
const LANDS: i32 = 16;

const RUN_S: u64 = 1_140;
const FROM_S: usize = 180;

const PLAYERS: usize = 4_000;

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "4 nodes of one core, 2 x 2 km of 16 regions with lands of 128 m, 19 minutes; loads by a model, \
    measured with an error of 8 %. The same seeds give the same result, but for times.\n\n\
    Exit codes: 0 done, 2 invalid command line."
)]
pub struct BenchBalanceArgs {
    /// What the players do.
    #[arg(long, value_delimiter = ',', default_values = ["market", "crowd", "star", "login-wave", "two-crowds"])]
    pub scenarios: Vec<Scenario>,
    /// Runs of each scenario and policy.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub seeds: u64,
    /// Nodes of the large case, with 200 regions and 2,000 players each; 0: none.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=1_000))]
    pub large: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct BalanceRow {
    pub scenario: Scenario,
    pub policy: Policy,
    /// The busiest node by the mean node, 95th percentile over time.
    pub busiest_by_mean: f64,
    /// The busiest node, milliseconds per tick, 95th percentile over time.
    pub busiest_ms: f64,
    /// The load of all nodes by that of a map without borders, mean over time.
    pub cpu: f64,
    pub regions: f64,
    /// Moves of regions, most of them in a minute, and moves to a node that the region had left less than 180 s before.
    pub moves: usize,
    pub moves_in_a_minute: usize,
    pub returns: u32,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct BalanceBench {
    pub rows: Vec<BalanceRow>,
    pub large: Option<Large>,
}

pub fn bench_balance(args: &BenchBalanceArgs) -> BalanceBench {
    let mut bench = BalanceBench::default();
    for scenario in &args.scenarios {
        for policy in [Policy::Counts, Policy::Proposed] {
            let runs = (1..=args.seeds).map(|seed| run(*scenario, policy, seed));
            bench.rows.extend(runs.inspect(|row| eprintln!("{row:?}")));
        }
    }
    bench.large = (args.large > 0).then(|| large::large(args.large));
    bench
}

fn run(scenario: Scenario, policy: Policy, seed: u64) -> BalanceRow {
    let mut world = World::new(scenario, PLAYERS, LANDS, seed);
    let mut cluster = Cluster::new(policy, 4, LANDS / 4, 4, seed + 99);
    let mut seconds = Vec::new();
    for t in 0..RUN_S {
        let field = world.step(t as f64);
        let nodes = cluster.loads(&field);
        let (busiest, all) = (nodes.iter().copied().fold(0.0, f64::max), nodes.iter().sum::<f64>());
        let by_mean = busiest * nodes.len() as f64 / all;
        seconds.push([by_mean, busiest, all * 1e3 / field.whole(), cluster.plots().len() as f64]);
        cluster.step(t, &field);
    }
    let seconds = &seconds[FROM_S..];
    let of = |what: usize, share| percentile(seconds.iter().map(|s| s[what]).collect(), share);
    let times = &cluster.moves;
    let in_a_minute = |at: &u64| times.iter().filter(|t| (*at..at + 60).contains(*t)).count();
    BalanceRow {
        scenario,
        policy,
        busiest_by_mean: of(0, 0.95),
        busiest_ms: of(1, 0.95),
        cpu: seconds.iter().map(|s| s[2]).sum::<f64>() / seconds.len() as f64,
        regions: of(3, 1.0),
        moves: times.len(),
        moves_in_a_minute: times.iter().map(in_a_minute).max().unwrap_or(0),
        returns: cluster.returns,
    }
}

/// The value below which a share of the values are; 0 of none.
fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len().saturating_sub(1) as f64 * share).round() as usize;
    values.get(at).copied().unwrap_or(0.0)
}

impl Shown for BalanceBench {}

impl fmt::Display for BalanceBench {
    /// A row for each scenario and policy: means of all seeds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = "| scenario | policy | busiest by mean, p95 | busiest node, p95 (worst seed), ms | \
            CPU by no borders | regions, most | moves (most in a minute) | returns in 180 s |";
        writeln!(f, "{head}\n|{}", "---|".repeat(8))?;
        for rows in self.rows.chunk_by(|a, b| (a.scenario, a.policy) == (b.scenario, b.policy)) {
            let mean =
                |of: fn(&BalanceRow) -> f64| rows.iter().map(of).sum::<f64>() / rows.len() as f64;
            let most = |of: fn(&BalanceRow) -> f64| rows.iter().map(of).fold(0.0, f64::max);
            let name = rows[0].scenario.to_possible_value();
            writeln!(
                f,
                "| {} | {:?} | {:.2} | {:.0} ({:.0}) | {:.2} | {:.0} | {:.0} ({:.0}) | {} |",
                name.as_ref().map_or("", |name| name.get_name()),
                rows[0].policy,
                mean(|row| row.busiest_by_mean),
                mean(|row| row.busiest_ms),
                most(|row| row.busiest_ms),
                mean(|row| row.cpu),
                most(|row| row.regions),
                mean(|row| row.moves as f64),
                most(|row| row.moves_in_a_minute as f64),
                rows.iter().map(|row| row.returns).sum::<u32>()
            )?;
        }
        self.large.iter().try_for_each(|large| writeln!(f, "{large}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn market_has_half_the_busiest_node_and_star_is_not_worse_than_counts() {
        let both = |scenario| [Policy::Counts, Policy::Proposed].map(|p| run(scenario, p, 1));
        let [counts, proposed] = both(Scenario::Market);
        assert!(proposed.busiest_ms < 0.5 * counts.busiest_ms, "{counts:?}\n{proposed:?}");
        assert!(proposed.cpu < 1.15 * counts.cpu, "{counts:?}\n{proposed:?}");
        assert!(proposed.moves_in_a_minute <= 10 && proposed.returns == 0, "{proposed:?}");
        let [counts, proposed] = both(Scenario::Star);
        assert!(proposed.busiest_ms < 1.01 * counts.busiest_ms, "{counts:?}\n{proposed:?}");
    }
}
