//! The accounts of the example game `hunt`: what must hold of its entities, whichever machines have died.
//!
//! Gold is conserved: players, monsters and drops have what lairs have given. One player has the gold of a drop. Hit
//! points stay within their range, and those of monsters do not rise.
//!
//! [`Accounts`] judges surveys: lists of all entities, of which the processes of a cluster are asked one after another.
//! One survey is of no single moment, so that gold is counted at rest only. The simulator judges every tick of every
//! region, by the same balance.

use std::collections::{BTreeMap, BTreeSet};

use purview::scene::Kind;
use purview::scene::properties::{Properties, PropertyId};
use serde::Deserialize;
use serde_json::Value;

use super::figures::{FaultKind, GameFigures};
use super::rules::{
    DROP, GOLD, HP, LAIR, MINTED, MONSTER, MONSTER_HP, PLAYER, PLAYER_HP, PRIZE, TAKEN,
};
use crate::oracle::Example;

/// Drops that a player may have taken after the last survey before it left: a hunter takes one in half a second at most,
/// and surveys come every second or two.
const UNSEEN: i64 = 4;

const EXAMPLES_MAX: usize = 10;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holding {
    pub kind: Kind,
    pub hp: i64,
    pub gold: i64,
    /// Gold that it has given, if it is a lair.
    pub minted: i64,
    /// The drops that it has taken of late and the ticks, if it is a player.
    pub taken: Vec<(u64, u64)>,
}

impl Holding {
    pub fn of(kind: Kind, properties: &Properties) -> Holding {
        let number = |id: PropertyId| properties.read::<i64>(id);
        Holding {
            kind,
            hp: number(HP),
            gold: number(GOLD),
            minted: number(MINTED),
            taken: properties.read(TAKEN),
        }
    }

    /// What a console says of an entity: the list `properties` of `/api/entity`.
    pub fn of_json(kind: Kind, properties: &Value) -> Holding {
        let all = properties.as_array().map_or(&[][..], Vec::as_slice);
        let value = |id: PropertyId| Some(&all.iter().find(|p| p["id"] == id.0)?["value"]);
        let number = |id| value(id).and_then(Value::as_i64).unwrap_or(0);
        let taken = value(TAKEN).and_then(|all| Deserialize::deserialize(all).ok());
        Holding {
            kind,
            hp: number(HP),
            gold: number(GOLD),
            minted: number(MINTED),
            taken: taken.unwrap_or_default(),
        }
    }

    pub fn is_living(&self) -> bool {
        match self.kind {
            // The rules give a player hit points in its first tick.
            PLAYER => (0..=PLAYER_HP).contains(&self.hp),
            // A monster without hit points is dead, and a dead one is removed in the same tick.
            MONSTER => (1..=MONSTER_HP).contains(&self.hp),
            _ => true,
        }
    }
}

pub type Survey = BTreeMap<u64, Holding>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("there is gold of {gold}, and lairs have given {minted}")]
    Gold { gold: i64, minted: i64 },
    #[error("{} and {} both have drop {drop}", players[0], players[1])]
    TakenTwice { drop: u64, players: [u64; 2] },
    #[error("{id} has {hp} hit points")]
    HitPoints { id: u64, hp: i64 },
    #[error("monster {id} had {before} hit points and has {hp}")]
    Risen { id: u64, before: i64, hp: i64 },
    #[error("gold does not come to rest")]
    Restless,
}

impl Fault {
    pub fn kind(&self) -> FaultKind {
        match self {
            Fault::Gold { .. } | Fault::Restless => FaultKind::Gold,
            Fault::TakenTwice { .. } => FaultKind::TakenTwice,
            Fault::HitPoints { .. } | Fault::Risen { .. } => FaultKind::HitPoints,
        }
    }

    /// Whether it is another sight of the same fault, which lasts.
    fn is_same(&self, other: &Fault) -> bool {
        match (self, other) {
            (Fault::HitPoints { id, .. }, Fault::HitPoints { id: other, .. }) => id == other,
            _ => self == other,
        }
    }
}

/// The gold that players, monsters and drops have, and the gold that lairs have given. A drop that a player has had
/// already does not count.
pub fn balance(all: &Survey) -> (i64, i64) {
    let taken: BTreeSet<u64> = all.values().flat_map(|e| &e.taken).map(|taken| taken.0).collect();
    let there = all.iter().filter(|(id, e)| e.kind != DROP || !taken.contains(id));
    let lairs = all.values().filter(|e| e.kind == LAIR);
    (there.map(|(_, e)| e.gold).sum(), lairs.map(|e| e.minted).sum())
}

/// What is wrong with one survey, other than with the sum of all gold.
pub fn faults(all: &Survey) -> Vec<Fault> {
    let mut takers = BTreeMap::new();
    let mut faults = Vec::new();
    for (id, entity) in all {
        if !entity.is_living() {
            faults.push(Fault::HitPoints { id: *id, hp: entity.hp });
        }
        for (drop, _) in entity.taken.iter().filter(|_| entity.kind == PLAYER) {
            let other = takers.insert(*drop, *id).filter(|other| other != id);
            let twice = |other| Fault::TakenTwice { drop: *drop, players: [other, *id] };
            faults.extend(other.map(twice));
        }
    }
    faults
}

pub fn won(all: &Survey) -> i64 {
    all.values().filter(|e| e.kind == PLAYER).map(|e| e.gold).sum()
}

/// Judges surveys of a game in which no machine dies, and counts gold when it rests.
#[derive(Debug, Default)]
pub struct Accounts {
    last: Survey,
    /// Players who left with gold, and how much they had when they were last seen.
    left: BTreeMap<u64, i64>,
    seen: Vec<Fault>,
    figures: GameFigures,
    /// The first faults in words.
    pub examples: Vec<Example>,
}

impl Accounts {
    pub fn figures(&self) -> GameFigures {
        self.figures
    }

    pub fn judge(&mut self, all: Survey) -> Vec<Fault> {
        for (id, had) in self.last.iter().filter(|(_, e)| e.kind == PLAYER && e.gold > 0) {
            if !all.contains_key(id) {
                self.left.insert(*id, had.gold);
            }
        }
        // An entity that was between two regions is back.
        self.left.retain(|id, _| !all.contains_key(id));
        let mut new = faults(&all);
        new.extend(self.risen(&all));
        self.figures.checks += 1;
        self.figures.minted = balance(&all).1;
        self.figures.won = won(&all) + self.left.values().sum::<i64>();
        self.last = all;
        self.note(new)
    }

    /// Counts the gold of the last survey, which is of a game at rest. What is wrong.
    ///
    /// A player who left took along what it had when it was last seen, and at most four drops more.
    pub fn count_gold(&mut self) -> Option<Fault> {
        let (there, minted) = balance(&self.last);
        let gold = there + self.left.values().sum::<i64>();
        let unsure = self.left.len() as i64 * UNSEEN * PRIZE;
        let is_wrong = gold > minted || gold + unsure < minted;
        let fault = is_wrong.then_some(Fault::Gold { gold, minted });
        self.note(fault.into_iter().collect()).pop()
    }

    pub fn is_restless(&mut self) -> Option<Fault> {
        self.note(vec![Fault::Restless]).pop()
    }

    fn risen(&self, all: &Survey) -> Vec<Fault> {
        let monsters = all.iter().filter(|(_, e)| e.kind == MONSTER);
        let before = monsters.filter_map(|(id, now)| Some((*id, self.last.get(id)?.hp, now.hp)));
        let risen = before.filter(|(_, before, hp)| hp > before);
        risen.map(|(id, before, hp)| Fault::Risen { id, before, hp }).collect()
    }

    fn note(&mut self, mut new: Vec<Fault>) -> Vec<Fault> {
        new.retain(|fault| !self.seen.iter().any(|seen| seen.is_same(fault)));
        self.seen.extend(new.iter().cloned());
        for fault in &new {
            self.figures.count(fault.kind());
            if self.examples.len() < EXAMPLES_MAX {
                // Regions of several processes are not asked at one tick.
                let (kind, what) = (fault.kind().key(), fault.to_string());
                self.examples.push(Example { kind: kind.into(), tick: 0, what });
            }
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(kind: Kind, hp: i64, gold: i64) -> Holding {
        Holding { kind, hp, gold, ..Holding::default() }
    }

    /// A lair, two monsters, a drop and two players.
    fn game() -> Survey {
        let lair = Holding { minted: 50, ..entity(LAIR, 0, 0) };
        let monster = entity(MONSTER, 30, PRIZE);
        let player = |gold| entity(PLAYER, 100, gold);
        let drop = entity(DROP, 0, PRIZE);
        let all = [lair, monster.clone(), monster, drop, player(20), player(0)];
        (1..).zip(all).collect()
    }

    /// What is wrong with a game that goes on to these surveys, and then rests.
    fn after(changes: &[&dyn Fn(&mut Survey)]) -> Vec<Fault> {
        let (mut accounts, mut all) = (Accounts::default(), game());
        assert_eq!(accounts.judge(all.clone()), []);
        assert_eq!(accounts.count_gold(), None);
        let mut found = Vec::new();
        for change in changes {
            change(&mut all);
            // What lasts is one fault.
            (0..3).for_each(|_| found.extend(accounts.judge(all.clone())));
        }
        (0..3).for_each(|_| found.extend(accounts.count_gold()));
        assert_eq!(accounts.figures().faults(), found.len() as u64);
        found
    }

    #[test]
    fn gold_that_changes_hands_is_conserved() {
        let taken = |all: &mut Survey| {
            all.entry(5).and_modify(|p| (p.gold, p.taken) = (30, vec![(4, 0)]));
        };
        assert_eq!(after(&[&taken]), []);
        assert_eq!(after(&[&taken, &|all| drop(all.remove(&4))]), []);
    }

    #[test]
    fn gold_that_is_lost_or_made_is_counted_once() {
        let lost = after(&[&|all| drop(all.remove(&2))]);
        assert_eq!(lost, [Fault::Gold { gold: 40, minted: 50 }]);
        let made = after(&[&|all| all.get_mut(&6).unwrap().gold = 10]);
        assert_eq!(made, [Fault::Gold { gold: 60, minted: 50 }]);
        // The player has the gold of a drop that is still there for others.
        let doubled = after(&[&|all| all.get_mut(&5).unwrap().gold += PRIZE]);
        assert_eq!(doubled, [Fault::Gold { gold: 60, minted: 50 }]);
    }

    #[test]
    fn an_entity_between_two_regions_is_not_lost() {
        for id in [2, 5] {
            let entity = game().remove(&id).unwrap();
            let back = |all: &mut Survey| drop(all.insert(id, entity.clone()));
            assert_eq!(after(&[&|all| drop(all.remove(&id)), &back]), []);
        }
    }

    #[test]
    fn a_player_takes_its_gold_along_and_little_more_that_was_not_seen() {
        let leaves = |all: &mut Survey| drop(all.remove(&5));
        assert_eq!(after(&[&leaves]), []);
        let with_a_drop = |all: &mut Survey| drop(all.remove(&4));
        assert_eq!(after(&[&leaves, &with_a_drop]), []);
        let lost = |all: &mut Survey| all.get_mut(&1).unwrap().minted += PRIZE * (UNSEEN + 1);
        assert_eq!(after(&[&leaves, &lost]), [Fault::Gold { gold: 50, minted: 100 }]);
        let made = |all: &mut Survey| all.get_mut(&6).unwrap().gold = PRIZE;
        assert_eq!(after(&[&leaves, &made]), [Fault::Gold { gold: 60, minted: 50 }]);
    }

    #[test]
    fn a_player_without_gold_that_leaves_excuses_nothing() {
        let lost = after(&[&|all| drop(all.remove(&6)), &|all| drop(all.remove(&4))]);
        assert_eq!(lost, [Fault::Gold { gold: 40, minted: 50 }]);
    }

    #[test]
    fn a_drop_whose_gold_two_players_have_is_found() {
        let both = |all: &mut Survey| {
            for player in [5, 6] {
                all.get_mut(&player).unwrap().taken = vec![(9, 0)];
            }
        };
        assert_eq!(after(&[&both]), [Fault::TakenTwice { drop: 9, players: [5, 6] }]);
    }

    #[test]
    fn hit_points_outside_their_range_are_found() {
        let out = |all: &mut Survey| {
            all.get_mut(&2).unwrap().hp = 0;
            all.get_mut(&5).unwrap().hp = 105;
        };
        let found = [Fault::HitPoints { id: 2, hp: 0 }, Fault::HitPoints { id: 5, hp: 105 }];
        assert_eq!(after(&[&out]), found);
    }

    #[test]
    fn hit_points_of_a_monster_that_rise_are_found_and_those_of_a_player_that_stands_up_are_not() {
        let hp = |id, hp| move |all: &mut Survey| all.get_mut(&id).unwrap().hp = hp;
        assert_eq!(after(&[&hp(2, 10), &hp(5, 5), &hp(5, 100)]), []);
        let risen = [Fault::Risen { id: 2, before: 10, hp: 20 }];
        assert_eq!(after(&[&hp(2, 10), &hp(2, 20)]), risen);
    }

    #[test]
    fn a_game_that_does_not_come_to_rest_is_a_fault_of_gold() {
        let mut accounts = Accounts::default();
        assert_eq!(accounts.is_restless(), Some(Fault::Restless));
        assert_eq!(accounts.figures().gold, 1);
    }

    #[test]
    fn the_console_s_words_are_read() {
        let of = |id: PropertyId, value: Value| serde_json::json!({"id": id.0, "value": value});
        let list = [of(HP, 7.into()), of(GOLD, 20.into()), of(TAKEN, vec![vec![9, 55]].into())];
        let read = Holding::of_json(PLAYER, &Value::from(list.to_vec()));
        let taken = vec![(9, 55)];
        assert_eq!(read, Holding { kind: PLAYER, hp: 7, gold: 20, minted: 0, taken });
    }
}
