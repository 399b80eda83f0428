//! `purview-lab bench logic`: what a logic worker over gRPC costs the server, and how late its answers are.
//!
//! Server and worker share a process. The worker has one thread, whose CPU time is told apart; all else is the server's.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;
use purview::scene::properties::PropertyId;
use purview::scene::{EntityId, Pos, Tick};
use purview_client::{Client, Event, View, join_at};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::interest::client::Address;
use purview_server::logic::client::Stream;
use purview_server::logic::proto::{self, Told, command, response};
use purview_server::process::Background;
use serde::Serialize;

use super::{cpu_us, cpu_us_of_process};

/// Entities that are commanded.
const THINGS: u64 = 1_000;

/// The scene: one region.
const CONFIG: &str = r#"
[gateway]
ws = "127.0.0.1:0"
tcp = "off"
rate_limit = 1000
burst = 1000
[console]
listen = "off"
[logic]
listen = "127.0.0.1:0"
takeover = "30s"
[[scene]]
name = "bench"
width = "256m"
depth = "256m"
land = "256m"
region = [1, 1]
patch = "32m"
moves = "trusted"
teleports = "clients"
[[scene.kind]]
name = "player"
[[scene.kind]]
name = "thing"
properties = [{ name = "n", id = 1, type = "int" }]
"#;

/// `purview-lab bench logic`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab bench logic\n  \
    purview-lab bench logic --seconds 2 --commands 5000 --json\n\n\
    One worker has one region with 1,000 entities, ten ticks per second. `set` sets a property of each in turn; `act` lets each \
    act, and each action is told to the worker. CPU times, one run each. Close other programs before.\n\n\
    Exit codes: 0 done, 1 failed, 2 invalid command line.")]
pub struct BenchLogicArgs {
    /// How long each row is measured, seconds.
    #[arg(long, default_value_t = 5.0, value_parser = crate::args::positive)]
    pub seconds: f64,
    /// Commands in a batch, one batch per tick.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub commands: u32,
    /// Actions whose answers are timed.
    #[arg(long, default_value_t = 200)]
    pub actions: u32,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

/// The cost of commands of one kind.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CommandRow {
    /// What they do.
    pub what: &'static str,
    /// Commands of answers that counted.
    pub commands: u64,
    /// Actions that came back.
    pub events: u64,
    /// CPU time of the server, seconds.
    pub server_cpu_s: f64,
    /// CPU time of the worker, seconds.
    pub worker_cpu_s: f64,
}

/// The result of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LogicBench {
    /// The cost of commands.
    pub rows: Vec<CommandRow>,
    /// Ticks from a client's action to the property with which the worker answers, as the client sees both: median, 99th
    /// percentile and maximum.
    pub latency_ticks: [u64; 3],
}

impl fmt::Display for LogicBench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let per_s = |n: u64| n as f64 / row.server_cpu_s;
            writeln!(
                f,
                "{}: {:.0} commands and {:.0} events per CPU second of the server ({} commands, {:.2} s; worker {:.2} s)",
                row.what,
                per_s(row.commands),
                per_s(row.events),
                row.commands,
                row.server_cpu_s,
                row.worker_cpu_s
            )?;
        }
        let [p50, p99, max] = self.latency_ticks;
        writeln!(f, "action to property: p50 {p50}, p99 {p99}, max {max} ticks")
    }
}

/// Runs the benchmark.
///
/// # Errors
/// The server does not start, or the worker or the player loses its connection.
pub fn bench_logic(args: &BenchLogicArgs) -> anyhow::Result<LogicBench> {
    let server = Background::start(Config::parse(CONFIG)?, Tokens::dev())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut worker = BenchWorker::begin(&server).await?;
        let seconds = Duration::from_secs_f64(args.seconds);
        let set = |n: u64| {
            // A whole number of MessagePack: two bytes.
            let value = Bytes::copy_from_slice(&[0xcc, n as u8]);
            command::Command::SetProperty(proto::Property { id: 1, value, version: 0 })
        };
        let act = |_| {
            let payload = Bytes::from_static(b"hit 12345");
            command::Command::Act(proto::Act { payload, aim: 0 })
        };
        let mut bench = LogicBench::default();
        bench.rows.push(worker.measure("set", (seconds, args.commands), set).await?);
        bench.rows.push(worker.measure("act", (seconds, args.commands), act).await?);
        bench.latency_ticks = worker.latency(&server, args.actions).await?;
        Ok(bench)
    })
}

/// The worker of one region.
struct BenchWorker {
    stream: Stream,
    first: u64,
    /// The next thing that is commanded.
    next: u64,
    events: u64,
    acted: bool,
}

impl BenchWorker {
    async fn begin(server: &Background) -> anyhow::Result<BenchWorker> {
        let logic = server.reach().logic.context("workers cannot connect")?;
        let open = proto::Open { scene: "bench".into(), ..proto::Open::default() };
        let stream = Stream::begin(&Address::new(&format!("http://{logic}")), open).await?;
        let first = stream.opened.first_id;
        let mut worker = BenchWorker { stream, first, next: 0, events: 0, acted: false };
        let spawn = |n: u64| {
            let (x, z) = (1_000 + (n % 32) as i32 * 700, 1_000 + (n / 32) as i32 * 700);
            let position = Some(proto::Position { x, y: 0, z });
            let spawn = proto::Spawn { kind: 1, position, ..proto::Spawn::default() };
            let command = Some(command::Command::Spawn(spawn));
            proto::Command { entity: first + n, command, ..proto::Command::default() }
        };
        let told = worker.take().await?;
        worker.stream.answer(&told, (0..THINGS).map(spawn).collect()).await?;
        let mut things = 0;
        while things < THINGS {
            let told = worker.take().await?;
            things += told.entities.len() as u64;
            worker.stream.answer(&told, Vec::new()).await?;
        }
        Ok(worker)
    }

    /// What the region tells next.
    async fn take(&mut self) -> anyhow::Result<Told> {
        loop {
            match self.stream.next().await?.context("the stream has ended")? {
                response::Message::Told(told) => {
                    self.acted |= told.acts.iter().any(|act| !act.by_logic);
                    self.events += told.acts.len() as u64;
                    return Ok(told);
                }
                response::Message::Refused(refused) => {
                    bail!("a command was refused: {:?}", refused.refusals.first());
                }
                _ => {}
            }
        }
    }

    async fn measure(
        &mut self,
        what: &'static str,
        (seconds, commands): (Duration, u32),
        command: impl Fn(u64) -> command::Command,
    ) -> anyhow::Result<CommandRow> {
        let (end, events) = (Instant::now() + seconds, self.events);
        let (all, own) = (cpu_us_of_process(), cpu_us());
        let (mut given, mut last): (u64, Option<Option<proto::Batch>>) = (0, None);
        loop {
            let told = self.take().await?;
            if last.is_some_and(|last| told.counted != last) {
                bail!("an answer did not count");
            }
            let ends = Instant::now() >= end;
            let over = ends && told.acts.is_empty();
            let mut batch = Vec::new();
            for _ in 0..if ends { 0 } else { commands } {
                let thing = self.next % THINGS;
                self.next += 1;
                let command = Some(command(self.next / THINGS));
                batch.push(proto::Command {
                    entity: self.first + thing,
                    command,
                    ..proto::Command::default()
                });
            }
            given += batch.len() as u64;
            last = Some(Some(proto::Batch { lease: told.lease, seq: told.seq }));
            self.stream.answer(&told, batch).await?;
            if over {
                break;
            }
        }
        let (all, own) = (cpu_us_of_process() - all, cpu_us() - own);
        let events = self.events - events;
        let (server_cpu_s, worker_cpu_s) = ((all - own) / 1e6, own / 1e6);
        Ok(CommandRow { what, commands: given, events, server_cpu_s, worker_cpu_s })
    }

    /// A player acts, and sees the worker's answer.
    async fn latency(&mut self, server: &Background, actions: u32) -> anyhow::Result<[u64; 3]> {
        let url = server.reach().url().context("clients cannot connect")?;
        let token = Tokens::dev().mint("bench", Some(Duration::from_secs(3_600)))?;
        let mut client = Client::connect(&url, &token).await?;
        let joined = client.join(join_at("bench", Pos::ground(1_000, 1_000))).await?;
        let (mut view, mut late) = (View::of(&joined), Vec::new());
        let thing = EntityId(self.first);
        let n = |view: &View| view.get(thing)?.properties.get(&PropertyId(1)).cloned();
        let (mut waits, mut applied): (Option<purview::scene::Seq>, Option<Tick>) = (None, None);
        let mut before = None;
        while late.len() < actions as usize {
            tokio::select! {
                told = self.take() => {
                    let told = told?;
                    let mut batch = Vec::new();
                    if std::mem::take(&mut self.acted) {
                        self.next += 1;
                        let value = Bytes::copy_from_slice(&[0xcd, (self.next >> 8) as u8, self.next as u8]);
                        let property = proto::Property { id: 1, value, version: 0 };
                        let command = Some(command::Command::SetProperty(property));
                        let entity = thing.0;
                        batch.push(proto::Command { entity, command, ..proto::Command::default() });
                    }
                    self.stream.answer(&told, batch).await?;
                }
                told = client.next() => {
                    let Event::Frame(frame) = told? else { continue };
                    view.apply(&frame)?;
                    if waits.is_some_and(|seq| frame.ack >= seq) && applied.is_none() {
                        applied = Some(frame.tick);
                    }
                    let now = n(&view);
                    match (waits, applied) {
                        (None, _) if now.is_some() => {
                            before = now;
                            waits = Some(client.act(b"hit".to_vec()).await?);
                        }
                        (Some(_), Some(at)) if now != before => {
                            late.push(frame.tick.0 - at.0);
                            (waits, applied) = (None, None);
                        }
                        _ => {}
                    }
                }
            }
        }
        late.sort_unstable();
        let at = |share: f64| late[((late.len() - 1) as f64 * share).round() as usize];
        Ok([at(0.5), at(0.99), at(1.0)])
    }
}
