//! Regions that run across the ticks at which 32 bits end: half way, where a difference changes its
//! sign, and at the end, where numbers restart. Clients' views are checked against brute force. A
//! small history suffices, because a mistake there affects all entities.

use crate::support::trial::{CIRCLE, Trial, scene};
use purview::scene::{SceneSpec, Tick, Visibility};

/// The first ticks that do not fit into 31, 32 and 33 bits, and one where 32 bits end for the third
/// time.
const AROUND: [u64; 4] = [1 << 31, 1 << 32, 1 << 33, 3 << 32];

fn across(spec: &SceneSpec, seed: u64, go: impl Fn(&mut Trial)) {
    for around in AROUND {
        let mut t = Trial::new(spec.clone(), seed);
        t.w.tick = Tick(around - 25);
        go(&mut t);
        assert!(t.w.tick > Tick(around + 5), "the history ends before {around}: {}", t.w.tick);
        assert!(t.w.handoffs > 0, "no entity was handed over around {around}");
    }
}

#[test]
fn views_and_frames_are_right_across_the_wrap() {
    for (visibility, cap) in [(Visibility::Patches, 100), (Visibility::Patches, 3), (CIRCLE, 5)] {
        across(&scene(visibility, cap), 11, |t| t.run(50));
    }
}

/// Snapshots carry the stamps.
#[test]
fn migrating_regions_are_right_across_the_wrap() {
    across(&scene(Visibility::Patches, 4), 12, |t| {
        t.w.restless = 5;
        t.run(50);
    });
}

/// Ghosts of a dead owner expire, and its successor's replace them.
#[test]
fn restored_regions_are_right_across_the_wrap() {
    across(&scene(Visibility::Patches, 4), 13, |t| {
        t.deaths(50, true);
        t.rest();
    });
}
