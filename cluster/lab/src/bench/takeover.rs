//! `purview-lab bench takeover`: how long regions are without rules when a logic worker is killed or stops, and whether
//! the rules are then what they would have been without it.
//!
//! Workers are processes. Players act all the time, and the rules count the actions of each player in a property: what
//! a worker has not handled the next one counts, and what it has handled the next one does not.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use purview::scene::Pos;
use purview::scene::properties::PropertyId;
use purview_client::{Client, Event, Receiver, Sender, View, join_at};
use purview_server::gateway::Tokens;
use purview_server::process::ServerReach;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::counting::{COUNT, READY};
use super::{Shown, worker_server};
use crate::shown::table;
use crate::testbed::program::Spawned;

const WORKERS: u32 = 3;

/// The side of the scene in regions, each of 256 m.
const SIDE: u32 = 4;

const KINDS: &str = r#"
[[scene.kind]]
name = "player"
properties = [{ name = "count", id = 1, type = "int" }]
"#;

/// A tick. A player to which nothing happens gets no frame.
const TICK: Duration = Duration::from_millis(100);

/// How long anything but the measured time may take.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "A server with 16 regions and a player in each. Each player acts in every tick. Workers are processes, which count the \
    actions of each player. One of them is killed or stopped, in turns, and is replaced when the others have its \
    regions. The time is that from the signal until an action that was sent after it is counted in each region.\n\n\
    Exit codes: 0 done and every action was counted once, 1 failed or not so, 2 invalid command line."
)]
pub struct BenchTakeoverArgs {
    /// How many workers die or stop.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub faults: u32,
}

/// How long regions were without rules, by what has happened to their worker.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TakeoverRow {
    pub what: &'static str,
    pub faults: usize,
    pub median_ms: u64,
    pub max_ms: u64,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct TakeoverBench {
    pub rows: Vec<TakeoverRow>,
    /// Actions of players that the server has accepted.
    pub actions: u64,
    /// Those of them that no worker has counted.
    pub lost: u64,
    /// Those that were counted more than once.
    pub repeated: u64,
}

impl Shown for TakeoverBench {
    fn is_valid(&self) -> bool {
        self.lost == 0 && self.repeated == 0
    }

    fn text(&self) -> serde_json::Result<String> {
        let TakeoverBench { rows, actions, lost, repeated } = self;
        let counts =
            format!("\n{actions} actions, {lost} lost, {repeated} counted more than once\n");
        Ok(table(rows)? + &counts)
    }
}

pub fn bench_takeover(args: &BenchTakeoverArgs) -> anyhow::Result<TakeoverBench> {
    let program = std::env::current_exe()?;
    let server = worker_server(SIDE, "", KINDS)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut trial = Trial::begin(server.reach(), &program).await?;
        let mut times: BTreeMap<&'static str, Vec<u64>> = BTreeMap::new();
        for fault in 0..args.faults {
            let (what, signal) = match fault % 2 {
                0 => ("killed", Signal::KILL),
                _ => ("stopped", Signal::STOP),
            };
            times.entry(what).or_default().push(trial.endure(signal).await?);
        }
        let mut bench = trial.finish().await?;
        bench.rows = times.into_iter().map(|(what, times)| row(what, times)).collect();
        Ok(bench)
    })
}

fn row(what: &'static str, mut times: Vec<u64>) -> TakeoverRow {
    times.sort_unstable();
    let (median_ms, max_ms) = (times[times.len() / 2], times[times.len() - 1]);
    TakeoverRow { what, faults: times.len(), median_ms, max_ms }
}

fn start_worker(program: &Path, reach: &ServerReach) -> anyhow::Result<Spawned> {
    let address = reach.logic.context("workers cannot connect")?.to_string();
    let mut command = Command::new(program);
    let (worker, line) = Spawned::with_line(command.args(["bench", "counting-worker", &address]))?;
    match line.trim() {
        READY => Ok(worker),
        said => bail!("the worker says {said:?}"),
    }
}

struct Player {
    sender: Sender,
    receiver: Receiver,
    view: View,
    sent: u64,
}

impl Player {
    async fn join(reach: &ServerReach, region: u32) -> anyhow::Result<Player> {
        let token = Tokens::dev().mint(&format!("p{region}"), Some(Duration::from_secs(86_400)))?;
        let url = reach.url().context("clients cannot connect")?;
        let mut client = Client::connect(&url, &token).await?;
        let along = |at: u32| 12_800 + 25_600 * at as i32;
        let pos = Pos::ground(along(region % SIDE), along(region / SIDE));
        let joined = client.join(join_at("bench", pos)).await?;
        let view = View::of(&joined);
        let (sender, receiver) = client.split();
        Ok(Player { sender, receiver, view, sent: 0 })
    }

    fn counted(&self) -> u64 {
        let count = self.view.own().properties.get(&PropertyId(COUNT));
        count.and_then(|value| value.read().ok()).unwrap_or(0)
    }

    /// Takes a frame, if one comes within a tick, and acts if it should.
    async fn step(&mut self, acts: bool) -> anyhow::Result<()> {
        let told = tokio::time::timeout(TICK, self.receiver.next()).await;
        if let Ok(told) = told
            && let Event::Frame(frame) = told?
        {
            self.view.apply(&frame)?;
            if !frame.refused.is_empty() {
                bail!("an action was refused: {:?}", frame.refused);
            }
        }
        if acts {
            self.sent += 1;
            self.sender.act(b"count".to_vec()).await?;
        }
        Ok(())
    }
}

struct Trial<'a> {
    reach: &'a ServerReach,
    program: &'a Path,
    workers: Vec<Spawned>,
    players: Vec<Player>,
    faults: usize,
}

impl<'a> Trial<'a> {
    async fn begin(reach: &'a ServerReach, program: &'a Path) -> anyhow::Result<Trial<'a>> {
        let workers = (0..WORKERS).map(|_| start_worker(program, reach));
        let workers = workers.collect::<anyhow::Result<_>>()?;
        let mut players = Vec::new();
        for region in 0..SIDE * SIDE {
            players.push(Player::join(reach, region).await?);
        }
        let mut trial = Trial { reach, program, workers, players, faults: 0 };
        trial.until(true, |players| players.iter().all(|player| player.counted() > 3)).await?;
        Ok(trial)
    }

    async fn until(&mut self, acts: bool, holds: impl Fn(&[Player]) -> bool) -> anyhow::Result<()> {
        let all = async {
            while !holds(&self.players) {
                let steps = self.players.iter_mut().map(|player| player.step(acts));
                futures::future::try_join_all(steps).await?;
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, all).await.context("players wait in vain")?
    }

    /// A signal to a worker; how long it takes until later actions are counted in all regions, ms.
    async fn endure(&mut self, signal: Signal) -> anyhow::Result<u64> {
        self.faults += 1;
        let victim = self.workers.remove(self.faults % self.workers.len());
        let begin = Instant::now();
        kill_process(Pid::from_child(&victim.0), signal)
            .context("the worker cannot be signalled")?;
        // What was sent until now may have been counted by the victim.
        let before: Vec<u64> = self.players.iter().map(|player| player.sent).collect();
        self.until(true, |players| {
            players.iter().zip(&before).all(|(player, before)| player.counted() > *before)
        })
        .await?;
        let took = begin.elapsed();
        drop(victim);
        self.workers.push(start_worker(self.program, self.reach)?);
        let next: Vec<u64> = self.players.iter().map(|player| player.sent + 5).collect();
        self.until(true, |players| {
            players.iter().zip(&next).all(|(player, next)| player.counted() >= *next)
        })
        .await?;
        Ok(u64::try_from(took.as_millis())?)
    }

    /// No player acts any more: what has become of their actions.
    async fn finish(mut self) -> anyhow::Result<TakeoverBench> {
        let counted = |player: &Player| player.counted() >= player.sent;
        // Without an end where some are lost: then the count is what it is.
        let all = self.until(false, |players| players.iter().all(counted)).await;
        if let Err(error) = &all {
            tracing::warn!(%error, "not all actions are counted");
        }
        // What is counted too often may come later.
        for _ in 0..10 {
            let steps = self.players.iter_mut().map(|player| player.step(false));
            futures::future::try_join_all(steps).await?;
        }
        let sum = |of: fn(&Player) -> u64| self.players.iter().map(of).sum::<u64>();
        Ok(TakeoverBench {
            rows: Vec::new(),
            actions: sum(|player| player.sent),
            lost: sum(|player| player.sent.saturating_sub(player.counted())),
            repeated: sum(|player| player.counted().saturating_sub(player.sent)),
        })
    }
}
