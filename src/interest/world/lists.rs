//! Lists with a cap: what entities see that can see each other, by the matcher of view lists.
//!
//! A tick first ends the pairs that are no longer in range. Then the matcher computes lists anew,
//! starting from those of the tick before.
//!
//! Lists are stable: of two entities that are in range and not listed, at least one has only better
//! entries. The margin makes listed pairs better, and so keeps that true. So only those can change that
//! have changed themselves (the *dirty* ones), those whose worst entry has become worse, and whoever they
//! displace. The matcher gets these with lists. Entities around them are what players of other regions
//! are in a scene: each accepts pairs that are better than its worst entry. Where it would take one, it
//! gets a list, too, and the matcher begins again.

mod ranges;

use rustc_hash::{FxHashMap, FxHashSet};

use self::ranges::{ListingPairs, Ranges};
use super::bonds::Bonds;
use super::changes::{Change, Changes, Found, Room};
use super::classes::NOBODY;
use super::rules::Cap;
use super::share::share_range;
use super::{State, View};
use crate::scene::Pos;
use crate::scene::geo::dist_cm;
use crate::scene::views::matcher::Matcher;
use crate::scene::views::{Key, NO_BOND, ViewRules};
use crate::scene::workers;
use crate::scene::{EntityId, ViewCap};

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
    /// Entities that have changed since the last tick, each once.
    dirty: Vec<u32>,
    /// By slot, how it has changed, and where it was when the last tick ended.
    past: Vec<Past>,
    matcher: Matcher,
    /// Plane and slot of each entity, by plane.
    members: Vec<(i32, u32)>,
    /// Slots of the plane in hand that the matcher knows: those with lists come first.
    slots: Vec<u32>,
    /// How many have lists.
    listing: usize,
    /// Their indices, by slot; [`ABSENT`]: the matcher does not know it.
    indices: Vec<u32>,
    /// Pairs that only one entity saw, and that are in range now: with their squared distances.
    known: Vec<(Change, u64)>,
}

/// Not known to the matcher.
const ABSENT: u32 = u32::MAX;

/// Of so many entities of a plane more than one gets a list: all get one.
const FEW: usize = if cfg!(test) { 1 } else { 64 };

/// Where one of so many entities of a plane is near those that get lists, all get one: to know what an entity accepts
/// takes nearly as long as to make its list.
const CROWDED: usize = if cfg!(test) { 1 } else { 4 };

/// What is remembered of an entity.
#[derive(Debug, Clone, Copy, Default)]
struct Past {
    pos: Pos,
    is_dirty: bool,
    /// Its bonds have changed, or those of its companions with it.
    has_other_bonds: bool,
}

impl Clone for Lists {
    /// Buffers are not copied.
    fn clone(&self) -> Lists {
        Lists {
            rules: self.rules,
            bonds: self.bonds.clone(),
            lists: self.lists.clone(),
            dirty: self.dirty.clone(),
            past: self.past.clone(),
            ..Lists::of(self.rules)
        }
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
            dirty: Vec::new(),
            past: Vec::new(),
            matcher: Matcher::default(),
            members: Vec::new(),
            slots: Vec::new(),
            listing: 0,
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

    /// For tests: how many entities of the last plane got lists anew.
    #[cfg(test)]
    pub fn listed_anew(&self) -> usize {
        self.listing
    }

    /// An entity has changed in any way.
    #[inline]
    pub fn touch(&mut self, slot: u32) {
        if slot as usize >= self.past.len() {
            self.past.resize(slot as usize + 1, Past::default());
        }
        if !std::mem::replace(&mut self.past[slot as usize].is_dirty, true) {
            self.dirty.push(slot);
        }
    }

    /// Makes an entity a member of a group; returns whether the group has room.
    pub fn set_bond(&mut self, slot: u32, strength: u8, group: u64) -> bool {
        let before = self.bonds.of(slot)[usize::from(strength)];
        let is_member = self.bonds.set(slot, strength, group);
        if is_member && before != group {
            self.touch(slot);
            self.past[slot as usize].has_other_bonds = true;
        }
        is_member
    }

    /// Finds what changes in lists after what has changed for pairs that are in none.
    /// [`Lists::commit`] or [`Lists::undo`] must follow.
    pub fn tick(&mut self, view: View, changes: &mut Changes) {
        self.listing = 0;
        if self.dirty.is_empty() {
            return;
        }
        let ranges = &Ranges::new(view);
        self.find_known(ranges, changes);
        self.lists.resize_with(view.states.len(), Vec::new);
        self.indices.resize(view.states.len(), ABSENT);
        let mut unsettled = self.end_pairs(ranges, view, changes);
        unsettled.retain(|slot| view.states[*slot as usize].class != NOBODY);
        unsettled.sort_unstable_by_key(|slot| (view.states[*slot as usize].plane, *slot));
        unsettled.dedup();
        self.find_members(view.states);
        let planes =
            |a: &u32, b: &u32| view.states[*a as usize].plane == view.states[*b as usize].plane;
        for of_plane in unsettled.chunk_by(planes) {
            self.match_plane(of_plane.to_vec(), ranges, view, changes);
        }
    }

    /// The tick has ended.
    pub fn commit(&mut self, states: &[State]) {
        for slot in self.dirty.drain(..) {
            let pos = states[slot as usize].pos;
            self.past[slot as usize] = Past { pos, ..Past::default() };
        }
    }

    /// Ends the pairs of changed entities that are out of range. Returns the entities that need a list:
    /// the changed ones, and those whose worst entry has become worse.
    fn end_pairs(&mut self, ranges: &Ranges, view: View, changes: &mut Changes) -> Vec<u32> {
        let mut unsettled = self.dirty.clone();
        let room = Room::new(usize::MAX);
        let mut ended = Found::new(&room);
        // What the partners of changed entities had as their worst entries, before any pair ends.
        let partners = self.dirty.iter().flat_map(|slot| &self.lists[*slot as usize]).copied();
        let mut partners: Vec<u32> =
            partners.filter(|slot| !self.past[*slot as usize].is_dirty).collect();
        partners.sort_unstable();
        partners.dedup();
        let worst = |lists: &Lists, slot: u32, is_past: bool| lists.worst(view, slot, is_past);
        let before: Vec<Key> = partners.iter().map(|slot| worst(self, *slot, true)).collect();
        let (this, dirty) = (&*self, &self.dirty);
        let parts = share_range((view.workers, LEAST), dirty.len(), |range| {
            let pairs = dirty[range]
                .iter()
                .flat_map(|slot| this.lists[*slot as usize].iter().map(|other| (*slot, *other)));
            // Of two changed entities the first one's list tells.
            let is_told = |(a, b): &(u32, u32)| a < b || !this.past[*b as usize].is_dirty;
            let ends = |(a, b): &(u32, u32)| !ranges.keeps(*a, *b);
            pairs.filter(is_told).filter(ends).collect::<Vec<_>>()
        });
        for (a, b) in parts.concat() {
            for (observer, subject) in [(a, b), (b, a)] {
                self.lists[observer as usize].retain(|other| *other != subject);
                ended.push(Change::new(observer, subject, false));
            }
        }
        changes.add(ended);
        let is_worse = |(slot, before): &(u32, Key)| worst(self, *slot, false) > *before;
        let worse = partners.into_iter().zip(before).filter(is_worse);
        unsettled.extend(worse.map(|(slot, _)| slot));
        unsettled
    }

    /// The worst entry of a list; [`Key::WORST`] if there is room. `is_past`: as the last tick left it.
    fn worst(&self, view: View, slot: u32, is_past: bool) -> Key {
        let list = &self.lists[slot as usize];
        if list.len() < self.rules.cap {
            return Key::WORST;
        }
        let pos = |slot: u32| match self.past.get(slot as usize) {
            Some(past) if is_past => past.pos,
            _ => view.states[slot as usize].pos,
        };
        let id = |slot: u32| EntityId(view.ids[slot as usize]);
        let key = |other: &u32| {
            let has_other_bonds = self.past[*other as usize].has_other_bonds;
            if is_past && has_other_bonds {
                // Its rank is not known any more. The least key makes every list worse.
                return Key::of(0, EntityId(0), EntityId(0));
            }
            let class = self.bonds.strongest(slot, *other);
            let distance = dist_cm(pos(slot).dist2(pos(*other)));
            Key::of(self.rules.rank(class, distance, true), id(slot), id(*other))
        };
        list.iter().map(key).max().unwrap_or(Key::WORST)
    }

    /// Computes the lists of entities of a plane, and of those that they displace.
    fn match_plane(
        &mut self,
        mut unsettled: Vec<u32>,
        ranges: &Ranges,
        view: View,
        changes: &mut Changes,
    ) {
        let plane = view.states[unsettled[0] as usize].plane;
        let mut worst = FxHashMap::default();
        if self.members_of(plane).len() < 2 {
            return;
        }
        loop {
            let members = self.members_of(plane);
            let all = |lists: &Lists| -> Vec<u32> {
                lists.members[members.clone()].iter().map(|(_, slot)| *slot).collect()
            };
            if FEW * unsettled.len() >= members.len() {
                unsettled = all(self);
            }
            self.gather(&unsettled, plane, ranges);
            if self.listing < members.len() && CROWDED * self.slots.len() > members.len() {
                unsettled = all(self);
                self.gather(&unsettled, plane, ranges);
            }
            self.add_lists(ranges, view, &mut worst);
            self.propose_bonded(ranges);
            self.propose_known();
            let Lists { rules, bonds, slots, listing, matcher, .. } = self;
            let pairs = ListingPairs { ranges, rules, bonds, slots, listing: *listing };
            matcher.run(ranges.farthest(), &pairs, view.workers);
            let displaced = self.displaced();
            if displaced.is_empty() {
                break;
            }
            unsettled.extend(displaced);
        }
        self.commit_lists(changes);
        self.slots.iter().for_each(|slot| self.indices[*slot as usize] = ABSENT);
    }

    /// Entities without a list that would get or lose an entry.
    fn displaced(&self) -> Vec<u32> {
        let pairs = self.matcher.left().iter().chain(self.matcher.entered());
        let others = pairs.flat_map(|(a, b)| [*a, *b]).filter(|ix| *ix as usize >= self.listing);
        let mut slots: Vec<u32> = others.map(|ix| self.slots[ix as usize]).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    fn members_of(&self, plane: i32) -> std::ops::Range<usize> {
        let from = self.members.partition_point(|(of, _)| *of < plane);
        from..from + self.members[from..].partition_point(|(of, _)| *of == plane)
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

    /// Begins with entities that get lists, and those around them.
    fn gather(&mut self, unsettled: &[u32], plane: i32, ranges: &Ranges) {
        self.matcher.begin(&self.rules);
        self.slots.iter().for_each(|slot| self.indices[*slot as usize] = ABSENT);
        self.slots.clear();
        self.slots.extend_from_slice(unsettled);
        self.listing = unsettled.len();
        for (ix, slot) in self.slots.iter().enumerate() {
            self.indices[*slot as usize] = ix as u32;
        }
        let members = self.members_of(plane);
        if members.len() == self.listing {
            return;
        }
        let span = ranges.span_cm();
        let cell = |slot: u32| {
            let pos = ranges.states[slot as usize].pos;
            (i64::from(pos.x).div_euclid(span), i64::from(pos.z).div_euclid(span))
        };
        let near: FxHashSet<(i64, i64)> = unsettled.iter().map(|slot| cell(*slot)).collect();
        let is_near = |(x, z): (i64, i64)| {
            (-1..=1).any(|dx| (-1..=1).any(|dz| near.contains(&(x + dx, z + dz))))
        };
        for (_, slot) in &self.members[members] {
            if self.indices[*slot as usize] == ABSENT && is_near(cell(*slot)) {
                self.indices[*slot as usize] = self.slots.len() as u32;
                self.slots.push(*slot);
            }
        }
    }

    /// Tells the matcher the entities and what they list. `worst`: the ranks of the worst entries of
    /// entities without lists, as far as they are known.
    fn add_lists(&mut self, ranges: &Ranges, view: View, worst: &mut FxHashMap<u32, u64>) {
        for ix in 0..self.slots.len() {
            let slot = self.slots[ix];
            let pos = ranges.states[slot as usize].pos;
            let id = (EntityId(view.ids[slot as usize]), ViewCap::SCENE);
            if ix < self.listing {
                let listed = self.lists[slot as usize].len();
                let searches = listed == 0 || listed >= self.rules.cap;
                self.matcher.add(id, (pos.x, pos.z), searches);
            } else {
                let find = || self.worst(view, slot, false).rank;
                let accepts = worst.entry(slot).or_insert_with(find);
                self.matcher.add_ghost(id, (pos.x, pos.z), *accepts);
            }
        }
        let Lists { matcher, slots, listing, indices, lists, rules, bonds, .. } = self;
        let listing = *listing;
        let (slots, indices, lists) = (&*slots, &*indices, &*lists);
        let mut parts = vec![(); workers::parts(view.workers, slots.len(), LEAST)];
        matcher.link_all(view.workers, &mut parts, |(), ix, list| {
            if ix as usize >= listing {
                return;
            }
            let slot = slots[ix as usize];
            let entry = |other: &u32| {
                let distance = dist_cm(ranges.d2(slot, *other));
                let rank = rules.rank(bonds.strongest(slot, *other), distance, true);
                (indices[*other as usize], rank)
            };
            list.link(lists[slot as usize].iter().map(entry));
        });
    }

    /// Whether the matcher knows both and one has a list.
    fn is_here(&self, [a, b]: [u32; 2]) -> bool {
        let [a, b] = [a, b].map(|slot| self.indices[slot as usize]);
        a.max(b) != ABSENT && (a.min(b) as usize) < self.listing
    }

    /// Proposes bonded pairs, which the matcher looks for no farther than other pairs.
    fn propose_bonded(&mut self, ranges: &Ranges) {
        let mut proposed = Vec::new();
        for group in self.bonds.groups() {
            for (i, a) in group.iter().copied().enumerate() {
                for b in group[i + 1..].iter().copied().filter(|b| self.is_here([a, *b])) {
                    let is_new = !self.lists[a as usize].contains(&b);
                    if is_new && ranges.holds(a, b, ranges.d2(a, b), false) {
                        proposed.push((a, b, ranges.d2(a, b)));
                    }
                }
            }
        }
        self.propose(&proposed);
    }

    fn propose(&mut self, proposed: &[(u32, u32, u64)]) {
        for (a, b, d2) in proposed {
            let rank = self.rules.rank(self.bonds.strongest(*a, *b), dist_cm(*d2), false);
            let [one, other] = [a, b].map(|slot| self.indices[*slot as usize]);
            self.matcher.propose(one, other, rank);
        }
    }

    /// Finds pairs that one entity saw and that both can see now: they count as known.
    fn find_known(&mut self, ranges: &Ranges, changes: &Changes) {
        let is_known = |change: &Change| {
            let (observer, subject) = (change.observer(), change.subject());
            !change.appears() && ranges.keeps(observer, subject)
        };
        let known = changes.iter().filter(is_known);
        self.known =
            known.map(|change| (change, ranges.d2(change.observer(), change.subject()))).collect();
    }

    /// Proposes pairs that one entity saw: they are in range up to the leave radius.
    fn propose_known(&mut self) {
        let pairs =
            self.known.iter().map(|(change, d2)| (change.observer(), change.subject(), *d2));
        let is_new = |(a, b, _): &(u32, u32, u64)| {
            self.is_here([*a, *b]) && !self.lists[*a as usize].contains(b)
        };
        let proposed: Vec<_> = pairs.filter(is_new).collect();
        self.propose(&proposed);
    }

    /// Makes the lists follow the matcher.
    fn commit_lists(&mut self, changes: &mut Changes) {
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
