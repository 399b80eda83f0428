//! A region goes on from a snapshot.
//!
//! *Relocation*: [`Region::freeze`], the snapshot travels, [`Region::restore`]. Nothing is lost on the way,
//! so no player has to begin anew: ghosts, registers, what waits and what each client was told come along,
//! and neighbours go on with the next batch. Only the region's epoch is higher, and that of each player,
//! so that its session sends again what was not applied.
//!
//! *Recovery*: [`Region::checkpoint`], the region dies, [`Region::recover`]. What a checkpoint leaves out is asked
//! of other regions and of sessions: see `custody::recovery`.

use std::sync::Arc;

use super::{RegionSnapshot, SavedGhost, SavedReal};
use crate::scene::messages::{Effect, Handoff, Input, MAX_BONDS};
use crate::scene::region::Region;
use crate::scene::region::custody::{Escrow, Recovery};
use crate::scene::region::doors::RegionDoors;
use crate::scene::region::entities::{Bound, Ghost};
use crate::scene::region::logic::Outbox;
use crate::scene::terrain::DoorError;
use crate::scene::{EntityId, Epoch, Kind, Plane, RegionId, Scene, SceneId};

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
    /// The region that goes on needs a higher epoch.
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
    RegionDoors(#[from] DoorError),
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
        mut snapshot: RegionSnapshot,
        fx: &mut Vec<Effect>,
    ) -> Result<Region, RestoreError> {
        if !snapshot.whole {
            return Err(RestoreError::NotWhole);
        }
        snapshot.forget_contents_but(scene.contents().print());
        let mut region = Region::begin(scene, id, epoch, &snapshot)?;
        region.identity.set_epochs(epoch, snapshot.lineage);
        region.set_origin(None, snapshot.logic);
        region.outbox = Outbox::restored(snapshot.outbox);
        region.expect(snapshot.unclaimed, snapshot.tick);
        for saved in &snapshot.reals {
            let mirrors = region.border.mirrors(&snapshot.outbound, saved.mirrors);
            region.restore_real(saved, mirrors);
        }
        region.border.restore_outbound(snapshot.outbound);
        for saved in snapshot.ghosts {
            region.restore_ghost(saved);
        }
        region.restore_viewers(&snapshot.reals);
        region.depart_again(snapshot.departing, fx);
        region.views.expect_all_ends(&region.entities);
        region.custody.restore(snapshot.moved, snapshot.incoming);
        region.inbox.restore(snapshot.inbox, snapshot.arrivals);
        region.group_messages = snapshot.group_messages;
        region.recent_actions = snapshot.recent_actions;
        let since = (snapshot.swept, snapshot.crashed);
        region.border.restore_inbound(snapshot.inbound, since, region.custody.fences());
        fx.extend(snapshot.view_queue.unsent.iter().map(|(to, msg)| Effect::View(*to, *msg)));
        region.views.restore_queue(snapshot.view_queue);
        region.counts.ghosts = region.entities.len() as u64 - region.counts.reals;
        for ix in 0..region.views.viewers().len() {
            region.notice_route(region.views.viewers()[ix].slot, false, fx);
        }
        Ok(region)
    }

    /// The region `id` recovers from a checkpoint after its death, under a higher epoch. `fx`
    /// receives its first messages: questions to other regions, and notices to its players'
    /// sessions.
    ///
    /// # Errors
    /// The snapshot does not fit.
    pub fn recover(
        scene: Arc<Scene>,
        id: RegionId,
        epoch: Epoch,
        mut snapshot: RegionSnapshot,
        how: Recovery,
        fx: &mut Vec<Effect>,
    ) -> Result<Region, RestoreError> {
        snapshot.forget_contents_but(scene.contents().print());
        let mut region = Region::begin(scene, id, epoch, &snapshot)?;
        region.make_left_out(&snapshot);
        let since = (snapshot.swept, Vec::new());
        region.border.restore_inbound(snapshot.inbound, since, region.custody.fences());
        region.set_origin(Some(snapshot.tick), snapshot.logic);
        region.outbox = Outbox::restored(snapshot.outbox);
        region.border.forget_all();
        region.recent_actions = snapshot.recent_actions;
        region.custody.restore(snapshot.moved, Vec::new());
        region.inbox.restore(snapshot.inbox, snapshot.arrivals);
        // Sessions repeat these; players that have entered, or were presented, may have moved on
        // since.
        region.inbox.retain(|input| match input {
            Input::Client { .. } | Input::Resume(_) | Input::Present(_) => false,
            Input::Enter(spawn) => spawn.session.is_none(),
            _ => true,
        });
        region.refuse_old_commands(fx);
        region.depart_again(snapshot.departing, fx);
        let lived_here = snapshot.reals.into_iter().map(|real| real.state);
        let last_known = lived_here.chain(snapshot.incoming).chain(snapshot.unclaimed);
        region.begin_recovery(how, last_known, fx);
        Ok(region)
    }

    /// The region, empty, at the snapshot's tick; the snapshot fits it.
    fn begin(
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
        let doors = RegionDoors::restored(&scene, snapshot.doors.as_ref())?;
        let gone = Region::given_up(&scene, id);
        let region = Region::new(scene, id).or(gone);
        let mut region = region.ok_or(RestoreError::NoSuchRegion(id))?;
        region.identity.set_epochs(epoch, epoch);
        region.doors = doors;
        region.entities.relations_mut().merge(snapshot.relations.clone());
        if let Some(contents) = snapshot.contents.as_deref() {
            let Region { contents: known, identity, .. } = &mut region;
            known.merge(identity.scene(), contents.clone());
        }
        region.clock.restore(snapshot.tick);
        region.entities.set_now(snapshot.tick);
        region.views.restore_tick(snapshot.tick);
        let escrow = Escrow::restored(&snapshot.escrow, &snapshot.came);
        region.custody.begin(&snapshot.fences, escrow);
        let coming = snapshot.incoming.iter().chain(&snapshot.unclaimed);
        for handoff in snapshot.reals.iter().map(|real| &real.state).chain(coming) {
            region.check(handoff)?;
        }
        Ok(region)
    }

    /// Whether an entity can live in this scene.
    fn check(&self, handoff: &Handoff) -> Result<(), RestoreError> {
        let state = &handoff.state;
        let wrong = |what| Err(RestoreError::Illegal { id: state.id, what });
        if !self.entities.has_kind(state.kind) {
            return wrong("its kind is none of the scene's");
        }
        if state.plane != Plane::LIMBO && !self.identity.scene().contains(state.pos) {
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
        if self.entities.slot(handoff.state.id).is_some() {
            crate::log_limited!(at self.log_ms(); error, region = %self.identity.id(), entity = %handoff.state.id, "an entity is in a snapshot twice; the first one counts");
            return;
        }
        // Players' sessions are told anew.
        let is_player = handoff.state.kind == Kind::PLAYER;
        let epoch = if is_player { handoff.epoch.next() } else { handoff.epoch };
        let slot = self.place_real(&handoff.state, handoff.ties.clone(), epoch);
        if let Some(mover) = &handoff.mover {
            self.give_mover(slot, Some(mover.clone()));
            self.entities.set_cut(slot, saved.cut);
        }
        self.fall_asleep_again(slot, handoff.asleep_until);
        self.restore_watch(slot, handoff.watch.clone());
        let tick = self.clock.tick();
        let mut properties = handoff.state.properties.clone();
        properties.renew_stamps(tick);
        self.entities.restore_properties(slot, properties);
        self.entities.set_changed(slot, saved.changed.renewed(tick));
        let Some(real) = self.entities.real_mut(slot) else { return };
        (real.mirrors, real.restate, real.threshold_told) =
            (mirrors, saved.restate, saved.threshold_told);
        real.bound_for = saved.bound.map(|(region, plane)| Bound { region, plane });
    }

    fn restore_ghost(&mut self, saved: SavedGhost) {
        let SavedGhost { state, owner, orphan_since, changed } = saved;
        if !self.entities.has_kind(state.kind) || self.entities.slot(state.id).is_some() {
            return;
        }
        let tick = self.clock.tick();
        let ghost = Ghost { owner, orphan_since: orphan_since.map(|at| at.renewed(tick)) };
        let mut properties = state.properties.clone();
        properties.renew_stamps(tick);
        let slot = self.add_ghost(state, ghost, changed.renewed(tick));
        self.entities.restore_properties(slot, properties);
    }

    /// The views of players, and what their clients were told. All entities are in place.
    fn restore_viewers(&mut self, reals: &[SavedReal]) {
        for saved in reals.iter().filter(|r| r.state.state.kind == Kind::PLAYER) {
            let Some(slot) = self.entities.real_slot(saved.state.state.id) else { continue };
            self.restore_view(slot, &saved.state);
            let Some(viewer) = self.views.of_mut(&self.entities, slot) else { continue };
            viewer.frames_from = saved.frames_from;
            viewer.missed_from = saved.missed_from;
            self.views.renew_threshold(slot, &mut self.entities);
        }
    }
}
