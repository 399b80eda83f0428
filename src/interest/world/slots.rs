//! The slots of ids. A caller names many entities per tick, and mostly in the order of the tick
//! before: then a slot is found without the hash map, whose entries are all over the memory.

use rustc_hash::FxHashMap;

#[derive(Debug, Clone, Default)]
pub struct Slots {
    by_id: FxHashMap<u64, u32>,
    /// By slot, the slot that was asked for after it.
    after: Vec<u32>,
    last: u32,
}

impl Slots {
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub fn contains(&self, id: u64) -> bool {
        self.by_id.contains_key(&id)
    }

    /// The slot of an id.
    #[inline]
    pub fn get(&self, id: u64) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    /// The same, and remembers the order in which slots are asked for. `is_there`: whether an entity
    /// of this id is in a slot.
    #[inline]
    pub fn follow(&mut self, id: u64, is_there: impl Fn(u32) -> bool) -> Option<u32> {
        let next = self.after.get(self.last as usize).copied();
        let slot = match next.filter(|slot| is_there(*slot)) {
            Some(slot) => slot,
            None => self.learn(id)?,
        };
        self.last = slot;
        Some(slot)
    }

    fn learn(&mut self, id: u64) -> Option<u32> {
        let slot = self.get(id)?;
        if let Some(after) = self.after.get_mut(self.last as usize) {
            *after = slot;
        }
        Some(slot)
    }

    pub fn insert(&mut self, id: u64, slot: u32) {
        self.by_id.insert(id, slot);
        while self.after.len() <= slot as usize {
            self.after.push(self.after.len() as u32 + 1);
        }
    }

    pub fn remove(&mut self, id: u64) {
        self.by_id.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_is_learned_and_checked() {
        let ids = [70, 30, 50, 10];
        let mut slots = Slots::default();
        ids.iter().enumerate().for_each(|(slot, id)| slots.insert(*id, slot as u32));
        let find =
            |slots: &mut Slots, id| slots.follow(id, |slot| ids.get(slot as usize) == Some(&id));
        for round in 0..3 {
            for id in [10, 70, 50, 30] {
                let slot = ids.iter().position(|one| *one == id).map(|slot| slot as u32);
                assert_eq!(find(&mut slots, id), slot, "round {round}");
            }
            assert_eq!(find(&mut slots, 71), None);
        }
        assert_eq!((slots.after[3], slots.after[0], slots.after[2]), (0, 2, 1));
        slots.remove(50);
        assert_eq!((slots.get(50), slots.contains(70), slots.len()), (None, true, 3));
    }
}
