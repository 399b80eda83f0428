//! The order of pairs that decides view lists, and a scene's limits.
//!
//! The evaluation, the protocol and the explanation ([`super::why`]) all rank pairs here. Both ends
//! of a pair must compute the same key.

use serde::{Deserialize, Serialize};

use super::{NO_BOND, RelationClasses, Relations, Ties};
use crate::scene::spec::{ALLY, BondSpec, ENEMY, FIGHT};
use crate::scene::{EntityId, Scene, Tick, ViewCap};

/// The rank of a pair, with ids to break ties: smaller is better. Equal from both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Bond class, then distance; see [`ViewRules::rank`].
    pub rank: u64,
    lo: EntityId,
    hi: EntityId,
}

impl Key {
    /// Worse than any pair.
    pub const WORST: Key = Key { rank: u64::MAX, lo: EntityId(u64::MAX), hi: EntityId(u64::MAX) };

    /// The key of a pair, in either order.
    pub fn of(rank: u64, a: EntityId, b: EntityId) -> Key {
        Key { rank, lo: a.min(b), hi: a.max(b) }
    }
}

impl Default for Key {
    fn default() -> Key {
        Key::WORST
    }
}

/// A scene's limits for view lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewRules {
    /// Most links of a player.
    pub cap: usize,
    /// How much nearer, in centimetres, a pair counts that was linked when the tick began.
    pub margin_cm: u32,
    /// Most companions that count as bonded to one player.
    pub bond_cap: usize,
    /// Companions come into range at this distance whatever the visibility says, centimetres; 0 =
    /// off.
    pub bond_enter_cm: u32,
    /// Companions already in range stay in range up to this distance, centimetres.
    pub bond_leave_cm: u32,
    /// The class of a fight; [`NO_BOND`] if actions make none.
    pub fight: u8,
    /// The classes of allies and enemies.
    pub related: RelationClasses,
    /// How long a fight lasts after the last action, ticks.
    pub fight_ticks: u64,
}

/// Keeps a distance less a margin positive. Above every margin that a scene may have.
const RANK_BIAS: u64 = 1 << 20;

impl ViewRules {
    /// Limits with this cap and margin (centimetres), default bonds and no fights.
    pub fn new(cap: usize, margin_cm: u32) -> ViewRules {
        ViewRules {
            cap,
            margin_cm,
            bond_cap: BondSpec::default().cap,
            bond_enter_cm: 0,
            bond_leave_cm: 0,
            fight: NO_BOND,
            related: RelationClasses::NONE,
            fight_ticks: 0,
        }
    }

    /// The same for a player whose client has asked for a shorter list.
    pub fn capped(self, cap: ViewCap) -> ViewRules {
        ViewRules { cap: cap.within(self.cap), ..self }
    }

    /// The limits of a scene.
    pub fn of(scene: &Scene) -> ViewRules {
        let (spec, bonds) = (&scene.spec, &scene.spec.bonds);
        let fight = bonds.class_of(FIGHT).filter(|_| bonds.fight_ms > 0);
        ViewRules {
            cap: spec.view_cap,
            margin_cm: spec.view_margin_cm.unsigned_abs(),
            bond_cap: bonds.cap,
            bond_enter_cm: bonds.enter_cm.unsigned_abs(),
            bond_leave_cm: bonds.leave_cm.unsigned_abs(),
            fight: fight.unwrap_or(NO_BOND),
            related: RelationClasses {
                ally: bonds.class_of(ALLY).unwrap_or(NO_BOND),
                enemy: bonds.class_of(ENEMY).unwrap_or(NO_BOND),
            },
            fight_ticks: u64::from(bonds.fight_ms.div_ceil(scene.tick_ms)),
        }
    }

    /// The class of two players at `dist_cm`: the strongest bond that they share at `now`, also by a
    /// relation of their groups. [`NO_BOND`] if there is none, or if either has enough stronger or
    /// nearer companions.
    pub fn class(
        &self,
        a: (EntityId, &Ties),
        b: (EntityId, &Ties),
        relations: &Relations,
        dist_cm: u32,
        now: Tick,
    ) -> u8 {
        let class = self.any_class(a, b, relations, now);
        if class == NO_BOND || (a.1.reach.is_none() && b.1.reach.is_none()) {
            return class;
        }
        let rank = self.rank(class, dist_cm, false);
        let counts = |ties: &Ties| ties.reach.is_none_or(|reach| rank <= reach);
        if counts(a.1) && counts(b.1) { class } else { NO_BOND }
    }

    /// The strongest bond that two players share at `now`, however many companions they have.
    pub fn any_class(
        &self,
        a: (EntityId, &Ties),
        b: (EntityId, &Ties),
        relations: &Relations,
        now: Tick,
    ) -> u8 {
        let shared = a.1.class(a.0, b.0, b.1, now, self.fight);
        shared.min(relations.class(a.1, b.1, self.related))
    }

    /// Whether companions at `dist_cm` are in range whatever the visibility says; enemies never are.
    /// `known`: they are in range already, and the leave radius applies.
    pub fn exempt(&self, class: u8, dist_cm: u32, known: bool) -> bool {
        let limit = if known { self.bond_leave_cm } else { self.bond_enter_cm };
        class != NO_BOND && class != self.related.enemy && limit > 0 && dist_cm <= limit
    }

    /// The rank of a pair: its bond class (0 strongest, 255 none), then its distance in
    /// centimetres, less the margin if the two were linked when the tick began.
    #[inline]
    pub fn rank(&self, class: u8, dist_cm: u32, kept: bool) -> u64 {
        let margin = if kept { u64::from(self.margin_cm) } else { 0 };
        (u64::from(class) << 40) | (u64::from(dist_cm) + RANK_BIAS - margin)
    }
}
