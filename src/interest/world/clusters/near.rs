//! The clusters that those of a cell may see, or may be seen by: those of the neighbouring cells, and
//! beyond them wide clusters. Wide clusters see farther than a cell is long.

use std::ops::Range;

use super::Clusters;
use crate::interest::world::classes::Classes;

impl Clusters {
    /// Whether a class sees farther than a cell is long.
    pub fn is_wide(&self, classes: &Classes, class: u16) -> bool {
        classes.farthest_cm(class) > self.base_cm
    }

    /// How many cells the sight of wide clusters spans.
    pub fn wide_rings(&self, classes: &Classes) -> u64 {
        let span = i64::from(classes.most_cm()) + 2 * i64::from(self.skin_cm);
        (span / i64::from(self.side_cm)) as u64 + 1
    }

    /// Calls `visit` with ranges of clusters, each once: all that an entity in a cell may see, or may be
    /// seen by. `rings`: how many cells the sight of wide clusters spans.
    pub fn around(
        &self,
        (key, is_wide): (u64, bool),
        rings: u64,
        mut visit: impl FnMut(Range<u32>),
    ) {
        each_row(key, if is_wide { rings } else { 1 }, |first, last| {
            let clusters = self.row(first, last);
            if !clusters.is_empty() {
                visit(clusters);
            }
        });
        if is_wide || self.wides.is_empty() {
            return;
        }
        each_row(key, rings, |first, last| {
            let beyond = self.wides_of(first, last).iter().filter(|wide| {
                !is_adjacent(key, self.cells[self.clusters[**wide as usize].cell as usize].key)
            });
            beyond.for_each(|wide| visit(*wide..wide + 1));
        });
    }

    /// The same for pairs, each once: only clusters from those of the cell on, in ascending order.
    pub fn behind(&self, (key, is_wide): (u64, bool), rings: u64, to: &mut Vec<Range<u32>>) {
        to.clear();
        each_row(key, if is_wide { rings } else { 1 }, |first, last| {
            if last >= key {
                to.push(self.row(first.max(key), last));
            }
        });
        if is_wide || self.wides.is_empty() {
            return;
        }
        let near: Vec<_> = std::mem::take(to);
        each_row(key, rings, |first, last| {
            if last >= key {
                let is_far = |wide: &&u32| !near.iter().any(|clusters| clusters.contains(wide));
                let far = self.wides_of(first.max(key), last).iter().filter(is_far);
                to.extend(far.map(|wide| *wide..wide + 1));
            }
        });
        to.extend(near);
        to.sort_unstable_by_key(|clusters| clusters.start);
    }

    /// The clusters of a row of cells, from the first key to the last.
    fn row(&self, first: u64, last: u64) -> Range<u32> {
        let from = self.cells.partition_point(|cell| cell.key < first);
        let most = (last - first + 1).min((self.cells.len() - from) as u64) as usize;
        let to = from + self.cells[from..from + most].partition_point(|cell| cell.key <= last);
        self.first_of(from)..self.first_of(to)
    }

    /// The wide clusters among these.
    fn wides_of(&self, first: u64, last: u64) -> &[u32] {
        let clusters = self.row(first, last);
        let from = self.wides.partition_point(|wide| *wide < clusters.start);
        let to = self.wides.partition_point(|wide| *wide < clusters.end);
        &self.wides[from..to]
    }
}

fn is_adjacent(a: u64, b: u64) -> bool {
    let apart = |shift: u32| (a >> shift & 0xffff).abs_diff(b >> shift & 0xffff);
    apart(0) <= 1 && apart(16) <= 1
}

/// Calls `visit` with the first and the last key of each row of cells up to `rings` around one.
pub fn each_row(key: u64, rings: u64, mut visit: impl FnMut(u64, u64)) {
    let (plane, row, column) = (key >> 32 << 32, key >> 16 & 0xffff, key & 0xffff);
    let (left, right) = (column.saturating_sub(rings), (column + rings).min(0xffff));
    for row in row.saturating_sub(rings)..=(row + rings).min(0xffff) {
        visit(plane | row << 16 | left, plane | row << 16 | right);
    }
}

#[cfg(test)]
mod tests {
    use crate::interest::{Entity, Mode, Radii, Reach, Rules, Sight, World};
    use crate::scene::{Pos, Rect};

    #[test]
    fn few_that_see_far_do_not_widen_the_cells_of_all() {
        let ground = Rect { x0: 0, z0: 0, x1: 1_000_000, z1: 1_000_000 };
        let circle = |cm| Reach::Circle(Radii::new(cm, cm + 500));
        let classes = |far: u64| {
            let rules = Rules::new(ground, Mode::Circle, circle(8_000));
            let mut world = World::new(rules).unwrap();
            for id in 0..40 {
                let reach = (id < far).then(|| circle(200_000));
                let sight = Sight { reach, ..Sight::default() };
                let pos = Pos::ground(1_000 * id as i32, 0);
                world.create(Entity { id, kind: 0, plane: 0, pos, sight }).unwrap();
            }
            world.classes.usual_cm()
        };
        assert_eq!([classes(0), classes(1), classes(20)], [8_500; 3]);
        assert_eq!([classes(21), classes(40)], [200_500; 2]);
    }
}
