//! What decides who is seen: the order of pairs, and what a scene says of view lists.

use serde::{Deserialize, Serialize};

use super::{NO_BOND, Ties};
use crate::scene::spec::{BondSpec, FIGHT};
use crate::scene::{EntityId, Scene, Tick};

/// What decides between two pairs: smaller is better. The same seen from both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Bond class, then distance; see [`ViewRules::rank`].
    pub rank: u64,
    lo: EntityId,
    hi: EntityId,
}

impl Key {
    /// Worse than every pair.
    pub const WORST: Key = Key { rank: u64::MAX, lo: EntityId(u64::MAX), hi: EntityId(u64::MAX) };

    /// The key of the pair `a`, `b`, in either order.
    pub fn of(rank: u64, a: EntityId, b: EntityId) -> Key {
        Key { rank, lo: a.min(b), hi: a.max(b) }
    }
}

/// What a scene says of view lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewRules {
    /// Most links of a player.
    pub cap: usize,
    /// By how much a pair that was linked when the tick began counts as nearer than it is,
    /// centimetres.
    pub margin_cm: u32,
    /// Most companions who count as bonded to one player.
    pub bond_cap: usize,
    /// Companions are in range up to here whatever the visibility says; 0 = not.
    pub bond_enter_cm: u32,
    /// Companions who know each other are in range up to here.
    pub bond_leave_cm: u32,
    /// The class of a fight; [`NO_BOND`] where acts make none.
    pub fight: u8,
    /// How long a fight lasts after the last act.
    pub fight_ticks: u64,
}

/// Keeps a distance less a margin positive. Above every margin that a scene may have.
const RANK_BIAS: u64 = 1 << 20;

impl ViewRules {
    /// A cap and a margin in centimetres; bonds as they are by default, and no fights.
    pub fn new(cap: usize, margin_cm: u32) -> ViewRules {
        ViewRules {
            cap,
            margin_cm,
            bond_cap: BondSpec::default().cap,
            bond_enter_cm: 0,
            bond_leave_cm: 0,
            fight: NO_BOND,
            fight_ticks: 0,
        }
    }

    /// The rules of a scene.
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
            fight_ticks: u64::from(bonds.fight_ms.div_ceil(scene.tick_ms)),
        }
    }

    /// The class of two players, `dist_cm` apart: the strongest bond that they share at `now`,
    /// [`NO_BOND`] when none or when either has enough companions who go before.
    pub fn class(&self, a: (EntityId, &Ties), b: (EntityId, &Ties), dist_cm: u32, now: Tick) -> u8 {
        let class = self.any_class(a, b, now);
        if class == NO_BOND || (a.1.reach.is_none() && b.1.reach.is_none()) {
            return class;
        }
        let rank = self.rank(class, dist_cm, false);
        let counts = |ties: &Ties| ties.reach.is_none_or(|reach| rank <= reach);
        if counts(a.1) && counts(b.1) { class } else { NO_BOND }
    }

    /// The strongest bond that two share at `now`, however many companions they have.
    pub fn any_class(&self, a: (EntityId, &Ties), b: (EntityId, &Ties), now: Tick) -> u8 {
        a.1.class(a.0, b.0, b.1, now, self.fight)
    }

    /// Whether companions, `dist_cm` apart, are in range whatever the visibility says; `known` ones
    /// for longer.
    pub fn exempt(&self, class: u8, dist_cm: u32, known: bool) -> bool {
        let limit = if known { self.bond_leave_cm } else { self.bond_enter_cm };
        class != NO_BOND && limit > 0 && dist_cm <= limit
    }

    /// The rank of a pair: its bond class (0 strongest, 255 none), then its distance in centimetres
    /// less the margin if the two were linked when the tick began.
    #[inline]
    pub fn rank(&self, class: u8, dist_cm: u32, kept: bool) -> u64 {
        let margin = if kept { u64::from(self.margin_cm) } else { 0 };
        (u64::from(class) << 40) | (u64::from(dist_cm) + RANK_BIAS - margin)
    }
}
