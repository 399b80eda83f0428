//! A world of observers and subjects, per mode, number and density: time per move, events included.
//!
//! `cargo bench --bench interest -- circle/normal`, on one thread.

mod support;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use purview::interest::{Entity, Mode, Radii, Reach, Rules, Sight, World};
use purview::scene::{Pos, RangeSet, Rect};
use support::{Density, WaypointWalkers};

/// Patch side for which 5 x 5 patches have the area of the circle.
const PATCH_CM: i32 = 2_836;

const MODES: [(&str, Mode, Reach); 2] = [
    ("patches", Mode::Patches { patch_cm: PATCH_CM }, Reach::Rings(RangeSet::FULL)),
    ("circle", Mode::Circle, Reach::Circle(Radii::new(8_000, 8_500))),
];

/// Others within 80 m: 60, or 300; or half of all around one point.
const DENSITIES: [(&str, Density); 3] =
    [("normal", Density::Even(60)), ("crowd", Density::Even(300)), ("hot spot", Density::HotSpot)];

fn entity(id: usize, pos: Pos) -> Entity {
    Entity { id: id as u64, kind: 0, plane: 0, pos, sight: Sight::default() }
}

/// Bytes of memory that this process uses.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kib.unwrap_or(0) * 1024
}

/// CPU time of this thread, nanoseconds.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

fn run(
    c: &mut Criterion,
    (name, mode, reach): (&str, Mode, Reach),
    (density, placed): (&str, Density),
    n: usize,
) {
    let mut walkers = WaypointWalkers::new(n, placed);
    let walk = walkers.walk(if n > 100_000 { 24 } else { 120 });
    let ground = Rect { x0: 0, z0: 0, x1: walkers.side_cm + 1, z1: walkers.side_cm + 1 };
    let before = resident();
    let mut world = World::new(Rules::new(ground, mode, reach)).expect("legal rules");
    let mut group = c.benchmark_group(format!("{name}/{density}"));
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(if n > 100_000 { 4_000 } else { 1_500 }))
        .throughput(Throughput::Elements(n as u64));
    let (mut tick, mut events, mut cpu) = (0, 0, 0);
    group.bench_function(BenchmarkId::from_parameter(n), |b| {
        if world.is_empty() {
            for (id, pos) in walk[0].iter().enumerate() {
                world.create(entity(id, *pos)).expect("a new entity on the ground");
            }
            world.tick();
        }
        let start = cpu_ns();
        b.iter(|| {
            for (id, pos) in walk[tick % walk.len()].iter().enumerate() {
                world.move_to(id as u64, *pos).expect("a known entity on the ground");
            }
            events += black_box(world.tick()).len();
            tick += 1;
        });
        cpu += cpu_ns() - start;
    });
    group.finish();
    if tick > 0 {
        let memory = resident().saturating_sub(before) / n;
        let rate = events as f64 / (tick * n) as f64;
        let ns = cpu as f64 / (tick * n) as f64;
        println!("{name}/{density}/{n}: {ns:.1} ns of CPU time and {rate:.3} events per move");
        println!("{name}/{density}/{n}: {memory} bytes per entity\n");
    }
}

fn interest(c: &mut Criterion) {
    for mode in MODES {
        for density in DENSITIES {
            run(c, mode, density, 10_000);
        }
        run(c, mode, DENSITIES[0], 1_000_000);
    }
}

criterion_group!(benches, interest);
criterion_main!(benches);
