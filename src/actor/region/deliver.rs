//! The region's effects become deliveries: the one exhaustive `match` over [`Effect`].
//!
//! Frames are lost when a session takes none; everything else waits in the outbox. What a failed delivery
//! makes the region say is delivered in the same call.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use actix::dev::SendError;

use super::RegionActor;
use super::absent::AbsentBonds;
use super::sessions::Client;
use crate::actor::address::{FanOut, RemoteError, RemoteGateway, SessionAddress, ToRegion};
use crate::actor::directory::NotSent;
use crate::clock;
use crate::scene::messages::{Asker, CommandError, CommandId, CommandResult};
use crate::scene::messages::{Effect, FrameBatch, Input, Notice, SceneChange, Sought};
use crate::scene::mutants::{self, Mutant};
use crate::scene::{RegionId, SessionId, Tick};
use crate::wire::EncodedBatch;

/// Batches whose memory is kept for another tick.
const SPARE_BATCHES: usize = 4;

impl RegionActor {
    /// Delivers every effect, and those that come of deliveries that failed.
    pub(super) fn deliver(&mut self) {
        while !self.fx.is_empty() {
            let mut effects = std::mem::replace(&mut self.fx, std::mem::take(&mut self.spare));
            for effect in effects.drain(..) {
                match effect {
                    Effect::Frames(batch) => {
                        let started = clock::now();
                        self.deliver_frames(batch);
                        let took = (clock::now() - started).as_nanos() as u64;
                        self.metrics.delivery_ns_sum.fetch_add(took, Relaxed);
                    }
                    Effect::Notice(session, notice) => self.deliver_notice(session, notice),
                    Effect::Depart(departed) => self.store(*departed),
                    Effect::Border(to, batch) => self.deliver_border(to, Input::Border(batch)),
                    Effect::BorderRound(to, batch) => {
                        self.must_arrive(to, Input::BorderRound(batch), None);
                    }
                    Effect::View(to, msg) => self.must_arrive(to, Input::View(msg), None),
                    Effect::Forward(to, input) => {
                        let client = match &*input {
                            Input::Present(p) => self.sessions.remove(p.session),
                            Input::Resume(r) => self.sessions.remove(r.session),
                            _ => None,
                        };
                        self.must_arrive(to, *input, client);
                    }
                    Effect::Handoff(to, mut handoff) => {
                        let session = handoff.state.session;
                        handoff.resync |= session.is_some_and(|s| self.sessions.has_lost_frame(s));
                        handoff.teleported |= session.is_some_and(|s| self.notices.take_arrival(s));
                        let client = session.and_then(|s| self.sessions.remove(s));
                        self.must_arrive(to, Input::Handoff(handoff), client);
                    }
                    Effect::Answer(process, ended) => self.directory.tell_caller(process, ended),
                    Effect::TellGroup(id, to, payload) => {
                        let told = self.directory.tell_group(to, payload);
                        self.command_ended(id, told.map_err(|_| CommandError::Missed));
                    }
                    Effect::Scene(id, change) => self.change_scene(id, change),
                    Effect::Locate(sought) => self.search_elsewhere(&sought),
                    Effect::KeepBonds(id, subject, bonds) => {
                        self.keep_bonds(AbsentBonds { id, subject, bonds });
                    }
                }
            }
            self.spare = effects;
        }
        self.sessions.end_delivery();
    }

    /// A command of the game's logic that the actor has carried out has come to an end.
    pub(super) fn command_ended(&mut self, id: CommandId, result: Result<(), CommandError>) {
        let ended = CommandResult { id, result };
        match id.from {
            Asker::Process(process) => self.directory.tell_caller(process, ended),
            Asker::Logic(region, _) if region == self.region.id() => {
                self.region.handle(Input::CommandResult(ended), &mut self.fx);
            }
            Asker::Logic(region, _) => {
                self.must_arrive(region, Input::CommandResult(ended), None);
            }
        }
    }

    /// Lets the region search an entity in all regions that there are.
    fn search_elsewhere(&mut self, sought: &Sought) {
        let regions = self.directory.known_regions();
        self.region.search_elsewhere(sought, regions, &mut self.fx);
    }

    /// Tells every region of the scene. A region that has no room for it now is told as soon as it has.
    fn change_scene(&mut self, id: CommandId, change: SceneChange) {
        let told = self.directory.scene_order(self.region.scene_id(), change);
        let result = match told {
            Ok((order, regions)) => {
                for region in regions {
                    self.must_arrive(region, Input::Scene(order), None);
                }
                Ok(())
            }
            Err(_) => Err(CommandError::NoDoor),
        };
        self.command_ended(id, result);
    }

    fn deliver_frames(&mut self, batch: FrameBatch) {
        self.deliver_frames_remote(&batch);
        let here = |c: &Client| matches!(c.to, SessionAddress::Here(_));
        if !batch.sessions.iter().any(|s| self.sessions.get(s.session).is_some_and(here)) {
            return self.region.recycle(batch);
        }
        let mut encoded = match self.batches.front_mut().and_then(Arc::get_mut) {
            Some(_) => self.batches.pop_front().unwrap_or_default(),
            None => Arc::default(),
        };
        let Some(inner) = Arc::get_mut(&mut encoded) else { return };
        let old = inner.replace(batch);
        self.region.recycle(old);
        self.deliver_frames_here(&encoded);
        if self.batches.len() < SPARE_BATCHES {
            self.batches.push_back(encoded);
        }
    }

    /// Gives each thread of this process the frames of its sessions, in one piece.
    fn deliver_frames_here(&mut self, encoded: &Arc<EncodedBatch>) {
        let mut fan_out = FanOut::default();
        let mut ended = Vec::new();
        for (i, frame) in encoded.batch().sessions.iter().enumerate() {
            let Some(Client { entity, to: SessionAddress::Here(to) }) =
                self.sessions.get(frame.session)
            else {
                continue;
            };
            match to.connected() {
                true => fan_out.add(to, i as u32),
                false => ended.push((frame.session, *entity)),
            }
        }
        for index in fan_out.send(encoded) {
            self.metrics.frames_lost.fetch_add(1, Relaxed);
            let frame = &encoded.batch().sessions[index as usize];
            self.frame_lost(frame.session, frame.before(encoded.batch().tick));
        }
        for (session, entity) in ended {
            self.is_gone(session, entity);
        }
    }

    /// A session's frame found no room; its client was sent that of tick `told` before.
    fn frame_lost(&mut self, session: SessionId, told: Tick) {
        self.sessions.frame_lost(session);
        if let Some(client) = self.sessions.get(session) {
            let id = client.entity;
            self.region.handle(Input::Resync { id, session, told, question: 0 }, &mut self.fx);
        }
    }

    /// Gives each gateway of another process the frames of its sessions, in one piece.
    fn deliver_frames_remote(&mut self, batch: &FrameBatch) {
        let mut gateways: Vec<(Arc<dyn RemoteGateway>, Vec<u32>)> = Vec::new();
        for (i, frame) in batch.sessions.iter().enumerate() {
            let Some(Client { to: SessionAddress::Remote(gateway), .. }) =
                self.sessions.get(frame.session)
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
                Err(RemoteError::Full) => {
                    self.metrics.frames_lost.fetch_add(which.len() as u64, Relaxed);
                    for i in which {
                        let frame = &batch.sessions[i as usize];
                        self.frame_lost(frame.session, frame.before(batch.tick));
                    }
                }
                // What becomes of its sessions is found out by the sweep.
                Err(RemoteError::Closed) => {}
            }
        }
    }

    fn deliver_notice(&mut self, session: SessionId, notice: Notice) {
        let Some(client) = self.sessions.get(session) else {
            // A player that was handed back after a region's death has a session that this region does
            // not know.
            if matches!(notice, Notice::Present { .. })
                && let Some(Some(to)) = self.directory.find_session(session)
                && let Err(SendError::Full(notice)) = to.notice(session, notice)
            {
                self.tell_later(session, notice);
            }
            return;
        };
        let last = matches!(notice, Notice::Left { .. } | Notice::Refused(_) | Notice::Replaced);
        let nowhere = matches!(notice, Notice::Nowhere { .. });
        let told = client.to.notice(session, notice);
        if nowhere {
            self.sessions.was_told_nowhere(session);
        }
        match told {
            Err(SendError::Full(notice)) => self.tell_later(session, notice),
            // Sent; or the session is gone and its entity was told to leave.
            _ if last => drop(self.sessions.remove(session)),
            _ => {}
        }
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

    /// Keeps a notice for a session that takes none now. Where too many wait the session counts as gone: its
    /// client comes back and is told everything.
    pub(super) fn tell_later(&mut self, session: SessionId, notice: Notice) {
        if self.notices.push(session, notice).is_err() {
            self.metrics.notices_lost.fetch_add(1, Relaxed);
            if let Some(entity) = self.sessions.get(session).map(|client| client.entity) {
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
                    // Messages that belong to one tick are sent anew to the next owner.
                    match mutants::has(Mutant::NowhereLost) {
                        true => waiting.clear(),
                        false => waiting.keep_lasting(),
                    }
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

/// A message for a region that no longer exists is lost; the session of a player on its way there is told.
fn lose(to: RegionId, msg: ToRegion) {
    crate::log_limited!(error, %to, "a region is gone; messages for it are lost");
    if let (Input::Handoff(handoff), Some(client)) = (&msg.input, msg.client)
        && let Some(session) = handoff.state.session
        && let (tick, epoch, properties) =
            (handoff.tick, handoff.epoch, handoff.state.properties.clone())
        && let left = (Notice::Left { tick, epoch, properties })
        && client.notice(session, left).is_err()
    {
        crate::log_limited!(warn, %to, entity = %handoff.state.id, "the session of a lost player could not be told");
    }
}
