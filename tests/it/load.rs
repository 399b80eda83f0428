//! Crowds and byte budgets: what clients are told beyond their view lists, and how much they are sent.

use std::collections::BTreeMap;

use crate::support::Rng;
use crate::support::small_scene;
use crate::support::world::World;
use purview::scene::messages::{Crowd, EntityAction, Order};
use purview::scene::pace::BURST_MS;
use purview::scene::spec::{CrowdSpec, PaceSpec, Rates, UpdateError};
use purview::scene::{Kind, Plane, Pos, RangeSet, SceneSpec, SessionId, Tick};

const PATCH: i32 = 800;
const SIDE: i32 = 12_800;

/// Regions of `lands` times 32 m.
fn scene(lands: i32) -> SceneSpec {
    let (regions, SceneSpec { rates, view_margin_cm, .. }) = (4 / lands, SceneSpec::default());
    SceneSpec {
        rates,
        view_margin_cm,
        view_cap: 10,
        ..small_scene((regions, regions), SIDE / regions, PATCH)
    }
}

fn crowded(lands: i32, max: u32) -> SceneSpec {
    SceneSpec { crowd: Some(CrowdSpec { max, interval: 10 }), ..scene(lands) }
}

fn walk_about(w: &mut World, sessions: &[SessionId], rng: &mut Rng, step: i32) {
    for &session in sessions {
        let pos = w.truth[&w.clients[&session].entity].pos;
        let to = |v: i32, rng: &mut Rng| (v + rng.range(-step, step + 1)).clamp(50, SIDE - 50);
        w.walk(session, Pos { x: to(pos.x, rng), y: pos.y, z: to(pos.z, rng) });
    }
    w.step();
}

/// The crowd of the patch at `eye` by brute force: the nearest players that a viewer in the patch could see, by
/// their cells.
fn by_hand(w: &World, plane: Plane, eye: Pos, max: usize) -> Vec<u8> {
    let middle = |v: i32| v.div_euclid(PATCH) * PATCH + PATCH / 2;
    let middle = Pos::ground(middle(eye.x), middle(eye.z));
    // Two patches beyond the viewer's own.
    let reach = 2 * PATCH + PATCH / 2;
    let cell = |off: i32| {
        (-reach..reach).contains(&off).then(|| (128 + (off * 8).div_euclid(PATCH)) as u8)
    };
    // Viewers share the crowd of their half of the limit, and see an eighth beyond it.
    let level = |y: i32| {
        let Some(height) = w.scene.spec.height_cm else { return true };
        let low = eye.y.div_euclid(height / 2) * (height / 2);
        let most = height + height / 8;
        (low..low + height / 2).all(|viewer| (viewer - y).abs() <= most)
    };
    let players = w.truth.iter().filter(|(_, t)| t.kind == Kind::PLAYER && t.plane == plane);
    let players = players.filter(|(_, t)| level(t.pos.y));
    let mut near: Vec<_> = players
        .filter_map(|(id, t)| {
            let (x, z) = (cell(t.pos.x - middle.x)?, cell(t.pos.z - middle.z)?);
            Some((t.pos.dist2(middle), *id, [x, z]))
        })
        .collect();
    near.sort();
    near.truncate(max);
    let mut cells: Vec<_> = near.into_iter().map(|(.., cell)| cell).collect();
    cells.sort();
    cells.concat()
}

fn join_many(w: &mut World, count: usize, rng: &mut Rng) -> Vec<SessionId> {
    let mut join = |i: usize| {
        let pos = Pos::ground(rng.range(4_000, 9_000), rng.range(4_000, 9_000));
        w.join(Plane(i32::from(i.is_multiple_of(5))), pos, RangeSet::FULL)
    };
    (0..count).map(&mut join).collect()
}

#[test]
fn a_crowd_is_the_players_nearest_to_the_patch_once_a_second() {
    let (mut w, mut rng) = (World::new(crowded(4, 20), 3), Rng::new(4));
    let sessions = join_many(&mut w, 60, &mut rng);
    w.spawn(Kind(1), Plane(0), Pos::ground(6_400, 6_400), RangeSet::FULL, None);
    w.step();
    let mut told = 0;
    for _ in 0..60 {
        w.clients.values_mut().for_each(|c| c.crowds.clear());
        walk_about(&mut w, &sessions, &mut rng, 60);
        let mut of_patch = BTreeMap::new();
        for c in w.clients.values().filter(|c| !c.crowds.is_empty()) {
            let me = &w.truth[&c.entity];
            let [(tick, Crowd { x, z, dots })] = &c.crowds[..] else { panic!("two in a tick") };
            assert_eq!((*tick, &dots[..]), (w.tick, &by_hand(&w, me.plane, me.pos, 20)[..]));
            assert!((me.pos.x - x).abs() <= PATCH / 2 && (me.pos.z - z).abs() <= PATCH / 2);
            let known = of_patch.entry((me.plane, *x, *z)).or_insert_with(|| dots.as_ptr());
            assert_eq!(*known, dots.as_ptr(), "viewers of a patch share its crowd");
            told += 1;
        }
    }
    // Those who change patches may miss a turn, or get one more.
    assert!((5 * 60..=7 * 60).contains(&told), "{told} crowds in six seconds");
}

#[test]
fn standing_players_are_told_every_second_exactly() {
    let (mut w, mut rng) = (World::new(crowded(4, 500), 5), Rng::new(6));
    join_many(&mut w, 30, &mut rng);
    w.steps(41);
    for c in w.clients.values() {
        let ticks: Vec<u64> = c.crowds.iter().map(|(Tick(tick), _)| *tick).collect();
        assert!(ticks.len() >= 4 && ticks.windows(2).all(|two| two[1] - two[0] == 10), "{ticks:?}");
    }
}

/// What is mirrored across a border is in the crowd.
#[test]
fn crowds_reach_across_borders_as_far_as_views() {
    let (mut w, mut rng) = (World::new(crowded(1, 500), 7), Rng::new(8));
    let sessions = join_many(&mut w, 60, &mut rng);
    (0..40).for_each(|_| walk_about(&mut w, &sessions, &mut rng, 60));
    assert!(w.handoffs > 0);
    w.steps(12);
    for c in w.clients.values() {
        let me = &w.truth[&c.entity];
        let (tick, crowd) = c.crowds.last().expect("a crowd within a second");
        assert!(w.tick.0 - tick.0 <= 10);
        assert_eq!(&crowd.dots[..], &by_hand(&w, me.plane, me.pos, 500)[..], "{}", c.entity);
    }
}

/// Five floors of 3 m: a crowd has the players of a floor, and of those one below and one above.
#[test]
fn crowds_are_of_the_heights_that_a_viewer_could_see() {
    let spec = SceneSpec { height_cm: Some(400), ..crowded(1, 500) };
    let (mut w, mut rng) = (World::new(spec, 7), Rng::new(8));
    for floor in 0..5 {
        for _ in 0..20 {
            let mut along = || rng.range(4_000, 9_000);
            let pos = Pos { x: along(), y: floor * 300, z: along() };
            w.join(Plane(0), pos, RangeSet::FULL);
        }
    }
    w.steps(14);
    let mut left_out = 0;
    for c in w.clients.values() {
        let me = &w.truth[&c.entity];
        let (_, crowd) = c.crowds.last().expect("a crowd within a second");
        assert_eq!(&crowd.dots[..], &by_hand(&w, me.plane, me.pos, 500)[..], "{}", c.entity);
        left_out += usize::from(crowd.dots.len() < 2 * w.truth.len());
    }
    assert!(left_out > 50, "{left_out}");
}

#[test]
fn a_scene_without_crowds_tells_none() {
    let (mut w, mut rng) = (World::new(scene(4), 9), Rng::new(10));
    join_many(&mut w, 20, &mut rng);
    w.steps(30);
    assert!(w.clients.values().all(|c| c.crowds.is_empty()));
}

/// Bits per second of the budget, and the window in which it must hold, ticks.
const BUDGET: u32 = 8_000;
const WINDOW: usize = 100;

fn tight() -> SceneSpec {
    SceneSpec {
        view_cap: 60,
        rates: Rates { near: 1, middle: 2, far: 4 },
        update_error: Some(UpdateError::default()),
        egress_bits_s: BUDGET,
        crowd: Some(CrowdSpec::default()),
        ..scene(2)
    }
}

#[test]
fn a_budget_holds_at_the_99th_percentile_of_ten_seconds() {
    let run = |spec: SceneSpec| {
        let (mut w, mut rng) = (World::new(spec, 11), Rng::new(12));
        let sessions = join_many(&mut w, 60, &mut rng);
        (0..30).for_each(|_| walk_about(&mut w, &sessions, &mut rng, 60));
        w.encode = true;
        (0..300).for_each(|_| walk_about(&mut w, &sessions, &mut rng, 60));
        let mut sums: Vec<usize> = Vec::new();
        for c in w.clients.values() {
            let bytes: Vec<usize> = c.sizes.iter().map(|(_, bytes)| *bytes).collect();
            sums.extend(bytes.windows(WINDOW).map(|w| w.iter().sum::<usize>()));
        }
        sums.sort_unstable();
        let waited: u64 = w.regions.iter().map(|r| r.counts().moves_waited).sum();
        (sums[sums.len() / 2], sums[sums.len() * 99 / 100], waited)
    };
    let most = BUDGET as usize / 8 * WINDOW / 10;
    let (median, p99, waited) = run(tight());
    assert!(p99 <= most && waited > 0, "{p99} bytes of {most}, {waited} waited");
    // The budget is used, and without it more would be sent.
    assert!(median * 10 > most * 8, "{median} of {most}");
    let (median, _, waited) = run(SceneSpec { egress_bits_s: 0, ..tight() });
    assert!(median * 2 > most * 3 && waited == 0, "{median} of {most}, {waited} waited");
}

#[test]
fn under_a_budget_far_entities_are_told_less_often_and_all_at_last() {
    let (mut w, mut rng) = (World::new(tight(), 13), Rng::new(14));
    let sessions = join_many(&mut w, 60, &mut rng);
    (0..60).for_each(|_| walk_about(&mut w, &sessions, &mut rng, 60));
    // Mean age of what is told, by distance.
    let mut ages = [(0, 0); 2];
    for _ in 0..50 {
        walk_about(&mut w, &sessions, &mut rng, 60);
        for c in w.clients.values() {
            let eye = w.truth[&c.entity].pos;
            for (id, (_, told)) in &c.shown {
                let far = eye.dist2(w.truth[id].pos) > 1_000 * 1_000;
                let (sum, count) = &mut ages[usize::from(far)];
                (*sum, *count) = (*sum + w.tick.0 - told.0, *count + 1);
            }
        }
    }
    let [near, far] = ages.map(|(sum, count)| sum as f64 / f64::from(count));
    assert!(far > near * 1.3, "{near:.1} ticks near, {far:.1} ticks far");
    w.steps(150);
    for c in w.clients.values() {
        for (id, (pos, _)) in &c.shown {
            assert_eq!(*pos, w.truth[id].pos, "{}: {id}", c.entity);
            assert!(!c.trajectories.contains_key(id));
        }
    }
}

/// A viewer, walkers in its view, and a player that acts `acts` times in each tick, at `bytes` each. Gives the moves
/// of walkers that the viewer was told in ten seconds, and how many acts were refused.
fn moves_beside_a_shouter(spec: &SceneSpec, acts: u32, bytes: usize) -> (u64, usize) {
    let mut w = World::new(spec.clone(), 21);
    let at = |x: i32, z: i32| Pos::ground(5_000 + x, 5_000 + z);
    let viewer = w.join(Plane(0), at(0, 0), RangeSet::FULL);
    let shouter = w.join(Plane(0), at(100, 0), RangeSet::FULL);
    let walkers = [1, 2, 3, 4].map(|i| w.join(Plane(0), at(100 * i, 200), RangeSet::FULL));
    w.steps(30);
    let before = w.clients[&viewer].updates;
    for tick in 0..100 {
        for _ in 0..acts {
            w.order(shouter, Order::Act(EntityAction::new(vec![7; bytes])));
        }
        for (i, session) in walkers.iter().enumerate() {
            // Each turns in every tick.
            let z = if tick % 2 == 0 { 200 } else { 290 };
            w.walk(*session, at(100 * (i as i32 + 1), z));
        }
        w.step();
    }
    (w.clients[&viewer].updates - before, w.clients[&shouter].refusals.len())
}

#[test]
fn half_of_the_budget_is_kept_for_moves_whatever_others_do() {
    let pace = PaceSpec { acts_per_s: 1_000, bytes_per_s: 1 << 20 };
    let spec = SceneSpec { crowd: None, egress_bits_s: 20_000, pace, ..tight() };
    let (calm, _) = moves_beside_a_shouter(&spec, 0, 0);
    for (acts, bytes) in [(6, 1_024), (1, 1_024), (10, 60)] {
        let (told, refused) = moves_beside_a_shouter(&spec, acts, bytes);
        assert_eq!(refused, 0);
        assert!(told * 100 >= calm * 45, "{told} moves beside {acts} acts, {calm} without");
    }
}

#[test]
fn a_client_acts_at_a_limited_pace_and_length() {
    let spec = SceneSpec { crowd: None, egress_bits_s: 0, ..tight() };
    // Ten a second are no more than may be.
    assert_eq!(moves_beside_a_shouter(&spec, 1, 100).1, 0);
    let (_, refused) = moves_beside_a_shouter(&spec, 6, 100);
    // What ten seconds allow at once, and what ten seconds allow.
    assert!((600 - 405..=600 - 395).contains(&refused), "{refused} of 60 a second");
    let (_, refused) = moves_beside_a_shouter(&spec, 1, 1_024);
    assert!((100 - 82..=100 - 78).contains(&refused), "{refused} of 10 KiB a second");
}

#[test]
fn a_client_has_one_pace_on_both_sides_of_a_border() {
    let mut w = World::new(SceneSpec { crowd: None, egress_bits_s: 0, ..tight() }, 23);
    let shouter = w.join(Plane(0), Pos::ground(6_300, 5_000), RangeSet::FULL);
    let shout = |w: &mut World, times: u32| {
        for _ in 0..times {
            w.order(shouter, Order::Act(EntityAction::new(vec![7; 10])));
        }
    };
    w.step();
    let before = w.clients[&shouter].region;
    let burst = (20 * BURST_MS / 1_000) as u32;
    shout(&mut w, burst);
    for x in [6_450, 6_600, 6_600, 6_600] {
        w.walk(shouter, Pos::ground(x, 5_000));
        w.step();
    }
    assert_ne!(w.clients[&shouter].region, before, "the player has crossed the border");
    assert_eq!(w.clients[&shouter].refusals.len(), 0);
    // Two in a tick since then, and no more.
    shout(&mut w, 30);
    w.steps(2);
    let refused = w.clients[&shouter].refusals.len();
    assert!((15..=25).contains(&refused), "{refused} of 30");
}
