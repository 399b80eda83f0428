//! Bodies: entities, real or ghost, of kinds that block, and the tiles that they occupy.
//!
//! A body stops a step onto one of its tiles from a tile outside of it. What stands in a body walks in it and leaves it.
//! No body is in its own way: the middle of a moving body is judged as every entity is.
//!
//! The store keeps the tiles in step with where entities stand. Movement asks them beside the ground, and for what was
//! taken since the last tick, so that paths are checked again. In a scene without such kinds nothing is ever here.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Body;
use crate::scene::{EntityId, Footprint, Kind, Plane, Pos, Scene, Tile, TileRect};

/// The tiles that entities occupy.
#[derive(Debug)]
pub struct Blockers {
    /// Kinds whose entities block, a bit each.
    kinds: [u64; 4],
    /// The footprint of each kind of the scene; `None`: it does not block.
    footprints: Vec<Option<Footprint>>,
    /// The bodies on each tile that has any, in no particular order.
    tiles: FxHashMap<(Plane, Tile), SmallVec<[EntityId; 2]>>,
    /// What bodies have come to occupy since paths were checked.
    taken: Vec<(Plane, TileRect)>,
}

impl Blockers {
    /// No entity yet.
    pub fn new(scene: &Scene) -> Blockers {
        let all = (0..=u8::MAX).take(scene.spec.kinds.len());
        let footprints: Vec<_> = all.map(|kind| scene.footprint(Kind(kind))).collect();
        let mut kinds = [0; 4];
        for kind in (0..footprints.len()).filter(|kind| footprints[*kind].is_some()) {
            kinds[kind >> 6] |= 1 << (kind & 63);
        }
        Blockers { kinds, footprints, tiles: FxHashMap::default(), taken: Vec::new() }
    }

    /// Whether entities of a kind block.
    #[inline]
    pub fn has_kind(&self, kind: Kind) -> bool {
        self.kinds[usize::from(kind.0 >> 6)] >> (kind.0 & 63) & 1 != 0
    }

    /// Whether no tile is occupied.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tiles.is_empty()
    }

    fn footprint(&self, kind: Kind) -> Option<Footprint> {
        self.footprints.get(usize::from(kind.0)).copied().flatten()
    }

    /// A body is there from now on.
    pub(super) fn enter(&mut self, plane: Plane, body: &Body) {
        let Some(footprint) = self.footprint(body.kind) else { return };
        self.take(plane, body.id, footprint.at(body.pos), None);
    }

    /// A body is there no more.
    pub(super) fn leave(&mut self, plane: Plane, body: &Body) {
        let Some(footprint) = self.footprint(body.kind) else { return };
        self.free(plane, body.id, footprint.at(body.pos), None);
    }

    /// A body has gone from a position to another one of its plane.
    pub(super) fn pass(&mut self, plane: Plane, body: &Body, from: Pos) {
        let Some(footprint) = self.footprint(body.kind) else { return };
        let (old, new) = (footprint.at(from), footprint.at(body.pos));
        if old != new {
            self.free(plane, body.id, old, Some(new));
            self.take(plane, body.id, new, Some(old));
        }
    }

    /// A body takes tiles, beside those that it has.
    fn take(&mut self, plane: Plane, id: EntityId, tiles: TileRect, has: Option<TileRect>) {
        if plane == Plane::LIMBO {
            return;
        }
        for tile in tiles.tiles().filter(|tile| has.is_none_or(|has| !has.contains(*tile))) {
            self.tiles.entry((plane, tile)).or_default().push(id);
        }
        self.taken.push((plane, tiles));
    }

    /// A body frees tiles, except those that it keeps.
    fn free(&mut self, plane: Plane, id: EntityId, tiles: TileRect, keeps: Option<TileRect>) {
        for tile in tiles.tiles().filter(|tile| keeps.is_none_or(|keeps| !keeps.contains(*tile))) {
            let Some(bodies) = self.tiles.get_mut(&(plane, tile)) else { continue };
            bodies.retain(|other| *other != id);
            if bodies.is_empty() {
                self.tiles.remove(&(plane, tile));
            }
        }
    }

    fn on(&self, plane: Plane, tile: Tile) -> &[EntityId] {
        self.tiles.get(&(plane, tile)).map_or(&[], |bodies| bodies)
    }

    /// What is in the way of an entity.
    #[inline]
    pub fn for_entity(&self, id: EntityId) -> Option<Obstacles<'_>> {
        (!self.is_empty()).then_some(Obstacles { blockers: self, own: id })
    }

    /// What was taken since this was asked last.
    pub fn take_taken(&mut self) -> Vec<(Plane, TileRect)> {
        std::mem::take(&mut self.taken)
    }
}

/// The bodies as one entity meets them.
#[derive(Debug, Clone, Copy)]
pub struct Obstacles<'a> {
    blockers: &'a Blockers,
    own: EntityId,
}

impl Obstacles<'_> {
    /// Whether no other body stops a step of the entity from a tile to one beside it.
    pub fn admit(&self, plane: Plane, from: Tile, to: Tile) -> bool {
        let inside = || self.blockers.on(plane, from);
        let lets = |body: &EntityId| *body == self.own || inside().contains(body);
        self.blockers.on(plane, to).iter().all(lets)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::scene::properties::Properties;
    use crate::scene::region::entities::{EntityStore, NewEntity, Real, Role};
    use crate::scene::spec::{KindSpec, MoveSpec, Moves};
    use crate::scene::views::Ties;
    use crate::scene::{Epoch, Facing, RegionId, SceneId, SceneSpec, ViewLimits};

    const PLANE: Plane = Plane(0);

    /// The store of a scene in which kind 1 has bodies of 4 x 2 m.
    fn store() -> EntityStore {
        let body = KindSpec { blocks: true, size_cm: Some([400, 200]), ..KindSpec::new("ox", 0) };
        let kinds = vec![KindSpec::new("player", 0), body];
        let moves = MoveSpec { mode: Moves::Judged, ..MoveSpec::default() };
        let spec = SceneSpec { kinds, moves, ..SceneSpec::default() };
        let scene = Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap();
        EntityStore::new(&scene, scene.map.regions[0].rect)
    }

    fn add(store: &mut EntityStore, id: u64, kind: u8, pos: Pos) -> u32 {
        let (id, kind, epoch) = (EntityId(id), Kind(kind), Epoch(1));
        let (facing, sight) = (Facing::EAST, ViewLimits::FULL);
        let (properties, ties) = (Properties::default(), Ties::default());
        let plane = PLANE;
        let new = NewEntity { id, kind, plane, pos, facing, sight, properties, ties, epoch };
        store.add(new, Role::Real(Real::default()))
    }

    /// The occupied tiles of a plane with the number of bodies on them all.
    fn occupied(store: &EntityStore) -> (BTreeSet<(i32, i32)>, usize) {
        let on = store.blockers.tiles.iter().filter(|((plane, _), _)| *plane == PLANE);
        let bodies = on.clone().map(|(_, bodies)| bodies.len()).sum();
        (on.map(|((_, tile), _)| (tile.x, tile.z)).collect(), bodies)
    }

    fn block(columns: std::ops::RangeInclusive<i32>) -> BTreeSet<(i32, i32)> {
        columns.flat_map(|x| [(x, 9), (x, 10)]).collect()
    }

    #[test]
    fn a_body_takes_and_frees_tiles_as_it_moves_and_nothing_within_the_same_tiles() {
        let mut store = store();
        let slot = add(&mut store, 7, 1, Pos::ground(1_000, 1_000));
        assert_eq!(occupied(&store), (block(8..=11), 8));
        assert_eq!(store.blockers.take_taken().len(), 1);
        store.set_pos(slot, Pos::ground(1_049, 1_049));
        assert_eq!((occupied(&store), store.blockers.take_taken()), ((block(8..=11), 8), vec![]));
        store.set_pos(slot, Pos::ground(1_060, 1_000));
        let rect = TileRect { first: Tile { x: 9, z: 9 }, last: Tile { x: 12, z: 10 } };
        assert_eq!(store.blockers.take_taken(), [(PLANE, rect)]);
        assert_eq!(occupied(&store), (block(9..=12), 8));
        store.set_pos(slot, Pos::ground(5_000, 1_000));
        assert_eq!(occupied(&store), (block(48..=51), 8));
        store.set_plane(slot, Plane::LIMBO);
        assert!(store.blockers.is_empty());
        store.set_pos(slot, Pos::ground(1_000, 1_000));
        store.set_plane(slot, PLANE);
        assert_eq!(occupied(&store), (block(8..=11), 8));
        store.remove(slot);
        assert!(store.blockers.is_empty());
    }

    #[test]
    fn others_take_no_tiles() {
        let mut store = store();
        let slot = add(&mut store, 7, 0, Pos::ground(1_000, 1_000));
        store.set_pos(slot, Pos::ground(3_000, 1_000));
        assert!(store.blockers.is_empty() && store.blockers.take_taken().is_empty());
    }

    #[test]
    fn bodies_on_the_same_tiles_each_stop_steps_from_outside_of_them() {
        let mut store = store();
        // Columns 8 to 11, and 10 to 13.
        let first = add(&mut store, 7, 1, Pos::ground(1_000, 1_000));
        add(&mut store, 8, 1, Pos::ground(1_200, 1_000));
        assert_eq!(occupied(&store), (block(8..=13), 16));
        let step = |store: &EntityStore, id: u64, from: i32, to: i32| {
            let tile = |x| Tile { x, z: 10 };
            let obstacles = store.blockers.for_entity(EntityId(id));
            obstacles.is_none_or(|others| others.admit(PLANE, tile(from), tile(to)))
        };
        let steps = |store: &EntityStore, id: u64, of: [(i32, i32); 5]| {
            of.map(|(from, to)| step(store, id, from, to))
        };
        let of = [(7, 8), (8, 9), (9, 10), (10, 9), (11, 12)];
        assert_eq!(steps(&store, 1, of), [false, true, false, true, true]);
        assert_eq!(steps(&store, 7, of), [true, true, false, true, true]);
        assert_eq!(steps(&store, 8, of), [false, true, true, true, true]);
        store.remove(first);
        assert_eq!(steps(&store, 1, of), [true, true, false, true, true]);
        assert!(!step(&store, 1, 14, 13));
    }
}
