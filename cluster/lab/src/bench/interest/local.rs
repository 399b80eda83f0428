//! In process: a world on one thread, and on two.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use purview::interest::{Entity, Mode, Radii, Reach, Rules, Sight, World};
use purview::scene::{Pos, RangeSet, Rect};
use purview_server::workers::TickThreads;
use serde::Serialize;

use super::crowd::{Crowd, Density};
use crate::bench::cpu_us;
use crate::usage::rss_bytes;

/// Patch side for which 5 x 5 patches have the area of the circle.
const PATCH_CM: i32 = 2_836;

/// The modes: names, and rules on a ground.
const MODES: [(&str, Mode, Reach); 2] = [
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
    pub entities: usize,
    /// Time to set the positions of a tick, milliseconds. One thread.
    pub moves_ms: f64,
    /// Time of the end of a tick on one thread, milliseconds.
    pub one_ms: f64,
    pub two_ms: f64,
}

impl ThreadRow {
    /// How much faster the end of a tick is on two threads.
    pub fn speedup(&self) -> f64 {
        self.one_ms / self.two_ms
    }

    /// The share of the end of a tick that two threads do not make faster, 0 to 1.
    pub fn serial(&self) -> f64 {
        (2.0 / self.speedup() - 1.0).clamp(0.0, 1.0)
    }

    /// How much faster the end of a tick should be on `n` threads, by Amdahl's law.
    pub fn projected(&self, n: f64) -> f64 {
        let serial = self.serial();
        1.0 / (serial + (1.0 - serial) / n)
    }
}

/// A world with its entities in place, and their walk.
struct Scene {
    world: World,
    walk: Vec<Vec<Pos>>,
    bytes: usize,
}

impl Scene {
    fn new((mode, reach): (Mode, Reach), density: Density, n: usize) -> anyhow::Result<Scene> {
        let mut crowd = Crowd::new(n, density);
        let walk = crowd.walk(if n > 100_000 { 24 } else { 120 });
        let ground = Rect { x0: 0, z0: 0, x1: crowd.side_cm + 1, z1: crowd.side_cm + 1 };
        let before = rss_bytes().unwrap_or(0);
        let mut world = World::new(Rules::new(ground, mode, reach)).context("the rules")?;
        for (id, pos) in walk[0].iter().enumerate() {
            let (id, sight) = (id as u64, Sight::default());
            world.create(Entity { id, kind: 0, plane: 0, pos: *pos, sight })?;
        }
        // The lists of the first ticks need more memory than those of later ones.
        for _ in 0..3 {
            world.tick();
        }
        let bytes = rss_bytes().unwrap_or(0).saturating_sub(before) as usize / n;
        Ok(Scene { world, walk, bytes })
    }

    fn step(&mut self, tick: usize) -> anyhow::Result<()> {
        for (id, pos) in self.walk[tick % self.walk.len()].iter().enumerate() {
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
    let mut scene = Scene::new((rules, reach), density, entities)?;
    let (mut tick, mut events) = (0, 0);
    // A whole walk before, so that clusters and buffers are those of later ticks.
    while tick < scene.walk.len().min(60) {
        scene.step(tick)?;
        scene.world.tick();
        tick += 1;
    }
    let (from, begin, cpu) = (tick, Instant::now(), cpu_us());
    while tick == from || begin.elapsed() < length {
        scene.step(tick)?;
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

pub fn threads(length: Duration, most: usize) -> anyhow::Result<Vec<ThreadRow>> {
    let threads = [1, 2].map(TickThreads::shared);
    let mut rows = Vec::new();
    for (mode, rules, reach) in MODES {
        for entities in [10_000, 100_000].into_iter().filter(|n| *n <= most) {
            let mut scene = Scene::new((rules, reach), Density::Even(60), entities)?;
            let (mut moves, mut ticks) = (Vec::new(), [Vec::new(), Vec::new()]);
            let (begin, mut tick) = (Instant::now(), 0);
            while tick < 20 || begin.elapsed() < 2 * length {
                let at = Instant::now();
                scene.step(tick)?;
                moves.push(at.elapsed());
                // By turns, so that both meet the same phases of the walk and of the machine.
                let two = tick % 4 / 2;
                scene.world.set_workers(Arc::clone(&threads[two]));
                let at = Instant::now();
                scene.world.tick();
                ticks[two].push(at.elapsed());
                tick += 1;
            }
            let [one_ms, two_ms] = ticks.map(mean_ms);
            let row = ThreadRow { mode, entities, moves_ms: mean_ms(moves), one_ms, two_ms };
            eprintln!("{mode}, {entities}: {:.2} times on 2 threads", row.speedup());
            rows.push(row);
        }
    }
    Ok(rows)
}

fn mean_ms(times: Vec<Duration>) -> f64 {
    times.iter().sum::<Duration>().as_secs_f64() * 1e3 / times.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projection_follows_from_the_serial_share() {
        let row =
            |two_ms| ThreadRow { mode: "circle", entities: 1, moves_ms: 1.0, one_ms: 10.0, two_ms };
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a}, not {b}");
        close(row(5.0).serial(), 0.0);
        close(row(5.0).projected(8.0), 8.0);
        close(row(6.0).serial(), 0.2);
        close(row(6.0).projected(2.0), row(6.0).speedup());
        close(row(10.0).projected(16.0), 1.0);
    }
}
