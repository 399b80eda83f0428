//! The layout changes while all players walk: regions are split, merged, created and given up,
//! which no client may notice.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::support::histories::{self, SideBySide, Sum, asks_for_resync, empty_batch};
use crate::support::seeds;
use crate::support::trial::{CIRCLE, Trial, scene};
use crate::support::world::{Weather, World};
use purview::scene::layout::{LayoutError, PlaneGroup};
use purview::scene::messages::{Input, LogicEvent};
use purview::scene::region::{Commands, GameLogic, NotProposed};
use purview::scene::{
    EntityId, Epoch, Plane, Pos, RangeSet, Region, RegionId, SceneSpec, Tick, Visibility,
};

fn every_seed(spec: &SceneSpec, most: u64, go: impl Fn(&mut Trial)) -> Sum {
    histories::every_seed("remap", spec, seeds(most), go)
}

/// All players walk, teleport, join and leave, and every few ticks the layout changes. Every tick
/// is checked against brute force.
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
    let sum = every_seed(spec, most, |t| changing(t, 60));
    sum.shows(|s| s.changes > most * 2 && s.called_off > most / 4);
}

#[test]
fn layout_changes_are_invisible_with_patches() {
    trials(&scene(Visibility::Patches, 100), 100);
}

#[test]
fn layout_changes_are_invisible_with_patches_and_a_cap() {
    trials(&scene(Visibility::Patches, 3), 100);
}

#[test]
fn layout_changes_are_invisible_with_a_margin_of_patches() {
    trials(&SceneSpec { patch_margin_cm: Some(100), ..scene(Visibility::Patches, 100) }, 50);
}

#[test]
fn layout_changes_are_invisible_with_circles() {
    trials(&scene(CIRCLE, 100), 100);
}

#[test]
fn layout_changes_are_invisible_with_circles_and_a_cap() {
    trials(&scene(CIRCLE, 3), 100);
}

#[test]
fn plane_groups_have_their_own_regions() {
    for groups in [2, 3] {
        trials(&SceneSpec { plane_groups: groups, ..scene(Visibility::Patches, 3) }, 50);
    }
}

/// Regions miss ticks, batches are lost and messages are late while the layout changes.
#[test]
fn after_faults_the_state_is_as_if_the_layout_had_never_changed() {
    let sum = every_seed(&scene(Visibility::Patches, 3), 80, |t| {
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
            t.w.steps(30);
        }
        t.storm(10);
    });
    sum.shows(|s| s.changes > 100);
}

/// Two players walk side by side while regions are split and merged under them: a frame in every
/// tick, every input in its tick, and neither is told that the other left.
#[test]
fn players_are_shown_without_a_gap_during_layout_changes() {
    for seed in 0..20 {
        let mut w = World::new(scene(Visibility::Patches, 60), seed);
        let mut pair = SideBySide::join(&mut w, 4_000, 4_000);
        w.steps(3);
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
fn a_region_given_up_ends_when_no_message_can_need_it_any_more() {
    let mut w = World::new(scene(Visibility::Patches, 60), 1);
    let a = w.join(Plane(0), Pos::ground(4_000, 4_000), RangeSet::FULL);
    w.steps(3);
    let layout = w.scene.map.layout().scale(1, 1).unwrap();
    assert!(w.remap(&layout, true));
    w.steps(20);
    assert_eq!(w.scene.map.regions.len(), 1);
    let home = w.scene.map.regions[0].id;
    assert_eq!(w.clients[&a].region, home);
    assert_eq!(w.mapping.buried, 0);
    w.steps(120);
    assert_eq!(w.mapping.buried, 8);
    w.walk(a, Pos::ground(9_000, 9_000));
    w.step();
    assert_eq!(w.clients[&a].ack, w.clients[&a].seq);
}

/// Logic that has something to do, and counts its calls.
struct Works(Arc<Work>);

#[derive(Default)]
struct Work {
    waits: AtomicBool,
    calls: AtomicU64,
}

impl GameLogic for Works {
    fn tick(&mut self, _: &Region, _: &[LogicEvent], _: &mut Commands) {
        self.0.calls.fetch_add(1, Relaxed);
    }

    fn is_at_rest(&self) -> bool {
        !self.0.waits.load(Relaxed)
    }
}

#[test]
fn a_region_given_up_goes_on_until_its_logic_has_nothing_to_do_but_not_for_ever() {
    for ends_work in [true, false] {
        let mut w = World::new(scene(Visibility::Patches, 60), 1);
        let layout = w.scene.map.layout().scale(1, 1).unwrap();
        let home = layout.plots[0].id;
        let work = Arc::new(Work { waits: true.into(), ..Work::default() });
        let busy = w.regions.iter_mut().find(|region| region.id() != home).unwrap();
        busy.set_logic(Box::new(Works(Arc::clone(&work))), Box::new(|| Some(EntityId(1))));
        w.steps(3);
        assert!(w.remap(&layout, true));
        w.steps(200);
        assert_eq!(w.mapping.buried, 7, "all but the busy one");
        let before = work.calls.load(Relaxed);
        w.steps(100);
        assert_eq!((work.calls.load(Relaxed), w.mapping.buried), (before + 100, 7));
        if ends_work {
            work.waits.store(false, Relaxed);
            w.step();
        } else {
            w.steps(2_800);
        }
        assert_eq!(w.mapping.buried, 8);
    }
}

/// Regions die, also during a layout change and also those to be given up, and are restored from
/// checkpoints.
#[test]
fn no_player_is_lost_when_regions_die_during_layout_changes() {
    let sum = every_seed(&scene(Visibility::Patches, 60), 60, |t| {
        t.remaps = 60;
        t.deaths(90, true);
        assert!(t.w.kills.recovered > 0);
    });
    sum.shows(|s| s.changes > 5);
}

#[test]
fn no_region_goes_on_before_the_decision() {
    let mut w = World::new(scene(Visibility::Patches, 60), 1);
    w.join(Plane(0), Pos::ground(4_000, 4_000), RangeSet::FULL);
    w.steps(3);
    let old = w.scene.clone();
    let new = Arc::new(old.with_layout(&old.map.layout().split(RegionId(4)).unwrap()).unwrap());
    let after = Tick(w.tick.0 + 2);
    w.regions.push(Region::unborn(old.clone(), RegionId(9)));
    for region in &mut w.regions {
        assert_eq!(region.propose(new.clone(), after), Ok(()));
        assert_eq!(
            region.propose(new.clone(), after),
            Ok(()),
            "a duplicate proposal changes nothing"
        );
        let other = region.propose(new.clone(), after.next());
        assert_eq!(other, Err(NotProposed::Busy(2)));
    }
    w.steps(8);
    let ticks: Vec<_> = w.regions.iter().map(Region::current_tick).collect();
    assert_eq!(ticks, [after; 10]);
    // A decision about another layout has no effect.
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

/// One region never receives the decision: the others go on without it, as without a silent
/// neighbour.
#[test]
fn a_region_that_dies_during_a_change_delays_the_others_only_briefly() {
    let mut w = World::new(scene(Visibility::Patches, 60), 1);
    let a = w.join(Plane(0), Pos::ground(4_000, 4_000), RangeSet::FULL);
    w.steps(3);
    w.stopped = Some(RegionId(8));
    let layout = w.scene.map.layout().split(RegionId(4)).unwrap();
    assert!(w.remap(&layout, true));
    w.steps(60);
    assert!(w.regions[4].current_tick() == w.tick && w.regions[9].current_tick() == w.tick);
    w.walk(a, Pos::ground(4_100, 4_000));
    w.steps(12);
    assert_eq!(w.clients[&a].ack, w.clients[&a].seq);
}

/// A region restored with the new layout goes on before the others have switched. A new neighbour
/// does not receive its first batch, which holds everything. The neighbour must request it, also if
/// it migrates meanwhile.
#[test]
fn missed_batches_of_a_new_neighbour_that_is_ahead_are_requested() {
    let w = World::new(scene(Visibility::Patches, 60), 1);
    let (old, after) = (w.scene.clone(), Tick(5));
    let layout = old.map.layout().split(RegionId(4)).unwrap();
    let new = Arc::new(old.with_layout(&layout).unwrap());
    let (me, ahead) = (RegionId(9), new.map.neighbours(RegionId(9), new.bonded_band_cm)[0].id);
    let mut fx = Vec::new();
    let mut region = Region::unborn(old.clone(), me);
    region.propose(new.clone(), after).unwrap();
    region.decide(2, true, &mut fx);
    // No other region takes part.
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
    assert!(
        asks(&mut region, batch(one, after, false)),
        "the first batch that arrived was not complete"
    );
    let snapshot = region.freeze().expect("no tick is open");
    let mut region = Region::restore(new, me, Epoch(2), snapshot, &mut fx).unwrap();
    assert!(asks(&mut region, batch(two, one, false)), "the request was not answered");
    assert!(!asks(&mut region, batch(three, two, true)), "the batch is complete");
    assert!(!asks(&mut region, batch(three.next(), three, false)));
}

#[test]
fn an_impossible_layout_is_refused() {
    let s = World::new(scene(Visibility::Patches, 60), 1).scene;
    let now = s.map.layout();
    assert_eq!(now.split(RegionId(77)), Err(LayoutError::NoSuchRegion(RegionId(77))));
    assert_eq!(
        now.merge(RegionId(0), RegionId(4)),
        Err(LayoutError::NoRectangle(RegionId(0), RegionId(4)))
    );
    assert!(matches!(now.scale(7, 1), Err(LayoutError::TooFine { .. })));
    // A land is narrower than the band that neighbours must mirror.
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
