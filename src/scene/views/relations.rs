//! Relations between groups: allies and enemies come before strangers in view lists.
//!
//! Every region of a scene has the whole table. Orders reach regions by message: late, twice, or out of order. So each
//! has a version that grows with every order of the scene, and the newest one that is due counts. What a region has
//! missed it learns from its neighbours, whose full batches contain their tables, and from any other region of the
//! scene, by comparing digests (`region/gossip.rs`).

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::{Bond, NO_BOND, Ties};
use crate::scene::Tick;

/// Most relations of a scene that are not neutral, or were not of late.
pub const MAX_RELATIONS: usize = 65_536;

/// Ticks for which a relation that has become neutral is remembered, so that an older order that arrives later changes
/// nothing.
const NEUTRAL_TICKS: u64 = 1_000;

/// How two groups stand to each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Relation {
    /// Their players count as bonded by [`ALLY`](crate::scene::spec::ALLY), if the scene has that kind of bond.
    Ally,
    /// Nothing follows from it.
    #[default]
    Neutral,
    /// Their players count as bonded by [`ENEMY`](crate::scene::spec::ENEMY), if the scene has that kind of bond, but see each
    /// other no farther than strangers do.
    Enemy,
}

/// The relation of two groups of one kind of bond, and since when it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupRelation {
    /// The class of the kind.
    pub class: u8,
    /// The two groups, which differ, in either order.
    pub groups: [u64; 2],
    /// How they stand to each other.
    pub relation: Relation,
    /// The tick at whose start it takes effect. If that tick is past: the next tick.
    pub at: Tick,
    /// Greater than the version of every earlier order of the scene. Two processes may order in the same microsecond,
    /// under one version.
    pub version: u64,
}

impl GroupRelation {
    /// Of two orders for the same groups the one of the higher rank counts, in whichever order they arrive.
    fn rank(&self) -> (u64, u8) {
        (self.version, self.relation as u8)
    }
}

/// The classes of pairs of allies and of enemies; [`NO_BOND`] where the scene has no such kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelationClasses {
    /// Of allies.
    pub ally: u8,
    /// Of enemies.
    pub enemy: u8,
}

impl RelationClasses {
    /// Relations mean nothing.
    pub const NONE: RelationClasses = RelationClasses { ally: NO_BOND, enemy: NO_BOND };

    fn of(self, relation: Relation) -> u8 {
        match relation {
            Relation::Ally => self.ally,
            Relation::Neutral => NO_BOND,
            Relation::Enemy => self.enemy,
        }
    }
}

/// The relations of a scene's groups, all neutral until orders arrive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<GroupRelation>", into = "Vec<GroupRelation>")]
pub struct Relations {
    /// By the class and the two groups, the lower one first.
    known: FxHashMap<(u8, u64, u64), GroupRelation>,
    /// The groups to which a group is not neutral.
    related: FxHashMap<Bond, Vec<u64>>,
    /// Orders not due yet.
    pending: Vec<GroupRelation>,
    /// Orders that were learned from another region, until others are told.
    learned: Vec<GroupRelation>,
    /// When relations that are neutral were last forgotten.
    swept: Tick,
}

fn key(class: u8, [a, b]: [u64; 2]) -> (u8, u64, u64) {
    (class, a.min(b), a.max(b))
}

impl Relations {
    /// Takes an order, which may come again; it waits for its tick. False if there are too many relations.
    pub fn order(&mut self, order: GroupRelation) -> bool {
        let has_room = self.has_room_for(order.class, order.groups);
        if has_room && !self.pending.contains(&order) {
            self.pending.push(order);
        }
        has_room
    }

    /// Whether the table is not full, or has a relation of these groups, which may change.
    pub fn has_room_for(&self, class: u8, groups: [u64; 2]) -> bool {
        let has_room = self.known.len() + self.pending.len() < MAX_RELATIONS;
        has_room || self.known.contains_key(&key(class, groups))
    }

    /// Applies the orders that are due. The groups whose relations have changed.
    pub fn turn(&mut self, now: Tick) -> Vec<Bond> {
        let mut changed = Vec::new();
        if self.pending.iter().any(|order| order.at <= now) {
            let (due, later) =
                std::mem::take(&mut self.pending).into_iter().partition(|order| order.at <= now);
            self.pending = later;
            let due: Vec<GroupRelation> = due;
            due.into_iter().for_each(|order| self.apply(order, &mut changed));
        }
        if now.0 >= self.swept.0.saturating_add(NEUTRAL_TICKS) {
            self.swept = now;
            let is_kept = |order: &GroupRelation| {
                order.relation != Relation::Neutral
                    || now.0 < order.at.0.saturating_add(NEUTRAL_TICKS)
            };
            self.known.retain(|_, order| is_kept(order));
        }
        changed
    }

    fn apply(&mut self, order: GroupRelation, changed: &mut Vec<Bond>) {
        let key = key(order.class, order.groups);
        let known = self.known.get(&key);
        if known.is_some_and(|known| known.rank() >= order.rank()) {
            return;
        }
        let before = known.map_or(Relation::Neutral, |known| known.relation);
        self.known.insert(key, order);
        if before == order.relation {
            return;
        }
        let [a, b] = order.groups;
        for (group, other) in [(a, b), (b, a)] {
            let bond = Bond { class: order.class, group };
            let related = self.related.entry(bond).or_default();
            if before == Relation::Neutral {
                related.push(other);
            } else if order.relation == Relation::Neutral {
                related.retain(|known| *known != other);
            }
            if related.is_empty() {
                self.related.remove(&bond);
            }
            changed.push(bond);
        }
    }

    /// Learns what another region knows. What is new there takes effect with the next tick.
    pub fn merge(&mut self, others: Vec<GroupRelation>) {
        let name = |order: &GroupRelation| (key(order.class, order.groups), order.rank());
        let waiting: FxHashSet<_> = self.pending.iter().map(name).collect();
        for order in others {
            let known = self.known.get(&key(order.class, order.groups));
            let is_new = known.is_none_or(|known| known.rank() < order.rank());
            if is_new && !waiting.contains(&name(&order)) && self.pending.len() < MAX_RELATIONS {
                self.pending.push(order);
                self.learned.push(order);
            }
        }
    }

    /// What was learned from other regions since the last call: neighbours are told, since all that knew an order may
    /// have died before they saved it, but for one.
    pub fn take_learned(&mut self) -> Vec<GroupRelation> {
        std::mem::take(&mut self.learned)
    }

    /// All relations, also those that are not due.
    pub fn all(&self) -> Vec<GroupRelation> {
        let mut all: Vec<_> = self.known.values().chain(&self.pending).copied().collect();
        all.sort_unstable_by_key(|order| order.version);
        all
    }

    /// A number that differs, most probably, from that of a table with other relations; 0 of one without any. Neutral
    /// relations do not count, since regions forget them at different times.
    pub fn digest(&self) -> u64 {
        let counts = |order: &&GroupRelation| order.relation != Relation::Neutral;
        let of = |order: &GroupRelation| {
            let mut hasher = rustc_hash::FxHasher::default();
            (key(order.class, order.groups), order.rank()).hash(&mut hasher);
            hasher.finish()
        };
        let pending = self.pending.iter().filter(counts).filter(|order| {
            let known = self.known.get(&key(order.class, order.groups));
            known.is_none_or(|known| known.rank() < order.rank())
        });
        self.known.values().filter(counts).chain(pending).fold(0, |all, order| all ^ of(order))
    }

    /// Those of the groups to which bonds belong.
    pub fn of_bonds(&self, bonds: &[Bond]) -> Relations {
        let is_of = |order: &&GroupRelation| {
            let [a, b] = order.groups;
            bonds
                .iter()
                .any(|bond| bond.class == order.class && (bond.group == a || bond.group == b))
        };
        let mut found = Relations::default();
        let all = self.known.values().filter(is_of);
        all.for_each(|order| found.apply(*order, &mut Vec::new()));
        found
    }

    /// The groups of the same kind to which a group is not neutral.
    pub fn related(&self, bond: Bond) -> impl Iterator<Item = Bond> + '_ {
        let others = self.related.get(&bond).into_iter().flatten();
        others.map(move |group| Bond { class: bond.class, group: *group })
    }

    /// How two groups stand to each other.
    pub fn between(&self, class: u8, a: u64, b: u64) -> Relation {
        let known = self.known.get(&key(class, [a, b]));
        known.map_or(Relation::Neutral, |known| known.relation)
    }

    /// The class that follows for two players from the relations of their groups; [`NO_BOND`] if none does.
    #[inline]
    pub fn class(&self, a: &Ties, b: &Ties, classes: RelationClasses) -> u8 {
        if self.related.is_empty() {
            return NO_BOND;
        }
        let mut best = NO_BOND;
        for bond in a.bonds.iter().filter(|bond| self.related.contains_key(bond)) {
            for other in b.bonds.iter().filter(|other| other.class == bond.class) {
                let relation = self.between(bond.class, bond.group, other.group);
                best = best.min(classes.of(relation));
            }
        }
        best
    }
}

impl From<Vec<GroupRelation>> for Relations {
    /// Those whose tick has come take effect with the next one.
    fn from(all: Vec<GroupRelation>) -> Relations {
        let mut relations = Relations::default();
        relations.merge(all);
        relations
    }
}

impl From<Relations> for Vec<GroupRelation> {
    fn from(relations: Relations) -> Vec<GroupRelation> {
        relations.all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: RelationClasses = RelationClasses { ally: 3, enemy: 4 };

    fn order(groups: [u64; 2], relation: Relation, at: u64, version: u64) -> GroupRelation {
        GroupRelation { class: 1, groups, relation, at: Tick(at), version }
    }

    fn of(group: u64) -> Ties {
        Ties::of(vec![Bond { class: 1, group }])
    }

    fn class(relations: &Relations, a: u64, b: u64) -> u8 {
        let class = relations.class(&of(a), &of(b), CLASSES);
        assert_eq!(class, relations.class(&of(b), &of(a), CLASSES), "the same from both ends");
        class
    }

    /// Found by simulation: a region learned an order of one process while one of another process waited.
    #[test]
    fn orders_of_one_version_are_all_learned_and_one_of_them_counts_everywhere() {
        let [war, peace] = [Relation::Enemy, Relation::Ally].map(|to| order([7, 8], to, 5, 9));
        let other = order([7, 6], Relation::Enemy, 5, 9);
        for orders in [[war, peace, other], [other, peace, war]] {
            let mut all = Relations::default();
            assert!(all.order(orders[0]));
            all.merge(orders[1..].to_vec());
            all.turn(Tick(5));
            assert_eq!((class(&all, 7, 8), class(&all, 6, 7)), (4, 4), "{orders:?}");
        }
    }

    #[test]
    fn the_newest_order_that_is_due_counts_whatever_has_arrived_last() {
        let mut all = Relations::default();
        assert!(all.order(order([8, 7], Relation::Enemy, 5, 2)));
        assert_eq!((all.turn(Tick(4)), class(&all, 7, 8)), (vec![], NO_BOND), "not due");
        assert_eq!((all.turn(Tick(5)).len(), class(&all, 7, 8)), (2, 4));
        assert!(all.order(order([7, 8], Relation::Neutral, 0, 1)));
        assert_eq!((all.turn(Tick(6)), class(&all, 7, 8)), (vec![], 4), "older");
        assert!(all.order(order([7, 8], Relation::Ally, 0, 3)));
        assert_eq!((all.turn(Tick(7)).len(), class(&all, 7, 8)), (2, 3));
        let related: Vec<u64> = all.related(Bond { class: 1, group: 7 }).map(|b| b.group).collect();
        assert_eq!(related, [8], "once");
        assert_eq!(class(&all, 7, 9), NO_BOND);
    }

    #[test]
    fn a_full_table_takes_changes_and_has_room_again_when_neutral_relations_are_forgotten() {
        let mut all = Relations::default();
        // Of one group: what it costs to have them must not grow with their square.
        for other in 1..=MAX_RELATIONS as u64 {
            assert!(all.order(order([0, other], Relation::Enemy, 1, other)));
        }
        all.turn(Tick(1));
        let (known, new) = ([0, 5], [0, 1 << 40]);
        assert!(all.has_room_for(1, known) && !all.has_room_for(1, new));
        assert!(!all.order(order(new, Relation::Enemy, 2, 1 << 40)));
        assert!(all.order(order(known, Relation::Neutral, 2, (1 << 40) + 1)));
        all.turn(Tick(2));
        assert_eq!(class(&all, 0, 5), NO_BOND);
        // A late order still finds what is newer.
        assert!(all.order(order(known, Relation::Enemy, 3, 5)));
        all.turn(Tick(3));
        assert_eq!(class(&all, 0, 5), NO_BOND);
        // No tick is a multiple of anything.
        all.turn(Tick(2 * NEUTRAL_TICKS + 7));
        assert!(all.has_room_for(1, new));
    }

    #[test]
    fn a_region_that_learns_a_whole_table_has_it_with_its_next_tick() {
        let mut one = Relations::default();
        for other in 1..=MAX_RELATIONS as u64 {
            one.order(order([0, other], Relation::Enemy, 1, other));
        }
        one.turn(Tick(1));
        let mut other = Relations::default();
        other.merge(one.all());
        other.merge(one.all());
        assert_eq!(class(&other, 0, 9), NO_BOND);
        other.turn(Tick(50));
        assert_eq!((class(&other, 0, 9), other.all()), (4, one.all()));
        let told = Relations::from(Vec::from(one.clone()));
        assert_eq!(told.all(), one.all());
        assert_eq!(class(&one.of_bonds(&of(9).bonds), 9, 0), 4);
    }
}
