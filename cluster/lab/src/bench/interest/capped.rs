//! What a cap costs: the same walk in a world with a cap and in one without, tick by tick in turn.

use std::time::{Duration, Instant};

use purview::interest::Cap;
use serde::Serialize;

use super::local::{MODES, Scene};
use super::waypoint_walkers::Density;
use crate::bench::cpu_us;

/// Most entities in a list, and the margin of those that are listed.
const CAP: Cap = Cap { most: 60, margin_cm: 200 };

const ENTITIES: usize = 10_000;

/// How many of the entities move in each tick.
const MOVING: [usize; 5] = [0, 1, 10, 100, ENTITIES];

#[derive(Debug, Clone, Serialize)]
pub struct CappedRow {
    pub density: String,
    pub moving: usize,
    /// CPU time of the end of a tick, one thread, milliseconds.
    pub tick_ms: f64,
    /// The same without a cap.
    pub uncapped_ms: f64,
    /// Pairs that appear or disappear in a tick, both ways.
    pub events: f64,
}

/// Measures both worlds, in the circle mode, at each density and number of moving entities.
pub fn all(length: Duration, most: usize) -> anyhow::Result<Vec<CappedRow>> {
    let mut rows = Vec::new();
    let densities = [Density::Even(60), Density::HotSpot];
    for density in densities.into_iter().filter(|_| ENTITIES <= most) {
        let (_, mode, reach) = MODES[1];
        let world = |cap| Scene::new((mode, reach), density, ENTITIES, cap);
        let mut worlds = [world(Some(CAP))?, world(None)?];
        for moving in MOVING {
            let row = measure(&mut worlds, moving, length)?;
            eprintln!("cap, {}, {moving} move: {:.3} ms", density.name(), row.tick_ms);
            rows.push(CappedRow { density: density.name(), ..row });
        }
    }
    Ok(rows)
}

fn measure(worlds: &mut [Scene; 2], moving: usize, length: Duration) -> anyhow::Result<CappedRow> {
    // Those that stood until now jump to where the walk has come.
    for scene in &mut *worlds {
        scene.step(moving)?;
        scene.world.tick();
    }
    let (mut ticks, mut events, mut cpu) = (0, [0; 2], [0.0; 2]);
    let begin = Instant::now();
    while ticks < 3 || begin.elapsed() < length {
        for (at, scene) in worlds.iter_mut().enumerate() {
            scene.step(moving)?;
            let from = cpu_us();
            events[at] += scene.world.tick().len();
            cpu[at] += cpu_us() - from;
        }
        ticks += 1;
    }
    let [tick_ms, uncapped_ms] = cpu.map(|us| us / 1e3 / f64::from(ticks));
    let events = events[0] as f64 / f64::from(ticks);
    Ok(CappedRow { density: String::new(), moving, tick_ms, uncapped_ms, events })
}
