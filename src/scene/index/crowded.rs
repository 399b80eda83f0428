//! Crowded patches, cut into small squares, so that a query for near entities does not read all of
//! them.
//!
//! [`Grid`](super::Grid) builds them and drops them on any change. The result of a query must equal
//! that of the uncut patch, except for entries whose bar is nearer.
//!
//! Beside each entry stands its *bar*: the squared distance beyond which no other entity matters to
//! it. Squares whose bars are all lower than their distance are skipped.

use super::IndexEntry;

/// Squares along a side of a patch.
const ALONG: i32 = 8;
const SQUARES: usize = (ALONG * ALONG) as usize;

/// A crowded patch as of its last change.
#[derive(Debug, Clone)]
pub struct Crowded {
    /// Index of each square's first entry, and the end of the last.
    starts: Vec<u32>,
    entries: Vec<IndexEntry>,
    bars: Vec<u64>,
    /// The highest bar of each square.
    highest: Vec<u64>,
}

/// Where a patch lies.
#[derive(Debug, Clone, Copy)]
pub struct CrowdGrid {
    /// North-west corner, centimetres.
    pub x: i32,
    pub z: i32,
    /// Sides along x and z, centimetres.
    pub width: i32,
    pub depth: i32,
}

impl CrowdGrid {
    fn square_of(&self, x: i32, z: i32) -> usize {
        let along = |at: i32, from: i32, side: i32| {
            let at = i64::from(at - from) * i64::from(ALONG) / i64::from(side);
            (at as i32).clamp(0, ALONG - 1)
        };
        (along(z, self.z, self.depth) * ALONG + along(x, self.x, self.width)) as usize
    }

    /// Squared distances along one axis, on which the patch begins at `from` and has this side, from `at` to each row
    /// or column.
    fn dist2((from, side): (i32, i32), at: i32) -> [u64; ALONG as usize] {
        let edge = |n: i32| i64::from(from) + i64::from(side) * i64::from(n) / i64::from(ALONG);
        let at = i64::from(at);
        std::array::from_fn(|n| {
            let n = n as i32;
            let beyond = (edge(n) - at).max(at - edge(n + 1)).max(0) as u64;
            beyond * beyond
        })
    }
}

impl Crowded {
    /// The patch on `ground` with these entries; `bar` returns the bar of a slot.
    pub fn new(ground: CrowdGrid, from: &[IndexEntry], bar: impl Fn(u32) -> u64) -> Crowded {
        let mut starts = vec![0; SQUARES + 1];
        for e in from {
            starts[ground.square_of(e.x, e.z) + 1] += 1;
        }
        for square in 0..SQUARES {
            starts[square + 1] += starts[square];
        }
        let mut next = starts.clone();
        let mut entries = from.to_vec();
        let mut bars = vec![0; from.len()];
        let mut highest = vec![0; SQUARES];
        for e in from {
            let square = ground.square_of(e.x, e.z);
            let (at, bar) = (next[square] as usize, bar(e.slot));
            next[square] += 1;
            (entries[at], bars[at]) = (*e, bar);
            highest[square] = bar.max(highest[square]);
        }
        Crowded { starts, entries, bars, highest }
    }

    /// Sets the bar of the entity in `slot` at a position of this ground.
    pub fn set_bar(&mut self, ground: CrowdGrid, slot: u32, (x, z): (i32, i32), bar: u64) {
        let square = ground.square_of(x, z);
        let of = self.starts[square] as usize..self.starts[square + 1] as usize;
        if let Some(at) = self.entries[of.clone()].iter().position(|e| e.slot == slot) {
            self.bars[of.start + at] = bar;
            self.highest[square] = self.bars[of].iter().copied().max().unwrap_or(0);
        }
    }

    /// Calls `visit` with the entries, and their squared distances, that are no farther from a
    /// position than `limit2` and their own bar.
    #[inline]
    pub fn near(
        &self,
        ground: CrowdGrid,
        (x, z): (i32, i32),
        limit2: u64,
        mut visit: impl FnMut(&IndexEntry, u64),
    ) {
        let columns = CrowdGrid::dist2((ground.x, ground.width), x);
        let rows = CrowdGrid::dist2((ground.z, ground.depth), z);
        for (row, dz2) in rows.into_iter().enumerate().filter(|(_, dz2)| *dz2 <= limit2) {
            for (column, dx2) in columns.into_iter().enumerate() {
                let (square, nearest) = (row * ALONG as usize + column, dx2 + dz2);
                if nearest > limit2 || nearest > self.highest[square] {
                    continue;
                }
                let of = self.starts[square] as usize..self.starts[square + 1] as usize;
                for (e, bar) in self.entries[of.clone()].iter().zip(&self.bars[of]) {
                    let d2 = crate::scene::geo::dist2(x, z, e.x, e.z);
                    if d2 <= limit2 && d2 <= *bar {
                        visit(e, d2);
                    }
                }
            }
        }
    }
}
