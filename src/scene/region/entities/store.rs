//! Slots: every entity that a region knows, real or ghost.
//!
//! Slots are dense with a free list. A slot is reused after its entity is gone and every player of the
//! region has evaluated its view since: registers may keep a slot alone, and find it free at worst. A rule that
//! remembers a slot for longer remembers the entity's id too and compares: ids are never used twice.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::blockers::Blockers;
use super::planes::{PlaneIndex, with_band};
use super::records::{Body, Ghost, Location, NOWHERE, NewEntity, Real, Record, Renumbering, Role};
use super::{MovingEntity, Trajectories};
use crate::scene::index::{Grid, Spot};
use crate::scene::messages::Bond;
use crate::scene::movement::Trajectory;
use crate::scene::prefetch;
use crate::scene::properties::Properties;
use crate::scene::spec::KindSpec;
use crate::scene::views::{Relations, Ties};
use crate::scene::{
    EntityId, Epoch, Facing, Heights, Kind, PatchRule, Plane, RangeSet, Rect, Scene, Tick,
    TickStamp,
};

/// All entities that a region knows.
#[derive(Debug)]
pub struct EntityStore {
    pub(super) hot: Vec<Body>,
    /// Of each slot.
    pub(super) places: Vec<Location>,
    /// Where each slot's entity stands in its grid.
    pub(super) spots: Vec<Spot>,
    pub(super) records: Vec<Record>,
    /// Of the entities that move.
    pub(super) trajectories: Trajectories,
    pub(super) planes: Vec<PlaneIndex>,
    pub(super) free: Vec<u32>,
    /// Free, but a register may still remember which entity was there.
    pub(super) freed: Vec<u32>,
    pub(super) by_id: FxHashMap<EntityId, u32>,
    pub(super) by_plane: FxHashMap<Plane, u32>,
    pub(super) free_planes: Vec<u32>,
    /// Members of each group, by its bond.
    pub(super) groups: FxHashMap<Bond, BTreeSet<u32>>,
    /// How groups stand to each other.
    pub(super) relations: Relations,
    /// Tiles that entities occupy.
    pub(super) blockers: Blockers,
    /// The tick whose fights count.
    pub(super) now: Tick,
    pub(super) ground: Rect,
    /// The same without the band.
    pub(super) rect: Rect,
    /// The rings in which players see each other.
    pub(super) range: RangeSet,
    /// How far apart in height entities may be that see each other.
    pub(super) heights: Heights,
    /// The patches of each kind.
    pub(super) kind_patches: Vec<PatchRule>,
    /// Slots of what has changed since the last frames, where viewers extrapolate.
    stirred: Vec<u32>,
    /// Viewers extrapolate.
    extrapolated: bool,
    /// Only the frames know which changes viewers foresee.
    foreseen: bool,
}

impl EntityStore {
    /// No entity yet, on the ground of a region and the band around it.
    pub fn new(scene: &Scene, rect: Rect) -> EntityStore {
        let ground = with_band(scene, rect);
        let patches_of = |kind: &KindSpec| scene.spec.patch_rule(&scene.spec.layers[kind.layer]);
        EntityStore {
            hot: Vec::new(),
            places: Vec::new(),
            spots: Vec::new(),
            records: Vec::new(),
            trajectories: Trajectories::default(),
            planes: Vec::new(),
            free: Vec::new(),
            freed: Vec::new(),
            by_id: FxHashMap::default(),
            by_plane: FxHashMap::default(),
            free_planes: Vec::new(),
            groups: FxHashMap::default(),
            relations: Relations::default(),
            blockers: Blockers::new(scene),
            now: Tick(0),
            ground,
            rect,
            range: scene.spec.range,
            heights: scene.spec.heights(),
            kind_patches: scene.spec.kinds.iter().map(patches_of).collect(),
            stirred: Vec::new(),
            extrapolated: scene.spec.update_error_in_force().is_some(),
            foreseen: scene.spec.update_error_in_force().is_some() && scene.judged.is_none(),
        }
    }

    /// The slot of an entity, if it is known here.
    #[inline]
    pub fn slot(&self, id: EntityId) -> Option<u32> {
        #[cfg(test)]
        super::lookups::note();
        self.by_id.get(&id).copied()
    }

    /// Asks for what is needed to move an entity, whose slot may be known.
    pub fn fetch(&self, slot: Option<u32>, id: Option<EntityId>) {
        let slot = slot.or_else(|| id.and_then(|id| self.slot(id)));
        let Some(slot) = slot else { return };
        let at = slot as usize..slot as usize + 1;
        prefetch::fetch(&self.hot[at.clone()]);
        prefetch::fetch(&self.places[at.clone()]);
        prefetch::fetch(&self.spots[at.clone()]);
        prefetch::fetch(&self.records[at]);
    }

    /// The ground of the region.
    pub fn rect(&self) -> Rect {
        self.rect
    }

    /// How many entities are known here.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether a kind is one of the scene's.
    pub fn has_kind(&self, kind: Kind) -> bool {
        usize::from(kind.0) < self.kind_patches.len()
    }

    /// Slots in use.
    pub fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.hot.len() as u32).filter(|s| !matches!(self.records[*s as usize].role, Role::Free))
    }

    /// How many slots there are, in use or free.
    #[inline]
    pub fn slot_count(&self) -> u32 {
        self.hot.len() as u32
    }

    /// The entity at `slot`, as every rule sees it.
    #[inline]
    pub fn body(&self, slot: u32) -> &Body {
        &self.hot[slot as usize]
    }

    /// The same of a slot that may not exist.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&Body> {
        self.hot.get(slot as usize)
    }

    /// Whether `slot` is still that of an entity which was there before.
    #[inline]
    pub fn is_at(&self, slot: u32, id: EntityId) -> bool {
        self.get(slot).is_some_and(|body| body.id == id)
    }

    /// Where the entity at `slot` is, for range queries.
    #[inline]
    pub fn place(&self, slot: u32) -> &Location {
        &self.places[slot as usize]
    }

    /// The same of a slot that may not exist.
    #[inline]
    pub fn find_place(&self, slot: u32) -> Option<&Location> {
        self.places.get(slot as usize)
    }

    /// Whether no entity is at `slot`, which may not exist.
    #[inline]
    pub fn is_free(&self, slot: u32) -> bool {
        self.find_place(slot).is_none_or(Location::is_free)
    }

    /// Rarely needed data of the entity at `slot`.
    #[inline]
    pub fn record(&self, slot: u32) -> &Record {
        &self.records[slot as usize]
    }

    /// Every slot with its records.
    pub fn all(&self) -> impl Iterator<Item = (&Body, &Record)> {
        self.hot.iter().zip(&self.records)
    }

    /// Whether the entity at `slot` lives here, or where.
    #[inline]
    pub fn role(&self, slot: u32) -> &Role {
        &self.records[slot as usize].role
    }

    /// Whether the entity at `slot` lives here.
    #[inline]
    pub fn is_real(&self, slot: u32) -> bool {
        self.hot[slot as usize].is_real()
    }

    /// The slot of an entity that lives here.
    #[inline]
    pub fn real_slot(&self, id: EntityId) -> Option<u32> {
        self.slot(id).filter(|slot| self.is_real(*slot))
    }

    /// The real at `slot`, if one lives there.
    #[inline]
    pub fn real(&self, slot: u32) -> Option<&Real> {
        match &self.records[slot as usize].role {
            Role::Real(real) => Some(real),
            Role::Ghost(_) | Role::Free => None,
        }
    }

    /// The same, to change it.
    #[inline]
    pub fn real_mut(&mut self, slot: u32) -> Option<&mut Real> {
        match &mut self.records[slot as usize].role {
            Role::Real(real) => Some(real),
            Role::Ghost(_) | Role::Free => None,
        }
    }

    /// The ghost at `slot`, if there is one.
    #[inline]
    pub fn ghost(&self, slot: u32) -> Option<&Ghost> {
        match &self.records[slot as usize].role {
            Role::Ghost(ghost) => Some(ghost),
            Role::Real(_) | Role::Free => None,
        }
    }

    /// The same, to change it.
    #[inline]
    pub fn ghost_mut(&mut self, slot: u32) -> Option<&mut Ghost> {
        match &mut self.records[slot as usize].role {
            Role::Ghost(ghost) => Some(ghost),
            Role::Real(_) | Role::Free => None,
        }
    }

    /// The trajectory of the entity at `slot`, if it has one.
    #[inline]
    pub fn moving(&self, slot: u32) -> Option<&MovingEntity> {
        self.trajectories.get(slot)
    }

    /// The trajectory of the entity at `slot`, if it has one.
    #[inline]
    pub fn trajectory(&self, slot: u32) -> Option<Trajectory> {
        self.trajectories.get(slot).map(|moving| moving.trajectory)
    }

    /// The entity at `slot` has no trajectory any more.
    pub fn drop_trajectory(&mut self, slot: u32) {
        self.trajectories.drop(slot);
    }

    /// Another region decides from now on when the trajectory of the entity at `slot` ends.
    pub fn follow_owner_only(&mut self, slot: u32) {
        self.trajectories.mirrored(slot);
    }

    /// Whether a door has closed in the way of the entity at `slot`.
    pub fn set_cut(&mut self, slot: u32, cut: bool) {
        self.trajectories.cut(slot, cut);
    }

    /// The entity at `slot` has changed in this tick. Viewers are told, unless they foresee it.
    #[inline]
    pub fn set_changed(&mut self, slot: u32, at: TickStamp) {
        let body = &mut self.hot[slot as usize];
        body.changed = at;
        if !self.foreseen {
            (body.shown, body.moved) = (at, at);
        }
        if self.extrapolated {
            self.stirred.push(slot);
        }
    }

    /// The entity at `slot` faces another way; viewers are told that, and go on to extrapolate its movement as
    /// before. False if it faces so already.
    pub fn set_facing(&mut self, slot: u32, facing: Facing, at: TickStamp) -> bool {
        let body = &mut self.hot[slot as usize];
        let turns = body.facing != facing;
        if turns {
            (body.facing, body.changed, body.shown) = (facing, at, at);
        }
        turns
    }

    /// Viewers are told of the entity at `slot`: it has moved as they do not foresee.
    #[inline]
    pub fn set_shown(&mut self, slot: u32, at: TickStamp) {
        let body = &mut self.hot[slot as usize];
        (body.shown, body.moved) = (at, at);
    }

    /// Slots of what has changed since the last call, some of them twice. The vector is for reuse.
    pub fn swap_stirred(&mut self, empty: &mut Vec<u32>) {
        std::mem::swap(&mut self.stirred, empty);
    }

    /// The entity at `slot` has acted in this tick. Gives its id.
    pub fn set_acted(&mut self, slot: u32, at: TickStamp) -> EntityId {
        let body = &mut self.hot[slot as usize];
        body.acted = at;
        body.id
    }

    /// The index of the viewer at `slot` among the region's viewers. Gives the index before.
    #[inline]
    pub fn set_viewer(&mut self, slot: u32, viewer: u32) -> u32 {
        std::mem::replace(&mut self.hot[slot as usize].viewer, viewer)
    }

    /// The entity at `slot` has this epoch from now on.
    pub fn set_epoch(&mut self, slot: u32, epoch: Epoch) {
        self.records[slot as usize].epoch = epoch;
    }

    /// How far the bonds of the entity at `slot` reach.
    pub fn set_reach(&mut self, slot: u32, reach: Option<u64>) {
        self.records[slot as usize].ties.reach = reach;
    }

    /// The index of the players of a plane, by the plane's index.
    pub fn players_of(&self, plane_ix: u32) -> Option<&Grid> {
        self.planes.get(plane_ix as usize)?.grids.first()?.as_ref()
    }

    /// Does something with a real that needs the store, too.
    #[inline]
    pub fn with_real(&mut self, slot: u32, act: impl FnOnce(&EntityStore, &mut Real)) {
        let Role::Real(real) = &mut self.records[slot as usize].role else { return };
        let mut real = std::mem::take(real);
        act(self, &mut real);
        self.records[slot as usize].role = Role::Real(real);
    }

    /// The tick whose fights count.
    #[inline]
    pub fn now(&self) -> Tick {
        self.now
    }

    /// The tick whose fights count from now on.
    pub fn set_now(&mut self, now: Tick) {
        self.now = now;
    }

    /// Renews the stamps of what was done long ago.
    pub fn renew_stamps(&mut self, now: Tick) {
        for body in &mut self.hot {
            let Body { changed, shown, moved, acted, properties, .. } = body;
            let stamps = [changed, shown, moved, acted, properties];
            stamps.into_iter().for_each(|stamp| *stamp = stamp.renewed(now));
        }
        self.records.iter_mut().for_each(|record| record.properties.renew_stamps(now));
    }

    /// Adds an entity whose id is not in use.
    pub fn add(&mut self, new: NewEntity, role: Role) -> u32 {
        let id = new.id;
        let (body, place, record) = new.into_records(role, self.now);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.hot[slot as usize] = body;
                self.places[slot as usize] = place;
                self.records[slot as usize] = record;
                slot
            }
            None => {
                self.hot.push(body);
                self.places.push(place);
                self.spots.push(Spot::NONE);
                self.records.push(record);
                self.trajectories.grow(self.hot.len());
                (self.hot.len() - 1) as u32
            }
        };
        self.by_id.insert(id, slot);
        self.enter_groups(slot);
        self.enter_plane(slot);
        slot
    }

    /// Removes an entity and frees its slot.
    pub fn remove(&mut self, slot: u32) {
        self.leave_plane(slot);
        self.leave_groups(slot);
        self.trajectories.drop(slot);
        self.by_id.remove(&self.hot[slot as usize].id);
        let records = &mut self.records[slot as usize];
        records.role = Role::Free;
        records.properties = Properties::default();
        records.ties = Ties::default();
        // A register that remembers the slot finds no entity there.
        (self.hot[slot as usize].id, self.hot[slot as usize].real) = (EntityId(0), false);
        self.places[slot as usize].plane_ix = NOWHERE;
        self.freed.push(slot);
    }

    /// An entity lives here or elsewhere from now on, under this epoch.
    pub fn set_role(&mut self, slot: u32, role: Role, epoch: Epoch) {
        self.hot[slot as usize].real = matches!(role, Role::Real(_));
        let records = &mut self.records[slot as usize];
        (records.role, records.epoch) = (role, epoch);
    }

    /// Whether an entity may have got another slot since every view was evaluated.
    #[inline]
    pub fn have_moved(&self) -> bool {
        !self.freed.is_empty()
    }

    /// Gives free slots out again from now on: every view was evaluated since.
    pub fn reuse_slots(&mut self) {
        self.free.append(&mut self.freed);
    }

    /// Puts the slots into `order`, of which `new` is the inverse.
    pub fn renumber(&mut self, order: &[u32], new: &Renumbering) {
        self.hot = order.iter().map(|old| self.hot[*old as usize].clone()).collect();
        self.places = order.iter().map(|old| self.places[*old as usize]).collect();
        self.spots = order.iter().map(|old| self.spots[*old as usize]).collect();
        let mut records: Vec<_> = std::mem::take(&mut self.records).into_iter().map(Some).collect();
        self.records = order.iter().filter_map(|old| records[*old as usize].take()).collect();
        let slots = self.free.iter_mut().chain(&mut self.freed).chain(&mut self.stirred);
        slots.for_each(|slot| new.apply(slot));
        self.trajectories.renumber(new);
        self.by_id.values_mut().for_each(|slot| new.apply(slot));
        self.groups.values_mut().for_each(|members| *members = new.applied(members));
        let grids = self.planes.iter_mut().flat_map(|p| p.grids.iter_mut().flatten());
        grids.for_each(|grid| grid.entries_mut().for_each(|e| new.apply(&mut e.slot)));
    }
}
