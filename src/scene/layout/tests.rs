use proptest::prelude::*;

use super::*;
use crate::scene::spec::LayerSpec;
use crate::scene::{Plane, Pos, Rect, RegionId, Scene, SceneId, SceneSpec};

fn map(width_cm: i32, depth_cm: i32, rx: i32, rz: i32) -> RegionMap {
    let spec = SceneSpec {
        width_cm,
        depth_cm,
        land_cm: 1_600,
        region_lands_x: rx,
        region_lands_z: rz,
        ..SceneSpec::default()
    };
    RegionMap::grid(SceneId(0), &spec.cut(), RegionId(10))
}

/// The map's edge cuts the last column of lands at 350 cm, and the last row at 1,250 cm.
#[test]
fn every_position_has_exactly_one_region() {
    let map = map(1_600 * 4 + 350, 1_600 * 2 + 1_250, 2, 2);
    assert_eq!(map.regions.len(), 6);
    assert_eq!(map.bounds, Rect { x0: 0, z0: 0, x1: 6_750, z1: 4_450 });
    for x in (0..6_750).step_by(50) {
        for z in (0..4_450).step_by(50) {
            let p = Pos::ground(x, z);
            let holders: Vec<_> = map.regions.iter().filter(|r| r.rect.contains(p)).collect();
            assert_eq!(holders.len(), 1);
            assert_eq!(map.at(Plane(0), p).unwrap().id, holders[0].id);
        }
    }
    for outside in [(-1, 0), (0, -1), (6_750, 0), (0, 4_450), (7_999, 4_799)] {
        assert!(map.at(Plane(0), Pos::ground(outside.0, outside.1)).is_none());
    }
}

#[test]
fn a_region_of_cut_lands_counts_as_wide_as_the_lands() {
    let narrow = map(1_600 * 4 + 1, 1_600 * 2, 2, 2);
    let rects: Vec<_> = narrow.regions.iter().map(|r| r.rect).collect();
    assert_eq!(rects[2], Rect { x0: 6_400, z0: 0, x1: 6_401, z1: 3_200 });
    assert_eq!(narrow.smallest_side_cm(), 1_600);
    assert_eq!(map(99, 99, 5, 5).smallest_side_cm(), 1_600);
    assert_eq!(map(1_600 * 4, 1_600 * 4, 2, 3).smallest_side_cm(), 1_600);
    assert_eq!(map(1_600 * 4, 1_600 * 6, 2, 3).smallest_side_cm(), 3_200);
}

#[test]
fn the_middle_of_a_grid_has_eight_neighbours_and_a_corner_three() {
    let map = map(1_600 * 3, 1_600 * 3, 1, 1);
    assert_eq!(map.neighbours(RegionId(14), 1_600).len(), 8);
    assert_eq!(map.neighbours(RegionId(10), 1_600).len(), 3);
}

proptest! {
    #[test]
    fn regions_are_neighbours_of_each_other_exactly_when_the_band_reaches(
        (width_cm, depth_cm, rx, rz) in (100i32..14_400, 100i32..14_400, 1i32..5, 1i32..5),
        band_cm in 0i32..4_000,
    ) {
        let map = map(width_cm, depth_cm, rx, rz);
        for a in &map.regions {
            let near = map.neighbours(a.id, band_cm);
            for b in map.regions.iter().filter(|b| b.id != a.id) {
                // The gap between two rectangles along each axis; 0 if they touch.
                let gap_x = (b.rect.x0 - a.rect.x1).max(a.rect.x0 - b.rect.x1);
                let gap_z = (b.rect.z0 - a.rect.z1).max(a.rect.z0 - b.rect.z1);
                let reaches = gap_x.max(gap_z) < band_cm.max(1);
                prop_assert_eq!(near.contains(b), reaches);
                prop_assert_eq!(map.neighbours(b.id, band_cm).contains(a), reaches);
            }
        }
    }
}

/// A scene of 8 x 8 lands whose regions may be as small as one land. The map's edge cuts `cut_cm` off the last
/// ones along each axis.
fn open_scene(groups: u16, cut_cm: (i32, i32)) -> Scene {
    let spec = SceneSpec {
        width_cm: 1_600 * 8 - cut_cm.0,
        depth_cm: 1_600 * 8 - cut_cm.1,
        land_cm: 1_600,
        region_lands_x: 4,
        region_lands_z: 4,
        layers: vec![LayerSpec::square("common", 400)],
        handoff_margin_cm: 100,
        plane_groups: groups,
        spawn_x_cm: 0,
        spawn_z_cm: 0,
        ..SceneSpec::default()
    };
    Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap()
}

#[test]
fn the_larger_part_keeps_the_id() {
    let now = open_scene(1, (0, 0)).map.layout();
    let scaled = now.scale(1, 1).unwrap();
    assert_eq!(scaled.plots.len(), 1);
    assert_eq!(scaled.plots[0].id, RegionId(0));
    let back = scaled.scale(2, 2).unwrap();
    let ids: Vec<u32> = back.plots.iter().map(|p| p.id.0).collect();
    assert_eq!(ids, [0, 1_000_000, 1_000_001, 1_000_002]);
    assert_eq!(back.next, RegionId(1_000_003));
    let cut = now.split(RegionId(3)).unwrap();
    assert_eq!(cut.most_of(cut.plot(RegionId(1_000_000)).unwrap()), Some(RegionId(1_000_000)));
    assert_eq!(now.most_of(cut.plot(RegionId(1_000_000)).unwrap()), Some(RegionId(3)));
}

#[test]
fn a_region_is_cut_at_the_border_that_is_named_and_gives_lands_over_a_common_side() {
    let now = open_scene(1, (0, 0)).map.layout();
    let sides = |layout: &Layout, id: u32| {
        let p = layout.plot(RegionId(id)).unwrap();
        [p.x0, p.z0, p.x1, p.z1]
    };
    let cut = now.split_at(RegionId(0), Axis::X, 1, true).unwrap();
    assert_eq!((sides(&cut, 1_000_000), sides(&cut, 0)), ([0, 0, 1, 4], [1, 0, 4, 4]));
    let cut = now.split_at(RegionId(3), Axis::Z, 7, false).unwrap();
    assert_eq!((sides(&cut, 3), sides(&cut, 1_000_000)), ([4, 4, 8, 7], [4, 7, 8, 8]));
    for land in [-1, 0, 4, 5] {
        let none = LayoutError::NoBorder { id: RegionId(0), axis: Axis::Z, land };
        assert_eq!(now.split_at(RegionId(0), Axis::Z, land, false), Err(none));
    }
    let shifted = now.shift(RegionId(1), RegionId(0), 3).unwrap();
    assert_eq!((sides(&shifted, 0), sides(&shifted, 1)), ([0, 0, 7, 4], [7, 0, 8, 4]));
    let shifted = now.shift(RegionId(1), RegionId(3), 1).unwrap();
    assert_eq!((sides(&shifted, 1), sides(&shifted, 3)), ([4, 0, 8, 3], [4, 3, 8, 8]));
    for (from, to, lands) in [(0, 3, 1), (0, 1, 4), (0, 1, 0), (0, 1, -1), (0, 0, 1)] {
        let (from, to) = (RegionId(from), RegionId(to));
        let refused = Err(LayoutError::NoRectangle(from, to));
        assert_eq!(now.shift(from, to, lands), refused);
    }
}

#[test]
fn planes_of_other_groups_have_other_regions() {
    let scene = open_scene(3, (0, 0));
    let here = Pos::ground(100, 100);
    let ids: Vec<_> = (-4..8).map(|p| scene.map.at(Plane(p), here).unwrap().id.0).collect();
    assert_eq!(ids, [8, 0, 4, 8, 0, 4, 8, 0, 4, 8, 0, 4]);
    assert!(scene.map.neighbours(RegionId(0), 1_600).iter().all(|r| r.id.0 < 4));
    let merged = scene.map.layout().merge(RegionId(0), RegionId(4));
    assert_eq!(merged, Err(LayoutError::OtherPlanes(RegionId(0), RegionId(4))));
}

proptest! {
    #[test]
    fn after_any_changes_every_position_has_exactly_one_region(
        (groups, cut_cm) in (1u16..4, (0i32..1_600, 0i32..1_600)),
        changes in prop::collection::vec((0u8..5, 0usize..40, 0usize..40, 1i32..9, 1i32..9), 0..20),
    ) {
        let mut scene = open_scene(groups, cut_cm);
        for (what, a, b, columns, rows) in changes {
            let now = scene.map.layout();
            let id = |i: usize| now.plots[i % now.plots.len()].id;
            let next = match what {
                0 => now.split(id(a)),
                1 => now.merge(id(a), id(b)),
                2 => now.split_at(id(a), [Axis::X, Axis::Z][b % 2], columns, rows > 4),
                3 => now.shift(id(a), id(b), columns),
                _ => now.scale(columns, rows),
            };
            let Ok(next) = next else { continue };
            prop_assert_eq!(next.version, now.version + 1);
            let known = |id: RegionId| now.plot(id).is_some();
            prop_assert!(next.plots.iter().all(|p| known(p.id) || p.id >= now.next));
            prop_assert!(next.plots.iter().all(|p| p.id < next.next));
            let Ok(new) = scene.with_layout(&next) else { continue };
            prop_assert_eq!(new.map.layout(), next);
            scene = new;
        }
        let map = &scene.map;
        let (x1, z1) = (12_800 - cut_cm.0, 12_800 - cut_cm.1);
        prop_assert_eq!(map.bounds, Rect { x0: 0, z0: 0, x1, z1 });
        let within = |r: &RegionEntry| r.rect.x1 <= x1 && r.rect.z1 <= z1;
        prop_assert!(map.regions.iter().all(within));
        for plane in 0..i32::from(groups) {
            for (x, z) in (0..8).flat_map(|x| (0..8).map(move |z| (x * 1_600, z * 1_600))) {
                let p = Pos::ground(x, z);
                let group = map.group_of(Plane(plane));
                let of = map.regions.iter().filter(|r| r.group == group && r.rect.contains(p));
                let holders: Vec<_> = of.map(|r| r.id).collect();
                prop_assert_eq!(holders, [map.at(Plane(plane), p).unwrap().id]);
            }
        }
    }
}
