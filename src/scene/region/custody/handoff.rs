//! Entities that move from one region to another of the same process.
//!
//! The source decides when a tick is done: the entity's frame of that tick is made, its whole state
//! goes to the target, and a ghost stays. The target installs it at once, so that its negotiation
//! goes on, and makes frames for it from the next tick on: its client gets one frame per tick, the
//! last from the source and the next from the target. What else is told meanwhile follows it:
//! orders and negotiation are forwarded, a client's inputs are sent again by its session when it
//! learns of the new route.

use super::HandedOn;
use super::spoiled::spoil;
use crate::scene::messages::{Effect, Handoff, LeaveCause, Notice, RouteNotice, SeenState, Spawn};
use crate::scene::movement::Trajectory;
use crate::scene::mutants::{self, Mutant};
use crate::scene::region::Region;
use crate::scene::region::clock::Phase;
use crate::scene::region::entities::{Ghost, Role};
use crate::scene::region::views::Viewer;
use crate::scene::views::PeerState;
use crate::scene::{
    Account, EntityId, Epoch, Kind, Pos, RegionId, Seq, SubjectHash, Tick, TickStamp,
};

/// For how long it is remembered where an entity went that left no ghost.
pub const MOVED_TICKS: u64 = 100;

/// What is handed on about a player's peers, and about what its client was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// All of it, for another region, which is to tell again what may have been missed.
    ToTell,
    /// All of it, as it is.
    AsItIs,
    /// Nothing: it begins anew.
    Left,
}

impl Region {
    /// Hands off entities that have gone too far past the border, or have teleported away. Entities
    /// whose new owner is held back stay until there is room.
    pub(in crate::scene::region) fn send_handoffs(&mut self, fx: &mut Vec<Effect>) {
        // A region that was given up keeps no entity.
        let retired = self.is_given_up();
        let margin = if retired { -1 } else { self.identity.scene().spec.handoff_margin_cm };
        for slot in 0..self.entities.slot_count() {
            let body = self.entities.body(slot);
            if !body.is_real() {
                continue;
            }
            let Some(real) = self.entities.real(slot) else { continue };
            let pos = body.pos;
            match real.bound_for {
                Some(bound) if self.holds_back(bound.region) => {}
                Some(bound) => self.hand_off(slot, bound.region, fx),
                None if self.identity.rect().outside_by(pos) > margin => {
                    let owner = self.identity.owner_of(self.home_plane(slot), pos);
                    if owner != self.identity.id() && !self.holds_back(owner) {
                        self.hand_off(slot, owner, fx);
                    }
                }
                None => {}
            }
        }
    }

    /// Hands no entity over to a region for now, since too much waits for it; or does again.
    pub fn hold_back(&mut self, to: RegionId, hold: bool) {
        match hold {
            true => self.custody.held_back.insert(to),
            false => self.custody.held_back.remove(&to),
        };
    }

    /// Whether no entity is handed over to a region for now.
    pub fn holds_back(&self, to: RegionId) -> bool {
        self.custody.held_back.contains(&to)
    }

    /// Hands over entities that stand on ground which is another region's by a new layout, which counts after
    /// this tick.
    pub(in crate::scene::region) fn hand_over(&mut self, after: Tick, fx: &mut Vec<Effect>) {
        let before = fx.len();
        // The new layout leaves no entity behind.
        let held_back = std::mem::take(&mut self.custody.held_back);
        self.send_handoffs(fx);
        self.custody.held_back = held_back;
        for effect in &mut fx[before..] {
            if let Effect::Handoff(_, handoff) = effect {
                // Not before the receiver has changed over, too; it makes the next frame.
                (handoff.tick, handoff.by_map) = (after, true);
            }
        }
    }

    fn hand_off(&mut self, slot: u32, to: RegionId, fx: &mut Vec<Effect>) {
        let mut handoff = self.pack(slot);
        let here = self.identity.scene().map.get(to).is_some();
        if !here {
            self.name_bonds(&mut handoff);
        }
        let asleep = handoff.asleep_until.is_some();
        if !asleep {
            self.note_left(slot, LeaveCause::HandedOff(to));
        }
        self.border.sign_off(slot, here.then_some(to), &mut self.entities);
        self.counts.reals -= 1;
        self.counts.handoffs += 1;
        let pos = handoff.state.pos;
        let band = self.entities.band_cm(slot, self.identity.scene());
        if !asleep && self.border.knows(to) && self.identity.rect().outside_by(pos) <= band {
            // Mirrored by the new owner from its next tick on.
            let orphan_since = Some(TickStamp::of(self.clock.tick()));
            let ghost = Ghost { owner: to, orphan_since };
            self.entities.set_role(slot, Role::Ghost(ghost), handoff.epoch);
            self.entities.set_plane(slot, handoff.state.plane);
            self.entities.follow_owner_only(slot);
        } else {
            self.entities.remove(slot);
            let moved = HandedOn { region: to, epoch: handoff.epoch, since: self.clock.tick() };
            self.custody.moved.insert(handoff.state.id, moved);
        }
        self.custody.escrow.lend(self.clock.tick(), to, &handoff);
        fx.push(Effect::Handoff(to, Box::new(handoff)));
    }

    /// Where an entity lives that does not live here, as far as is known: its ghost's owner, or
    /// where it was handed to of late.
    pub(in crate::scene::region) fn whereabouts(&self, id: EntityId) -> Option<RegionId> {
        if self.is_unclaimed(id) {
            // It is unclaimed here, whatever its owner before has said of it: that owner sends questions about it here.
            return None;
        }
        match self.entities.slot(id).map(|s| self.entities.role(s)) {
            Some(Role::Ghost(ghost)) => Some(ghost.owner),
            Some(_) => None,
            None => {
                self.custody.moved.get(&id).map(|m| m.region).filter(|r| *r != self.identity.id())
            }
        }
    }

    fn pack(&mut self, slot: u32) -> Handoff {
        let mut handoff = self.describe(slot, Past::ToTell);
        let bound = self.entities.real_mut(slot).and_then(|real| real.bound_for);
        handoff.teleported = bound.is_some();
        if !mutants::has(Mutant::SameEpoch) {
            handoff.epoch = handoff.epoch.next();
        }
        spoil(&mut handoff, self.identity.scene());
        if let Some(bound) = bound {
            handoff.state.plane = bound.plane;
        }
        self.take_viewer(slot);
        if let Some(real) = self.entities.real_mut(slot) {
            real.mover = None;
        }
        handoff
    }

    /// An entity that lives here, with its whole state, under its present epoch.
    pub(in crate::scene::region) fn describe(&self, slot: u32, past: Past) -> Handoff {
        let (body, record) = (self.entities.body(slot), self.entities.record(slot));
        let viewer = self.views.get(body.viewer);
        let (mover, watch, asleep_until) = match &record.role {
            Role::Real(real) => (real.mover.clone(), real.watch.clone(), real.asleep_until),
            Role::Ghost(_) | Role::Free => (None, None, None),
        };
        let mut handoff = Handoff {
            from: self.identity.id(),
            from_epoch: self.identity.epoch(),
            state: Spawn {
                plane: record.plane,
                sight: self.entities.place(slot).sight(),
                facing: body.facing,
                properties: record.properties.clone(),
                session: viewer.and_then(|v| v.session),
                subject: viewer.map_or(SubjectHash::NONE, |v| v.subject),
                account: viewer.map_or(Account::NONE, |v| v.account.clone()),
                bonds: viewer.map(|v| v.other_bonds.clone()).unwrap_or_default(),
                ..Spawn::new(body.id, body.kind, body.pos)
            },
            ties: record.ties.clone(),
            epoch: record.epoch,
            last_applied: viewer.map_or(Seq(0), |v| v.last_applied),
            tick: self.clock.tick(),
            view_counter: viewer.map_or(0, |v| v.registers.counter),
            heard_since_ms: u64::MAX,
            mover,
            watch,
            pace: viewer.map(|v| v.pace).unwrap_or_default(),
            held: viewer.is_some_and(|v| v.held),
            resync: viewer.is_some_and(|v| v.resync),
            disconnected_until: viewer.and_then(|v| v.disconnected_until),
            stays_until: viewer.map_or(Tick(0), |v| v.stays_until),
            asleep_until,
            scene: Some(self.identity.scene().id),
            since_ms: viewer.map_or(0, |v| v.since_ms),
            unconfirmed: viewer.and_then(|v| v.unconfirmed),
            ..Handoff::default()
        };
        self.describe_actions(slot, past, &mut handoff);
        if let Some(viewer) = viewer {
            self.describe_heard(viewer, past, &mut handoff);
        }
        if let Some(viewer) = viewer.filter(|_| past != Past::Left) {
            self.describe_view(viewer, past, &mut handoff);
        }
        handoff
    }

    /// A player's peers, and what its client was told.
    fn describe_view(&self, viewer: &Viewer, past: Past, handoff: &mut Handoff) {
        let tick = self.clock.tick();
        let sent = |slot, id, sent: TickStamp| match past {
            Past::ToTell => self.told_tick(slot, id, sent),
            Past::AsItIs | Past::Left => sent.near(tick),
        };
        let peers = 0..viewer.registers.peers().len();
        let peer = |ix| {
            let (p, state) = (&viewer.registers.peers()[ix], viewer.registers.state(ix, tick));
            let sent = sent(p.slot, state.id, p.sent);
            PeerState { sent, epoch: self.epoch_of(p.slot, state.id), ..state }
        };
        handoff.peers = peers.map(peer).collect();
        let shown = viewer.seen.iter().filter(|s| s.shown);
        let seen = shown.map(|s| {
            let (id, sent, withheld) = (s.id, sent(s.slot, s.id, s.sent), s.withheld);
            SeenState { id, sent, withheld }
        });
        handoff.seen = seen.collect();
        let all_anew = viewer.own_properties_due || viewer.bonds_changed;
        if !all_anew {
            let known = |slot, id| sent(slot, id, viewer.properties_told);
            let ids = viewer.registers.yes_ids().iter().map(|ids| ids.id);
            let peers = viewer.registers.peers().iter().map(|p| p.slot).zip(ids);
            let all = peers.chain(viewer.seen.iter().map(|s| (s.slot, s.id)));
            let told = all.map(|(slot, id)| known(slot, id)).min();
            handoff.properties_told =
                told.unwrap_or_else(|| viewer.properties_told.near(tick)).max(Tick(1));
        }
        handoff.gone.clone_from(&viewer.gone);
        handoff.refused.clone_from(&viewer.refused);
        handoff.told.clone_from(&viewer.mailbox.waiting);
    }

    /// The epoch of the entity at `slot`; 0 when that is another entity.
    fn epoch_of(&self, slot: u32, id: EntityId) -> Epoch {
        let known = self.entities.is_at(slot, id);
        if known { self.entities.record(slot).epoch } else { Epoch(0) }
    }

    /// As of which tick of its owner's a client knows something that it was told of at `sent`:
    /// earlier for a ghost whose owner's batch was late, so that the next region tells what was
    /// missed.
    fn told_tick(&self, slot: u32, id: EntityId, sent: TickStamp) -> Tick {
        let sent = sent.near(self.clock.tick());
        let known = self.entities.is_at(slot, id);
        match known.then(|| self.entities.role(slot)) {
            Some(Role::Ghost(ghost)) => self.border.sound(ghost.owner).unwrap_or(sent).min(sent),
            _ => sent,
        }
    }

    /// Whether everything of the handoff's last tick has been applied here too. Ticks of another
    /// scene say nothing.
    fn is_due(&self, handoff: &Handoff) -> bool {
        if handoff.by_map {
            return handoff.tick < self.clock.tick();
        }
        let over = match self.clock.phase() {
            Phase::Open => handoff.tick < self.clock.tick(),
            Phase::BorderRounds | Phase::Closed => handoff.tick <= self.clock.tick(),
        };
        over || !self.identity.is_of_this_scene(handoff)
    }

    /// Takes an entity that comes to live here: at once, or, where what its old owner said of its
    /// last tick is still to be applied here, right after that. Its session is told in either case,
    /// so that its next inputs come here.
    pub(in crate::scene::region) fn receive(&mut self, mut handoff: Handoff, fx: &mut Vec<Effect>) {
        self.adopt(&mut handoff);
        self.take_bonds(&mut handoff.ties, &mut handoff.state.bonds);
        if self.is_stale(&handoff) {
            tracing::info!(region = %self.identity.id(), from = %handoff.from, entity = %handoff.state.id, epoch = %handoff.epoch, "a handoff came late");
            return;
        }
        self.answer_pending_question(&handoff, fx);
        if let Some(session) = handoff.state.session {
            let route = RouteNotice {
                subject: handoff.state.subject,
                scene: self.identity.scene().id,
                region: self.identity.id(),
                epoch: handoff.epoch,
                last_applied: handoff.last_applied,
                tick: self.first_frame(&handoff),
                plane: handoff.state.plane,
                pos: handoff.state.pos,
                facing: handoff.state.facing,
                own: handoff.mover.as_ref().map(|mover| Box::new(mover.own(self.now()))),
                arrived: handoff.teleported,
                unconfirmed: handoff.unconfirmed,
            };
            fx.push(Effect::Notice(session, Notice::Route(route)));
            self.tell_bonds_of(&handoff, session, fx);
        }
        if !self.is_due(&handoff) {
            return self.custody.incoming.push(handoff);
        }
        self.install(handoff);
        if self.clock.is_closed() {
            self.read_view_queue(fx);
        }
    }

    /// The first tick for which this region makes frames for the entity.
    fn first_frame(&self, handoff: &Handoff) -> Tick {
        self.clock.next_frame().max(handoff.tick.next())
    }

    /// Installs entities that have come and were not due yet.
    pub(in crate::scene::region) fn install_incoming(&mut self) {
        self.forget_moved();
        for handoff in self.custody.incoming.take() {
            if self.is_due(&handoff) {
                self.install(handoff);
            } else {
                self.custody.incoming.push(handoff);
            }
        }
    }

    /// Whether what is known here of an entity is no older than a handoff that brings it: a link that was cut, or the death of
    /// the region that it was sent to first, has brought it late.
    fn is_stale(&self, handoff: &Handoff) -> bool {
        let Handoff { epoch, state: Spawn { id, .. }, .. } = handoff;
        let lives = self.entities.slot(*id).is_some_and(|slot| {
            let record = self.entities.record(slot);
            record.epoch > *epoch
                || (record.epoch == *epoch && matches!(record.role, Role::Real(_)))
        });
        // By its checkpoint the region has had it, and knows what it has done since.
        let is_unclaimed = self.unclaimed_of(*id).is_some_and(|known| known.epoch >= *epoch);
        // It was here since and has gone on, or has left for good.
        let has_gone_on = self.custody.moved.get(id).is_some_and(|moved| {
            moved.epoch > *epoch || (moved.epoch == *epoch && moved.region == self.identity.id())
        });
        // It went on as a ghost, which a checkpoint does not know.
        let was_lent =
            self.custody.recovering.is_some() && self.claim(*id).is_some_and(|c| c.epoch > *epoch);
        let has_moved = has_gone_on && !mutants::has(Mutant::LateHandoff);
        let knows_better = is_unclaimed || was_lent || has_moved;
        self.was_reset(handoff) || lives || (knows_better && !mutants::has(Mutant::HandedTwice))
    }

    fn install(&mut self, handoff: Handoff) {
        let id = handoff.state.id;
        // What its old owner said of it while it was a ghost here comes first.
        self.catch_up(Tick(handoff.tick.0.min(self.clock.tick().0.saturating_sub(1))));
        let known = self.entities.slot(id);
        if self.is_stale(&handoff) || !self.entities.has_kind(handoff.state.kind) {
            crate::log_limited!(at self.log_ms(); error, region = %self.identity.id(), from = %handoff.from, entity = %id, epoch = %handoff.epoch, "a late handoff, or one of an unknown kind, was refused");
            return;
        }
        self.custody.moved.remove(&id);
        if self.identity.is_of_this_scene(&handoff) {
            let acts = self.first_frame(&handoff);
            self.counts.arrivals += 1;
            self.counts.late_arrivals += u64::from(acts > handoff.tick.next());
        }
        self.custody.escrow.note(self.clock.tick(), id, handoff.epoch);
        self.take_unclaimed(id);
        let older = |s| self.entities.record(s).epoch.is_of_a_life_before(handoff.epoch);
        if known.is_some_and(older) {
            self.views.note_new_incarnation(id);
        }
        let known_at = known.map(|s| self.place_and_trajectory(s));
        if let Some(slot) = self.entities.real_slot(id) {
            crate::log_limited!(at self.log_ms(); error, region = %self.identity.id(), from = %handoff.from, entity = %id, "an entity comes that lives here under a lower epoch; the newer one stays");
            self.displace(slot, self.identity.id());
            self.take_viewer(slot);
            self.counts.reals -= 1;
        }
        let was_at = known.map(|slot| *self.entities.place(slot));
        let slot = self.place_real(&handoff.state, handoff.ties.clone(), handoff.epoch);
        let is_at = *self.entities.place(slot);
        if was_at != Some(is_at) || is_at.is_bonded() {
            self.views.positions_change();
        }
        if let Some(mover) = &handoff.mover {
            self.give_mover(slot, Some(mover.clone()));
        }
        self.restore_watch(slot, handoff.watch.clone());
        self.fall_asleep_again(slot, handoff.asleep_until);
        if handoff.asleep_until.is_none() {
            self.logic.entered(id, handoff.entered_by());
        }
        self.views.expect_ends(slot, &self.entities);
        self.tell_all_neighbours(slot);
        if known_at != Some(self.place_and_trajectory(slot)) || handoff.teleported {
            self.entities.set_changed(slot, TickStamp::of(self.clock.next_frame()));
        }
        self.take_actions_along(&handoff);
        if handoff.state.kind == Kind::PLAYER {
            self.install_view(slot, &handoff);
            self.tell_missed(slot, &handoff);
            self.tell_missed_actions_of(&handoff);
        }
    }

    /// Any neighbour may have a ghost of the entity at `slot`: all are told how it stands.
    pub(super) fn tell_all_neighbours(&mut self, slot: u32) {
        let everybody = self.border.everybody();
        if let Some(real) = self.entities.real_mut(slot) {
            (real.mirrors, real.restate) = (everybody, true);
        }
    }

    /// The view of a player that has come goes on, and is evaluated where views of this tick were already.
    fn install_view(&mut self, slot: u32, handoff: &Handoff) {
        self.restore_view(slot, handoff);
        self.views.begin_anew_with_older(slot, &handoff.peers, &self.entities);
        if !self.clock.is_open() {
            // The positions of all its peers, as seen from here. A frame of this tick may be made
            // for it yet.
            let (entities, scene) = (&mut self.entities, self.identity.scene());
            let ix = entities.body(slot).viewer as usize;
            self.views.bring_up(ix, entities, scene);
        }
    }

    /// What viewers are told of the entity at `slot`: its trajectory, or its place if it has none.
    fn place_and_trajectory(&self, slot: u32) -> (Option<Pos>, Option<Trajectory>) {
        match self.entities.moving(slot) {
            Some(track) => (None, Some(track.trajectory)),
            None => (Some(self.entities.body(slot).pos), None),
        }
    }

    pub(in crate::scene::region) fn restore_view(&mut self, slot: u32, handoff: &Handoff) {
        self.views.restore_viewer(
            slot,
            handoff,
            self.clock.tick(),
            &self.entities,
            self.identity.scene(),
        );
        let leaves_at = handoff.leaves_at().map(|at| (at, handoff.state.id));
        self.custody.disconnected.extend(leaves_at);
    }
}
