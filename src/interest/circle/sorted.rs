//! Positions sorted by cell, row by row, so that the cells of a row between two columns are
//! contiguous in memory. [`Circle`](super::Circle) sorts once per tick.

use std::ops::Range;

use super::PatchPos;
use crate::scene::Rect;

/// Most pairs examined in one loop.
pub const BLOCK: usize = 128;

/// Pairs per SIMD group of that loop. A block is a whole number of groups.
const LANES: usize = 8;

/// Finds pairs that may have crossed a radius, in single precision. If a pair crossed, the
/// differences of its squared distances, before and now, from the radius's square have different
/// signs, so their product is at most `doubt`, the largest rounding error.
#[derive(Debug, Clone, Copy)]
pub struct Filter {
    pub enter2: f32,
    pub leave2: f32,
    pub doubt: f32,
}

/// Cells allowed in addition to those for the population.
const SPARE_CELLS: u64 = 4_096;

#[derive(Debug, Clone, Default)]
pub struct Sorted {
    side_cm: i32,
    x0: i32,
    z0: i32,
    cols: i32,
    rows: i32,
    /// Index of each cell's first entry, and the end of the last.
    starts: Vec<u32>,
    pub slots: Vec<u32>,
    // Positions now and in the tick before, in the order of `slots`, plus `LANES` unused entries.
    // For an entity that jumped both are the new position.
    x: Vec<i32>,
    z: Vec<i32>,
    old_x: Vec<i32>,
    old_z: Vec<i32>,
}

fn cells(ground: Rect, side_cm: i32) -> (u64, u64) {
    let along = |a: i32, b: i32| (i64::from(b) - i64::from(a)) as u64;
    let side = side_cm as u64;
    (along(ground.x0, ground.x1).div_ceil(side), along(ground.z0, ground.z1).div_ceil(side))
}

impl Sorted {
    /// The smallest side that is `side_cm` times a power of two and makes no more cells than
    /// `population` entities can use.
    pub fn roomy_side(side_cm: i32, ground: Rect, population: usize) -> i32 {
        let mut side = side_cm;
        loop {
            let (cols, rows) = cells(ground, side);
            if cols * rows <= SPARE_CELLS + 4 * population as u64 || side > i32::MAX / 8 {
                return side;
            }
            side *= 2;
        }
    }

    /// Sorts all entities that have a position.
    pub fn sort(
        &mut self,
        ground: Rect,
        side_cm: i32,
        now: &[PatchPos],
        before: &[PatchPos],
        jumped: &[bool],
    ) {
        let (cols, rows) = cells(ground, side_cm);
        (self.side_cm, self.x0, self.z0) = (side_cm, ground.x0, ground.z0);
        (self.cols, self.rows) = (cols as i32, rows as i32);
        let cells = (cols * rows) as usize;
        self.starts.clear();
        self.starts.resize(cells + 2, 0);
        // Counts are stored two cells ahead, so that after the sums each one is where the next cell
        // starts.
        for &place in now.iter().flatten() {
            let cell = self.cell(place);
            self.starts[cell + 2] += 1;
        }
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        let len = sum as usize;
        self.slots.resize(len, 0);
        for list in [&mut self.x, &mut self.z, &mut self.old_x, &mut self.old_z] {
            list.resize(len + LANES, 0);
        }
        for (slot, place) in now.iter().enumerate() {
            let &Some(place) = place else { continue };
            let cell = self.cell(place);
            let at = self.starts[cell + 1] as usize;
            self.starts[cell + 1] += 1;
            let old = if jumped[slot] { place } else { before[slot].unwrap_or(place) };
            self.slots[at] = slot as u32;
            (self.x[at], self.z[at]) = place;
            (self.old_x[at], self.old_z[at]) = old;
        }
    }

    #[inline]
    fn column(&self, x: i32) -> i32 {
        (x.wrapping_sub(self.x0) as u32 / self.side_cm as u32) as i32
    }

    #[inline]
    fn row(&self, z: i32) -> i32 {
        (z.wrapping_sub(self.z0) as u32 / self.side_cm as u32) as i32
    }

    #[inline]
    fn cell(&self, (x, z): (i32, i32)) -> usize {
        (self.row(z) * self.cols + self.column(x)) as usize
    }

    /// The entries of a row between two columns, both inside the grid.
    #[inline]
    fn span(&self, row: i32, from: i32, to: i32) -> Range<usize> {
        let first = (row * self.cols) as usize;
        let start = self.starts[first + from as usize] as usize;
        start..self.starts[first + to as usize + 1] as usize
    }

    /// Calls `visit` with the slots of all entities that may be within `radius_cm` of a position.
    pub fn around(&self, (x, z): (i32, i32), radius_cm: i32, mut visit: impl FnMut(u32)) {
        if self.slots.is_empty() {
            return;
        }
        let rings = radius_cm / self.side_cm + 1;
        let (column, row) = (self.column(x), self.row(z));
        let (from, to) = ((column - rings).max(0), (column + rings).min(self.cols - 1));
        for row in (row - rings).max(0)..=(row + rings).min(self.rows - 1) {
            self.slots[self.span(row, from, to)].iter().for_each(|slot| visit(*slot));
        }
    }

    /// Calls `visit` for each non-empty cell, with its entries and the entries of its half of the
    /// neighbourhood, `reach` rings wide: one range per row. The first row's range starts with the
    /// cell itself.
    pub fn each_cell(&self, reach: i32, mut visit: impl FnMut(Range<usize>, &[Range<usize>])) {
        let mut ranges: Vec<Range<usize>> = Vec::with_capacity(reach as usize + 1);
        for row in 0..self.rows {
            for column in 0..self.cols {
                let members = self.span(row, column, column);
                if members.is_empty() {
                    continue;
                }
                let (from, to) = ((column - reach).max(0), (column + reach).min(self.cols - 1));
                ranges.clear();
                ranges.push(members.start..self.span(row, column, to).end);
                let below = row + 1..=(row + reach).min(self.rows - 1);
                ranges.extend(below.map(|row| self.span(row, from, to)).filter(|r| !r.is_empty()));
                visit(members, &ranges);
            }
        }
    }

    /// The largest squared distance of a pair whose cells are `cells` apart along both axes.
    pub fn most_squared(&self, cells: i32) -> f64 {
        let along = f64::from(self.side_cm) * f64::from(cells + 1);
        2.0 * along * along
    }

    /// Calls `visit` with the slot of each entry in `range` whose distance from entry `i` may have
    /// crossed a radius. `margins` is scratch memory.
    #[inline]
    pub fn suspects(
        &self,
        i: usize,
        range: Range<usize>,
        filter: &Filter,
        margins: &mut [f32; BLOCK],
        mut visit: impl FnMut(u32),
    ) {
        let mut at = range.start;
        while at < range.end {
            let len = (range.end - at).min(BLOCK);
            // Entries beyond the range are ignored; whole groups are faster.
            let margins = &mut margins[..len.next_multiple_of(LANES)];
            if self.margins(i, at, filter, margins) {
                let found = margins[..len].iter().enumerate();
                for (k, _) in found.filter(|(_, margin)| **margin <= filter.doubt) {
                    visit(self.slots[at + k]);
                }
            }
            at += len;
        }
    }

    /// The margins of entry `i` with the entries from `at` on; returns whether any is in doubt. A
    /// separate loop over plain slices, so that the compiler vectorises it.
    #[inline(never)]
    fn margins(&self, i: usize, at: usize, filter: &Filter, margins: &mut [f32]) -> bool {
        let Filter { enter2, leave2, doubt } = *filter;
        let (x, z, old_x, old_z) = (self.x[i], self.z[i], self.old_x[i], self.old_z[i]);
        let len = margins.len();
        let (xs, zs) = (&self.x[at..][..len], &self.z[at..][..len]);
        let (old_xs, old_zs) = (&self.old_x[at..][..len], &self.old_z[at..][..len]);
        let mut any = 0;
        for k in 0..len {
            let new = squared(xs[k].wrapping_sub(x), zs[k].wrapping_sub(z));
            let old = squared(old_xs[k].wrapping_sub(old_x), old_zs[k].wrapping_sub(old_z));
            let enter = (new - enter2) * (old - enter2);
            let leave = (new - leave2) * (old - leave2);
            // Not `f32::min`, which handles NaN and is slower.
            let margin = if enter < leave { enter } else { leave };
            margins[k] = margin;
            any |= u32::from(margin <= doubt);
        }
        any != 0
    }
}

#[inline]
fn squared(dx: i32, dz: i32) -> f32 {
    let (dx, dz) = (dx as f32, dz as f32);
    dx * dx + dz * dz
}
