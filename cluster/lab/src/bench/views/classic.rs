//! The classic heuristic for capped, symmetric view lists, as many servers have it: the baseline of the benchmark.
//!
//! A member is evaluated when it comes into another cell of 8 m, and every 5 s:
//!
//! 1. Entries outside of 5 x 5 patches are dropped, on both sides.
//! 2. Candidates are collected patch by patch, from near to far. Outside of the inner 3 x 3 patches collecting stops
//!    at 300 candidates.
//! 3. Candidates are sorted into bands by a distance that is cheap to compute (the long side and half the short one):
//!    up to 5 m, 15 m, 30 m, and beyond. Candidates with a bond come before all bands.
//! 4. Band by band the member asks each candidate that it does not list. The two list each other if each has room or
//!    an entry to drop for the other. In a full list only a candidate with a bond or from under 15 m replaces an
//!    entry: the last entry of the list in a worse band. A dropped entry is dropped on both sides, and is evaluated
//!    at its own next time.

use purview::scene::index::{Grid, Patch, Spot};
use purview::scene::{Pos, Rect};

use super::{Lists, Sent, ViewLists};

/// The side of a patch, centimetres.
pub const PATCH_CM: i32 = 3_200;

/// The side of a cell, centimetres. A member that changes its cell is evaluated.
const CELL_CM: i32 = 800;

/// Ticks between two evaluations of a member that stays in its cell.
const HEARTBEAT_TICKS: u64 = 50;

/// The number of candidates at which collecting stops, outside of the inner 3 x 3 patches.
const ENOUGH: usize = 300;

/// The ends of the bands, centimetres.
const BANDS_CM: [u32; 3] = [500, 1_500, 3_000];

/// The rank of a member with a bond; band `b` has rank `b + 1`.
const BONDED: usize = 0;

const RANKS: usize = BANDS_CM.len() + 2;

/// The worst rank that replaces an entry of a full list: under 15 m.
const REPLACES: usize = 2;

#[derive(Debug, Clone)]
struct Member {
    pos: Pos,
    patch: Patch,
    cell: (i32, i32),
    spot: Spot,
    /// Members of one group share a bond.
    group: Option<u32>,
    /// The list, in the order of insertion.
    list: Vec<u32>,
}

/// All members and their lists.
#[derive(Debug)]
pub struct Classic {
    cap: usize,
    members: Vec<Member>,
    grid: Grid,
    tick: u64,
    messages: u64,
    /// The offsets of the 5 x 5 patches, from near to far.
    around: Vec<Patch>,
    /// The candidates by rank, of the member under evaluation.
    candidates: [Vec<u32>; RANKS],
    /// The evaluation in which a member was last found to be listed.
    marks: Vec<u64>,
    evaluations: u64,
}

/// The long side and half the short one.
fn octagonal_cm(a: Pos, b: Pos) -> u32 {
    let (dx, dz) = (a.x.abs_diff(b.x), a.z.abs_diff(b.z));
    dx.max(dz) + dx.min(dz) / 2
}

fn cell_of(pos: Pos) -> (i32, i32) {
    (pos.x.div_euclid(CELL_CM), pos.z.div_euclid(CELL_CM))
}

/// The list has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Free,
    /// The list drops this entry.
    InPlaceOf(u32),
    None,
}

impl Classic {
    /// Members at these positions on a map of side `map_cm`, with empty lists.
    pub fn new(cap: usize, map_cm: i32, places: &[Pos]) -> Classic {
        let ground = Rect { x0: 0, z0: 0, x1: map_cm, z1: map_cm };
        let mut grid = Grid::new(ground, [PATCH_CM; 2]);
        let members = places.iter().enumerate().map(|(i, pos)| Member {
            pos: *pos,
            patch: grid.patch_of(*pos),
            // No cell yet, so that all members are evaluated in the first step.
            cell: (i32::MIN, i32::MIN),
            spot: grid.insert(i as u32, 0, *pos),
            group: None,
            list: Vec::with_capacity(cap),
        });
        let members: Vec<_> = members.collect();
        let mut around: Vec<Patch> =
            (-2..=2).flat_map(|z| (-2..=2).map(move |x| Patch { x, z })).collect();
        around.sort_by_key(|p| p.ring(Patch { x: 0, z: 0 }));
        let marks = vec![0; members.len()];
        let candidates = Default::default();
        Classic {
            cap,
            members,
            grid,
            tick: 0,
            messages: 0,
            around,
            candidates,
            marks,
            evaluations: 0,
        }
    }

    fn walk(&mut self, i: usize, pos: Pos) {
        let m = &mut self.members[i];
        let old = m.spot;
        let (spot, displaced) = self.grid.relocate(old, i as u32, 0, pos);
        (m.pos, m.patch, m.spot) = (pos, self.grid.patch_of(pos), spot);
        if let Some(other) = displaced {
            self.members[other as usize].spot = old;
        }
    }

    fn rank(&self, a: u32, b: u32) -> usize {
        let (a, b) = (&self.members[a as usize], &self.members[b as usize]);
        if a.group.is_some() && a.group == b.group {
            return BONDED;
        }
        let cm = octagonal_cm(a.pos, b.pos);
        1 + BANDS_CM.iter().filter(|end| cm >= **end).count()
    }

    fn evaluate(&mut self, me: u32) {
        self.drop_those_out_of_range(me);
        self.collect(me);
        for rank in 0..RANKS {
            let candidates = std::mem::take(&mut self.candidates[rank]);
            let room_for_more = candidates.iter().all(|other| self.ask(me, *other, rank));
            self.candidates[rank] = candidates;
            if !room_for_more {
                return;
            }
        }
    }

    fn drop_those_out_of_range(&mut self, me: u32) {
        let patch = self.members[me as usize].patch;
        for at in (0..self.members[me as usize].list.len()).rev() {
            let other = self.members[me as usize].list[at];
            if patch.ring(self.members[other as usize].patch) > 2 {
                self.part(me, other);
            }
        }
    }

    /// Sorts the candidates of `me` by rank.
    fn collect(&mut self, me: u32) {
        self.evaluations += 1;
        for other in &self.members[me as usize].list {
            self.marks[*other as usize] = self.evaluations;
        }
        self.marks[me as usize] = self.evaluations;
        self.candidates.iter_mut().for_each(Vec::clear);
        let (center, origin) = (self.members[me as usize].patch, Patch { x: 0, z: 0 });
        let mut found = 0;
        for offset in &self.around {
            let patch = Patch { x: center.x + offset.x, z: center.z + offset.z };
            for entry in self.grid.patch(patch) {
                if found >= ENOUGH && offset.ring(origin) > 1 {
                    return;
                }
                found += 1;
                if self.marks[entry.slot as usize] != self.evaluations {
                    let rank = self.rank(me, entry.slot);
                    self.candidates[rank].push(entry.slot);
                }
            }
        }
    }

    /// Whether and how the list of `whose` takes a member of this rank.
    fn room(&self, whose: u32, rank: usize) -> Room {
        let list = &self.members[whose as usize].list;
        if list.len() < self.cap {
            return Room::Free;
        }
        if rank > REPLACES {
            return Room::None;
        }
        let victim = list.iter().rev().find(|v| self.rank(whose, **v) > rank);
        victim.map_or(Room::None, |v| Room::InPlaceOf(*v))
    }

    /// `me` asks `other`, which answers. Returns false if `me` has no room for this rank or a worse one.
    fn ask(&mut self, me: u32, other: u32, rank: usize) -> bool {
        let mine = self.room(me, rank);
        if mine == Room::None {
            return false;
        }
        let theirs = self.room(other, rank);
        // A request and its answer.
        self.messages += 2;
        if theirs == Room::None {
            return true;
        }
        for (whose, room) in [(me, mine), (other, theirs)] {
            if let Room::InPlaceOf(victim) = room {
                self.part(whose, victim);
            }
        }
        self.members[me as usize].list.push(other);
        self.members[other as usize].list.push(me);
        true
    }

    /// `a` drops `b` and notifies it.
    fn part(&mut self, a: u32, b: u32) {
        self.messages += 1;
        for (whose, whom) in [(a, b), (b, a)] {
            self.members[whose as usize].list.retain(|v| *v != whom);
        }
    }
}

impl ViewLists for Classic {
    fn step(&mut self, places: &[Pos]) {
        self.tick += 1;
        for (i, pos) in places.iter().enumerate() {
            self.walk(i, *pos);
        }
        for (i, pos) in places.iter().enumerate() {
            let cell = cell_of(*pos);
            let beat = (self.tick + i as u64).is_multiple_of(HEARTBEAT_TICKS);
            if beat || self.members[i].cell != cell {
                self.members[i].cell = cell;
                self.evaluate(i as u32);
            }
        }
    }

    fn lists(&self, _places: &[Pos], into: &mut Lists) -> u64 {
        into.copy(self.members.iter().map(|m| m.list.iter().copied()));
        0
    }

    fn sent(&self) -> Sent {
        Sent { within: self.messages, ..Sent::default() }
    }
}

#[cfg(test)]
mod tests;
