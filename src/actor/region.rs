//! The region's shell: a clock, mailboxes, and the one place where a region's effects become
//! deliveries.
//!
//! | what | when the receiver's mailbox is full |
//! |---|---|
//! | frames | lost; the region is told to resync that client |
//! | everything else | waits, in order, within the bounds of `outbox`, and is sent again every tick; lost, and said so, when the region is gone |
//!
//! Whoever's session has ended without a word is absent, and leaves unless it is back in time: a frame that finds
//! nobody says so, and those that get no frames are looked after now and then.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use actix::fut::wrap_future;
use actix::prelude::*;
use actix_rt::time::sleep_until;
use rustc_hash::FxHashMap;

use super::address::{AwayError, AwayGateway, SessionAddress};
use super::departing::Depart;
use super::directory::{Directory, NotSent};
use super::messages::{
    DecideMap, Delivery, Halt, Inspect, InspectEntity, ProposeMap, RunTick, ToRegion,
};
use super::metrics::RegionMetrics;
use super::moving::Passer;
use super::outbox::{Notices, Outbox};
use super::seldom::Seldom;
use crate::clock;
use crate::scene::inspect::{RegionSnapshot, Resident};
use crate::scene::messages::{Effect, FrameBatch, Input, Notice};
use crate::scene::mutants::{self, Mutant};
use crate::scene::region::{NotProposed, PATIENCE};
use crate::scene::{EntityId, Region, RegionId, Scene, SceneId, SessionId, Tick};
use crate::wire::EncodedBatch;

/// Messages that a region's mailbox holds.
pub const MAILBOX: usize = 16_384;

/// Batches whose memory is kept for another tick.
const SPARE_BATCHES: usize = 4;

/// Messages that wait while the region may not act; beyond it those are lost that are told anew.
const MAX_WITHHELD: usize = MAILBOX;

/// Ticks between two looks for sessions that are gone without a word. A frame finds that out at once;
/// a client that is held gets none.
const SWEEP_TICKS: u64 = 32;

/// Who says when a tick begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The directory's clock.
    Real,
    /// [`RunTick`]: for tests and benchmarks.
    Manual,
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) entity: EntityId,
    pub(super) to: SessionAddress,
}

/// A region's actor.
pub struct RegionActor {
    pub(super) region: Region,
    tick_ms: u32,
    clock: Clock,
    pub(super) directory: Arc<Directory>,
    metrics: Arc<RegionMetrics>,
    pub(super) clients: FxHashMap<SessionId, Client>,
    pub(super) outbox: FxHashMap<RegionId, Outbox>,
    pub(super) notices: Notices,
    /// Sessions that have asked for a player who is not known here, and were told so. They may have asked by
    /// way of others, too.
    answered: Vec<SessionId>,
    batches: VecDeque<Arc<EncodedBatch>>,
    pub(super) fx: Vec<Effect>,
    /// Kept for its memory.
    spare: Vec<Effect>,
    /// What was said while the region may not act.
    pub(super) withheld: Vec<ToRegion>,
    /// It is to leave as soon as it may.
    pub(super) departing: Option<Depart>,
    /// It has left.
    pub(super) passer: Option<Passer>,
    /// Sessions whose frame was lost in this delivery: if their entity is handed off in it too, the
    /// new owner must resync them, before it hears of it by any other way.
    lost: Vec<SessionId>,
    /// The newest tick that was asked for.
    due: Tick,
    /// Work done so far for the tick that is open.
    work: Duration,
    counted: bool,
}

/// A running region.
#[derive(Debug, Clone)]
pub struct RegionRef {
    /// Its scene.
    pub scene: SceneId,
    /// Its name.
    pub region: RegionId,
    /// Its mailbox.
    pub addr: Addr<RegionActor>,
    /// Its figures.
    pub metrics: Arc<RegionMetrics>,
}

/// Starts every region of the directory's scenes, each as an actor of its own, on the arbiters in
/// turn, and tells the directory their addresses.
pub fn start_regions(
    directory: &Arc<Directory>,
    arbiters: &[ArbiterHandle],
    clock: Clock,
) -> Vec<RegionRef> {
    let empty = |scene: &Arc<Scene>, id| Some((Region::new(scene.clone(), id)?, Vec::new()));
    start_regions_as(directory, arbiters, clock, empty)
}

/// The same with regions that `begin` makes: each, and what it has to say at once. What it does not make does not
/// run.
pub fn start_regions_as(
    directory: &Arc<Directory>,
    arbiters: &[ArbiterHandle],
    clock: Clock,
    mut begin: impl FnMut(&Arc<Scene>, RegionId) -> Option<(Region, Vec<Effect>)>,
) -> Vec<RegionRef> {
    let mut started = Vec::new();
    let scenes: Vec<_> = directory.scenes().collect();
    for scene in scenes {
        for entry in &scene.map.regions {
            let Some((region, fx)) = begin(&scene, entry.id) else { continue };
            let metrics = Arc::new(RegionMetrics::default());
            let actor = RegionActor::new(region, scene.tick_ms, clock, directory, &metrics);
            let actor = actor.saying(fx);
            let addr = match arbiters.is_empty() {
                true => actor.start(),
                false => {
                    let arbiter = &arbiters[started.len() % arbiters.len()];
                    RegionActor::start_in_arbiter(arbiter, move |_| actor)
                }
            };
            started.push(RegionRef { scene: scene.id, region: entry.id, addr, metrics });
        }
    }
    let addresses = started.iter().map(|r| (r.region, r.addr.clone().recipient()));
    directory.set_regions(addresses.collect());
    started
}

impl RegionActor {
    /// An actor for `region`.
    pub fn new(
        region: Region,
        tick_ms: u32,
        clock: Clock,
        directory: &Arc<Directory>,
        metrics: &Arc<RegionMetrics>,
    ) -> RegionActor {
        RegionActor {
            region,
            tick_ms,
            clock,
            directory: directory.clone(),
            metrics: metrics.clone(),
            clients: FxHashMap::default(),
            outbox: FxHashMap::default(),
            notices: Notices::default(),
            answered: Vec::new(),
            batches: VecDeque::new(),
            fx: Vec::new(),
            spare: Vec::new(),
            withheld: Vec::new(),
            departing: None,
            passer: None,
            lost: Vec::new(),
            due: Tick(0),
            work: Duration::ZERO,
            counted: true,
        }
    }

    /// The same, with what the region has to say before its first tick.
    pub fn saying(mut self, fx: Vec<Effect>) -> RegionActor {
        self.fx = fx;
        self
    }

    /// The same, to sessions of players that sleep until these present them, each of which `find` finds.
    pub fn reaching(mut self, find: impl Fn(SessionId) -> Option<SessionAddress>) -> RegionActor {
        for (entity, session) in self.region.sleeping() {
            if let Some(to) = find(session) {
                self.clients.insert(session, Client { entity, to });
            }
        }
        self
    }

    fn wake_at_next_tick(&self, ctx: &mut Context<Self>) {
        let next = self.directory.tick_now(self.tick_ms).next();
        let at = self.directory.begin_of(next, self.tick_ms);
        let comes = wrap_future::<_, Self>(Seldom::new(sleep_until(at)));
        ctx.spawn(comes.map(|(), me, ctx| {
            if me.passer.is_some() {
                return;
            }
            let now = me.directory.tick_now(me.tick_ms);
            me.run_tick(now);
            me.depart_if_asked(ctx);
            me.wake_at_next_tick(ctx);
        }));
    }

    fn run_tick(&mut self, now: Tick) {
        self.due = self.due.max(now);
        if !self.directory.may_act() {
            return;
        }
        for msg in std::mem::take(&mut self.withheld) {
            self.take(msg);
        }
        let last = self.region.current_tick();
        let rising = self.region.is_rising();
        let waits = !self.region.is_closed() && !rising;
        if now <= last || (waits && now.0 < last.0 + PATIENCE) {
            // Not due yet, or the last one waits for a neighbour, who may wait for this one.
            return self.empty_outboxes();
        }
        let started = clock::now();
        if last.0 > 0 && !rising {
            self.metrics.skipped_ticks.fetch_add(now.0 - last.0 - 1, Relaxed);
        }
        self.count_tick();
        (self.counted, self.work) = (false, Duration::ZERO);
        self.empty_outboxes();
        if now.0.is_multiple_of(SWEEP_TICKS) {
            self.sweep_clients();
        }
        self.forget_answered();
        self.region.tick(now, &mut self.fx);
        self.deliver();
        if let Some(witness) = self.directory.witness() {
            witness.acted(&self.region);
        }
        self.work += clock::now() - started;
        if self.region.is_closed() {
            self.count_tick();
        }
    }

    /// Counts the tick that is over, once.
    fn count_tick(&mut self) {
        if std::mem::replace(&mut self.counted, true) {
            return;
        }
        self.bring_checkpoint();
        let (m, c) = (&self.metrics, self.region.counts());
        m.tick_took(self.work.as_micros() as u64);
        m.reals.store(c.reals, Relaxed);
        m.players.store(c.players, Relaxed);
        m.ghosts.store(c.ghosts, Relaxed);
        m.handoffs.store(c.handoffs, Relaxed);
        m.frames.store(c.frames, Relaxed);
        m.updates.store(c.updates, Relaxed);
        m.view_messages.store(c.view_messages, Relaxed);
        m.forced_closes.store(c.forced_closes, Relaxed);
        m.acts_dropped.store(c.acts_dropped, Relaxed);
        m.border_ticks.store(c.border_ticks, Relaxed);
        m.stale_border_ticks.store(c.stale_border_ticks, Relaxed);
        m.stalest_ticks.store(c.stalest_ticks, Relaxed);
        m.arrivals.store(c.arrivals, Relaxed);
        m.late_arrivals.store(c.late_arrivals, Relaxed);
        m.implausible.store(c.implausible, Relaxed);
        m.inputs_refused.store(c.inputs_refused, Relaxed);
        m.letters_lost.store(c.letters_lost, Relaxed);
        m.over.store(self.region.is_over(), Relaxed);
        for (metric, count) in m.moves_refused.iter().zip(c.moves_refused) {
            metric.store(count, Relaxed);
        }
    }

    /// Brings a checkpoint to the archive when one is due; regions take turns.
    fn bring_checkpoint(&mut self) {
        let Some(archive) = self.directory.archive() else { return };
        let turn = self.region.current_tick().0 + u64::from(self.region.id().0);
        if !turn.is_multiple_of(archive.every_ticks()) {
            return;
        }
        if let Some(oldest) = archive.oldest() {
            self.region.keep_notes_since(oldest);
        }
        if let Some(snapshot) = self.region.checkpoint() {
            archive.keep(snapshot);
        }
    }

    fn take(&mut self, msg: ToRegion) {
        let Some(msg) = self.has_left(msg) else { return };
        if !self.directory.may_act() {
            return self.withhold(msg);
        }
        let entering = match &msg.input {
            Input::Enter(spawn) => Some((spawn.session, spawn.id)),
            Input::Handoff(handoff) => Some((handoff.state.session, handoff.state.id)),
            Input::Present(presented) => Some((Some(presented.session), presented.id)),
            Input::Resume(resume) => Some((Some(resume.session), resume.id)),
            _ => None,
        };
        let homeless = match (entering, &msg.client, &msg.input) {
            (Some((Some(session), id)), None, Input::Handoff(_)) => Some((session, id)),
            _ => None,
        };
        if let (Some((Some(session), entity)), Some(to)) = (entering, msg.client) {
            self.answered.retain(|answered| *answered != session);
            self.clients.insert(session, Client { entity, to });
        }
        // What is done beside the tick is not counted.
        let started = (!self.counted).then(clock::now);
        let was_held = self.region.is_held();
        self.region.handle(msg.input, &mut self.fx);
        if let Some((session, id)) = homeless.filter(|_| self.directory.process() > 0) {
            // Its gateway is no more: nobody would ever say that its session is gone.
            self.is_gone(session, id);
        }
        self.deliver();
        if let Some(started) = started {
            self.work += clock::now() - started;
            if self.region.is_closed() {
                self.count_tick();
                if self.departing.is_none() {
                    self.catch_up();
                }
            }
        }
        self.go_on_if(was_held);
    }

    /// The first tick by a new map begins as soon as it can.
    fn go_on_if(&mut self, was_held: bool) {
        if was_held && !self.region.is_held() {
            self.catch_up();
        }
    }

    /// The lease may yet prove to have outlived the time in which its store could not be reached: what
    /// was said meanwhile waits, for as long as that can take.
    fn withhold(&mut self, msg: ToRegion) {
        let told_anew = !is_kept(&msg.input) || matches!(msg.input, Input::Client { .. });
        if self.withheld.len() < MAX_WITHHELD || !told_anew {
            self.withheld.push(msg);
        }
    }

    /// A tick that waited for a late neighbour beyond its time is followed by the next one at once.
    fn catch_up(&mut self) {
        let now = match self.clock {
            Clock::Real => self.directory.tick_now(self.tick_ms),
            Clock::Manual => self.due,
        };
        self.run_tick(now);
    }

    /// Delivers every effect, and those that come of deliveries that failed.
    fn deliver(&mut self) {
        while !self.fx.is_empty() {
            let mut effects = std::mem::replace(&mut self.fx, std::mem::take(&mut self.spare));
            for effect in effects.drain(..) {
                match effect {
                    Effect::Frames(batch) => self.deliver_frames(batch),
                    Effect::Notice(session, notice) => self.deliver_notice(session, notice),
                    Effect::Border(to, batch) => self.deliver_border(to, Input::Border(batch)),
                    Effect::Settle(to, batch) => {
                        self.must_arrive(to, Input::Settle(batch), None);
                    }
                    Effect::View(to, msg) => self.must_arrive(to, Input::View(msg), None),
                    Effect::Forward(to, input) => {
                        let client = match &*input {
                            Input::Present(p) => self.clients.remove(&p.session).map(|c| c.to),
                            Input::Resume(r) => self.clients.remove(&r.session).map(|c| c.to),
                            _ => None,
                        };
                        self.must_arrive(to, *input, client);
                    }
                    Effect::Handoff(to, mut handoff) => {
                        let session = handoff.state.session;
                        handoff.resync |= session.is_some_and(|s| self.lost.contains(&s));
                        handoff.jumped |= session.is_some_and(|s| self.take_arrival(s));
                        let client = session.and_then(|s| self.clients.remove(&s));
                        self.must_arrive(to, Input::Handoff(handoff), client.map(|c| c.to));
                    }
                }
            }
            self.spare = effects;
        }
        self.lost.clear();
    }

    fn deliver_frames(&mut self, batch: FrameBatch) {
        self.deliver_frames_away(&batch);
        let here = |c: &Client| matches!(c.to, SessionAddress::Here(_));
        if !batch.sessions.iter().any(|s| self.clients.get(&s.session).is_some_and(here)) {
            return self.region.recycle(batch);
        }
        let mut encoded = match self.batches.front_mut().and_then(Arc::get_mut) {
            Some(_) => self.batches.pop_front().unwrap_or_default(),
            None => Arc::default(),
        };
        let Some(inner) = Arc::get_mut(&mut encoded) else { return };
        let old = inner.replace(batch);
        self.region.recycle(old);
        for (i, frame) in encoded.batch().sessions.iter().enumerate() {
            let Some(Client { entity, to: SessionAddress::Here(to) }) =
                self.clients.get(&frame.session)
            else {
                continue;
            };
            match to.try_send(Delivery::Frame(encoded.clone(), i as u32)) {
                Ok(()) => {}
                Err(SendError::Full(_)) => {
                    self.metrics.frames_lost.fetch_add(1, Relaxed);
                    self.lost.push(frame.session);
                    self.region.handle(Input::Resync(*entity), &mut self.fx);
                }
                Err(SendError::Closed(_)) => {
                    let (id, session, ms) = (*entity, frame.session, self.directory.linger_ms());
                    self.region.handle(Input::Absent { id, session, ms }, &mut self.fx);
                }
            }
        }
        if self.batches.len() < SPARE_BATCHES {
            self.batches.push_back(encoded);
        }
    }

    /// Gives each gateway of another process the frames of its sessions, in one piece.
    fn deliver_frames_away(&mut self, batch: &FrameBatch) {
        let mut gateways: Vec<(Arc<dyn AwayGateway>, Vec<u32>)> = Vec::new();
        for (i, frame) in batch.sessions.iter().enumerate() {
            let Some(Client { to: SessionAddress::Away(gateway), .. }) =
                self.clients.get(&frame.session)
            else {
                continue;
            };
            let process = gateway.process();
            match gateways.iter_mut().find(|(g, _)| g.process() == process) {
                Some((_, which)) => which.push(i as u32),
                None => gateways.push((gateway.clone(), vec![i as u32])),
            }
        }
        for (gateway, which) in gateways {
            match gateway.frames(self.region.id(), batch, &which) {
                Ok(()) => {}
                Err(AwayError::Full) => {
                    self.metrics.frames_lost.fetch_add(which.len() as u64, Relaxed);
                    for i in which {
                        let session = batch.sessions[i as usize].session;
                        self.lost.push(session);
                        if let Some(client) = self.clients.get(&session) {
                            self.region.handle(Input::Resync(client.entity), &mut self.fx);
                        }
                    }
                }
                // What becomes of its sessions is found out by the sweep.
                Err(AwayError::Closed) => {}
            }
        }
    }

    /// Whoever's session is gone is absent.
    fn sweep_clients(&mut self) {
        let gone = self.clients.iter().filter(|(s, c)| !c.to.connected(**s));
        let gone: Vec<_> = gone.map(|(session, client)| (*session, client.entity)).collect();
        gone.into_iter().for_each(|(session, id)| self.is_gone(session, id));
        self.region.ask_for_sleepers(&mut self.fx);
        // One that came while its gateway was not known here, or whose gateway had died by then.
        let unknown = self.region.attended().filter(|(s, _)| !self.clients.contains_key(s));
        for (session, entity) in unknown.collect::<Vec<_>>() {
            match self.directory.find_session(session) {
                Some(Some(to)) => {
                    self.clients.insert(session, Client { entity, to });
                    self.region.handle(Input::Resync(entity), &mut self.fx);
                }
                Some(None) => self.is_gone(session, entity),
                None => {}
            }
        }
    }

    /// Who was told that its player is not here has no business here.
    fn forget_answered(&mut self) {
        for session in std::mem::take(&mut self.answered) {
            let entity = self.clients.get(&session).map(|client| client.entity);
            let found = entity.and_then(|id| self.region.find(id)).is_some_and(|e| !e.ghost);
            if !found {
                self.clients.remove(&session);
            }
        }
    }

    /// A session has ended without a word.
    pub(super) fn is_gone(&mut self, session: SessionId, id: EntityId) {
        let ms = self.directory.linger_ms();
        self.region.handle(Input::Absent { id, session, ms }, &mut self.fx);
    }

    fn deliver_notice(&mut self, session: SessionId, notice: Notice) {
        let Some(client) = self.clients.get(&session) else {
            // Whoever was handed back to a region after a death has a session that this one has not heard of.
            if matches!(notice, Notice::Present { .. })
                && let Some(Some(to)) = self.directory.find_session(session)
                && let Err(SendError::Full(notice)) = to.notice(session, notice)
            {
                self.tell_later(session, notice);
            }
            return;
        };
        let last = matches!(notice, Notice::Left { .. } | Notice::Refused(_) | Notice::Replaced);
        if matches!(notice, Notice::Nowhere { .. }) {
            self.answered.push(session);
        }
        match client.to.notice(session, notice) {
            Err(SendError::Full(notice)) => self.tell_later(session, notice),
            // Sent; or the session is gone and its entity was told to leave.
            _ if last => drop(self.clients.remove(&session)),
            _ => {}
        }
    }

    /// News of a session whose entity goes to another region need not wait here any more: that one
    /// tells where the entity is. Whether the session was still to hear that it has arrived by a jump.
    fn take_arrival(&mut self, session: SessionId) -> bool {
        self.notices.take_arrival(session)
    }

    /// Ghosts that a full mailbox does not take wait with what else is for that region; newer ones
    /// replace them there.
    fn deliver_border(&mut self, to: RegionId, input: Input) {
        if self.outbox.entry(to).or_default().drop_ghosts() {
            self.metrics.borders_lost.fetch_add(1, Relaxed);
            self.region.handle(Input::BorderLost(to), &mut self.fx);
        }
        self.must_arrive(to, input, None);
    }

    fn must_arrive(&mut self, to: RegionId, input: Input, client: Option<SessionAddress>) {
        let lost = self.outbox.entry(to).or_default().push(ToRegion { input, client });
        self.metrics.outbox_lost.fetch_add(lost, Relaxed);
        self.empty_outbox(to);
    }

    /// Keeps news for a session that takes none now. Where too many wait the session counts as gone: its client comes
    /// back and is told everything.
    pub(super) fn tell_later(&mut self, session: SessionId, notice: Notice) {
        if self.notices.push(session, notice).is_err() {
            self.metrics.notices_lost.fetch_add(1, Relaxed);
            if let Some(entity) = self.clients.get(&session).map(|client| client.entity) {
                self.is_gone(session, entity);
            }
        }
    }

    fn empty_outbox(&mut self, to: RegionId) {
        let Some(waiting) = self.outbox.get_mut(&to) else { return };
        while let Some(msg) = waiting.pop() {
            match self.directory.send(to, msg) {
                Ok(()) => {}
                Err(NotSent::Full(msg)) => {
                    waiting.give_back(msg);
                    break;
                }
                Err(NotSent::Closed(msg) | NotSent::Gone(msg)) => lose(to, msg),
                Err(NotSent::Nowhere(msg)) => {
                    waiting.give_back(msg);
                    // What regions only say to each other in a tick is said anew to the next owner.
                    let lost = mutants::has(Mutant::NowhereLost);
                    waiting.retain(|input| is_kept(input) && !lost);
                    break;
                }
            }
        }
        let held = self.region.holds_back(to);
        if waiting.is_crowded(held) != held {
            self.region.hold_back(to, !held);
        }
    }

    pub(super) fn empty_outboxes(&mut self) {
        let full: Vec<_> =
            self.outbox.iter().filter(|(_, q)| !q.is_empty()).map(|(to, _)| *to).collect();
        full.into_iter().for_each(|to| self.empty_outbox(to));
        for (session, notice) in self.notices.take() {
            self.deliver_notice(session, notice);
        }
    }
}

/// Whether a message outlives the owner of the region that it is for.
fn is_kept(input: &Input) -> bool {
    !matches!(input, Input::Border(_) | Input::BorderLost(_) | Input::Settle(_) | Input::View(_))
}

/// What is for a region that is no more is lost; the session of a player on its way there is told.
fn lose(to: RegionId, msg: ToRegion) {
    crate::log_limited!(error, %to, "a region is gone; what was for it is lost");
    if let (Input::Handoff(handoff), Some(client)) = (&msg.input, msg.client)
        && let Some(session) = handoff.state.session
        && let left = (Notice::Left { tick: handoff.tick, epoch: handoff.epoch })
        && client.notice(session, left).is_err()
    {
        crate::log_limited!(warn, %to, entity = %handoff.state.id, "its session could not be told");
    }
}

impl Actor for RegionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        self.empty_outboxes();
        self.deliver();
        if self.clock == Clock::Real {
            self.wake_at_next_tick(ctx);
        }
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        // One that has left has said so then.
        if self.passer.is_none()
            && let Some(archive) = self.directory.archive()
        {
            archive.forget(self.region.id(), self.region.epoch());
        }
    }
}

impl Handler<ToRegion> for RegionActor {
    type Result = ();

    fn handle(&mut self, msg: ToRegion, ctx: &mut Self::Context) {
        self.take(msg);
        if self.departing.is_some() {
            self.depart_if_asked(ctx);
        }
    }
}

impl Handler<RunTick> for RegionActor {
    type Result = ();

    fn handle(&mut self, msg: RunTick, ctx: &mut Self::Context) {
        if self.passer.is_none() {
            self.run_tick(msg.0);
            self.depart_if_asked(ctx);
        }
    }
}

impl Handler<Halt> for RegionActor {
    type Result = ();

    fn handle(&mut self, _: Halt, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Handler<ProposeMap> for RegionActor {
    type Result = Result<(), NotProposed>;

    fn handle(&mut self, msg: ProposeMap, _: &mut Self::Context) -> Self::Result {
        if self.passer.is_some() || self.departing.is_some() {
            return Err(NotProposed::Moving);
        }
        self.region.propose(msg.scene, msg.after)
    }
}

impl Handler<DecideMap> for RegionActor {
    type Result = ();

    fn handle(&mut self, msg: DecideMap, _: &mut Self::Context) {
        let DecideMap { scene, after, comes } = msg;
        let version = scene.map.version;
        if comes && !self.region.is_remapping() && self.region.map_version() < version {
            // It was not there when the others promised.
            let after = after.max(self.region.current_tick());
            if let Err(why) = self.region.propose(scene, after) {
                return crate::log_limited!(error, region = %self.region.id(), %why, "it cannot follow a change of the map");
            }
        }
        let was_held = self.region.is_held();
        self.region.decide(version, comes, &mut self.fx);
        self.deliver();
        self.go_on_if(was_held);
    }
}

impl Handler<Inspect> for RegionActor {
    type Result = MessageResult<Inspect>;

    fn handle(&mut self, msg: Inspect, _: &mut Self::Context) -> MessageResult<Inspect> {
        let snapshot: RegionSnapshot = self.region.inspect(msg.plane);
        MessageResult(snapshot)
    }
}

impl Handler<InspectEntity> for RegionActor {
    type Result = Option<Resident>;

    fn handle(&mut self, msg: InspectEntity, _: &mut Self::Context) -> Option<Resident> {
        self.region.inspect_entity(msg.0)
    }
}
