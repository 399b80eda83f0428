//! Questions that anybody may ask a region: who is where, and who sees whom.

use super::Region;
use super::bodies::Role;
use crate::scene::index::Patch;
use crate::scene::inspect::{EntitySnapshot, PlayerSnapshot, RegionSnapshot};
use crate::scene::{EntityId, Kind, Plane, Pos};

impl Region {
    /// The entity with this id, real or ghost.
    pub fn find(&self, id: EntityId) -> Option<EntitySnapshot> {
        self.bodies.slot(id).map(|slot| self.entity(slot))
    }

    /// Entities of a kind in the patch of `at`, in no particular order.
    pub fn in_patch(&self, plane: Plane, kind: Kind, at: Pos) -> Vec<EntitySnapshot> {
        self.search(plane, kind, at, 0, |_| true)
    }

    /// Entities of a kind within `radius_cm` of `at` on the ground, in no particular order. Beyond
    /// the region's ground only those that are mirrored here.
    pub fn within(&self, plane: Plane, kind: Kind, at: Pos, radius_cm: i32) -> Vec<EntitySnapshot> {
        let r2 = (i64::from(radius_cm) * i64::from(radius_cm)) as u64;
        self.search(plane, kind, at, radius_cm, |pos| pos.dist2(at) <= r2)
    }

    fn search(
        &self,
        plane: Plane,
        kind: Kind,
        at: Pos,
        radius_cm: i32,
        accept: impl Fn(Pos) -> bool,
    ) -> Vec<EntitySnapshot> {
        let index = self.bodies.plane(plane);
        let Some(Some(grid)) = index.and_then(|p| p.grids.get(usize::from(kind.0))) else {
            return Vec::new();
        };
        let center: Patch = grid.patch_of(at);
        let mut found = Vec::new();
        grid.rings(center, grid.rings_of_radius(radius_cm), |_, entries| {
            let near = entries.iter().filter(|e| accept(Pos::ground(e.x, e.z)));
            found.extend(near.map(|e| self.entity(e.slot)));
        });
        found
    }

    /// All entities, or those of a plane.
    pub fn inspect(&self, plane: Option<Plane>) -> RegionSnapshot {
        let entities = self
            .bodies
            .slots()
            .filter(|s| plane.is_none_or(|p| self.bodies.cold[*s as usize].plane == p))
            .map(|slot| self.entity(slot))
            .collect();
        RegionSnapshot {
            scene: self.scene.id,
            region: self.id,
            epoch: self.epoch,
            rect: self.rect,
            tick: self.tick,
            entities,
            doors: self.ground.as_ref().map_or_else(Vec::new, |g| g.doors_set(plane)),
        }
    }

    /// A player that lives here, or has just come and is not installed yet, with all that it sees.
    pub fn inspect_player(&self, id: EntityId) -> Option<PlayerSnapshot> {
        if let Some(h) = self.incoming.iter().find(|h| h.state.id == id) {
            let linked = h.peers.iter().filter(|p| p.mine != 0 && p.his != 0);
            return Some(PlayerSnapshot {
                id,
                epoch: h.epoch,
                region: self.id,
                plane: h.state.plane,
                pos: h.state.pos,
                range: h.state.range,
                view: linked.map(|p| p.id).collect(),
                seen: h.seen.iter().map(|s| s.id).collect(),
            });
        }
        let slot = self.bodies.slot(id)?;
        let (body, cold) = (&self.bodies.hot[slot as usize], &self.bodies.cold[slot as usize]);
        let viewer = self.viewers.get(body.viewer as usize)?;
        let linked = viewer.registers.peers.iter().filter(|p| p.linked());
        Some(PlayerSnapshot {
            id,
            epoch: cold.epoch,
            region: self.id,
            plane: cold.plane,
            pos: body.pos,
            range: body.range(),
            view: linked.map(|p| p.id).collect(),
            seen: viewer.seen.iter().map(|s| s.id).collect(),
        })
    }

    fn entity(&self, slot: u32) -> EntitySnapshot {
        let (body, cold) = (&self.bodies.hot[slot as usize], &self.bodies.cold[slot as usize]);
        let (owner, ghost) = match &cold.role {
            Role::Ghost(ghost) => (ghost.owner, true),
            Role::Real(_) | Role::Free => (self.id, false),
        };
        let views = self.viewers.get(body.viewer as usize).map_or(0, |v| v.registers.links());
        EntitySnapshot {
            id: body.id,
            kind: body.kind,
            plane: cold.plane,
            pos: body.pos,
            owner,
            ghost,
            views: views as u32,
        }
    }
}
