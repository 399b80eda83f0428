//! Views of one region against brute force: every mode, thousands of random histories of joins,
//! walks, teleports, changes of plane and leaves, checked after every tick.

use std::collections::BTreeSet;

use crate::support::brute::{self, Pair, in_range};
use crate::support::world::World;
use crate::support::{Rng, seeds, small_scene};
use purview::scene::messages::{Bond, Input};
use purview::scene::spec::{KindSpec, LayerSpec};
use purview::scene::{
    EntityId, Epoch, Kind, Plane, Pos, RangeSet, RegionId, SceneSpec, SessionId, Visibility,
};

/// The scene's edge cuts its only land, and the last patches of both layers.
const SIDE: i32 = 6_350;

fn scene(visibility: Visibility, cap: usize) -> SceneSpec {
    SceneSpec {
        width_cm: SIDE,
        depth_cm: SIDE,
        layers: vec![LayerSpec::square("common", 400), LayerSpec::square("huge", 1_600)],
        kinds: [("player", 0), ("coin", 0), ("dragon", 1)]
            .map(|(name, layer)| KindSpec::new(name, layer))
            .into(),
        visibility,
        patch_margin_cm: Some(0),
        view_cap: cap,
        ..small_scene((1, 1), 6_400, 400)
    }
}

fn place(rng: &mut Rng, spec: &SceneSpec) -> Pos {
    // Coarse positions, so that ties and edges are common.
    let (x, z) = (rng.range(0, SIDE / 50) * 50, rng.range(0, SIDE / 50) * 50);
    let y = spec.height_cm.map_or(0, |_| rng.range(0, 20) * 50);
    Pos { x, y, z }
}

fn sight(rng: &mut Rng) -> RangeSet {
    match rng.below(3) {
        0 => RangeSet::FULL,
        _ => RangeSet::from_bits(rng.range(0, 8) as u8).unwrap(),
    }
}

fn plane(rng: &mut Rng) -> Plane {
    Plane(rng.range(0, 2))
}

/// A history of `ticks` ticks, checked after each of them.
fn history(spec: SceneSpec, seed: u64, ticks: usize) {
    let mut w = World::new(spec, seed);
    w.weak_cap = if seed.is_multiple_of(2) { 2 } else { 0 };
    let mut rng = Rng::new(seed ^ 0xabcd);
    let mut links: BTreeSet<Pair> = BTreeSet::new();
    let mut shown: BTreeSet<(EntityId, EntityId)> = BTreeSet::new();
    let mut others: Vec<EntityId> = Vec::new();
    for _ in 0..ticks {
        for _ in 0..rng.below(6) {
            disturb(&mut w, &mut rng, &mut others);
        }
        w.step();
        let now = w.links();
        let want = brute::greedy(&w.scene, &w.truth, &links);
        assert_eq!(now, want, "seed {seed} tick {}", w.tick);
        links = now;
        let told = w.shown();
        let mut should: BTreeSet<_> =
            links.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
        for p in w.clients.values().map(|c| c.entity) {
            for o in &others {
                let known = shown.contains(&(p, *o));
                if in_range(&w.scene, &w.truth[&p], &w.truth[o], known) {
                    should.insert((p, *o));
                }
            }
        }
        assert_eq!(told, should, "seed {seed} tick {}: the views of clients", w.tick);
        for c in w.clients.values() {
            for (id, (pos, _)) in &c.shown {
                assert_eq!(*pos, w.truth[id].pos, "seed {seed}: {} shows {id} elsewhere", c.entity);
            }
        }
        shown = told;
    }
}

fn disturb(w: &mut World, rng: &mut Rng, others: &mut Vec<EntityId>) {
    // A client that has not been told yet that it is in the world sends no input.
    let settled = |c: &&SessionId| w.clients[*c].epoch > Epoch(0);
    let sessions: Vec<SessionId> = w.clients.keys().filter(settled).copied().collect();
    let at = place(rng, &w.scene.spec);
    match (rng.below(12), sessions.is_empty()) {
        (0..=2, _) | (_, true) => {
            w.join(plane(rng), at, sight(rng));
        }
        (3, _) => {
            let kind = Kind(1 + rng.below(2) as u8);
            others.push(w.spawn(kind, plane(rng), at, sight(rng), None));
        }
        (4, _) if !others.is_empty() => {
            let id = others.swap_remove(rng.below(others.len()));
            w.truth.remove(&id);
            w.tell(RegionId(0), Input::Leave(id));
        }
        (5, _) => {
            let s = sessions[rng.below(sessions.len())];
            w.teleport(s, plane(rng), at);
        }
        (6, _) if sessions.len() > 8 || rng.chance(30) => {
            let s = sessions[rng.below(sessions.len())];
            w.leave(s);
            w.clients.remove(&s);
        }
        (7, _) => {
            let s = sessions[rng.below(sessions.len())];
            let count = rng.below(3);
            let bond = |_| Bond { class: rng.range(0, 2) as u8, group: rng.next() % 3 };
            let bonds: Vec<_> = (0..count).map(bond).collect();
            w.bond(s, &bonds);
        }
        _ => {
            for s in sessions {
                let pos = w.truth[&w.clients[&s].entity].pos;
                let x = (pos.x + rng.range(-6, 7) * 50).clamp(0, SIDE - 1);
                let z = (pos.z + rng.range(-6, 7) * 50).clamp(0, SIDE - 1);
                let y = w.scene.spec.height_cm.map_or(0, |_| pos.y + rng.range(-1, 2) * 50);
                w.walk(s, Pos { x, y, z });
            }
        }
    }
}

const CIRCLE: Visibility = Visibility::Circle { enter_cm: 1_500, leave_cm: 1_700 };

#[test]
fn every_client_is_shown_exactly_the_entities_in_range_with_patches() {
    seeds(700).for_each(|seed| history(scene(Visibility::Patches, 100), seed, 30));
}

#[test]
fn view_lists_are_the_greedy_ones_with_patches_and_a_cap() {
    seeds(700).for_each(|seed| history(scene(Visibility::Patches, 3), seed, 30));
}

#[test]
fn views_of_every_range_of_a_scene_are_those_of_brute_force() {
    for bits in 0..8 {
        let range = RangeSet::from_bits(bits).unwrap();
        for (cap, margin) in [(100, 0), (3, 50)] {
            let patch_margin_cm = Some(margin);
            let spec = SceneSpec { range, patch_margin_cm, ..scene(Visibility::Patches, cap) };
            seeds(40).for_each(|seed| history(spec.clone(), seed, 30));
        }
    }
}

#[test]
fn a_player_that_asks_to_see_nothing_is_seen_as_any_other_and_things_are_seen_one_way() {
    let mut w = World::new(scene(Visibility::Patches, 100), 1);
    let at = |x| Pos::ground(x, 100);
    let hides = w.join(Plane(0), at(100), RangeSet::NONE);
    let near = w.join(Plane(0), at(200), RangeSet::NEAR);
    let seeker = w.join(Plane(0), at(900), RangeSet::FULL);
    let coin = w.spawn(Kind(1), Plane(0), at(600), RangeSet::NONE, None);
    w.steps(3);
    let shown = |session: SessionId, id: EntityId| w.clients[&session].shown.contains_key(&id);
    let [a, b, c] = [hides, near, seeker].map(|session| w.clients[&session].entity);
    assert!(shown(seeker, a) && shown(near, a), "players hide by asking to see less");
    assert!(shown(hides, b) && shown(hides, c), "a player is seen by one that it does not see");
    assert_eq!([hides, near, seeker].map(|session| shown(session, coin)), [false, false, true]);
}

/// Three viewers of other distances and sights; a plain coin, a giant that is seen from afar, and a worm that is not.
#[test]
fn a_kind_with_a_circle_is_seen_from_its_own_radii_in_scenes_of_every_visibility() {
    for visibility in [Visibility::Patches, CIRCLE] {
        let mut spec = scene(visibility, 100);
        let kind = |name: &str, circle_cm| KindSpec { circle_cm, ..KindSpec::new(name, 0) };
        spec.kinds.extend([kind("giant", Some((5_000, 5_500))), kind("worm", Some((100, 200)))]);
        let (giant, worm) = (Kind(3), Kind(4));
        let mut w = World::new(spec, 1);
        let at = |x| Pos::ground(x, 100);
        let viewer = w.join(Plane(0), at(100), RangeSet::NONE);
        let all = [(giant, 5_101), (worm, 250), (Kind(1), 350)];
        let [giant, worm, coin] =
            all.map(|(kind, x)| w.spawn(kind, Plane(0), at(x), RangeSet::NONE, None));
        let mut shown = |x: i32| {
            w.walk(viewer, at(x));
            w.steps(3);
            [giant, worm, coin].map(|id| w.clients[&viewer].shown.contains_key(&id))
        };
        // Asking to see nothing hides what patches show, not what circles do.
        let coin = visibility != Visibility::Patches;
        assert_eq!(shown(100), [false, false, coin], "{visibility:?}");
        assert_eq!(shown(150), [true, true, coin], "{visibility:?}");
        assert_eq!(shown(51), [true, true, coin], "it leaves only beyond the larger radii");
        assert_eq!(shown(49), [true, false, coin], "{visibility:?}");
    }
}

/// Lands are squares; the patches of a screen's shape, of players and of dragons, are not, and do not divide them.
#[test]
fn views_with_oblong_patches_are_those_of_brute_force() {
    for (cap, patch_margin_cm) in [(100, 0), (3, 0), (3, 90)] {
        let mut spec = scene(Visibility::Patches, cap);
        spec.patch_margin_cm = Some(patch_margin_cm);
        (spec.layers[0].patch_cm, spec.layers[1].patch_cm) = ([480, 300], [700, 1_700]);
        seeds(150).for_each(|seed| history(spec.clone(), seed, 30));
    }
    // Circles use the patches to find what is near.
    let mut spec = scene(CIRCLE, 3);
    spec.layers[0].patch_cm = [150, 2_000];
    seeds(150).for_each(|seed| history(spec.clone(), seed, 30));
}

/// At 400 cm entities come into view of each other, and beyond 450 cm they leave it.
#[test]
fn views_where_heights_count_are_those_of_brute_force() {
    for visibility in [Visibility::Patches, CIRCLE, Visibility::All] {
        for (cap, patch_margin_cm, view_margin_cm) in [(100, 0, 0), (3, 0, 0), (3, 100, 150)] {
            let spec = SceneSpec {
                height_cm: Some(400),
                patch_margin_cm: Some(patch_margin_cm),
                view_margin_cm,
                ..scene(visibility, cap)
            };
            seeds(120).for_each(|seed| history(spec.clone(), seed, 30));
        }
    }
}

/// Half a patch is the widest margin.
#[test]
fn views_with_a_margin_of_patches_are_those_of_brute_force() {
    for (cap, margin) in [(100, 50), (3, 50), (100, 200), (3, 200)] {
        let spec = SceneSpec { patch_margin_cm: Some(margin), ..scene(Visibility::Patches, cap) };
        seeds(250).for_each(|seed| history(spec.clone(), seed, 30));
    }
}

/// Two players walk one behind the other, 9 m apart in patches of 4 m: sometimes there is one patch
/// between them, sometimes there are two. Gives the number of times that they came into view.
fn entries_of_two_walkers(patch_margin_cm: i32) -> usize {
    let spec =
        SceneSpec { patch_margin_cm: Some(patch_margin_cm), ..scene(Visibility::Patches, 100) };
    let mut w = World::new(spec, 1);
    let range = RangeSet::NEAR.or(RangeSet::MIDDLE).or(RangeSet::FAR);
    let pair = [100, 1_000].map(|x| (w.join(Plane(0), Pos::ground(x, 100), range), x));
    let (mut entries, mut seen) = (0, false);
    for step in 0..250 {
        for (session, x) in pair.iter().filter(|_| step > 1) {
            w.walk(*session, Pos::ground(x + 15 * step, 100));
        }
        w.step();
        let sees = !w.links().is_empty();
        entries += usize::from(sees && !seen);
        seen = sees;
    }
    entries
}

#[test]
fn players_who_walk_one_behind_the_other_do_not_flicker_with_a_margin() {
    assert_eq!(entries_of_two_walkers(200), 1);
    assert!(entries_of_two_walkers(0) > 5, "without a margin this shows nothing");
}

#[test]
fn every_client_is_shown_exactly_the_entities_in_range_with_circles() {
    seeds(700).for_each(|seed| history(scene(CIRCLE, 100), seed, 30));
}

#[test]
fn view_lists_are_the_greedy_ones_with_circles_and_a_cap() {
    seeds(700).for_each(|seed| history(scene(CIRCLE, 3), seed, 30));
}

/// Many players on few patches: they find each other square by square there.
#[test]
fn view_lists_are_the_greedy_ones_in_a_dense_crowd() {
    let modes = [Visibility::Patches, CIRCLE, Visibility::All];
    for (visibility, view_margin_cm) in modes.map(|mode| [(mode, 0), (mode, 150)]).concat() {
        seeds(4).for_each(|seed| {
            let spec = SceneSpec { view_margin_cm, ..scene(visibility, 5) };
            let mut w = World::new(spec, seed);
            let mut rng = Rng::new(seed ^ 0xc0de);
            let somewhere = |rng: &mut Rng| Pos::ground(rng.range(0, 600), rng.range(0, 600));
            for _ in 0..220 {
                let at = somewhere(&mut rng);
                w.join(Plane(0), at, RangeSet::FULL);
            }
            let mut links = BTreeSet::new();
            for _ in 0..24 {
                w.step();
                let want = brute::greedy(&w.scene, &w.truth, &links);
                links = w.links();
                assert_eq!(links, want, "seed {seed} tick {}", w.tick);
                let sessions: Vec<_> = w.clients.keys().copied().collect();
                for s in sessions {
                    if rng.chance(40) {
                        w.walk(s, somewhere(&mut rng));
                    }
                }
            }
        });
    }
}

#[test]
fn with_a_margin_view_lists_are_the_greedy_ones_that_keep_old_links() {
    for visibility in [Visibility::Patches, CIRCLE, Visibility::All] {
        let spec = SceneSpec { view_margin_cm: 200, ..scene(visibility, 3) };
        seeds(300).for_each(|seed| history(spec.clone(), seed, 30));
    }
}

#[test]
fn with_visibility_all_all_players_of_a_plane_see_each_other() {
    seeds(400).for_each(|seed| history(scene(Visibility::All, 100), seed, 30));
}

#[test]
fn view_lists_are_the_greedy_ones_with_visibility_all_and_a_cap() {
    seeds(400).for_each(|seed| history(scene(Visibility::All, 4), seed, 30));
}

/// A tower of ten floors with more players on each than a list has places: each sees those of its own
/// floor, and when it climbs, those of the next one.
#[test]
fn the_floors_of_a_tower_do_not_compete_for_places() {
    let spec = SceneSpec { height_cm: Some(250), ..scene(Visibility::Patches, 8) };
    let mut w = World::new(spec, 1);
    let at = |floor: i32, n: i32| Pos { x: 1_000 + 10 * n, y: 400 * floor, z: 1_000 };
    let floors: Vec<_> = (0..10).flat_map(|floor| (0..12).map(move |n| (floor, n))).collect();
    let all: Vec<_> =
        floors.iter().map(|(floor, n)| w.join(Plane(0), at(*floor, *n), RangeSet::FULL)).collect();
    w.steps(3);
    let floors_seen = |w: &World, session: SessionId| -> Vec<i32> {
        let shown = w.clients[&session].shown.values().map(|(pos, _)| pos.y / 400);
        shown.collect()
    };
    for (session, (floor, _)) in all.iter().zip(&floors) {
        let seen = floors_seen(&w, *session);
        // Those at the ends are no neighbours of eight.
        assert!(seen.len() >= 4 && seen.iter().all(|other| other == floor), "{floor}: {seen:?}");
    }
    let climber = all[0];
    w.walk(climber, Pos { y: 400, ..at(0, 0) });
    w.steps(3);
    assert!(floors_seen(&w, climber).iter().all(|floor| *floor == 1));
    assert_eq!(w.links(), brute::greedy(&w.scene, &w.truth, &w.links()));
}

#[test]
fn a_player_without_a_client_is_seen_and_looks_for_nothing_but_players() {
    let mut w = World::new(scene(Visibility::Patches, 10), 1);
    let at = Pos::ground(1_000, 1_000);
    let session = w.join(Plane(0), at, RangeSet::FULL);
    let silent = w.spawn(Kind::PLAYER, Plane(0), at, RangeSet::FULL, None);
    let coin = w.spawn(Kind(1), Plane(0), at, RangeSet::FULL, None);
    w.steps(3);
    let client = &w.clients[&session];
    assert!(client.shown.contains_key(&silent) && client.shown.contains_key(&coin));
    let players = w.players();
    let seen = |id| &players[&id].seen;
    assert_eq!((seen(client.entity).len(), seen(silent).len()), (1, 0));
    assert!(players[&silent].sees(client.entity));
}
