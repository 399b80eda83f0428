//! Where entities stand: the rules that move an entity, and keep the indices of the planes in step.

use super::EntityStore;
use super::planes::{PlaneIndex, with_band};
use super::records::{Location, TAG_BONDED};
use crate::scene::index::{Grid, Spot};
use crate::scene::mutants::{self, Mutant};
use crate::scene::{Kind, PatchRule, Plane, Pos, RangeSet, Rect, Scene};

impl EntityStore {
    /// Puts an entity elsewhere on its plane.
    #[inline]
    pub fn set_pos(&mut self, slot: u32, pos: Pos) {
        let body = &mut self.hot[slot as usize];
        let before = std::mem::replace(&mut body.pos, pos);
        let place = &mut self.places[slot as usize];
        (place.x, place.y, place.z) = (pos.x, pos.y, pos.z);
        let index = &mut self.planes[place.plane_ix as usize];
        if self.blockers.has_kind(body.kind) {
            self.blockers.pass(index.plane, body, before);
        }
        let grids = &mut index.grids;
        let Some(grid) = &mut grids[usize::from(body.kind.0)] else { return };
        place.patch = grid.patch_of(pos);
        let old = self.spots[slot as usize];
        let (spot, displaced) = grid.relocate(old, slot, place.tag, pos);
        self.spots[slot as usize] = spot;
        if let Some(other) = displaced {
            self.spots[other as usize] = old;
        }
    }

    /// Sets the rank that a pair must beat to interest a player.
    #[inline]
    pub fn set_threshold(&mut self, slot: u32, threshold: u64) {
        self.hot[slot as usize].threshold = threshold;
    }

    /// Puts an entity on another plane.
    pub fn set_plane(&mut self, slot: u32, plane: Plane) {
        if self.records[slot as usize].plane != plane {
            self.leave_plane(slot);
            self.records[slot as usize].plane = plane;
            self.enter_plane(slot);
        }
    }

    /// Entities stay where they are, while the ground of the region becomes another.
    pub fn set_ground(&mut self, scene: &Scene, rect: Rect) {
        (self.ground, self.rect) = (with_band(scene, rect), rect);
        self.planes.iter_mut().flat_map(|p| &mut p.grids).for_each(|grid| *grid = None);
        for slot in 0..self.hot.len() {
            let (body, place) = (&self.hot[slot], &mut self.places[slot]);
            if place.is_free() {
                continue;
            }
            let kind = usize::from(body.kind.0);
            let grid = &mut self.planes[place.plane_ix as usize].grids[kind];
            let patch_cm = self.kind_patches[kind].side_cm;
            let grid = grid.get_or_insert_with(|| Grid::new(self.ground, patch_cm));
            place.patch = grid.patch_of(body.pos);
            self.spots[slot] = grid.insert(slot as u32, place.tag, body.pos);
        }
    }

    pub(super) fn enter_plane(&mut self, slot: u32) {
        let plane = self.records[slot as usize].plane;
        let plane_ix = self.plane_ix(plane);
        let (body, place) = (&self.hot[slot as usize], &mut self.places[slot as usize]);
        place.plane_ix = plane_ix;
        let kind = usize::from(body.kind.0);
        let index = &mut self.planes[plane_ix as usize];
        index.population += 1;
        index.visitors += u32::from(body.id.content().is_none());
        let is_passable = || !body.real && mutants::has(Mutant::GhostsPassable);
        if self.blockers.has_kind(body.kind) && !is_passable() {
            self.blockers.enter(plane, body);
        }
        let patch_cm = self.kind_patches[kind].side_cm;
        let grid = index.grids[kind].get_or_insert_with(|| Grid::new(self.ground, patch_cm));
        place.patch = grid.patch_of(body.pos);
        self.spots[slot as usize] = grid.insert(slot, place.tag, body.pos);
    }

    pub(super) fn leave_plane(&mut self, slot: u32) {
        let body = &self.hot[slot as usize];
        let kind = usize::from(body.kind.0);
        let plane_ix = self.places[slot as usize].plane_ix;
        if self.blockers.has_kind(body.kind) {
            self.blockers.leave(self.planes[plane_ix as usize].plane, body);
        }
        let spot = std::mem::replace(&mut self.spots[slot as usize], Spot::NONE);
        let index = &mut self.planes[plane_ix as usize];
        let displaced = index.grids[kind].as_mut().and_then(|g| g.remove(spot));
        index.population -= 1;
        index.visitors -= u32::from(self.hot[slot as usize].id.content().is_none());
        if index.population == 0 {
            self.by_plane.remove(&index.plane);
            index.grids = Vec::new();
            self.free_planes.push(plane_ix);
        }
        if let Some(other) = displaced {
            self.spots[other as usize] = spot;
        }
    }

    fn plane_ix(&mut self, plane: Plane) -> u32 {
        if let Some(ix) = self.by_plane.get(&plane) {
            return *ix;
        }
        let grids = vec![None; self.kind_patches.len()];
        let index = PlaneIndex { plane, grids, population: 0, visitors: 0 };
        let ix = match self.free_planes.pop() {
            Some(ix) => {
                self.planes[ix as usize] = index;
                ix
            }
            None => {
                self.planes.push(index);
                (self.planes.len() - 1) as u32
            }
        };
        self.by_plane.insert(plane, ix);
        ix
    }

    /// The planes on which any entity is beside what the scene contains, in no particular order.
    pub fn visited_planes(&self) -> impl Iterator<Item = Plane> + '_ {
        let is_visited = |ix: &u32| self.planes[*ix as usize].visitors > 0;
        self.by_plane.iter().filter(move |(_, ix)| is_visited(ix)).map(|(plane, _)| *plane)
    }

    /// The index of a plane, if any entity is on it.
    pub fn plane(&self, plane: Plane) -> Option<&PlaneIndex> {
        self.by_plane.get(&plane).map(|ix| &self.planes[*ix as usize])
    }

    /// Whether queries find an entity: it is on the ground that the region sees.
    #[inline]
    pub fn is_indexed(&self, slot: u32) -> bool {
        self.spots[slot as usize] != Spot::NONE
    }

    /// The index of the plane on which an entity stands: see
    /// [`Location::plane_ix`](super::Location::plane_ix).
    #[inline]
    pub fn plane_at(&self, plane_ix: u32) -> &PlaneIndex {
        &self.planes[plane_ix as usize]
    }

    /// The rings in which players see each other, where patches decide.
    #[inline]
    pub fn range(&self) -> RangeSet {
        self.range
    }

    /// Whether two entities are near enough in height to see each other; `known`: they do already.
    #[inline]
    pub fn are_level(&self, a: &Location, b: &Location, known: bool) -> bool {
        self.heights.hold(a.y, b.y, known)
    }

    /// How the patches of a kind are cut; the kind is one of the scene's.
    #[inline]
    pub fn patches_of(&self, kind: Kind) -> &PatchRule {
        &self.kind_patches[usize::from(kind.0)]
    }

    /// How far from a neighbour's ground the entity at `slot` is mirrored to it, centimetres.
    #[inline]
    pub fn band_cm(&self, slot: u32, scene: &Scene) -> i32 {
        let bonded = self.places[slot as usize].tag & TAG_BONDED != 0;
        if bonded { scene.bonded_band_cm } else { scene.band_cm }
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::scene::properties::Properties;
    use crate::scene::region::entities::{NewEntity, Real, Role};
    use crate::scene::views::Ties;
    use crate::scene::{EntityId, Epoch, Facing, RegionId, ViewLimits};

    /// The first entity of a plane creates the plane's index; after the last one has gone it takes
    /// no memory.
    #[test]
    fn planes_that_nobody_is_on_take_no_index() {
        let spec = crate::scene::SceneSpec::default();
        let scene = Scene::new(crate::scene::SceneId(0), spec, 100, RegionId(0)).unwrap();
        let mut entities = EntityStore::new(&scene, scene.map.regions[0].rect);
        let add = |entities: &mut EntityStore, id: u64, plane: i32| {
            let (pos, facing, role) =
                (Pos::ground(9, 9), Facing::EAST, Role::Real(Real::default()));
            let (kind, plane, sight) = (Kind(0), Plane(plane), ViewLimits::FULL);
            let properties = Properties::default();
            let (id, ties, epoch) = (EntityId(id), Ties::default(), Epoch(1));
            let new = NewEntity { id, kind, plane, pos, facing, sight, properties, ties, epoch };
            entities.add(new, role)
        };
        let slot = add(&mut entities, 1, 0);
        for plane in [7, -5, i32::MAX].into_iter().chain(100..1_100) {
            entities.set_plane(slot, Plane(plane));
            let other = add(&mut entities, 2, 50);
            entities.remove(other);
            entities.reuse_slots();
            let indices = entities.planes.iter().map(PlaneIndex::grid_count);
            assert_eq!(indices.sum::<usize>(), 1);
            assert!(entities.planes.len() <= 3, "{}", entities.planes.len());
        }
    }
}
