//! Entities in no cluster. Each has lists of those that it sees and is seen by, and compares them
//! with its neighbourhood in every tick. A pair of loose entities is in the list `sees` of the
//! observer alone.

use super::{
    Change, Changes, Clusters, Found, GROUP, LOOSE, NOBODY, Radii, Room, State, View, each_bit,
    near::each_row, radii, share,
};

/// Searches that are worth a thread.
const LEAST: usize = 64;

/// A loose entity as the last tick left it. The lists are sorted.
#[derive(Debug, Clone, Default)]
pub struct Loose {
    pub slot: u32,
    pub sees: Vec<u32>,
    pub seen_by: Vec<u32>,
}

/// Where the loose entities are: key of the cell and slot, sorted.
type Places = [(u64, u32)];

impl Loose {
    /// Gives back memory that lists have to spare.
    fn shrink(&mut self) {
        self.sees.shrink_to_fit();
        self.seen_by.shrink_to_fit();
    }
}

impl Clusters {
    /// Those that an entity saw when the last tick ended, or those that saw it.
    pub fn seen(&self, view: View, slot: u32, by: bool, found: &mut Vec<u32>) {
        let at = self.loose.binary_search_by_key(&slot, |one| one.slot);
        let own = match at {
            Ok(at) => &self.loose[at],
            Err(_) => &self.extract(slot, view),
        };
        found.extend_from_slice(if by { &own.seen_by } else { &own.sees });
        for other in self.loose.iter().filter(|_| by || at.is_err()) {
            // Between a loose entity and a settled one the former has the lists.
            let list = if by { &other.sees } else { &other.seen_by };
            if list.binary_search(&slot).is_ok() {
                found.push(other.slot);
            }
        }
    }

    /// Takes the entities that leave out of their clusters.
    pub fn loosen(&mut self, view: View) {
        let mut leaving = std::mem::take(&mut self.leaving);
        if leaving.is_empty() {
            return;
        }
        leaving.sort_unstable();
        leaving.dedup();
        let known = self.loose.len();
        for &slot in &leaving {
            let is_loose = self.loose[..known].binary_search_by_key(&slot, |one| one.slot).is_ok();
            if !is_loose {
                let mut one = self.extract(slot, view);
                // The list of another one that leaves has this pair.
                one.seen_by.retain(|observer| leaving.binary_search(observer).is_err());
                one.shrink();
                self.loose.push(one);
            }
        }
        for &slot in &leaving {
            let seat = std::mem::replace(&mut self.seats[slot as usize], NO_LANE);
            if seat.lane != LOOSE {
                let cluster = seat.lane as usize / GROUP;
                self.clusters[cluster].live &= !(1 << (seat.lane as usize % GROUP));
            }
        }
        self.loose.sort_unstable_by_key(|one| one.slot);
        self.hand_over();
        leaving.clear();
        self.leaving = leaving;
    }

    /// Pairs with an observer that has become loose move into the observer's list.
    fn hand_over(&mut self) {
        let mut moved = Vec::new();
        for one in &mut self.loose {
            let slot = one.slot;
            one.seen_by.retain(|observer| {
                let is_loose = self.seats[*observer as usize].lane == LOOSE;
                if is_loose {
                    moved.push((*observer, slot));
                }
                !is_loose
            });
        }
        for (observer, subject) in moved {
            let at = self.loose.binary_search_by_key(&observer, |one| one.slot);
            let Some(list) = at.ok().map(|at| &mut self.loose[at].sees) else { continue };
            if let Err(place) = list.binary_search(&subject) {
                list.insert(place, subject);
            }
        }
    }

    /// The lists of an entity, from its cluster.
    fn extract(&self, slot: u32, view: View) -> Loose {
        let mut one = Loose { slot, ..Loose::default() };
        let seat = self.seats[slot as usize];
        if seat.lane == LOOSE {
            return one;
        }
        let (mine, lane) = (seat.lane / GROUP as u32, seat.lane as usize % GROUP);
        let key = self.cells[self.clusters[mine as usize].cell as usize].key;
        let is_wide = self.is_wide(view.classes, self.clusters[mine as usize].class);
        self.around((key, is_wide), self.wide_rings(view.classes), |clusters| {
            for other in clusters {
                self.extract_from((mine, lane), other, view, &mut one);
            }
        });
        one.sees.sort_unstable();
        one.seen_by.sort_unstable();
        one
    }

    fn extract_from(&self, (mine, lane): (u32, usize), other: u32, view: View, one: &mut Loose) {
        let cluster = &self.clusters[other as usize];
        let [there, back] = match self.duo(mine.min(other), mine.max(other)) {
            Some((stripe, at)) => {
                let duo = &self.stripes[stripe].duos[at];
                if duo.a == duo.b {
                    // Each pair has one bit, on either side of the diagonal.
                    let [there, back] = [row(duo.there, lane), row(duo.back, lane)];
                    let [down, up] = [column(duo.back, lane), column(duo.there, lane)];
                    let (low, high) = ((1_u8 << lane) - 1, !((1_u16 << (lane + 1)) - 1) as u8);
                    [there & high | down & low, back & high | up & low]
                } else if duo.a == mine {
                    [row(duo.there, lane), row(duo.back, lane)]
                } else {
                    [column(duo.back, lane), column(duo.there, lane)]
                }
            }
            None => self.constant(one.slot, (mine, lane), other, view),
        };
        let live = cluster.live;
        each_bit(u64::from(there & live), |j| one.sees.push(cluster.slots[j as usize]));
        each_bit(u64::from(back & live), |j| one.seen_by.push(cluster.slots[j as usize]));
    }

    /// Which of a cluster are shown to an entity, and it to which, if nothing can change between
    /// their clusters.
    fn constant(&self, slot: u32, (mine, lane): (u32, usize), other: u32, view: View) -> [u8; 2] {
        let (me, them) = (&self.clusters[mine as usize], &self.clusters[other as usize]);
        let class = [me.class, them.class];
        let mut bits = [0; 2];
        for j in 0..GROUP {
            if them.live >> j & 1 == 0 || (mine == other && j == lane) {
                continue;
            }
            let (a, b) = (self.seats[slot as usize], self.seats[them.slots[j] as usize]);
            let d2 = crate::scene::geo::dist2(a.x, a.z, b.x, b.z);
            // Heights do not matter: with a limit the pair of clusters is kept.
            let shown = |radii: Radii| d2 <= u64::from(radii.enter_cm.unsigned_abs()).pow(2);
            let there = radii(view.classes, class[0], class[1]).is_some_and(shown);
            let back = radii(view.classes, class[1], class[0]).is_some_and(shown);
            bits[0] |= u8::from(there) << j;
            bits[1] |= u8::from(back) << j;
        }
        bits
    }

    /// Compares the lists of all loose entities with their neighbourhoods.
    pub fn look_around(&mut self, view: View, room: &Room, changes: &mut Changes) {
        if self.loose.is_empty() {
            return;
        }
        let mut places: Vec<_> = self
            .loose
            .iter()
            .map(|one| (view.states[one.slot as usize], one.slot))
            .filter(|(state, _)| state.class != NOBODY)
            .map(|(state, slot)| (self.key_of(&state), slot))
            .collect();
        places.sort_unstable();
        let rings = self.wide_rings(view.classes);
        self.next = vec![Loose::default(); self.loose.len()];
        let (mut nexts, this) = (std::mem::take(&mut self.next), &*self);
        let parts = share((view.workers, LEAST), &mut nexts, |first, part| {
            let mut found = Found::new(room);
            for (one, next) in this.loose[first..].iter().zip(part) {
                if found.is_over() {
                    break;
                }
                *next = this.search(one, rings, &places, view);
                next.shrink();
                diff(&one.sees, &next.sees, |subject, appears| {
                    found.push(Change::new(one.slot, subject, appears));
                });
                diff(&one.seen_by, &next.seen_by, |observer, appears| {
                    found.push(Change::new(observer, one.slot, appears));
                });
            }
            found
        });
        parts.into_iter().for_each(|part| changes.add(part));
        self.next = nexts;
    }

    /// What a loose entity sees and is seen by now.
    fn search(&self, one: &Loose, rings: u64, places: &Places, view: View) -> Loose {
        let mut next = Loose { slot: one.slot, ..Loose::default() };
        let me = &view.states[one.slot as usize];
        if me.class == NOBODY {
            return next;
        }
        let key = self.key_of(me);
        let listed = |slot: u32| view.is_listed(one.slot, slot);
        let is_wide = self.is_wide(view.classes, me.class);
        self.around((key, is_wide), rings, |clusters| {
            for cluster in &self.clusters[clusters.start as usize..clusters.end as usize] {
                let there = radii(view.classes, me.class, cluster.class);
                let back = radii(view.classes, cluster.class, me.class);
                if there.is_none() && back.is_none() {
                    continue;
                }
                each_bit(u64::from(cluster.live), |lane| {
                    let slot = cluster.slots[lane as usize];
                    let other = &view.states[slot as usize];
                    let known = || one.sees.binary_search(&slot).is_ok() || listed(slot);
                    if shown(there, me, other, known) {
                        next.sees.push(slot);
                    }
                    let known = || one.seen_by.binary_search(&slot).is_ok() || listed(slot);
                    if shown(back, me, other, known) {
                        next.seen_by.push(slot);
                    }
                });
            }
        });
        each_row(key, if is_wide { rings } else { 1 }, |first, last| {
            let from = places.partition_point(|(key, _)| *key < first);
            for (_, slot) in places[from..].iter().take_while(|(key, _)| *key <= last) {
                let other = &view.states[*slot as usize];
                let there = radii(view.classes, me.class, other.class);
                let known = || one.sees.binary_search(slot).is_ok() || listed(*slot);
                if *slot != one.slot && shown(there, me, other, known) {
                    next.sees.push(*slot);
                }
            }
        });
        next.sees.sort_unstable();
        next.seen_by.sort_unstable();
        next
    }
}

const NO_LANE: super::Seat = super::NO_SEAT;

/// Lane `i`'s bits of all `j`.
fn row(bits: u64, i: usize) -> u8 {
    (0..GROUP).fold(0, |row, j| row | ((bits >> (GROUP * j + i) & 1) as u8) << j)
}

/// Lane `j`'s bits of all `i`.
fn column(bits: u64, j: usize) -> u8 {
    (bits >> (GROUP * j)) as u8
}

#[inline]
fn shown(radii: Option<Radii>, a: &State, b: &State, known: impl Fn() -> bool) -> bool {
    let Some(radii) = radii else { return false };
    let (d2, height) = (a.pos.dist2(b.pos), a.pos.y.abs_diff(b.pos.y));
    radii.holds(d2, height, false) || (radii.holds(d2, height, true) && known())
}

/// Calls `tell` with what only one of two sorted lists has: whether the second has it.
fn diff(old: &[u32], new: &[u32], mut tell: impl FnMut(u32, bool)) {
    let (mut a, mut b) = (0, 0);
    loop {
        match (old.get(a), new.get(b)) {
            (None, None) => return,
            (Some(x), Some(y)) if x == y => (a, b) = (a + 1, b + 1),
            (Some(x), y) if y.is_none_or(|y| x < y) => {
                tell(*x, false);
                a += 1;
            }
            (_, Some(y)) => {
                tell(*y, true);
                b += 1;
            }
            (Some(_), None) => return,
        }
    }
}
