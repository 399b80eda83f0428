//! The clients of the cluster benchmark: they walk, and record the time of each frame.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::{StreamExt, stream};
use parking_lot::{Mutex, MutexGuard};
use purview::scene::{Pos, Seq};
use purview_client::{Client, Event, View, join_at};
use serde::Serialize;
use tokio::runtime::Runtime;

use purview_server::gateway::Tokens;

const JOINING: usize = 32;

pub const STEP: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy)]
pub struct WalkArea {
    /// The start from the west and the length, centimetres.
    pub x: (i32, i32),
    /// The start from the north and the depth, centimetres.
    pub z: (i32, i32),
}

/// Where players are: player `i` of `n` after so many steps.
pub type Places = Arc<dyn Fn((usize, usize), usize) -> Pos + Send + Sync>;

impl From<WalkArea> for Places {
    fn from(area: WalkArea) -> Places {
        Arc::new(move |who, step| area.at(who, step))
    }
}

impl WalkArea {
    /// The position of player `i` of `n` after so many steps: in rows, to and fro at 5 m/s.
    pub fn at(&self, (i, n): (usize, usize), step: usize) -> Pos {
        let rows = (n as f64).sqrt().ceil().max(1.0) as i32;
        let (row, place) = (i as i32 / rows, i as i32 % rows);
        let (width, depth) = (self.x.1.max(1), self.z.1.max(1));
        let along = (place * width / rows + step as i32 * 50) % (2 * width);
        let along = if along < width { along } else { 2 * width - along };
        Pos::ground(self.x.0 + along, self.z.0 + row * depth / rows)
    }
}

#[derive(Debug, Default)]
struct Log {
    frames: Vec<Instant>,
    crossed: Vec<Instant>,
    said: Seq,
    acked: Seq,
    fault: Option<String>,
}

struct Shared {
    places: Mutex<Places>,
    border_cm: i32,
    walks: AtomicBool,
    step: AtomicUsize,
    logs: Vec<Mutex<Log>>,
}

impl Shared {
    fn place(&self, i: usize) -> Pos {
        let places = self.places.lock().clone();
        places((i, self.logs.len()), self.step.load(Relaxed))
    }
}

pub struct Walkers(Arc<Shared>);

/// The number of closed connections, and the cause of the first one.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Ended {
    pub disconnected: usize,
    pub first_fault: Option<String>,
}

impl Ended {
    pub fn add(&mut self, more: Ended) {
        self.disconnected += more.disconnected;
        self.first_fault = self.first_fault.take().or(more.first_fault);
    }
}

impl Walkers {
    pub fn start(
        runtime: &Runtime,
        (url, tokens): (&str, &Tokens),
        n: usize,
        places: impl Into<Places>,
    ) -> anyhow::Result<Walkers> {
        let shared = Arc::new(Shared {
            places: Mutex::new(places.into()),
            border_cm: 25_600,
            walks: AtomicBool::new(true),
            step: AtomicUsize::new(0),
            logs: (0..n).map(|_| Mutex::default()).collect(),
        });
        let clock = shared.clone();
        runtime.spawn(async move {
            let mut clock_ticks = tokio::time::interval(STEP);
            loop {
                clock_ticks.tick().await;
                if clock.walks.load(Relaxed) {
                    clock.step.fetch_add(1, Relaxed);
                }
            }
        });
        let join = |i: usize| {
            let shared = shared.clone();
            async move {
                let token =
                    tokens.mint(&format!("walker {i}"), Some(Duration::from_secs(24 * 60 * 60)))?;
                let mut client = Client::connect(url, &token).await?;
                let joined = client.join(join_at("field", shared.place(i))).await?;
                let view = View::of(&joined);
                // Each client reads frames from now on, while others still join.
                tokio::spawn(async move {
                    let fault = walk(&shared, i, client, view).await;
                    shared.logs[i].lock().fault = Some(fault);
                });
                anyhow::Ok(i)
            }
        };
        runtime.block_on(async {
            let mut joining = stream::iter(0..n).map(join).buffer_unordered(JOINING);
            let mut joined = 0;
            while let Some(done) = joining.next().await {
                done.with_context(|| format!("only {joined} of {n} clients have joined"))?;
                joined += 1;
                if joined % 500 == 0 {
                    eprintln!("bench: {joined} clients have joined");
                }
            }
            anyhow::Ok(())
        })?;
        Ok(Walkers(shared))
    }

    pub fn count(&self) -> usize {
        self.0.logs.len()
    }

    fn logs(&self) -> impl Iterator<Item = MutexGuard<'_, Log>> {
        self.0.logs.iter().map(Mutex::lock)
    }

    pub fn go(&self, places: impl Into<Places>) {
        *self.0.places.lock() = places.into();
    }

    /// Lets all walk from their first step on again.
    pub fn restart(&self) {
        self.0.step.store(0, Relaxed);
    }

    /// Stops all clients and waits until every input is acknowledged. Returns how many clients lack an
    /// acknowledgement after `limit`.
    pub fn rest(&self, limit: Duration) -> usize {
        self.0.walks.store(false, Relaxed);
        // Each client sends its last position once more.
        std::thread::sleep(STEP * 3);
        let begin = Instant::now();
        let owed = || self.logs().filter(|log| log.acked != log.said).count();
        while owed() > 0 && begin.elapsed() < limit {
            std::thread::sleep(STEP);
        }
        let owed = owed();
        self.0.walks.store(true, Relaxed);
        owed
    }

    /// For each client the longest time between two frames, among those that touch the given period.
    pub fn longest(&self, from: Instant, to: Instant) -> Vec<Duration> {
        self.logs().map(|log| longest(&log.frames, from, to)).collect()
    }

    /// As [`Walkers::longest`], for each crossing of the border since `from`, in the time `within` after it.
    pub fn at_crossings(&self, from: Instant, within: Duration) -> Vec<Duration> {
        let mut all = Vec::new();
        for log in self.logs() {
            let whole = |at: &&Instant| **at >= from && at.elapsed() > within;
            all.extend(
                log.crossed.iter().filter(whole).map(|at| longest(&log.frames, *at, *at + within)),
            );
        }
        all
    }

    pub fn ended(&self) -> Ended {
        let mut ended = Ended::default();
        for log in self.logs() {
            let fault = log.fault.clone();
            ended.add(Ended { disconnected: fault.iter().count(), first_fault: fault });
        }
        ended
    }

    /// Forgets all records but the last frames.
    pub fn forget(&self) {
        for mut log in self.logs() {
            let last = log.frames.last().copied();
            log.frames.clear();
            log.frames.extend(last);
            log.crossed.clear();
        }
    }
}

fn longest(frames: &[Instant], from: Instant, to: Instant) -> Duration {
    let touches = |pair: &&[Instant]| pair[1] >= from && pair[0] <= to;
    let gaps = frames.windows(2).filter(touches).map(|pair| pair[1] - pair[0]);
    // A client without a later frame is still waiting.
    let last = frames.last().filter(|last| **last < to).map(|last| to - *last);
    gaps.chain(last).max().unwrap_or(to - from)
}

async fn walk(shared: &Shared, i: usize, client: Client, mut view: View) -> String {
    let (mut sender, mut receiver) = client.split();
    let mut clock = tokio::time::interval(STEP);
    let (mut was, mut ticks) = (None, 0_u64);
    loop {
        tokio::select! {
            _ = clock.tick() => {
                let pos = shared.place(i);
                ticks += 1;
                if was == Some(pos) {
                    // A client that says nothing is taken to be dead.
                    if ticks % 100 == 0 && let Err(e) = sender.ping(ticks).await {
                        return e.to_string();
                    }
                    continue;
                }
                let side = |pos: Pos| pos.x < shared.border_cm;
                let crosses = was.is_some_and(|was| side(was) != side(pos));
                was = Some(pos);
                match sender.send_move(pos).await {
                    Ok(seq) => {
                        let mut log = shared.logs[i].lock();
                        log.said = seq;
                        if crosses {
                            log.crossed.push(Instant::now());
                        }
                    }
                    Err(e) => return e.to_string(),
                }
            }
            event = receiver.next() => match event {
                Ok(Event::Frame(frame)) => {
                    let mut log = shared.logs[i].lock();
                    log.frames.push(Instant::now());
                    if let Err(e) = view.apply(&frame) {
                        return e.to_string();
                    }
                    log.acked = view.ack();
                }
                Ok(Event::Unconfirmed(_) | Event::Pong(_)) => {}
                Ok(other) => return format!("unexpected event {other:?}"),
                Err(e) => return e.to_string(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_without_a_frame_includes_the_ends_of_the_period() {
        let zero = Instant::now();
        let at = |ms: u64| zero + Duration::from_millis(ms);
        let frames = [at(0), at(100), at(450), at(500)];
        let ms = |from, to| longest(&frames, at(from), at(to)).as_millis();
        assert_eq!(ms(120, 130), 350);
        assert_eq!(ms(460, 480), 50);
        assert_eq!(ms(0, 90), 100);
        assert_eq!(ms(460, 900), 400, "it still waits");
        assert_eq!(longest(&[], at(0), at(70)).as_millis(), 70);
    }
}
