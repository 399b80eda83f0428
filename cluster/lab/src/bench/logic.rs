//! `purview-lab bench logic`: what a logic worker over gRPC costs the server.
//!
//! Server and worker share a process. The worker has one thread, whose CPU time is told apart; all else is the server's.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;
use purview_server::interest::client::Address;
use purview_server::logic::client::Stream;
use purview_server::logic::proto::{self, Told, command, response};
use purview_server::process::Background;
use serde::Serialize;

use super::{Shown, cpu_us, cpu_us_of_process, worker_server};
use crate::shown::table;

const THINGS: u64 = 1_000;

const KINDS: &str = r#"
[[scene.kind]]
name = "player"
[[scene.kind]]
name = "thing"
properties = [{ name = "n", id = 1, type = "int" }]
"#;

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "One worker has one region with 1,000 entities, ten ticks per second. `set` sets a property of each in turn; `act` lets each \
    act, and each action is told to the worker. CPU times, one run each. Close other programs before.\n\n\
    Exit codes: 0 done, 1 failed, 2 invalid command line."
)]
pub struct BenchLogicArgs {
    /// How long each row is measured, seconds.
    #[arg(long, default_value_t = 5.0, value_parser = crate::args::positive)]
    pub seconds: f64,
    /// Commands in a batch, one batch per tick.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub commands: u32,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct CommandRow {
    pub what: &'static str,
    pub commands: u64,
    /// Actions that came back.
    pub events: u64,
    pub server_cpu_s: f64,
    pub worker_cpu_s: f64,
    /// Commands and events per CPU second of the server.
    pub commands_per_cpu_s: f64,
    pub events_per_cpu_s: f64,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct LogicBench {
    pub rows: Vec<CommandRow>,
}

impl Shown for LogicBench {
    fn text(&self) -> serde_json::Result<String> {
        table(&self.rows)
    }
}

pub fn bench_logic(args: &BenchLogicArgs) -> anyhow::Result<LogicBench> {
    let server = worker_server(1, "takeover = \"30s\"", KINDS)?;
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
        Ok(bench)
    })
}

struct BenchWorker {
    stream: Stream,
    first: u64,
    next: u64,
    events: u64,
}

impl BenchWorker {
    async fn begin(server: &Background) -> anyhow::Result<BenchWorker> {
        let logic = server.reach().logic.context("workers cannot connect")?;
        let open = proto::Open { scene: "bench".into(), ..proto::Open::default() };
        let stream = Stream::begin(&Address::new(&format!("http://{logic}")), open).await?;
        let first = stream.opened.first_id;
        let mut worker = BenchWorker { stream, first, next: 0, events: 0 };
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
        Ok(CommandRow {
            what,
            commands: given,
            events,
            server_cpu_s,
            worker_cpu_s,
            commands_per_cpu_s: given as f64 / server_cpu_s,
            events_per_cpu_s: events as f64 / server_cpu_s,
        })
    }
}
