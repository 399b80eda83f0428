//! Regions that move while players walk: nobody may notice. The histories are those of `borders`, held
//! against the same brute force with the same bounds; all that is added is that regions are frozen, travel
//! as bytes, and go on under a higher epoch, at steps drawn by the seed.

mod support;

use purview::scene::{SceneSpec, Visibility};
use support::trial::{CIRCLE, Trial, scene};
use support::{say_how_to_replay, seeds, seeds_are_given};

fn every_seed(spec: &SceneSpec, most: u64, restless: u64, go: impl Fn(&mut Trial)) {
    let (mut handoffs, mut moved) = (0, 0);
    for seed in seeds(most) {
        let mut t = Trial::new(spec.clone(), seed);
        t.w.restless = restless;
        let run = std::panic::AssertUnwindSafe(|| go(&mut t));
        if let Err(why) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed} failed at tick {}", t.w.tick);
            say_how_to_replay("relocation", seed);
            std::panic::resume_unwind(why);
        }
        assert_eq!(t.w.resyncs, 0, "a client was told everything anew");
        handoffs += t.w.handoffs;
        moved += t.w.relocations;
    }
    println!("{handoffs} handoffs, {moved} relocations");
    let enough = handoffs > 20 && moved > 200;
    assert!(enough || seeds_are_given(), "{handoffs} handoffs, {moved} relocations: few");
}

fn trials(spec: &SceneSpec, most: u64) {
    every_seed(spec, most, 3, |t| t.run(40));
}

#[test]
fn by_patches_nobody_notices_that_regions_move() {
    trials(&scene(Visibility::Patches, 100), 30);
}

#[test]
fn by_patches_with_a_cap_nobody_notices_that_regions_move() {
    trials(&scene(Visibility::Patches, 3), 30);
}

#[test]
fn by_circle_with_a_cap_nobody_notices_that_regions_move() {
    trials(&scene(CIRCLE, 3), 30);
}

#[test]
fn with_a_margin_nobody_notices_that_regions_move() {
    trials(&SceneSpec { view_margin_cm: 200, ..scene(CIRCLE, 3) }, 20);
}

#[test]
fn in_a_storm_regions_move_and_afterwards_all_is_as_if_it_had_never_been() {
    every_seed(&scene(Visibility::Patches, 3), 15, 2, |t| {
        t.storm(40);
        // Lost batches are no business of this test.
        t.w.resyncs = 0;
    });
}
