//! Which cells of a map's static content to have loaded around a position.
//!
//! Games call it with the player's position. A cell is loaded when the player comes as near as one
//! radius and unloaded beyond a greater one, so that no cell is loaded and unloaded again by a
//! player who walks along a border.

use std::collections::BTreeSet;

use purview::scene::Pos;

/// The greatest radius and map side, centimetres: products stay below 2^53.
const CM_MAX: i32 = 50_000_000;

/// A square of the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// From the west, 0 first.
    pub column: i32,
    /// From the north, 0 first.
    pub row: i32,
}

/// What to load and what to unload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CellChange {
    /// The nearest first.
    pub load: Vec<Cell>,
    /// By column, then by row.
    pub unload: Vec<Cell>,
}

/// The sides and radii are unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CellsError {
    /// The cell's side or the map's side.
    #[error("a side of {0} cm is not usable: 1 to {CM_MAX} cm")]
    Side(i32),
    /// The radii.
    #[error("radii of {enter_cm} and {leave_cm} cm: want 0 <= enter < leave <= {CM_MAX} cm")]
    Radii {
        /// Within this radius cells are loaded.
        enter_cm: i32,
        /// Beyond this radius they are unloaded.
        leave_cm: i32,
    },
}

/// The loaded cells around one position.
///
/// ```
/// # use purview::scene::Pos;
/// # use purview_client::{Cell, Cells};
/// let mut cells = Cells::new([10_000, 10_000], 1_000, 600, 900).unwrap();
/// let change = cells.update(Pos::ground(500, 500));
/// assert_eq!(change.load[0], Cell { column: 0, row: 0 });
/// assert_eq!(cells.update(Pos::ground(500, 500)), Default::default());
/// ```
#[derive(Debug, Clone)]
pub struct Cells {
    size_cm: [i32; 2],
    cell_cm: i32,
    enter_cm: i32,
    leave_cm: i32,
    loaded: BTreeSet<Cell>,
}

impl Cells {
    /// Cells with sides of `cell_cm` of a map of this width and depth. The last column and row may
    /// be narrower.
    ///
    /// # Errors
    /// The sides or radii are unusable.
    pub fn new(
        size_cm: [i32; 2],
        cell_cm: i32,
        enter_cm: i32,
        leave_cm: i32,
    ) -> Result<Cells, CellsError> {
        let wrong = |side: &i32| !(1..=CM_MAX).contains(side);
        if let Some(side) = size_cm.into_iter().chain([cell_cm]).find(wrong) {
            return Err(CellsError::Side(side));
        }
        if enter_cm < 0 || leave_cm <= enter_cm || leave_cm > CM_MAX {
            return Err(CellsError::Radii { enter_cm, leave_cm });
        }
        Ok(Cells { size_cm, cell_cm, enter_cm, leave_cm, loaded: BTreeSet::new() })
    }

    /// The player is at `pos`: what changes.
    pub fn update(&mut self, pos: Pos) -> CellChange {
        let far = i64::from(self.leave_cm).pow(2);
        let gone = |cell: &Cell| self.distance2(*cell, pos) > far;
        let unload: Vec<Cell> = self.loaded.iter().copied().filter(gone).collect();
        let near = i64::from(self.enter_cm).pow(2);
        let [columns, rows] = [(pos.x, 0), (pos.z, 1)].map(|(at, axis)| self.along(at, axis));
        let all = columns.flat_map(|column| rows.clone().map(move |row| Cell { column, row }));
        let comes = |(d, cell): &(i64, Cell)| *d <= near && !self.loaded.contains(cell);
        let found = all.map(|cell| (self.distance2(cell, pos), cell)).filter(comes);
        let mut load: Vec<(i64, Cell)> = found.collect();
        load.sort_unstable();
        let load: Vec<Cell> = load.into_iter().map(|(_, cell)| cell).collect();
        for cell in &unload {
            self.loaded.remove(cell);
        }
        self.loaded.extend(&load);
        CellChange { load, unload }
    }

    /// The loaded cells, by column and row.
    pub fn loaded(&self) -> impl Iterator<Item = Cell> + '_ {
        self.loaded.iter().copied()
    }

    /// The columns, or rows, that a circle around a coordinate reaches.
    fn along(&self, at: i32, axis: usize) -> std::ops::RangeInclusive<i32> {
        let cell = |cm: i32| cm.div_euclid(self.cell_cm);
        let last = cell(self.size_cm[axis] - 1);
        let from = cell(at.saturating_sub(self.enter_cm)).max(0);
        from..=cell(at.saturating_add(self.enter_cm)).min(last)
    }

    /// The square of the distance to the nearest point of a cell.
    fn distance2(&self, cell: Cell, pos: Pos) -> i64 {
        let off = |n: i32, at: i32, side: i32| {
            let low = n * self.cell_cm;
            let high = low.saturating_add(self.cell_cm).min(side) - 1;
            i64::from(low.saturating_sub(at).max(at.saturating_sub(high)).max(0))
        };
        let [width, depth] = self.size_cm;
        let (x, z) = (off(cell.column, pos.x, width), off(cell.row, pos.z, depth));
        x.saturating_mul(x).saturating_add(z.saturating_mul(z))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells() -> Cells {
        Cells::new([10_000, 6_500], 1_000, 1_500, 2_000).unwrap()
    }

    fn cell((column, row): (i32, i32)) -> Cell {
        Cell { column, row }
    }

    #[test]
    fn cells_in_the_circle_are_loaded_and_the_nearest_are_first() {
        let change = cells().update(Pos::ground(500, 500));
        let wanted = [(0, 0), (0, 1), (1, 0), (1, 1)].map(cell);
        assert_eq!((&change.load[..4], change.load.len()), (&wanted[..], 4 + 2));
        assert_eq!(change.load[4..], [(0, 2), (2, 0)].map(cell));
        assert_eq!(change.unload, []);
    }

    #[test]
    fn no_cell_is_loaded_twice_by_a_player_who_walks_along_a_border() {
        let (mut cells, mut loads) = (cells(), Vec::new());
        for step in 0..2_000 {
            let change = cells.update(Pos::ground(5_000 + step % 400 - 200, 3_000));
            loads.extend(change.load);
            assert_eq!(change.unload, [], "the player never goes 5 m");
        }
        let all: BTreeSet<Cell> = loads.iter().copied().collect();
        assert_eq!((loads.len(), all.len()), (cells.loaded().count(), cells.loaded().count()));
    }

    #[test]
    fn a_teleport_unloads_what_it_leaves() {
        let mut cells = cells();
        let first = cells.update(Pos::ground(500, 500)).load;
        let change = cells.update(Pos::ground(9_500, 6_400));
        let mut before: Vec<Cell> = first;
        before.sort_unstable();
        assert_eq!(change.unload, before);
        assert_eq!(change.load[0], cell((9, 6)));
        assert!(change.load.iter().all(|cell| cell.column < 10 && cell.row < 7));
    }

    #[test]
    fn sides_and_radii_are_checked() {
        let new = |cell_cm, enter_cm, leave_cm| {
            Cells::new([10_000, 10_000], cell_cm, enter_cm, leave_cm).map(drop)
        };
        assert_eq!(new(0, 1, 2), Err(CellsError::Side(0)));
        assert_eq!(new(1, 2, 2), Err(CellsError::Radii { enter_cm: 2, leave_cm: 2 }));
        assert_eq!(new(1, 0, 1), Ok(()));
    }
}
