//! Rings of patches: work is done only for entities that change patch, plane or class.
//!
//! During a tick the index holds the entities as they were when the last one ended. A changed entity
//! is compared, old state with new state, with all entities around its old and its new patch. Pairs
//! in which both changed are found twice: around the old patch in the index, and around the new one
//! among the changed, which are sorted by their new patches for that: so each thread compares those
//! of a stripe of the ground. The index follows when all are compared. It consists of shards, and each
//! thread changes some of them.

mod index;

use self::index::{Cell, Index, Patch, Shard};
use super::View;
use super::changes::{Change, Changes, Found, Room};
use super::classes::{Classes, NOBODY};
use super::rules::{Reach, Rules};
use super::share::share_range;
use crate::scene::workers::{self, OneThread, Workers, parts};
use crate::scene::{Pos, RangeSet, Rect};

/// A changed entity is compared with a neighbourhood: a thread has work with this many, or with fewer
/// where they have led to this many changes in the last tick.
const LEAST: usize = if cfg!(test) { 1 } else { 250 };

/// Where and what an entity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stance {
    cell: Cell,
    class: u16,
}

const ABSENT: Stance = Stance { cell: Cell(0), class: NOBODY };

#[derive(Debug, Clone, Copy)]
struct Record {
    before: Stance,
    /// What a changed entity becomes.
    now: Stance,
}

const FREE: Record = Record { before: ABSENT, now: ABSENT };

const LEAST_CHANGES: usize = 8_000;

#[derive(Debug, Clone, Default)]
pub struct Rings {
    ground: Rect,
    patch_cm: u32,
    records: Vec<Record>,
    /// By slot, the patch of the newest position: row, then column.
    patches: Vec<u32>,
    queue: Vec<u32>,
    /// By slot.
    queued: Vec<bool>,
    index: Index,
    /// What the tick in hand compares, by the new patch; deleted entities are the last.
    changed: Vec<Changed>,
    /// Number of changes that the last tick found.
    found: usize,
}

/// A changed entity, what it was, and what it has become.
#[derive(Debug, Clone, Copy)]
struct Changed {
    slot: u32,
    before: Stance,
    now: Stance,
}

impl Changed {
    fn order(&self) -> (bool, Cell, u32) {
        (self.now.class == NOBODY, self.now.cell, self.slot)
    }
}

/// All that comparisons read.
struct Compare<'a> {
    records: &'a [Record],
    index: &'a Index,
    classes: &'a Classes,
    /// Sorted by the new patch.
    arrivals: &'a [Changed],
    /// Ring before, ring now (3: none): whether the two are alike to every reach in use.
    alike: [[bool; 4]; 4],
}

impl Rings {
    pub fn new(rules: &Rules, patch_cm: i32) -> Rings {
        let patch_cm = patch_cm.unsigned_abs();
        Rings { ground: rules.ground, patch_cm, ..Rings::default() }
    }

    #[inline]
    fn patch(&self, pos: Pos) -> u32 {
        let along = |at: i32, from: i32| at.abs_diff(from) / self.patch_cm;
        along(pos.z, self.ground.z0) << 16 | along(pos.x, self.ground.x0)
    }

    /// Whether a position is in a patch. A multiplication is faster than a division.
    #[inline]
    fn is_in(&self, patch: u32, pos: Pos) -> bool {
        let along = |at: i32, from: i32, patch: u32| {
            at.abs_diff(from).wrapping_sub(patch * self.patch_cm) < self.patch_cm
        };
        along(pos.x, self.ground.x0, patch & 0xffff) && along(pos.z, self.ground.z0, patch >> 16)
    }

    #[inline]
    pub fn moved(&mut self, slot: u32, pos: Pos) {
        if !self.is_in(self.patches[slot as usize], pos) {
            self.patches[slot as usize] = self.patch(pos);
            self.queue(slot);
        }
    }

    pub fn touched(&mut self, slot: u32, pos: Pos) {
        if slot as usize >= self.records.len() {
            self.records.resize(slot as usize + 1, FREE);
            self.patches.resize(slot as usize + 1, 0);
            self.queued.resize(slot as usize + 1, false);
        }
        self.patches[slot as usize] = self.patch(pos);
        self.queue(slot);
    }

    fn queue(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.queued[slot as usize], true) {
            self.queue.push(slot);
        }
    }

    /// Finds what changes. [`Rings::commit`] or [`Rings::undo`] must follow.
    pub fn tick(&mut self, view: View, room: &Room, changes: &mut Changes) {
        self.changed = self.find_changed(view);
        self.mark(view.workers, true);
        let Rings { records, index, changed, .. } = self;
        let present = changed.partition_point(|one| one.now.class != NOBODY);
        let (arrivals, alike) = (&changed[..present], alike(view.classes));
        let compare = Compare { records, index, classes: view.classes, arrivals, alike };
        let least = (LEAST_CHANGES * changed.len() / self.found.max(1)).clamp(1, LEAST);
        let parts = share_range((view.workers, least), changed.len(), |range| {
            let mut found = Found::new(room);
            changed[range].iter().take_while(|one| compare.one(**one, &mut found)).count();
            found
        });
        parts.into_iter().for_each(|part| changes.add(part));
        self.found = changes.len();
    }

    /// The index follows what has changed.
    pub fn commit(&mut self, workers: &dyn Workers) {
        let changed = std::mem::take(&mut self.changed);
        each_shard(workers, &mut self.index, &changed, |shard, one, (was_here, is_here)| {
            if was_here {
                shard.remove(one.before.cell, one.slot);
            }
            if is_here {
                shard.insert(one.now.cell, one.slot, one.now.class);
            }
        });
        each_record(workers, &mut self.records, &changed, |record, one| record.before = one.now);
    }

    /// Nothing has changed: it is compared again when the next tick ends.
    pub fn undo(&mut self) {
        self.mark(&OneThread, false);
        for one in std::mem::take(&mut self.changed) {
            self.queue(one.slot);
        }
    }

    /// Those that an entity saw when the last tick ended, or those that saw it.
    pub fn seen(&self, view: View, slot: u32, by: bool, found: &mut Vec<u32>) {
        let Some(me) = self.records.get(slot as usize).map(|record| record.before) else { return };
        if me.class == NOBODY {
            return;
        }
        self.index.around(me.cell, |cell, patch| {
            let ring = me.cell.ring(cell).unwrap_or(u32::MAX);
            let sees = |other: &&index::Member| {
                let (a, b) = if by { (other.class, me.class) } else { (me.class, other.class) };
                other.slot != slot && rings_of(view.classes.reach(a, b)).has_ring(ring)
            };
            found.extend(patch.members.iter().filter(sees).map(|other| other.slot));
        });
    }

    /// Empties the queue.
    fn find_changed(&mut self, view: View) -> Vec<Changed> {
        let queue = std::mem::take(&mut self.queue);
        queue.iter().for_each(|slot| self.queued[*slot as usize] = false);
        let this = &*self;
        let parts = share_range((view.workers, 4 * LEAST), queue.len(), |range| {
            let found = queue[range].iter().filter_map(|slot| this.changed(*slot, view));
            let mut part: Vec<_> = found.collect();
            part.sort_unstable_by_key(Changed::order);
            part
        });
        let mut changed = parts.concat();
        if parts.len() > 1 {
            // The stable sort merges sorted runs.
            changed.sort_by_key(Changed::order);
        }
        self.queue = queue;
        super::clear(&mut self.queue);
        changed
    }

    /// What has become of an entity; `None`: nothing has changed.
    fn changed(&self, slot: u32, view: View) -> Option<Changed> {
        let (before, state) = (self.records[slot as usize].before, view.states[slot as usize]);
        let cell =
            Cell(u64::from(state.plane as u32) << 32 | u64::from(self.patches[slot as usize]));
        let is_absent = state.class == NOBODY;
        let now = if is_absent { ABSENT } else { Stance { cell, class: state.class } };
        (now != before).then_some(Changed { slot, before, now })
    }

    /// Says in records and index what is changing, or that it is not.
    fn mark(&mut self, workers: &dyn Workers, is_changing: bool) {
        let Rings { index, records, changed, .. } = self;
        each_shard(workers, index, changed, |shard, one, (was_here, _)| {
            if was_here {
                shard.mark(one.before.cell, one.slot, is_changing);
            }
        });
        each_record(workers, records, changed, |record, one| record.now = one.now);
    }
}

/// Calls `work` for the shards of a changed entity: whether it was in the shard, and whether it comes.
fn each_shard(
    workers: &dyn Workers,
    index: &mut Index,
    changed: &[Changed],
    work: impl Fn(&mut Shard, &Changed, (bool, bool)) + Sync,
) {
    let mut parts = vec![(); parts(workers, changed.len(), LEAST)];
    workers::share(workers, index.shards(), &mut parts, |(), first, shards| {
        let count = shards.len();
        let here = |stance: &Stance| {
            let at = Index::shard_of(stance.cell).wrapping_sub(first);
            (stance.class != NOBODY && at < count).then_some(at)
        };
        for one in changed {
            let (from, to) = (here(&one.before), here(&one.now));
            if let Some(at) = from {
                work(&mut shards[at], one, (true, to == from));
            }
            if let Some(at) = to.filter(|_| to != from) {
                work(&mut shards[at], one, (false, true));
            }
        }
    });
}

/// Calls `work` with the record of each changed entity. Each thread has the records of a range of
/// slots.
fn each_record(
    workers: &dyn Workers,
    records: &mut [Record],
    changed: &[Changed],
    work: impl Fn(&mut Record, &Changed) + Sync,
) {
    let mut parts = vec![(); parts(workers, changed.len(), 4 * LEAST)];
    workers::share(workers, records, &mut parts, |(), first, records| {
        for one in changed {
            if let Some(record) = records.get_mut((one.slot as usize).wrapping_sub(first)) {
                work(record, one);
            }
        }
    });
}

/// Which rings every reach in use treats alike.
fn alike(classes: &Classes) -> [[bool; 4]; 4] {
    let mut alike = [[true; 4]; 4];
    for reach in classes.used() {
        let rings = rings_of(Some(reach));
        for (a, row) in alike.iter_mut().enumerate() {
            for (b, cell) in row.iter_mut().enumerate() {
                *cell &= rings.has_ring(a as u32) == rings.has_ring(b as u32);
            }
        }
    }
    alike
}

fn rings_of(reach: Option<Reach>) -> RangeSet {
    match reach {
        Some(Reach::Rings(rings)) => rings,
        Some(Reach::All) => RangeSet::NEAR,
        Some(Reach::Circle(_)) | None => RangeSet::NONE,
    }
}

impl Compare<'_> {
    fn sees(&self, observer: Stance, subject: Stance) -> bool {
        if observer.class == NOBODY || subject.class == NOBODY {
            return false;
        }
        let rings = || rings_of(self.classes.reach(observer.class, subject.class));
        observer.cell.ring(subject.cell).is_some_and(|ring| rings().has_ring(ring))
    }

    /// Compares an entity; whether there is room for more.
    fn one(&self, me: Changed, changes: &mut Found) -> bool {
        let before = me.before;
        if before.class != NOBODY {
            self.index.around(before.cell, |cell, patch| {
                self.with_patch(me, before, cell, patch, changes);
            });
        }
        if me.now.class != NOBODY {
            self.index.around(me.now.cell, |cell, patch| {
                if before.class == NOBODY || before.cell.ring(cell).is_none() {
                    self.with_patch(me, before, cell, patch, changes);
                }
            });
            self.with_arrivals(me, before, changes);
        }
        !changes.is_over()
    }

    /// Compares with the entities of a patch, as the index has them.
    #[inline]
    fn with_patch(
        &self,
        me: Changed,
        before: Stance,
        cell: Cell,
        patch: &Patch,
        changes: &mut Found,
    ) {
        let rings = [before, me.now].map(|stance| at(stance.cell.ring(cell)));
        let nothing = before.class == me.now.class && self.alike[rings[0]][rings[1]];
        if nothing && patch.changing == 0 {
            return;
        }
        // What changes between the two is the same for all of a class.
        let mut flips = (NOBODY, [None; 2]);
        for other in &patch.members {
            if changes.is_over() {
                return;
            }
            if other.is_changing {
                // Both changed. What appears is found among the arrivals.
                if me.slot < other.slot {
                    let Record { before: theirs, now } = self.records[other.slot as usize];
                    let (me, them) = ((me.slot, before, me.now), (other.slot, theirs, now));
                    self.report(me, them, Some(false), changes);
                }
            } else if !nothing {
                if flips.0 != other.class {
                    let them = Stance { cell, class: other.class };
                    flips = (other.class, self.flips(before, me.now, them));
                }
                let pairs = [(me.slot, other.slot), (other.slot, me.slot)];
                for ((observer, subject), flip) in pairs.into_iter().zip(flips.1) {
                    if let Some(appears) = flip {
                        changes.push(Change::new(observer, subject, appears));
                    }
                }
            }
        }
    }

    /// What appears or disappears between an entity that changed and one that did not: of the first
    /// one's subjects, and of the second one's.
    #[inline(never)]
    fn flips(&self, was: Stance, is: Stance, them: Stance) -> [Option<bool>; 2] {
        let flip = |was: bool, is: bool| (was != is).then_some(is);
        let there = flip(self.sees(was, them), self.sees(is, them));
        [there, flip(self.sees(them, was), self.sees(them, is))]
    }

    /// Compares with the changed entities around the new patch: what appears.
    fn with_arrivals(&self, me: Changed, before: Stance, changes: &mut Found) {
        let Cell(home) = me.now.cell;
        let plane = home >> 32 << 32;
        let (x, z) = (me.now.cell.x(), me.now.cell.z());
        for row in (z - 2).max(0)..=(z + 2).min(0xffff) {
            let key = |x: i64| Cell(plane | (row as u64) << 16 | x as u64);
            let (first, last) = (key((x - 2).max(0)), key((x + 2).min(0xffff)));
            let from = self.arrivals.partition_point(|one| one.now.cell < first);
            let row = self.arrivals[from..].iter().take_while(|one| one.now.cell <= last);
            for other in row.filter(|other| me.slot < other.slot) {
                if changes.is_over() {
                    return;
                }
                let them = (other.slot, other.before, other.now);
                self.report((me.slot, before, me.now), them, Some(true), changes);
            }
        }
    }

    /// Reports both directions of a pair, if they changed: `only` what appears, or what disappears.
    #[inline]
    fn report(
        &self,
        (me, was, is): (u32, Stance, Stance),
        (other, theirs_was, theirs_is): (u32, Stance, Stance),
        only: Option<bool>,
        changes: &mut Found,
    ) {
        if me == other {
            return;
        }
        let mut push = |observer, subject, (was, is): (bool, bool)| {
            if was != is && only.is_none_or(|only| only == is) {
                changes.push(Change::new(observer, subject, is));
            }
        };
        push(me, other, (self.sees(was, theirs_was), self.sees(is, theirs_is)));
        push(other, me, (self.sees(theirs_was, was), self.sees(theirs_is, is)));
    }
}

fn at(ring: Option<u32>) -> usize {
    ring.unwrap_or(3) as usize
}
