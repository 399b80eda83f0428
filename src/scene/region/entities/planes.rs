//! The spatial index of a plane: a grid for each kind of entity. `positions` keeps it in step with the entities.

use crate::scene::index::Grid;
use crate::scene::views::{NO_BOND, ViewRules};
use crate::scene::{Plane, Rect, Scene};

/// The index of one plane: a grid per kind, made when the first of its kind appears.
#[derive(Debug)]
pub struct PlaneIndex {
    pub plane: Plane,
    pub grids: Vec<Option<Grid>>,
    pub(super) population: u32,
    /// How many of these are none of what the scene contains.
    pub(super) visitors: u32,
}

impl PlaneIndex {
    /// How many planes a store has an index for, with how many grids; for a test.
    #[cfg(test)]
    pub(super) fn grid_count(&self) -> usize {
        self.grids.iter().flatten().count()
    }
}

/// What a region looks at: its ground and the band around it, on the map.
pub(super) fn with_band(scene: &Scene, rect: Rect) -> Rect {
    let grown = rect.grown(scene.bonded_band_cm);
    let b = scene.map.bounds;
    Rect {
        x0: grown.x0.max(b.x0),
        z0: grown.z0.max(b.z0),
        x1: grown.x1.min(b.x1),
        z1: grown.z1.min(b.z1),
    }
}

/// The squared distance within which a pair without a bond can beat a threshold of this rank.
pub fn nearer_than(rules: &ViewRules, threshold: u64) -> u64 {
    let no_bond_at_0 = rules.rank(NO_BOND, 0, false);
    match threshold.checked_sub(no_bond_at_0) {
        // A centimetre more, since distances are rounded down.
        Some(cm) if cm < 1 << 31 => (cm + 1) * (cm + 1),
        Some(_) => u64::MAX,
        // The worst entry has a bond, or is a link within the margin of no distance at all.
        None => 0,
    }
}
