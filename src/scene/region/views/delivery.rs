//! View messages that cross a border: which player they are for, and where that player lives.
//!
//! These rules need the view engine and what custody knows of entities that have moved.

use crate::scene::messages::Effect;
use crate::scene::region::{EXPIRY, Region};
use crate::scene::views::{ViewMsg, ViewMsgBody};
use crate::scene::{EntityId, RegionId};

/// Messages that are kept for players that are unknown here and may be on their way.
const MAX_EARLY: usize = 65_536;

impl Region {
    /// Reads the view queue and sends the answers at once, outside of the border rounds.
    pub(in crate::scene::region) fn read_view_queue(&mut self, fx: &mut Vec<Effect>) {
        if self.is_recovering() {
            // It is not known yet which players live here.
            return;
        }
        self.handle_view_queue(fx);
        fx.extend(self.take_outgoing().into_iter().map(|(to, msg)| Effect::View(to, msg)));
    }

    /// Handles view messages from players of other regions, and repairs what they broke.
    pub(in crate::scene::region) fn handle_view_queue(&mut self, fx: &mut Vec<Effect>) {
        if !self.views.queue.early.is_empty() {
            self.read_early();
        }
        let scene = self.identity.scene();
        for threshold in std::mem::take(&mut self.views.queue.thresholds) {
            self.views.handle_threshold(threshold, &mut self.entities, scene);
        }
        for msg in std::mem::take(&mut self.views.queue.incoming) {
            self.handle_remote(msg, fx);
        }
        let (entities, scene) = (&mut self.entities, self.identity.scene());
        self.views.deliver_local(entities, scene);
        self.views.repair(entities, scene);
    }

    /// The messages that are for players of other regions, and where these live.
    pub(in crate::scene::region) fn take_outgoing(&mut self) -> Vec<(RegionId, ViewMsg)> {
        self.views.reclaim_outgoing(&mut self.entities, self.identity.scene());
        let mut messages = Vec::new();
        for msg in std::mem::take(&mut self.views.queue.outgoing) {
            let from = self.entities.body(msg.from).id;
            match self.entities.ghost(msg.to) {
                Some(ghost) if self.entities.is_at(msg.to, msg.to_id) => {
                    messages.push((ghost.owner, self.view_message(from, msg.to_id, msg.say)));
                }
                // It is mirrored no more since.
                _ => self.views.queue.undeliverable.push((from, msg.to_id, msg.say)),
            }
        }
        for (from, to, say) in std::mem::take(&mut self.views.queue.undeliverable) {
            // A player that was never mirrored here is known where the speaker came from, unless it is gone
            // altogether and needs no answer.
            let lives_in =
                self.whereabouts(to).or_else(|| self.views.came_from(&self.entities, from));
            if let Some(region) = lives_in.filter(|r| *r != self.identity.id()) {
                messages.push((region, self.view_message(from, to, say)));
            }
        }
        self.views.figures.sent += messages.len() as u64;
        messages
    }

    fn view_message(&self, from: EntityId, to: EntityId, say: ViewMsgBody) -> ViewMsg {
        let (from_region, from_epoch) = (self.identity.id(), self.identity.epoch());
        ViewMsg { from, from_region, from_epoch, to, say }
    }

    fn handle_remote(&mut self, msg: ViewMsg, fx: &mut Vec<Effect>) {
        if self.is_late(msg.from_region, msg.from_epoch) {
            return;
        }
        if self.custody.is_incoming(msg.to) {
            // It is about to live here.
            self.views.queue.incoming.push(msg);
            return;
        }
        let viewer = self.entities.slot(msg.to).map(|to| self.entities.body(to).viewer);
        let Some(ix) = viewer.filter(|ix| self.views.get(*ix).is_some()) else {
            return self.handle_for_disconnected(msg, fx);
        };
        match self.entities.slot(msg.from) {
            Some(from) => {
                let (entities, scene) = (&mut self.entities, self.identity.scene());
                self.views.handle(ix as usize, (from, msg.say), entities, scene);
            }
            None => {
                if let Some(say) = self.views.handle_unknown(ix, &msg) {
                    self.answer(&msg, say, fx);
                }
            }
        }
    }

    /// A message for a player that does not live here: passed on, kept, or refused.
    fn handle_for_disconnected(&mut self, msg: ViewMsg, fx: &mut Vec<Effect>) {
        let room = self.views.queue.early.len() < MAX_EARLY;
        match self.whereabouts(msg.to).filter(|owner| *owner != self.identity.id()) {
            Some(_) if !self.may_pass_on() => {}
            Some(owner) => fx.push(Effect::View(owner, msg)),
            None if self.custody.has_left(msg.to, self.identity.id()) => {
                self.refuse_for_unknown(&msg, fx);
            }
            None if room => self.views.queue.early.push((self.clock.tick(), msg)),
            None => {
                crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), to = %msg.to, "too many messages for unknown players; this one is dropped");
            }
        }
    }

    /// Reads again the messages for players that were unknown here; a message that has waited for
    /// too long is dropped.
    fn read_early(&mut self) {
        let now = self.clock.tick().0;
        let early = std::mem::take(&mut self.views.queue.early);
        let (known, unknown): (Vec<_>, Vec<_>) =
            early.into_iter().filter(|(came, _)| came.0.saturating_add(EXPIRY) > now).partition(
                |(_, msg)| self.entities.slot(msg.to).is_some() || self.custody.knows_moved(msg.to),
            );
        self.views.queue.incoming.extend(known.into_iter().map(|(_, msg)| msg));
        self.views.queue.early = unknown;
    }

    /// A YES to an unknown player is refused at once, so that the asker's place is not held for ever.
    fn refuse_for_unknown(&mut self, msg: &ViewMsg, fx: &mut Vec<Effect>) {
        if let ViewMsgBody::Yes(number) | ViewMsgBody::Again(number) = msg.say {
            // Nothing that it ever said stands.
            self.answer(msg, ViewMsgBody::No { echo: number, at: u32::MAX }, fx);
        }
    }

    /// Answers a message of another region in the name of the player that it was for.
    fn answer(&mut self, to: &ViewMsg, say: ViewMsgBody, fx: &mut Vec<Effect>) {
        self.views.figures.sent += 1;
        let answer = self.view_message(to.to, to.from, say);
        fx.push(Effect::View(to.from_region, answer));
    }
}
