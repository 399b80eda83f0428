//! Range events by rings of patches: work is done only for entities that change patch or range.
//!
//! Changed entities are processed one after the other. Each is compared, with its old and its new
//! state, with all entities around it as the index holds them at that moment, and is then moved in
//! the index. Over the steps of a pair these differences add up to its net change. Only a pair in
//! which both changed has two steps, and the second may undo the first; such differences are held
//! back until the end, where opposites cancel.

use super::RangeEvent;
use crate::scene::index::{Grid, IndexEntry, Patch, Spot, patches_of};
use crate::scene::{Pos, RangeSet, Rect};

/// In no patch: outside the ground, not added yet, or removed.
const NOWHERE: u32 = u32::MAX;

/// Bit of an entry's tag, above the range: the entity changed in this tick.
const CHANGED: u32 = 1 << 8;

/// The part of an entity that a move reads or writes.
#[derive(Debug, Clone, Copy)]
struct Record {
    /// Number of the patch at the end of the tick before.
    cell: u32,
    /// Patch now.
    next: u32,
    range: RangeSet,
    next_range: RangeSet,
    queued: bool,
}

const FREE: Record = Record {
    cell: NOWHERE,
    next: NOWHERE,
    range: RangeSet::NONE,
    next_range: RangeSet::NONE,
    queued: false,
};

/// An entity's patch and range.
#[derive(Debug, Clone, Copy)]
struct Stance {
    at: Option<Patch>,
    range: RangeSet,
}

/// A rectangle of patches: two corners, inclusive.
type Corners = (Patch, Patch);

impl Stance {
    /// The patches that the entity reaches.
    fn reach(&self) -> Option<Corners> {
        let (at, reach) = (self.at?, self.range.reach()?);
        Some((
            Patch { x: at.x - reach, z: at.z - reach },
            Patch { x: at.x + reach, z: at.z + reach },
        ))
    }

    /// The ring that the entity shares with an entity in `cell`: the ring's bit, or 0.
    #[inline]
    fn sees(&self, cell: Patch) -> u32 {
        match self.at {
            Some(at) => {
                u32::from(self.range.bits()) & 1_u32.checked_shl(at.ring(cell)).unwrap_or(0)
            }
            None => 0,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Patches {
    records: Vec<Record>,
    spots: Vec<Spot>,
    changed: Vec<u32>,
    /// Differences of pairs in which both changed: lower slot, higher slot, whether they entered.
    kept_back: Vec<(u32, u32, bool)>,
    grid: Grid,
    /// Number of entities in the index per range.
    ranges: [u32; 8],
    ground: Rect,
    cols: u32,
    /// Offset from the grid's corner to the ground's corner.
    offset: (u32, u32),
    /// 2^63 / patch side, rounded up: a multiplication in place of a division. Exact, because an
    /// offset is below 2^32 and a side below 2^31.
    inverse: u64,
}

impl Patches {
    pub fn new(ground: Rect, patch_cm: i32) -> Patches {
        assert!(patch_cm > 0, "a patch of {patch_cm} cm");
        let (cols, rows) = patches_of(ground, patch_cm);
        assert!(cols * rows < NOWHERE.into(), "{cols} x {rows} patches of {patch_cm} cm");
        let grid = Grid::new(ground, patch_cm);
        let corner = grid.corner_of(Patch { x: 0, z: 0 });
        Patches {
            records: Vec::new(),
            spots: Vec::new(),
            changed: Vec::new(),
            kept_back: Vec::new(),
            ranges: [0; 8],
            ground,
            cols: grid.cols() as u32,
            offset: (ground.x0.abs_diff(corner.x), ground.z0.abs_diff(corner.z)),
            inverse: (1 << 63) / patch_cm as u64 + 1,
            grid,
        }
    }

    #[inline]
    fn cell_of(&self, p: Pos) -> u32 {
        if !self.ground.contains(p) {
            return NOWHERE;
        }
        let column = |d: u32| ((u128::from(d) * u128::from(self.inverse)) >> 63) as u32;
        let x = column(p.x.abs_diff(self.ground.x0) + self.offset.0);
        let z = column(p.z.abs_diff(self.ground.z0) + self.offset.1);
        z * self.cols + x
    }

    fn patch(&self, cell: u32) -> Option<Patch> {
        let at = || Patch { x: (cell % self.cols) as i32, z: (cell / self.cols) as i32 };
        (cell != NOWHERE).then(at)
    }

    pub fn add(&mut self, slot: u32, pos: Pos, range: RangeSet) {
        if slot as usize >= self.records.len() {
            self.records.resize(slot as usize + 1, FREE);
            self.spots.resize(slot as usize + 1, Spot::NONE);
        }
        self.move_to(slot, pos);
        self.set_range(slot, range);
    }

    pub fn remove(&mut self, slot: u32) {
        self.records[slot as usize].next = NOWHERE;
        self.queue(slot);
    }

    #[inline]
    pub fn move_to(&mut self, slot: u32, pos: Pos) {
        let next = self.cell_of(pos);
        let record = &mut self.records[slot as usize];
        record.next = next;
        if next != record.cell {
            self.queue(slot);
        }
    }

    pub fn set_range(&mut self, slot: u32, range: RangeSet) {
        self.records[slot as usize].next_range = range;
        self.queue(slot);
    }

    #[inline]
    fn queue(&mut self, slot: u32) {
        let record = &mut self.records[slot as usize];
        if !record.queued {
            record.queued = true;
            self.changed.push(slot);
        }
    }

    pub fn end_tick(&mut self, mut emit: impl FnMut(RangeEvent)) {
        let mut changed = std::mem::take(&mut self.changed);
        changed.retain(|&slot| {
            let record = &mut self.records[slot as usize];
            record.queued = record.cell != record.next || record.range != record.next_range;
            if record.queued {
                self.grid.set_tag(self.spots[slot as usize], tag(record.range) | CHANGED);
            }
            record.queued
        });
        for &slot in &changed {
            self.step(slot, &mut emit);
        }
        for slot in changed.drain(..) {
            let record = &mut self.records[slot as usize];
            record.queued = false;
            self.grid.set_tag(self.spots[slot as usize], tag(record.range));
        }
        self.changed = changed;
        self.tell_kept_back(&mut emit);
    }

    /// Moves one entity from its old state to its new one.
    fn step(&mut self, slot: u32, emit: &mut impl FnMut(RangeEvent)) {
        let r = self.records[slot as usize];
        let was = Stance { at: self.patch(r.cell), range: r.range };
        let is = Stance { at: self.patch(r.next), range: r.next_range };
        if was.at.is_some() {
            self.lift(slot);
            self.ranges[usize::from(was.range.bits())] -= 1;
        }
        // If all entities have one range without a gap, patches in both neighbourhoods keep their
        // state.
        let alike = was.range == is.range && self.all_have(is.range);
        let others = if alike { (is.reach(), was.reach()) } else { (None, None) };
        self.compare(slot, (was, is), (was.reach(), others.0), false, emit);
        self.compare(slot, (is, was), (is.reach(), others.1), true, emit);
        if let Some(at) = is.at {
            let corner = self.grid.corner_of(at);
            self.spots[slot as usize] = self.grid.insert(slot, tag(is.range) | CHANGED, corner);
            self.ranges[usize::from(is.range.bits())] += 1;
        }
        let record = &mut self.records[slot as usize];
        (record.cell, record.range) = (r.next, r.next_range);
    }

    /// Removes an entity from the index.
    fn lift(&mut self, slot: u32) {
        let spot = std::mem::replace(&mut self.spots[slot as usize], Spot::NONE);
        if let Some(displaced) = self.grid.remove(spot) {
            self.spots[displaced as usize] = spot;
        }
    }

    /// Whether `range` has no gap and every entity in the index has it.
    fn all_have(&self, range: RangeSet) -> bool {
        let bits = usize::from(range.bits());
        matches!(bits, 1 | 3 | 7) && self.ranges[bits] as usize == self.grid.len()
    }

    /// Reports the pairs of the entity at `slot` that are in range as `here` and not as `there`,
    /// within the first of two rectangles and outside the second.
    fn compare(
        &mut self,
        slot: u32,
        (here, there): (Stance, Stance),
        within: (Option<Corners>, Option<Corners>),
        entered: bool,
        emit: &mut impl FnMut(RangeEvent),
    ) {
        let Patches { grid, kept_back, .. } = self;
        let Some(inside) = within.0 else { return };
        grid.difference(inside, within.1, |at, entries: &[IndexEntry]| {
            let (sees, saw) = (here.sees(at), there.sees(at));
            if sees == 0 || sees == saw {
                return;
            }
            for e in entries {
                if e.tag & sees == 0 || e.tag & saw != 0 {
                    continue;
                }
                if e.tag & CHANGED == 0 {
                    emit(RangeEvent::of(entered, slot, e.slot));
                } else {
                    kept_back.push((slot.min(e.slot), slot.max(e.slot), entered));
                }
            }
        });
    }

    /// Reports the differences that were held back, except pairs that cancel.
    fn tell_kept_back(&mut self, emit: &mut impl FnMut(RangeEvent)) {
        self.kept_back.sort_unstable();
        let mut rest = &self.kept_back[..];
        while let [(a, b, entered), tail @ ..] = rest {
            rest = match tail {
                [(c, d, _), tail @ ..] if (a, b) == (c, d) => tail,
                _ => {
                    emit(RangeEvent::of(*entered, *a, *b));
                    tail
                }
            };
        }
        self.kept_back.clear();
    }
}

fn tag(range: RangeSet) -> u32 {
    range.bits().into()
}
