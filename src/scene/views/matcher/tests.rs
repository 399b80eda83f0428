mod messages;
mod repairs;

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::scene::geo::{dist_cm, dist2};
use crate::scene::views::NO_BOND;
use crate::scene::workers::{Backwards, LEAST_PLAYERS, OneThread, parts};

/// A player of a random crowd.
#[derive(Debug, Clone)]
struct Figure {
    id: u64,
    at: (i32, i32),
    /// Players with equal parties other than 0 are companions.
    party: u8,
    /// A player of another region, and the rank up to which it accepts.
    ghost: Option<u64>,
    searches: bool,
    /// Most entries that its client has asked for.
    cap: ViewCap,
}

/// A crowd whose pairs are in range up to a radius, and for longer where they are linked.
struct Crowd {
    figures: Vec<Figure>,
    rules: ViewRules,
    enter_cm: Option<u32>,
    /// Side of patches: those that are not companions are in range in neighbouring patches only.
    patch_cm: Option<i32>,
}

impl Crowd {
    fn d2(&self, a: usize, b: usize) -> u64 {
        let (a, b) = (self.figures[a].at, self.figures[b].at);
        dist2(a.0, a.1, b.0, b.1)
    }

    fn cap(&self, ix: usize) -> usize {
        self.figures[ix].cap.within(self.rules.cap)
    }

    fn class(&self, a: usize, b: usize) -> u8 {
        let (a, b) = (self.figures[a].party, self.figures[b].party);
        if a == b && a != 0 { a } else { NO_BOND }
    }

    fn within(&self, d2: u64, more_cm: u32) -> bool {
        self.enter_cm.is_none_or(|enter| d2 <= u64::from(enter + more_cm).pow(2))
    }

    fn rank_of(&self, a: usize, b: usize, kept: bool) -> Option<u64> {
        let d2 = self.d2(a, b);
        let rank = self.rules.rank(self.class(a, b), dist_cm(d2), kept);
        let inside = self.within(d2, if kept { 500 } else { 0 });
        (inside && (kept || self.are_neighbours(a, b))).then_some(rank)
    }

    fn are_neighbours(&self, a: usize, b: usize) -> bool {
        let Some(side) = self.patch_cm else { return true };
        let (at, there) = (self.figures[a].at, self.figures[b].at);
        let near = |a: i32, b: i32| a.div_euclid(side).abs_diff(b.div_euclid(side)) <= 1;
        self.class(a, b) != NO_BOND || (near(at.0, there.0) && near(at.1, there.1))
    }

    fn is_ghost(&self, ix: usize) -> bool {
        self.figures[ix].ghost.is_some()
    }

    fn key(&self, (a, b): (usize, usize), kept: bool) -> Option<Key> {
        let id = |ix: usize| EntityId(self.figures[ix].id);
        Some(Key::of(self.rank_of(a, b, kept)?, id(a), id(b)))
    }

    /// Decides all pairs that count, but those of two ghosts, best first: what was linked when the tick began counts as
    /// nearer, and ghosts have accepted what stands.
    fn greedy(
        &self,
        kept: &BTreeSet<(usize, usize)>,
        stands: &BTreeSet<(usize, usize)>,
        counts: impl Fn(&(usize, usize)) -> bool,
    ) -> BTreeSet<(usize, usize)> {
        let count = self.figures.len();
        let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        let pairs = pairs.filter(|(a, b)| !(self.is_ghost(*a) && self.is_ghost(*b)));
        let key = |pair| Some((self.key(pair, kept.contains(&pair))?, pair));
        let mut keys: Vec<_> = pairs.filter(counts).filter_map(key).collect();
        keys.sort();
        let mut taken = vec![0; count];
        let mut links = BTreeSet::new();
        for (key, (a, b)) in keys {
            let standing = stands.contains(&(a, b));
            let fits = |ix: usize| match self.figures[ix].ghost {
                Some(accepts) => standing || key.rank <= accepts,
                None => taken[ix] < self.cap(ix),
            };
            if fits(a) && fits(b) {
                (taken[a], taken[b]) = (taken[a] + 1, taken[b] + 1);
                links.insert((a, b));
            }
        }
        links
    }

    /// The same by the matcher; checks what it says has changed.
    fn matched(
        &self,
        matcher: &mut Matcher,
        kept: &BTreeSet<(usize, usize)>,
    ) -> BTreeSet<(usize, usize)> {
        matcher.begin(&self.rules);
        for f in &self.figures {
            match f.ghost {
                Some(accepts) => matcher.add_ghost((EntityId(f.id), f.cap), f.at, accepts),
                None => matcher.add((EntityId(f.id), f.cap), f.at, f.searches),
            };
        }
        let kept: BTreeSet<_> =
            kept.iter().copied().filter(|(a, b)| self.rank_of(*a, *b, true).is_some()).collect();
        let links = |of: usize| {
            let both = kept.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
            let partners = both.filter(move |(me, _)| *me == of).map(|(_, with)| with);
            partners.map(move |with| (with as u32, self.rank_of(of, with, true).unwrap()))
        };
        let workers = Backwards(1 + self.figures.len() % 3);
        let mut parts = vec![(); parts(&workers, self.figures.len(), LEAST_PLAYERS)];
        matcher.link_all(&workers, &mut parts, |(), of, list| {
            if self.figures[of as usize].ghost.is_none() {
                list.link(links(of as usize));
            }
        });
        self.propose_companions(matcher, &kept);
        matcher.run(self.enter_cm, self, &workers);
        let mut links = kept;
        apply(matcher, &mut links);
        links
    }

    fn propose_companions(&self, matcher: &mut Matcher, kept: &BTreeSet<(usize, usize)>) {
        let count = self.figures.len();
        let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        for (a, b) in pairs.filter(|pair| !kept.contains(pair)) {
            let ghosts = self.is_ghost(a) && self.is_ghost(b);
            let rank = self.rank_of(a, b, false);
            if let Some(rank) = rank.filter(|_| self.class(a, b) != NO_BOND && !ghosts) {
                matcher.propose(a as u32, b as u32, rank);
            }
        }
    }

    fn thresholds_hold(
        &self,
        matcher: &Matcher,
        links: &BTreeSet<(usize, usize)>,
        margin: &BTreeSet<(usize, usize)>,
    ) {
        for (ix, f) in self.figures.iter().enumerate().filter(|(_, f)| f.ghost.is_none()) {
            let my_yes = links.iter().filter(|(a, b)| *a == ix || *b == ix);
            let keys = my_yes.map(|pair| {
                let rank = self.rank_of(pair.0, pair.1, margin.contains(pair)).unwrap();
                let other = if pair.0 == ix { pair.1 } else { pair.0 };
                Key::of(rank, EntityId(f.id), EntityId(self.figures[other].id))
            });
            let keys: Vec<_> = keys.collect();
            let full = keys.len() >= self.cap(ix);
            let worst = keys.iter().max().copied().filter(|_| full).unwrap_or(Key::WORST);
            assert_eq!(matcher.threshold(ix as u32), worst);
        }
    }
}

/// Applies what a matcher says has changed.
fn apply(matcher: &Matcher, links: &mut BTreeSet<(usize, usize)>) {
    let pair = |(a, b): &(u32, u32)| ((*a).min(*b) as usize, (*a).max(*b) as usize);
    for left in matcher.left() {
        assert!(links.remove(&pair(left)), "{left:?} left, and was not there");
    }
    for entered in matcher.entered() {
        assert!(links.insert(pair(entered)), "{entered:?} entered, and was there");
    }
}

impl Pairs for Crowd {
    fn rank(&self, a: u32, b: u32, d2: u64) -> Option<u64> {
        let (a, b) = (a as usize, b as usize);
        assert_eq!(d2, self.d2(a, b));
        let ghosts = self.is_ghost(a) && self.is_ghost(b);
        self.rank_of(a, b, false).filter(|_| !ghosts)
    }

    fn bounds(&self, of: u32) -> Option<Bounds> {
        let (side, figure) = (self.patch_cm?, &self.figures[of as usize]);
        let along = |at: i32| {
            let patch = at.div_euclid(side);
            ((patch - 1).saturating_mul(side), (patch + 2).saturating_mul(side).saturating_sub(1))
        };
        (figure.party == 0).then(|| (along(figure.at.0), along(figure.at.1)))
    }
}

fn figures(count: usize, span: i32, grain: i32) -> impl Strategy<Value = Vec<Figure>> {
    let base = ViewRules::new(1, 0).rank(NO_BOND, 0, false);
    let ghost = prop_oneof![
        6 => Just(None),
        1 => Just(Some(u64::MAX)),
        1 => (0..span as u64).prop_map(move |cm| Some(base + cm)),
        1 => Just(Some(0)),
    ];
    let party = prop_oneof![5 => Just(0_u8), 1 => 1..4_u8];
    let at = (0..=span / grain, 0..=span / grain).prop_map(move |(x, z)| (x * grain, z * grain));
    let cap = prop_oneof![3 => Just(0), 1 => 1..9_u16].prop_map(ViewCap::new);
    let figure = (at, party, ghost, any::<bool>(), cap);
    prop::collection::vec(figure, 2..count)
        .prop_flat_map(|all| {
            let ids: Vec<u64> = (1..=all.len() as u64).collect();
            (Just(all), Just(ids).prop_shuffle())
        })
        .prop_map(|(all, ids)| {
            let figure = |((at, party, ghost, searches, cap), id)| Figure {
                id,
                at,
                party,
                ghost,
                searches,
                cap,
            };
            all.into_iter().zip(ids).map(figure).collect()
        })
}

/// How far a player goes.
type Step = (usize, (i32, i32));

/// Players walk, teleport and come and go; each step's lists must be the greedy ones.
fn history(crowd: &mut Crowd, steps: &[Vec<Step>], matcher: &mut Matcher) {
    let mut links = BTreeSet::new();
    for step in [&[][..]].into_iter().chain(steps.iter().map(Vec::as_slice)) {
        for (who, by) in step {
            let count = crowd.figures.len();
            let at = &mut crowd.figures[who % count].at;
            *at = (at.0.saturating_add(by.0), at.1.saturating_add(by.1));
        }
        let wanted = crowd.greedy(&links, &links, |_| true);
        let found = crowd.matched(matcher, &links);
        assert_eq!(found, wanted);
        crowd.thresholds_hold(matcher, &found, &links);
        links = found;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_lists_are_the_greedy_ones(
        figures in (1..100_i32, 1..300_i32).prop_flat_map(|(cells, grain)| figures(60, cells * grain, grain)),
        cap in prop_oneof![1..8_usize, Just(60), Just(1_000)],
        margin_cm in prop_oneof![Just(0), 1..300_u32],
        enter_cm in prop::option::of(100..12_000_u32),
        patch_cm in prop::option::of(50..6_000),
        steps in prop::collection::vec(
            prop::collection::vec((0..60_usize, (-300..300, -300..300)), 0..40), 0..6),
    ) {
        let rules = ViewRules::new(cap, margin_cm);
        history(&mut Crowd { figures, rules, enter_cm, patch_cm }, &steps, &mut Matcher::default());
    }
}

#[test]
fn the_extremes_of_the_map_are_no_exception() {
    let far = [i32::MIN, i32::MIN + 1, -1, 0, 7, i32::MAX - 1, i32::MAX];
    let places = far.iter().flat_map(|x| far.iter().map(move |z| (*x, *z)));
    let figure = |(n, at)| Figure {
        id: n as u64 + 1,
        at,
        party: 0,
        ghost: None,
        searches: n % 2 == 0,
        cap: ViewCap::SCENE,
    };
    let figures: Vec<_> = places.enumerate().map(figure).collect();
    for cap in [1, 5, 100] {
        let rules = ViewRules::new(cap, 100);
        let mut crowd = Crowd { figures: figures.clone(), rules, enter_cm: None, patch_cm: None };
        history(&mut crowd, &[vec![(3, (5, 5)), (9, (1 << 30, 0))]], &mut Matcher::default());
    }
}

#[test]
fn a_request_that_is_on_its_way_takes_a_place_on_one_side_only() {
    let rules = ViewRules::new(1, 0);
    let cap = ViewCap::SCENE;
    let figure = |id, x| Figure { id, at: (x, 0), party: 0, ghost: None, searches: false, cap };
    let figures = vec![figure(1, 0), figure(2, 30), figure(3, 40)];
    let crowd = Crowd { figures, rules, enter_cm: None, patch_cm: None };
    let mut matcher = Matcher::default();
    matcher.begin(&rules);
    for f in &crowd.figures {
        matcher.add((EntityId(f.id), f.cap), f.at, false);
    }
    // The first has asked the second, which does not know it yet and goes with the third.
    matcher.link_all(&OneThread, &mut [()], |(), of, list| {
        let asked = (1, crowd.rank_of(0, 1, false).unwrap());
        list.link((of == 0).then_some(asked).into_iter());
    });
    matcher.run(None, &crowd, &OneThread);
    assert_eq!((matcher.entered(), matcher.left()), (&[(1, 2)][..], &[][..]));
}

#[test]
fn nobody_and_one_alone_have_empty_lists() {
    let rules = ViewRules::new(3, 0);
    let crowd = Crowd { figures: Vec::new(), rules, enter_cm: Some(100), patch_cm: None };
    let mut matcher = Matcher::default();
    matcher.begin(&rules);
    matcher.run(None, &crowd, &OneThread);
    assert!(matcher.is_empty());
    matcher.add((EntityId(9), ViewCap::SCENE), (5, 5), true);
    matcher.run(Some(100), &crowd, &OneThread);
    assert_eq!((matcher.len(), matcher.threshold(0)), (1, Key::WORST));
    assert!(matcher.entered().is_empty() && matcher.left().is_empty());
}
