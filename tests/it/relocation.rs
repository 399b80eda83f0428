//! Regions that migrate while players walk, which no client may notice. The histories are those of
//! `borders`, checked against the same brute force with the same bounds. In addition regions are
//! frozen, encoded, and restored under a higher epoch, at steps drawn from the seed.

use crate::support::histories;
use crate::support::seeds;
use crate::support::trial::{CIRCLE, Trial, scene};
use crate::support::world::World;
use purview::scene::messages::{Effect, Notice};
use purview::scene::{Epoch, Plane, Pos, RangeSet, Region, RegionId, SceneSpec, Seq, Visibility};

fn every_seed(spec: &SceneSpec, most: u64, restless: u64, go: impl Fn(&mut Trial)) {
    let go = |t: &mut Trial| {
        t.w.restless = restless;
        go(t);
        assert_eq!(t.w.resyncs, 0, "a client received a full resync");
    };
    let sum = histories::every_seed("relocation", spec, seeds(most), go);
    sum.shows(|s| s.handoffs > 20 && s.relocations > 200);
}

fn trials(spec: &SceneSpec, most: u64) {
    every_seed(spec, most, 3, |t| t.run(40));
}

#[test]
fn migrations_are_invisible_with_patches() {
    trials(&scene(Visibility::Patches, 100), 30);
}

#[test]
fn migrations_are_invisible_with_patches_and_a_cap() {
    trials(&scene(Visibility::Patches, 3), 30);
}

#[test]
fn migrations_are_invisible_with_a_margin_of_patches() {
    trials(&SceneSpec { patch_margin_cm: Some(100), ..scene(Visibility::Patches, 3) }, 20);
}

#[test]
fn migrations_are_invisible_with_circles_and_a_cap() {
    trials(&scene(CIRCLE, 3), 30);
}

#[test]
fn migrations_are_invisible_with_a_margin() {
    trials(&SceneSpec { view_margin_cm: 200, ..scene(CIRCLE, 3) }, 20);
}

#[test]
fn after_faults_and_migrations_the_state_is_as_without_them() {
    every_seed(&scene(Visibility::Patches, 3), 30, 4, |t| {
        t.storm(40);
        // Lost batches are outside the scope of this test.
        t.w.resyncs = 0;
    });
}

#[test]
fn sessions_learn_the_applied_inputs_under_the_next_epoch() {
    let mut w = World::new(scene(Visibility::Patches, 60), 1);
    let a = w.join(Plane(0), Pos::ground(3_000, 500), RangeSet::FULL);
    w.steps(2);
    w.walk(a, Pos::ground(2_990, 500));
    w.step();
    w.walk(a, Pos::ground(2_980, 500));
    let at = &mut w.regions[0];
    let empty = Region::new(w.scene.clone(), RegionId(0)).expect("a region of the scene");
    let snapshot = std::mem::replace(at, empty).freeze().expect("a closed tick");
    let mut fx = Vec::new();
    let next = Region::restore(w.scene.clone(), RegionId(0), Epoch(2), snapshot, &mut fx);
    assert!(next.is_ok());
    let [Effect::Notice(session, Notice::Route(route))] = &fx[..] else { panic!("{fx:?}") };
    let told = (*session, route.epoch, route.last_applied, route.arrived);
    assert_eq!(told, (a, Epoch(2), Seq(1), false));
}
