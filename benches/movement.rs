//! Movement: cost of a move command and of a tick on the server, and of a region's tick where bodies block the way.
//!
//! `cargo bench --bench movement`

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use purview::scene::messages::{Asker, Command, CommandId, Effect, Input, Motion, Spawn};
use purview::scene::movement::{
    ClientMs, Footing, Go, Move, MoveCommand, Mover, Path, Rules, ServerMs, Step, Steps, Tile,
    Tiles, Vector,
};
use purview::scene::spec::{KindSpec, MoveSpec, Moves};
use purview::scene::{
    EntityId, Kind, Plane, Pos, Rect, Region, RegionId, Scene, SceneId, SceneSpec, Seq, Tick,
};

/// Tiles along each side of the map.
const SIDE: i32 = 2_048;
/// Side of a tile, centimetres.
const TILE_CM: i32 = 100;
const SPEED: u32 = 500;
const WALKERS: usize = 4_096;

/// A bit per tile: a grid of pillars, one tile in sixteen.
struct Map {
    blocked: Vec<u64>,
}

impl Map {
    fn new() -> Map {
        let mut blocked = vec![0; (SIDE * SIDE / 64) as usize];
        for z in (0..SIDE).step_by(4) {
            for x in (0..SIDE).step_by(4) {
                blocked[((z * SIDE + x) / 64) as usize] |= 1 << (x % 64);
            }
        }
        Map { blocked }
    }
}

impl Tiles for Map {
    fn tile_cm(&self) -> i32 {
        TILE_CM
    }

    #[inline]
    fn is_free(&self, _: Plane, tile: Tile) -> bool {
        let on = |n: i32| (0..SIDE).contains(&n);
        let bit = || tile.z as usize * SIDE as usize + tile.x as usize;
        on(tile.x) && on(tile.z) && self.blocked[bit() / 64] >> (bit() % 64) & 1 == 0
    }

    fn height_cm(&self, tile: Tile) -> Option<i32> {
        Some(tile.x & 7)
    }
}

/// Entities all over the map, each in the middle of a free tile.
fn walkers() -> Vec<(Pos, Mover)> {
    let place = |i: i32| {
        let tile =
            Tile { x: 100 + i * 37 % 1_700 / 4 * 4 + 2, z: 100 + i * 91 % 1_700 / 4 * 4 + 2 };
        tile.middle(TILE_CM, 0)
    };
    let places = (0..WALKERS as i32).map(place);
    places.map(|pos| (pos, Mover::new(ServerMs(0), pos, SPEED))).collect()
}

/// A path of `len` steps eastwards between the pillars, half of them diagonal.
fn way(len: usize) -> Steps {
    [Step::Right, Step::RightDown, Step::RightUp, Step::Right]
        .into_iter()
        .cycle()
        .take(len)
        .collect()
}

fn order_of(motion: impl Into<Move>) -> MoveCommand {
    MoveCommand { correction: 0, at: ClientMs(1), go: Go::Walk(motion.into()) }
}

/// Each accepts a command, and is then as before.
fn accept<'a, 'b>(
    all: impl Iterator<Item = (&'a Mover, &'b MoveCommand)>,
    (now, seq): (ServerMs, Seq),
    on: &Footing<'_, Map>,
) {
    for (mover, order) in all {
        let accepted = { *mover }.accept(now, seq, order, on);
        assert!(black_box(accepted).is_ok());
    }
}

fn movement(c: &mut Criterion) {
    let map = Map::new();
    let bounds = Rect { x0: 0, z0: 0, x1: SIDE * TILE_CM, z1: SIDE * TILE_CM };
    let mut rules = Rules::within(bounds);
    rules.climb = Some(purview::scene::movement::Climb { up_cm: 50, down_cm: 100 });
    let on = Footing { tiles: &map, plane: Plane(0), rules: &rules };
    let all = walkers();
    let movers = || all.iter().map(|(_, mover)| mover);
    let mut group = c.benchmark_group("movement");
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1_500));
    for len in [4, 16, 64] {
        let orders: Vec<_> = all
            .iter()
            .map(|(pos, _)| order_of(Path::new(*pos, way(len), SPEED, TILE_CM)))
            .collect();
        group.throughput(Throughput::Elements((WALKERS * len) as u64));
        group.bench_function(format!("a path of {len} steps, per step"), |b| {
            b.iter(|| accept(movers().zip(&orders), (ServerMs(100), Seq(1)), &on));
        });
    }
    group.throughput(Throughput::Elements(WALKERS as u64));
    let straight: Vec<_> =
        all.iter().map(|(pos, _)| order_of(Vector::heading(*pos, 3, 1, SPEED))).collect();
    group.bench_function("a vector, which sees 4 m ahead", |b| {
        b.iter(|| accept(movers().zip(&straight), (ServerMs(100), Seq(1)), &on));
    });
    let mut walking: Vec<_> = movers().copied().collect();
    for (mover, order) in walking.iter_mut().zip(&straight) {
        assert!(mover.accept(ServerMs(100), Seq(1), order, &on).is_ok());
    }
    let go_on = MoveCommand { correction: 0, at: ClientMs(501), go: Go::On };
    group.bench_function("a command to go on", |b| {
        b.iter(|| {
            accept(walking.iter().zip(std::iter::repeat(&go_on)), (ServerMs(600), Seq(2)), &on)
        });
    });
    group.bench_function("a tick of a walker", |b| {
        b.iter(|| {
            for mover in &mut walking {
                black_box(mover.advance(ServerMs(300), &on));
            }
        });
    });
    group.finish();
}

const NPC: Kind = Kind(1);
const BODY: Kind = Kind(2);
const BODIES: usize = 4_096;
/// Entities of a kind in a row.
const ROW: usize = 64;
/// Ticks between two commands to a walker.
const TURN_TICKS: u64 = 5;

/// A region in which NPCs walk among bodies. One body in eight walks, too.
struct Field {
    region: Region,
    walkers: Vec<EntityId>,
    tick: u64,
    fx: Vec<Effect>,
}

impl Field {
    /// `tiles` along each side of a body; 0: there are none.
    fn new(tiles: i32) -> Field {
        let size_cm = Some([tiles.max(1) * TILE_CM; 2]);
        let body = KindSpec { blocks: true, size_cm, ..KindSpec::new("body", 0) };
        let kinds = vec![KindSpec::new("player", 0), KindSpec::new("npc", 0), body];
        let moves = MoveSpec { mode: Moves::Judged, tile_cm: TILE_CM, ..MoveSpec::default() };
        let (region_lands_x, region_lands_z) = (4, 4);
        let spec =
            SceneSpec { kinds, moves, region_lands_x, region_lands_z, ..SceneSpec::default() };
        let scene = Scene::new(SceneId(0), spec, 100, RegionId(0)).expect("a legal scene");
        let region = Region::new(Arc::new(scene), RegionId(0)).expect("a region");
        let mut field = Field { region, walkers: Vec::new(), tick: 0, fx: Vec::new() };
        let bodies = if tiles == 0 { 0 } else { BODIES };
        for n in 0..WALKERS {
            field.put(NPC, n, 2);
        }
        for n in 0..bodies {
            field.put(BODY, n, 0);
        }
        (0..2 * TURN_TICKS).for_each(|_| field.step());
        field
    }

    /// Puts the entity with this number of its kind on a grid of every fourth tile, so many tiles further.
    fn put(&mut self, kind: Kind, number: usize, further: i32) {
        let along = |n: usize| 4 * (2 + n as i32) + further;
        let tile = Tile { x: along(number % ROW), z: along(number / ROW) };
        let id = EntityId(u64::from(kind.0) << 32 | (number as u64 + 1));
        let spawn = Spawn::new(id, kind, tile.middle(TILE_CM, 0));
        self.region.handle(Input::Enter(Box::new(spawn)), &mut self.fx);
        if kind == NPC || number.is_multiple_of(8) {
            self.walkers.push(id);
        }
    }

    /// A tick, before which a fifth of the walkers turn.
    fn step(&mut self) {
        let call = CommandId { from: Asker::Process(0), number: 0 };
        let turn = (self.tick % TURN_TICKS) as usize;
        for (n, id) in self.walkers.iter().enumerate().skip(turn).step_by(TURN_TICKS as usize) {
            // Back and forth, each in its own direction.
            let sign = if (self.tick / TURN_TICKS).is_multiple_of(2) { 1 } else { -1 };
            let (dx, dz) = (sign * (n as i32 % 7 - 3), sign * (n as i32 % 3 + 1));
            let walk = Vector::heading(Pos::ground(0, 0), dx, dz, SPEED);
            let walk = Vector { lasts_ms: Some(600), ..walk };
            let motion = Command::Motion(*id, Motion::Walk(walk.into()));
            self.region.handle(Input::command(call, motion), &mut self.fx);
        }
        self.tick += 1;
        self.region.tick(Tick(self.tick), &mut self.fx);
        self.fx.clear();
    }
}

fn walk_among_blockers(c: &mut Criterion) {
    let mut group = c.benchmark_group("walk among blockers");
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1_500))
        .throughput(Throughput::Elements(WALKERS as u64));
    for (tiles, name) in [
        (0, "a tick without bodies"),
        (1, "a tick among bodies of one tile"),
        (2, "a tick among bodies of four tiles"),
    ] {
        let mut field = Field::new(tiles);
        group.bench_function(name, |b| b.iter(|| field.step()));
    }
    group.finish();
}

criterion_group!(benches, movement, walk_among_blockers);
criterion_main!(benches);
