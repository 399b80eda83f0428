//! The spatial index: which entities stand in which patch, per plane and kind (and so per layer).
//!
//! Regions and [`crate::interest`] own grids and query them on the tick path. Patches are
//! arrays whose memory exists only where entities stand (see `runs`). Insertion, removal and a move
//! across patches are O(1). An entry carries its position, so that a range query reads contiguous
//! memory and nothing else.
//!
//! *Absent on purpose:* the index knows neither views nor regions. It is told positions and asked
//! for neighbourhoods.

mod runs;

use self::runs::Runs;
use super::{Pos, Rect};

/// An entity in a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEntry {
    /// Position along x, centimetres.
    pub x: i32,
    /// Position along z, centimetres.
    pub z: i32,
    /// The entity's slot.
    pub slot: u32,
    /// The entity's tag; see [`super::region`].
    pub tag: u32,
}

/// Where an entity stands in a [`Grid`]: the patch, and the index of its entry there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    cell: u32,
    ix: u32,
}

impl Spot {
    /// The entity is in no patch.
    pub const NONE: Spot = Spot { cell: u32::MAX, ix: 0 };
}

/// Patch coordinates inside a [`Grid`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patch {
    /// Column, from the grid's west edge.
    pub x: i32,
    /// Row, from the grid's north edge.
    pub z: i32,
}

impl Patch {
    /// Number of the ring around `self` in which `other` lies: 0 NEAR, 1 MIDDLE, 2 FAR, higher
    /// beyond.
    #[inline]
    pub fn ring(self, other: Patch) -> u32 {
        self.x.abs_diff(other.x).max(self.z.abs_diff(other.z))
    }
}

/// Most patches of a grid; a scene with more is refused and told to use smaller regions or larger
/// patches. So many take 4 MiB while they are empty.
pub const MAX_PATCHES: u64 = 1 << 24;

/// Bytes that the index of one kind on one plane takes while it is empty.
pub const fn bytes_empty(patches: u64) -> u64 {
    Runs::<Cell>::bytes_empty(patches)
}

/// Columns and rows of the patches, with these sides along x and z, that cover a rectangle.
pub fn patches_of(ground: Rect, patch_cm: [i32; 2]) -> (u64, u64) {
    let along = |from: i32, to: i32, side: i32| {
        let (from, to, side) = (i64::from(from), i64::from(to), i64::from(side.max(1)));
        let first = from.div_euclid(side) * side;
        (to - first).max(0).unsigned_abs().div_ceil(side.unsigned_abs())
    };
    let [x, z] = patch_cm;
    (along(ground.x0, ground.x1, x), along(ground.z0, ground.z1, z))
}

#[derive(Debug, Clone, Default)]
struct Cell {
    entries: Vec<IndexEntry>,
}

/// A patch grid over a rectangle of the map.
#[derive(Debug, Clone)]
pub struct Grid {
    /// Sides of a patch along x and z.
    patch_cm: [i32; 2],
    x0: i32,
    z0: i32,
    cols: i32,
    rows: i32,
    cells: Runs<Cell>,
    len: usize,
}

impl Grid {
    /// A grid of patches, with these sides along x and z, that covers `ground`. Patches start at the map's origin, so
    /// that all regions cut the map alike. At most 2^32 patches fit; a scene has at most
    /// [`MAX_PATCHES`].
    pub fn new(ground: Rect, patch_cm: [i32; 2]) -> Grid {
        let x0 = ground.x0.div_euclid(patch_cm[0]) * patch_cm[0];
        let z0 = ground.z0.div_euclid(patch_cm[1]) * patch_cm[1];
        let (cols, rows) = patches_of(ground, patch_cm);
        let cells = Runs::of((cols * rows) as usize);
        let (cols, rows) = (cols as i32, rows as i32);
        Grid { patch_cm, x0, z0, cols, rows, cells, len: 0 }
    }

    /// Number of entities.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the grid has no entity.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sides of a patch along x and z, centimetres.
    pub fn patch_cm(&self) -> [i32; 2] {
        self.patch_cm
    }

    /// Number of columns.
    pub fn cols(&self) -> i32 {
        self.cols
    }

    /// The north-west corner of a patch.
    pub fn corner_of(&self, at: Patch) -> Pos {
        let [x, z] = self.patch_cm;
        Pos::ground(self.x0 + at.x * x, self.z0 + at.z * z)
    }

    /// The patch at a position, which may lie outside the grid.
    #[inline]
    pub fn patch_of(&self, p: Pos) -> Patch {
        Patch {
            x: p.x.saturating_sub(self.x0).div_euclid(self.patch_cm[0]),
            z: p.z.saturating_sub(self.z0).div_euclid(self.patch_cm[1]),
        }
    }

    /// The least and the greatest coordinate of the patches up to `reach` rings around one, along both axes.
    #[inline]
    pub fn span(&self, around: Patch, reach: i32) -> ((i32, i32), (i32, i32)) {
        let axis = |at: i32, corner: i32, side: i32| {
            let (side, at) = (i64::from(side), i64::from(at));
            let first = i64::from(corner) + (at - i64::from(reach)) * side;
            let last = i64::from(corner) + (at + i64::from(reach) + 1) * side - 1;
            // Whatever is farther out than numbers go counts as in the outermost patch: see `patch_of`.
            let ends = (i64::from(i32::MIN), i64::from(i32::MAX));
            let (low, high) = (first - i64::from(corner), last - i64::from(corner));
            let first = if low <= ends.0 + side { ends.0 } else { first.max(ends.0) };
            let last = if high >= ends.1 - side { ends.1 } else { last.min(ends.1) };
            (first as i32, last as i32)
        };
        let [x, z] = self.patch_cm;
        (axis(around.x, self.x0, x), axis(around.z, self.z0, z))
    }

    #[inline]
    fn cell_of(&self, p: Pos) -> Option<u32> {
        let at = self.patch_of(p);
        let inside = at.x >= 0 && at.x < self.cols && at.z >= 0 && at.z < self.rows;
        inside.then(|| self.number_of(at))
    }

    /// The number of a patch of the grid, row by row.
    #[inline]
    fn number_of(&self, at: Patch) -> u32 {
        (at.z as u32).wrapping_mul(self.cols as u32).wrapping_add(at.x as u32)
    }

    /// Adds an entity. At a position outside the grid it is in no patch and no query finds it.
    pub fn insert(&mut self, slot: u32, tag: u32, p: Pos) -> Spot {
        let Some(cell) = self.cell_of(p) else { return Spot::NONE };
        self.len += 1;
        let entries = &mut self.cells.take(cell).entries;
        entries.push(IndexEntry { x: p.x, z: p.z, slot, tag });
        Spot { cell, ix: (entries.len() - 1) as u32 }
    }

    /// Removes the entity at `spot`. Returns the slot of the entity that takes the spot, if one
    /// does.
    pub fn remove(&mut self, spot: Spot) -> Option<u32> {
        let entries = &mut self.cells.get_mut(spot.cell)?.entries;
        entries.swap_remove(spot.ix as usize);
        self.len -= 1;
        let instead = entries.get(spot.ix as usize).map(|e| e.slot);
        if entries.is_empty() {
            self.cells.release(spot.cell);
        }
        instead
    }

    /// Moves the entity at `spot` to `p`. Returns its new spot and, if it left the patch, the slot
    /// of the entity that took the old spot.
    #[inline]
    pub fn relocate(&mut self, spot: Spot, slot: u32, tag: u32, p: Pos) -> (Spot, Option<u32>) {
        if self.cell_of(p) == Some(spot.cell)
            && let Some(at) = self.cells.get_mut(spot.cell)
        {
            let entry = &mut at.entries[spot.ix as usize];
            (entry.x, entry.z, entry.tag) = (p.x, p.z, tag);
            return (spot, None);
        }
        let displaced = self.remove(spot);
        (self.insert(slot, tag, p), displaced)
    }

    /// All entries, for a caller that reassigns slots.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = &mut IndexEntry> {
        self.cells.all_mut().flat_map(|cell| cell.entries.iter_mut())
    }

    /// The entries of one patch; empty outside the grid.
    pub fn patch(&self, at: Patch) -> &[IndexEntry] {
        if at.x < 0 || at.z < 0 || at.x >= self.cols || at.z >= self.rows {
            return &[];
        }
        self.cells.get(self.number_of(at)).map_or(&[], |cell| &cell.entries)
    }

    /// Calls `visit` with each non-empty patch within `reach` rings of `center`, and the ring's
    /// number.
    #[inline]
    pub fn rings(&self, center: Patch, reach: i32, mut visit: impl FnMut(u32, &[IndexEntry])) {
        self.cells_in_rings(center, reach, |ring, _, cell| visit(ring, &cell.entries));
    }

    #[inline]
    fn cells_in_rings(&self, center: Patch, reach: i32, mut visit: impl FnMut(u32, Patch, &Cell)) {
        let from = |at: i32| at.saturating_sub(reach).max(0);
        let to = |at: i32, end: i32| at.saturating_add(reach).min(end - 1);
        let (x0, x1) = (from(center.x), to(center.x, self.cols));
        let (z0, z1) = (from(center.z), to(center.z, self.rows));
        for z in z0..=z1 {
            let dz = center.z.abs_diff(z);
            self.taken_in_row(z, (x0, x1), |at, cell| {
                visit(dz.max(center.x.abs_diff(at.x)), at, cell);
            });
        }
    }

    /// Calls `visit` with the non-empty patches of a row, between two columns (inclusive).
    #[inline]
    fn taken_in_row(&self, z: i32, (x0, x1): (i32, i32), mut visit: impl FnMut(Patch, &Cell)) {
        if x0 <= x1 {
            let row = self.number_of(Patch { x: 0, z });
            self.cells.each(row + x0 as u32, row + x1 as u32, |number, cell| {
                visit(Patch { x: (number - row) as i32, z }, cell);
            });
        }
    }

    /// Calls `visit` with each non-empty patch of the rectangle `inside` that is not in the
    /// rectangle `outside`. Both are given by two corners, inclusive.
    #[inline]
    pub fn difference(
        &self,
        inside: (Patch, Patch),
        outside: Option<(Patch, Patch)>,
        mut visit: impl FnMut(Patch, &[IndexEntry]),
    ) {
        let (x0, x1) = (inside.0.x.max(0), inside.1.x.min(self.cols - 1));
        let (z0, z1) = (inside.0.z.max(0), inside.1.z.min(self.rows - 1));
        for z in z0..=z1 {
            // Columns from `gap.0` to `gap.1` are skipped.
            let gap = match outside {
                Some((from, to)) if from.z <= z && z <= to.z => (from.x, to.x),
                _ => (i32::MAX, i32::MAX),
            };
            let west = (x0, x1.min(gap.0.saturating_sub(1)));
            let east = (x0.max(gap.1.saturating_add(1)), x1);
            for columns in [west, east] {
                self.taken_in_row(z, columns, |at, cell| visit(at, &cell.entries));
            }
        }
    }

    /// How many rings around an entity's own patch a circle of `radius_cm` can touch.
    pub fn rings_of_radius(&self, radius_cm: i32) -> i32 {
        let shorter = self.patch_cm[0].min(self.patch_cm[1]);
        radius_cm.saturating_add(shorter - 1) / shorter
    }

    /// Calls `visit` with every non-empty patch.
    pub fn all(&self, mut visit: impl FnMut(Patch, &[IndexEntry])) {
        self.all_cells(|at, cell| visit(at, &cell.entries));
    }

    fn all_cells(&self, mut visit: impl FnMut(Patch, &Cell)) {
        for z in 0..self.rows {
            self.taken_in_row(z, (0, self.cols - 1), &mut visit);
        }
    }

    /// Calls `visit` with ring, entry and squared distance from `p` for each entity in the patches
    /// within `reach` rings (`None`: everywhere), no farther than `limit2`.
    #[inline]
    pub fn near(
        &self,
        p: Pos,
        reach: Option<i32>,
        limit2: u64,
        mut visit: impl FnMut(u32, &IndexEntry, u64),
    ) {
        let center = self.patch_of(p);
        let mut cell = |ring: u32, cell: &Cell| {
            for e in &cell.entries {
                let d2 = super::geo::dist2(p.x, p.z, e.x, e.z);
                if d2 <= limit2 {
                    visit(ring, e, d2);
                }
            }
        };
        match reach {
            Some(reach) => self.cells_in_rings(center, reach, |ring, _, c| cell(ring, c)),
            None => self.all_cells(|at, c| cell(center.ring(at), c)),
        }
    }
}

#[cfg(test)]
mod tests;
