//! Entities that move from one region to another of the same process.
//!
//! The source decides when a tick is done: the entity's frame of that tick is made, its whole state
//! goes to the target, and a ghost stays. The target installs it at once, so that its negotiation
//! goes on, and makes frames for it from the next tick on: its client gets one frame per tick, the
//! last from the source and the next from the target.
//! What else is told meanwhile follows it: orders and negotiation are forwarded, a client's inputs
//! are sent again by its session when it hears of the new route.

use super::Region;
use super::bodies::{Ghost, NO_SLOT, Role};
use super::viewer::Seen;
use super::{Kind, Moved, Phase, scan};
use crate::scene::border::{Handoff, SeenState};
use crate::scene::effects::{Effect, Notice, Spawn};
use crate::scene::movement::Course;
use crate::scene::mutants::{self, Mutant};
use crate::scene::views::{PeerState, Registers};
use crate::scene::{EntityId, Epoch, Pos, RegionId, Seq, Tick, TickStamp};

/// For how long it is remembered where an entity went that left no ghost.
pub(super) const MOVED_TICKS: u64 = 100;

/// What is told of whom a player deals with, and of what its client was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// All of it, for another region, which is to tell again what may have been missed.
    ToTell,
    /// All of it, as it is.
    AsItIs,
    /// Nothing: it begins anew.
    Left,
}

/// Messages that may be passed on in one tick.
const MAX_PASSED_ON: u32 = 4_096;

impl Region {
    /// Hands off whoever has gone too far past the border, or has jumped away; but for those whose new owner is held back:
    /// they stay until there is room.
    pub(super) fn send_handoffs(&mut self, fx: &mut Vec<Effect>) {
        // One that was given up keeps nobody.
        let retired = self.remapped.retired.is_some();
        let margin = if retired { -1 } else { self.scene.spec.handoff_margin_cm };
        for slot in 0..self.bodies.hot.len() as u32 {
            let body = &self.bodies.hot[slot as usize];
            if !body.is_real() {
                continue;
            }
            let Role::Real(real) = &self.bodies.cold[slot as usize].role else { continue };
            let pos = body.pos;
            match real.bound_for {
                Some(bound) if self.holds_back(bound.region) => {}
                Some(bound) => self.hand_off(slot, bound.region, fx),
                None if self.rect.outside_by(pos) > margin => {
                    let owner = self.owner_of(self.bodies.cold[slot as usize].plane, pos);
                    if owner != self.id && !self.holds_back(owner) {
                        self.hand_off(slot, owner, fx);
                    }
                }
                None => {}
            }
        }
    }

    /// Hands over whoever stands on ground that is another region's by a new map, which counts after
    /// this tick.
    pub(super) fn hand_over(&mut self, after: Tick, fx: &mut Vec<Effect>) {
        let before = fx.len();
        // The new map leaves nobody behind.
        let held_back = std::mem::take(&mut self.held_back);
        self.send_handoffs(fx);
        self.held_back = held_back;
        for effect in &mut fx[before..] {
            if let Effect::Handoff(_, handoff) = effect {
                // Not before the receiver has changed over, too; it makes the next frame.
                (handoff.tick, handoff.by_map) = (after, true);
            }
        }
    }

    fn hand_off(&mut self, slot: u32, to: RegionId, fx: &mut Vec<Effect>) {
        let handoff = self.pack(slot);
        let here = self.scene.map.get(to).is_some();
        self.sign_off(slot, here.then_some(to));
        self.counts.reals -= 1;
        self.counts.handoffs += 1;
        let pos = handoff.state.pos;
        if self.inbound.knows(to) && self.rect.outside_by(pos) <= self.band_of(slot) {
            // Mirrored by the new owner from its next tick on.
            let orphan_since = Some(TickStamp::of(self.tick));
            let ghost = Ghost { owner: to, orphan_since };
            self.bodies.set_role(slot, Role::Ghost(ghost), handoff.epoch);
            self.bodies.set_plane(slot, handoff.state.plane);
            self.bodies.tracks.mirrored(slot);
        } else {
            self.bodies.remove(slot);
            let moved = Moved { region: to, epoch: handoff.epoch, since: self.tick };
            self.moved.insert(handoff.state.id, moved);
        }
        self.escrow.lend(self.tick, to, &handoff);
        fx.push(Effect::Handoff(to, Box::new(handoff)));
    }

    /// Where an entity lives that does not live here, as far as is known: its ghost's owner, or
    /// where it was handed to of late.
    pub(super) fn whereabouts(&self, id: EntityId) -> Option<RegionId> {
        if self.is_dormant(id) {
            // It sleeps here, whatever its owner before has said of it: that one sends whoever asks for it here.
            return None;
        }
        match self.bodies.slot(id).map(|s| &self.bodies.cold[s as usize].role) {
            Some(Role::Ghost(ghost)) => Some(ghost.owner),
            Some(_) => None,
            None => self.moved.get(&id).map(|m| m.region).filter(|r| *r != self.id),
        }
    }

    /// Whether one more message may be passed on in this tick to where an entity lives by now. Two regions each of which
    /// believes that it lives in the other, since both have died, would pass it to and fro for ever. Beyond it
    /// messages are lost: sessions and players say theirs again, the server's logic does not.
    pub(super) fn may_pass_on(&mut self) -> bool {
        self.passed_on += 1;
        if self.passed_on == MAX_PASSED_ON {
            crate::log_limited!(at self.log_ms(); warn, region = %self.id, "too much is for entities that are not here; what follows in this tick is lost");
        }
        self.passed_on < MAX_PASSED_ON
    }

    /// Whether an entity was here and has gone for good.
    pub(super) fn has_left(&self, id: EntityId) -> bool {
        self.moved.get(&id).is_some_and(|m| m.region == self.id)
    }

    /// Whether it is known what became of an entity that was here.
    pub(super) fn knows_moved(&self, id: EntityId) -> bool {
        self.moved.contains_key(&id)
    }

    /// Forgets where entities went long ago, for whom nothing can be under way any more.
    fn forget_moved(&mut self) {
        let now = self.tick.0;
        self.moved.retain(|_, m| m.since.0.saturating_add(MOVED_TICKS) > now);
        let old = |since: &mut Option<Tick>| {
            since.get_or_insert(self.tick).0.saturating_add(MOVED_TICKS) <= now
        };
        self.unanswered.retain(|_, (_, since)| !old(since));
    }

    fn pack(&mut self, slot: u32) -> Handoff {
        let mut handoff = self.describe(slot, Past::ToTell);
        let bound = self.bodies.real_mut(slot).and_then(|real| real.bound_for);
        handoff.jumped = bound.is_some();
        if !mutants::has(Mutant::SameEpoch) {
            handoff.epoch = handoff.epoch.next();
        }
        forget(&mut handoff);
        if let Some(bound) = bound {
            handoff.state.plane = bound.plane;
        }
        self.take_viewer(slot);
        if let Some(real) = self.bodies.real_mut(slot) {
            real.mover = None;
        }
        handoff
    }

    /// An entity that lives here, with its whole state, under its present epoch.
    pub(super) fn describe(&self, slot: u32, past: Past) -> Handoff {
        let (body, cold) = (&self.bodies.hot[slot as usize], &self.bodies.cold[slot as usize]);
        let viewer = self.viewers.get(body.viewer as usize);
        let mover = match &cold.role {
            Role::Real(real) => real.mover.clone(),
            Role::Ghost(_) | Role::Free => None,
        };
        let mut handoff = Handoff {
            from: self.id,
            from_epoch: self.epoch,
            state: Spawn {
                id: body.id,
                kind: body.kind,
                plane: cold.plane,
                pos: body.pos,
                range: self.bodies.places[slot as usize].range(),
                look: cold.look.clone(),
                session: viewer.and_then(|v| v.session),
                bonds: Vec::new(),
            },
            ties: cold.ties.clone(),
            epoch: cold.epoch,
            last_applied: viewer.map_or(Seq(0), |v| v.last_applied),
            tick: self.tick,
            peers: Vec::new(),
            view_counter: viewer.map_or(0, |v| v.registers.counter),
            seen: Vec::new(),
            gone: Vec::new(),
            refused: Vec::new(),
            mover,
            held: viewer.is_some_and(|v| v.held),
            resync: viewer.is_some_and(|v| v.resync),
            jumped: false,
            absent_until: viewer.and_then(|v| v.absent_until),
            scene: Some(self.scene.id),
            by_map: false,
            since_ms: viewer.map_or(0, |v| v.since_ms),
        };
        if let Some(viewer) = viewer.filter(|_| past != Past::Left) {
            let sent = |slot, id, sent: TickStamp| match past {
                Past::ToTell => self.told_of(slot, id, sent),
                Past::AsItIs | Past::Left => sent.near(self.tick),
            };
            let peers = 0..viewer.registers.peers().len();
            let peer = |ix| {
                let (p, state) =
                    (&viewer.registers.peers()[ix], viewer.registers.state(ix, self.tick));
                let sent = sent(p.slot, state.id, p.sent);
                PeerState { sent, epoch: self.epoch_of(p.slot, state.id), ..state }
            };
            handoff.peers = peers.map(peer).collect();
            let shown = viewer.seen.iter().filter(|s| s.shown);
            let seen = shown.map(|s| SeenState { id: s.id, sent: sent(s.slot, s.id, s.sent) });
            handoff.seen = seen.collect();
            handoff.gone.clone_from(&viewer.gone);
            handoff.refused.clone_from(&viewer.refused);
        }
        handoff
    }

    /// The epoch of who is at `slot`; 0 when that is somebody else.
    fn epoch_of(&self, slot: u32, id: EntityId) -> Epoch {
        let known = self.bodies.hot.get(slot as usize).is_some_and(|b| b.id == id);
        if known { self.bodies.cold[slot as usize].epoch } else { Epoch(0) }
    }

    /// As of which tick of its owner's a client knows something that it was told of at `sent`: earlier
    /// for a ghost whose owner's word was late, so that the next region tells what was missed.
    fn told_of(&self, slot: u32, id: EntityId, sent: TickStamp) -> Tick {
        let sent = sent.near(self.tick);
        let known = self.bodies.hot.get(slot as usize).is_some_and(|b| b.id == id);
        match known.then(|| &self.bodies.cold[slot as usize].role) {
            Some(Role::Ghost(ghost)) => self.inbound.sound(ghost.owner).unwrap_or(sent).min(sent),
            _ => sent,
        }
    }

    /// Whether an entity comes from a region of this scene.
    pub(super) fn is_of_this_scene(&self, handoff: &Handoff) -> bool {
        let known = || self.scene.map.get(handoff.from).is_some();
        handoff.scene.map_or_else(known, |scene| scene == self.scene.id)
    }

    /// Whether everything of the handoff's last tick has been applied here too. Ticks of another
    /// scene say nothing.
    fn is_due(&self, handoff: &Handoff) -> bool {
        if handoff.by_map {
            return handoff.tick < self.tick;
        }
        let over = match self.phase {
            Phase::Open => handoff.tick < self.tick,
            Phase::Settling | Phase::Closed => handoff.tick <= self.tick,
        };
        over || !self.is_of_this_scene(handoff)
    }

    /// Takes an entity that comes to live here: at once, or, where what its old owner said of its
    /// last tick is still to be applied here, right after that. Its session is told in either case,
    /// so that its next inputs come here.
    pub(super) fn receive(&mut self, mut handoff: Handoff, fx: &mut Vec<Effect>) {
        self.adopt(&mut handoff);
        if self.is_overtaken(&handoff) {
            tracing::info!(region = %self.id, from = %handoff.from, entity = %handoff.state.id, epoch = %handoff.epoch, "a handoff came late");
            return;
        }
        self.answer_late(&handoff, fx);
        if let Some(session) = handoff.state.session {
            let route = Notice::Route {
                scene: self.scene.id,
                region: self.id,
                epoch: handoff.epoch,
                last_applied: handoff.last_applied,
                tick: self.first_frame(&handoff),
                plane: handoff.state.plane,
                pos: handoff.state.pos,
                own: handoff.mover.as_ref().map(|mover| Box::new(mover.own(self.now()))),
                arrived: handoff.jumped,
            };
            fx.push(Effect::Notice(session, route));
        }
        if !self.is_due(&handoff) {
            return self.incoming.push(handoff);
        }
        self.install(handoff);
        if self.phase == Phase::Closed {
            self.read_mail(fx);
        }
    }

    /// The first tick of which this region makes a frame for who is handed over.
    fn first_frame(&self, handoff: &Handoff) -> Tick {
        self.next_frame().max(handoff.tick.next())
    }

    /// The tick of which frames are made next: what changes now is told in them.
    pub(super) fn next_frame(&self) -> Tick {
        if self.phase == Phase::Closed { self.tick.next() } else { self.tick }
    }

    /// Installs who has come and was not due yet.
    pub(super) fn install_incoming(&mut self) {
        self.forget_moved();
        for handoff in std::mem::take(&mut self.incoming) {
            if self.is_due(&handoff) {
                self.install(handoff);
            } else {
                self.incoming.push(handoff);
            }
        }
    }

    /// Whether the entity has come but is not installed yet.
    pub(super) fn is_incoming(&self, id: EntityId) -> bool {
        self.incoming.iter().any(|h| h.state.id == id)
    }

    /// Whether what is known here of an entity is no older than a handoff that brings it: a link that was cut, or the death of
    /// whoever it was sent to first, has brought it late.
    fn is_overtaken(&self, handoff: &Handoff) -> bool {
        let Handoff { epoch, state: Spawn { id, .. }, .. } = handoff;
        let lives = self.bodies.slot(*id).is_some_and(|slot| {
            let cold = &self.bodies.cold[slot as usize];
            cold.epoch > *epoch || (cold.epoch == *epoch && matches!(cold.role, Role::Real(_)))
        });
        // By its checkpoint the region has had it, and knows what it has done since.
        let sleeps = self.asleep(*id).is_some_and(|known| known.epoch >= *epoch);
        // It was here since and has gone on, or has left for good.
        let has_gone_on = self.moved.get(id).is_some_and(|moved| {
            moved.epoch > *epoch || (moved.epoch == *epoch && moved.region == self.id)
        });
        // It went on as a ghost, which a checkpoint does not know.
        let was_lent =
            self.recovering.is_some() && self.claim(*id).is_some_and(|c| c.epoch > *epoch);
        if mutants::has(Mutant::HandedTwice) {
            return lives;
        }
        lives || sleeps || was_lent || (has_gone_on && !mutants::has(Mutant::LateHandoff))
    }

    fn install(&mut self, handoff: Handoff) {
        let id = handoff.state.id;
        self.still = false;
        // What its old owner said of it while it was a ghost here comes first.
        self.catch_up(Tick(handoff.tick.0.min(self.tick.0.saturating_sub(1))));
        let known = self.bodies.slot(id);
        if self.is_overtaken(&handoff) || !self.bodies.has_kind(handoff.state.kind) {
            crate::log_limited!(at self.log_ms(); error, region = %self.id, from = %handoff.from, entity = %id, epoch = %handoff.epoch, "a late handoff, or one of an unknown kind, was refused");
            return;
        }
        self.moved.remove(&id);
        if self.is_of_this_scene(&handoff) {
            let acts = self.first_frame(&handoff);
            self.counts.arrivals += 1;
            self.counts.late_arrivals += u64::from(acts > handoff.tick.next());
        }
        self.escrow.note(self.tick, id, handoff.epoch);
        self.wake(id);
        let older = |s| self.bodies.cold[s as usize].epoch.is_of_a_life_before(handoff.epoch);
        if known.is_some_and(older) {
            self.mail.reborn.insert(id);
        }
        let known_at = known.map(|s| self.place_and_course(s));
        if let Some(slot) = self.real_slot(id) {
            crate::log_limited!(at self.log_ms(); error, region = %self.id, from = %handoff.from, entity = %id, "an entity comes that lives here under a lower epoch; the newer one stays");
            self.displace(slot, self.id);
            self.take_viewer(slot);
            self.counts.reals -= 1;
        }
        let slot = self.place_real(&handoff.state, handoff.ties.clone(), handoff.epoch);
        if let Some(mover) = &handoff.mover {
            self.give_mover(slot, Some(mover.clone()));
        }
        self.expect_ends(slot);
        let everybody = self.outbound.everybody();
        if let Some(real) = self.bodies.real_mut(slot) {
            // Any neighbour may have a ghost of it from its old owner: tell them all how it stands.
            (real.mirrors, real.restate) = (everybody, true);
        }
        if known_at != Some(self.place_and_course(slot)) || handoff.jumped {
            self.bodies.hot[slot as usize].changed = TickStamp::of(self.next_frame());
        }
        if handoff.state.kind == Kind::PLAYER {
            self.restore_viewer(slot, &handoff);
            self.begin_anew_with_older(slot, &handoff.peers);
            if self.phase != Phase::Open {
                // Where all those are with whom it deals, as seen from here. A frame of this tick may be
                // made for it yet.
                self.evaluate(self.bodies.hot[slot as usize].viewer as usize, true);
            }
        }
    }

    /// What viewers are told of who is at `slot`: its course, or where it has none its place.
    fn place_and_course(&self, slot: u32) -> (Option<Pos>, Option<Course>) {
        match self.bodies.tracks.get(slot) {
            Some(track) => (None, Some(track.course)),
            None => (Some(self.bodies.hot[slot as usize].pos), None),
        }
    }

    pub(super) fn restore_viewer(&mut self, slot: u32, handoff: &Handoff) {
        let Region { bodies, viewers, scene, rules, tick, .. } = self;
        let (body, me) = (&bodies.hot[slot as usize], &bodies.places[slot as usize]);
        let Some(viewer) = viewers.get_mut(body.viewer as usize) else { return };
        let registers = &mut viewer.registers;
        *registers =
            Registers::restored(body.id, &handoff.peers, handoff.view_counter, NO_SLOT, *tick);
        for ix in 0..registers.peers().len() {
            // Others may speak to it before its first evaluation here, which drops who is out of
            // range; until then these count as the worst.
            if !scan::refresh(bodies, &scene.spec.visibility, rules, slot, me, registers, ix) {
                registers.peers_mut()[ix].dist_cm = u32::MAX;
            }
        }
        viewer.seen = handoff
            .seen
            .iter()
            .map(|s| Seen {
                id: s.id,
                slot: NO_SLOT,
                sent: TickStamp::heard(s.sent, *tick),
                ring: 0,
                shown: true,
            })
            .collect();
        viewer.gone.clone_from(&handoff.gone);
        viewer.refused.clone_from(&handoff.refused);
        viewer.last_applied = handoff.last_applied;
        let told = if mutants::has(Mutant::TwoFrames) { Tick(0) } else { handoff.tick.next() };
        viewer.frames_from = told;
        viewer.came_from = Some(handoff.from);
        viewer.reach_ends = handoff.ties.reach.is_some();
        (viewer.held, viewer.resync) = (handoff.held, handoff.resync);
        // A level: to be told twice does no harm.
        viewer.own_due = true;
        viewer.absent_until = handoff.absent_until;
        viewer.since_ms = handoff.since_ms;
        self.absent.extend(handoff.absent_until.map(|until| (until, handoff.state.id)));
    }
}

/// What a handoff may not forget.
fn forget(handoff: &mut Handoff) {
    if mutants::has(Mutant::NumberLost) {
        handoff.last_applied = Seq(0);
    }
    if mutants::has(Mutant::PeersLost) {
        handoff.peers.clear();
    }
    if mutants::has(Mutant::ShownLost) {
        handoff.peers.iter_mut().for_each(|peer| peer.shown = false);
    }
}
