//! Entities that begin and end to live here, and what their sessions are told of it.
//!
//! Inputs, handoffs and restores call these rules. An entity never lives here twice: a ghost's slot becomes the real's.

use super::Region;
use super::custody::counter;
use super::entities::{NewEntity, Role};
use super::mailbox::Mailbox;
use super::views::Viewer;
use crate::scene::messages::{
    Departed, Effect, EnterCause, LeaveCause, Notice, Refusal, RouteNotice, Spawn,
};
use crate::scene::properties::MAX_ENTITY_BYTES;
use crate::scene::views::Ties;
use crate::scene::{EntityId, Epoch, Kind, Plane, SessionId, Tick, TickStamp};

impl Region {
    /// The session of a player that lives here or is about to.
    fn session_of(&self, id: EntityId) -> Option<SessionId> {
        if let Some(h) = self.custody.incoming_of(id) {
            return h.state.session;
        }
        self.views.of(&self.entities, self.entities.real_slot(id)?)?.session
    }

    /// Adds an entity, or refuses it and tells its session.
    pub(super) fn add(&mut self, mut spawn: Spawn, fx: &mut Vec<Effect>) {
        let legal = self.entities.has_kind(spawn.kind)
            && self.identity.scene().contains(spawn.pos)
            && spawn.plane != Plane::LIMBO
            && spawn.id.content().is_none()
            && self.may_have(&spawn);
        let known = self.entities.slot(spawn.id).is_some() || self.custody.is_incoming(spawn.id);
        let lives_here =
            self.entities.real_slot(spawn.id).is_some() || self.custody.is_incoming(spawn.id);
        let is_here = lives_here
            && self.session_of(spawn.id) == spawn.session
            && self.subject_of(spawn.id) == Some(spawn.subject);
        let was_here = !lives_here && (known || self.custody.knows_moved(spawn.id));
        if spawn.session.is_some() && (is_here || was_here) {
            // A repetition. The entity may have moved on since, and its session is told by its
            // present owner.
            return;
        }
        // A checkpoint may know it from before its session was told that it is here.
        let is_others =
            spawn.session.is_some() && self.is_of_other_subject(spawn.id, spawn.subject);
        if !legal || known || is_others {
            crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), entity = %spawn.id, "an entity was not added: its id is in use, or its kind, properties, plane or position do not fit the scene");
            if let Some(session) = spawn.session {
                fx.push(Effect::Notice(session, Notice::Refused(Refusal::OutOfBounds)));
            }
            return;
        }
        let before = self.take_unclaimed(spawn.id);
        let known = before.as_ref().map(|known| self.kept_bonds(&known.ties, &known.state.bonds));
        if let Some(known) = known.filter(|known| known.at > spawn.bonds.at) {
            spawn.bonds = known;
        }
        let mut ties = Ties::default();
        self.take_bonds(&mut ties, &mut spawn.bonds);
        let is_recovered = before.is_some();
        let birth = self.identity.lineage().of_birth();
        let epoch =
            before.as_ref().map_or(birth, |before| before.epoch.next_life(self.identity.lineage()));
        let slot = self.place_real(&spawn, ties, epoch);
        let taken = before.as_ref().and_then(|before| Some(before.watch.as_ref()?.taken.clone()));
        let taken = self.outbox.revive(spawn.id).or(taken);
        if let (Some(taken), Some(real)) = (taken, self.entities.real_mut(slot)) {
            real.watch.get_or_insert_default().taken = taken;
        }
        if spawn.kind == Kind::PLAYER {
            let mover = self.mover_of_spawn(&spawn);
            self.give_mover(slot, mover);
            if self.custody.expects_players() {
                self.views.note_new_incarnation(spawn.id);
            }
            if let Some(viewer) =
                self.views.of_mut(&self.entities, slot).filter(|_| epoch.lives() > 0)
            {
                let last = before.as_ref().map_or(0, |before| before.view_counter);
                viewer.registers.counter = counter(epoch, last);
                viewer.stays_until = before.map_or(Tick(0), |before| before.stays_until);
            }
        }
        self.entities.set_changed(slot, TickStamp::of(self.clock.tick()));
        let cause = match (is_recovered, spawn.session) {
            (true, _) => EnterCause::Recovered,
            (false, Some(_)) => EnterCause::Joined,
            (false, None) => EnterCause::Spawned,
        };
        self.logic.entered(spawn.id, cause);
        self.notice_route(slot, true, fx);
    }

    /// Whether an entity may have the properties that it begins with.
    pub(super) fn may_have(&self, spawn: &Spawn) -> bool {
        let schema = self.identity.scene().schema(spawn.kind);
        let fits = spawn.properties.value_bytes() <= MAX_ENTITY_BYTES;
        fits && schema.is_some_and(|schema| schema.check_all(&spawn.properties).is_ok())
    }

    /// Makes the entity a real of this region, in its ghost's slot if there is one.
    pub(super) fn place_real(&mut self, spawn: &Spawn, ties: Ties, epoch: Epoch) -> u32 {
        let role = Role::Real(Default::default());
        let first_frame = self.clock.next_frame();
        let at = TickStamp::of(first_frame);
        let slot = match self.entities.slot(spawn.id) {
            Some(slot) => {
                self.take_properties(slot, epoch, &spawn.properties);
                self.entities.set_facing(slot, spawn.facing, at);
                self.entities.set_plane(slot, spawn.plane);
                self.entities.set_pos(slot, spawn.pos);
                self.entities.set_sight(slot, spawn.sight);
                self.entities.set_ties(slot, ties);
                self.entities.set_role(slot, role, epoch);
                slot
            }
            None => {
                let slot = self.entities.add(NewEntity::of_spawn(spawn, ties, epoch), role);
                self.entities.stamp_properties(slot, at);
                slot
            }
        };
        self.counts.reals += 1;
        if spawn.kind == Kind::PLAYER {
            let whose = (spawn.session, spawn.subject, spawn.account.clone());
            self.views.add_viewer(&mut self.entities, spawn.id, slot, whose);
            let now_ms = self.log_ms();
            if let Some(viewer) = self.views.of_mut(&self.entities, slot) {
                viewer.mailbox = Mailbox::since(now_ms);
                viewer.other_bonds.clone_from(&spawn.bonds);
                // What others did before is told to those who saw it.
                viewer.frames_from = first_frame;
            }
            self.mark_put_down(slot, spawn.pos);
            self.counts.players += u64::from(spawn.session.is_some());
        }
        slot
    }

    /// Takes the viewer of a player that lives here no more.
    pub(super) fn take_viewer(&mut self, slot: u32) -> Option<Viewer> {
        let viewer = self.views.take_viewer(&mut self.entities, slot)?;
        self.counts.players -= u64::from(viewer.session.is_some());
        Some(viewer)
    }

    /// An entity that lives here leaves for good. Its session is told.
    pub(super) fn remove_real(&mut self, slot: u32, cause: LeaveCause, fx: &mut Vec<Effect>) {
        self.border.sign_off(slot, None, &mut self.entities);
        let (id, epoch) = (self.entities.body(slot).id, self.entities.record(slot).epoch);
        let (here, tick) = (self.identity.id(), self.clock.tick());
        self.note_left(slot, cause);
        let (plane, pos) = (self.entities.record(slot).plane, self.entities.body(slot).pos);
        let properties = self.entities.record(slot).properties.clone();
        let bonds = self.bonds_of(slot).named;
        let viewer = self.take_viewer(slot);
        let watch = self.entities.real_mut(slot).and_then(|real| real.watch.take());
        if let Some(watch) = watch.filter(|watch| !watch.taken.is_empty()) {
            self.outbox.note_ended(id, tick, watch.taken);
        }
        self.custody.note_left(id, epoch, here, tick);
        self.entities.remove(slot);
        self.counts.reals -= 1;
        if let Some(session) = viewer.map(|v| v.session) {
            let departed =
                Departed { id, session, tick, epoch, as_of: tick, plane, pos, properties, bonds };
            self.depart(departed, fx);
        }
    }

    /// Tells the session of the entity at `slot` that it lives here.
    pub(super) fn notice_route(&mut self, slot: u32, arrived: bool, fx: &mut Vec<Effect>) {
        let (body, record) = (self.entities.body(slot), self.entities.record(slot));
        let Some(viewer) = self.views.get(body.viewer) else { return };
        let Some(session) = viewer.session else { return };
        let route = RouteNotice {
            subject: viewer.subject,
            scene: self.identity.scene().id,
            region: self.identity.id(),
            epoch: record.epoch,
            last_applied: viewer.last_applied,
            tick: self.clock.tick(),
            plane: record.plane,
            pos: body.pos,
            facing: body.facing,
            own: self.own_of(slot).map(Box::new),
            arrived,
            unconfirmed: viewer.unconfirmed,
        };
        fx.push(Effect::Notice(session, Notice::Route(route)));
        self.tell_bonds(slot, fx);
    }
}
