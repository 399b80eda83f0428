//! Lists with a cap: what entities see that can see each other, by the matcher of view lists.
//!
//! The lists of the tick before are the only state. A tick first ends the pairs that are no longer
//! in range. Then the matcher computes the lists of each plane anew, starting from those.

use super::bonds::Bonds;
use super::changes::{Change, Changes, Found, Room};
use super::classes::{Classes, NOBODY};
use super::rules::{Cap, Mode, Reach};
use super::share::share;
use super::{State, View};
use crate::scene::geo::dist_cm;
use crate::scene::views::matcher::{Matcher, Pairs};
use crate::scene::views::{NO_BOND, ViewRules};
use crate::scene::workers;
use crate::scene::{EntityId, Rect, ViewCap};

/// Bytes of an entity in lists and groups, without its pairs.
const LIST_BYTES: usize = 512;

/// Lists that are worth a thread.
const LEAST: usize = 256;

/// The lists of a world, and the bonds that rank them.
#[derive(Debug)]
pub struct Lists {
    rules: ViewRules,
    pub bonds: Bonds,
    /// By slot.
    lists: Vec<Vec<u32>>,
    matcher: Matcher,
    /// Plane and slot of each entity, by plane.
    members: Vec<(i32, u32)>,
    /// Slots of the plane in hand.
    slots: Vec<u32>,
    /// Their indices in it, by slot.
    indices: Vec<u32>,
    /// Pairs that only one entity saw, and that are in range now.
    known: Vec<Change>,
}

impl Clone for Lists {
    /// Buffers are not copied.
    fn clone(&self) -> Lists {
        Lists {
            rules: self.rules,
            bonds: self.bonds.clone(),
            lists: self.lists.clone(),
            ..Lists::of(self.rules)
        }
    }
}

/// Who is in range of whom.
#[derive(Clone, Copy)]
struct Ranges<'a> {
    states: &'a [State],
    classes: &'a Classes,
    ground: Rect,
    /// `None`: not by patches.
    patch_cm: Option<u32>,
}

impl<'a> Ranges<'a> {
    fn new(view: View<'a>) -> Ranges<'a> {
        let rules = view.classes.rules();
        let patch_cm = match rules.mode {
            Mode::Patches { patch_cm } => Some(patch_cm.unsigned_abs()),
            Mode::Circle | Mode::All => None,
        };
        Ranges { states: view.states, classes: view.classes, ground: rules.ground, patch_cm }
    }

    /// The number of patches between two positions.
    fn ring(&self, a: &State, b: &State) -> u32 {
        let patch_cm = self.patch_cm.unwrap_or(u32::MAX);
        let apart = |a: i32, b: i32, from: i32| {
            (a.abs_diff(from) / patch_cm).abs_diff(b.abs_diff(from) / patch_cm)
        };
        let (x, z) = (self.ground.x0, self.ground.z0);
        apart(a.pos.x, b.pos.x, x).max(apart(a.pos.z, b.pos.z, z))
    }

    /// Whether two entities are in range, at a squared distance. `listed`: they were listed.
    #[inline]
    fn holds(&self, a: u32, b: u32, d2: u64, listed: bool) -> bool {
        let (a, b) = (&self.states[a as usize], &self.states[b as usize]);
        let Some(both) = self.classes.mutual(a.class, b.class) else { return false };
        both.iter().all(|reach| match reach {
            Reach::Circle(radii) => radii.holds(d2, a.pos.y.abs_diff(b.pos.y), listed),
            Reach::Rings(rings) => rings.has_ring(self.ring(a, b)),
            Reach::All => true,
        })
    }

    fn d2(&self, a: u32, b: u32) -> u64 {
        self.states[a as usize].pos.dist2(self.states[b as usize].pos)
    }

    /// Whether a listed pair stays in range.
    fn keeps(&self, a: u32, b: u32) -> bool {
        let (one, other) = (&self.states[a as usize], &self.states[b as usize]);
        let is_here = one.class != NOBODY && other.class != NOBODY && one.plane == other.plane;
        is_here && self.holds(a, b, self.d2(a, b), true)
    }

    /// The largest distance at which a pair that is not listed is in range; `None`: any.
    fn farthest(&self) -> Option<u32> {
        let side = |cm: u32| (u64::from(cm) * 3 * 1_415 / 1_000 + 1).min(u64::from(u32::MAX - 1));
        match self.classes.rules().mode {
            Mode::Patches { patch_cm } => Some(side(patch_cm.unsigned_abs()) as u32),
            Mode::Circle => Some(self.classes.most_enter_cm().unsigned_abs()),
            Mode::All => None,
        }
    }
}

/// The pairs of the plane in hand.
struct PlanePairs<'a> {
    ranges: Ranges<'a>,
    rules: &'a ViewRules,
    bonds: &'a Bonds,
    slots: &'a [u32],
}

impl Pairs for PlanePairs<'_> {
    #[inline]
    fn rank(&self, a: u32, b: u32, d2: u64) -> Option<u64> {
        let (a, b) = (self.slots[a as usize], self.slots[b as usize]);
        let class = || self.bonds.strongest(a, b);
        let in_range = self.ranges.holds(a, b, d2, false);
        in_range.then(|| self.rules.rank(class(), dist_cm(d2), false))
    }
}

impl Lists {
    pub fn new(cap: Cap) -> Lists {
        Lists::of(ViewRules::new(usize::from(cap.most), cap.margin_cm))
    }

    fn of(rules: ViewRules) -> Lists {
        Lists {
            rules,
            bonds: Bonds::default(),
            lists: Vec::new(),
            matcher: Matcher::default(),
            members: Vec::new(),
            slots: Vec::new(),
            indices: Vec::new(),
            known: Vec::new(),
        }
    }

    /// The list of an entity.
    pub fn of_slot(&self, slot: u32) -> &[u32] {
        self.lists.get(slot as usize).map_or(&[], Vec::as_slice)
    }

    /// All lists, by slot.
    pub fn all(&self) -> &[Vec<u32>] {
        &self.lists
    }

    /// Bytes of lists and of what computes them.
    pub fn bytes(&self) -> usize {
        self.lists.len() * LIST_BYTES
    }

    /// Finds what changes in lists after what has changed for pairs that are in none.
    pub fn tick(&mut self, view: View, changes: &mut Changes) {
        let ranges = Ranges::new(view);
        self.find_known(ranges, changes);
        self.lists.resize_with(view.states.len(), Vec::new);
        self.indices.resize(view.states.len(), 0);
        self.end_pairs(ranges, view, changes);
        self.find_members(view.states);
        let farthest = ranges.farthest();
        let mut done = 0;
        while let Some((plane, _)) = self.members.get(done).copied() {
            let count = self.members[done..].iter().take_while(|(p, _)| *p == plane).count();
            self.gather(done..done + count);
            if count > 1 {
                self.add_lists(ranges, view);
                self.propose_bonded(ranges, plane);
                self.propose_known(ranges, plane);
                let Lists { rules, bonds, slots, matcher, .. } = self;
                let pairs = PlanePairs { ranges, rules, bonds, slots };
                matcher.run(farthest, &pairs, view.workers);
                self.commit(changes);
            }
            done += count;
        }
    }

    /// Ends the pairs that are out of range. Each side finds them in its own list.
    fn end_pairs(&mut self, ranges: Ranges, view: View, changes: &mut Changes) {
        let room = Room::new(usize::MAX);
        let parts = share((view.workers, LEAST), &mut self.lists, |first, lists| {
            let mut ended = Found::new(&room);
            for (observer, list) in (first as u32..).zip(lists) {
                list.retain(|&subject| {
                    let keeps = ranges.keeps(observer, subject);
                    if !keeps {
                        ended.push(Change::new(observer, subject, false));
                    }
                    keeps
                });
            }
            ended
        });
        parts.into_iter().for_each(|part| changes.add(part));
    }

    fn find_members(&mut self, states: &[State]) {
        self.members.clear();
        for (slot, state) in states.iter().enumerate().filter(|(_, s)| s.class != NOBODY) {
            self.members.push((state.plane, slot as u32));
        }
        let is_sorted = self.members.is_sorted_by_key(|(plane, _)| *plane);
        if !is_sorted {
            self.members.sort_unstable();
        }
    }

    /// Begins with the entities of a plane.
    fn gather(&mut self, members: std::ops::Range<usize>) {
        self.matcher.begin(&self.rules);
        self.slots.clear();
        self.slots.extend(self.members[members].iter().map(|(_, slot)| *slot));
        for (ix, slot) in self.slots.iter().enumerate() {
            self.indices[*slot as usize] = ix as u32;
        }
    }

    /// Tells the matcher the entities and what they list.
    fn add_lists(&mut self, ranges: Ranges, view: View) {
        let Lists { matcher, slots, indices, lists, rules, bonds, .. } = self;
        for slot in slots.iter() {
            let (pos, listed) = (ranges.states[*slot as usize].pos, lists[*slot as usize].len());
            let searches = listed == 0 || listed >= rules.cap;
            let id = (EntityId(view.ids[*slot as usize]), ViewCap::SCENE);
            matcher.add(id, (pos.x, pos.z), searches);
        }
        let (slots, indices, lists) = (&*slots, &*indices, &*lists);
        let mut parts = vec![(); workers::parts(view.workers, slots.len(), LEAST)];
        matcher.link_all(view.workers, &mut parts, |(), ix, list| {
            let slot = slots[ix as usize];
            let entry = |other: &u32| {
                let distance = dist_cm(ranges.d2(slot, *other));
                let rank = rules.rank(bonds.strongest(slot, *other), distance, true);
                (indices[*other as usize], rank)
            };
            list.link(lists[slot as usize].iter().map(entry));
        });
    }

    /// Proposes bonded pairs, which the matcher looks for no farther than other pairs.
    fn propose_bonded(&mut self, ranges: Ranges, plane: i32) {
        let Lists { matcher, indices, lists, rules, bonds, .. } = self;
        let is_here = |slot: u32| ranges.states[slot as usize].plane == plane;
        for group in bonds.groups() {
            for (i, a) in group.iter().copied().enumerate().filter(|(_, a)| is_here(*a)) {
                for b in group[i + 1..].iter().copied().filter(|b| is_here(*b)) {
                    let d2 = ranges.d2(a, b);
                    let is_new = !lists[a as usize].contains(&b);
                    if is_new && ranges.holds(a, b, d2, false) {
                        let rank = rules.rank(bonds.strongest(a, b), dist_cm(d2), false);
                        matcher.propose(indices[a as usize], indices[b as usize], rank);
                    }
                }
            }
        }
    }

    /// Finds pairs that one entity saw and that both can see now: they count as known.
    fn find_known(&mut self, ranges: Ranges, changes: &Changes) {
        let is_known = |change: &Change| {
            let (observer, subject) = (change.observer(), change.subject());
            !change.appears() && ranges.keeps(observer, subject)
        };
        self.known = changes.iter().filter(is_known).collect();
    }

    /// Proposes pairs that one entity saw: they are in range up to the leave radius.
    fn propose_known(&mut self, ranges: Ranges, plane: i32) {
        let Lists { matcher, indices, lists, rules, bonds, known, .. } = self;
        for change in known.iter() {
            let (a, b) = (change.observer(), change.subject());
            let is_here = ranges.states[a as usize].plane == plane;
            if is_here && !lists[a as usize].contains(&b) {
                let rank = rules.rank(bonds.strongest(a, b), dist_cm(ranges.d2(a, b)), false);
                matcher.propose(indices[a as usize], indices[b as usize], rank);
            }
        }
    }

    /// Makes the lists follow the matcher.
    fn commit(&mut self, changes: &mut Changes) {
        let Lists { matcher, slots, lists, .. } = self;
        let room = Room::new(usize::MAX);
        let mut found = Found::new(&room);
        let ends = |(a, b): &(u32, u32)| [(*a, *b), (*b, *a)];
        for (of, with) in matcher.left().iter().flat_map(ends) {
            let (observer, subject) = (slots[of as usize], slots[with as usize]);
            lists[observer as usize].retain(|other| *other != subject);
            found.push(Change::new(observer, subject, false));
        }
        for (of, with) in matcher.entered().iter().flat_map(ends) {
            let (observer, subject) = (slots[of as usize], slots[with as usize]);
            lists[observer as usize].push(subject);
            found.push(Change::new(observer, subject, true));
        }
        changes.add(found);
    }

    /// Makes the lists what they were before a tick that has made these changes.
    pub fn undo(&mut self, changes: &[Change]) {
        for change in changes.iter().rev() {
            let list = &mut self.lists[change.observer() as usize];
            match change.appears() {
                true => list.retain(|other| *other != change.subject()),
                false => list.push(change.subject()),
            }
        }
    }
}

/// The class of pairs without a bond ranks behind all bonds.
const _: () = assert!(NO_BOND as usize >= super::request::BONDS);
