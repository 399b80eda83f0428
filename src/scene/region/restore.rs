//! A region goes on from a snapshot.
//!
//! *Relocation*: [`Region::freeze`], the snapshot travels, [`Region::restore`]. Nothing is lost on the way,
//! so nobody has to begin anew: ghosts, registers, what waits and what each client was told come along,
//! and neighbours go on with the next batch. Only the region's epoch is higher, and that of each player,
//! so that its session sends again what was not applied.

use std::sync::Arc;

use super::Region;
use super::bodies::{Bound, Ghost, Role};
use super::escrow::Escrow;
use super::snapshot::{RegionSnapshot, SavedGhost, SavedReal};
use crate::scene::border::Handoff;
use crate::scene::effects::{Effect, MAX_BONDS};
use crate::scene::terrain::{DoorError, Ground};
use crate::scene::{EntityId, Epoch, Kind, Plane, RegionId, Scene, SceneId, TickStamp};

/// Why a region cannot go on from a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// It is of another scene.
    #[error("the snapshot is of scene {found}, not of {wanted}")]
    WrongScene {
        /// The snapshot's.
        found: SceneId,
        /// The one that it was to be for.
        wanted: SceneId,
    },
    /// It is of another region.
    #[error("the snapshot is of region {found}, not of {wanted}")]
    WrongRegion {
        /// The snapshot's.
        found: RegionId,
        /// The one that it was to be for.
        wanted: RegionId,
    },
    /// The scene has no such region.
    #[error("the scene has no region {0}")]
    NoSuchRegion(RegionId),
    /// Whoever goes on needs a higher epoch.
    #[error("region epoch {given} is not above the snapshot's {found}")]
    OldEpoch {
        /// The epoch to go on under.
        given: Epoch,
        /// The snapshot's.
        found: Epoch,
    },
    /// It is a checkpoint: only a recovery makes a region of it.
    #[error("the snapshot is a checkpoint, from which a region recovers but does not just go on")]
    NotWhole,
    /// An entity that cannot be.
    #[error("entity {id}: {what}")]
    Illegal {
        /// Which.
        id: EntityId,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Its doors are not the map's.
    #[error(transparent)]
    Doors(#[from] DoorError),
}

impl Region {
    /// The region `id` goes on from where it was frozen, under a higher epoch. `fx` is what it has to say
    /// at once: to each session that it lives here.
    ///
    /// Everything that the frozen one has said must have arrived, in order, before this one says anything;
    /// what comes for the region meanwhile waits, in order, for this one.
    ///
    /// # Errors
    /// The snapshot does not fit.
    pub fn restore(
        scene: Arc<Scene>,
        id: RegionId,
        epoch: Epoch,
        snapshot: RegionSnapshot,
        fx: &mut Vec<Effect>,
    ) -> Result<Region, RestoreError> {
        if !snapshot.whole {
            return Err(RestoreError::NotWhole);
        }
        let mut region = Region::begin(scene, id, epoch, &snapshot)?;
        region.lineage = snapshot.lineage;
        region.expect(snapshot.dormant, snapshot.tick);
        for saved in &snapshot.reals {
            let mirrors = region.outbound.mirrors(&snapshot.outbound, saved.mirrors);
            region.restore_real(saved, mirrors);
        }
        region.outbound.restore(snapshot.outbound);
        for saved in snapshot.ghosts {
            region.restore_ghost(saved);
        }
        region.restore_viewers(&snapshot.reals);
        region.expect_all_ends();
        region.moved = snapshot.moved.into_iter().collect();
        region.inbox = snapshot.inbox;
        region.arrivals = snapshot.arrivals;
        region.incoming = snapshot.incoming;
        let since = (snapshot.swept, snapshot.crashed);
        region.inbound.restore(snapshot.inbound, since, &region.fences);
        fx.extend(snapshot.mail.unsent.iter().map(|(to, msg)| Effect::View(*to, *msg)));
        region.mail.restore(snapshot.mail);
        region.counts.ghosts = region.bodies.len() as u64 - region.counts.reals;
        for ix in 0..region.viewers.len() {
            region.notice_route(region.viewers[ix].slot, false, fx);
        }
        Ok(region)
    }

    /// The region, empty, at the snapshot's tick; the snapshot fits it.
    pub(super) fn begin(
        scene: Arc<Scene>,
        id: RegionId,
        epoch: Epoch,
        snapshot: &RegionSnapshot,
    ) -> Result<Region, RestoreError> {
        let (found, wanted) = (snapshot.scene, scene.id);
        if found != wanted {
            return Err(RestoreError::WrongScene { found, wanted });
        }
        let (found, wanted) = (snapshot.region, id);
        if found != wanted {
            return Err(RestoreError::WrongRegion { found, wanted });
        }
        if epoch <= snapshot.epoch {
            return Err(RestoreError::OldEpoch { given: epoch, found: snapshot.epoch });
        }
        let ground = match (&scene.terrain, &snapshot.doors) {
            (Some(terrain), Some(doors)) => Some(Ground::restore(terrain.clone(), doors)?),
            (Some(terrain), None) => Some(Ground::new(terrain.clone())),
            (None, _) => None,
        };
        let gone = Region::given_up(&scene, id);
        let region = Region::new(scene, id).or(gone);
        let mut region = region.ok_or(RestoreError::NoSuchRegion(id))?;
        (region.epoch, region.lineage) = (epoch, epoch);
        region.ground = ground;
        (region.tick, region.bodies.now) = (snapshot.tick, snapshot.tick);
        region.view_tick = TickStamp::of(snapshot.tick);
        region.fences = snapshot.fences.iter().copied().collect();
        region.escrow = Escrow::restored(&snapshot.escrow, &snapshot.came);
        let coming = snapshot.incoming.iter().chain(&snapshot.dormant);
        for handoff in snapshot.reals.iter().map(|real| &real.state).chain(coming) {
            region.check(handoff)?;
        }
        Ok(region)
    }

    /// Whether somebody can live in this scene.
    fn check(&self, handoff: &Handoff) -> Result<(), RestoreError> {
        let state = &handoff.state;
        let wrong = |what| Err(RestoreError::Illegal { id: state.id, what });
        if !self.bodies.has_kind(state.kind) {
            return wrong("its kind is none of the scene's");
        }
        if state.plane != Plane::LIMBO && !self.scene.map.bounds.contains(state.pos) {
            return wrong("its place lies outside the scene");
        }
        if handoff.ties.bonds.len() + handoff.ties.fights.len() > MAX_BONDS {
            return wrong("it has too many bonds");
        }
        if handoff.peers.len() > u16::MAX.into() {
            return wrong("it deals with too many others");
        }
        Ok(())
    }

    fn restore_real(&mut self, saved: &SavedReal, mirrors: u32) {
        let SavedReal { state: handoff, .. } = saved;
        if self.bodies.slot(handoff.state.id).is_some() {
            crate::log_limited!(at self.log_ms(); error, region = %self.id, entity = %handoff.state.id, "an entity is in a snapshot twice; the first one counts");
            return;
        }
        // Players' sessions are told anew.
        let is_player = handoff.state.kind == Kind::PLAYER;
        let epoch = if is_player { handoff.epoch.next() } else { handoff.epoch };
        let slot = self.place_real(&handoff.state, handoff.ties.clone(), epoch);
        if let Some(mover) = &handoff.mover {
            self.give_mover(slot, Some(mover.clone()));
            self.bodies.tracks.cut(slot, saved.cut);
        }
        self.bodies.hot[slot as usize].changed = saved.changed.renewed(self.tick);
        let Some(real) = self.bodies.real_mut(slot) else { return };
        (real.mirrors, real.restate, real.thr_told) = (mirrors, saved.restate, saved.thr_told);
        real.bound_for = saved.bound.map(|(region, plane)| Bound { region, plane });
    }

    fn restore_ghost(&mut self, saved: SavedGhost) {
        let SavedGhost { state, owner, orphan_since, changed } = saved;
        if !self.bodies.has_kind(state.kind) || self.bodies.slot(state.id).is_some() {
            return;
        }
        let role = Role::Ghost(Ghost {
            owner,
            orphan_since: orphan_since.map(|at| at.renewed(self.tick)),
        });
        let slot = self.bodies.add(
            state.id,
            state.kind,
            state.plane,
            state.pos,
            state.range,
            state.look,
            state.ties,
            state.epoch,
            role,
        );
        self.follow_owner(slot, state.pos, state.course);
        self.bodies.hot[slot as usize].changed = changed.renewed(self.tick);
        self.bodies.set_thr(&self.rules, slot, state.thr);
    }

    /// What players had said to whom, and what their clients were told. Everybody is in place.
    fn restore_viewers(&mut self, reals: &[SavedReal]) {
        for saved in reals.iter().filter(|r| r.state.state.kind == Kind::PLAYER) {
            let Some(slot) = self.real_slot(saved.state.state.id) else { continue };
            self.restore_viewer(slot, &saved.state);
            let ix = self.bodies.hot[slot as usize].viewer as usize;
            let Some(viewer) = self.viewers.get_mut(ix) else { continue };
            viewer.frames_from = saved.frames_from;
            viewer.thr = viewer.registers.thr(&self.rules);
            self.bodies.set_thr(&self.rules, slot, viewer.thr.rank);
        }
    }
}
