//! Relations between groups: allies and enemies come before strangers in view lists.
//!
//! Every region of a scene has the whole table. Orders reach regions by message: late, twice, or out of order. So each
//! has a version that grows with every order of the scene, and the newest one that is due counts. What a region has
//! missed it learns from its neighbours, whose full batches contain their tables.

use rustc_hash::FxHashMap;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRelation {
    /// The class of the kind.
    pub class: u8,
    /// The two groups, which differ, in either order.
    pub groups: [u64; 2],
    /// How they stand to each other.
    pub relation: Relation,
    /// The tick at whose start it takes effect. If that tick is past: the next tick.
    pub at: Tick,
    /// Greater than the version of every earlier order of the scene.
    pub version: u64,
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
}

fn key(order: &GroupRelation) -> (u8, u64, u64) {
    let [a, b] = order.groups;
    (order.class, a.min(b), a.max(b))
}

impl Relations {
    /// Takes an order; it waits for its tick. False if there are too many relations.
    pub fn order(&mut self, order: GroupRelation) -> bool {
        let has_room = self.known.len() + self.pending.len() < MAX_RELATIONS;
        if has_room || self.known.contains_key(&key(&order)) {
            self.pending.push(order);
            return true;
        }
        false
    }

    /// Whether another relation has room.
    pub fn is_full(&self) -> bool {
        self.known.len() + self.pending.len() >= MAX_RELATIONS
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
        if now.0.is_multiple_of(NEUTRAL_TICKS) {
            let is_kept = |order: &GroupRelation| {
                order.relation != Relation::Neutral
                    || now.0 < order.at.0.saturating_add(NEUTRAL_TICKS)
            };
            self.known.retain(|_, order| is_kept(order));
        }
        changed
    }

    fn apply(&mut self, order: GroupRelation, changed: &mut Vec<Bond>) {
        let known = self.known.get(&key(&order));
        if known.is_some_and(|known| known.version >= order.version) {
            return;
        }
        let before = known.map_or(Relation::Neutral, |known| known.relation);
        self.known.insert(key(&order), order);
        if before == order.relation {
            return;
        }
        let [a, b] = order.groups;
        for (group, other) in [(a, b), (b, a)] {
            let bond = Bond { class: order.class, group };
            let related = self.related.entry(bond).or_default();
            related.retain(|known| *known != other);
            if order.relation != Relation::Neutral {
                related.push(other);
            }
            if related.is_empty() {
                self.related.remove(&bond);
            }
            changed.push(bond);
        }
    }

    /// Learns what another region knows. What is new there takes effect with the next tick.
    pub fn merge(&mut self, others: Vec<GroupRelation>) {
        for order in others {
            let known = self.known.get(&key(&order));
            let is_new = known.is_none_or(|known| known.version < order.version);
            let waits = || self.pending.iter().any(|pending| pending.version == order.version);
            if is_new && !waits() && self.pending.len() < MAX_RELATIONS {
                self.pending.push(order);
            }
        }
    }

    /// All relations, also those that are not due.
    pub fn all(&self) -> Vec<GroupRelation> {
        let mut all: Vec<_> = self.known.values().chain(&self.pending).copied().collect();
        all.sort_unstable_by_key(|order| order.version);
        all
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
        let known = self.known.get(&(class, a.min(b), a.max(b)));
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
