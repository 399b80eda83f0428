//! Building clusters anew, from the positions of now and the pairs that are shown in a shell.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::lanes::{LONGEST, Lanes};
use super::{Cell, Cluster, Clusters, Duo, GROUP, LOOSE, Link, NO_SEAT, NOBODY, Seat, Sights};
use super::{Radii, View, share};
use crate::scene::Pos;

/// Clusters whose neighbourhoods are worth a thread.
const LEAST: usize = 200;

/// Smallest side of a cell, centimetres.
const LEAST_SIDE_CM: i32 = 1_000;

/// A pair of slots that is shown although it is not within the enter radius.
#[derive(Debug, Clone, Copy)]
pub struct Carried {
    pub observer: u32,
    pub subject: u32,
}

/// The bit of a carried pair, and the pair of clusters that it belongs to.
#[derive(Debug, Clone, Copy)]
struct Bit {
    a: u32,
    b: u32,
    bit: u8,
    /// The observer is in the first cluster.
    is_there: bool,
}

/// A pair of clusters stays constant if its largest distance squared is at most `inside2`, or its
/// least one more than `beyond2`.
#[derive(Debug, Clone, Copy)]
struct Limits {
    inside2: i64,
    beyond2: i64,
    heights: bool,
}

/// What a thread has found for its clusters.
#[derive(Debug, Default)]
struct Found {
    duos: Vec<Duo>,
    /// Number of pairs per cluster.
    counts: Vec<u32>,
    links: Vec<Link>,
}

impl Clusters {
    pub fn rebuild(&mut self, view: View) {
        let carried = self.gather(view);
        self.lay_out(view.classes.most_cm());
        self.loose.clear();
        self.reached2 = 0;
        self.seat_all(view);
        let carried = self.by_first(&carried);
        self.pair_all(view, &carried);
    }

    /// Fits skin and cells to the longest leave radius. There must be no clusters, or new ones.
    pub fn lay_out(&mut self, most_cm: i32) {
        self.skin_cm = (most_cm / 12).max(16);
        let long = self.longest_side() / 65_535 + 1;
        self.side_cm = (most_cm + 2 * self.skin_cm + 2).max(LEAST_SIDE_CM).max(long);
    }

    fn longest_side(&self) -> i32 {
        let g = self.ground;
        g.x1.abs_diff(g.x0).max(g.z1.abs_diff(g.z0)) as i32
    }

    /// All pairs that are shown in the shell between the radii.
    fn gather(&mut self, view: View) -> Vec<Carried> {
        let Clusters { duos, links, lanes, clusters, loose, .. } = self;
        let sights = Sights { links, lanes, clusters, states: view.states };
        let parts = share((view.threads, super::LEAST), duos, |_, part| {
            let mut carried = Vec::new();
            part.iter().for_each(|duo| sights.carried(duo, &mut carried));
            carried
        });
        let mut carried = parts.concat();
        let mut keep = |observer: u32, subject: u32| {
            let (a, b) = (&view.states[observer as usize], &view.states[subject as usize]);
            let height = a.pos.y.abs_diff(b.pos.y);
            let is_inside = super::radii(view.classes, a.class, b.class)
                .is_some_and(|radii| radii.holds(a.pos.dist2(b.pos), height, false));
            if !is_inside {
                carried.push(Carried { observer, subject });
            }
        };
        for one in loose.iter() {
            one.sees.iter().for_each(|subject| keep(one.slot, *subject));
            one.seen_by.iter().for_each(|observer| keep(*observer, one.slot));
        }
        carried
    }

    /// Puts every entity into a cluster.
    fn seat_all(&mut self, view: View) {
        let mut order: Vec<(u64, u64)> = Vec::with_capacity(self.seats.len());
        for (slot, state) in view.states.iter().enumerate() {
            if state.class != NOBODY {
                order.push((self.key_of(state), u64::from(state.class) << 32 | slot as u64));
            }
        }
        order.sort_unstable();
        self.seats.fill(NO_SEAT);
        self.clusters.clear();
        self.lanes.clear();
        self.cells.clear();
        let mut slots: Vec<u32> = Vec::new();
        for cell in order.chunk_by(|a, b| a.0 == b.0) {
            self.cells.push(Cell { key: cell[0].0, first: self.clusters.len() as u32 });
            for class in cell.chunk_by(|a, b| a.1 >> 32 == b.1 >> 32) {
                slots.clear();
                slots.extend(class.iter().map(|(_, slot)| *slot as u32));
                self.split((class[0].1 >> 32) as u16, &mut slots, view);
            }
        }
    }

    /// Makes clusters of entities of one cell and class, by halves along the longer axis.
    fn split(&mut self, class: u16, slots: &mut [u32], view: View) {
        let pos = |slot: &u32| view.states[*slot as usize].pos;
        let bounds = bounds(slots.iter().map(pos));
        if slots.len() <= GROUP {
            self.make(class, slots, bounds, view);
            return;
        }
        let middle = slots.len().div_ceil(2 * GROUP) * GROUP;
        let [x0, z0, x1, z1] = bounds;
        if x1.abs_diff(x0) > z1.abs_diff(z0) {
            slots.select_nth_unstable_by_key(middle, |slot| (pos(slot).x, *slot));
        } else {
            slots.select_nth_unstable_by_key(middle, |slot| (pos(slot).z, *slot));
        }
        let (one, other) = slots.split_at_mut(middle);
        self.split(class, one, view);
        self.split(class, other, view);
    }

    fn make(&mut self, class: u16, slots: &[u32], bounds: [i32; 4], view: View) {
        let (mut lanes, mut seats) = (Lanes::default(), [slots[0]; GROUP]);
        let first = (self.clusters.len() * GROUP) as u32;
        for (lane, seat) in seats.iter_mut().enumerate() {
            // Lanes without an entity repeat the first one.
            *seat = slots.get(lane).copied().unwrap_or(slots[0]);
            let pos = view.states[*seat as usize].pos;
            lanes.set(lane, pos);
            if lane < slots.len() {
                self.seats[*seat as usize] = Seat { x: pos.x, z: pos.z, lane: first + lane as u32 };
            }
        }
        let live = ((1_u16 << slots.len()) - 1) as u8;
        let cell = (self.cells.len() - 1) as u32;
        self.clusters.push(Cluster { slots: seats, class, live, cell, bounds });
        self.lanes.push(lanes);
    }

    /// The carried pairs as bits, sorted by their first cluster, and where each cluster's begin.
    fn by_first(&self, carried: &[Carried]) -> (Vec<Bit>, Vec<u32>) {
        let bits: Vec<Bit> = carried.iter().filter_map(|one| self.bit(*one)).collect();
        let mut starts = vec![0; self.clusters.len() + 2];
        bits.iter().for_each(|bit| starts[bit.a as usize + 2] += 1);
        for at in 2..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut sorted = bits.clone();
        for bit in bits {
            let next = &mut starts[bit.a as usize + 1];
            sorted[*next as usize] = bit;
            *next += 1;
        }
        (sorted, starts)
    }

    fn bit(&self, Carried { observer, subject }: Carried) -> Option<Bit> {
        let lanes = [observer, subject].map(|slot| self.seats[slot as usize].lane);
        if lanes.contains(&LOOSE) {
            return None;
        }
        let is_there = lanes[0] < lanes[1];
        let (a, b) = (lanes[0].min(lanes[1]), lanes[0].max(lanes[1]));
        let group = GROUP as u32;
        let bit = (group * (b % group) + a % group) as u8;
        Some(Bit { a: a / group, b: b / group, bit, is_there })
    }

    /// Finds the pairs of clusters that may change.
    fn pair_all(&mut self, view: View, carried: &(Vec<Bit>, Vec<u32>)) {
        let mut all: Vec<u32> = (0..self.clusters.len() as u32).collect();
        let this = &*self;
        let parts = share((view.threads, LEAST), &mut all, |_, part| {
            Pairing::new(this, view).run(part, carried)
        });
        self.duos.clear();
        self.links.clear();
        self.duo_starts.clear();
        self.duo_starts.push(0);
        let mut end = 0;
        for part in parts {
            let base = self.links.len() as u32;
            self.links.extend(part.links);
            self.duos.extend(part.duos.iter().map(|duo| Duo { link: duo.link + base, ..*duo }));
            for count in part.counts {
                end += count;
                self.duo_starts.push(end);
            }
        }
    }
}

/// One thread's search for pairs.
struct Pairing<'a> {
    of: &'a Clusters,
    view: View<'a>,
    found: Found,
    limits: Vec<Limits>,
    by_classes: FxHashMap<(u16, u16), Option<u32>>,
    last: ((u16, u16), Option<u32>),
    /// Carried bits of the cluster in hand, by the other cluster.
    bits: Vec<[u64; 2]>,
}

impl<'a> Pairing<'a> {
    fn new(of: &'a Clusters, view: View<'a>) -> Pairing<'a> {
        Pairing {
            of,
            view,
            found: Found::default(),
            limits: Vec::new(),
            by_classes: FxHashMap::default(),
            last: ((NOBODY, NOBODY), None),
            bits: vec![[0; 2]; of.clusters.len()],
        }
    }

    fn run(mut self, clusters: &[u32], carried: &(Vec<Bit>, Vec<u32>)) -> Found {
        for &a in clusters {
            let bits = carried.1[a as usize] as usize..carried.1[a as usize + 1] as usize;
            for bit in &carried.0[bits.clone()] {
                self.bits[bit.b as usize][usize::from(!bit.is_there)] |= 1 << bit.bit;
            }
            let before = self.found.duos.len();
            self.neighbours(a);
            self.found.counts.push((self.found.duos.len() - before) as u32);
            carried.0[bits].iter().for_each(|bit| self.bits[bit.b as usize] = [0; 2]);
        }
        self.found
    }

    /// Visits the clusters from `a` on in the cells around it.
    fn neighbours(&mut self, a: u32) {
        let of = self.of;
        let key = of.cells[of.clusters[a as usize].cell as usize].key;
        of.around(key, 1, |range: Range<u32>| {
            for b in range.start.max(a)..range.end {
                self.pair(a, b);
            }
        });
    }

    #[inline]
    fn pair(&mut self, a: u32, b: u32) {
        let (one, other) = (&self.of.clusters[a as usize], &self.of.clusters[b as usize]);
        let classes = (one.class, other.class);
        let link = if self.last.0 == classes { self.last.1 } else { self.link(classes) };
        let Some(link) = link else { return };
        let limits = self.limits[link as usize];
        let (least2, most2, longest) = distances(&one.bounds, &other.bounds);
        if least2 > limits.beyond2 || most2 <= limits.inside2 {
            return;
        }
        let exact = limits.heights || longest + 2 * i64::from(self.of.skin_cm) > LONGEST;
        let mut duo = Duo { a, b, there: 0, back: 0, link, exact, quiet2: 0 };
        let sights = Sights {
            links: &self.found.links,
            lanes: &self.of.lanes,
            clusters: &self.of.clusters,
            states: self.view.states,
        };
        let [there, back] = sights.both(&duo);
        let carried = self.bits[b as usize];
        (duo.there, duo.back) = (there[0] | carried[0], back[0] | carried[1]);
        if carried == [0; 2] && !limits.heights {
            duo.quiet2 = quiet2(self.found.links[link as usize], least2, most2);
        }
        self.found.duos.push(duo);
    }

    /// The number of the link of two classes; `None` if neither sees the other.
    #[inline(never)]
    fn link(&mut self, classes: (u16, u16)) -> Option<u32> {
        let number = match self.by_classes.get(&classes) {
            Some(number) => *number,
            None => {
                let link = Link::of(self.view.classes, classes.0, classes.1);
                let sees = link.there.is_some() || link.back.is_some();
                let number = sees.then(|| {
                    self.found.links.push(link);
                    self.limits.push(Limits::of(link, self.of.skin_cm));
                    (self.limits.len() - 1) as u32
                });
                self.by_classes.insert(classes, number);
                number
            }
        };
        self.last = (classes, number);
        number
    }
}

impl Limits {
    fn of(link: Link, skin_cm: i32) -> Limits {
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

/// The square of the distance, in square centimetres, by which entities of two clusters may move
/// until a pair can change. All distances are between the roots of `least2` and `most2` now, and
/// pairs are shown exactly where they are within the enter radius.
fn quiet2(link: Link, least2: i64, most2: i64) -> i64 {
    let (least, most) = ((least2 as f64).sqrt() as i64, (most2 as f64).sqrt() as i64 + 1);
    let gap = |radii: Radii| {
        let (enter, leave) = (i64::from(radii.enter_cm), i64::from(radii.leave_cm));
        if most <= enter { leave - most } else { least - enter }
    };
    let gap = link.there.into_iter().chain(link.back).map(gap).min().unwrap_or(0);
    // Both move, and two centimetres are for rounding.
    ((gap - 2) / 2).max(0).pow(2)
}

fn bounds(places: impl Iterator<Item = Pos>) -> [i32; 4] {
    places.fold([i32::MAX, i32::MAX, i32::MIN, i32::MIN], |[x0, z0, x1, z1], p| {
        [x0.min(p.x), z0.min(p.z), x1.max(p.x), z1.max(p.z)]
    })
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
