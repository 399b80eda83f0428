//! The region map: which region owns a position. Versioned data, never arithmetic on coordinates,
//! so that regions can be split, merged and moved.
//!
//! The scene's specification builds it; regions, the directory and the cluster look owners up. Two
//! regions must never own the same land of a plane group.

use super::plots::{Layout, LayoutError, MAX_NEIGHBOURS, PlaneGroup, Plot};
use crate::scene::mutants::{self, Mutant};
use crate::scene::{Epoch, Plane, Pos, Rect, RegionId, SceneId};

/// Region ids from the configuration are below this. Regions created while a cluster runs have ids
/// from here on, 10,000 per scene.
pub const FIRST_NEW_REGION: u32 = 1_000_000;

/// How a map is cut into lands, and lands into regions; lengths in centimetres. The map's edge may cut
/// the last column and the last row of lands.
#[derive(Debug, Clone, Copy)]
pub(in crate::scene) struct Cut {
    pub(in crate::scene) width_cm: i32,
    pub(in crate::scene) depth_cm: i32,
    pub(in crate::scene) land_cm: i32,
    /// Lands side by side in a region.
    pub(in crate::scene) region_lands_x: i32,
    /// Lands from north to south in a region.
    pub(in crate::scene) region_lands_z: i32,
    /// Groups of planes, at least 1.
    pub(in crate::scene) groups: u16,
}

impl Cut {
    /// Lands along x and along z, those cut by the map's edge included.
    pub(in crate::scene) fn lands(&self) -> (i32, i32) {
        (lands_along(self.width_cm, self.land_cm), lands_along(self.depth_cm, self.land_cm))
    }

    fn bounds(&self) -> Rect {
        Rect { x0: 0, z0: 0, x1: self.width_cm, z1: self.depth_cm }
    }

    /// The ground of lands `x0..x1`, `z0..z1` within the map.
    fn ground(&self, (x0, z0): (i32, i32), (x1, z1): (i32, i32)) -> Rect {
        let cm = |lands: i32, most: i32| lands.saturating_mul(self.land_cm).min(most);
        let (width, depth) = (self.width_cm, self.depth_cm);
        Rect { x0: cm(x0, width), z0: cm(z0, depth), x1: cm(x1, width), z1: cm(z1, depth) }
    }
}

/// How many lands of `land_cm` cover a side of `side_cm`, both at least 1 cm: the map's edge may cut the
/// last one.
pub fn lands_along(side_cm: i32, land_cm: i32) -> i32 {
    let lands = side_cm.unsigned_abs().div_ceil(land_cm.unsigned_abs().max(1));
    i32::try_from(lands).unwrap_or(i32::MAX)
}

/// One region of a scene: a rectangular block of lands, for a group of planes, with one authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionEntry {
    /// The region's id.
    pub id: RegionId,
    /// The rectangle, centimetres: whole lands, or up to the map's edge.
    pub rect: Rect,
    /// The group of planes that it owns.
    pub group: PlaneGroup,
    /// Grows with every change of owner.
    pub epoch: Epoch,
}

/// The regions of a scene. Together they cover the map exactly once per group of planes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionMap {
    /// Grows with every change of the map.
    pub version: u64,
    /// The regions.
    pub regions: Vec<RegionEntry>,
    /// The map's extent.
    pub bounds: Rect,
    /// Id of the next region created while the scene runs.
    next: RegionId,
    land_cm: i32,
    lands_x: i32,
    groups: u16,
    /// For each group, and in it for each land, row by row: the index of its region.
    land_owner: Vec<u16>,
}

impl RegionMap {
    /// Cuts a scene into blocks of lands as `cut` says; ids count up from `first`. For sizes
    /// and counts that [`crate::scene::Scene::new`] has checked.
    pub(in crate::scene) fn grid(scene: SceneId, cut: &Cut, first: RegionId) -> RegionMap {
        let (bounds, (lands_x, lands_z)) = (cut.bounds(), cut.lands());
        // A region wider than the map is as wide as the map.
        let (block_x, block_z) = (cut.region_lands_x.min(lands_x), cut.region_lands_z.min(lands_z));
        let blocks_x = (lands_x + block_x - 1) / block_x;
        let blocks_z = (lands_z + block_z - 1) / block_z;
        let groups = cut.groups;
        let per_group = (blocks_x * blocks_z) as usize;
        let mut regions = Vec::with_capacity(per_group * usize::from(groups));
        let mut land_owner = Vec::with_capacity(lands_x as usize * lands_z as usize);
        for group in 0..groups {
            let before = per_group * usize::from(group);
            for (bz, bx) in (0..blocks_z).flat_map(|bz| (0..blocks_x).map(move |bx| (bz, bx))) {
                let (from, to) =
                    ((bx * block_x, bz * block_z), ((bx + 1) * block_x, (bz + 1) * block_z));
                let rect = cut.ground(from, to);
                let id = RegionId(first.0 + regions.len() as u32);
                let group = PlaneGroup(group);
                regions.push(RegionEntry { id, rect, group, epoch: Epoch(1) });
            }
            for lz in 0..lands_z {
                let row = before as i32 + (lz / block_z) * blocks_x;
                land_owner.extend((0..lands_x).map(|lx| (row + lx / block_x) as u16));
            }
        }
        let next = RegionId(FIRST_NEW_REGION + 10_000 * u32::from(scene.0));
        let (version, land_cm) = (1, cut.land_cm);
        RegionMap { version, regions, bounds, next, land_cm, lands_x, groups, land_owner }
    }

    /// The map of a legal scene, cut so.
    ///
    /// # Errors
    /// The plots do not cover the map once.
    pub(in crate::scene) fn of(cut: &Cut, layout: &Layout) -> Result<RegionMap, LayoutError> {
        let (lands_x, lands_z) = cut.lands();
        let groups = cut.groups;
        let whole = |what: String| LayoutError::NotWhole { lands_x, lands_z, groups, what };
        let per_group = lands_x as usize * lands_z as usize;
        let mut land_owner = vec![u16::MAX; per_group * usize::from(groups)];
        let mut regions: Vec<RegionEntry> = Vec::with_capacity(layout.plots.len());
        for (i, p) in layout.plots.iter().enumerate() {
            let inside = 0 <= p.x0 && p.x0 < p.x1 && p.x1 <= lands_x;
            let inside = inside && 0 <= p.z0 && p.z0 < p.z1 && p.z1 <= lands_z;
            if !inside || p.group.0 >= groups {
                return Err(whole(format!("region {} lies outside", p.id)));
            }
            if i >= usize::from(u16::MAX) || regions.iter().any(|r| r.id == p.id) {
                return Err(whole(format!("region {} is there twice, or one too many", p.id)));
            }
            for (x, z) in (p.z0..p.z1).flat_map(|z| (p.x0..p.x1).map(move |x| (x, z))) {
                let land = per_group * usize::from(p.group.0) + (z * lands_x + x) as usize;
                if land_owner[land] != u16::MAX {
                    return Err(whole(format!(
                        "region {} overlaps another at land {x}, {z}",
                        p.id
                    )));
                }
                land_owner[land] = i as u16;
            }
            let rect = cut.ground((p.x0, p.z0), (p.x1, p.z1));
            regions.push(RegionEntry { id: p.id, rect, group: p.group, epoch: Epoch(1) });
        }
        if land_owner.contains(&u16::MAX) {
            return Err(whole("some land belongs to no region".into()));
        }
        let bounds = cut.bounds();
        let (version, next) = (layout.version, layout.next);
        let land_cm = cut.land_cm;
        Ok(RegionMap { version, next, regions, bounds, land_cm, lands_x, groups, land_owner })
    }

    /// Whether regions can tell their neighbours apart.
    ///
    /// # Errors
    /// One has more than [`MAX_NEIGHBOURS`].
    pub(in crate::scene) fn check_neighbours(&self, band_cm: i32) -> Result<(), LayoutError> {
        for r in &self.regions {
            let found = self.neighbours(r.id, band_cm).len();
            if found > MAX_NEIGHBOURS {
                return Err(LayoutError::Neighbours { id: r.id, found });
            }
        }
        Ok(())
    }

    /// The map as data.
    pub fn layout(&self) -> Layout {
        let plot = |r: &RegionEntry| {
            let lands = |cm: i32| lands_along(cm, self.land_cm);
            let Rect { x0, z0, x1, z1 } = r.rect;
            let (x0, z0, x1, z1) = (lands(x0), lands(z0), lands(x1), lands(z1));
            Plot { id: r.id, group: r.group, x0, z0, x1, z1 }
        };
        let plots = self.regions.iter().map(plot).collect();
        Layout { version: self.version, next: self.next, plots }
    }

    /// The shorter side of the smallest region, centimetres. A land that the map's edge cuts counts as
    /// whole: there is nothing beyond the edge that the region would have to keep apart.
    pub(in crate::scene) fn smallest_side_cm(&self) -> i32 {
        let plots = self.layout().plots;
        let lands = plots.iter().map(|plot| (plot.x1 - plot.x0).min(plot.z1 - plot.z0));
        lands.min().unwrap_or(0).saturating_mul(self.land_cm)
    }

    /// The group of a plane.
    pub fn group_of(&self, plane: Plane) -> PlaneGroup {
        PlaneGroup(plane.0.rem_euclid(i32::from(self.groups)) as u16)
    }

    /// The region that owns position `p` in a plane; `None` outside the map.
    pub fn at(&self, plane: Plane, p: Pos) -> Option<&RegionEntry> {
        if !self.bounds.contains(p) {
            return None;
        }
        let group = usize::from(self.group_of(plane).0);
        let lands = self.land_owner.len() / usize::from(self.groups);
        let land = (p.z / self.land_cm) * self.lands_x + p.x / self.land_cm;
        let land = group * lands + land as usize;
        self.land_owner.get(land).and_then(|&i| self.regions.get(usize::from(i)))
    }

    /// Whether each group has one region, so that no pair of entities in range is split between
    /// two.
    pub fn has_no_borders(&self) -> bool {
        self.regions.len() <= usize::from(self.groups)
    }

    /// The region with an id; `None` if the map has no such region.
    pub fn get(&self, id: RegionId) -> Option<&RegionEntry> {
        self.regions.iter().find(|r| r.id == id)
    }

    /// The regions of a group whose rectangle intersects `rect` (centimetres).
    pub fn meeting(&self, group: PlaneGroup, rect: Rect) -> impl Iterator<Item = RegionId> {
        let meets = move |r: &&RegionEntry| r.group == group && r.rect.intersects(&rect);
        self.regions.iter().filter(meets).map(|r| r.id)
    }

    /// The regions whose rectangle, grown by `band_cm`, intersects that of region `id`: those with
    /// which it exchanges ghosts. All eight neighbours, corners included.
    pub fn neighbours(&self, id: RegionId, band_cm: i32) -> Vec<RegionEntry> {
        let Some(me) = self.get(id) else { return Vec::new() };
        let grown = me.rect.grown(band_cm.max(1));
        let near = |r: &&RegionEntry| {
            let apart = |a0: i32, a1: i32, b0: i32, b1: i32| a1 <= b0 || b1 <= a0;
            let (a, b) = (me.rect, r.rect);
            let corner = apart(a.x0, a.x1, b.x0, b.x1) && apart(a.z0, a.z1, b.z0, b.z1);
            let known = !(corner && mutants::has(Mutant::NoCorners));
            r.group == me.group && r.rect.intersects(&grown) && known
        };
        self.regions.iter().filter(|r| r.id != id).filter(near).cloned().collect()
    }
}
