//! The index: which entities stand in which patch, per plane and kind (and so per layer).
//!
//! Patches are dense arrays; insertion, removal and a move across patches are O(1). An entry carries
//! the position, so that a scan of a neighbourhood reads memory in a row and nothing else.
//!
//! *Absent on purpose:* the index knows neither views nor regions; it is told positions and asked for
//! neighbourhoods.

use super::{Pos, Rect};

/// An entity in a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Position along x, centimetres.
    pub x: i32,
    /// Position along z, centimetres.
    pub z: i32,
    /// The entity's slot.
    pub slot: u32,
    /// Its tag; see [`super::region`].
    pub tag: u32,
}

/// Where an entity stands in a [`Grid`]: which patch, and which of its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    cell: u32,
    ix: u32,
}

impl Spot {
    /// In no patch.
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
    /// Number of the ring around `self` in which `other` lies: 0 NEAR, 1 MIDDLE, 2 FAR, more beyond.
    #[inline]
    pub fn ring(self, other: Patch) -> u32 {
        self.x.abs_diff(other.x).max(self.z.abs_diff(other.z))
    }
}

/// A patch grid over a rectangle of the map.
#[derive(Debug, Clone)]
pub struct Grid {
    patch_cm: i32,
    x0: i32,
    z0: i32,
    cols: i32,
    rows: i32,
    cells: Vec<Vec<Entry>>,
    len: usize,
}

impl Grid {
    /// A grid of patches of `patch_cm` that covers `ground`. Patches begin at the map's origin, so
    /// that every region cuts the map alike.
    pub fn new(ground: Rect, patch_cm: i32) -> Grid {
        let x0 = ground.x0.div_euclid(patch_cm) * patch_cm;
        let z0 = ground.z0.div_euclid(patch_cm) * patch_cm;
        let cols = (ground.x1 - x0 + patch_cm - 1) / patch_cm;
        let rows = (ground.z1 - z0 + patch_cm - 1) / patch_cm;
        let cells = vec![Vec::new(); (cols * rows) as usize];
        Grid { patch_cm, x0, z0, cols, rows, cells, len: 0 }
    }

    /// How many entities it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Side of a patch, centimetres.
    pub fn patch_cm(&self) -> i32 {
        self.patch_cm
    }

    /// How many patches a row has.
    pub fn cols(&self) -> i32 {
        self.cols
    }

    /// The north-west corner of a patch.
    pub fn corner_of(&self, at: Patch) -> Pos {
        Pos::ground(self.x0 + at.x * self.patch_cm, self.z0 + at.z * self.patch_cm)
    }

    /// The patch of a place, which may lie outside the grid.
    #[inline]
    pub fn patch_of(&self, p: Pos) -> Patch {
        Patch {
            x: p.x.saturating_sub(self.x0).div_euclid(self.patch_cm),
            z: p.z.saturating_sub(self.z0).div_euclid(self.patch_cm),
        }
    }

    #[inline]
    fn cell_of(&self, p: Pos) -> Option<u32> {
        let at = self.patch_of(p);
        let inside = at.x >= 0 && at.x < self.cols && at.z >= 0 && at.z < self.rows;
        inside.then(|| (at.z * self.cols + at.x) as u32)
    }

    /// Adds an entity; a place outside the grid is in no patch and found by nobody.
    pub fn insert(&mut self, slot: u32, tag: u32, p: Pos) -> Spot {
        let Some(cell) = self.cell_of(p) else { return Spot::NONE };
        let entries = &mut self.cells[cell as usize];
        entries.push(Entry { x: p.x, z: p.z, slot, tag });
        self.len += 1;
        Spot { cell, ix: (entries.len() - 1) as u32 }
    }

    /// Removes what stands at `spot`. Returns the slot of the entity that now stands at that very
    /// spot, if another took the place.
    pub fn remove(&mut self, spot: Spot) -> Option<u32> {
        let entries = self.cells.get_mut(spot.cell as usize)?;
        entries.swap_remove(spot.ix as usize);
        self.len -= 1;
        entries.get(spot.ix as usize).map(|e| e.slot)
    }

    /// Moves what stands at `spot` to `p`. Returns its new spot and, when it left the patch, the
    /// slot of the entity that took its old spot.
    #[inline]
    pub fn relocate(&mut self, spot: Spot, slot: u32, tag: u32, p: Pos) -> (Spot, Option<u32>) {
        if self.cell_of(p) == Some(spot.cell) {
            let entry = &mut self.cells[spot.cell as usize][spot.ix as usize];
            (entry.x, entry.z, entry.tag) = (p.x, p.z, tag);
            return (spot, None);
        }
        let displaced = self.remove(spot);
        (self.insert(slot, tag, p), displaced)
    }

    /// Every entry, for whoever gives out slots anew.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.cells.iter_mut().flatten()
    }

    /// Gives what stands at `spot` another tag.
    #[inline]
    pub fn set_tag(&mut self, spot: Spot, tag: u32) {
        let entry =
            self.cells.get_mut(spot.cell as usize).and_then(|c| c.get_mut(spot.ix as usize));
        if let Some(entry) = entry {
            entry.tag = tag;
        }
    }

    /// The entries of one patch; none outside the grid.
    pub fn patch(&self, at: Patch) -> &[Entry] {
        if at.x < 0 || at.z < 0 || at.x >= self.cols || at.z >= self.rows {
            return &[];
        }
        &self.cells[(at.z * self.cols + at.x) as usize]
    }

    /// Calls `visit` with each patch within `reach` rings of `center` and the ring's number.
    #[inline]
    pub fn rings(&self, center: Patch, reach: i32, mut visit: impl FnMut(u32, &[Entry])) {
        let from = |at: i32| at.saturating_sub(reach).max(0);
        let to = |at: i32, end: i32| at.saturating_add(reach).min(end - 1);
        let (x0, x1) = (from(center.x), to(center.x, self.cols));
        let (z0, z1) = (from(center.z), to(center.z, self.rows));
        for z in z0..=z1 {
            let dz = center.z.abs_diff(z);
            for x in x0..=x1 {
                let entries = &self.cells[(z * self.cols + x) as usize];
                if !entries.is_empty() {
                    visit(dz.max(center.x.abs_diff(x)), entries);
                }
            }
        }
    }

    /// Calls `visit` with each patch of the rectangle `inside` that is not in the rectangle `outside`
    /// and holds anything. Both are given by two corners that belong to them.
    #[inline]
    pub fn difference(
        &self,
        inside: (Patch, Patch),
        outside: Option<(Patch, Patch)>,
        mut visit: impl FnMut(Patch, &[Entry]),
    ) {
        let (x0, x1) = (inside.0.x.max(0), inside.1.x.min(self.cols - 1));
        let (z0, z1) = (inside.0.z.max(0), inside.1.z.min(self.rows - 1));
        for z in z0..=z1 {
            // Columns from `gap.0` to `gap.1` are left out.
            let gap = match outside {
                Some((from, to)) if from.z <= z && z <= to.z => (from.x, to.x),
                _ => (i32::MAX, i32::MAX),
            };
            let mut x = x0;
            while x <= x1 {
                if x >= gap.0 && x <= gap.1 {
                    x = gap.1 + 1;
                    continue;
                }
                let entries = &self.cells[(z * self.cols + x) as usize];
                if !entries.is_empty() {
                    visit(Patch { x, z }, entries);
                }
                x += 1;
            }
        }
    }

    /// How many rings of patches around one's own a circle of `radius_cm` can touch.
    pub fn rings_of_radius(&self, radius_cm: i32) -> i32 {
        radius_cm.saturating_add(self.patch_cm - 1) / self.patch_cm
    }

    /// Calls `visit` with every patch that holds anything.
    pub fn all(&self, mut visit: impl FnMut(Patch, &[Entry])) {
        for (i, entries) in self.cells.iter().enumerate().filter(|(_, e)| !e.is_empty()) {
            let at = Patch { x: i as i32 % self.cols, z: i as i32 / self.cols };
            visit(at, entries);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const GROUND: Rect = Rect { x0: 150, z0: 0, x1: 900, z1: 640 };

    fn place() -> impl Strategy<Value = Pos> {
        let along = || prop_oneof![9 => -300i32..1_300, 1 => Just(i32::MIN), 1 => Just(i32::MAX)];
        (along(), along()).prop_map(|(x, z)| Pos::ground(x, z))
    }

    /// What a place's patch is, straight from the rule; `None` outside the ground.
    fn patch(p: Pos, cm: i32) -> Option<(i32, i32)> {
        let (x0, z0) = (GROUND.x0 / cm * cm, GROUND.z0 / cm * cm);
        let (x1, z1) = ((GROUND.x1 + cm - 1) / cm * cm, (GROUND.z1 + cm - 1) / cm * cm);
        let inside = p.x >= x0 && p.x < x1 && p.z >= z0 && p.z < z1;
        inside.then(|| ((p.x - x0) / cm, (p.z - z0) / cm))
    }

    proptest! {
        #[test]
        fn any_history_finds_who_a_plain_map_finds(
            cm in prop::sample::select(vec![50, 100, 160]),
            history in prop::collection::vec((0u32..24, 0u32..9, place()), 0..200),
            (center, reach) in (place(), 0i32..9),
        ) {
            let mut grid = Grid::new(GROUND, cm);
            let mut spots: BTreeMap<u32, (Spot, u32, Pos)> = BTreeMap::new();
            for (slot, tag, p) in history {
                let (displaced, old) = match spots.get(&slot).copied() {
                    None => {
                        spots.insert(slot, (grid.insert(slot, tag, p), tag, p));
                        (None, Spot::NONE)
                    }
                    Some((spot, ..)) if tag == 0 => {
                        spots.remove(&slot);
                        (grid.remove(spot), spot)
                    }
                    Some((spot, ..)) => {
                        let (new, displaced) = grid.relocate(spot, slot, tag, p);
                        spots.insert(slot, (new, tag, p));
                        (displaced, spot)
                    }
                };
                if let Some(other) = displaced {
                    spots.get_mut(&other).unwrap().0 = old;
                }
                let inside = spots.values().filter(|(.., p)| patch(*p, cm).is_some()).count();
                prop_assert_eq!(grid.len(), inside);
            }
            let mut all = Vec::new();
            grid.all(|_, entries| all.extend(entries.iter().map(|e| (e.slot, e.tag, e.x, e.z))));
            all.sort_unstable();
            let here = spots.iter().filter(|(_, (.., p))| patch(*p, cm).is_some());
            let want: Vec<_> = here.clone().map(|(s, (_, tag, p))| (*s, *tag, p.x, p.z)).collect();
            prop_assert_eq!(all, want);
            let at = grid.patch_of(center);
            let mut found = Vec::new();
            grid.rings(at, reach, |ring, entries| {
                found.extend(entries.iter().map(|e| (e.slot, ring)));
            });
            found.sort_unstable();
            let want: Vec<_> = here
                .map(|(s, (.., p))| (*s, at.ring(grid.patch_of(*p))))
                .filter(|(_, ring)| *ring <= reach as u32)
                .collect();
            prop_assert_eq!(found, want);
        }
    }
}
