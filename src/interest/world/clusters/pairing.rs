//! Finding the pairs of clusters that may change, stripe by stripe.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::lanes::{self, LONGEST, Test, Work};
use super::sights::{Carried, Duo, Link, Sights};
use super::{Clusters, GROUP, LOOSE, NOBODY, Radii, Stripe, View, each};

/// Most stripes: more than threads, so that threads have about the same work.
pub const STRIPES: usize = if cfg!(test) { 4 } else { 64 };

/// Least clusters of a stripe.
const LEAST: usize = if cfg!(test) { 1 } else { 32 };

/// Links that a stripe keeps. Worlds with more are rare; the rest is computed when it is needed.
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

impl Clusters {
    /// Finds the pairs of clusters that may change.
    pub fn pair_all(&mut self, (view, is_much): (View, bool), mut carried: Vec<Vec<Carried>>) {
        let count = self.clusters.len();
        self.stripe_len = count.div_ceil(STRIPES).max(LEAST) as u32;
        let mut stripes: Vec<u32> = (0..count.div_ceil(self.stripe_len as usize) as u32).collect();
        let (this, threads) = (&*self, (view.workers, is_much));
        let bits = each(threads, &mut carried, |_, part| this.by_stripe(part, stripes.len()));
        let all = each(threads, &mut stripes, |_, stripe| {
            let of_stripe = bits.iter().flat_map(|part| &part[*stripe as usize]);
            let mut carried: Vec<Bit> = of_stripe.copied().collect();
            carried.sort_unstable();
            let first = *stripe * this.stripe_len;
            let clusters = first..(first + this.stripe_len).min(count as u32);
            lanes::run(Pairing::new(this, view, &carried, clusters))
        });
        self.stripes = all;
    }

    /// Carried pairs as bits, by the stripe of their first cluster.
    fn by_stripe(&self, carried: &[Carried], stripes: usize) -> Vec<Vec<Bit>> {
        let mut bits = vec![Vec::new(); stripes];
        for bit in carried.iter().filter_map(|one| self.carried(*one)) {
            bits[(bit.clusters()[0] / self.stripe_len) as usize].push(bit);
        }
        bits
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
}

/// The search for the pairs of a stripe.
struct Pairing<'a> {
    of: &'a Clusters,
    view: View<'a>,
    /// Sorted, and those of clusters in hand or behind.
    carried: &'a [Bit],
    clusters: Range<u32>,
    found: Stripe,
    by_classes: FxHashMap<(u16, u16), Option<u32>>,
    last: ((u16, u16), Option<(u32, Known)>),
}

impl Work for Pairing<'_> {
    type Output = Stripe;

    /// Pairs each cluster with itself and those behind it.
    #[inline(always)]
    fn run(mut self, test: impl Test) -> Stripe {
        let rings = self.of.wide_rings(self.view.classes);
        let (mut behind, mut place) = (Vec::new(), None);
        for a in self.clusters.clone() {
            let cluster = &self.of.clusters[a as usize];
            if place != Some((cluster.cell, cluster.class)) {
                place = Some((cluster.cell, cluster.class));
                let is_wide = self.of.is_wide(self.view.classes, cluster.class);
                let key = self.of.cells[cluster.cell as usize].key;
                self.of.behind((key, is_wide), rings, &mut behind);
            }
            self.pair_one(a, &behind, test);
        }
        self.found.duos.shrink_to_fit();
        self.found
    }
}

impl<'a> Pairing<'a> {
    fn new(of: &'a Clusters, view: View<'a>, carried: &'a [Bit], clusters: Range<u32>) -> Self {
        let last = ((NOBODY, NOBODY), None);
        let (found, by_classes) = (Stripe::default(), FxHashMap::default());
        Pairing { of, view, carried, clusters, found, by_classes, last }
    }

    /// Pairs a cluster with others, which come in ascending order.
    #[inline(always)]
    fn pair_one(&mut self, a: u32, others: &[Range<u32>], test: impl Test) {
        for b in others.iter().flat_map(|range| range.start.max(a)..range.end) {
            let carried = self.take_carried(a, b);
            if let Some(mut duo) = self.duo((a, b), carried) {
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
        self.found.ends.push(self.found.duos.len() as u32);
    }

    /// The carried bits of two clusters. Clusters must come in ascending order.
    #[inline]
    fn take_carried(&mut self, a: u32, b: u32) -> [u64; 2] {
        let mut bits = [0; 2];
        while let Some((first, behind)) = self.carried.split_first()
            && first.clusters() <= [a, b]
        {
            if first.clusters() == [a, b] {
                let masks = first.masks();
                bits = [bits[0] | masks[0], bits[1] | masks[1]];
            }
            self.carried = behind;
        }
        bits
    }

    /// Two clusters, with the carried bits, if their pairs may change.
    #[inline]
    fn duo(&mut self, (a, b): (u32, u32), [there, back]: [u64; 2]) -> Option<Duo> {
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
