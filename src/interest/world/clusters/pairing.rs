//! Finding the pairs of clusters that may change, cell by cell.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::lanes::{self, LONGEST, Test, Work};
use super::sights::{Carried, Duo, Link, Sights};
use super::{Clusters, GROUP, LOOSE, NOBODY, Radii, View, share};

/// Cells whose neighbourhoods are worth a thread.
const LEAST: usize = 40;

/// From the key of a cell to that of the cell in the next row.
const ROW: u64 = 1 << 16;

/// Links that are kept. Worlds with more are rare; the rest is computed when it is needed.
const LINKS: usize = if cfg!(test) { 3 } else { 1 << 14 };

/// The number of every link that is not kept.
const RARE: u32 = u32::MAX;

/// A carried pair by the clusters of its entities, in eight bytes: first cluster, second cluster, bit,
/// and whether the second is shown to the first, and the first to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Bit(u64);

impl Bit {
    fn new([a, b]: [u32; 2], bit: u32, [is_there, is_back]: [bool; 2]) -> Bit {
        let flags = u64::from(is_there) << 1 | u64::from(is_back);
        Bit(u64::from(a) << 36 | u64::from(b) << 8 | u64::from(bit) << 2 | flags)
    }

    fn clusters(self) -> [u32; 2] {
        [self.0 >> 36, self.0 >> 8 & ((1 << 28) - 1)].map(|cluster| cluster as u32)
    }

    /// The bits of both directions.
    fn masks(self) -> [u64; 2] {
        let bit = self.0 >> 2 & 63;
        [(self.0 >> 1 & 1) << bit, (self.0 & 1) << bit]
    }
}

/// Bits by their first cluster.
struct Bits(Vec<Bit>);

impl Bits {
    fn of(&self, cluster: u32) -> &[Bit] {
        let from = self.0.partition_point(|bit| bit.clusters()[0] < cluster);
        let len = self.0[from..].iter().take_while(|bit| bit.clusters()[0] == cluster).count();
        &self.0[from..from + len]
    }
}

/// A pair of clusters stays constant if its largest distance squared is at most `inside2`, or its
/// least one more than `beyond2`.
#[derive(Debug, Clone, Copy)]
struct Limits {
    inside2: i64,
    beyond2: i64,
    heights: bool,
}

/// A link and what follows from it.
#[derive(Debug, Clone, Copy)]
struct Known {
    of: Link,
    limits: Limits,
}

/// What a thread has found for its cells.
#[derive(Debug, Default)]
struct Found {
    duos: Vec<Duo>,
    /// Number of pairs per cluster.
    counts: Vec<u32>,
    links: Vec<Link>,
}

impl Clusters {
    /// Finds the pairs of clusters that may change.
    pub fn pair_all(&mut self, view: View, carried: Vec<Carried>) {
        let bits = self.by_first(carried);
        let mut cells: Vec<u32> = (0..self.cells.len() as u32).collect();
        let this = &*self;
        let parts = share((view.workers, LEAST), &mut cells, |first, part| {
            let cells = first..first + part.len();
            lanes::run(Pairing::new(this, view, &bits, cells))
        });
        self.duos.clear();
        self.links.clear();
        self.duo_starts.clear();
        self.duo_starts.push(0);
        let mut end = 0;
        for mut part in parts {
            let base = self.links.len();
            let is_kept = base + part.links.len() <= LINKS;
            if is_kept {
                self.links.append(&mut part.links);
            }
            for duo in &mut part.duos {
                let is_rare = duo.link == RARE || !is_kept;
                duo.link = if is_rare { RARE } else { duo.link + base as u32 };
            }
            if self.duos.is_empty() {
                self.duos = part.duos;
            } else {
                self.duos.append(&mut part.duos);
            }
            for count in part.counts {
                end += count;
                self.duo_starts.push(end);
            }
        }
    }

    /// The carried pairs as bits, sorted by their first cluster.
    fn by_first(&self, carried: Vec<Carried>) -> Bits {
        // In place: both have eight bytes.
        let mut bits: Vec<Bit> = carried.into_iter().filter_map(|one| self.carried(one)).collect();
        bits.sort_unstable();
        Bits(bits)
    }

    fn carried(&self, one: Carried) -> Option<Bit> {
        let lanes = [one.observer(), one.subject()].map(|slot| self.seats[slot as usize].lane);
        if lanes.contains(&LOOSE) {
            return None;
        }
        let (is_first, is_mutual) = (lanes[0] < lanes[1], one.appears());
        let (a, b) = (lanes[0].min(lanes[1]), lanes[0].max(lanes[1]));
        let group = GROUP as u32;
        let bit = group * (b % group) + a % group;
        Some(Bit::new([a / group, b / group], bit, [is_first || is_mutual, !is_first || is_mutual]))
    }

    /// The clusters of a range of cells.
    fn clusters_of(&self, cells: Range<usize>) -> Range<u32> {
        self.first_of(cells.start)..self.first_of(cells.end)
    }
}

/// One thread's search for pairs.
struct Pairing<'a> {
    of: &'a Clusters,
    view: View<'a>,
    carried: &'a Bits,
    cells: Range<usize>,
    found: Found,
    by_classes: FxHashMap<(u16, u16), Option<u32>>,
    last: ((u16, u16), Option<(u32, Known)>),
    /// Carried bits of the cluster in hand, by the other cluster.
    bits: Vec<[u64; 2]>,
}

impl Work for Pairing<'_> {
    type Output = Found;

    /// Pairs the clusters of each cell with each other and with those of the four cells behind it:
    /// the next one, and three of the next row.
    #[inline(always)]
    fn run(mut self, test: impl Test) -> Found {
        let cells = &self.of.cells;
        let mut below = self.cells.start;
        for at in self.cells.clone() {
            let key = cells[at].key;
            let beside = at + 1 + usize::from(cells.get(at + 1).is_some_and(|c| c.key == key + 1));
            while cells.get(below).is_some_and(|cell| cell.key < key + ROW - 1) {
                below += 1;
            }
            let row = cells[below..].iter().take(3).take_while(|cell| cell.key <= key + ROW + 1);
            let row = self.of.clusters_of(below..below + row.count());
            let around = self.of.clusters_of(at..beside);
            for a in self.of.clusters_of(at..at + 1) {
                self.pair_one(a, [a..around.end, row.clone()], test);
            }
        }
        self.found
    }
}

impl<'a> Pairing<'a> {
    fn new(of: &'a Clusters, view: View<'a>, carried: &'a Bits, cells: Range<usize>) -> Self {
        Pairing {
            of,
            view,
            carried,
            cells,
            found: Found::default(),
            by_classes: FxHashMap::default(),
            last: ((NOBODY, NOBODY), None),
            bits: vec![[0; 2]; of.clusters.len()],
        }
    }

    /// Pairs a cluster with others, which come in ascending order.
    #[inline(always)]
    fn pair_one(&mut self, a: u32, others: [Range<u32>; 2], test: impl Test) {
        let carried = self.carried.of(a);
        for bit in carried {
            let [there, back] = &mut self.bits[bit.clusters()[1] as usize];
            let masks = bit.masks();
            *there |= masks[0];
            *back |= masks[1];
        }
        let before = self.found.duos.len();
        for b in others.into_iter().flatten() {
            if let Some(mut duo) = self.duo(a, b) {
                let sights = Sights {
                    links: &self.found.links,
                    lanes: &self.of.lanes,
                    clusters: &self.of.clusters,
                    states: self.view.states,
                    classes: self.view.classes,
                };
                let [there, back] = sights.both(&duo, test);
                (duo.there, duo.back) = (there[0] | duo.there, back[0] | duo.back);
                self.found.duos.push(duo);
            }
        }
        self.found.counts.push((self.found.duos.len() - before) as u32);
        carried.iter().for_each(|bit| self.bits[bit.clusters()[1] as usize] = [0; 2]);
    }

    /// Two clusters, with the carried bits, if their pairs may change.
    #[inline]
    fn duo(&mut self, a: u32, b: u32) -> Option<Duo> {
        let (one, other) = (&self.of.clusters[a as usize], &self.of.clusters[b as usize]);
        let classes = (one.class, other.class);
        if self.last.0 != classes {
            self.last = (classes, self.link(classes));
        }
        let (link, Known { of: link_of, limits }) = self.last.1?;
        let (least2, most2, longest) = distances(&one.bounds, &other.bounds);
        if least2 > limits.beyond2 || most2 <= limits.inside2 {
            return None;
        }
        let exact = limits.heights || longest + 2 * i64::from(self.of.skin_cm) > LONGEST;
        let [there, back] = self.bits[b as usize];
        let is_plain = there | back == 0 && !limits.heights;
        let quiet_cm = if is_plain { quiet_cm(&link_of, least2, most2) } else { 0 };
        Some(Duo { there, back, a, b, link, quiet_cm, exact })
    }

    /// The link of two classes and its number; `None` if neither sees the other.
    #[inline(never)]
    fn link(&mut self, classes: (u16, u16)) -> Option<(u32, Known)> {
        if let Some(number) = self.by_classes.get(&classes) {
            return number.map(|number| (number, self.known(self.found.links[number as usize])));
        }
        let link = Link::of(self.view.classes, classes.0, classes.1);
        let sees = link.there.is_some() || link.back.is_some();
        if self.by_classes.len() >= LINKS {
            return sees.then(|| (RARE, self.known(link)));
        }
        let number = sees.then(|| {
            self.found.links.push(link);
            (self.found.links.len() - 1) as u32
        });
        self.by_classes.insert(classes, number);
        number.map(|number| (number, self.known(link)))
    }

    fn known(&self, of: Link) -> Known {
        Known { of, limits: Limits::of(&of, self.of.skin_cm) }
    }
}

impl Limits {
    fn of(link: &Link, skin_cm: i32) -> Limits {
        let both = || link.there.into_iter().chain(link.back);
        let slack = 2 * i64::from(skin_cm);
        let square = |cm: i64| cm * cm;
        let heights = both().any(|radii| radii.height_cm.is_some());
        let inside = both().map(|r| i64::from(r.enter_cm) - slack).min().filter(|_| !heights);
        let beyond = both().map(|r| i64::from(r.leave_cm) + slack).max();
        Limits {
            inside2: inside.filter(|cm| *cm >= 0).map_or(-1, square),
            beyond2: beyond.map_or(0, square),
            heights,
        }
    }
}

/// The distance, in centimetres, by which entities of two clusters may move until a pair can change.
/// All distances are between the roots of `least2` and `most2` now, and pairs are shown exactly where
/// they are within the enter radius.
#[inline]
fn quiet_cm(link: &Link, least2: i64, most2: i64) -> u16 {
    let gap = |radii: Radii| {
        let (enter, leave) = (i64::from(radii.enter_cm), i64::from(radii.leave_cm));
        if most2 <= enter * enter {
            // Rounded up.
            leave - (most2 as f64).sqrt() as i64 - 1
        } else if least2 <= enter * enter {
            0
        } else {
            (least2 as f64).sqrt() as i64 - enter
        }
    };
    let gap = link.there.into_iter().chain(link.back).map(gap).min().unwrap_or(0);
    // Both move, and two centimetres are for rounding.
    u16::try_from(((gap - 2) / 2).max(0)).unwrap_or(u16::MAX)
}

/// Least and largest squared distance of two rectangles, and the largest along an axis.
#[inline]
fn distances(a: &[i32; 4], b: &[i32; 4]) -> (i64, i64, i64) {
    let along = |axis: usize| {
        let [a0, a1, b0, b1] = [a[axis], a[axis + 2], b[axis], b[axis + 2]].map(i64::from);
        ((b0 - a1).max(a0 - b1).max(0), (b1 - a0).max(a1 - b0))
    };
    let ((gap_x, far_x), (gap_z, far_z)) = (along(0), along(1));
    (gap_x * gap_x + gap_z * gap_z, far_x * far_x + far_z * far_z, far_x.max(far_z))
}
