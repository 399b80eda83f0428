//! Explains why two players see each other, or why they do not: the view rule, evaluated on
//! snapshots from the regions that own the two players.
//!
//! The console and `ctl why` call it. It only reads; the protocol must never depend on it.
//!
//! The first of these that holds is the answer:
//!
//! ```text
//!   SameEntity     both ids are the same entity
//!   NotAPlayer     view lists hold players only
//!   Seen           each is on the other's view list
//!   OtherScene     they are in different scenes
//!   OtherPlane     they are on different planes, or between two scenes
//!   OutOfRange     too far apart, on the ground or in height
//!   Full           at least one list is full of players that rank better than this pair
//!   WithinMargin   better than the worst on a full list, but by less than the margin
//!   Negotiating    both want the link: it exists as soon as the messages in flight arrive
//! ```
//!
//! At rest no pair is negotiating. Two snapshots from different ticks can show a link that only one
//! of the two has; that is the same as a message in flight.

use serde::{Deserialize, Serialize};

use super::{InspectedEntity, PlayerDetails, ViewEntry};
use crate::scene::geo::dist_cm;
use crate::scene::index::Patch;
use crate::scene::views::Key;
use crate::scene::{EntityId, Heights, Kind, Plane, Pos, RangeSet, SceneId, SceneSpec, Visibility};

/// The rank of a pair, before ids break ties: smaller is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PairRank {
    /// Bond class; 255 = none.
    pub class: u8,
    /// Ground distance, centimetres.
    pub dist_cm: u32,
}

impl PairRank {
    fn of(a: &PlayerDetails, b: &PlayerDetails) -> PairRank {
        let dist_cm = dist_cm(a.pos.dist2(b.pos));
        let class = a.rules.class((a.id, &a.ties), (b.id, &b.ties), &a.relations, dist_cm, a.tick);
        PairRank { class, dist_cm }
    }
}

/// A place in a view list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRank {
    /// The place, from 1 (best).
    pub place: usize,
    /// Length of the list.
    pub of: usize,
}

/// The range rule that the pair fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// The patches between the players must be a ring of the scene's range.
    Patches {
        /// Patches between the two: 0 in the same patch, 1 in adjacent ones.
        apart: u32,
        /// Sides of a patch of the players' layer along x and z, centimetres.
        patch_cm: [i32; 2],
        /// The rings in which players see each other.
        range: RangeSet,
    },
    /// The players must be near enough to come into range, or to stay in range.
    Circle {
        /// Radius for coming into range, centimetres.
        enter_cm: i32,
        /// Radius for leaving range, centimetres.
        leave_cm: i32,
        /// They are in range already, so the leave radius applies.
        known: bool,
    },
    /// The players are in range on the ground, but must be nearer in height.
    Height {
        /// How far apart they are in height, centimetres.
        apart_cm: u32,
        /// How far apart in height they may be to come into view, centimetres.
        enter_cm: u32,
        /// How far apart in height they may be to stay in view, centimetres.
        leave_cm: u32,
        /// They are in range already, so they may be as far apart as to stay in view.
        known: bool,
    },
}

/// One player's stance on the pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stand {
    /// It wants the link: it has the other on its list, has room, or has a worse link.
    Willing,
    /// Its list is full. The other ranks better than this worst link, but by less than the margin.
    WithinMargin(ViewEntry),
    /// Its list is full. All links rank better than the other, even this worst one.
    Full(ViewEntry),
}

/// Why two players see each other, or why they do not. In each array the first element belongs to
/// the first player of the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// Each is on the other's view list.
    Seen {
        /// Rank of the pair.
        pair: PairRank,
        /// The other player's place on the list of each.
        places: [ListRank; 2],
    },
    /// Both ids are the same entity.
    SameEntity,
    /// At least one of the two is not a player.
    NotAPlayer {
        /// The kind of each that is not a player.
        kinds: [Option<Kind>; 2],
    },
    /// They are in different scenes.
    OtherScene {
        /// The scenes.
        scenes: [SceneId; 2],
    },
    /// They are on different planes, or in limbo, where nothing is visible.
    OtherPlane {
        /// The planes.
        planes: [Plane; 2],
    },
    /// They are too far apart.
    OutOfRange {
        /// Ground distance, centimetres.
        dist_cm: u32,
        /// The rule that they fail.
        limit: Limit,
    },
    /// At least one list is full of players that rank better.
    Full {
        /// Rank of the pair.
        pair: PairRank,
        /// The stance of each player on the pair.
        stands: [Stand; 2],
    },
    /// At least one list is full and this pair ranks better than its worst link, but by less than
    /// the margin; no list is full of better links.
    WithinMargin {
        /// Rank of the pair.
        pair: PairRank,
        /// The stance of each player on the pair.
        stands: [Stand; 2],
    },
    /// Both want the link: a message between them is in flight, or one is about to ask.
    Negotiating {
        /// Rank of the pair.
        pair: PairRank,
    },
}

impl Why {
    /// Whether the two see each other.
    pub fn is_seen(&self) -> bool {
        matches!(self, Why::Seen { .. })
    }
}

/// Why `a` and `b` see each other, or why they do not. `spec` is the scene of either.
pub fn why(spec: &SceneSpec, a: &InspectedEntity, b: &InspectedEntity) -> Why {
    if a.id() == b.id() {
        return Why::SameEntity;
    }
    match (a, b) {
        (InspectedEntity::Player(a), InspectedEntity::Player(b)) => of_players(spec, a, b),
        (InspectedEntity::Other(_), _) | (_, InspectedEntity::Other(_)) => {
            Why::NotAPlayer { kinds: [a, b].map(other_kind) }
        }
    }
}

fn other_kind(of: &InspectedEntity) -> Option<Kind> {
    match of {
        InspectedEntity::Player(_) => None,
        InspectedEntity::Other(e) => Some(e.kind),
    }
}

fn of_players(spec: &SceneSpec, a: &PlayerDetails, b: &PlayerDetails) -> Why {
    let pair = PairRank::of(a, b);
    if let (Some(b_at), Some(a_at)) = (a.place_of(b.id), b.place_of(a.id)) {
        let on_a = ListRank { place: b_at, of: a.view.len() };
        let on_b = ListRank { place: a_at, of: b.view.len() };
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

/// The range rule that two players of one plane fail; `None` if they are in range.
fn exceeded(spec: &SceneSpec, a: &PlayerDetails, b: &PlayerDetails) -> Option<Limit> {
    let patch_cm = spec.player_patch_cm();
    let [width, depth] = patch_cm.map(|side| side.max(1));
    let patch = |p: Pos| Patch { x: p.x.div_euclid(width), z: p.z.div_euclid(depth) };
    let apart = patch(a.pos).ring(patch(b.pos));
    let known = deals_with(a, b.id) || deals_with(b, a.id);
    let range = spec.range;
    let kept = || {
        let rule = spec.layers.first().map(|layer| spec.patch_rule(layer));
        spec.visibility == Visibility::Patches && rule.is_some_and(|r| r.keeps(range, a.pos, b.pos))
    };
    let near =
        spec.visibility.in_range(apart, a.pos.dist2(b.pos), range, known) || (known && kept());
    let (pair, heights) = (PairRank::of(a, b), spec.heights());
    let level = heights.hold(a.pos.y, b.pos.y, known);
    if (near && level) || a.rules.exempt(pair.class, pair.dist_cm, known) {
        return None;
    }
    match spec.visibility {
        _ if near => {
            let Heights { enter_cm, leave_cm } = heights;
            let apart_cm = a.pos.y.abs_diff(b.pos.y);
            Some(Limit::Height { apart_cm, enter_cm, leave_cm, known })
        }
        Visibility::Patches => Some(Limit::Patches { apart, patch_cm, range }),
        Visibility::Circle { enter_cm, leave_cm } => {
            Some(Limit::Circle { enter_cm, leave_cm, known })
        }
        Visibility::All => None,
    }
}

/// Whether the player has the other on its list or has asked it.
fn deals_with(player: &PlayerDetails, other: EntityId) -> bool {
    player.view.iter().chain(&player.asked).any(|e| e.id == other)
}

/// The player's stance on another player in range.
fn stand(player: &PlayerDetails, other: EntityId, pair: PairRank) -> Stand {
    let Some(worst) = player.worst.filter(|_| !player.sees(other)) else {
        return Stand::Willing;
    };
    let rules = &player.rules;
    let key = Key::of(rules.rank(pair.class, pair.dist_cm, false), player.id, other);
    let worst_key = |linked: bool| {
        let rank = rules.rank(worst.class, worst.dist_cm.unwrap_or(u32::MAX), linked);
        Key::of(rank, player.id, worst.id)
    };
    // The worst link or request may be the request to this very player.
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
