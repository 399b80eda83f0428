//! The pairs of players that the matcher looks at: whether two of them are in range, and how their pair ranks.

use super::prediction::Part;
use super::range_query;
use super::registered::Registered;
use super::viewer::Viewer;
use crate::scene::index::Grid;
use crate::scene::region::entities::{EntityStore, NO_SLOT, TAG_BONDED};
use crate::scene::views::matcher::{Bounds, Pairs};
use crate::scene::{Kind, Visibility};

/// The pairs of one plane.
pub struct PlanePairs<'a> {
    players: Registered<'a>,
    vis: &'a Visibility,
    /// Of the plane's players.
    grid: &'a Grid,
}

impl<'a> PlanePairs<'a> {
    /// The pairs of the players of the plane `plane_ix`; `None` if it has none.
    pub(super) fn of(
        plane_ix: u32,
        players: Registered<'a>,
        vis: &'a Visibility,
    ) -> Option<PlanePairs<'a>> {
        let grids = &players.entities.plane_at(plane_ix).grids;
        let grid = grids.get(usize::from(Kind::PLAYER.0))?.as_ref()?;
        Some(PlanePairs { players, vis, grid })
    }

    /// Sides of a patch, centimetres.
    pub(super) fn patch_cm(&self) -> [i32; 2] {
        self.grid.patch_cm()
    }
}

impl Pairs for PlanePairs<'_> {
    fn rank(&self, a: u32, b: u32, _: u64) -> Option<u64> {
        let Registered { views, entities, slots, parts, .. } = self.players;
        let parts = (parts[a as usize], parts[b as usize]);
        if parts == (Part::Ghost, Part::Ghost) {
            return None;
        }
        let (a, b) = (slots[a as usize], slots[b as usize]);
        let now = range_query::of_slots(entities, self.vis, &views.rules, (a, b), false)?;
        // Only players beyond the ground that the region sees have no place in its index.
        let finds = |part: Part, other: u32| part != Part::Ghost && entities.is_indexed(other);
        if !finds(parts.0, b) && !finds(parts.1, a) {
            return None;
        }
        let settled = |me: u32, ghost: (u32, Part)| {
            views.of(entities, me).is_some_and(|viewer| is_settled(viewer, ghost, entities))
        };
        let settled = match parts {
            (Part::Real, Part::Real) => false,
            (Part::Real, part) => settled(a, (b, part)),
            (part, Part::Real) => settled(b, (a, part)),
            _ => false,
        };
        (!settled).then(|| views.rules.rank(now.class, now.dist_cm, false))
    }

    fn others(&self, of: u32, found: &mut Vec<(u32, u64)>) {
        self.players.displaced(of, found);
        self.players.companions(of, self.vis, found);
    }

    fn bounds(&self, of: u32) -> Option<Bounds> {
        let Registered { entities, slots, .. } = self.players;
        let me = entities.place(slots[of as usize]);
        // Companions may be in range wherever they are.
        if !matches!(self.vis, Visibility::Patches) || me.tag & TAG_BONDED != 0 {
            return None;
        }
        Some(self.grid.span(me.patch, entities.range().reach().unwrap_or(0)))
    }
}

/// Whether a player has asked a ghost, or waits for its YES. That of a predicted ghost is predicted, too.
fn is_settled(me: &Viewer, (ghost, part): (u32, Part), entities: &EntityStore) -> bool {
    let id = entities.body(ghost).id;
    let known = me.registers.find_at(ghost, id, entities.have_moved(), NO_SLOT);
    known
        .map(|at| &me.registers.peers()[at])
        .is_some_and(|p| p.said() || (p.their_turn() && part == Part::Ghost))
}
