//! What makes entities special to each other: bonds, fights, and the groups that bonds make.

use std::collections::BTreeSet;

use super::EntityStore;
use super::records::tag_of;
use crate::scene::views::{Relations, Ties, ViewRules};
use crate::scene::{EntityId, Tick, ViewLimits};

impl EntityStore {
    /// Sets what a player asks to be shown.
    pub fn set_sight(&mut self, slot: u32, sight: ViewLimits) {
        let ties = &self.records[slot as usize].ties;
        self.places[slot as usize].tag = tag_of(sight, ties);
    }

    /// Sets what makes an entity special to others.
    pub fn set_ties(&mut self, slot: u32, ties: Ties) {
        self.leave_groups(slot);
        let sight = self.places[slot as usize].sight();
        self.places[slot as usize].tag = tag_of(sight, &ties);
        self.records[slot as usize].ties = ties;
        self.enter_groups(slot);
        let pos = self.hot[slot as usize].pos;
        self.set_pos(slot, pos);
    }

    /// Changes what makes an entity special to others.
    pub fn change_ties(&mut self, slot: u32, change: impl FnOnce(&mut Ties)) {
        let mut ties = self.records[slot as usize].ties.clone();
        change(&mut ties);
        self.set_ties(slot, ties);
    }

    /// The class of a pair, `dist_cm` apart, which both have [`TAG_BONDED`]: the strongest bond
    /// that they share, 255 when none or when either has enough companions that go before.
    pub fn bond_class(&self, rules: &ViewRules, a: u32, b: u32, dist_cm: u32) -> u8 {
        rules.class(self.ties_of(a), self.ties_of(b), &self.relations, dist_cm, self.now)
    }

    /// The strongest bond that two share, however many companions they have.
    pub fn any_class(&self, rules: &ViewRules, a: u32, b: u32) -> u8 {
        rules.any_class(self.ties_of(a), self.ties_of(b), &self.relations, self.now)
    }

    fn ties_of(&self, slot: u32) -> (EntityId, &Ties) {
        (self.hot[slot as usize].id, &self.records[slot as usize].ties)
    }

    /// Puts into `found` the slots of all entities that may share a bond with the entity at `slot`,
    /// each once, whatever their planes and places.
    pub fn companions(&self, slot: u32, found: &mut Vec<u32>) {
        found.clear();
        let ties = &self.records[slot as usize].ties;
        let related = ties.bonds.iter().flat_map(|bond| self.relations.related(*bond));
        let groups = ties.bonds.iter().copied().chain(related);
        found.extend(groups.filter_map(|bond| self.groups.get(&bond)).flatten());
        found.extend(ties.fights.iter().filter_map(|fight| self.slot(fight.with)));
        found.sort_unstable();
        found.dedup();
        found.retain(|other| *other != slot);
    }

    /// How groups stand to each other.
    pub fn relations(&self) -> &Relations {
        &self.relations
    }

    /// The same, to give orders.
    pub fn relations_mut(&mut self) -> &mut Relations {
        &mut self.relations
    }

    /// Relations that are due take effect: the players concerned are looked at anew.
    pub fn turn_relations(&mut self, now: Tick) {
        let groups = self.relations.turn(now);
        let members = groups.iter().filter_map(|bond| self.groups.get(bond)).flatten();
        let members: BTreeSet<u32> = members.copied().collect();
        for slot in members {
            let pos = self.hot[slot as usize].pos;
            self.set_pos(slot, pos);
        }
    }

    pub(super) fn enter_groups(&mut self, slot: u32) {
        for bond in &self.records[slot as usize].ties.bonds {
            self.groups.entry(*bond).or_default().insert(slot);
        }
    }

    pub(super) fn leave_groups(&mut self, slot: u32) {
        for bond in &self.records[slot as usize].ties.bonds {
            let Some(members) = self.groups.get_mut(bond) else { continue };
            members.remove(&slot);
            if members.is_empty() {
                self.groups.remove(bond);
            }
        }
    }
}
