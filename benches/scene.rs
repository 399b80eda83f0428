//! The scene: a region's tick, the encoding of its frames, and the decoding of client messages.
//!
//! `cargo bench --bench scene -- region`

mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use purview::scene::messages::{Effect, FrameBatch, Input, LogicEvent, Order, Spawn};
use purview::scene::region::{Commands, GameLogic, Known, RegionSnapshot};
use purview::scene::workers::{Task, Workers};
use purview::scene::{
    EntityId, Epoch, Kind, Pos, Region, RegionId, Scene, SceneId, SceneSpec, Seq, SessionId, Tick,
    Visibility,
};
use purview::wire::client::Move;
use purview::wire::{ClientMsg, EncodedBatch};
use support::{Density, WaypointWalkers};

const TICKS: usize = 20;

/// Number of others within 80 m.
const DENSITY: u32 = 60;

const CIRCLE: Visibility = Visibility::Circle { enter_cm: 8_000, leave_cm: 8_500 };

/// One region full of players that walk back and forth.
struct SceneBench {
    region: Region,
    walk: Vec<Vec<Pos>>,
    tick: usize,
    fx: Vec<Effect>,
    side_cm: i32,
}

fn scene(visibility: Visibility, side_cm: i32) -> Scene {
    let lands = side_cm / 51_200 + 1;
    // 32 m is the patch side whose 5 x 5 patches come closest to the circle's area.
    let spec = SceneSpec {
        name: "bench".into(),
        width_cm: lands * 51_200,
        depth_cm: lands * 51_200,
        region_lands_x: lands,
        region_lands_z: lands,
        visibility,
        spawn_x_cm: 0,
        spawn_z_cm: 0,
        ..SceneSpec::default()
    };
    Scene::new(SceneId(0), spec, 100, RegionId(0)).expect("a legal scene")
}

impl SceneBench {
    fn new(n: usize, visibility: Visibility) -> SceneBench {
        let mut walkers = WaypointWalkers::new(n, Density::Even(DENSITY));
        let scene = Arc::new(scene(visibility, walkers.side_cm));
        let mut region = Region::new(scene, RegionId(0)).expect("a region");
        let mut fx = Vec::new();
        for (i, pos) in walkers.places().into_iter().enumerate() {
            let (id, session) = (EntityId(i as u64 + 1), Some(SessionId(i as u64 + 1)));
            let spawn = Spawn { session, ..Spawn::new(id, Kind::PLAYER, pos) };
            region.handle(Input::Enter(Box::new(spawn)), &mut fx);
        }
        let side_cm = walkers.side_cm;
        let mut world = SceneBench { region, walk: walkers.walk(TICKS), tick: 0, fx, side_cm };
        world.end_tick();
        world
    }

    fn scene(&self) -> Scene {
        scene(CIRCLE, self.side_cm)
    }

    fn step(&mut self) {
        let seq = Seq(self.tick as u32);
        for (i, pos) in self.walk[self.tick % self.walk.len()].iter().enumerate() {
            let (id, order) = (EntityId(i as u64 + 1), Order::Move(*pos));
            let (session, handle) = (SessionId(id.0), Default::default());
            self.region.handle(Input::Client { id, session, seq, order, handle }, &mut self.fx);
        }
        self.end_tick();
    }

    fn end_tick(&mut self) {
        self.tick += 1;
        self.region.tick(Tick(self.tick as u64), &mut self.fx);
    }

    fn frames(&mut self) -> Option<FrameBatch> {
        let frames = |effect| match effect {
            Effect::Frames(batch) => Some(batch),
            _ => None,
        };
        self.fx.drain(..).filter_map(frames).next_back()
    }
}

fn region(c: &mut Criterion) {
    for (mode, visibility) in [("patches", Visibility::Patches), ("circle", CIRCLE)] {
        let mut group = c.benchmark_group(format!("region/{mode}"));
        group.sample_size(10).warm_up_time(Duration::from_millis(100));
        group.measurement_time(Duration::from_secs(1));
        for n in [1_000, 10_000] {
            let mut world = SceneBench::new(n, visibility);
            group.throughput(Throughput::Elements(n as u64));
            group.bench_function(BenchmarkId::from_parameter(n), |b| {
                b.iter(|| {
                    world.step();
                    if let Some(batch) = world.frames() {
                        world.region.recycle(batch);
                    }
                });
            });
        }
        group.finish();
    }
}

fn frames(c: &mut Criterion) {
    let n = 1_000;
    let mut world = SceneBench::new(n, Visibility::Patches);
    (0..TICKS).for_each(|_| {
        world.fx.clear();
        world.step();
    });
    let batch = world.frames().expect("frames");
    let mut group = c.benchmark_group("frames");
    group.sample_size(20).warm_up_time(Duration::from_millis(100));
    group.measurement_time(Duration::from_secs(1)).throughput(Throughput::Elements(n as u64));
    let mut encoded = EncodedBatch::new(batch.clone());
    let mut spare = batch;
    group.bench_function("encode every piece once", |b| {
        b.iter(|| spare = encoded.replace(std::mem::take(&mut spare)));
    });
    let mut out = Vec::new();
    group.bench_function("assemble every session's frame", |b| {
        b.iter(|| {
            for i in 0..encoded.batch().sessions.len() {
                out.clear();
                encoded.write_frame(i, true, &mut out);
                black_box(&out);
            }
        });
    });
    group.finish();
}

fn wire(c: &mut Criterion) {
    let pos = Pos { x: 123_456, y: 150, z: 98_765 };
    let bytes = ClientMsg::Move(Move { seq: Seq(70_000), pos }).encode();
    let mut group = c.benchmark_group("wire");
    group.sample_size(20).warm_up_time(Duration::from_millis(100));
    group.measurement_time(Duration::from_millis(500)).throughput(Throughput::Elements(1));
    group.bench_function("decode a client's move", |b| {
        b.iter(|| ClientMsg::decode(black_box(&bytes)));
    });
    group.finish();
}

/// A checkpoint of a region, its encoding, and a whole relocation, per player.
fn snapshots(c: &mut Criterion) {
    let mut group = c.benchmark_group("snapshot");
    group.sample_size(10).measurement_time(Duration::from_secs(3));
    for n in [500, 5_000] {
        let mut world = SceneBench::new(n, CIRCLE);
        (0..TICKS).for_each(|_| world.step());
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(BenchmarkId::new("checkpoint", n), |b| {
            b.iter(|| black_box(world.region.checkpoint()));
        });
        let kept = world.region.checkpoint().expect("a closed tick");
        println!("checkpoint of {n}: {} bytes", kept.encode().expect("not too big").len());
        group.bench_function(BenchmarkId::new("checkpoint, bytes", n), |b| {
            b.iter(|| black_box(kept.encode().expect("not too big")));
        });
        let scene = Arc::new(world.scene());
        let empty = Region::new(scene.clone(), RegionId(0)).expect("a region");
        let frozen = std::mem::replace(&mut world.region, empty).freeze().expect("a closed tick");
        let bytes = frozen.encode().expect("not too big");
        println!("frozen region of {n}: {} bytes", bytes.len());
        group.bench_function(BenchmarkId::new("relocation", n), |b| {
            let mut region = Some(restored(&scene, &bytes, Epoch(2)));
            let mut epoch = 2;
            b.iter(|| {
                let frozen = region.take().expect("one").freeze().expect("a closed tick");
                let bytes = frozen.encode().expect("not too big");
                epoch += 1;
                region = Some(restored(&scene, &bytes, Epoch(epoch)));
            });
        });
    }
    group.finish();
}

fn restored(scene: &Arc<Scene>, bytes: &[u8], epoch: Epoch) -> Region {
    let snapshot = RegionSnapshot::decode(bytes).expect("as it was written");
    let mut fx = Vec::new();
    Region::restore(scene.clone(), RegionId(0), epoch, snapshot, &mut fx).expect("it fits")
}

/// Threads of the process that run tasks, started for each step.
#[derive(Debug)]
struct Threads(usize);

impl Workers for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, tasks: Vec<Task<'_>>) {
        std::thread::scope(|scope| tasks.into_iter().for_each(|task| drop(scope.spawn(task))));
    }
}

/// Rules by which each monster looks for its nearest neighbour within 40 m.
struct Hungry;

impl GameLogic for Hungry {
    fn tick(&mut self, _: &Region, _: &[LogicEvent], _: &mut Commands) {}

    fn kinds_of_each(&self) -> &[Kind] {
        &[Kind::PLAYER]
    }

    fn each(&self, region: &Region, monster: Known<'_>, _: &mut Commands) {
        let all = region.within(monster.plane, Kind::PLAYER, monster.pos, 4_000);
        black_box(all.iter().map(|other| other.pos.dist2(monster.pos)).min());
    }
}

/// A tick in which nobody moves, with rules for each of 10,000 entities: the tick without rules is a small part.
fn each(c: &mut Criterion) {
    let n = 10_000;
    let mut group = c.benchmark_group("rules of each entity");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Elements(n as u64));
    for threads in [1, 2, 4] {
        let mut world = SceneBench::new(n, CIRCLE);
        world.region.set_workers(Arc::new(Threads(threads)));
        world.region.set_logic(Box::new(Hungry), Box::new(|| None));
        group.bench_function(format!("{threads} threads"), |b| {
            b.iter(|| {
                world.fx.clear();
                world.end_tick();
            });
        });
    }
    group.finish();
}

criterion_group!(benches, region, frames, wire, snapshots, each);
criterion_main!(benches);
