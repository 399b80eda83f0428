//! What gives players priority in each other's view lists: bonds, which the game's logic sets, and
//! fights, which actions start and which expire.
//!
//! The region keeps one [`Ties`] per player. The sum of bonds and fights must never exceed
//! [`MAX_BONDS`].

use serde::{Deserialize, Serialize};

use crate::scene::{EntityId, Tick};

/// A shared group id that makes two players special to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Bond {
    /// The kind's place in the scene's order ([`crate::scene::spec::BondSpec::class_of`]): 0 is the
    /// strongest. Below 255.
    pub class: u8,
    /// The group.
    pub group: u64,
}

/// Most bonds that one player has.
pub const MAX_BONDS: usize = 8;

/// The class of two players without a shared bond.
pub const NO_BOND: u8 = 255;

/// A fight with another player, as one of the two has it. It counts while both have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fight {
    /// The opponent.
    pub with: EntityId,
    /// The first tick in which the fight is over.
    pub until: Tick,
}

/// All bonds and fights of a player.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ties {
    /// Bonds, at most [`MAX_BONDS`].
    pub bonds: Vec<Bond>,
    /// Fights; together with the bonds at most [`MAX_BONDS`].
    pub fights: Vec<Fight>,
    /// Rank of the last companion that counts as bonded, if there are more than the scene's cap.
    pub reach: Option<u64>,
}

impl Ties {
    /// Bonds only; of more than [`MAX_BONDS`] the first ones.
    pub fn of(mut bonds: Vec<Bond>) -> Ties {
        bonds.truncate(MAX_BONDS);
        Ties { bonds, ..Ties::default() }
    }

    /// Whether there are neither bonds nor fights.
    pub fn is_empty(&self) -> bool {
        self.bonds.is_empty() && self.fights.is_empty()
    }

    /// Replaces the bonds; of more than [`MAX_BONDS`] the first ones. Fights make room for them.
    pub fn set_bonds(&mut self, mut bonds: Vec<Bond>) {
        bonds.truncate(MAX_BONDS);
        self.bonds = bonds;
        while self.bonds.len() + self.fights.len() > MAX_BONDS {
            self.end_soonest();
        }
    }

    /// Starts or prolongs a fight. If there are too many ties, the fight that ends soonest is
    /// dropped; with [`MAX_BONDS`] bonds no fight starts.
    pub fn fight(&mut self, with: EntityId, until: Tick) {
        if let Some(fight) = self.fights.iter_mut().find(|f| f.with == with) {
            fight.until = fight.until.max(until);
            return;
        }
        self.fights.push(Fight { with, until });
        if self.bonds.len() + self.fights.len() > MAX_BONDS {
            self.end_soonest();
        }
    }

    fn end_soonest(&mut self) {
        let soonest = self.fights.iter().enumerate().min_by_key(|(_, f)| (f.until, f.with));
        if let Some((at, _)) = soonest {
            self.fights.swap_remove(at);
        }
    }

    /// Removes fights that are over at `now`.
    pub fn fade(&mut self, now: Tick) {
        self.fights.retain(|f| f.until > now);
    }

    fn fights_with(&self, other: EntityId, now: Tick) -> bool {
        self.fights.iter().any(|f| f.with == other && f.until > now)
    }

    /// The strongest class that two players share at `now`, where fights have class `fight`;
    /// [`NO_BOND`] if there is none.
    pub fn class(&self, me: EntityId, other: EntityId, theirs: &Ties, now: Tick, fight: u8) -> u8 {
        let shared = self.bonds.iter().filter(|bond| theirs.bonds.contains(bond));
        let class = shared.map(|bond| bond.class).min().unwrap_or(NO_BOND);
        // Who attacks a player that has had to drop the fight does not come before others in its list: so a gang fills
        // no more places than the player has fights.
        let fights = || self.fights_with(other, now) && theirs.fights_with(me, now);
        if fight < class && fights() { fight } else { class }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGHT: u8 = 2;

    fn party(group: u64) -> Bond {
        Bond { class: 1, group }
    }

    fn with(n: u64) -> EntityId {
        EntityId(n)
    }

    fn class(a: &Ties, b: &Ties, now: u64) -> u8 {
        let ab = a.class(with(1), with(2), b, Tick(now), FIGHT);
        assert_eq!(ab, b.class(with(2), with(1), a, Tick(now), FIGHT), "the same from both ends");
        ab
    }

    #[test]
    fn a_fight_counts_until_it_ends_and_a_stronger_bond_outranks_it() {
        let (mut a, mut b) = (Ties::default(), Ties::default());
        assert_eq!(class(&a, &b, 0), NO_BOND);
        a.fight(with(2), Tick(10));
        assert_eq!(class(&a, &b, 9), NO_BOND, "the other one has dropped it");
        b.fight(with(1), Tick(10));
        assert_eq!(class(&a, &b, 9), FIGHT);
        assert_eq!(class(&a, &b, 10), NO_BOND);
        a.set_bonds(vec![party(7)]);
        b.set_bonds(vec![party(7), party(8)]);
        assert_eq!(class(&a, &b, 9), 1);
        a.fade(Tick(10));
        assert_eq!(a, Ties::of(vec![party(7)]));
    }

    #[test]
    fn an_action_prolongs_a_fight_and_an_older_one_does_not_shorten_it() {
        let mut a = Ties::default();
        a.fight(with(2), Tick(10));
        a.fight(with(2), Tick(20));
        a.fight(with(2), Tick(15));
        assert_eq!(a.fights, [Fight { with: with(2), until: Tick(20) }]);
    }

    #[test]
    fn with_too_many_ties_the_fight_that_ends_soonest_is_dropped() {
        let mut a = Ties::of((0..6).map(party).collect());
        a.fight(with(2), Tick(30));
        a.fight(with(3), Tick(20));
        a.fight(with(4), Tick(40));
        let left: Vec<_> = a.fights.iter().map(|f| f.with).collect();
        assert_eq!(left, [with(2), with(4)]);
        a.set_bonds((0..20).map(party).collect());
        assert_eq!((a.bonds.len(), a.fights.len()), (MAX_BONDS, 0));
        a.fight(with(5), Tick(50));
        assert_eq!(a.fights, []);
    }
}
