//! After a repair the lists are the greedy ones of what players and ghosts say by then.

use std::collections::BTreeMap;

use super::*;

/// What a ghost says between two repairs.
#[derive(Debug, Clone)]
enum Said {
    /// It refuses the link with the player of this number among those that it has.
    No(usize),
    /// It accepts up to so many centimetres more or less.
    Accepts(i64),
    /// It asks the player of this number.
    Yes(usize),
}

/// A crowd within a tick.
struct Repaired {
    crowd: Crowd,
    /// What was linked when the tick began, and counts as nearer.
    kept: BTreeSet<Link>,
    links: BTreeSet<Link>,
    /// Pairs of which the ghost has said NO last.
    owed: BTreeSet<Link>,
}

/// Two players, the one with the lower index first.
type Link = (usize, usize);

fn link(a: usize, b: usize) -> Link {
    (a.min(b), a.max(b))
}

impl Repaired {
    fn rank(&self, pair: Link) -> Option<u64> {
        self.crowd.rank_of(pair.0, pair.1, self.kept.contains(&pair))
    }

    fn key(&self, pair: Link) -> Option<Key> {
        self.crowd.key(pair, self.kept.contains(&pair))
    }

    fn is_ghost(&self, ix: usize) -> bool {
        self.crowd.is_ghost(ix)
    }

    fn of(&self, ix: usize) -> Vec<Link> {
        self.links.iter().copied().filter(|(a, b)| *a == ix || *b == ix).collect()
    }

    fn greedy(&self) -> BTreeSet<Link> {
        self.crowd.greedy(&self.kept, &self.links, |pair| !self.owed.contains(pair))
    }

    /// The list of a player has changed, or the threshold of a ghost: the least threshold since the last repair.
    fn note(&self, ix: usize, changed: &mut BTreeMap<usize, Key>) {
        let links = self.of(ix);
        let is_full = links.len() >= self.crowd.cap(ix);
        let worst = links.into_iter().filter_map(|pair| self.key(pair)).max();
        let now = worst.filter(|_| is_full && !self.is_ghost(ix)).unwrap_or(Key::WORST);
        let least = changed.entry(ix).or_insert(Key::WORST);
        *least = now.min(*least);
    }

    /// A ghost says something. Gives the players whose lists, and the ghosts whose thresholds, have changed.
    fn hear(&mut self, ghost: usize, said: &Said, changed: &mut BTreeMap<usize, Key>) {
        let count = self.crowd.figures.len();
        match *said {
            Said::No(nth) => {
                let links = self.of(ghost);
                if let Some(pair) = links.get(nth % links.len().max(1)) {
                    self.links.remove(pair);
                    self.owed.insert(*pair);
                    self.note(pair.0 + pair.1 - ghost, changed);
                }
            }
            Said::Accepts(by) => {
                let accepts = &mut self.crowd.figures[ghost].ghost;
                *accepts = accepts.map(|rank| rank.saturating_add_signed(by));
                self.note(ghost, changed);
            }
            Said::Yes(player) => {
                let (player, pair) = (player % count, link(player % count, ghost));
                let Some(key) = self.key(pair).filter(|_| !self.is_ghost(player)) else { return };
                let links = self.of(player);
                let worst = links.iter().map(|pair| (self.key(*pair), *pair)).max();
                let is_full = links.len() >= self.crowd.cap(player);
                if links.contains(&pair) || (is_full && worst.is_some_and(|w| Some(key) > w.0)) {
                    return;
                }
                if let Some((_, worst)) = worst.filter(|_| is_full) {
                    self.links.remove(&worst);
                    let other = worst.0 + worst.1 - player;
                    if !self.is_ghost(other) {
                        self.note(other, changed);
                    }
                }
                self.owed.remove(&pair);
                self.links.insert(pair);
                self.note(player, changed);
            }
        }
    }

    /// The pairs of a player that may come to be linked.
    fn unlisted(&self, ix: usize) -> Vec<(usize, u64)> {
        let open = |other: &usize| {
            let pair = link(ix, *other);
            let known = self.links.contains(&pair) || self.owed.contains(&pair);
            !known && *other != ix && !(self.is_ghost(ix) && self.is_ghost(*other))
        };
        let others = (0..self.crowd.figures.len()).filter(open);
        others.filter_map(|other| Some((other, self.rank(link(ix, other))?))).collect()
    }

    /// Ghosts that were asked have said YES: what they displace leaves.
    fn answer(&mut self) -> BTreeMap<usize, Key> {
        let mut changed = BTreeMap::new();
        for ix in (0..self.crowd.figures.len()).filter(|ix| !self.is_ghost(*ix)).collect::<Vec<_>>()
        {
            let mut links = self.of(ix);
            links.sort_by_key(|pair| self.key(*pair));
            for pair in links.into_iter().skip(self.crowd.cap(ix)) {
                self.links.remove(&pair);
                changed.insert(ix, Key::WORST);
                if !self.is_ghost(pair.0 + pair.1 - ix) {
                    changed.insert(pair.0 + pair.1 - ix, Key::WORST);
                }
            }
        }
        changed
    }

    fn repair(&mut self, matcher: &mut Matcher, changed: &BTreeMap<usize, Key>) {
        matcher.begin_repair();
        for (ix, least) in changed.iter().map(|(ix, least)| (*ix, *least)) {
            if let Some(accepts) = self.crowd.figures[ix].ghost {
                matcher.accept_up_to(ix as u32, accepts);
                continue;
            }
            let entry = |pair: Link| ((pair.0 + pair.1 - ix) as u32, self.rank(pair).unwrap());
            let mut links = self.of(ix);
            links.sort_by_key(|pair| self.key(*pair));
            matcher.relist(ix as u32, least, links.into_iter().map(entry));
        }
        for ghost in changed.keys().copied().filter(|ix| self.is_ghost(*ix)) {
            for (player, rank) in self.unlisted(ghost) {
                matcher.propose(player as u32, ghost as u32, rank);
            }
        }
        matcher.repair(self);
        apply(matcher, &mut self.links);
    }
}

impl Pairs for Repaired {
    fn rank(&self, a: u32, b: u32, d2: u64) -> Option<u64> {
        let owed = self.owed.contains(&link(a as usize, b as usize));
        if owed { None } else { Pairs::rank(&self.crowd, a, b, d2) }
    }

    fn others(&self, of: u32, found: &mut Vec<(u32, u64)>) {
        let of = of as usize;
        let is_other = |(other, _): &(usize, u64)| {
            self.kept.contains(&link(of, *other)) || self.crowd.class(of, *other) != NO_BOND
        };
        let others = self.unlisted(of).into_iter().filter(is_other);
        found.extend(others.map(|(other, rank)| (other as u32, rank)));
    }

    fn bounds(&self, of: u32) -> Option<Bounds> {
        self.crowd.bounds(of)
    }
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        3 => (0..60_usize).prop_map(Said::No),
        2 => (-400..400_i64).prop_map(Said::Accepts),
        3 => (0..60_usize).prop_map(Said::Yes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn repaired_lists_are_the_greedy_ones(
        figures in (1..100_i32, 1..300_i32).prop_flat_map(|(cells, grain)| figures(60, cells * grain, grain)),
        cap in prop_oneof![1..8_usize, Just(60)],
        margin_cm in prop_oneof![Just(0), 1..300_u32],
        enter_cm in prop::option::of(100..12_000_u32),
        patch_cm in prop::option::of(50..6_000),
        step in prop::collection::vec((0..60_usize, (-300..300, -300..300)), 0..40),
        rounds in prop::collection::vec(
            prop::collection::vec((0..60_usize, said()), 0..12), 1..5),
    ) {
        let rules = ViewRules::new(cap, margin_cm);
        let mut crowd = Crowd { figures, rules, enter_cm, patch_cm };
        let (mut matcher, count) = (Matcher::default(), crowd.figures.len());
        let kept = crowd.matched(&mut matcher, &BTreeSet::new());
        for (who, by) in &step {
            let at = &mut crowd.figures[who % count].at;
            *at = (at.0.saturating_add(by.0), at.1.saturating_add(by.1));
        }
        let links = crowd.matched(&mut matcher, &kept);
        let ghosts: Vec<_> = (0..count).filter(|ix| crowd.figures[*ix].ghost.is_some()).collect();
        let mut all = Repaired { crowd, kept, links, owed: BTreeSet::new() };
        for round in rounds {
            let mut changed = BTreeMap::new();
            for (nth, said) in &round {
                if let Some(ghost) = ghosts.get(nth % ghosts.len().max(1)) {
                    all.hear(*ghost, said, &mut changed);
                }
            }
            let (mut wanted, mut gave_way) = (all.greedy(), false);
            while !changed.is_empty() {
                all.repair(&mut matcher, &changed);
                changed = all.answer();
                gave_way |= !changed.is_empty();
            }
            if gave_way {
                // A player that has room only since a ghost has answered may have refused another ghost before, which
                // does not ask again.
                wanted = all.greedy();
            }
            prop_assert_eq!(&all.links, &wanted);
            all.crowd.thresholds_hold(&matcher, &all.links, &all.kept);
        }
    }
}

#[test]
fn a_player_whose_list_was_full_in_between_looks_at_what_it_refused_then() {
    let rules = ViewRules::new(2, 0);
    let cap = ViewCap::SCENE;
    let figure = |id, x, ghost| Figure { id, at: (x, 0), party: 0, ghost, searches: false, cap };
    let far = figure(2, 1_000, Some(u64::MAX));
    let figures = vec![figure(1, 0, None), far, figure(3, 500, Some(0)), figure(4, 600, Some(0))];
    let crowd = Crowd { figures, rules, enter_cm: None, patch_cm: None };
    let mut matcher = Matcher::default();
    let links = crowd.matched(&mut matcher, &BTreeSet::new());
    assert_eq!(links, BTreeSet::from([(0, 1)]));
    let (kept, owed) = (BTreeSet::new(), BTreeSet::new());
    let (mut all, mut changed) = (Repaired { crowd, kept, links, owed }, BTreeMap::new());
    // Two near ones displace the far one, and the first of them changes its mind.
    for (ghost, said) in [(2, Said::Yes(0)), (3, Said::Yes(0)), (2, Said::No(0))] {
        all.hear(ghost, &said, &mut changed);
    }
    assert_eq!(all.links, BTreeSet::from([(0, 3)]));
    all.repair(&mut matcher, &changed);
    assert_eq!(all.links, BTreeSet::from([(0, 1), (0, 3)]));
}
