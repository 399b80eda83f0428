//! Groups of bonded entities, by slots.

use rustc_hash::FxHashMap;

use super::request::{BONDS, MOST_BONDED};
use crate::scene::views::NO_BOND;

/// Who is bonded to whom.
#[derive(Debug, Clone, Default)]
pub struct Bonds {
    /// The groups of the entities that have any, by strength; 0: none.
    of: FxHashMap<u32, [u64; BONDS]>,
    members: FxHashMap<(u8, u64), Vec<u32>>,
}

impl Bonds {
    /// The groups of an entity.
    #[inline]
    pub fn of(&self, slot: u32) -> [u64; BONDS] {
        match self.of.is_empty() {
            true => [0; BONDS],
            false => self.of.get(&slot).copied().unwrap_or_default(),
        }
    }

    /// Puts an entity into a group, and takes it out of its former one. Returns whether the group
    /// has room; otherwise nothing changes.
    pub fn set(&mut self, slot: u32, strength: u8, group: u64) -> bool {
        let mut groups = self.of(slot);
        let former = std::mem::replace(&mut groups[usize::from(strength)], group);
        if former == group {
            return true;
        }
        if group != 0 {
            let members = self.members.entry((strength, group)).or_default();
            if members.len() >= MOST_BONDED {
                return false;
            }
            members.push(slot);
        }
        self.leave(slot, strength, former);
        match groups {
            [0, 0, 0, 0] => self.of.remove(&slot),
            groups => self.of.insert(slot, groups),
        };
        true
    }

    fn leave(&mut self, slot: u32, strength: u8, group: u64) {
        let Some(members) = self.members.get_mut(&(strength, group)) else { return };
        members.retain(|member| *member != slot);
        if members.is_empty() {
            self.members.remove(&(strength, group));
        }
    }

    /// Takes a deleted entity out of its groups.
    pub fn forget(&mut self, slot: u32) {
        let Some(groups) = self.of.remove(&slot) else { return };
        for (strength, group) in groups.into_iter().enumerate() {
            self.leave(slot, strength as u8, group);
        }
    }

    /// The strength of the strongest bond that two entities share; [`NO_BOND`] without one.
    #[inline]
    pub fn strongest(&self, a: u32, b: u32) -> u8 {
        if self.of.is_empty() {
            return NO_BOND;
        }
        let shared = |(a, b): (u64, u64)| a == b && a != 0;
        let at = self.of(a).into_iter().zip(self.of(b)).position(shared);
        at.map_or(NO_BOND, |at| at as u8)
    }

    /// The groups.
    pub fn groups(&self) -> impl Iterator<Item = &[u32]> {
        self.members.values().map(Vec::as_slice)
    }
}
