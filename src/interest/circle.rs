//! Range events by distance, with hysteresis.
//!
//! A pair lies in one of three zones. Within the enter radius it is in range, beyond the leave
//! radius it is not, and in the shell between it keeps its state. So only the shell needs memory:
//! the pairs there that are in range.
//!
//! Each tick all positions are sorted by cell, row by row, so that adjacent cells of a row are
//! contiguous in memory. Each pair of neighbours is examined once: in single precision whether its
//! zone may have changed, and if so again in integers. An entity that appears, disappears or moves
//! farther than its neighbourhood allows has *jumped*. It is compared with all entities around its
//! old position, as sorted in the tick before, and around its new one.

mod sorted;

use self::sorted::{BLOCK, Filter, Sorted};
use super::RangeEvent;
use crate::scene::geo::dist2;
use crate::scene::{Pos, Rect};

/// Rings of cells that the leave radius covers. More rings fit the circle better and hold fewer
/// entities per cell; two to four rings cost about the same.
const REACH: i32 = 3;

/// Position on the ground; `None`: absent.
type PatchPos = Option<(i32, i32)>;

/// The zone of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zone {
    /// Within the enter radius: in range.
    Inside,
    /// Between the radii: the state is kept.
    Shell,
    /// Beyond the leave radius, or one of the two is absent: not in range.
    Outside,
}

/// The squares of the radii, square centimetres.
#[derive(Debug, Clone, Copy)]
struct Radii {
    enter2: u64,
    leave2: u64,
}

impl Radii {
    fn new(enter_cm: i32, leave_cm: i32) -> Radii {
        let square = |r: i32| (i64::from(r) * i64::from(r)) as u64;
        Radii { enter2: square(enter_cm), leave2: square(leave_cm) }
    }

    #[inline]
    fn zone(&self, a: PatchPos, b: PatchPos) -> Zone {
        let (Some(a), Some(b)) = (a, b) else { return Zone::Outside };
        match dist2(a.0, a.1, b.0, b.1) {
            d if d <= self.enter2 => Zone::Inside,
            d if d <= self.leave2 => Zone::Shell,
            _ => Zone::Outside,
        }
    }

    /// The filter for pairs whose zone may have changed, if squared distances are at most `most2`.
    fn filter(&self, most2: f64) -> Filter {
        let (enter2, leave2) = (self.enter2 as f64, self.leave2 as f64);
        // Conversion, squares and sum err by less than 2^-21 of a squared distance; on the near
        // side of a radius that is less than 2^-21 of its square.
        let doubt = leave2 * most2 / f64::from(1 << 20);
        Filter { enter2: enter2 as f32, leave2: leave2 as f32, doubt: doubt as f32 }
    }
}

/// Pairs in the shell that are in range: for each lower slot the higher ones.
#[derive(Debug, Clone, Default)]
struct Linked(Vec<Vec<u32>>);

impl Linked {
    fn take(&mut self, a: u32, b: u32) -> bool {
        let list = &mut self.0[a as usize];
        let at = list.iter().position(|x| *x == b);
        at.map(|at| list.swap_remove(at)).is_some()
    }
}

#[derive(Debug, Clone)]
pub struct Circle {
    ground: Rect,
    radii: Radii,
    leave_cm: i32,
    side_cm: i32,
    now: Vec<PatchPos>,
    before: Vec<PatchPos>,
    jumped: Vec<bool>,
    jumpers: Vec<u32>,
    linked: Linked,
    sorted: Sorted,
    sorted_before: Sorted,
}

impl Circle {
    pub fn new(ground: Rect, enter_cm: i32, leave_cm: i32) -> Circle {
        // A sixteenth is the room for two entities that walk away from each other.
        let side_cm = (leave_cm.saturating_add(leave_cm / 16 + 2) / REACH).max(1);
        Circle {
            ground,
            radii: Radii::new(enter_cm, leave_cm),
            leave_cm,
            side_cm,
            now: Vec::new(),
            before: Vec::new(),
            jumped: Vec::new(),
            jumpers: Vec::new(),
            linked: Linked::default(),
            sorted: Sorted::default(),
            sorted_before: Sorted::default(),
        }
    }

    /// Sets an entity's position; `None` removes it.
    #[inline]
    pub fn place(&mut self, slot: u32, pos: Option<Pos>) {
        if slot as usize >= self.now.len() {
            let slots = slot as usize + 1;
            self.now.resize(slots, None);
            self.before.resize(slots, None);
            self.jumped.resize(slots, false);
            self.linked.0.resize(slots, Vec::new());
        }
        self.now[slot as usize] = pos.filter(|p| self.ground.contains(*p)).map(|p| (p.x, p.z));
    }

    pub fn end_tick(&mut self, mut emit: impl FnMut(RangeEvent)) {
        std::mem::swap(&mut self.sorted, &mut self.sorted_before);
        let population = self.now.len();
        let side_cm = Sorted::roomy_side(self.side_cm, self.ground, population);
        self.find_jumpers(side_cm);
        self.sorted.sort(self.ground, side_cm, &self.now, &self.before, &self.jumped);
        for i in 0..self.jumpers.len() {
            self.jump(self.jumpers[i], &mut emit);
        }
        self.walk(&mut emit);
        for slot in self.jumpers.drain(..) {
            self.jumped[slot as usize] = false;
        }
        self.before.copy_from_slice(&self.now);
    }

    fn find_jumpers(&mut self, side_cm: i32) {
        // Two entities that were in range and part at this speed are still in each other's
        // neighbourhood.
        let most = i64::from(side_cm) * i64::from(REACH) - i64::from(self.leave_cm);
        let most2 = ((most / 2) * (most / 2)) as u64;
        for (slot, (now, before)) in self.now.iter().zip(&self.before).enumerate() {
            let jumped = match (now, before) {
                (Some(a), Some(b)) => dist2(a.0, a.1, b.0, b.1) > most2,
                (None, None) => false,
                _ => true,
            };
            if jumped {
                self.jumped[slot] = true;
                self.jumpers.push(slot as u32);
            }
        }
    }

    /// Compares an entity that jumped with those around its old position, then around its new one.
    fn jump(&mut self, slot: u32, emit: &mut impl FnMut(RangeEvent)) {
        let Circle { radii, leave_cm, now, before, jumped, linked, sorted, sorted_before, .. } =
            self;
        let (was, is) = (before[slot as usize], now[slot as usize]);
        // If both entities of a pair jumped, the lower slot reports it.
        let mine = |other: u32| other != slot && !(jumped[other as usize] && other < slot);
        if let Some(place) = was {
            sorted_before.around(place, *leave_cm, |other| {
                let old = radii.zone(was, before[other as usize]);
                if mine(other) && old != Zone::Outside {
                    let new = radii.zone(is, now[other as usize]);
                    change(linked, slot, other, (old, new), emit);
                }
            });
        }
        if let Some(place) = is {
            sorted.around(place, *leave_cm, |other| {
                let new = radii.zone(is, now[other as usize]);
                if mine(other) && new == Zone::Inside {
                    let old = radii.zone(was, before[other as usize]);
                    if old == Zone::Outside {
                        change(linked, slot, other, (old, new), emit);
                    }
                }
            });
        }
    }

    /// Compares each entity that did not jump with its neighbours, each pair once.
    fn walk(&mut self, emit: &mut impl FnMut(RangeEvent)) {
        let Circle { radii, now, before, jumped, linked, sorted, .. } = self;
        let filter = radii.filter(sorted.most_squared(REACH + 1));
        let mut margins = [0.0; BLOCK];
        sorted.each_cell(REACH, |members, rows| {
            for i in members.clone() {
                let me = sorted.slots[i];
                if jumped[me as usize] {
                    continue;
                }
                let first = i + 1..rows[0].end;
                for row in std::iter::once(&first).chain(&rows[1..]) {
                    sorted.suspects(i, row.clone(), &filter, &mut margins, |other| {
                        let (a, b) = (me as usize, other as usize);
                        if !jumped[b] {
                            let zones =
                                (radii.zone(before[a], before[b]), radii.zone(now[a], now[b]));
                            change(linked, me, other, zones, emit);
                        }
                    });
                }
            }
        });
    }
}

/// Moves a pair from one zone to another: updates the shell's memory, and reports a changed state.
fn change(
    linked: &mut Linked,
    one: u32,
    other: u32,
    (old, new): (Zone, Zone),
    emit: &mut impl FnMut(RangeEvent),
) {
    if old == new {
        return;
    }
    let (a, b) = (one.min(other), one.max(other));
    let was = match old {
        Zone::Inside => true,
        Zone::Shell => linked.take(a, b),
        Zone::Outside => false,
    };
    let is = match new {
        Zone::Inside => true,
        Zone::Shell => was,
        Zone::Outside => false,
    };
    if is && new == Zone::Shell {
        linked.0[a as usize].push(b);
    }
    if was != is {
        emit(RangeEvent::of(is, a, b));
    }
}
