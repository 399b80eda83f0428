//! Which entities are in range of each other by position alone: rings of patches, circles, or all, and
//! heights.
//! The index and the view rules ask it; both ends of a pair must get the same answer.

use serde::{Deserialize, Serialize};

/// A set of rings of patches around an entity's own patch. Any union is legal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct RangeSet(u8);

impl RangeSet {
    /// No ring: in range of no entity of the layer.
    pub const NONE: RangeSet = RangeSet(0);
    /// The entity's own patch.
    pub const NEAR: RangeSet = RangeSet(1);
    /// The ring of patches around NEAR.
    pub const MIDDLE: RangeSet = RangeSet(2);
    /// The ring of patches around MIDDLE.
    pub const FAR: RangeSet = RangeSet(4);
    /// All three: 5 x 5 patches.
    pub const FULL: RangeSet = RangeSet(7);

    /// The set with these bits (1 NEAR, 2 MIDDLE, 4 FAR); `None` if other bits are set.
    pub fn from_bits(bits: u8) -> Option<RangeSet> {
        (bits <= 7).then_some(RangeSet(bits))
    }

    /// The bits: 1 NEAR, 2 MIDDLE, 4 FAR.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether ring number `ring` (0 NEAR, 1 MIDDLE, 2 FAR) is in the set; rings from 3 on never are.
    #[inline]
    pub fn has_ring(self, ring: u32) -> bool {
        ring < 3 && (self.0 >> ring) & 1 == 1
    }

    /// The intersection of both sets.
    #[inline]
    pub fn and(self, other: RangeSet) -> RangeSet {
        RangeSet(self.0 & other.0)
    }

    /// The union of both sets.
    pub fn or(self, other: RangeSet) -> RangeSet {
        RangeSet(self.0 | other.0)
    }

    /// How many patches the set reaches in each direction (0, 1 or 2); `None` if it is empty.
    pub fn reach(self) -> Option<i32> {
        (0..3).rev().find(|&r| self.has_ring(r)).map(|r| r as i32)
    }
}

/// The number has bits that name no ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("range {0} has bits other than 1 NEAR, 2 MIDDLE, 4 FAR")]
pub struct NoSuchRing(pub u8);

impl TryFrom<u8> for RangeSet {
    type Error = NoSuchRing;
    fn try_from(bits: u8) -> Result<RangeSet, NoSuchRing> {
        RangeSet::from_bits(bits).ok_or(NoSuchRing(bits))
    }
}

impl From<RangeSet> for u8 {
    fn from(range: RangeSet) -> u8 {
        range.bits()
    }
}

/// What a client asks to be shown, such as the scene allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewLimits {
    /// The rings in which the player is shown what is not a player (Patches).
    pub rings: RangeSet,
    /// Most players in its view list.
    pub cap: ViewCap,
}

impl ViewLimits {
    /// All rings, and as many players as the scene allows.
    pub const FULL: ViewLimits = ViewLimits { rings: RangeSet::FULL, cap: ViewCap::SCENE };
    /// No ring, and as many players as the scene allows.
    pub const NONE: ViewLimits = ViewLimits { rings: RangeSet::NONE, cap: ViewCap::SCENE };
}

impl Default for ViewLimits {
    fn default() -> ViewLimits {
        ViewLimits::FULL
    }
}

impl From<RangeSet> for ViewLimits {
    /// These rings, and as many players as the scene allows.
    fn from(rings: RangeSet) -> ViewLimits {
        ViewLimits { rings, ..ViewLimits::FULL }
    }
}

/// Most players in one player's view list, where its client has asked for fewer than the scene allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewCap(u16);

impl ViewCap {
    /// As many as the scene allows.
    pub const SCENE: ViewCap = ViewCap(0);

    /// So many, and no more than the scene allows; 0: as many as the scene allows.
    pub fn new(players: u16) -> ViewCap {
        ViewCap(players)
    }

    /// The number asked for; 0: as many as the scene allows.
    pub fn players(self) -> u16 {
        self.0
    }

    /// The number in force, in a scene that allows `most`.
    #[inline]
    pub fn within(self, most: usize) -> usize {
        if self.0 == 0 { most } else { most.min(self.0.into()) }
    }
}

/// How far apart in height two entities may be that see each other, beside what the ground says. The
/// same from both ends of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heights {
    /// To come into view, centimetres.
    pub enter_cm: u32,
    /// To stay in view, centimetres.
    pub leave_cm: u32,
}

impl Heights {
    /// Heights do not count.
    pub const ANY: Heights = Heights { enter_cm: u32::MAX, leave_cm: u32::MAX };

    /// At most `cm` centimetres apart, if there is a limit. Entities in view of each other stay so until
    /// they are an eighth farther apart.
    pub fn within(cm: Option<i32>) -> Heights {
        cm.map(i32::unsigned_abs).map_or(Heights::ANY, |cm| Heights {
            enter_cm: cm,
            leave_cm: cm.saturating_add(cm / 8),
        })
    }

    /// Whether two entities at these heights, centimetres, may see each other; `known`: they do already.
    #[inline]
    pub fn hold(&self, a_y: i32, b_y: i32, known: bool) -> bool {
        a_y.abs_diff(b_y) <= if known { self.leave_cm } else { self.enter_cm }
    }
}

/// How a scene decides which entities are in range of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Visibility {
    /// By rings of patches; each entity has its own [`RangeSet`].
    Patches,
    /// By distance: a pair comes into range at `enter_cm` or nearer and leaves it beyond
    /// `leave_cm`.
    Circle {
        /// Enter radius, centimetres, at least 1.
        enter_cm: i32,
        /// Leave radius, centimetres, greater than the enter radius.
        leave_cm: i32,
    },
    /// All entities of a plane are in range of each other: for small scenes with a single region.
    All,
}

impl Visibility {
    /// Whether two entities of one plane are in range of each other. `ring` is the number of
    /// patches of their layer between them, `d2` the squared ground distance in square centimetres,
    /// `both` the rings that both have. With circles, a `known` pair stays until it is beyond the
    /// leave radius; with patches, [`PatchRule::keeps`](super::PatchRule::keeps) says how long it
    /// stays.
    #[inline]
    pub fn in_range(&self, ring: u32, d2: u64, both: RangeSet, known: bool) -> bool {
        match *self {
            Visibility::Patches => both.has_ring(ring),
            Visibility::Circle { enter_cm, leave_cm } => {
                let radius = i64::from(if known { leave_cm } else { enter_cm });
                d2 <= (radius * radius) as u64
            }
            Visibility::All => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_in_view_stay_until_they_are_an_eighth_farther_apart_in_height() {
        let floors = Heights::within(Some(800));
        assert!(floors.hold(0, 800, false) && floors.hold(500, -300, false));
        assert!(!floors.hold(0, 801, false) && !floors.hold(801, 0, false));
        assert!(floors.hold(0, 900, true) && floors.hold(900, 0, true));
        assert!(!floors.hold(0, 901, true));
        assert!(Heights::within(None).hold(i32::MIN, i32::MAX, false));
        assert!(!Heights::within(Some(i32::MAX)).hold(i32::MIN, i32::MAX, true));
    }
}
