//! Slots: every entity that a region knows, real or ghost, with its place in the index.
//!
//! Slots are dense with a free list. A slot is reused after its entity is gone and every player of the
//! region has looked around since: registers may keep a slot alone, and find it free at worst. Whoever
//! remembers a slot for longer remembers the entity's id too and compares: ids are never used twice.

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::ahead;
use super::layout::Renumbering;
use super::scan::nearer_than;
use super::tracks::Tracks;
use crate::scene::effects::Bond;
use crate::scene::geo::dist2;
use crate::scene::index::{Grid, Patch, Spot};
use crate::scene::movement::Mover;
use crate::scene::views::{Ties, ViewRules};
use crate::scene::{
    EntityId, Epoch, Kind, Plane, Pos, RangeSet, Rect, RegionId, Scene, Tick, TickStamp,
};

/// No slot.
pub const NO_SLOT: u32 = u32::MAX;

/// Bits of an index entry's tag: the entity's range, and whether it has bonds or fights.
pub const TAG_BONDED: u32 = 1 << 8;

/// What the tick touches of every entity: one cache line, which a test checks.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub struct Body {
    pub id: EntityId,
    pub pos: Pos,
    /// Tick of the last change that viewers are told.
    pub changed: TickStamp,
    /// Tick of its last act.
    pub acted: TickStamp,
    /// Index into the region's viewers, for a player that lives here.
    pub viewer: u32,
    /// Rank that a pair must beat to interest this player; `u64::MAX` while it has room.
    pub thr: u64,
    pub kind: Kind,
    /// Whether it lives here; as its [`Role`] says.
    real: bool,
}

impl Body {
    /// Whether it lives here.
    #[inline]
    pub fn is_real(&self) -> bool {
        self.real
    }
}

/// What others look at of an entity in every tick to see whether it is in range: as small as can be,
/// since sixty of these are looked at for each player.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Position on the ground, as in [`Body::pos`], centimetres.
    pub x: i32,
    pub z: i32,
    /// Patch in the grid of its own kind; equal coordinates in every grid of its layer.
    pub patch: Patch,
    /// Index of its plane; [`NOWHERE`] while the slot is free.
    pub plane_ix: u32,
    pub tag: u32,
}

/// The plane of a free slot.
const NOWHERE: u32 = u32::MAX;

impl Place {
    /// The entity's range.
    #[inline]
    pub fn range(&self) -> RangeSet {
        tag_range(self.tag)
    }

    /// Nobody is here.
    #[inline]
    pub fn is_free(&self) -> bool {
        self.plane_ix == NOWHERE
    }

    /// Squared ground distance to `other`, in square centimetres.
    #[inline]
    pub fn dist2(&self, other: &Place) -> u64 {
        dist2(self.x, self.z, other.x, other.z)
    }
}

/// The range in an index entry's tag.
#[inline]
pub fn tag_range(tag: u32) -> RangeSet {
    RangeSet::from_bits((tag & 7) as u8).unwrap_or(RangeSet::NONE)
}

/// An entity that lives here.
#[derive(Debug, Clone, Default)]
pub struct Real {
    /// Neighbours that mirror it, a bit each.
    pub mirrors: u32,
    /// Neighbours must be told everything of it again.
    pub restate: bool,
    /// The rank as neighbours were told.
    pub thr_told: u64,
    /// It has jumped and goes where another region rules.
    pub bound_for: Option<Bound>,
    /// The account of its movement, where that is judged.
    pub mover: Option<Box<Mover>>,
}

/// Where a jump out of the region goes.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    pub region: RegionId,
    pub plane: Plane,
}

/// An entity that lives in another region. It is shown and negotiated with, never simulated.
#[derive(Debug, Clone)]
pub struct Ghost {
    /// The owner.
    pub owner: RegionId,
    /// Since when nobody mirrors it, though its owner should.
    pub orphan_since: Option<TickStamp>,
}

/// Whose an entity is. Two types and not a flag: a ghost has no handler for what only a real may do.
#[derive(Debug, Clone)]
pub enum Role {
    Real(Real),
    Ghost(Ghost),
    /// The slot is free.
    Free,
}

/// The rest of an entity.
#[derive(Debug, Clone)]
pub struct Cold {
    pub epoch: Epoch,
    pub plane: Plane,
    pub look: Bytes,
    pub ties: Ties,
    pub role: Role,
}

/// The index of one plane: a grid per kind, made when the first of its kind appears.
#[derive(Debug)]
pub struct PlaneIndex {
    pub plane: Plane,
    pub grids: Vec<Option<Grid>>,
    population: u32,
}

/// All entities that a region knows.
#[derive(Debug)]
pub struct Bodies {
    pub hot: Vec<Body>,
    /// Of each slot.
    pub places: Vec<Place>,
    /// Where each slot's entity stands in its grid.
    spots: Vec<Spot>,
    pub cold: Vec<Cold>,
    /// What those do who walk.
    pub tracks: Tracks,
    pub planes: Vec<PlaneIndex>,
    free: Vec<u32>,
    /// Free, but somebody may still remember who was there.
    freed: Vec<u32>,
    by_id: FxHashMap<EntityId, u32>,
    by_plane: FxHashMap<Plane, u32>,
    free_planes: Vec<u32>,
    /// Members of each group, by its bond.
    groups: FxHashMap<Bond, Vec<u32>>,
    /// The tick whose fights count.
    pub now: Tick,
    ground: Rect,
    /// Patch side of each kind.
    kind_patch_cm: Vec<i32>,
}

impl Bodies {
    /// Nobody yet, on the ground of a region and the band around it.
    pub fn new(scene: &Scene, rect: Rect) -> Bodies {
        let ground = with_band(scene, rect);
        let layers = &scene.spec.layers;
        Bodies {
            hot: Vec::new(),
            places: Vec::new(),
            spots: Vec::new(),
            cold: Vec::new(),
            tracks: Tracks::default(),
            planes: Vec::new(),
            free: Vec::new(),
            freed: Vec::new(),
            by_id: FxHashMap::default(),
            by_plane: FxHashMap::default(),
            free_planes: Vec::new(),
            groups: FxHashMap::default(),
            now: Tick(0),
            ground,
            kind_patch_cm: scene.spec.kinds.iter().map(|k| layers[k.layer].patch_cm).collect(),
        }
    }

    /// The slot of an entity, if it is known here.
    #[inline]
    pub fn slot(&self, id: EntityId) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    /// Asks for what is needed to move an entity.
    pub fn fetch(&self, id: Option<EntityId>) {
        let Some(slot) = id.and_then(|id| self.slot(id)) else { return };
        let at = slot as usize..slot as usize + 1;
        ahead::fetch(&self.hot[at.clone()]);
        ahead::fetch(&self.places[at.clone()]);
        ahead::fetch(&self.spots[at.clone()]);
        ahead::fetch(&self.cold[at]);
    }

    /// How many entities are known here.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether a kind is one of the scene's.
    pub fn has_kind(&self, kind: Kind) -> bool {
        usize::from(kind.0) < self.kind_patch_cm.len()
    }

    /// Slots in use.
    pub fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.hot.len() as u32).filter(|s| !matches!(self.cold[*s as usize].role, Role::Free))
    }

    /// The real at `slot`, if one lives there.
    pub fn real_mut(&mut self, slot: u32) -> Option<&mut Real> {
        match &mut self.cold[slot as usize].role {
            Role::Real(real) => Some(real),
            _ => None,
        }
    }

    /// Adds an entity whose id is not in use. Its plane and kind are legal.
    #[allow(clippy::too_many_arguments)]
    pub fn add(
        &mut self,
        id: EntityId,
        kind: Kind,
        plane: Plane,
        pos: Pos,
        range: RangeSet,
        look: Bytes,
        ties: Ties,
        epoch: Epoch,
        role: Role,
    ) -> u32 {
        let (viewer, real) = (u32::MAX, matches!(role, Role::Real(_)));
        // Whoever adds it says whether viewers are told: until then nothing is new.
        let before = TickStamp::of(Tick(self.now.0.wrapping_sub(1)));
        let (changed, acted) = (before, before);
        let body = Body { id, pos, changed, acted, viewer, thr: u64::MAX, kind, real };
        let tag = tag_of(range, &ties);
        let patch = Patch { x: 0, z: 0 };
        let place = Place { x: pos.x, z: pos.z, patch, plane_ix: NOWHERE, tag };
        let cold = Cold { epoch, plane, look, ties, role };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.hot[slot as usize] = body;
                self.places[slot as usize] = place;
                self.cold[slot as usize] = cold;
                slot
            }
            None => {
                self.hot.push(body);
                self.places.push(place);
                self.spots.push(Spot::NONE);
                self.cold.push(cold);
                self.tracks.grow(self.hot.len());
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
        self.tracks.drop(slot);
        self.by_id.remove(&self.hot[slot as usize].id);
        let cold = &mut self.cold[slot as usize];
        cold.role = Role::Free;
        cold.look = Bytes::new();
        cold.ties = Ties::default();
        // Whoever remembers the slot finds nobody there.
        (self.hot[slot as usize].id, self.hot[slot as usize].real) = (EntityId(0), false);
        self.places[slot as usize].plane_ix = NOWHERE;
        self.freed.push(slot);
    }

    /// An entity lives here or elsewhere from now on, under this epoch.
    pub fn set_role(&mut self, slot: u32, role: Role, epoch: Epoch) {
        self.hot[slot as usize].real = matches!(role, Role::Real(_));
        let cold = &mut self.cold[slot as usize];
        (cold.role, cold.epoch) = (role, epoch);
    }

    /// Whether somebody may have got another slot since every player has looked around.
    #[inline]
    pub fn have_moved(&self) -> bool {
        !self.freed.is_empty()
    }

    /// Gives free slots out again from now on: every player has looked around since.
    pub fn reuse_slots(&mut self) {
        self.free.append(&mut self.freed);
    }

    /// Puts an entity elsewhere on its plane.
    #[inline]
    pub fn set_pos(&mut self, slot: u32, pos: Pos) {
        let body = &mut self.hot[slot as usize];
        body.pos = pos;
        let place = &mut self.places[slot as usize];
        (place.x, place.z) = (pos.x, pos.z);
        let grids = &mut self.planes[place.plane_ix as usize].grids;
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
    pub fn set_thr(&mut self, rules: &ViewRules, slot: u32, thr: u64) {
        let body = &mut self.hot[slot as usize];
        if body.thr == thr {
            return;
        }
        body.thr = thr;
        let plane_ix = self.places[slot as usize].plane_ix;
        let grids = &mut self.planes[plane_ix as usize].grids;
        if let Some(grid) = grids[usize::from(body.kind.0)].as_mut().filter(|g| g.has_crowds()) {
            grid.set_bar(self.spots[slot as usize], slot, body.pos, nearer_than(rules, thr));
        }
    }

    /// Whether anywhere players are crowded, as of the last tick.
    pub fn has_crowds(&self) -> bool {
        let grids = self.planes.iter().filter_map(|p| p.grids.get(usize::from(Kind::PLAYER.0)));
        grids.flatten().any(Grid::is_crowded)
    }

    /// Sees to the crowds among which the player at `slot` is, if they have changed.
    #[inline]
    pub fn see_to_crowds(&mut self, rules: &ViewRules, slot: u32) {
        let Bodies { hot, places, planes, .. } = self;
        let grids = &mut planes[places[slot as usize].plane_ix as usize].grids;
        if let Some(grid) = &mut grids[usize::from(Kind::PLAYER.0)] {
            grid.see_to_crowds(|slot| nearer_than(rules, hot[slot as usize].thr));
        }
    }

    /// Puts an entity on another plane.
    pub fn set_plane(&mut self, slot: u32, plane: Plane) {
        if self.cold[slot as usize].plane != plane {
            self.leave_plane(slot);
            self.cold[slot as usize].plane = plane;
            self.enter_plane(slot);
        }
    }

    /// Sets an entity's range and what makes it special to others.
    pub fn set_traits(&mut self, slot: u32, range: RangeSet, ties: Ties) {
        self.leave_groups(slot);
        self.places[slot as usize].tag = tag_of(range, &ties);
        self.cold[slot as usize].ties = ties;
        self.enter_groups(slot);
        let pos = self.hot[slot as usize].pos;
        self.set_pos(slot, pos);
    }

    /// Everybody stays, on the ground of a region that has become another.
    pub fn set_ground(&mut self, scene: &Scene, rect: Rect) {
        self.ground = with_band(scene, rect);
        self.planes.iter_mut().flat_map(|p| &mut p.grids).for_each(|grid| *grid = None);
        for slot in 0..self.hot.len() {
            let (body, place) = (&self.hot[slot], &mut self.places[slot]);
            if place.is_free() {
                continue;
            }
            let kind = usize::from(body.kind.0);
            let grid = &mut self.planes[place.plane_ix as usize].grids[kind];
            let patch_cm = self.kind_patch_cm[kind];
            let grid = grid.get_or_insert_with(|| Grid::new(self.ground, patch_cm));
            place.patch = grid.patch_of(body.pos);
            self.spots[slot] = grid.insert(slot as u32, place.tag, body.pos);
        }
    }

    /// Changes what makes an entity special to others.
    pub fn change_ties(&mut self, slot: u32, change: impl FnOnce(&mut Ties)) {
        let range = self.places[slot as usize].range();
        let mut ties = self.cold[slot as usize].ties.clone();
        change(&mut ties);
        self.set_traits(slot, range, ties);
    }

    /// The class of a pair, `dist_cm` apart, which both have [`TAG_BONDED`]: the strongest bond that
    /// they share, 255 when none or when either has enough companions who go before.
    pub fn bond_class(&self, rules: &ViewRules, a: u32, b: u32, dist_cm: u32) -> u8 {
        rules.class(self.ties_of(a), self.ties_of(b), dist_cm, self.now)
    }

    /// The strongest bond that two share, however many companions they have.
    pub fn any_class(&self, rules: &ViewRules, a: u32, b: u32) -> u8 {
        rules.any_class(self.ties_of(a), self.ties_of(b), self.now)
    }

    fn ties_of(&self, slot: u32) -> (EntityId, &Ties) {
        (self.hot[slot as usize].id, &self.cold[slot as usize].ties)
    }

    /// Puts into `found` the slots of all who may share a bond with who is at `slot`, each once,
    /// whatever their planes and places.
    pub fn companions(&self, slot: u32, found: &mut Vec<u32>) {
        found.clear();
        let ties = &self.cold[slot as usize].ties;
        found.extend(ties.bonds.iter().filter_map(|bond| self.groups.get(bond)).flatten());
        found.extend(ties.fights.iter().filter_map(|fight| self.slot(fight.with)));
        found.sort_unstable();
        found.dedup();
        found.retain(|other| *other != slot);
    }

    /// Puts the slots into `order`, of which `new` is the inverse.
    pub fn renumber(&mut self, order: &[u32], new: &Renumbering) {
        self.hot = order.iter().map(|old| self.hot[*old as usize].clone()).collect();
        self.places = order.iter().map(|old| self.places[*old as usize]).collect();
        self.spots = order.iter().map(|old| self.spots[*old as usize]).collect();
        let mut cold: Vec<_> = std::mem::take(&mut self.cold).into_iter().map(Some).collect();
        self.cold = order.iter().filter_map(|old| cold[*old as usize].take()).collect();
        self.free.iter_mut().chain(&mut self.freed).for_each(|slot| new.apply(slot));
        self.tracks.renumber(new);
        self.by_id.values_mut().for_each(|slot| new.apply(slot));
        self.groups.values_mut().flatten().for_each(|slot| new.apply(slot));
        let grids = self.planes.iter_mut().flat_map(|p| p.grids.iter_mut().flatten());
        grids.for_each(|grid| grid.entries_mut().for_each(|e| new.apply(&mut e.slot)));
    }

    fn enter_groups(&mut self, slot: u32) {
        for bond in &self.cold[slot as usize].ties.bonds {
            self.groups.entry(*bond).or_default().push(slot);
        }
    }

    fn leave_groups(&mut self, slot: u32) {
        for bond in &self.cold[slot as usize].ties.bonds {
            let Some(members) = self.groups.get_mut(bond) else { continue };
            if let Some(at) = members.iter().position(|m| *m == slot) {
                members.swap_remove(at);
            }
            if members.is_empty() {
                self.groups.remove(bond);
            }
        }
    }

    fn enter_plane(&mut self, slot: u32) {
        let plane = self.cold[slot as usize].plane;
        let plane_ix = self.plane_ix(plane);
        let (body, place) = (&self.hot[slot as usize], &mut self.places[slot as usize]);
        place.plane_ix = plane_ix;
        let kind = usize::from(body.kind.0);
        let index = &mut self.planes[plane_ix as usize];
        index.population += 1;
        let patch_cm = self.kind_patch_cm[kind];
        let grid = index.grids[kind].get_or_insert_with(|| Grid::new(self.ground, patch_cm));
        place.patch = grid.patch_of(body.pos);
        self.spots[slot as usize] = grid.insert(slot, place.tag, body.pos);
    }

    fn leave_plane(&mut self, slot: u32) {
        let kind = usize::from(self.hot[slot as usize].kind.0);
        let plane_ix = self.places[slot as usize].plane_ix;
        let spot = std::mem::replace(&mut self.spots[slot as usize], Spot::NONE);
        let index = &mut self.planes[plane_ix as usize];
        let displaced = index.grids[kind].as_mut().and_then(|g| g.remove(spot));
        index.population -= 1;
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
        let grids = vec![None; self.kind_patch_cm.len()];
        let index = PlaneIndex { plane, grids, population: 0 };
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

    /// The index of a plane, if anybody is on it.
    pub fn plane(&self, plane: Plane) -> Option<&PlaneIndex> {
        self.by_plane.get(&plane).map(|ix| &self.planes[*ix as usize])
    }
}

/// What a region looks at: its ground and the band around it, on the map.
fn with_band(scene: &Scene, rect: Rect) -> Rect {
    let grown = rect.grown(scene.bonded_band_cm);
    let b = scene.map.bounds;
    Rect {
        x0: grown.x0.max(b.x0),
        z0: grown.z0.max(b.z0),
        x1: grown.x1.min(b.x1),
        z1: grown.z1.min(b.z1),
    }
}

fn tag_of(range: RangeSet, ties: &Ties) -> u32 {
    u32::from(range.bits()) | if ties.is_empty() { 0 } else { TAG_BONDED }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever names a plane makes an index for it; when the last one has gone it takes nothing.
    #[test]
    fn planes_that_nobody_is_on_take_no_index() {
        let spec = crate::scene::SceneSpec::default();
        let scene = Scene::new(crate::scene::SceneId(0), spec, 100, RegionId(0)).unwrap();
        let mut bodies = Bodies::new(&scene, scene.map.regions[0].rect);
        let add = |bodies: &mut Bodies, id: u64, plane: i32| {
            let (pos, look, role) = (Pos::ground(9, 9), Bytes::new(), Role::Real(Real::default()));
            let (kind, plane, range) = (Kind(0), Plane(plane), RangeSet::FULL);
            let (id, ties) = (EntityId(id), Ties::default());
            bodies.add(id, kind, plane, pos, range, look, ties, Epoch(1), role)
        };
        let slot = add(&mut bodies, 1, 0);
        for plane in [7, -5, i32::MAX].into_iter().chain(100..1_100) {
            bodies.set_plane(slot, Plane(plane));
            let other = add(&mut bodies, 2, 50);
            bodies.remove(other);
            bodies.reuse_slots();
            let indices = bodies.planes.iter().map(|plane| plane.grids.iter().flatten().count());
            assert_eq!(indices.sum::<usize>(), 1);
            assert!(bodies.planes.len() <= 3, "{}", bodies.planes.len());
        }
    }

    #[test]
    fn a_body_is_one_cache_line() {
        assert_eq!(size_of::<Body>(), 64);
    }
}
