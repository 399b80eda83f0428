//! A dense, fast crowd over a corner where four regions meet, with more players in range than the
//! cap: the hardest case for negotiation across borders.

use std::collections::BTreeMap;

use crate::support::Rng;
use crate::support::brute::{self, Spells};
use crate::support::small_scene;
use crate::support::world::World;
use purview::scene::{Plane, Pos, RangeSet, SceneSpec, Visibility};

const SIDE: i32 = 6_400;

fn scene(cap: usize) -> SceneSpec {
    SceneSpec {
        visibility: Visibility::Patches,
        view_cap: cap,
        view_margin_cm: SceneSpec::default().view_margin_cm,
        handoff_margin_cm: 50,
        top_speed_cm_s: 6_000,
        ..small_scene((SIDE / 3_200, SIDE / 3_200), 3_200, 400)
    }
}

fn walk(players: usize, cap: usize, ticks: usize, seed: u64) -> (u32, u32, u64) {
    let mut w = World::new(scene(cap), seed);
    let mut rng = Rng::new(seed);
    let near = |rng: &mut Rng| {
        let along = |rng: &mut Rng| SIDE / 2 + rng.range(-1_500, 1_500);
        Pos::ground(along(rng), along(rng))
    };
    let mut goals = BTreeMap::new();
    for _ in 0..players {
        let at = near(&mut rng);
        let s = w.join(Plane(0), at, RangeSet::FULL);
        goals.insert(s, near(&mut rng));
    }
    w.steps(6);
    let (mut odd, mut blocking) = (Spells::default(), Spells::default());
    for _ in 0..ticks {
        for (s, goal) in &mut goals {
            let at = w.truth[&w.clients[s].entity].pos;
            let (dx, dz) = (f64::from(goal.x - at.x), f64::from(goal.z - at.z));
            let left = dx.hypot(dz);
            if left < 300.0 {
                *goal = near(&mut rng);
                continue;
            }
            let to =
                Pos::ground(at.x + (dx / left * 280.0) as i32, at.z + (dz / left * 280.0) as i32);
            w.walk(*s, to);
        }
        w.step();
        let (links, one_sided) = w.links_and_odd();
        odd.see(one_sided);
        blocking.see(brute::blocking(&w.scene, &w.truth, &links).into_iter().collect());
    }
    (odd.longest, blocking.longest, w.handoffs)
}

#[test]
fn a_capped_crowd_over_a_corner_disagrees_for_at_most_a_tick() {
    for seed in 0..4 {
        let (odd, blocking, handoffs) = walk(120, 20, 60, seed);
        assert!(handoffs > 500, "seed {seed}: only {handoffs} handoffs");
        assert!(odd <= 1, "seed {seed}: one-sided for {odd} ticks");
        assert!(blocking <= 2, "seed {seed}: a blocking pair for {blocking} ticks");
    }
}
