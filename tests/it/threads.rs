//! What a region does is the same whatever the number of threads: random histories of crowds, every
//! effect compared.

use std::sync::{Arc, Mutex};

use crate::support::Rng;
use crate::support::touches::{Touches, with_properties};
use crate::support::world::World;
use purview::scene::messages::{Bond, EntityAction, Input, Order};
use purview::scene::spec::{BondSpec, CrowdSpec, KindSpec, LayerSpec, Rates};
use purview::scene::workers::{Task, Workers};
use purview::scene::{Kind, Plane, Pos, RangeSet, SceneSpec, SessionId, Visibility};

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
        width_cm: SIDE,
        depth_cm: SIDE,
        land_cm: SIDE / 2,
        region_lands_x: 2 / regions,
        region_lands_z: 2,
        layers: vec![LayerSpec::square("common", 400)],
        kinds: vec![KindSpec::new("player", 0), KindSpec::new("coin", 0)],
        visibility,
        view_cap: 8,
        view_margin_cm: 50,
        bonds: BondSpec { enter_cm: 1_700, leave_cm: 1_800, cap: 2, ..BondSpec::default() },
        rates: Rates { near: 1, middle: 2, far: 3 },
        frame_budget_bytes: 256,
        handoff_margin_cm: 50,
        top_speed_cm_s: 2_000,
        spawn_x_cm: 0,
        spawn_z_cm: 0,
        ..SceneSpec::default()
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
        let (id, region) = (w.clients[&session].entity, w.clients[&session].region);
        let pos = w.truth[&id].pos;
        match rng.below(200) {
            0 => w.teleport(session, Plane(0), place(rng)),
            1 => w.teleport(session, Plane(rng.range(0, 2)), pos),
            2 | 3 => {
                let bonds = vec![Bond { class: 0, group: rng.next() % 9 }];
                w.truth.get_mut(&id).unwrap().bonds = bonds.clone();
                w.tell(region, Input::Bonds { id, bonds });
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

/// Every effect of a history, with so many threads for each region.
fn effects(spec: SceneSpec, seed: u64, threads: usize) -> Vec<String> {
    let mut w = World::new(spec, seed);
    let workers: Arc<dyn Workers> = Arc::new(Threads(threads));
    w.regions.iter_mut().for_each(|region| region.set_workers(workers.clone()));
    w.log = Some(Vec::new());
    w.touches = Some(Touches::new(seed));
    let mut rng = Rng::new(seed ^ 0x7ead);
    for _ in 0..320 {
        w.join(Plane(0), place(&mut rng), RangeSet::FULL);
    }
    for _ in 0..60 {
        w.spawn(Kind(1), Plane(0), place(&mut rng), RangeSet::FULL, None);
    }
    for _ in 0..20 {
        w.step();
        disturb(&mut w, &mut rng);
    }
    assert!(!w.links().is_empty());
    w.log.unwrap_or_default()
}

fn same_with_any_number_of_threads(spec: &SceneSpec, seeds: u64) {
    for seed in 0..seeds {
        let one = effects(spec.clone(), seed, 1);
        assert!(one.len() > 20, "seed {seed}: too few effects to show anything");
        for threads in [2, 3, 8] {
            let many = effects(spec.clone(), seed, threads);
            assert_eq!(one.len(), many.len(), "seed {seed}, {threads} threads");
            for (one, many) in one.iter().zip(&many) {
                assert_eq!(one, many, "seed {seed}, {threads} threads");
            }
        }
    }
}

#[test]
fn effects_are_the_same_with_any_number_of_threads_with_patches() {
    same_with_any_number_of_threads(&scene(Visibility::Patches, 1), 2);
}

#[test]
fn effects_are_the_same_with_any_number_of_threads_with_circles() {
    let circle = Visibility::Circle { enter_cm: 1_000, leave_cm: 1_150 };
    same_with_any_number_of_threads(&scene(circle, 1), 2);
}

#[test]
fn effects_are_the_same_with_any_number_of_threads_across_borders() {
    same_with_any_number_of_threads(&scene(Visibility::Patches, 2), 2);
}

/// With the crowd tier, a budget for each client, and properties for several audiences.
#[test]
fn frames_are_the_same_with_any_number_of_threads_whatever_they_tell() {
    let crowd = Some(CrowdSpec { max: 40, interval: 2 });
    let spec = SceneSpec { crowd, egress_bits_s: 200_000, ..scene(Visibility::Patches, 1) };
    same_with_any_number_of_threads(&with_properties(spec), 2);
}
