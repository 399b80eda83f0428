//! All gold of the game, tick by tick: what players, monsters and drops have is what lairs have given.
//!
//! Each region brings what lives there at the end of its tick. What is on its way between two regions counts as it was
//! when it was seen last; gold changes hands only where both sides are seen. A player that leaves takes its gold along,
//! and may bring as much again.
//!
//! Regions end their ticks one after another, on several threads: a player's region may have removed a drop before the
//! ledger has seen that the player has its gold. So a difference must last before it counts. Gold that is lost stays
//! lost, so that none escapes.

use std::collections::{BTreeMap, BTreeSet};

use purview::scene::RegionId;
use purview::scene::messages::{LeaveCause, LogicEvent};

use crate::game::accounts::{Fault, Holding};
use crate::game::rules::{DROP, LAIR, PLAYER};

/// For how many ticks gold must not add up.
const LASTS: u64 = 20;

/// After how many ticks on the way between two regions an entity is lost.
const AWAY: u64 = 50;

/// Ticks in which the regions of a server that goes on from stored state find everything.
const RESTORES: u64 = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Residence {
    Here(RegionId),
    /// On its way since this tick.
    Away(u64),
}

/// The gold of all scenes of the game.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    held: BTreeMap<u64, (Holding, Residence)>,
    /// Drops whose gold a player has.
    had: BTreeSet<u64>,
    /// Gold that players took along, less what they have brought.
    left: i64,
    /// Regions of scenes that have another game, or none.
    elsewhere: BTreeSet<RegionId>,
    /// There may be gold of players who are not there: until this tick nothing is known.
    restored: Option<u64>,
    is_restored: bool,
    tick: u64,
    /// Since when gold does not add up.
    off: Option<u64>,
    counted: i64,
}

impl Ledger {
    pub fn new(is_restored: bool) -> Ledger {
        Ledger { is_restored, ..Ledger::default() }
    }

    /// This region is of a scene that has another game, or none: who goes there takes along what it has.
    pub fn is_elsewhere(&mut self, region: RegionId) {
        self.elsewhere.insert(region);
    }

    /// Some entities live nowhere any more, or not in the game.
    pub fn gone(&mut self, events: &[LogicEvent]) {
        for event in events {
            if let LogicEvent::Left { id, cause, .. } = event
                && (cause.is_final() || self.goes_elsewhere(*cause))
            {
                self.ends(id.0);
            }
        }
    }

    fn goes_elsewhere(&self, cause: LeaveCause) -> bool {
        matches!(cause, LeaveCause::HandedOff(to) if self.elsewhere.contains(&to))
    }

    fn ends(&mut self, id: u64) {
        self.had.remove(&id);
        if let Some((what, _)) = self.held.remove(&id)
            && what.kind == PLAYER
        {
            self.left += what.gold;
        }
    }

    /// A region has ended a tick, and has these entities. What is wrong.
    pub fn sees(
        &mut self,
        (region, tick): (RegionId, u64),
        here: Vec<(u64, Holding)>,
    ) -> Option<Fault> {
        self.tick = self.tick.max(tick);
        for (_, residence) in self.held.values_mut() {
            if *residence == Residence::Here(region) {
                *residence = Residence::Away(tick);
            }
        }
        for (id, what) in here {
            let drops =
                what.taken.iter().map(|taken| taken.0).filter(|drop| self.held.contains_key(drop));
            self.had.extend(drops);
            let (is_player, gold) = (what.kind == PLAYER, what.gold);
            let before = self.held.insert(id, (what, Residence::Here(region)));
            if before.is_none() && is_player {
                self.left -= gold;
            }
        }
        self.judge()
    }

    /// The gold that there is, and the gold that there must be.
    fn balance(&self) -> (i64, i64) {
        let is_there = |residence: &Residence| match residence {
            Residence::Here(_) => true,
            Residence::Away(since) => since + AWAY > self.tick,
        };
        let there = self.held.iter().filter(|(_, (_, residence))| is_there(residence));
        let (mut gold, mut minted) = (0, 0);
        for (id, (what, _)) in there {
            match what.kind {
                LAIR => minted += what.minted,
                DROP if self.had.contains(id) => {}
                _ => gold += what.gold,
            }
        }
        // Nobody can bring gold that nobody has taken along, unless an earlier process has stored it.
        let left = if self.is_restored { self.left } else { self.left.max(0) };
        (gold + left, minted)
    }

    fn judge(&mut self) -> Option<Fault> {
        let (gold, minted) = self.balance();
        let until = *self.restored.get_or_insert(self.tick + RESTORES);
        if self.is_restored && self.tick < until {
            self.counted = gold - minted;
        }
        if gold - minted == self.counted {
            self.off = None;
            return None;
        }
        let since = *self.off.get_or_insert(self.tick);
        if self.tick < since + LASTS {
            return None;
        }
        (self.off, self.counted) = (None, gold - minted);
        Some(Fault::Gold { gold, minted })
    }

    /// The gold that lairs have given, and what players have or had when they left.
    pub fn totals(&self) -> (i64, i64) {
        let all = self.held.values().map(|(what, _)| what);
        let minted = all.clone().filter(|e| e.kind == LAIR).map(|e| e.minted).sum();
        let won: i64 = all.filter(|e| e.kind == PLAYER).map(|e| e.gold).sum();
        (minted, won + self.left)
    }
}

#[cfg(test)]
mod tests {
    use purview::scene::{EntityId, Kind, Plane, Pos};

    use super::*;
    use crate::game::rules::{MONSTER, PRIZE};

    const NORTH: RegionId = RegionId(0);
    const SOUTH: RegionId = RegionId(1);

    fn entity(kind: Kind, gold: i64) -> Holding {
        Holding { kind, gold, ..Holding::default() }
    }

    struct Game {
        ledger: Ledger,
        tick: u64,
        north: BTreeMap<u64, Holding>,
        south: BTreeMap<u64, Holding>,
    }

    impl Game {
        /// A lair, a monster and a drop in the north, a player in the south.
        fn new() -> Game {
            Game::begins(Ledger::new(false))
        }

        fn begins(ledger: Ledger) -> Game {
            let lair = Holding { minted: 2 * PRIZE, ..entity(LAIR, 0) };
            let north = [(1, lair), (2, entity(MONSTER, PRIZE)), (3, entity(DROP, PRIZE))];
            let south = [(4, entity(PLAYER, 0))];
            let mut game = Game { ledger, tick: 0, north: north.into(), south: south.into() };
            assert_eq!(game.ticks(LASTS * 3), []);
            game
        }

        fn ticks(&mut self, ticks: u64) -> Vec<Fault> {
            let mut found = Vec::new();
            for _ in 0..ticks {
                self.tick += 1;
                for (region, all) in [(NORTH, &self.north), (SOUTH, &self.south)] {
                    let here = all.iter().map(|(id, what)| (*id, what.clone())).collect();
                    found.extend(self.ledger.sees((region, self.tick), here));
                }
            }
            found
        }

        /// What is wrong from now on: each fault counts once.
        fn faults(&mut self) -> Vec<Fault> {
            self.ticks(AWAY + 3 * LASTS)
        }

        fn player(&mut self) -> &mut Holding {
            self.south.get_mut(&4).unwrap()
        }

        fn take_drop(&mut self) {
            (self.player().gold, self.player().taken) = (PRIZE, vec![(3, 0)]);
        }

        fn despawn(&mut self, id: u64) {
            self.north.remove(&id);
            self.south.remove(&id);
            self.ledger.ends(id);
        }
    }

    #[test]
    fn gold_that_changes_hands_adds_up_in_every_tick() {
        let mut game = Game::new();
        game.take_drop();
        assert_eq!(game.faults(), []);
        game.despawn(3);
        assert_eq!(game.faults(), []);
        // A dead monster leaves a drop.
        game.despawn(2);
        game.north.insert(5, entity(DROP, PRIZE));
        assert_eq!(game.faults(), []);
        assert_eq!(game.ledger.totals(), (2 * PRIZE, PRIZE));
    }

    #[test]
    fn a_drop_that_is_gone_before_its_taker_was_seen_is_no_fault() {
        let mut game = Game::new();
        game.despawn(3);
        assert_eq!(game.ticks(1), []);
        game.take_drop();
        assert_eq!(game.faults(), []);
    }

    #[test]
    fn gold_that_is_lost_is_found_once() {
        let mut game = Game::new();
        game.despawn(2);
        assert_eq!(game.faults(), [Fault::Gold { gold: PRIZE, minted: 2 * PRIZE }]);
        game.despawn(3);
        assert_eq!(game.faults(), [Fault::Gold { gold: 0, minted: 2 * PRIZE }]);
    }

    #[test]
    fn gold_that_is_lost_while_more_changes_hands_is_found() {
        let mut game = Game::new();
        game.despawn(2);
        assert_eq!(game.ticks(LASTS / 2), []);
        game.take_drop();
        assert_eq!(game.faults(), [Fault::Gold { gold: PRIZE, minted: 2 * PRIZE }]);
    }

    #[test]
    fn gold_that_is_doubled_is_found() {
        let mut game = Game::new();
        game.player().gold = PRIZE;
        assert_eq!(game.faults(), [Fault::Gold { gold: 3 * PRIZE, minted: 2 * PRIZE }]);
    }

    #[test]
    fn an_entity_on_its_way_counts_and_one_that_never_arrives_is_lost() {
        let mut game = Game::new();
        let monster = game.north.remove(&2).unwrap();
        assert_eq!(game.ticks(AWAY - 1), []);
        game.south.insert(2, monster);
        assert_eq!(game.faults(), []);
        game.south.remove(&2);
        assert_eq!(game.faults(), [Fault::Gold { gold: PRIZE, minted: 2 * PRIZE }]);
    }

    #[test]
    fn a_player_takes_its_gold_along_and_brings_no_more_than_that() {
        let mut game = Game::new();
        game.take_drop();
        game.despawn(3);
        assert_eq!(game.ticks(1), []);
        game.despawn(4);
        assert_eq!(game.faults(), []);
        game.south.insert(5, entity(PLAYER, PRIZE));
        assert_eq!(game.faults(), []);
        game.south.insert(6, entity(PLAYER, PRIZE));
        assert_eq!(game.faults(), [Fault::Gold { gold: 3 * PRIZE, minted: 2 * PRIZE }]);
    }

    #[test]
    fn a_player_that_goes_to_a_scene_of_something_else_takes_its_gold_along() {
        let (mut game, town) = (Game::new(), RegionId(7));
        let place = (Plane(0), Pos::default());
        let leaves = |to| LogicEvent::Left {
            id: EntityId(4),
            kind: PLAYER,
            place,
            cause: LeaveCause::HandedOff(to),
        };
        game.ledger.is_elsewhere(town);
        game.take_drop();
        game.despawn(3);
        assert_eq!(game.ticks(1), []);
        for _ in 0..2 {
            let player = game.south.remove(&4).unwrap();
            game.ledger.gone(&[leaves(town)]);
            assert_eq!(game.ticks(2 * AWAY), []);
            game.south.insert(4, player);
            assert_eq!(game.ticks(2 * AWAY), []);
        }
        // In a region of the game it must appear.
        game.south.remove(&4);
        game.ledger.gone(&[leaves(NORTH)]);
        assert_eq!(game.ticks(AWAY - 1), []);
        assert_eq!(game.faults().len(), 1);
    }

    #[test]
    fn only_a_server_that_goes_on_from_stored_state_may_know_gold_that_was_not_there() {
        let mut game = Game::begins(Ledger::new(true));
        game.south.insert(5, entity(PLAYER, 7 * PRIZE));
        assert_eq!(game.faults(), []);
        game.despawn(2);
        assert_eq!(game.faults().len(), 1);
    }

    #[test]
    fn what_a_restored_server_lacks_at_first_is_no_fault() {
        let mut ledger = Ledger::new(true);
        let lair = Holding { minted: 5 * PRIZE, ..entity(LAIR, 0) };
        for tick in 1..3 * RESTORES {
            assert_eq!(ledger.sees((NORTH, tick), vec![(1, lair.clone())]), None);
        }
    }
}
