//! A queue in the order of arrival, with an index by entity.
//!
//! After a death, in a layout change or when many entities are created at once as many items wait as look-ups are
//! made: without the index their cost would grow with the square of the number.

use std::collections::{BTreeMap, BTreeSet};

use crate::scene::EntityId;
use crate::scene::messages::{Handoff, Spawn};

/// An item that is about one entity.
pub trait OfEntity {
    /// The entity.
    fn entity(&self) -> EntityId;
}

impl OfEntity for Spawn {
    fn entity(&self) -> EntityId {
        self.id
    }
}

impl OfEntity for Handoff {
    fn entity(&self) -> EntityId {
        self.state.id
    }
}

impl<A, T: OfEntity> OfEntity for (A, T) {
    fn entity(&self) -> EntityId {
        self.1.entity()
    }
}

/// The queue. It may hold several items of one entity.
#[derive(Debug, Clone)]
pub struct Waiting<T> {
    /// By the number of items that had come before.
    all: BTreeMap<u64, T>,
    by_entity: BTreeSet<(EntityId, u64)>,
    next: u64,
}

impl<T> Default for Waiting<T> {
    fn default() -> Waiting<T> {
        Waiting { all: BTreeMap::new(), by_entity: BTreeSet::new(), next: 0 }
    }
}

impl<T: OfEntity> Waiting<T> {
    /// Adds an item at the end.
    pub fn push(&mut self, new: T) {
        self.by_entity.insert((new.entity(), self.next));
        self.all.insert(self.next, new);
        self.next += 1;
    }

    /// The first item of an entity.
    pub fn first_of(&self, id: EntityId) -> Option<&T> {
        self.all.get(&self.numbers_of(id).next()?)
    }

    /// Whether there is anything of an entity.
    pub fn has(&self, id: EntityId) -> bool {
        self.numbers_of(id).next().is_some()
    }

    /// Takes the first thing of an entity.
    pub fn take_first_of(&mut self, id: EntityId) -> Option<T> {
        let number = self.numbers_of(id).next()?;
        self.by_entity.remove(&(id, number));
        self.all.remove(&number)
    }

    /// Of what is of an entity, keeps only this.
    pub fn retain_of(&mut self, id: EntityId, keep: impl Fn(&T) -> bool) {
        let is_over = |number: &u64| self.all.get(number).is_some_and(|one| !keep(one));
        let over: Vec<u64> = self.numbers_of(id).filter(is_over).collect();
        for number in over {
            self.by_entity.remove(&(id, number));
            self.all.remove(&number);
        }
    }

    /// Takes all of it, in order.
    pub fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(self).all.into_values()
    }

    /// All of it, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.values()
    }

    /// The same, to change what is not its entity.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.values_mut()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn numbers_of(&self, id: EntityId) -> impl Iterator<Item = u64> {
        self.by_entity.range((id, 0)..=(id, u64::MAX)).map(|(_, number)| *number)
    }
}

impl<T: OfEntity> FromIterator<T> for Waiting<T> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Waiting<T> {
        let mut waiting = Waiting::default();
        all.into_iter().for_each(|one| waiting.push(one));
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Thing(u64, u32);

    impl OfEntity for Thing {
        fn entity(&self) -> EntityId {
            EntityId(self.0)
        }
    }

    fn rest(waiting: &Waiting<Thing>) -> Vec<u32> {
        waiting.iter().map(|thing| thing.1).collect()
    }

    #[test]
    fn what_waits_keeps_its_order_and_is_found_by_its_entity() {
        let mut waiting: Waiting<_> =
            [(3, 0), (1, 1), (3, 2), (2, 3)].map(|(id, n)| Thing(id, n)).into_iter().collect();
        let (one, three, none) = (EntityId(1), EntityId(3), EntityId(4));
        assert_eq!(waiting.first_of(three), Some(&Thing(3, 0)));
        assert!(waiting.has(one) && !waiting.has(none) && waiting.first_of(none).is_none());
        assert_eq!(waiting.take_first_of(three), Some(Thing(3, 0)));
        assert_eq!((waiting.first_of(three), rest(&waiting)), (Some(&Thing(3, 2)), vec![1, 2, 3]));
        waiting.push(Thing(1, 4));
        waiting.push(Thing(1, 5));
        waiting.retain_of(one, |thing| thing.1 == 4);
        assert_eq!(rest(&waiting), [2, 3, 4]);
        assert_eq!(waiting.take_first_of(one), Some(Thing(1, 4)));
        assert!(!waiting.has(one) && waiting.take_first_of(one).is_none());
        assert_eq!(waiting.take().map(|thing| thing.1).collect::<Vec<_>>(), [2, 3]);
        assert!(waiting.is_empty() && !waiting.has(three));
    }
}
