//! The region map: which region a place belongs to. Versioned data, never arithmetic on coordinates.

use serde::{Deserialize, Serialize};

use super::{Epoch, Pos, Rect, RegionId, spec::SceneSpec};

/// One region of a scene: a rectangular block of lands with one authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionEntry {
    /// The region's name.
    pub id: RegionId,
    /// Its ground, in centimetres; whole lands.
    pub rect: Rect,
    /// Grows with every change of its owner.
    pub epoch: Epoch,
}

/// The regions of a scene, which together cover its map without overlap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionMap {
    /// Grows with every change of the map.
    pub version: u64,
    /// The regions.
    pub regions: Vec<RegionEntry>,
    /// The map's extent.
    pub bounds: Rect,
    land_cm: i32,
    lands_x: i32,
    /// For each land, row by row, the index of its region.
    land_owner: Vec<u16>,
}

impl RegionMap {
    /// Cuts a scene into blocks of lands as its spec says; ids count up from `first`. For a spec
    /// whose sizes and counts [`super::Scene::new`] has checked.
    pub(super) fn grid(spec: &SceneSpec, first: RegionId) -> RegionMap {
        let bounds = Rect { x0: 0, z0: 0, x1: spec.width_cm, z1: spec.depth_cm };
        let (lands_x, lands_z) = (spec.width_cm / spec.land_cm, spec.depth_cm / spec.land_cm);
        // A region wider than the map is as wide as the map.
        let (block_x, block_z) =
            (spec.region_lands_x.min(lands_x), spec.region_lands_z.min(lands_z));
        let blocks_x = (lands_x + block_x - 1) / block_x;
        let blocks_z = (lands_z + block_z - 1) / block_z;
        let start = |block: i32, lands: i32| block * lands * spec.land_cm;
        let end = |block: i32, lands: i32, all: i32| ((block + 1) * lands).min(all) * spec.land_cm;
        let mut regions = Vec::with_capacity((blocks_x * blocks_z) as usize);
        for bz in 0..blocks_z {
            for bx in 0..blocks_x {
                let rect = Rect {
                    x0: start(bx, block_x),
                    z0: start(bz, block_z),
                    x1: end(bx, block_x, lands_x),
                    z1: end(bz, block_z, lands_z),
                };
                let id = RegionId(first.0 + regions.len() as u32);
                regions.push(RegionEntry { id, rect, epoch: Epoch(1) });
            }
        }
        let mut land_owner = Vec::with_capacity(lands_x as usize * lands_z as usize);
        for lz in 0..lands_z {
            let row = (lz / block_z) * blocks_x;
            land_owner.extend((0..lands_x).map(|lx| (row + lx / block_x) as u16));
        }
        RegionMap { version: 1, regions, bounds, land_cm: spec.land_cm, lands_x, land_owner }
    }

    /// The region that owns the ground at `p`; `None` outside the map.
    pub fn at(&self, p: Pos) -> Option<&RegionEntry> {
        if !self.bounds.contains(p) {
            return None;
        }
        let land = (p.z / self.land_cm) * self.lands_x + p.x / self.land_cm;
        self.land_owner.get(land as usize).and_then(|&i| self.regions.get(usize::from(i)))
    }

    /// The region named `id`, if it is one of this map's.
    pub fn get(&self, id: RegionId) -> Option<&RegionEntry> {
        self.regions.iter().find(|r| r.id == id)
    }

    /// The regions whose ground, grown by `band_cm`, meets that of region `id`: those with which it
    /// exchanges ghosts. All eight neighbours, corners too.
    pub fn neighbours(&self, id: RegionId, band_cm: i32) -> Vec<RegionEntry> {
        let Some(me) = self.get(id) else { return Vec::new() };
        let grown = me.rect.grown(band_cm.max(1));
        self.regions.iter().filter(|r| r.id != id && r.rect.intersects(&grown)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn map(width_cm: i32, depth_cm: i32, rx: i32, rz: i32) -> RegionMap {
        let spec = SceneSpec {
            width_cm,
            depth_cm,
            land_cm: 1_600,
            region_lands_x: rx,
            region_lands_z: rz,
            ..SceneSpec::default()
        };
        RegionMap::grid(&spec, RegionId(10))
    }

    #[test]
    fn every_place_has_exactly_one_region() {
        let map = map(1_600 * 5, 1_600 * 3, 2, 2);
        assert_eq!(map.regions.len(), 6);
        for x in (0..8_000).step_by(50) {
            for z in (0..4_800).step_by(50) {
                let p = Pos::ground(x, z);
                let holders: Vec<_> = map.regions.iter().filter(|r| r.rect.contains(p)).collect();
                assert_eq!(holders.len(), 1);
                assert_eq!(map.at(p).unwrap().id, holders[0].id);
            }
        }
        assert!(map.at(Pos::ground(-1, 0)).is_none());
        assert!(map.at(Pos::ground(8_000, 0)).is_none());
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
            (lands_x, lands_z, rx, rz) in (1i32..9, 1i32..9, 1i32..5, 1i32..5),
            band_cm in 0i32..4_000,
        ) {
            let map = map(1_600 * lands_x, 1_600 * lands_z, rx, rz);
            for a in &map.regions {
                let near = map.neighbours(a.id, band_cm);
                for b in map.regions.iter().filter(|b| b.id != a.id) {
                    // The gap between two rectangles along each axis, 0 when they touch.
                    let gap_x = (b.rect.x0 - a.rect.x1).max(a.rect.x0 - b.rect.x1);
                    let gap_z = (b.rect.z0 - a.rect.z1).max(a.rect.z0 - b.rect.z1);
                    let reaches = gap_x.max(gap_z) < band_cm.max(1);
                    prop_assert_eq!(near.contains(b), reaches);
                    prop_assert_eq!(map.neighbours(b.id, band_cm).contains(a), reaches);
                }
            }
        }
    }
}
