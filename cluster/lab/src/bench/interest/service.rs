//! As a service: a process of its own, over gRPC on loopback, one stream.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use purview::interest::{Entity, Mode, Radii, Reach, Rules, Sight};
use purview::scene::{Pos, Rect};
use purview_server::interest::Ready;
use purview_server::interest::client::{Address, Stream};
use purview_server::interest::encode::{self, change};
use purview_server::interest::proto::{Batch, Request, change::Change as Kind, request};
use serde::Serialize;
use tokio::sync::mpsc;

use super::waypoint_walkers::{Density, WaypointWalkers};
use crate::bench::{cpu_us_of_process, one_thread};
use crate::testbed::program::Spawned;
use crate::usage::Cpu;

const ENTITIES: usize = 10_000;

const BATCHES: [usize; 3] = [1, 100, 10_000];

#[derive(Debug, Clone, Serialize)]
pub struct ServiceRow {
    pub batch: usize,
    /// Moves per CPU second of the client.
    pub client: f64,
    /// Moves per CPU second of the service.
    pub server: f64,
    /// Moves per second.
    pub wall: f64,
    pub events: f64,
}

struct Service {
    process: Spawned,
    url: String,
}

impl Service {
    fn start(program: &Path) -> anyhow::Result<Service> {
        let mut command = Command::new(program);
        command.args(["interest", "--listen", "127.0.0.1:0"]);
        let started = Spawned::with_line(&mut command);
        let (process, line) = started.context("the service cannot be started")?;
        let json = line.strip_prefix("ready ").context("the service does not start")?;
        let ready: Ready = serde_json::from_str(json)?;
        let url = format!("http://{}", ready.listen.context("the service has no address")?);
        Ok(Service { process, url })
    }

    fn cpu_s(&self) -> anyhow::Result<f64> {
        Ok(Cpu::of(self.process.0.id())
            .context("the CPU time of the service is unknown")?
            .total_s())
    }
}

pub fn all(program: &Path, length: Duration) -> anyhow::Result<Vec<ServiceRow>> {
    let runtime = one_thread()?;
    let mut walkers = WaypointWalkers::new(ENTITIES, Density::Even(60));
    let walk = walkers.walk(120);
    let mut rows = Vec::new();
    for batch in BATCHES {
        // CPU times of other processes are counted in hundredths of a second.
        let length = length.max(Duration::from_secs(1));
        let row = runtime.block_on(measure(program, &walk, walkers.side_cm, batch, length))?;
        let (client, server) = (row.client / 1e6, row.server / 1e6);
        eprintln!("batches of {batch}: client {client:.2}, service {server:.2} M/s");
        rows.push(row);
    }
    Ok(rows)
}

async fn measure(
    program: &Path,
    walk: &[Vec<Pos>],
    side_cm: i32,
    batch: usize,
    length: Duration,
) -> anyhow::Result<ServiceRow> {
    let service = Service::start(program)?;
    let mut stream = Address::new(&service.url).begin().await?;
    let ground = Rect { x0: 0, z0: 0, x1: side_cm + 1, z1: side_cm + 1 };
    let rules = Rules::new(ground, Mode::Circle, Reach::Circle(Radii::new(8_000, 8_500)));
    let sight = Sight::default();
    let entity =
        |(id, pos): (usize, &Pos)| Entity { id: id as u64, kind: 0, plane: 0, pos: *pos, sight };
    let entities: Vec<_> = walk[0].iter().enumerate().map(entity).collect();
    let scene = change(1, Kind::CreateScene(encode::scene(&rules, None)));
    let begin = vec![scene, change(1, encode::create(&entities)), change(1, encode::tick())];
    stream.send(begin).await?;
    let mut tick = 1;
    answer(&mut stream, tick).await?;
    // A second in which the service comes to its usual state.
    let mut driver = Driver { batch, sequence: 1, requests: stream.sender() };
    let warm = Instant::now();
    while warm.elapsed() < Duration::from_millis(500) {
        tick += 1;
        tokio::try_join!(
            driver.send_tick(&walk[tick as usize % walk.len()]),
            answer(&mut stream, tick)
        )?;
    }
    let (from, begin, own, theirs) = (tick, Instant::now(), cpu_us_of_process(), service.cpu_s()?);
    let mut events = 0;
    while begin.elapsed() < length {
        tick += 1;
        let places = &walk[tick as usize % walk.len()];
        let ((), told) = tokio::try_join!(driver.send_tick(places), answer(&mut stream, tick))?;
        events += told;
    }
    let moves = ((tick - from) as usize * ENTITIES) as f64;
    Ok(ServiceRow {
        batch,
        client: moves * 1e6 / (cpu_us_of_process() - own),
        server: moves / (service.cpu_s()? - theirs),
        wall: moves / begin.elapsed().as_secs_f64(),
        events: events as f64 / moves,
    })
}

struct Driver {
    batch: usize,
    sequence: u64,
    requests: mpsc::Sender<Request>,
}

impl Driver {
    /// Sends the moves of a tick in batches, and its end with the last one.
    async fn send_tick(&mut self, places: &[Pos]) -> anyhow::Result<()> {
        let moves: Vec<(u64, Pos)> =
            places.iter().enumerate().map(|(id, pos)| (id as u64, *pos)).collect();
        let parts = moves.len().div_ceil(self.batch);
        for (i, part) in moves.chunks(self.batch).enumerate() {
            self.sequence += 1;
            let mut changes = vec![change(1, encode::moves(part))];
            if i + 1 == parts {
                changes.push(change(1, encode::tick()));
            }
            let batch = Batch { sequence: self.sequence, changes, received: 0 };
            let request = Request { message: Some(request::Message::Batch(batch)) };
            self.requests.send(request).await.context("the stream has ended")?;
        }
        Ok(())
    }
}

/// Reads the events of a tick, and returns their number.
async fn answer(stream: &mut Stream, tick: u64) -> anyhow::Result<usize> {
    let mut events = 0;
    loop {
        let update = stream.update().await?.context("the service has closed the stream")?;
        if let Some(refusal) = update.refused.first() {
            bail!("the service refuses a change: {}", refusal.text);
        }
        events += update.scenes.iter().map(|scene| scene.observers.len()).sum::<usize>();
        if !update.more && update.scenes.iter().any(|scene| scene.tick == tick) {
            return Ok(events);
        }
    }
}
