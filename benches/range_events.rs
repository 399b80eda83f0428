//! Range events by themselves, per mode, number and density: time per moving entity.
//!
//! `cargo bench --bench range_events -- patches/normal`

mod support;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use purview::interest::RangeEvents;
use purview::scene::{RangeSet, Rect, Visibility};
use support::{Crowd, Density};

/// Patch side for which 5 x 5 patches have the area of the circle: equal numbers are in range in
/// both modes.
const PATCH_CM: i32 = 2_836;

const CIRCLE: Visibility = Visibility::Circle { enter_cm: 8_000, leave_cm: 8_500 };

/// Length of the walk, ticks; it is walked back and forth.
const TICKS: usize = 40;

const DENSITIES: [(&str, Density); 3] = [
    ("normal", Density::Even(40)),
    ("crowded", Density::Even(300)),
    ("hot spot", Density::HotSpot),
];

fn run(c: &mut Criterion, mode: &str, visibility: Visibility, density: (&str, Density), n: usize) {
    let mut crowd = Crowd::new(n, density.1);
    let ground = Rect { x0: 0, z0: 0, x1: crowd.side_cm + 1, z1: crowd.side_cm + 1 };
    let mut ranges = RangeEvents::new(ground, PATCH_CM, visibility);
    let slots: Vec<u32> = crowd.places().iter().map(|p| ranges.add(*p, RangeSet::FULL)).collect();
    let mut events = 0_u64;
    ranges.end_tick(|_| events += 1);
    let walk = crowd.walk(TICKS);
    let mut tick = 0;
    let mut group = c.benchmark_group(format!("{mode}/{}", density.0));
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(150))
        .measurement_time(Duration::from_millis(700))
        .throughput(Throughput::Elements(n as u64));
    group.bench_function(BenchmarkId::from_parameter(n), |b| {
        b.iter(|| {
            for (slot, pos) in slots.iter().zip(&walk[tick % walk.len()]) {
                ranges.move_to(*slot, *pos);
            }
            ranges.end_tick(|event| {
                black_box(event);
                events += 1;
            });
            tick += 1;
        });
    });
    group.finish();
    black_box(events);
}

fn range_events(c: &mut Criterion) {
    for density in DENSITIES {
        for n in [1_000, 10_000, 50_000] {
            run(c, "patches", Visibility::Patches, density, n);
            // 25,000 entities around one point are too dense to mean anything.
            if !(density.0 == "hot spot" && n == 50_000) {
                run(c, "circle", CIRCLE, density, n);
            }
        }
    }
    for n in [1_000, 10_000] {
        run(c, "all", Visibility::All, DENSITIES[0], n);
    }
}

criterion_group!(benches, range_events);
criterion_main!(benches);
