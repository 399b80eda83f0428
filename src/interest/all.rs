//! Range events where all entities on the ground are in range of each other.

use super::RangeEvent;
use crate::scene::{Pos, Rect};

#[derive(Debug, Clone, Copy, Default)]
struct Presence {
    was: bool,
    is: bool,
    queued: bool,
}

#[derive(Debug, Clone)]
pub struct All {
    ground: Rect,
    slots: Vec<Presence>,
    changed: Vec<u32>,
}

impl All {
    pub fn new(ground: Rect) -> All {
        All { ground, slots: Vec::new(), changed: Vec::new() }
    }

    /// Sets an entity's position; `None` removes it.
    #[inline]
    pub fn place(&mut self, slot: u32, pos: Option<Pos>) {
        if slot as usize >= self.slots.len() {
            self.slots.resize(slot as usize + 1, Presence::default());
        }
        let p = &mut self.slots[slot as usize];
        p.is = pos.is_some_and(|pos| self.ground.contains(pos));
        if p.is != p.was && !p.queued {
            p.queued = true;
            self.changed.push(slot);
        }
    }

    pub fn end_tick(&mut self, mut emit: impl FnMut(RangeEvent)) {
        for &slot in &self.changed {
            let me = self.slots[slot as usize];
            for (other, o) in self.slots.iter().enumerate().map(|(i, o)| (i as u32, o)) {
                // If both entities of a pair are queued, the lower slot reports it.
                if other == slot || (o.queued && other < slot) {
                    continue;
                }
                let is = me.is && o.is;
                if (me.was && o.was) != is {
                    emit(RangeEvent::of(is, slot, other));
                }
            }
        }
        for slot in self.changed.drain(..) {
            let p = &mut self.slots[slot as usize];
            (p.was, p.queued) = (p.is, false);
        }
    }
}
