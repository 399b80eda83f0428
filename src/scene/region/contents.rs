//! What the scene contains, on the region's ground: it comes to be as planes open, comes back after it was removed,
//! and goes when a plane is reset.
//!
//! A plane opens in a region with the first other entity that is known there, ghosts too. What a plane contains on a ground
//! comes to be once: regions remember the *grounds* on which it has, and hand them on with the ground. From then on
//! each content is an entity like any other: custody alone decides where it lives.
//!
//! ```text
//!              plane opens              despawned, comes back
//!   not yet --------------> lives -----------------------------> asleep, on its way home or there
//!                            ^  |                                   |
//!                            |  | despawned, stays away             | its tick
//!                            |  '--> gone                           |
//!                            '--------------------------------------'
//! ```
//!
//! A content that is *asleep* is in limbo: nobody sees it, and commands do not find it. So its epoch goes on where it
//! ended. Checkpoints leave out what stands on its own region's ground and is not to be saved: a region that recovers
//! makes it anew, except what was away.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use super::Region;
use super::custody::ESCROW_TICKS;
use super::entities::Bound;
use super::identity::Identity;
use crate::scene::contents::{OpenPlane, SavedContents};
use crate::scene::messages::{Claim, Effect, EnterCause, Handoff, LeaveCause, Spawn};
use crate::scene::mutants::{self, Mutant};
use crate::scene::region::snapshot::RegionSnapshot;
use crate::scene::terrain::DoorOrder;
use crate::scene::views::Ties;
use crate::scene::{EntityId, Epoch, Plane, Pos, RegionId, Scene, Tick, TickStamp};

/// Epochs between the births of a content in two openings of its plane: more than it has handoffs while regions
/// remember it.
const OPENING: u64 = 1 << 10;

/// Most openings of a plane whose births differ.
const OPENINGS: u32 = 1 << 9;

/// For how long a region remembers that a plane was reset: longer than others remember what lived there.
const REMEMBERED_TICKS: u64 = 4 * ESCROW_TICKS;

/// Most resets that wait for their ticks.
const MAX_WAITING: usize = 65_536;

/// What the region knows of the scene's contents.
#[derive(Debug, Default)]
pub struct RegionContents {
    planes: BTreeMap<Plane, OpenPlane>,
    /// Contents that come back, and when; some of them may have moved on.
    asleep: BTreeSet<(Tick, EntityId)>,
    /// Contents of the region's ground that live elsewhere, in planes that are not open here.
    elsewhere: FxHashSet<EntityId>,
    /// Resets that are not due.
    resets: Vec<DoorOrder>,
}

impl RegionContents {
    /// What is known of these by the list of the scene. With another list all begins anew.
    pub fn merge(&mut self, scene: &Scene, saved: SavedContents) {
        if saved.print != scene.contents().print() {
            return;
        }
        for (plane, saved) in saved.planes {
            let known = self.planes.entry(plane).or_default();
            if known.reset.0 < saved.reset.0 {
                *known = saved;
            } else if known.reset.0 == saved.reset.0 {
                known.grounds.extend(saved.grounds);
                known.resets = known.resets.max(saved.resets);
            }
        }
        self.elsewhere.extend(saved.away);
        // Two processes may order resets in the same microsecond, under one version.
        let name = |order: &DoorOrder| (order.plane, order.version);
        let is_new = |order: &DoorOrder| !self.resets.iter().any(|o| name(o) == name(order));
        let new: Vec<_> = saved.orders.into_iter().filter(is_new).collect();
        self.resets.extend(new);
    }

    /// What is known, of which these live elsewhere; `None`: the scene contains nothing.
    fn save(&self, of: &Identity, mut away: Vec<EntityId>) -> Option<Box<SavedContents>> {
        away.sort_unstable();
        let planes = self.planes.iter().map(|(plane, open)| (*plane, open.clone())).collect();
        let (print, orders) = (of.scene().contents().print(), self.resets.clone());
        let saved = SavedContents { print, ground: Some(of.rect()), planes, away, orders };
        (!of.scene().contents().is_empty()).then(|| Box::new(saved))
    }

    /// Whether what the plane contains at a place has come to be.
    fn has_come(&self, plane: Plane, at: Pos) -> bool {
        let grounds = self.planes.get(&plane).into_iter().flat_map(|open| &open.grounds);
        grounds.into_iter().any(|ground| ground.contains(at))
    }

    /// A content comes back at this tick.
    pub fn note_asleep(&mut self, id: EntityId, until: Option<Tick>) {
        self.asleep.extend(until.map(|until| (until, id)));
    }

    /// Forgets planes that were reset long ago and have not opened since.
    fn forget_closed(&mut self, now: Tick) {
        let is_late = |at: Tick| now.0 < at.0.saturating_add(REMEMBERED_TICKS);
        self.planes.retain(|_, open| !open.grounds.is_empty() || is_late(open.reset.1));
    }

    /// Takes an order to reset a plane; it waits for its tick. False when too many wait.
    pub fn order(&mut self, order: DoorOrder) -> bool {
        let room = self.resets.len() < MAX_WAITING;
        self.resets.extend(room.then_some(order));
        room
    }
}

/// The first epoch of a content in an opening of its plane.
fn birth(lineage: Epoch, resets: u32) -> Epoch {
    Epoch(lineage.of_birth().0 + OPENING * u64::from(resets % OPENINGS))
}

impl Region {
    /// The id of the content of this name in a plane, whether or not it lives now, and wherever.
    pub fn content_named(&self, plane: Plane, name: &str) -> Option<EntityId> {
        self.identity.scene().contents().named(plane, name)
    }

    /// The name of the content with this id; `None`: it is none of the scene's.
    pub fn content_name(&self, id: EntityId) -> Option<&str> {
        self.identity.scene().contents().get(id).map(|(content, _)| &*content.name)
    }

    /// Until when the entity at `slot` is away, if it is a content that comes back.
    #[inline]
    pub(super) fn asleep_until(&self, slot: u32) -> Option<Tick> {
        // Most entities are none: their records are not read.
        self.entities.body(slot).id.content()?;
        self.entities.real(slot)?.asleep_until
    }

    /// Contents come back whose time is over, and come to be in planes that open.
    pub(super) fn keep_contents(&mut self) {
        if self.identity.scene().contents().is_empty() || self.is_given_up() {
            return;
        }
        self.wake_contents();
        if self.have_all_answered() {
            self.open_planes();
        }
    }

    fn open_planes(&mut self) {
        let (contents, rect) = (&self.contents.planes, self.identity.rect());
        let is_open = |plane: &Plane| contents.get(plane).is_some_and(|p| p.grounds == [rect]);
        let planes = self.entities.visited_planes();
        let corner = Pos::ground(rect.x0, rect.z0);
        let is_own = |plane: Plane| self.identity.owner_of(plane, corner) == self.identity.id();
        let is_opening =
            |plane: &Plane| *plane != Plane::LIMBO && !is_open(plane) && is_own(*plane);
        let mut opening: Vec<Plane> = planes.filter(is_opening).collect();
        opening.sort_unstable();
        for plane in opening {
            let (lineage, open) = (self.identity.lineage(), self.contents.planes.get(&plane));
            let epoch = birth(lineage, open.map_or(0, |open| open.resets));
            for spawn in self.contents_of(plane, |region, id, at| {
                rect.contains(at)
                    && !region.contents.has_come(plane, at)
                    && !region.contents.elsewhere.contains(&id)
            }) {
                if self.custody.is_incoming(spawn.id) || self.entities.real_slot(spawn.id).is_some()
                {
                    continue;
                }
                // A ghost is of an earlier opening, or of an owner that has not said so.
                if let Some(ghost) = self.entities.slot(spawn.id) {
                    self.entities.remove(ghost);
                }
                self.place_content(&spawn, epoch, EnterCause::Spawned);
            }
            self.contents.planes.entry(plane).or_default().grounds = vec![rect];
        }
    }

    /// What a plane contains, of which these are wanted.
    fn contents_of(
        &self,
        plane: Plane,
        wanted: impl Fn(&Region, EntityId, Pos) -> bool,
    ) -> Vec<Spawn> {
        let all = self.identity.scene().contents().of(plane);
        let wanted = all.filter(|(id, content)| wanted(self, *id, content.pos));
        wanted.filter_map(|(id, _)| self.first_state(id)).collect()
    }

    /// A content as it begins; `None`: the scene has no content with this id.
    fn first_state(&self, id: EntityId) -> Option<Spawn> {
        let (content, plane) = self.identity.scene().contents().get(id)?;
        Some(Spawn {
            plane,
            facing: content.facing,
            properties: content.begins_with(),
            ..Spawn::new(id, content.kind, content.pos)
        })
    }

    fn place_content(&mut self, spawn: &Spawn, epoch: Epoch, cause: EnterCause) -> u32 {
        let slot = self.place_real(spawn, Ties::default(), epoch);
        self.entities.set_changed(slot, TickStamp::of(self.clock.tick()));
        self.logic.entered(spawn.id, cause);
        slot
    }

    fn wake_contents(&mut self) {
        let now = self.clock.tick();
        while let Some(due) = self.contents.asleep.first().copied().filter(|(at, _)| *at <= now) {
            self.contents.asleep.remove(&due);
            let (at, id) = due;
            let slot = self.entities.real_slot(id);
            let Some(slot) = slot.filter(|slot| self.asleep_until(*slot) == Some(at)) else {
                continue;
            };
            let Some(spawn) = self.first_state(id) else { continue };
            let epoch = self.entities.record(slot).epoch.next();
            let watch = self.entities.real_mut(slot).and_then(|real| real.watch.take());
            self.drop_real(slot);
            let slot = self.place_content(&spawn, epoch, EnterCause::Spawned);
            if let (Some(watch), Some(real)) = (watch, self.entities.real_mut(slot)) {
                real.watch.get_or_insert_default().taken = watch.taken;
            }
        }
    }

    /// Logic removes the entity at `slot`: a content that comes back sleeps until then, on the ground of its home.
    pub(super) fn despawn(&mut self, slot: u32, fx: &mut Vec<Effect>) {
        let id = self.entities.body(slot).id;
        let back = self.identity.scene().contents().get(id);
        let Some((ms, pos, plane)) =
            back.and_then(|(c, plane)| Some((c.respawn_ms?, c.pos, plane)))
        else {
            return self.remove_real(slot, LeaveCause::Despawned, fx);
        };
        self.border.sign_off(slot, None, &mut self.entities);
        self.note_left(slot, LeaveCause::Despawned);
        let (now, tick_ms) = (self.clock.tick(), self.identity.scene().tick_ms);
        let until = Tick(now.0.saturating_add(u64::from(ms.div_ceil(tick_ms))));
        let owner = self.identity.owner_of(plane, pos);
        self.entities.drop_trajectory(slot);
        self.entities.set_plane(slot, Plane::LIMBO);
        self.entities.set_pos(slot, pos);
        self.views.positions_change();
        if let Some(real) = self.entities.real_mut(slot) {
            real.mover = None;
            real.asleep_until = Some(until);
            let home = Bound { region: owner, plane: Plane::LIMBO };
            real.bound_for = (owner != self.identity.id()).then_some(home);
        }
        self.contents.note_asleep(id, Some(until));
    }

    /// A content has come that is asleep.
    pub(super) fn fall_asleep_again(&mut self, slot: u32, until: Option<Tick>) {
        self.contents.note_asleep(self.entities.body(slot).id, until);
        if let Some(real) = self.entities.real_mut(slot) {
            real.asleep_until = until;
        }
    }

    /// The plane by which the region of the entity at `slot` is found.
    pub(super) fn home_plane(&self, slot: u32) -> Plane {
        let asleep = self.asleep_until(slot).is_some();
        let home = self.entities.body(slot).id.content().filter(|_| asleep);
        home.map_or(self.entities.record(slot).plane, |(_, plane)| plane)
    }

    /// Begins a tick: planes are reset whose time it is.
    pub(super) fn reset_planes(&mut self, fx: &mut Vec<Effect>) {
        let now = self.clock.tick();
        if now.0.is_multiple_of(ESCROW_TICKS) {
            self.contents.forget_closed(now);
        }
        let due: Vec<_> = self.contents.resets.extract_if(.., |order| order.at <= now).collect();
        for order in due {
            let open = self.contents.planes.entry(order.plane).or_default();
            if order.version <= open.reset.0 {
                continue;
            }
            open.grounds.clear();
            (open.resets, open.reset) = (open.resets.wrapping_add(1), (order.version, order.at));
            self.contents.elsewhere.retain(|id| !is_of(*id, order.plane));
            let slots = self.entities.slots().filter(|slot| self.entities.is_real(*slot));
            let of_plane = |slot: &u32| is_of(self.entities.body(*slot).id, order.plane);
            for slot in slots.filter(of_plane).collect::<Vec<_>>() {
                match self.asleep_until(slot) {
                    Some(_) => self.drop_real(slot),
                    None => self.remove_real(slot, LeaveCause::Despawned, fx),
                }
            }
        }
    }

    /// Whether a handed-over entity is a content of a plane that was reset since.
    pub(super) fn was_reset(&self, handoff: &Handoff) -> bool {
        let Some((_, plane)) = handoff.state.id.content() else { return false };
        let reset = self.contents.planes.get(&plane).map(|open| open.reset);
        reset.is_some_and(|(version, at)| version > 0 && handoff.tick < at)
    }

    /// Whether a checkpoint leaves the entity at `slot` out.
    pub(super) fn is_left_out(&self, slot: u32) -> bool {
        let id = self.entities.body(slot).id;
        let Some((content, plane)) = self.identity.scene().contents().get(id) else { return false };
        !content.save
            && self.identity.owner_of(plane, content.pos) == self.identity.id()
            && self.contents.has_come(plane, content.pos)
    }

    /// What a snapshot has of contents beside the entities; a checkpoint names those that have come to be and are not
    /// here.
    pub(super) fn save_contents(&self, whole: bool) -> Option<Box<SavedContents>> {
        let away = match whole {
            true => self.contents.elsewhere.iter().copied().collect(),
            false => self.away(),
        };
        self.contents.save(&self.identity, away)
    }

    fn away(&self) -> Vec<EntityId> {
        let contents = self.identity.scene().contents();
        let here = |plane, at| self.identity.owner_of(plane, at) == self.identity.id();
        let of = |plane: &Plane| {
            let plane = *plane;
            let come = move |at: Pos| here(plane, at) && self.contents.has_come(plane, at);
            contents.of(plane).filter(move |(_, content)| come(content.pos))
        };
        let all = self.contents.planes.keys().flat_map(of).map(|(id, _)| id);
        all.filter(|id| self.entities.real_slot(*id).is_none()).collect()
    }

    /// The contents that a checkpoint has left out, as they begin, also those of ground that is another region's since.
    /// Others may know better, as of all that lived here.
    pub(super) fn make_left_out(&mut self, snapshot: &RegionSnapshot) {
        let Some(saved) = snapshot.contents.as_deref() else { return };
        if mutants::has(Mutant::ContentsForgotten) {
            return;
        }
        let known = snapshot.entities().map(|entity| entity.id);
        let known: FxHashSet<EntityId> = known.chain(saved.away.iter().copied()).collect();
        self.contents.elsewhere.clear();
        for (plane, open) in &saved.planes {
            let left_out = |_: &Region, id, at| {
                let was_here = saved.ground.is_some_and(|ground| ground.contains(at));
                was_here && open.grounds.iter().any(|g| g.contains(at)) && !known.contains(&id)
            };
            for spawn in self.contents_of(*plane, left_out) {
                let epoch = birth(snapshot.lineage, open.resets);
                self.place_content(&spawn, epoch, EnterCause::Recovered);
            }
        }
    }

    /// Contents that live here and belong to another region's ground, which does not name them among these, in order.
    pub(super) fn contents_of_others(
        &self,
        owner: RegionId,
        named: &[(EntityId, Epoch)],
    ) -> Vec<Claim> {
        let contents = self.identity.scene().contents();
        let is_named = |id: EntityId| named.binary_search_by_key(&id, |(id, _)| *id).is_ok();
        let is_of = |id: EntityId| {
            let home = contents.get(id).map(|(content, plane)| (plane, content.pos));
            home.is_some_and(|(plane, at)| self.identity.owner_of(plane, at) == owner)
        };
        let here = self.entities.slots().filter(|slot| self.entities.is_real(*slot));
        let ids = here.map(|slot| self.entities.body(slot).id);
        ids.filter(|id| is_of(*id) && !is_named(*id)).filter_map(|id| self.claim(id)).collect()
    }

    /// Another region says where an entity lives.
    pub(super) fn note_content_elsewhere(&mut self, claim: &Claim) {
        let is_own = self.identity.scene().contents().get(claim.id).is_some();
        if is_own && claim.region != self.identity.id() {
            self.contents.elsewhere.insert(claim.id);
        }
    }
}

fn is_of(id: EntityId, plane: Plane) -> bool {
    id.content().is_some_and(|(_, of)| of == plane)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Rect;

    #[test]
    fn a_plane_that_was_reset_is_forgotten_once_nobody_remembers_what_lived_there() {
        let reset = (7, Tick(1_000));
        let closed = OpenPlane { reset, ..OpenPlane::default() };
        let grounds = vec![Rect { x0: 0, z0: 0, x1: 100, z1: 100 }];
        let open = OpenPlane { grounds, ..closed.clone() };
        let planes = BTreeMap::from([(Plane(1), closed), (Plane(2), open)]);
        let mut contents = RegionContents { planes, ..RegionContents::default() };
        let left = |contents: &RegionContents| contents.planes.keys().copied().collect::<Vec<_>>();
        contents.forget_closed(Tick(999 + REMEMBERED_TICKS));
        assert_eq!(left(&contents), [Plane(1), Plane(2)]);
        contents.forget_closed(Tick(1_000 + REMEMBERED_TICKS));
        assert_eq!(left(&contents), [Plane(2)]);
    }
}
