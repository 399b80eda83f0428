//! The quality of lists of any method, by true distances.

use purview::scene::Pos;
use serde::Serialize;

use super::classic::PATCH_CM;
use super::lists::Lists;

/// The number of nearest players whose presence in the list is measured.
const NEAREST: usize = 20;

/// How good lists were.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Good {
    /// Mean length of a list.
    pub listed: f64,
    /// Blocking pairs, mean: in range, and would both rather see each other than the worst they have.
    pub blocking: f64,
    /// Of these, such as would by more than the margin.
    pub beyond_margin: f64,
    /// Mean distance of listed players, metres.
    pub distance_m: f64,
    /// The share of the 20 nearest players in range that are listed, 0 to 1.
    pub nearest_seen: f64,
}

/// Which players are in range of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// 5 x 5 patches of 32 m.
    Patches,
    /// A circle of this radius, centimetres.
    Circle(i32),
}

impl Range {
    fn has(self, a: Pos, b: Pos, d2: u64) -> bool {
        match self {
            Range::Patches => {
                let apart = |a: i32, b: i32| (a / PATCH_CM).abs_diff(b / PATCH_CM);
                apart(a.x, b.x).max(apart(a.z, b.z)) <= 2
            }
            Range::Circle(cm) => d2 <= (i64::from(cm) * i64::from(cm)) as u64,
        }
    }
}

/// Compares two pairs: distance minus margin, then ids; smaller is better.
type Key = (i64, u32, u32);

fn key(cm: i64, a: u32, b: u32) -> Key {
    (cm, a.min(b), a.max(b))
}

fn cm(d2: u64) -> i64 {
    d2.isqrt() as i64
}

/// The sums over several measurements.
#[derive(Debug, Default)]
pub struct Quality {
    cap: usize,
    margin_cm: i64,
    measurements: u64,
    blocking: u64,
    beyond_margin: u64,
    entries: u64,
    players: u64,
    sum_cm: u64,
    near: u64,
    near_seen: u64,
    around: Vec<(u64, u32)>,
}

impl Quality {
    /// Measures lists with a capacity of `cap`, made with this margin.
    pub fn new(cap: usize, margin_cm: i32) -> Quality {
        Quality { cap, margin_cm: margin_cm.into(), ..Quality::default() }
    }

    /// Measures lists, given all positions.
    pub fn measure(&mut self, places: &[Pos], lists: &Lists, range: Range) {
        self.measurements += 1;
        self.players += lists.players() as u64;
        for (list, at) in lists.iter().zip(places) {
            self.entries += list.len() as u64;
            let sum: i64 = list.iter().map(|o| cm(at.dist2(places[*o as usize]))).sum();
            self.sum_cm += sum as u64;
        }
        let worst = |margin| -> Vec<Option<Key>> {
            (0..lists.players()).map(|i| self.worst(places, lists, i, margin)).collect()
        };
        let (plain, calm) = (worst(0), worst(self.margin_cm));
        for a in 0..lists.players() as u32 {
            self.measure_player(a, places, lists, range, (&plain, &calm));
        }
    }

    /// The worst key in the list of player `i`, whose entries count as nearer by the margin; `None` if there is room.
    fn worst(&self, places: &[Pos], lists: &Lists, i: usize, margin: i64) -> Option<Key> {
        let list = lists.of(i);
        let keys = list.iter().map(|o| {
            let d2 = places[i].dist2(places[*o as usize]);
            key(cm(d2) - margin, i as u32, *o)
        });
        if list.len() < self.cap { None } else { keys.max() }
    }

    fn measure_player(
        &mut self,
        a: u32,
        places: &[Pos],
        lists: &Lists,
        range: Range,
        (plain, calm): (&[Option<Key>], &[Option<Key>]),
    ) {
        let at = places[a as usize];
        self.around.clear();
        for b in 0..lists.players() as u32 {
            let d2 = at.dist2(places[b as usize]);
            if b == a || !range.has(at, places[b as usize], d2) {
                continue;
            }
            self.around.push((d2, b));
            // Each pair once.
            if b < a || (lists.has(a, b) && lists.has(b, a)) {
                continue;
            }
            let key = key(cm(d2), a, b);
            let wanted = |worst: &[Option<Key>]| {
                let wants = |by: u32| worst[by as usize].is_none_or(|worst| key < worst);
                wants(a) && wants(b)
            };
            self.blocking += u64::from(wanted(plain));
            self.beyond_margin += u64::from(wanted(calm));
        }
        let nearest = NEAREST.min(self.around.len());
        if nearest > 0 {
            self.around.select_nth_unstable(nearest - 1);
        }
        let seen = self.around[..nearest].iter().filter(|(_, b)| lists.has(a, *b)).count();
        self.near += nearest as u64;
        self.near_seen += seen as u64;
    }

    /// The means over all measurements. The share of the 20 nearest is 1 if no player is in range.
    pub fn sum_up(&self) -> Good {
        let mean = |sum: u64, of: u64| sum as f64 / of.max(1) as f64;
        Good {
            listed: mean(self.entries, self.players),
            blocking: mean(self.blocking, self.measurements),
            beyond_margin: mean(self.beyond_margin, self.measurements),
            distance_m: mean(self.sum_cm, self.entries) / 100.0,
            nearest_seen: if self.near == 0 { 1.0 } else { mean(self.near_seen, self.near) },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Directly by the definition: each list entry by itself, without shortcuts.
    fn blocking(
        places: &[Pos],
        links: &BTreeSet<(u32, u32)>,
        range: impl Fn(Pos, Pos) -> bool,
        (cap, margin): (usize, f64),
    ) -> u64 {
        let apart = |a: u32, b: u32| {
            let (p, q) = (places[a as usize], places[b as usize]);
            f64::from(p.x - q.x).hypot(f64::from(p.z - q.z)).floor()
        };
        let n = places.len() as u32;
        let list = |a: u32| (0..n).filter(move |b| links.contains(&(a.min(*b), a.max(*b))));
        let rather = |a: u32, b: u32| {
            list(a).count() < cap
                || list(a).any(|c| {
                    let (have, want) = (apart(a, c) - margin, apart(a, b));
                    want < have || (want == have && (a.min(b), a.max(b)) < (a.min(c), a.max(c)))
                })
        };
        let mut found = 0;
        for a in 0..n {
            for b in a + 1..n {
                let in_range = range(places[a as usize], places[b as usize]);
                let apart = !links.contains(&(a, b));
                found += u64::from(in_range && apart && rather(a, b) && rather(b, a));
            }
        }
        found
    }

    fn lists(n: u32, links: &BTreeSet<(u32, u32)>) -> Lists {
        let mut lists = Lists::default();
        let of = |a: u32| (0..n).filter(move |b| links.contains(&(a.min(*b), a.max(*b))));
        lists.copy((0..n).map(of));
        lists
    }

    proptest! {
        #[test]
        fn blocking_pairs_match_the_definition(
            // A coarse grid, so that equal distances are common.
            at in prop::collection::vec((0..40i32, 0..40i32), 2..14),
            wanted in prop::collection::vec((0..14u32, 0..14u32), 0..60),
            (cap, margin) in (1..5usize, 0..3i32),
        ) {
            let places: Vec<_> = at.iter().map(|(x, z)| Pos::ground(x * 400, z * 400)).collect();
            let n = places.len() as u32;
            let mut links = BTreeSet::new();
            for (a, b) in wanted.into_iter().filter(|(a, b)| a < b && *b < n) {
                let full = |v: u32| {
                    links.iter().filter(|(p, q): &&(u32, u32)| *p == v || *q == v).count() >= cap
                };
                if !full(a) && !full(b) {
                    links.insert((a, b));
                }
            }
            let lists = lists(n, &links);
            let circle = |p: Pos, q: Pos| p.dist2(q) <= 8_000 * 8_000;
            let patches = |p: Pos, q: Pos| {
                (p.x / 3_200 - q.x / 3_200).abs() <= 2 && (p.z / 3_200 - q.z / 3_200).abs() <= 2
            };
            let margin_cm = margin * 400;
            let mut found = Quality::new(cap, margin_cm);
            found.measure(&places, &lists, Range::Circle(8_000));
            let margin = f64::from(margin_cm);
            prop_assert_eq!(found.blocking, blocking(&places, &links, circle, (cap, 0.0)));
            prop_assert_eq!(found.beyond_margin, blocking(&places, &links, circle, (cap, margin)));
            let mut found = Quality::new(cap, margin_cm);
            found.measure(&places, &lists, Range::Patches);
            prop_assert_eq!(found.blocking, blocking(&places, &links, patches, (cap, 0.0)));
        }
    }

    #[test]
    fn two_measurements_give_their_mean() {
        let places = [0, 300, 1_000].map(|x| Pos::ground(x, 0));
        let mut found = Quality::new(1, 0);
        // 0 and 1 would prefer each other to 2.
        found.measure(&places, &lists(3, &[(1, 2)].into()), Range::Circle(8_000));
        found.measure(&places, &lists(3, &[(0, 1)].into()), Range::Circle(8_000));
        let good = found.sum_up();
        assert_eq!((good.blocking, good.beyond_margin), (0.5, 0.5));
        assert_eq!((good.listed, good.distance_m), (2.0 / 3.0, 5.0));
        // Each player has two others in range, and lists one or none.
        assert_eq!(good.nearest_seen, 4.0 / 12.0);
    }

    #[test]
    fn only_the_twenty_nearest_count() {
        let places: Vec<_> = (0..40).map(|i| Pos::ground(i * 100, 0)).collect();
        let mut found = Quality::new(60, 0);
        let mut all = Lists::default();
        // The first player lists those at 1 to 15 m and from 25 m on.
        let first: Vec<u32> = (1..16).chain(25..40).collect();
        all.copy((0..40).map(|i| if i == 0 { first.clone() } else { Vec::new() }));
        found.measure(&places, &all, Range::Circle(8_000));
        assert_eq!((found.near, found.near_seen), (40 * 20, 15));
    }
}
