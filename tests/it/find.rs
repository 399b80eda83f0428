//! Finding entities by id, by patch and by distance, against a search of all entities.

use std::collections::BTreeSet;

use crate::support::world::World;
use crate::support::{Rng, small_scene};
use purview::scene::spec::{KindSpec, LayerSpec};
use purview::scene::{EntityId, Kind, Plane, Pos, RangeSet, SceneSpec};

const SIDE: i32 = 6_400;
const PATCH: [i32; 2] = [400, 1_600];

fn world(seed: u64) -> World {
    let layer = |name: &str, patch_cm| LayerSpec::square(name, patch_cm);
    let kind = |name: &str, layer| KindSpec::new(name, layer);
    let spec = SceneSpec {
        layers: vec![layer("common", PATCH[0]), layer("huge", PATCH[1])],
        kinds: vec![kind("player", 0), kind("dragon", 1)],
        ..small_scene((1, 1), SIDE, PATCH[0])
    };
    World::new(spec, seed)
}

#[test]
fn queries_find_the_matching_entities_and_no_others() {
    for seed in 0..50 {
        let mut w = world(seed);
        let mut rng = Rng::new(seed);
        let mut somewhere = || Pos::ground(rng.range(0, SIDE), rng.range(0, SIDE));
        for i in 0..120 {
            w.spawn(Kind(i % 2), Plane(i32::from(i % 3)), somewhere(), RangeSet::FULL, None);
        }
        w.step();
        for i in 0..40 {
            let (kind, plane, at) = (Kind(i % 2), Plane(i32::from(i % 3)), somewhere());
            let radius = 50 * i32::from(i);
            let side = PATCH[usize::from(kind.0)];
            let of = |near: &dyn Fn(Pos) -> bool| -> BTreeSet<EntityId> {
                let alike = w.truth.iter().filter(|(_, t)| t.kind == kind && t.plane == plane);
                alike.filter(|(_, t)| near(t.pos)).map(|(id, _)| *id).collect()
            };
            let ids = |found: Vec<purview::scene::inspect::EntityDetails>| -> BTreeSet<EntityId> {
                let n = found.len();
                let ids: BTreeSet<_> = found.into_iter().map(|e| e.id).collect();
                assert_eq!(ids.len(), n, "an entity was found twice");
                ids
            };
            let region = &w.regions[0];
            let r2 = (i64::from(radius) * i64::from(radius)) as u64;
            let within = of(&|p| p.dist2(at) <= r2);
            assert_eq!(ids(region.within(plane, kind, at, radius)), within, "seed {seed}");
            let patch = of(&|p| (p.x / side, p.z / side) == (at.x / side, at.z / side));
            assert_eq!(ids(region.in_patch(plane, kind, at)), patch, "seed {seed}");
        }
        for (id, t) in &w.truth {
            let found = w.regions[0].find(*id).expect("the entity lives here");
            let is = (found.pos, found.kind, found.plane, found.ghost);
            assert_eq!(is, (t.pos, t.kind, t.plane, false));
        }
        assert_eq!(w.regions[0].find(EntityId(9_999)), None);
    }
}
