//! Why two players see each other, or why they do not: the rule of the views read from what the
//! owners of the two say of them, which may be two regions.
//!
//! The first of these that holds is the answer:
//!
//! ```text
//!   SameEntity     the two are one
//!   NotAPlayer     view lists hold players only
//!   Seen           each is on the other's view list
//!   OtherScene     they are in two scenes
//!   OtherPlane     they are on two planes, or between two scenes
//!   OutOfRange     too far apart
//!   Full           one list or both are full of players who are better than this pair
//!   WithinMargin   better than the worst on a full list, but not by the margin
//!   Negotiating    both would see the other: they will as soon as what is under way arrives
//! ```
//!
//! At rest nobody negotiates. Two snapshots of different ticks may tell of a link that only one of
//! the two has; that is no more than a message under way.

use serde::{Deserialize, Serialize};

use super::{PlayerSnapshot, Resident, ViewEntry};
use crate::scene::geo::dist_cm;
use crate::scene::index::Patch;
use crate::scene::views::Key;
use crate::scene::{EntityId, Kind, Plane, Pos, RangeSet, SceneId, SceneSpec, Visibility};

/// What ranks a pair, before ids decide: smaller is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PairRank {
    /// Bond class; 255 = none.
    pub class: u8,
    /// Ground distance, centimetres.
    pub dist_cm: u32,
}

impl PairRank {
    fn of(a: &PlayerSnapshot, b: &PlayerSnapshot) -> PairRank {
        let dist_cm = dist_cm(a.pos.dist2(b.pos));
        let class = a.rules.class((a.id, &a.ties), (b.id, &b.ties), dist_cm, a.tick);
        PairRank { class, dist_cm }
    }
}

/// A place in a view list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// From 1, the best.
    pub place: usize,
    /// How many are on the list.
    pub of: usize,
}

/// What would be in range of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// Whoever is in a ring that both have.
    Patches {
        /// Patches between the two: 0 in the same, 1 in neighbouring ones.
        apart: u32,
        /// Side of a patch of the players' layer, centimetres.
        patch_cm: i32,
        /// The rings of either.
        ranges: [RangeSet; 2],
    },
    /// Whoever is near enough, to come into range or to stay there.
    Circle {
        /// Comes into range at this distance or nearer, centimetres.
        enter_cm: i32,
        /// Leaves it beyond this distance, centimetres.
        leave_cm: i32,
        /// They are in range already and would have to leave it.
        known: bool,
    },
}

/// What one of the two makes of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stand {
    /// It would see the other: it lists it, has room, or sees somebody worse.
    Willing,
    /// Its list is full. The other is better than this worst one on it, but not by the margin.
    WithinMargin(ViewEntry),
    /// Its list is full. All on it are better than the other, even this worst one.
    Full(ViewEntry),
}

/// Why two see each other, or why they do not. Of two of a thing, the first is of the one asked about
/// first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// Each is on the other's view list.
    Seen {
        /// What ranks the pair.
        pair: PairRank,
        /// The other's place on the list of either.
        places: [Place; 2],
    },
    /// Both are one.
    SameEntity,
    /// One is not a player, or both are not.
    NotAPlayer {
        /// What it is instead.
        kinds: [Option<Kind>; 2],
    },
    /// They are in two scenes.
    OtherScene {
        /// Which.
        scenes: [SceneId; 2],
    },
    /// They are on two planes, or in limbo, where nobody sees anybody.
    OtherPlane {
        /// Which.
        planes: [Plane; 2],
    },
    /// They are too far apart.
    OutOfRange {
        /// How far, centimetres.
        dist_cm: u32,
        /// What would be in range.
        limit: Limit,
    },
    /// At least one of the two is full of better ones.
    Full {
        /// What ranks the pair.
        pair: PairRank,
        /// What either makes of the other.
        stands: [Stand; 2],
    },
    /// At least one of the two has a full list on which this pair beats the worst, but not by the
    /// margin; none is full of better ones.
    WithinMargin {
        /// What ranks the pair.
        pair: PairRank,
        /// What either makes of the other.
        stands: [Stand; 2],
    },
    /// Both would see the other: a message between them is under way, or one is about to ask.
    Negotiating {
        /// What ranks the pair.
        pair: PairRank,
    },
}

impl Why {
    /// Whether the two see each other.
    pub fn is_seen(&self) -> bool {
        matches!(self, Why::Seen { .. })
    }
}

/// Why `a` and `b` see each other, or why they do not; `spec` is that of the scene of either.
pub fn why(spec: &SceneSpec, a: &Resident, b: &Resident) -> Why {
    if a.id() == b.id() {
        return Why::SameEntity;
    }
    match (a, b) {
        (Resident::Player(a), Resident::Player(b)) => of_players(spec, a, b),
        (Resident::Other(_), _) | (_, Resident::Other(_)) => {
            Why::NotAPlayer { kinds: [a, b].map(other_kind) }
        }
    }
}

fn other_kind(of: &Resident) -> Option<Kind> {
    match of {
        Resident::Player(_) => None,
        Resident::Other(e) => Some(e.kind),
    }
}

fn of_players(spec: &SceneSpec, a: &PlayerSnapshot, b: &PlayerSnapshot) -> Why {
    let pair = PairRank::of(a, b);
    if let (Some(b_at), Some(a_at)) = (a.place_of(b.id), b.place_of(a.id)) {
        let on_a = Place { place: b_at, of: a.view.len() };
        let on_b = Place { place: a_at, of: b.view.len() };
        return Why::Seen { pair, places: [on_a, on_b] };
    }
    if a.scene != b.scene {
        return Why::OtherScene { scenes: [a.scene, b.scene] };
    }
    if a.plane != b.plane || a.plane == Plane::LIMBO {
        return Why::OtherPlane { planes: [a.plane, b.plane] };
    }
    if let Some(limit) = exceeded(spec, a, b) {
        return Why::OutOfRange { dist_cm: pair.dist_cm, limit };
    }
    let stands = [stand(a, b.id, pair), stand(b, a.id, pair)];
    if stands.iter().any(|s| matches!(s, Stand::Full(_))) {
        Why::Full { pair, stands }
    } else if stands.iter().any(|s| matches!(s, Stand::WithinMargin(_))) {
        Why::WithinMargin { pair, stands }
    } else {
        Why::Negotiating { pair }
    }
}

/// What keeps two of one plane out of range; `None` when nothing does.
fn exceeded(spec: &SceneSpec, a: &PlayerSnapshot, b: &PlayerSnapshot) -> Option<Limit> {
    let patch_cm = spec.layers.first().map_or(spec.land_cm, |l| l.patch_cm).max(1);
    let patch = |p: Pos| Patch { x: p.x.div_euclid(patch_cm), z: p.z.div_euclid(patch_cm) };
    let apart = patch(a.pos).ring(patch(b.pos));
    let known = deals_with(a, b.id) || deals_with(b, a.id);
    let near = spec.visibility.in_range(apart, a.pos.dist2(b.pos), a.range.and(b.range), known);
    let pair = PairRank::of(a, b);
    if near || a.rules.exempt(pair.class, pair.dist_cm, known) {
        return None;
    }
    match spec.visibility {
        Visibility::Patches => Some(Limit::Patches { apart, patch_cm, ranges: [a.range, b.range] }),
        Visibility::Circle { enter_cm, leave_cm } => {
            Some(Limit::Circle { enter_cm, leave_cm, known })
        }
        Visibility::All => None,
    }
}

/// Whether the player lists the other or has asked it.
fn deals_with(player: &PlayerSnapshot, other: EntityId) -> bool {
    player.view.iter().chain(&player.asked).any(|e| e.id == other)
}

/// What the player makes of another that is in range.
fn stand(player: &PlayerSnapshot, other: EntityId, pair: PairRank) -> Stand {
    let Some(worst) = player.worst.filter(|_| !player.sees(other)) else {
        return Stand::Willing;
    };
    let rules = &player.rules;
    let key = Key::of(rules.rank(pair.class, pair.dist_cm, false), player.id, other);
    let worst_key = |linked: bool| {
        let rank = rules.rank(worst.class, worst.dist_cm.unwrap_or(u32::MAX), linked);
        Key::of(rank, player.id, worst.id)
    };
    // Whom it has asked may itself be the worst that still has a place.
    if worst.id == other || key < worst_key(worst.linked) {
        Stand::Willing
    } else if key < worst_key(false) {
        Stand::WithinMargin(worst)
    } else {
        Stand::Full(worst)
    }
}

#[cfg(test)]
mod tests;
