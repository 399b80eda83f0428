//! The pairs of players that the matcher looks at: whether two of them are in range, and how their pair ranks.

use super::prediction::Part;
use super::{Viewer, range_query};
use crate::scene::Visibility;
use crate::scene::index::Grid;
use crate::scene::region::entities::{EntityStore, NO_SLOT, TAG_BONDED};
use crate::scene::views::ViewRules;
use crate::scene::views::matcher::{Bounds, Pairs};

/// The pairs of one plane.
pub struct PlanePairs<'a> {
    pub(super) entities: &'a EntityStore,
    pub(super) viewers: &'a [Viewer],
    pub(super) vis: &'a Visibility,
    pub(super) rules: &'a ViewRules,
    pub(super) slots: &'a [u32],
    pub(super) parts: &'a [Part],
    /// Of the plane's players.
    pub(super) grid: &'a Grid,
}

impl Pairs for PlanePairs<'_> {
    fn rank(&self, a: u32, b: u32, _: u64) -> Option<u64> {
        let parts = (self.parts[a as usize], self.parts[b as usize]);
        if parts == (Part::Ghost, Part::Ghost) {
            return None;
        }
        let (a, b) = (self.slots[a as usize], self.slots[b as usize]);
        let now = range_query::of_slots(self.entities, self.vis, self.rules, (a, b), false)?;
        // Only players beyond the ground that the region sees have no place in its index.
        let finds = |part: Part, other: u32| part != Part::Ghost && self.entities.is_indexed(other);
        if !finds(parts.0, b) && !finds(parts.1, a) {
            return None;
        }
        let settled = |me: u32, ghost: (u32, Part)| {
            let viewer = self.viewers.get(self.entities.body(me).viewer as usize);
            viewer.is_some_and(|viewer| is_settled(viewer, ghost, self.entities))
        };
        let settled = match parts {
            (Part::Real, Part::Real) => false,
            (Part::Real, part) => settled(a, (b, part)),
            (part, Part::Real) => settled(b, (a, part)),
            _ => false,
        };
        (!settled).then(|| self.rules.rank(now.class, now.dist_cm, false))
    }

    fn bounds(&self, of: u32) -> Option<Bounds> {
        let me = self.entities.place(self.slots[of as usize]);
        // Companions may be in range wherever they are.
        if !matches!(self.vis, Visibility::Patches) || me.tag & TAG_BONDED != 0 {
            return None;
        }
        Some(self.grid.span(me.patch, me.range().reach().unwrap_or(0)))
    }
}

/// Whether a player has asked a ghost, or waits for its YES. That of a predicted ghost is predicted, too.
fn is_settled(me: &Viewer, (ghost, part): (u32, Part), entities: &EntityStore) -> bool {
    let id = entities.body(ghost).id;
    let known = me.registers.find_at(ghost, id, entities.have_moved(), NO_SLOT);
    known
        .map(|at| &me.registers.peers()[at])
        .is_some_and(|peer| peer.said() || (peer.their_turn() && part == Part::Ghost))
}
