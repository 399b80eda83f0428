//! The region map changes while everybody walks on: regions are cut, joined, made and given up, and nobody
//! is to notice.

use crate::support::histories::{self, SideBySide, asks_for_resync, empty_batch};
use crate::support::trial::{CIRCLE, Trial, scene};
use crate::support::world::{Weather, World};
use crate::support::{seeds, seeds_are_given};
use purview::scene::effects::Input;
use purview::scene::map::{LayoutError, PlaneGroup};
use purview::scene::region::NotProposed;
use purview::scene::{Epoch, Plane, Pos, RangeSet, Region, RegionId, SceneSpec, Tick, Visibility};

/// How often the map changed, was not changed after all, and regions were given up, in all trials.
#[derive(Default)]
struct Seen {
    changes: u64,
    called_off: u64,
    buried: u64,
}

fn every_seed(spec: &SceneSpec, most: u64, go: impl Fn(&mut Trial)) -> Seen {
    let mut seen = Seen::default();
    histories::every_seed("remap", spec, seeds(most), go, |t| {
        seen.changes += t.w.mapping.done;
        seen.called_off += t.w.mapping.called_off;
        seen.buried += t.w.mapping.buried;
    });
    seen
}

/// Everybody walks, jumps, comes and goes, and every few ticks the map changes; every tick is held against
/// brute force.
fn changing(t: &mut Trial, ticks: usize) {
    for _ in 0..ticks {
        for _ in 0..t.rng.below(5) {
            t.disturb();
        }
        if t.rng.chance(30) && t.w.map_is_still() {
            let comes = !t.rng.chance(20);
            if let Some(layout) = t.w.some_layout() {
                t.w.remap(&layout, comes);
            }
        }
        t.check();
    }
    t.rest();
}

fn trials(spec: &SceneSpec, most: u64) {
    let seen = every_seed(spec, most, |t| changing(t, 60));
    if !seeds_are_given() {
        assert!(seen.changes > most * 2, "the map changed {} times only", seen.changes);
        assert!(seen.called_off > most / 4, "{} were called off", seen.called_off);
    }
}

#[test]
fn by_patches_nobody_notices_that_the_map_changes() {
    trials(&scene(Visibility::Patches, 100), 100);
}

#[test]
fn by_patches_with_a_cap_nobody_notices_that_the_map_changes() {
    trials(&scene(Visibility::Patches, 3), 100);
}

#[test]
fn by_circle_nobody_notices_that_the_map_changes() {
    trials(&scene(CIRCLE, 100), 100);
}

#[test]
fn by_circle_with_a_cap_nobody_notices_that_the_map_changes() {
    trials(&scene(CIRCLE, 3), 100);
}

#[test]
fn planes_in_groups_have_regions_of_their_own() {
    for groups in [2, 3] {
        trials(&SceneSpec { plane_groups: groups, ..scene(Visibility::Patches, 3) }, 50);
    }
}

/// Regions miss ticks, batches are lost and messages are late while the map changes.
#[test]
fn after_a_storm_all_is_as_if_the_map_had_always_been_so() {
    let seen = every_seed(&scene(Visibility::Patches, 3), 80, |t| {
        for _ in 0..6 {
            t.w.weather = Weather { skip: 15, lose: 10, delay: 20, mute: 0 };
            if let Some(layout) = t.w.some_layout() {
                t.w.remap(&layout, true);
            }
            for _ in 0..8 {
                t.disturb();
                t.w.step();
            }
            t.w.weather = Weather::default();
            (0..30).for_each(|_| t.w.step());
        }
        t.storm(10);
    });
    assert!(seen.changes > 100 || seeds_are_given(), "{} changes", seen.changes);
}

/// Two walk side by side while regions are cut and joined under them: a frame in every tick, every input
/// in its tick, and neither is told that the other left.
#[test]
fn who_stands_still_or_walks_is_shown_without_a_gap() {
    for seed in 0..20 {
        let mut w = World::new(scene(Visibility::Patches, 60), seed);
        let mut pair = SideBySide::join(&mut w, 4_000, 4_000);
        (0..3).for_each(|_| w.step());
        for i in 0..120 {
            pair.walk(&mut w, i, 4_000 + (i % 40) * 40);
            if i % 10 == 0
                && let Some(layout) = w.some_layout()
            {
                w.remap(&layout, true);
            }
            pair.step(&mut w);
        }
        assert!(w.mapping.done >= 5, "{} changes", w.mapping.done);
        pair.check(&w);
    }
}

#[test]
fn a_region_that_was_given_up_ends_when_nobody_can_need_it_any_more() {
    let mut w = World::new(scene(Visibility::Patches, 60), 1);
    let a = w.join(Plane(0), Pos::ground(4_000, 4_000), RangeSet::FULL);
    (0..3).for_each(|_| w.step());
    let layout = w.scene.map.layout().scale(1, 1).unwrap();
    assert!(w.remap(&layout, true));
    (0..20).for_each(|_| w.step());
    assert_eq!(w.scene.map.regions.len(), 1);
    let home = w.scene.map.regions[0].id;
    assert_eq!(w.clients[&a].region, home);
    assert_eq!(w.mapping.buried, 0);
    (0..120).for_each(|_| w.step());
    assert_eq!(w.mapping.buried, 8);
    w.walk(a, Pos::ground(9_000, 9_000));
    w.step();
    assert_eq!(w.clients[&a].ack, w.clients[&a].seq);
}

/// Regions die, also while the map changes and also those that are to be given up, and go on from checkpoints.
#[test]
fn nobody_is_lost_when_regions_die_while_the_map_changes() {
    let seen = every_seed(&scene(Visibility::Patches, 60), 60, |t| {
        t.remaps = 60;
        t.deaths(90, true);
        assert!(t.w.kills.recovered > 0);
    });
    assert!(seen.changes > 5 || seeds_are_given(), "{} changes", seen.changes);
}

#[test]
fn nobody_goes_on_before_it_is_decided() {
    let mut w = World::new(scene(Visibility::Patches, 60), 1);
    w.join(Plane(0), Pos::ground(4_000, 4_000), RangeSet::FULL);
    (0..3).for_each(|_| w.step());
    let old = w.scene.clone();
    let new = std::sync::Arc::new(
        old.with_layout(&old.map.layout().split(RegionId(4)).unwrap()).unwrap(),
    );
    let after = Tick(w.tick.0 + 2);
    w.regions.push(Region::unborn(old.clone(), RegionId(9)));
    for region in &mut w.regions {
        assert_eq!(region.propose(new.clone(), after), Ok(()));
        assert_eq!(region.propose(new.clone(), after), Ok(()), "to be told twice changes nothing");
        let other = region.propose(new.clone(), after.next());
        assert_eq!(other, Err(NotProposed::Busy(2)));
    }
    (0..8).for_each(|_| w.step());
    let ticks: Vec<_> = w.regions.iter().map(Region::current_tick).collect();
    assert_eq!(ticks, [after; 10]);
    // A decision about something else is none.
    let mut fx = Vec::new();
    w.regions[0].decide(3, true, &mut fx);
    w.regions[0].decide(1, false, &mut fx);
    assert!(fx.is_empty() && w.regions[0].is_remapping());
    for region in &mut w.regions {
        region.decide(2, false, &mut fx);
        assert!(!region.is_remapping());
    }
    w.step();
    assert!(w.regions.iter().all(|r| r.current_tick() == w.tick && r.map_version() == 1));
    let late = w.regions[0].propose(new.clone(), after);
    assert_eq!(late, Err(NotProposed::TooLate { now: w.tick, after }));
    let skips = w.regions[0].propose(old, Tick(w.tick.0 + 9));
    assert_eq!(skips, Err(NotProposed::NotNext { known: 1, proposed: 1 }));
}

/// One region never hears of the decision: the others go on without it, as without a silent one.
#[test]
fn one_that_dies_meanwhile_holds_nobody_up_for_long() {
    let mut w = World::new(scene(Visibility::Patches, 60), 1);
    let a = w.join(Plane(0), Pos::ground(4_000, 4_000), RangeSet::FULL);
    (0..3).for_each(|_| w.step());
    w.stopped = Some(RegionId(8));
    let layout = w.scene.map.layout().split(RegionId(4)).unwrap();
    assert!(w.remap(&layout, true));
    (0..60).for_each(|_| w.step());
    assert!(w.regions[4].current_tick() == w.tick && w.regions[9].current_tick() == w.tick);
    w.walk(a, Pos::ground(4_100, 4_000));
    (0..12).for_each(|_| w.step());
    assert_eq!(w.clients[&a].ack, w.clients[&a].seq);
}

/// A region that goes on from a checkpoint by the new map does so before the others have changed over: what it says
/// first, which is everything, a new neighbour does not hear. That one asks for it, also where it moves meanwhile.
#[test]
fn a_new_neighbour_that_was_ahead_is_asked_for_what_it_has() {
    let w = World::new(scene(Visibility::Patches, 60), 1);
    let (old, after) = (w.scene.clone(), Tick(5));
    let layout = old.map.layout().split(RegionId(4)).unwrap();
    let new = std::sync::Arc::new(old.with_layout(&layout).unwrap());
    let (me, ahead) = (RegionId(9), new.map.neighbours(RegionId(9), new.bonded_band_cm)[0].id);
    let mut fx = Vec::new();
    let mut region = Region::unborn(old.clone(), me);
    region.propose(new.clone(), after).unwrap();
    region.decide(2, true, &mut fx);
    // Nobody else takes part.
    let mut due = (6..).map(Tick);
    while region.is_remapping() {
        region.tick(due.next().unwrap(), &mut fx);
    }
    assert_eq!(region.map_version(), 2);

    let now = region.current_tick();
    let batch = |tick: Tick, prev: Tick, full: bool| empty_batch(ahead, tick, prev, full);
    let asks = |region: &mut Region, input: Input| {
        let mut fx = Vec::new();
        region.handle(input, &mut fx);
        asks_for_resync(&fx, me, ahead)
    };
    let (one, two, three) = (now.next(), now.next().next(), now.next().next().next());
    assert!(asks(&mut region, batch(one, after, false)), "the first that it heard was not whole");
    let snapshot = region.freeze().expect("nothing is under way");
    let mut region = Region::restore(new, me, Epoch(2), snapshot, &mut fx).unwrap();
    assert!(asks(&mut region, batch(two, one, false)), "it was not answered");
    assert!(!asks(&mut region, batch(three, two, true)), "that is everything");
    assert!(!asks(&mut region, batch(three.next(), three, false)));
}

#[test]
fn a_map_that_cannot_be_is_refused() {
    let s = World::new(scene(Visibility::Patches, 60), 1).scene;
    let now = s.map.layout();
    assert_eq!(now.split(RegionId(77)), Err(LayoutError::NoSuchRegion(RegionId(77))));
    assert_eq!(
        now.merge(RegionId(0), RegionId(4)),
        Err(LayoutError::NoRectangle(RegionId(0), RegionId(4)))
    );
    assert!(matches!(now.scale(7, 1), Err(LayoutError::TooFine { .. })));
    // A land is narrower than what neighbours must see of each other.
    let narrow = now.scale(6, 6).unwrap();
    let spec = SceneSpec { handoff_margin_cm: 300, ..scene(Visibility::Patches, 60) };
    let wide = World::new(spec, 1).scene;
    let why = wide.with_layout(&narrow).unwrap_err().to_string();
    assert!(why.contains("the smallest region must be at least as wide as"), "{why}");
    let mut hole = now.clone();
    hole.plots.pop();
    assert!(matches!(s.with_layout(&hole), Err(LayoutError::NotWhole { .. })));
    let mut twice = now.clone();
    twice.plots[0].x1 += 1;
    assert!(matches!(s.with_layout(&twice), Err(LayoutError::NotWhole { .. })));
    let mut planes = now.clone();
    planes.plots[0].group = PlaneGroup(1);
    assert!(matches!(s.with_layout(&planes), Err(LayoutError::NotWhole { .. })));
}
