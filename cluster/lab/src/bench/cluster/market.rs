//! `purview-lab bench market`: eight groups of players wander across a map of four nodes, first as the regions are shared
//! out by number, then balanced by load, in one cluster of processes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use purview::scene::Pos;
use purview_server::admin::balance::PauseOrder;
use purview_server::config::Config;
use serde::Serialize;

use super::console::Console;
use super::walkers::{Ended, Places, STEP, Walkers};
use super::{Pauses, Shown, one_thread, start};
use crate::rng::Rng;
use crate::testbed::local_cluster::{LocalCluster, Parts};
use crate::usage::threads_cpu_s;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab bench market\n  \
    purview-lab bench market --players 1000 --capacity 24\n\n\
    Starts an etcd, a PostgreSQL, four nodes and a gateway as separate processes, and clients, which wander across \
    the map and back: on the way there nothing is balanced, on the way back everything. Takes ten minutes.\n\n\
    Exit codes: 0 done, 1 failed, or a client was disconnected, or a region went back to a node within three \
    minutes, 2 invalid command line.")]
pub struct BenchMarketArgs {
    /// The number of players.
    #[arg(long, default_value_t = 500)]
    pub players: usize,
    /// What each node can do (`cluster.capacity`): so little that the players load the nodes to 60 % in the mean, as
    /// `purview ctl balance status` shows it. With 12 they do in a build for development.
    #[arg(long, default_value_t = 12)]
    pub capacity: u32,
}

const NODES: u16 = 4;

/// The side of the map, centimetres.
const SIDE_CM: f64 = 102_400.0;

/// How long the players take across the map, and stand before and after it.
const WAY: Duration = Duration::from_secs(180);
const STAND: Duration = Duration::from_secs(40);
const PHASE: Duration = WAY.saturating_add(STAND).saturating_add(STAND);

/// The time over which a node's CPU time is compared with that of others.
const WINDOW: Duration = Duration::from_secs(10);

/// A region that leaves a node does not go back to it within this time.
const TABU: Duration = Duration::from_secs(180);

/// Where a player is so long after the start: nine of ten in eight groups round a middle, which goes from the north-west
/// to the south-east in the first phase, and back in the second.
fn place(i: usize, since: Duration) -> Pos {
    let mut rng = Rng::new(i as u64);
    let home = [rng.unit() * SIDE_CM, rng.unit() * SIDE_CM];
    let off = [rng.normal(), rng.normal()];
    let at = if i % 10 == 9 {
        home
    } else {
        let of_phase = |t: f64| ((t - STAND.as_secs_f64()) / WAY.as_secs_f64()).clamp(0.0, 1.0);
        let (t, phase) = (since.as_secs_f64(), PHASE.as_secs_f64());
        let along = if t < phase { of_phase(t) } else { 1.0 - of_phase(t - phase) };
        let middle = SIDE_CM * (0.27 + 0.46 * along);
        let angle = (i % 8) as f64 * std::f64::consts::FRAC_PI_4;
        let round = [angle.cos(), angle.sin()].map(|v| middle + SIDE_CM * 0.17 * v);
        [0, 1].map(|axis| round[axis] + SIDE_CM * 0.05 * off[axis])
    };
    // Everybody goes to and fro a little, so that there is something to tell.
    let sway = 150.0 * (since.as_secs_f64() * 1.5 + i as f64).sin();
    let [x, z] = [at[0] + sway, at[1]].map(|v| v.clamp(0.0, SIDE_CM - 1.0) as i32);
    Pos::ground(x, z)
}

fn config(capacity: u32) -> anyhow::Result<Config> {
    Ok(Config::parse(&format!(
        "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n[console]\nlisten = \"127.0.0.1:0\"\n\
         [cluster]\ncheckpoint = \"1s\"\nbalance = \"on\"\ncapacity = {capacity}\n\
         [[scene]]\nteleports = \"clients\"\nname = \"field\"\nwidth = \"1024m\"\ndepth = \"1024m\"\n\
         land = \"64m\"\nregion = [4, 4]\npatch = \"32m\"\nmoves = \"trusted\"\ntop_speed = \"20m/s\"\n"
    ))?)
}

/// What was measured under one policy.
#[derive(Debug, Clone, Serialize)]
struct Phase {
    /// Shares of a core, percent: of the busiest node, the mean of windows; of a node in the mean; of all processes.
    busiest: f64,
    mean: f64,
    /// How often a region changed its node, or the layout changed.
    moves: usize,
    /// The most of these within a minute.
    most_in_a_minute: usize,
    /// How often a region came back to a node that it had left within three minutes.
    returns: usize,
    /// The longest time without a frame of each client.
    pauses: Pauses,
}

#[derive(Debug, Clone, Serialize)]
pub struct MarketBench {
    players: usize,
    counts: Phase,
    balanced: Phase,
    #[serde(flatten)]
    ended: Ended,
}

impl Shown for MarketBench {
    fn is_valid(&self) -> bool {
        self.ended.disconnected + self.balanced.returns == 0
    }
}

struct Market<'a> {
    cluster: LocalCluster,
    walkers: Walkers,
    console: Console<'a>,
}

pub fn bench_market(args: &BenchMarketArgs) -> anyhow::Result<MarketBench> {
    let runtime = one_thread()?;
    let cluster = start(Parts { nodes: NODES, gateways: 1 }, &config(args.capacity)?)?;
    let console = Console::of(&cluster.gateways()[0], &runtime)?;
    pause_balancing(&console, Duration::from_secs(3_600))?;
    let places: Places = Arc::new(|(i, _), step| place(i, STEP * step as u32));
    let url = cluster.url(0)?;
    let walkers = Walkers::start(&runtime, (&url, cluster.tokens()), args.players, places)?;
    let market = Market { cluster, walkers, console };
    market.walkers.restart();
    let begin = Instant::now();
    let counts = market.phase("by number", begin + PHASE)?;
    pause_balancing(&market.console, Duration::ZERO)?;
    let balanced = market.phase("by load", begin + PHASE * 2)?;
    let (players, ended) = (market.walkers.count(), market.walkers.ended());
    Ok(MarketBench { players, counts, balanced, ended })
}

fn pause_balancing(console: &Console<'_>, time: Duration) -> anyhow::Result<()> {
    console.order("/api/balance/pause", &PauseOrder { for_ms: time.as_millis() as u64 })
}

/// A region that has another node.
#[derive(Debug, Clone)]
struct Moved {
    at: Instant,
    region: u32,
    from: Option<String>,
    to: String,
}

impl Market<'_> {
    fn cpu_s(&self) -> Vec<f64> {
        self.cluster.nodes().iter().map(|node| threads_cpu_s(node.pid())).collect()
    }

    /// Measures until then, from when the players begin to walk.
    fn phase(&self, name: &str, end: Instant) -> anyhow::Result<Phase> {
        let mut owners = self.console.owners()?;
        let (mut moves, mut windows) = (Vec::new(), Vec::new());
        let mut window: Option<(Instant, Vec<f64>)> = None;
        let walk = end.checked_sub(PHASE - STAND).context("the clock is too young")?;
        while Instant::now() < end {
            std::thread::sleep(Duration::from_secs(1));
            let (at, now) = (Instant::now(), self.console.owners()?);
            for (region, to) in &now {
                let from = owners.get(region);
                if from != Some(to) {
                    let (region, from, to) = (*region, from.cloned(), to.clone());
                    moves.push(Moved { at, region, from, to });
                }
            }
            owners = now;
            if at < walk {
                continue;
            }
            match &window {
                Some((since, _)) if at - *since < WINDOW => {}
                Some((since, before)) => {
                    let cpu = self.cpu_s();
                    let spent = cpu.iter().zip(before).map(|(now, then)| now - then);
                    let share = |spent: f64| 100.0 * spent / (at - *since).as_secs_f64();
                    windows.push(spent.map(share).collect::<Vec<f64>>());
                    window = Some((at, cpu));
                }
                None => {
                    self.walkers.forget();
                    eprintln!("bench: {name}: the players walk");
                    window = Some((at, self.cpu_s()));
                }
            }
        }
        ensure!(!windows.is_empty(), "the machine had no time to measure");
        let pauses = self.walkers.longest(walk, end);
        Ok(Phase::of(&windows, &moves, pauses))
    }
}

impl Phase {
    fn of(windows: &[Vec<f64>], moves: &[Moved], pauses: Vec<Duration>) -> Phase {
        let of_windows = |of: fn(&Vec<f64>) -> f64| {
            windows.iter().map(of).sum::<f64>() / windows.len().max(1) as f64
        };
        let within = |a: &Moved, b: &Moved, time: Duration| b.at >= a.at && b.at - a.at <= time;
        let minute = Duration::from_secs(60);
        let from = |a: &Moved| moves.iter().filter(|b| within(a, b, minute)).count();
        let returns = |a: &&Moved| {
            let left = |b: &Moved| b.region == a.region && b.from.as_ref() == Some(&a.to);
            moves.iter().any(|b| left(b) && within(b, a, TABU))
        };
        let pauses = pauses.into_iter().map(|pause| pause.saturating_sub(STEP)).collect();
        Phase {
            busiest: of_windows(|nodes| nodes.iter().copied().fold(0.0, f64::max)),
            mean: of_windows(|nodes| nodes.iter().sum::<f64>() / nodes.len() as f64),
            moves: moves.len(),
            most_in_a_minute: moves.iter().map(from).max().unwrap_or(0),
            returns: moves.iter().filter(returns).count(),
            pauses: Pauses::of("a phase", moves.len(), pauses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_market_wanders_to_the_other_corner_and_back() {
        let middle = |since: Duration| {
            let all: Vec<Pos> = (0..720).map(|i| place(i, since)).collect();
            let mean =
                |of: fn(&Pos) -> i32| all.iter().map(|p| i64::from(of(p))).sum::<i64>() / 720;
            (mean(|p| p.x), mean(|p| p.z))
        };
        let [before, far, after] = [Duration::ZERO, PHASE, PHASE * 2].map(middle);
        assert!(before.0 < 40_000 && before.1 < 40_000, "{before:?}");
        assert!(far.0 > 65_000 && far.1 > 65_000, "{far:?}");
        assert!((after.0 - before.0).abs() < 1_000, "{after:?}");
        let slow = (0..2_000).all(|step| {
            let [a, b] = [step, step + 1].map(|step| place(3, STEP * step));
            a.dist2(b) < 200 * 200
        });
        assert!(slow, "below 20 m/s");
        assert_eq!(config(1).unwrap().build_scenes().unwrap()[0].map.regions.len(), 16);
    }

    #[test]
    fn moves_and_returns_are_counted() {
        let zero = Instant::now();
        let moved = |s: u64, region: u32, from: &str, to: &str| Moved {
            at: zero + Duration::from_secs(s),
            region,
            from: Some(from.into()),
            to: to.into(),
        };
        let moves = [
            moved(0, 1, "a", "b"),
            moved(20, 2, "a", "b"),
            moved(90, 1, "b", "a"),
            moved(290, 1, "a", "b"),
        ];
        let phase = Phase::of(&[vec![4.0, 2.0], vec![1.0, 3.0]], &moves, Vec::new());
        assert_eq!((phase.moves, phase.most_in_a_minute, phase.returns), (4, 2, 1));
        assert_eq!((phase.busiest, phase.mean), (3.5, 2.5));
    }
}
