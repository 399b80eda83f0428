//! Which players are near each other: grids over the positions, from fine to coarse, and scans of the grids.
//!
//! A grid is a counting sort by cells, so that a row of cells is contiguous memory. In a crowd lists
//! are full of near players and horizons are short, at its edge they are long: each player uses the
//! finest grid whose cells are not much smaller than its horizon. A grid is built when the first
//! player needs it.

mod lanes;

use std::ops::{Range, RangeInclusive};

use self::lanes::{Aim, Columns};
use super::lists::Lists;
use super::{Pair, Player};
use crate::scene::geo::dist2;
use crate::scene::workers::{Workers, share_range};

/// What the matcher must know of two players that have no entry in each other's lists.
pub trait Pairs: Sync {
    /// The pair's rank if the two are in range of each other; `d2` is their squared distance, in
    /// square centimetres. Must not depend on the order of the two. The rank of a pair without a
    /// bond must be [`ViewRules::rank`](crate::scene::views::ViewRules::rank) of its distance.
    fn rank(&self, a: u32, b: u32, d2: u64) -> Option<u64>;

    /// Further pairs of a player, with their ranks, that [`Pairs::rank`] may not find in range: companions that see each
    /// other from farther, pairs that stay in range for longer. A repair asks for those of each player that has lost an
    /// entry; before a pass they are proposed.
    fn others(&self, of: u32, found: &mut Vec<(u32, u64)>) {
        let _ = (of, found);
    }

    /// Where the players are with which [`Pairs::rank`] may find this one in range: the least and the
    /// greatest coordinate along both axes, in centimetres. `None` without such limits.
    fn bounds(&self, of: u32) -> Option<Bounds> {
        let _ = of;
        None
    }
}

/// A rectangle: the least and the greatest coordinate along each axis, both inside, centimetres.
pub type Bounds = ((i32, i32), (i32, i32));

/// Side of the smallest cells, in centimetres.
const MIN_CELL_CM: f32 = 150.0;

/// Each grid's cells are so much larger than those of the one before.
const COARSER: f32 = 2.5;

/// A horizon spans at most so many cells of its grid.
const CELLS_PER_HORIZON: f32 = 3.5;

/// Positions, and grids over them.
#[derive(Debug, Default)]
pub struct Near {
    at: Vec<(i32, i32)>,
    /// Corner of all positions where both coordinates are least.
    corner: (i32, i32),
    /// Larger of the two extents, in centimetres.
    extent: f32,
    /// How far rounded positions may be off, in centimetres: 0 unless the extent is huge.
    blur: u32,
    levels: Vec<Level>,
}

/// One grid.
#[derive(Debug, Default)]
struct Level {
    built: bool,
    cell_cm: f32,
    cols: usize,
    rows: usize,
    /// Index of each cell's first entry, and the end of the last.
    starts: Vec<u32>,
    entries: Columns,
    /// Position and cell of each player.
    places: Vec<(f32, f32, u32)>,
}

/// Buffers of scans.
#[derive(Debug, Default)]
pub struct Scan {
    /// Per player: the stamp of the scan that must leave it out.
    marks: Vec<u32>,
    stamp: u32,
    hits: Vec<u32>,
    /// Pairs in range with their ranks.
    pub found: Vec<(u64, Pair)>,
}

impl Scan {
    /// Forgets what was found, and makes room for so many players.
    pub fn begin(&mut self, players: usize) {
        self.marks.clear();
        self.marks.resize(players, 0);
        self.stamp = 0;
        self.found.clear();
    }

    /// Leaves out a player and its partners.
    fn leave_out(&mut self, ix: u32, lists: &Lists) {
        self.stamp += 1;
        self.marks[ix as usize] = self.stamp;
        lists.partners(ix).for_each(|with| self.marks[with as usize] = self.stamp);
    }
}

/// A squared distance that no squared distance below `cm`² exceeds when it is computed from rounded
/// numbers.
fn rounded_up(cm: u32) -> f32 {
    if cm == u32::MAX {
        return f32::INFINITY;
    }
    let cm = cm as f32;
    cm * cm * 1.000_01 + 1.0
}

/// Whether a squared distance is below a horizon. The largest horizon has no end: distances are
/// numbers up to the same one.
#[inline]
fn nearer(d2: u64, horizon: u32) -> bool {
    horizon == u32::MAX || d2 < u64::from(horizon).pow(2)
}

impl Near {
    pub fn clear(&mut self) {
        self.at.clear();
    }

    /// Adds a player; returns its index.
    #[inline]
    pub fn push(&mut self, at: (i32, i32)) -> u32 {
        self.at.push(at);
        (self.at.len() - 1) as u32
    }

    /// All players are known. Returns the distance below which all pairs in range are: at most
    /// `reach_cm`, and no more than the positions span, in centimetres.
    pub fn begin(&mut self, reach_cm: Option<u32>) -> u32 {
        let (mut low, mut high) = ((i32::MAX, i32::MAX), (i32::MIN, i32::MIN));
        for (x, z) in self.at.iter().copied() {
            low = (low.0.min(x), low.1.min(z));
            high = (high.0.max(x), high.1.max(z));
        }
        if self.at.is_empty() {
            (low, high) = ((0, 0), (0, 0));
        }
        self.corner = low;
        let (width, depth) = (low.0.abs_diff(high.0), low.1.abs_diff(high.1));
        self.extent = width.max(depth) as f32;
        // Whole numbers up to 2^24 are exact.
        self.blur = (width.max(depth) >> 24) * 2;
        self.lay_out(width as f32, depth as f32);
        let diagonal = (f64::from(width).hypot(f64::from(depth)) as u32).saturating_add(2);
        reach_cm.map_or(diagonal, |reach| diagonal.min(reach.saturating_add(1)))
    }

    /// Sizes of the grids. There are never many more cells than players.
    fn lay_out(&mut self, width: f32, depth: f32) {
        let players = self.at.len().max(1) as f32;
        let even = (width * depth / (4.0 * players)).sqrt();
        let mut cell_cm = even.max(self.extent / (4.0 * players)).max(MIN_CELL_CM);
        let mut count = 0;
        loop {
            if self.levels.len() == count {
                self.levels.push(Level::default());
            }
            let level = &mut self.levels[count];
            (level.built, level.cell_cm) = (false, cell_cm);
            level.cols = (width / cell_cm) as usize + 1;
            level.rows = (depth / cell_cm) as usize + 1;
            count += 1;
            if cell_cm >= self.extent {
                break;
            }
            cell_cm *= COARSER;
        }
        self.levels.truncate(count);
    }

    /// Distance from the corner along both axes.
    #[inline]
    fn relative(&self, (x, z): (i32, i32)) -> (f32, f32) {
        let from = |at: i32, corner: i32| at.abs_diff(corner) as f32;
        (from(x, self.corner.0), from(z, self.corner.1))
    }

    fn level_for(&self, horizon: u32) -> usize {
        let wanted = horizon as f32 / CELLS_PER_HORIZON;
        let fine = self.levels.iter().position(|level| level.cell_cm >= wanted);
        fine.unwrap_or(self.levels.len() - 1)
    }

    fn build(&mut self, level: usize, players: &[Player]) {
        if self.levels[level].built {
            return;
        }
        let mut grid = std::mem::take(&mut self.levels[level]);
        grid.fill(players, self.at.iter().map(|at| self.relative(*at)), self.blur);
        self.levels[level] = grid;
    }

    /// Finds the pairs in range that neither list has, and that are nearer than both horizons. Each
    /// is found from one side. Each part of the players has a scan of its own.
    pub fn scan_all(
        &mut self,
        of: (&[Player], &Lists),
        pairs: &impl Pairs,
        scans: &mut [Scan],
        workers: &dyn Workers,
    ) {
        let players = of.0;
        for player in players.iter().filter(|player| player.horizon > 0) {
            self.build(self.level_for(player.horizon), players);
        }
        scans.iter_mut().for_each(|scan| scan.begin(players.len()));
        let near = &*self;
        share_range(workers, players.len(), scans, |scan, part| {
            part.for_each(|ix| near.scan_one(ix as u32, of, pairs, scan));
        });
    }

    /// Finds these pairs of one player.
    fn scan_one(
        &self,
        ix: u32,
        (players, lists): (&[Player], &Lists),
        pairs: &impl Pairs,
        scan: &mut Scan,
    ) {
        let horizon = players[ix as usize].horizon;
        if horizon == 0 {
            return;
        }
        self.scan::<true>(ix, self.level_for(horizon), (0, horizon), pairs.bounds(ix), scan);
        if scan.hits.is_empty() {
            return;
        }
        scan.leave_out(ix, lists);
        for at in 0..scan.hits.len() {
            self.consider((ix, scan.hits[at]), (0, horizon), players, pairs, scan);
        }
    }

    /// Finds the pairs of a player at distances from `from` (inclusive) to `to` centimetres that its
    /// list does not have, and that are nearer than the other's horizon. Says whether no player in
    /// range is farther.
    pub fn search(
        &mut self,
        ix: u32,
        (from, to): (u32, u32),
        (players, lists): (&[Player], &Lists),
        pairs: &impl Pairs,
        scan: &mut Scan,
    ) -> bool {
        let level = self.level_for(to);
        self.build(level, players);
        let bounds = pairs.bounds(ix);
        scan.found.clear();
        scan.leave_out(ix, lists);
        self.scan::<false>(ix, level, (from, to), bounds, scan);
        for at in 0..scan.hits.len() {
            self.consider((ix, scan.hits[at]), (from, to), players, pairs, scan);
        }
        bounds.is_some_and(|bounds| nearer(farthest2(self.at[ix as usize], bounds), to))
    }

    /// Keeps the pair if it is in range, at a distance within the limits, and nearer than the
    /// second player's horizon.
    #[inline]
    fn consider(
        &self,
        (ix, other): Pair,
        (from, to): (u32, u32),
        players: &[Player],
        pairs: &impl Pairs,
        scan: &mut Scan,
    ) {
        if scan.marks[other as usize] == scan.stamp {
            return;
        }
        let (a, b) = (self.at[ix as usize], self.at[other as usize]);
        let d2 = dist2(a.0, a.1, b.0, b.1);
        let to = to.min(players[other as usize].horizon);
        if d2 >= u64::from(from).pow(2) && nearer(d2, to) {
            scan.found.extend(pairs.rank(ix, other, d2).map(|rank| (rank, (ix, other))));
        }
    }

    /// Collects into `hits` the players at about these distances, and a few more. With `BARS`, those
    /// beyond the horizon that they had when the grid was built are left out, and of each two players
    /// one finds the other; the least distance does not count then.
    fn scan<const BARS: bool>(
        &self,
        ix: u32,
        level: usize,
        (from, to): (u32, u32),
        bounds: Option<Bounds>,
        scan: &mut Scan,
    ) {
        let level = &self.levels[level];
        let (x, z) = self.relative(self.at[ix as usize]);
        scan.hits.clear();
        let (low, high) = (from.saturating_sub(self.blur) as f32, to.saturating_add(self.blur));
        let (centre, half) = self.rectangle(bounds);
        let aim = Aim {
            at: (x, z),
            low2: low * low * 0.999_99 - 1.0,
            high2: rounded_up(high),
            centre,
            half,
            bar: rounded_up(high),
            me: ix,
        };
        let radius = high as f32 + 1.0;
        let span = |at: f32, centre: f32, half: f32| {
            ((at - radius).max(centre - half), (at + radius).min(centre + half))
        };
        let (columns, rows) = (span(x, centre.0, half.0), span(z, centre.1, half.1));
        for row in level.rows_of(rows) {
            lanes::collect::<BARS>(
                &level.entries,
                level.in_row(row, columns),
                &aim,
                &mut scan.hits,
            );
        }
    }

    /// Centre and half of the sides of a rectangle that has all positions within the bounds.
    fn rectangle(&self, bounds: Option<Bounds>) -> ((f32, f32), (f32, f32)) {
        let axis = |(least, most): (i32, i32), corner: i32| {
            let (low, high) =
                (i64::from(least) - i64::from(corner), i64::from(most) - i64::from(corner));
            // Numbers are rounded to 24 bits.
            let slack = 2.0 + self.blur as f32 + (high - low) as f32 * 0.000_001;
            ((low + high) as f32 / 2.0, (high - low) as f32 / 2.0 + slack)
        };
        // No position is farther out than the last cell.
        let Some((x, z)) = bounds.filter(|_| self.blur == 0) else {
            return ((0.0, 0.0), (f32::INFINITY, f32::INFINITY));
        };
        let (x, z) = (axis(x, self.corner.0), axis(z, self.corner.1));
        ((x.0, z.0), (x.1, z.1))
    }
}

/// The squared distance of the farthest corner of a rectangle, square centimetres.
fn farthest2(at: (i32, i32), (x, z): Bounds) -> u64 {
    let apart =
        |at: i32, (least, most): (i32, i32)| u64::from(at.abs_diff(least).max(at.abs_diff(most)));
    apart(at.0, x).pow(2).saturating_add(apart(at.1, z).pow(2))
}

impl Level {
    /// Sorts the players into the cells.
    fn fill(&mut self, players: &[Player], at: impl Iterator<Item = (f32, f32)>, blur: u32) {
        let count = players.len();
        self.built = true;
        self.starts.clear();
        self.starts.resize(self.cols * self.rows + 2, 0);
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        places.extend(at.map(|(x, z)| (x, z, self.cell(x, z))));
        for (_, _, cell) in &places {
            self.starts[*cell as usize + 2] += 1;
        }
        for cell in 2..self.starts.len() {
            self.starts[cell] += self.starts[cell - 1];
        }
        let entries = &mut self.entries;
        entries.resize(count);
        // Each cell's number now has the start of the cell before, which grows into its own.
        for (ix, (x, z, cell)) in places.iter().enumerate() {
            let next = &mut self.starts[*cell as usize + 1];
            let to = *next as usize;
            *next += 1;
            (entries.x[to], entries.z[to], entries.ix[to]) = (*x, *z, ix as u32);
            entries.bar[to] = rounded_up(players[ix].horizon.saturating_add(blur));
        }
        self.places = places;
    }

    #[inline]
    fn column_of(&self, x: f32) -> usize {
        ((x.max(0.0) / self.cell_cm) as usize).min(self.cols - 1)
    }

    #[inline]
    fn row_of(&self, z: f32) -> usize {
        ((z.max(0.0) / self.cell_cm) as usize).min(self.rows - 1)
    }

    #[inline]
    fn cell(&self, x: f32, z: f32) -> u32 {
        (self.row_of(z) * self.cols + self.column_of(x)) as u32
    }

    /// The rows between two coordinates.
    #[inline]
    fn rows_of(&self, (from, to): (f32, f32)) -> RangeInclusive<usize> {
        self.row_of(from)..=self.row_of(to)
    }

    /// The entries of a row between two coordinates, and a few more.
    #[inline]
    fn in_row(&self, row: usize, (from, to): (f32, f32)) -> Range<usize> {
        let first = row * self.cols;
        let (from, to) = (self.column_of(from), self.column_of(to));
        self.starts[first + from] as usize..self.starts[first + to + 1] as usize
    }
}
