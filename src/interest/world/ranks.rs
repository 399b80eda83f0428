//! The order of ids as small numbers, so that events are sorted as integers.

use super::Event;
use super::changes::Change;

/// The ids of a world in ascending order. Equal ids, of a deleted entity and its successor, have one
/// rank.
#[derive(Debug, Clone, Default)]
pub struct Ranks {
    /// Ids and slots, sorted.
    order: Vec<(u64, u32)>,
    /// Those of new entities, in no order.
    new: Vec<(u64, u32)>,
    ids: Vec<u64>,
    /// By slot.
    ranks: Vec<u32>,
}

impl Ranks {
    pub fn add(&mut self, id: u64, slot: u32) {
        self.new.push((id, slot));
    }

    /// Takes in the new entities. `is_here`: whether a slot holds this id, or did in the last tick.
    pub fn update(&mut self, slots: usize, is_here: impl Fn(u64, u32) -> bool) {
        if self.new.is_empty() {
            return;
        }
        self.order.append(&mut self.new);
        self.order.retain(|(id, slot)| is_here(*id, *slot));
        // A sorted run and a short one: the stable sort merges them.
        self.order.sort();
        self.order.dedup();
        self.ids.clear();
        self.ranks.resize(slots, 0);
        for (id, slot) in &self.order {
            if self.ids.last() != Some(id) {
                self.ids.push(*id);
            }
            self.ranks[*slot as usize] = (self.ids.len() - 1) as u32;
        }
    }

    /// The ids and slots of entities, by ascending ids, and those of entities that have gone.
    pub fn order(&self) -> &[(u64, u32)] {
        &self.order
    }

    /// How changes of these entities become keys.
    pub fn keys(&self) -> Keys<'_> {
        // As few bits as the ranks need: each costs time.
        let bits = usize::BITS - self.ids.len().leading_zeros();
        Keys { ids: &self.ids, ranks: &self.ranks, bits }
    }
}

/// Changes as integers that sort as events do: observer, subject, and whether it appears.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    ids: &'a [u64],
    ranks: &'a [u32],
    bits: u32,
}

impl Keys<'_> {
    #[inline]
    pub fn of(&self, change: Change) -> u64 {
        let rank = |slot: u32| u64::from(self.ranks[slot as usize]);
        let (observer, subject) = (rank(change.observer()), rank(change.subject()));
        observer << (self.bits + 1) | subject << 1 | u64::from(change.appears())
    }

    #[inline]
    pub fn event(&self, key: u64) -> Event {
        let subjects = (1_u64 << self.bits) - 1;
        Event {
            observer: self.ids[(key >> (self.bits + 1)) as usize],
            subject: self.ids[(key >> 1 & subjects) as usize],
            appears: key & 1 == 1,
        }
    }

    /// Bits of a key.
    pub fn bits(&self) -> u32 {
        2 * self.bits + 1
    }
}
