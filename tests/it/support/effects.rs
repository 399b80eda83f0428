//! What becomes of the effects of regions: messages wait in queues, frames and notices reach clients.

use purview::scene::messages::{Effect, FrameBatch, Input, Notice, RouteNotice};
use purview::scene::player::PlayerInput;
use purview::scene::views::{ViewMsg, ViewMsgBody};
use purview::scene::{RegionId, SessionId};

use super::alone::message_of;
use super::world::World;

impl World {
    pub fn carry_effects(&mut self, from: RegionId) {
        for mut effect in std::mem::take(&mut self.fx) {
            if let Some(log) = &mut self.log {
                log.push(format!("step {} {from} {effect:?}", self.steps));
            }
            match &mut effect {
                Effect::Border(to, _) if self.rng.chance(self.weather.lose) => {
                    self.regions[from.0 as usize].handle(Input::BorderLost(*to), &mut Vec::new());
                    continue;
                }
                Effect::BorderRound(_, batch) => {
                    let mute = self.weather.mute;
                    if mute > 0 {
                        batch.view_messages.retain(|_| !self.rng.chance(mute));
                    }
                    batch.view_messages.iter().for_each(|msg| self.note_said(msg));
                }
                Effect::View(..) if self.weather.mute > 0 && self.rng.chance(self.weather.mute) => {
                    continue;
                }
                Effect::View(_, msg) => self.note_said(msg),
                Effect::Handoff(..) => self.handoffs += 1,
                _ => {}
            }
            let (to, input) = match message_of(effect) {
                Ok(message) => message,
                Err(effect) => {
                    self.obey_region(from, *effect);
                    continue;
                }
            };
            if self.mapping.is_lost(from, to, &input) {
                continue;
            }
            if self.down.contains_key(&to) {
                self.lose(input);
            } else {
                self.queues.entry((from, to)).or_default().push_back(input);
            }
        }
    }

    fn obey_region(&mut self, from: RegionId, effect: Effect) {
        match effect {
            Effect::Frames(batch) => {
                self.frames(&batch);
                self.regions[from.0 as usize].recycle(batch);
            }
            Effect::Notice(session, notice) => self.notice(session, notice),
            Effect::Answer(_, ended) => self.answers.push(ended),
            Effect::TellGroup(id, to, payload) => self.tell_group(from, id, to, payload),
            Effect::Scene(id, change) => self.change_scene(from, id, change),
            Effect::Locate(sought) => self.search_elsewhere(from, &sought),
            Effect::KeepBonds(id, subject, bonds) => self.keep_bonds(from, id, &subject, bonds),
            other => unreachable!("no players are stored here, and this is no message: {other:?}"),
        }
    }

    fn note_said(&mut self, msg: &ViewMsg) {
        self.view_messages += u64::from(!matches!(msg.say, ViewMsgBody::Again(_)));
    }

    fn notice(&mut self, session: SessionId, notice: Notice) {
        if self.clients.get(&session).is_some_and(|c| c.player.is_some()) {
            self.receive(session, PlayerInput::Notice(notice.clone()));
            if matches!(notice, Notice::Left { .. }) {
                // Whether the notice is accepted is for the session to decide.
                return;
            }
        }
        let Some(client) = self.clients.get_mut(&session) else { return };
        match notice {
            Notice::Route(RouteNotice { region, epoch, last_applied, .. }) => {
                if epoch < client.epoch {
                    return;
                }
                (client.region, client.epoch) = (region, epoch);
                if client.player.is_some() {
                    return;
                }
                client.unacked.retain(|(seq, _)| *seq > last_applied);
                // A handle of the region before means another player here, or none.
                let (id, handle) = (client.entity, client.handle);
                for (seq, order) in client.unacked.clone() {
                    self.tell(region, Input::Client { id, session, seq, order, handle });
                }
            }
            Notice::Left { .. } => client.gone = true,
            Notice::Present { .. } | Notice::Bonds { .. } => {}
            Notice::Resumed(found) => {
                if found.epoch >= client.epoch {
                    (client.region, client.epoch) = (found.region, found.epoch);
                }
            }
            // The session decides what follows.
            Notice::Nowhere { .. } | Notice::Replaced | Notice::Stays { .. } => {}
            Notice::Kicked => client.kicked = true,
            Notice::OtherSubject => panic!("session {session} was refused its own player"),
            Notice::Refused(why) => panic!("session {session} was refused: {why:?}"),
        }
    }

    /// Clients apply their frames and fail on contradictions.
    fn frames(&mut self, batch: &FrameBatch) {
        if self.encode {
            self.decode(batch);
        }
        self.check_bytes(batch);
        for (index, frame) in batch.sessions.iter().enumerate() {
            if !self.passes_on(batch, index) {
                continue;
            }
            let Some(client) = self.clients.get_mut(&frame.session) else { continue };
            if client.deaf {
                continue;
            }
            if frame.resync {
                self.resyncs += 1;
            }
            client.apply(batch, frame, self.scene.tile_cm());
        }
    }
}
