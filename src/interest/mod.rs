//! Interest management by itself: which pairs come into range and leave it, without caps, view
//! lists or regions.
//!
//! For teams that embed it in a server of their own. A pair must be reported exactly when its state
//! at the end of a tick differs from the tick before.
//!
//! Positions are set during a tick. [`RangeEvents::end_tick`] then reports the net difference from
//! the end of the previous tick: each pair whose state changed, exactly once, whatever the order of
//! calls. A pair that met and parted within one tick is not reported.
//!
//! ```
//! use purview::interest::{RangeEvent, RangeEvents};
//! use purview::scene::{Pos, RangeSet, Rect, Visibility};
//!
//! let ground = Rect { x0: 0, z0: 0, x1: 102_400, z1: 102_400 };
//! let mut ranges = RangeEvents::new(ground, 3_200, Visibility::Patches);
//! let guard = ranges.add(Pos::ground(1_000, 1_000), RangeSet::FULL);
//! let thief = ranges.add(Pos::ground(90_000, 1_000), RangeSet::FULL);
//! ranges.end_tick(|event| panic!("they are far apart: {event:?}"));
//!
//! ranges.move_to(thief, Pos::ground(7_000, 1_000));
//! let mut told = Vec::new();
//! ranges.end_tick(|event| told.push(event));
//! assert_eq!(told, [RangeEvent::Entered { a: guard, b: thief }]);
//!
//! ranges.remove(thief);
//! told.clear();
//! ranges.end_tick(|event| told.push(event));
//! assert_eq!(told, [RangeEvent::Left { a: guard, b: thief }]);
//! ```
//!
//! | mode | in range | work per tick |
//! |---|---|---|
//! | [`Visibility::Patches`] | the ring between the two is in both range sets | entities that
//! change patch |
//! | [`Visibility::Circle`] | from the enter radius until beyond the leave radius | each pair of
//! neighbours |
//! | [`Visibility::All`] | both are on the ground | entities that come or go |
//!
//! *Absent on purpose:* ids, planes and kinds. Use one `RangeEvents` per plane and layer, and map
//! slots to your own ids; or a [`World`], which has all of them, tells observers from subjects, and
//! refuses what is not legal. [`Worlds`] holds the worlds of many scenes.

mod all;
mod circle;
mod patches;
mod world;

use self::all::All;
use self::circle::Circle;
use self::patches::Patches;
pub use self::world::*;
use crate::scene::{Pos, RangeSet, Rect, Visibility};

/// A change between two entities, given by slots; `a` is the lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RangeEvent {
    /// The two are in range of each other from this tick on.
    Entered {
        /// The lower slot.
        a: u32,
        /// The higher slot.
        b: u32,
    },
    /// The two are no longer in range of each other, or one of them was removed.
    Left {
        /// The lower slot.
        a: u32,
        /// The higher slot.
        b: u32,
    },
}

impl RangeEvent {
    #[inline]
    fn of(entered: bool, one: u32, other: u32) -> RangeEvent {
        let (a, b) = (one.min(other), one.max(other));
        if entered { RangeEvent::Entered { a, b } } else { RangeEvent::Left { a, b } }
    }
}

#[derive(Debug, Clone)]
enum Engine {
    Patches(Box<Patches>),
    Circle(Box<Circle>),
    All(All),
}

/// Reports which pairs come into range and leave it.
///
/// [`RangeEvents::add`] assigns dense slots. The slot of a removed entity is free for reuse from
/// the end of the tick on. A call with a slot that is not in use changes nothing.
#[derive(Debug, Clone)]
pub struct RangeEvents {
    engine: Engine,
    used: Vec<bool>,
    free: Vec<u32>,
    removed: Vec<u32>,
}

impl RangeEvents {
    /// No entities yet, on `ground`. An entity outside the ground is in range of none. Patches are
    /// `patch_cm` wide and start at the map's origin (Patches only; the cells of a circle follow
    /// from its radius).
    ///
    /// # Panics
    /// If `patch_cm` is not positive, the ground is empty or a side exceeds 10^9 cm, or there are
    /// 2^32 patches or more.
    pub fn new(ground: Rect, patch_cm: i32, visibility: Visibility) -> RangeEvents {
        let side = |a: i32, b: i32| i64::from(b) - i64::from(a);
        for side in [side(ground.x0, ground.x1), side(ground.z0, ground.z1)] {
            assert!(
                (1..=1_000_000_000).contains(&side),
                "a side of the ground is {side} cm; it must be 1 to 10^9 cm"
            );
        }
        let engine = match visibility {
            Visibility::Patches => Engine::Patches(Box::new(Patches::new(ground, patch_cm))),
            Visibility::Circle { enter_cm, leave_cm } => {
                Engine::Circle(Box::new(Circle::new(ground, enter_cm, leave_cm)))
            }
            Visibility::All => Engine::All(All::new(ground)),
        };
        RangeEvents { engine, used: Vec::new(), free: Vec::new(), removed: Vec::new() }
    }

    /// Number of entities.
    pub fn len(&self) -> usize {
        self.used.len() - self.free.len() - self.removed.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an entity and returns its slot. `range` matters in Patches only.
    pub fn add(&mut self, pos: Pos, range: RangeSet) -> u32 {
        let slot = self.free.pop().unwrap_or(self.used.len() as u32);
        if slot as usize == self.used.len() {
            self.used.push(true);
        } else {
            self.used[slot as usize] = true;
        }
        match &mut self.engine {
            Engine::Patches(e) => e.add(slot, pos, range),
            Engine::Circle(e) => e.place(slot, Some(pos)),
            Engine::All(e) => e.place(slot, Some(pos)),
        }
        slot
    }

    /// Removes an entity; `end_tick` reports the pairs that it leaves.
    pub fn remove(&mut self, slot: u32) {
        if !self.is_used(slot) {
            return;
        }
        self.used[slot as usize] = false;
        self.removed.push(slot);
        match &mut self.engine {
            Engine::Patches(e) => e.remove(slot),
            Engine::Circle(e) => e.place(slot, None),
            Engine::All(e) => e.place(slot, None),
        }
    }

    /// Moves an entity, by any distance.
    #[inline]
    pub fn move_to(&mut self, slot: u32, pos: Pos) {
        if !self.is_used(slot) {
            return;
        }
        match &mut self.engine {
            Engine::Patches(e) => e.move_to(slot, pos),
            Engine::Circle(e) => e.place(slot, Some(pos)),
            Engine::All(e) => e.place(slot, Some(pos)),
        }
    }

    /// Sets an entity's range (Patches only; no effect in the other modes).
    pub fn set_range(&mut self, slot: u32, range: RangeSet) {
        if let (true, Engine::Patches(e)) = (self.is_used(slot), &mut self.engine) {
            e.set_range(slot, range);
        }
    }

    /// Ends the tick: calls `emit` once for each pair whose state differs from the end of the
    /// previous tick, in no particular order.
    pub fn end_tick(&mut self, emit: impl FnMut(RangeEvent)) {
        match &mut self.engine {
            Engine::Patches(e) => e.end_tick(emit),
            Engine::Circle(e) => e.end_tick(emit),
            Engine::All(e) => e.end_tick(emit),
        }
        self.free.append(&mut self.removed);
    }

    #[inline]
    fn is_used(&self, slot: u32) -> bool {
        self.used.get(slot as usize).copied().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests;
