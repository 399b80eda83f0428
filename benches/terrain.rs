//! Terrain: cost of a step over free and blocked tiles with doors that open and close.
//!
//! `cargo bench --bench terrain -- step`

mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use purview::scene::terrain::{DoorChange, DoorId, DoorOrder, Draft, Ground, Tile};
use purview::scene::{Plane, Pos, Tick};
use support::Rng;

/// A city of 2 km x 2 km with tiles of 1 m, of which three in ten are blocked.
const SIDE: i32 = 2_048;
const BLOCKED: f64 = 0.3;

/// Doors of two tiles each, and planes; in every second plane all doors are open.
const DOORS: u16 = 500;
const PLANES: i32 = 200;

/// Queries per round.
const QUERIES: usize = 4_096;

struct City {
    ground: Ground,
    free: Vec<Tile>,
    walls: Vec<Tile>,
    doorways: Vec<Tile>,
}

fn somewhere(rng: &mut Rng) -> Tile {
    let mut along = || (rng.unit() * f64::from(SIDE)) as i32;
    Tile { x: along(), z: along() }
}

fn city() -> City {
    let mut rng = Rng::new(7);
    let mut draft = Draft::new(100, SIDE, SIDE).expect("a legal size");
    let levels = (0..SIDE * SIDE).map(|_| (rng.unit() * 300.0) as u16).collect();
    draft.set_heights(-500, 10, levels).expect("legal heights");
    for tile in (0..SIDE).flat_map(|z| (0..SIDE).map(move |x| Tile { x, z })) {
        draft.set_blocked(tile, rng.unit() < BLOCKED).expect("a tile of the map");
    }
    let mut doors = 0;
    while doors < DOORS {
        let at = somewhere(&mut rng);
        let tiles = [at, Tile { x: (at.x + 1).min(SIDE - 1), z: at.z }];
        doors += u16::from(draft.add_door(&format!("door {doors}"), false, &tiles).is_ok());
    }
    let mut ground = Ground::new(Arc::new(draft.finish()));
    for (version, n) in (0..PLANES * i32::from(DOORS)).enumerate().filter(|(_, n)| n % 2 == 0) {
        let (plane, door) = (Plane(n % PLANES), DoorId((n / PLANES) as u16));
        let change = DoorChange::Set { door, open: true };
        let order = DoorOrder { plane, change, at: Tick(0), version: version as u64 };
        ground.order(order).expect("a door of the map");
    }
    ground.turn(Tick(1));
    let tiles: Vec<Tile> = (0..QUERIES * 4).map(|_| somewhere(&mut rng)).collect();
    let of = |wanted: fn(&Ground, Tile) -> bool| {
        let some = tiles.iter().copied().filter(|t| wanted(&ground, *t));
        some.take(QUERIES).collect::<Vec<_>>()
    };
    let free = of(|g, t| g.is_free(Plane(0), t));
    let walls = of(|g, t| g.terrain().is_blocked(t));
    let doors = ground.terrain().doors().iter().flat_map(|d| d.tiles.clone());
    let doorways = doors.filter(|t| ground.is_free(Plane(0), *t)).cycle().take(QUERIES).collect();
    City { ground, free, walls, doorways }
}

/// A walk of steps in eight directions, back and forth across the city.
fn walk(rng: &mut Rng) -> Vec<(Tile, Tile)> {
    let mut at = Tile { x: SIDE / 2, z: SIDE / 2 };
    let mut to = somewhere(rng);
    (0..QUERIES)
        .map(|_| {
            let from = at;
            if from == to {
                to = somewhere(rng);
            }
            at.x += (to.x - from.x).signum();
            at.z += (to.z - from.z).signum();
            (from, at)
        })
        .collect()
}

/// Whether a step to one of the eight adjacent tiles is legal: no squeezing between corners.
fn can_step(ground: &Ground, plane: Plane, from: Tile, to: Tile) -> bool {
    ground.is_free(plane, to)
        && (from.x == to.x
            || from.z == to.z
            || ground.is_free(plane, Tile { x: from.x, z: to.z })
            || ground.is_free(plane, Tile { x: to.x, z: from.z }))
}

fn terrain(c: &mut Criterion) {
    let City { ground, free, walls, doorways } = city();
    let mut group = c.benchmark_group("terrain");
    group.sample_size(30).warm_up_time(Duration::from_millis(200));
    group.measurement_time(Duration::from_secs(1)).throughput(Throughput::Elements(QUERIES as u64));
    for (name, tiles) in [("free tile", &free), ("wall", &walls), ("open door", &doorways)] {
        assert_eq!(tiles.len(), QUERIES, "{name}");
        group.bench_function(name, |b| {
            b.iter(|| tiles.iter().filter(|t| ground.is_free(Plane(0), black_box(**t))).count());
        });
    }
    let steps = walk(&mut Rng::new(11));
    group.bench_function("step", |b| {
        b.iter(|| {
            let can = |(from, to): &&(Tile, Tile)| can_step(&ground, Plane(0), *from, *to);
            black_box(&steps).iter().filter(can).count()
        });
    });
    group.bench_function("step and height", |b| {
        b.iter(|| {
            let climb = |(from, to): &(Tile, Tile)| {
                let can = can_step(&ground, Plane(0), *from, *to);
                i32::from(can) * (ground.height_cm(*to) - ground.height_cm(*from)).abs()
            };
            black_box(&steps).iter().map(climb).sum::<i32>()
        });
    });
    let middle = |n: i32| n * ground.tile_cm() + ground.tile_cm() / 2;
    let places: Vec<Pos> = free.iter().map(|t| Pos::ground(middle(t.x), middle(t.z))).collect();
    group.bench_function("tile of a place", |b| {
        b.iter(|| places.iter().map(|p| ground.tile_of(black_box(*p)).x).sum::<i32>());
    });
    group.finish();
}

criterion_group!(benches, terrain);
criterion_main!(benches);
