//! In process: a world on one thread, and on two.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use purview::interest::{Cap, Entity, Mode, Radii, Reach, Rules, Sight, World};
use purview::scene::workers::{OneThread, Task, Workers};
use purview::scene::{Pos, RangeSet, Rect};
use purview_server::workers::TickThreads;
use serde::Serialize;

use super::waypoint_walkers::{Density, WaypointWalkers};
use crate::bench::cpu_us;
use crate::usage::rss_bytes;

/// Patch side for which 5 x 5 patches have the area of the circle.
const PATCH_CM: i32 = 2_836;

/// The modes: names, and rules on a ground.
pub(super) const MODES: [(&str, Mode, Reach); 2] = [
    ("patches", Mode::Patches { patch_cm: PATCH_CM }, Reach::Rings(RangeSet::FULL)),
    ("circle", Mode::Circle, Reach::Circle(Radii::new(8_000, 8_500))),
];

/// What is measured in each mode: density and number of entities.
const CASES: [(Density, usize); 8] = [
    (Density::Even(60), 1_000),
    (Density::Even(60), 10_000),
    (Density::Even(60), 100_000),
    (Density::Even(60), 1_000_000),
    (Density::Even(15), 10_000),
    (Density::Even(150), 10_000),
    (Density::Even(300), 10_000),
    (Density::HotSpot, 10_000),
];

#[derive(Debug, Clone, Serialize)]
pub struct LocalRow {
    /// `patches` or `circle`.
    pub mode: &'static str,
    pub density: String,
    pub entities: usize,
    /// CPU time per move, events included, nanoseconds.
    pub ns: f64,
    /// Pairs that appear or disappear, per move.
    pub events: f64,
    pub bytes: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct ThreadRow {
    /// `patches` or `circle`.
    pub mode: &'static str,
    pub density: String,
    pub entities: usize,
    /// Time to set the positions of a tick, milliseconds. One thread.
    pub moves_ms: f64,
    /// Mean time of the end of a tick on one thread, milliseconds.
    pub one_ms: f64,
    pub two_ms: f64,
    /// How much faster the end of a tick is on two threads: the median of rounds.
    pub faster: f64,
    /// CPU time of what the calling thread does by itself, of the CPU time of a tick on one thread:
    /// 0 to 1. Unlike times, it does not depend on what else the machine does.
    pub serial: f64,
    /// How much faster the end of a tick should be on so many threads.
    pub on_8: f64,
    pub on_16: f64,
}

/// How much faster work with a serial share is on `n` threads, by Amdahl's law.
fn projected(serial: f64, n: f64) -> f64 {
    1.0 / (serial + (1.0 - serial) / n)
}

/// Threads, and the CPU time of the calling thread while it works with them, nanoseconds.
#[derive(Debug)]
struct Metered {
    threads: TickThreads,
    shared_ns: AtomicU64,
}

impl Workers for Metered {
    fn threads(&self) -> usize {
        self.threads.threads()
    }

    fn run(&self, tasks: Vec<Task<'_>>) {
        let from = cpu_us();
        self.threads.run(tasks);
        self.shared_ns.fetch_add(((cpu_us() - from) * 1e3) as u64, Ordering::Relaxed);
    }
}

/// A world with its entities in place, and their walk.
pub(super) struct Scene {
    pub(super) world: World,
    walk: Vec<Vec<Pos>>,
    /// The next tick of the walk.
    tick: usize,
    bytes: usize,
}

impl Scene {
    pub(super) fn new(
        (mode, reach): (Mode, Reach),
        density: Density,
        n: usize,
        cap: Option<Cap>,
    ) -> anyhow::Result<Scene> {
        let mut walkers = WaypointWalkers::new(n, density);
        let walk = walkers.walk(if n > 100_000 { 24 } else { 120 });
        let ground = Rect { x0: 0, z0: 0, x1: walkers.side_cm + 1, z1: walkers.side_cm + 1 };
        let before = rss_bytes().unwrap_or(0);
        let rules = Rules { cap, ..Rules::new(ground, mode, reach) };
        let mut world = World::new(rules).context("the rules")?;
        for (id, pos) in walk[0].iter().enumerate() {
            let (id, sight) = (id as u64, Sight::default());
            world.create(Entity { id, kind: 0, plane: 0, pos: *pos, sight })?;
        }
        // The lists of the first ticks need more memory than those of later ones.
        for _ in 0..3 {
            world.tick();
        }
        let bytes = rss_bytes().unwrap_or(0).saturating_sub(before) as usize / n;
        Ok(Scene { world, walk, tick: 0, bytes })
    }

    /// The first so many entities walk on.
    pub(super) fn step(&mut self, moving: usize) -> anyhow::Result<()> {
        let places = &self.walk[self.tick % self.walk.len()];
        self.tick += 1;
        for (id, pos) in places.iter().enumerate().take(moving) {
            self.world.move_to(id as u64, *pos)?;
        }
        Ok(())
    }
}

pub fn all(length: Duration, most: usize) -> anyhow::Result<Vec<LocalRow>> {
    let mut rows = Vec::new();
    for (mode, rules, reach) in MODES {
        for (density, entities) in CASES.into_iter().filter(|(_, n)| *n <= most) {
            let row = measure((mode, rules, reach), density, entities, length)?;
            eprintln!("{mode}, {}, {entities}: {:.1} ns", row.density, row.ns);
            rows.push(row);
        }
    }
    Ok(rows)
}

fn measure(
    (mode, rules, reach): (&'static str, Mode, Reach),
    density: Density,
    entities: usize,
    length: Duration,
) -> anyhow::Result<LocalRow> {
    let mut scene = Scene::new((rules, reach), density, entities, None)?;
    let (mut tick, mut events) = (0, 0);
    // A whole walk before, so that clusters and buffers are those of later ticks.
    while tick < scene.walk.len().min(60) {
        scene.step(usize::MAX)?;
        scene.world.tick();
        tick += 1;
    }
    let (from, begin, cpu) = (tick, Instant::now(), cpu_us());
    while tick == from || begin.elapsed() < length {
        scene.step(usize::MAX)?;
        events += scene.world.tick().len();
        tick += 1;
    }
    let moves = ((tick - from) * entities) as f64;
    Ok(LocalRow {
        mode,
        density: density.name(),
        entities,
        ns: (cpu_us() - cpu) * 1e3 / moves,
        events: events as f64 / moves,
        bytes: scene.bytes,
    })
}

/// Ticks of a round: half of them on one thread, half on two.
const ROUND: usize = 8;

pub fn threads(length: Duration, most: usize) -> anyhow::Result<Vec<ThreadRow>> {
    let mut rows = Vec::new();
    let is_even = |(density, entities): &(Density, usize)| {
        *density == Density::HotSpot || (*density == Density::Even(60) && *entities >= 10_000)
    };
    for (mode, rules, reach) in MODES {
        for (density, entities) in CASES.into_iter().filter(is_even).filter(|(_, n)| *n <= most) {
            let mut scene = Scene::new((rules, reach), density, entities, None)?;
            let row = measure_threads(&mut scene, length)?;
            let row = ThreadRow { mode, density: density.name(), entities, ..row };
            eprintln!("{mode}, {}, {entities}: {:.2} times on 2 threads", row.density, row.faster);
            rows.push(row);
        }
    }
    Ok(rows)
}

fn measure_threads(scene: &mut Scene, length: Duration) -> anyhow::Result<ThreadRow> {
    let two = Arc::new(Metered { threads: TickThreads::new(2), shared_ns: AtomicU64::new(0) });
    let threads: [Arc<dyn Workers>; 2] = [Arc::new(OneThread), two.clone()];
    let (mut moves, mut ticks, mut cpu) = (Vec::new(), [Vec::new(), Vec::new()], [0.0; 2]);
    let (mut begin, mut tick) = (Instant::now(), 0);
    let warm = scene.walk.len().min(60).next_multiple_of(ROUND);
    while tick < warm + 5 * ROUND || begin.elapsed() < 2 * length {
        if tick == warm {
            (begin, moves, ticks, cpu) = (Instant::now(), Vec::new(), Default::default(), [0.0; 2]);
            two.shared_ns.store(0, Ordering::Relaxed);
        }
        let at = Instant::now();
        scene.step(usize::MAX)?;
        moves.push(at.elapsed());
        // By turns, so that both meet the same phases of the walk and of the machine.
        let turn = tick % 4 / 2;
        scene.world.set_workers(Arc::clone(&threads[turn]));
        let (at, from) = (Instant::now(), cpu_us());
        scene.world.tick();
        ticks[turn].push(at.elapsed());
        cpu[turn] += cpu_us() - from;
        tick += 1;
    }
    let rounds = ticks[0].chunks(ROUND / 2).zip(ticks[1].chunks(ROUND / 2));
    let mut rounds: Vec<f64> = rounds.map(|(one, two)| mean_ms(one) / mean_ms(two)).collect();
    rounds.sort_unstable_by(f64::total_cmp);
    let alone = cpu[1] - two.shared_ns.load(Ordering::Relaxed) as f64 / 1e3;
    let serial = (alone / ticks[1].len() as f64) / (cpu[0] / ticks[0].len() as f64);
    Ok(ThreadRow {
        mode: "",
        density: String::new(),
        entities: 0,
        moves_ms: mean_ms(&moves),
        one_ms: mean_ms(&ticks[0]),
        two_ms: mean_ms(&ticks[1]),
        faster: rounds[rounds.len() / 2],
        serial,
        on_8: projected(serial, 8.0),
        on_16: projected(serial, 16.0),
    })
}

fn mean_ms(times: &[Duration]) -> f64 {
    times.iter().sum::<Duration>().as_secs_f64() * 1e3 / times.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projection_follows_from_the_serial_share() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a}, not {b}");
        close(projected(0.0, 8.0), 8.0);
        close(projected(0.2, 2.0), 10.0 / 6.0);
        close(projected(1.0, 16.0), 1.0);
    }
}
