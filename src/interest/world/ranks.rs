//! The order of ids as small numbers, so that events are sorted as integers.

use super::{Change, Event, radix};

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
    keys: Vec<u64>,
    spare: Vec<u64>,
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

    /// The changes as events, sorted.
    pub fn sort(&mut self, changes: &[Change], events: &mut Vec<Event>) {
        // As few bits as the ranks need: each costs time.
        let bits = usize::BITS - self.ids.len().leading_zeros();
        let rank = |slot: u32| u64::from(self.ranks[slot as usize]);
        let key = |change: &Change| {
            let (observer, subject) = (rank(change.observer), rank(change.subject));
            observer << (bits + 1) | subject << 1 | u64::from(change.appears)
        };
        super::clear(&mut self.keys);
        self.keys.extend(changes.iter().map(key));
        radix::sort(&mut self.keys, &mut self.spare, 2 * bits + 1);
        let subjects = (1_u64 << bits) - 1;
        events.extend(self.keys.iter().map(|key| Event {
            observer: self.ids[(key >> (bits + 1)) as usize],
            subject: self.ids[(key >> 1 & subjects) as usize],
            appears: key & 1 == 1,
        }));
    }
}
