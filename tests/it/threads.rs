//! What a region does is the same whatever the number of threads: random histories of crowds, every
//! effect compared.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::touches::{Touches, with_properties};
use crate::support::world::World;
use crate::support::{Rng, small_scene};
use purview::interest::{self, Entity, Mode, Radii, Reach, Rules, Sight};
use purview::scene::messages::{Bond, EntityAction, LogicEvent, Order};
use purview::scene::properties::Properties;
use purview::scene::region::{Commands, GameLogic, Known};
use purview::scene::spec::{BondSpec, CrowdSpec, Rates};
use purview::scene::workers::{Task, Workers};
use purview::scene::{Kind, Plane, Pos, RangeSet, Rect, Region, SceneSpec, SessionId, Visibility};

const SIDE: i32 = 6_400;

/// Threads that take tasks from one end or the other, as it comes.
#[derive(Debug)]
struct Threads(usize);

impl Workers for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, tasks: Vec<Task<'_>>) {
        assert!(tasks.len() > 1, "one task needs no workers");
        let tasks = &Mutex::new(tasks);
        std::thread::scope(|scope| {
            for thread in 0..self.0 {
                let next = move || {
                    let mut tasks = tasks.lock().unwrap();
                    let at = if thread % 2 == 0 { 0 } else { tasks.len().saturating_sub(1) };
                    (at < tasks.len()).then(|| tasks.swap_remove(at))
                };
                scope.spawn(move || {
                    while let Some(task) = next() {
                        task();
                    }
                });
            }
        });
    }
}

/// Two regions, so that there are ghosts, or one.
fn scene(visibility: Visibility, regions: i32) -> SceneSpec {
    SceneSpec {
        region_lands_x: 2 / regions,
        region_lands_z: 2,
        visibility,
        view_cap: 8,
        view_margin_cm: 50,
        bonds: BondSpec { enter_cm: 1_700, leave_cm: 1_800, cap: 2, ..BondSpec::default() },
        rates: Rates { near: 1, middle: 2, far: 3 },
        frame_budget_bytes: 256,
        handoff_margin_cm: 50,
        ..small_scene((2, 2), SIDE / 2, 400)
    }
}

fn place(rng: &mut Rng) -> Pos {
    Pos::ground(rng.range(1_600, 4_800), rng.range(1_600, 4_800))
}

/// What happens before a tick: most players walk, and a few do something else.
fn disturb(w: &mut World, rng: &mut Rng) {
    let sessions: Vec<SessionId> =
        w.clients.iter().filter(|(_, c)| c.epoch.0 > 0).map(|(s, _)| *s).collect();
    for session in sessions {
        let id = w.clients[&session].entity;
        let pos = w.truth[&id].pos;
        match rng.below(200) {
            0 => w.teleport(session, Plane(0), place(rng)),
            1 => w.teleport(session, Plane(rng.range(0, 2)), pos),
            2 | 3 => {
                let bond = Bond { class: 0, group: rng.next() % 9 };
                w.bond(session, &[bond]);
            }
            4 => w.order(session, Order::Act(EntityAction::new(vec![id.0 as u8; 40]))),
            5..150 => {
                let step = |at: i32, rng: &mut Rng| (at + rng.range(-140, 141)).clamp(0, SIDE - 1);
                w.walk(session, Pos::ground(step(pos.x, rng), step(pos.z, rng)));
            }
            _ => {}
        }
    }
    for _ in 0..rng.below(4) {
        w.join(Plane(0), place(rng), RangeSet::FULL);
        w.spawn(Kind(1), Plane(0), place(rng), RangeSet::FULL, None);
    }
}

/// Coins that roll and ring beside players, and become more or fewer: each by itself.
struct Coins;

impl GameLogic for Coins {
    fn tick(&mut self, _: &Region, _: &[LogicEvent], _: &mut Commands) {}

    fn kinds_of_each(&self) -> &[Kind] {
        &[Kind(1)]
    }

    fn each(&self, region: &Region, coin: Known<'_>, commands: &mut Commands) {
        let players = region.within(coin.plane, Kind::PLAYER, coin.pos, 300).len() as i32;
        let mut rng = Rng::new(coin.id.0 ^ (region.current_tick().0 << 32));
        match rng.below(40) {
            0 => _ = commands.act(coin.id, format!("{players}")),
            1 => {
                let at = place(&mut rng);
                commands.spawn(coin.kind, coin.plane, at, Properties::default());
            }
            2 => _ = commands.despawn(coin.id),
            _ => {
                let x = (coin.pos.x + rng.range(-50, 50) + players).clamp(0, SIDE - 1);
                commands.place(coin.id, Pos { x, ..coin.pos });
            }
        }
    }
}

fn let_coins_roll(w: &mut World, coins: i32, rng: &mut Rng) {
    w.set_logic(|_| Box::new(Coins));
    for _ in 0..coins {
        w.spawn(Kind(1), Plane(0), place(rng), RangeSet::FULL, None);
    }
}

/// Every effect of a history, with so many threads for each region.
fn effects(spec: SceneSpec, seed: u64, threads: usize, coins: i32) -> Vec<String> {
    let mut w = World::new(spec, seed);
    let workers: Arc<dyn Workers> = Arc::new(Threads(threads));
    w.regions.iter_mut().for_each(|region| region.set_workers(workers.clone()));
    w.log = Some(Vec::new());
    w.touches = Some(Touches::new(seed));
    let mut rng = Rng::new(seed ^ 0x7ead);
    let players = 320 * w.regions.len();
    for _ in 0..players {
        w.join(Plane(0), place(&mut rng), RangeSet::FULL);
    }
    for _ in 0..60 {
        w.spawn(Kind(1), Plane(0), place(&mut rng), RangeSet::FULL, None);
    }
    if coins > 0 {
        let_coins_roll(&mut w, coins, &mut rng);
    }
    for _ in 0..20 {
        w.step();
        disturb(&mut w, &mut rng);
    }
    assert!(!w.links().is_empty());
    w.log.unwrap_or_default()
}

fn same_with_any_number_of_threads(spec: &SceneSpec, seeds: u64, coins: i32) {
    for seed in 0..seeds {
        let one = effects(spec.clone(), seed, 1, coins);
        assert!(one.len() > 20, "seed {seed}: too few effects to show anything");
        for threads in [2, 3, 8] {
            let many = effects(spec.clone(), seed, threads, coins);
            assert_eq!(one.len(), many.len(), "seed {seed}, {threads} threads");
            for (one, many) in one.iter().zip(&many) {
                assert_eq!(one, many, "seed {seed}, {threads} threads");
            }
        }
    }
}

#[test]
fn effects_are_the_same_with_any_number_of_threads_with_patches() {
    same_with_any_number_of_threads(&scene(Visibility::Patches, 1), 2, 0);
}

#[test]
fn effects_are_the_same_with_any_number_of_threads_with_circles() {
    let circle = Visibility::Circle { enter_cm: 1_000, leave_cm: 1_150 };
    same_with_any_number_of_threads(&scene(circle, 1), 2, 0);
}

#[test]
fn effects_are_the_same_with_any_number_of_threads_across_borders() {
    same_with_any_number_of_threads(&scene(Visibility::Patches, 2), 2, 0);
}

/// With the crowd tier, a budget for each client, and properties for several audiences.
#[test]
fn frames_are_the_same_with_any_number_of_threads_whatever_they_tell() {
    let crowd = Some(CrowdSpec { max: 40, interval: 2 });
    let spec = SceneSpec { crowd, egress_bits_s: 200_000, ..scene(Visibility::Patches, 1) };
    same_with_any_number_of_threads(&with_properties(spec), 2, 0);
}

/// With rules by entity, in two regions that hand the coins over to each other.
#[test]
fn what_rules_by_entity_command_is_the_same_with_any_number_of_threads() {
    let counted =
        |log: &[String]| log.iter().filter(|effect| effect.contains("acting: [(")).count();
    let spec = scene(Visibility::Patches, 2);
    assert!(counted(&effects(spec.clone(), 0, 1, 700)) > 10, "coins ring");
    same_with_any_number_of_threads(&spec, 2, 700);
}

/// Counts how often ticks share their work.
#[derive(Debug, Default)]
struct Entries(AtomicUsize);

impl Workers for Entries {
    fn threads(&self) -> usize {
        2
    }

    fn run(&self, tasks: Vec<Task<'_>>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        tasks.into_iter().for_each(|task| task());
    }
}

#[test]
fn only_ticks_of_crowds_enter_the_pool() {
    let entries = |players: usize| {
        let (mut w, mut rng) = (World::new(scene(Visibility::Patches, 1), 5), Rng::new(5));
        let workers = Arc::new(Entries::default());
        w.regions[0].set_workers(workers.clone());
        for _ in 0..players {
            w.join(Plane(0), place(&mut rng), RangeSet::FULL);
        }
        for _ in 0..10 {
            w.step();
            disturb(&mut w, &mut rng);
        }
        workers.0.load(Ordering::Relaxed)
    };
    assert_eq!(entries(200), 0);
    assert!(entries(320) > 0);
}

#[test]
fn only_long_ticks_of_interest_worlds_enter_the_pool() {
    let entries = |mode, reach, entities: u64| {
        let side = 1_750 * (entities as f64).sqrt() as i32;
        let ground = Rect { x0: 0, z0: 0, x1: side, z1: side };
        let mut world = interest::World::new(Rules::new(ground, mode, reach)).unwrap();
        let mut rng = Rng::new(5);
        let mut at = |_| Pos::ground(rng.range(100, side - 100), rng.range(100, side - 100));
        let places: Vec<Pos> = (0..entities).map(&mut at).collect();
        for (id, pos) in (0..).zip(&places) {
            let sight = Sight::default();
            world.create(Entity { id, kind: 0, plane: 0, pos: *pos, sight }).unwrap();
        }
        world.tick();
        let workers = Arc::new(Entries::default());
        for tick in 1..40_i32 {
            // The work of a tick is estimated by the one before: not by the tick in which all appear.
            if tick == 3 {
                world.set_workers(workers.clone());
            }
            for (id, pos) in (0..).zip(&places) {
                let x = pos.x + 50 * (tick % 20 - 10).abs() - 250;
                world.move_to(id, Pos { x: x.clamp(0, side - 1), ..*pos }).unwrap();
            }
            world.tick();
        }
        workers.0.load(Ordering::Relaxed)
    };
    let circle = (Mode::Circle, Reach::Circle(Radii::new(8_000, 8_500)));
    let patches = (Mode::Patches { patch_cm: 2_836 }, Reach::Rings(RangeSet::FULL));
    for (mode, reach) in [circle, patches] {
        assert_eq!(entries(mode, reach, 1_000), 0, "{mode:?}");
        assert!(entries(mode, reach, 40_000) > 0, "{mode:?}");
    }
}
