//! What regions report of their load, against what is in them.

use std::collections::BTreeMap;

use crate::support::Rng;
use crate::support::trial::{CIRCLE, scene};
use crate::support::world::World;
use purview::scene::inspect::EntityDetails;
use purview::scene::{Kind, Plane, Pos, RangeSet, Region, RegionId, SceneSpec};

/// What the ticks of a region cost, microseconds.
const TICK: (f32, f32) = (10_000.0, 25_000.0);

/// Many players and some others, after some ticks.
fn crowded(seed: u64) -> World {
    let spec = scene(CIRCLE, 5);
    let (mut w, mut rng) = (World::new(spec.clone(), seed), Rng::new(seed));
    for i in 0..120 {
        let at = Pos::ground(rng.range(0, spec.width_cm), rng.range(0, spec.depth_cm));
        match i % 4 {
            0 => _ = w.spawn(Kind(1), Plane(0), at, RangeSet::FULL, None),
            _ => _ = w.join(Plane(0), at, RangeSet::FULL),
        }
    }
    w.steps(6);
    w
}

/// Of each land the players, and how many entities are on it.
fn lands(region: &Region, own: &[EntityDetails], land: i32) -> BTreeMap<(i32, i32), (u32, u32)> {
    let rect = region.inspect(None).rect;
    let mut lands: BTreeMap<(i32, i32), (u32, u32)> = BTreeMap::new();
    for entity in own {
        let x = entity.pos.x.clamp(rect.x0, rect.x1 - 1) / land;
        let z = entity.pos.z.clamp(rect.z0, rect.z1 - 1) / land;
        let counts = lands.entry((z, x)).or_default();
        *counts = (counts.0 + u32::from(entity.kind == Kind::PLAYER), counts.1 + 1);
    }
    lands
}

#[test]
fn the_cost_of_a_tick_is_shared_out_among_lands_and_ghosts() {
    let (mut ghosts_seen, mut pairs_seen) = (0, 0);
    for seed in 0..10 {
        let w = crowded(seed);
        for region in &w.regions {
            let (report, all) = (region.load(TICK, true), region.inspect(None).entities);
            assert_eq!((report.tick_us, report.tick_us_p99), TICK);
            let (ghosts, own): (Vec<_>, Vec<_>) = all.into_iter().partition(|e| e.ghost);
            let told = report.lands.as_ref().expect("by lands");
            let counted: BTreeMap<_, _> = lands(region, &own, w.scene.spec.land_cm);
            let said: BTreeMap<_, _> = told.iter().map(|l| ((l.z, l.x), l.players)).collect();
            assert_eq!(said.len(), told.len(), "each land once");
            assert!(said.iter().eq(counted.iter().map(|(at, (players, _))| (at, players))));
            let players: u32 = said.values().sum();
            assert_eq!(report.players, players);
            let weight: f32 = told.iter().map(|land| land.weight_us).sum();
            // Of what the tick costs ghosts have a share.
            match ghosts.is_empty() {
                true => assert!((weight - TICK.0).abs() < 1.0, "{weight}"),
                false => assert!(weight < TICK.0 && weight > 0.1 * TICK.0, "{weight}"),
            }
            for land in told {
                assert!(land.weight_us > 0.0, "{land:?}");
                assert!(land.near_us.iter().all(|near| *near <= land.weight_us), "{land:?}");
            }
            for near in &report.neighbours {
                let its = ghosts.iter().filter(|ghost| ghost.owner == near.region);
                assert_eq!(near.ghosts as usize, its.clone().count());
                let links = w.links();
                let is_its = |id| ghosts.iter().any(|g| g.id == id && g.owner == near.region);
                let is_own = |id| own.iter().any(|e| e.id == id);
                let crosses =
                    |(a, b): &(_, _)| is_own(*a) && is_its(*b) || is_own(*b) && is_its(*a);
                assert_eq!(near.pairs as usize, links.iter().filter(|p| crosses(p)).count());
                (ghosts_seen, pairs_seen) = (ghosts_seen + near.ghosts, pairs_seen + near.pairs);
            }
            let mut others: Vec<RegionId> = ghosts.iter().map(|ghost| ghost.owner).collect();
            others.retain(|id| report.neighbours.iter().all(|near| near.region != *id));
            assert!(others.is_empty(), "{others:?}");
        }
    }
    assert!(ghosts_seen > 100 && pairs_seen > 100, "{ghosts_seen} ghosts, {pairs_seen} pairs");
}

#[test]
fn entities_near_the_border_of_a_land_count_as_near() {
    let (land_cm, region_lands_x, region_lands_z) = (3_200, 1, 1);
    let spec = SceneSpec { land_cm, region_lands_x, region_lands_z, ..scene(CIRCLE, 5) };
    let mut w = World::new(spec.clone(), 1);
    let part = w.scene.border_band_cm() % spec.land_cm;
    assert!(part > 0 && part < spec.land_cm / 2, "{part}");
    // One near its western border, one just beyond, one at its southern border.
    for (x, z) in [(0, part), (part, part), (spec.land_cm / 2, spec.land_cm - 1)] {
        w.join(Plane(0), Pos::ground(x, z), RangeSet::FULL);
    }
    w.steps(3);
    let region = &w.regions[0];
    assert_eq!(region.load(TICK, false).lands, None);
    let report = region.load(TICK, true);
    let [land] = &report.lands.expect("by lands")[..] else { panic!("one land") };
    assert_eq!((land.x, land.z, land.players), (0, 0, 3));
    let counts = land.near_us.map(|near| (near / land.weight_us * 3.0).round());
    assert_eq!(counts, [1.0, 0.0, 0.0, 1.0]);
}
