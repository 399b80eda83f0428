//! What a region's frame tells the session, and whether the frame goes on to the client.
//!
//! A frame of a former owner is never passed on: what that owner did was undone.

use super::Player;
use super::io::{PlayerEffect, State};
use crate::scene::Seq;
use crate::scene::messages::FrameBatch;

impl Player {
    pub(super) fn frame(
        &mut self,
        now_ms: u64,
        batch: &FrameBatch,
        index: usize,
        queued: usize,
        out: &mut Vec<PlayerEffect>,
    ) {
        let Some(part) = batch.sessions.get(index).filter(|s| s.session == self.session) else {
            return;
        };
        self.link.unblock();
        self.tick = self.tick.max(batch.tick);
        self.slow_client.received(now_ms);
        let known = self.link.epoch();
        if known.is_some_and(|epoch| part.epoch.is_of_a_life_before(epoch)) {
            // The player's new owner tells the client everything anew.
            return;
        }
        // A former owner may go on for a while: what it applies after the player was presented elsewhere
        // does not count.
        let late = known.is_none_or(|epoch| part.epoch < epoch || self.memory.is_presented());
        if !matches!(self.state, State::InWorld | State::Disconnected | State::Leaving) || late {
            if self.state == State::Resuming {
                self.search.hear_elsewhere(part.epoch);
            }
            return self.slow_client.lost();
        }
        self.link.note_handle(part.handle);
        // The resync of the first owner comes before frames of the next owner, which were not passed on.
        if self.search.take_heard_elsewhere(part.epoch) && !part.resync {
            self.slow_client.lost();
        }
        for refused in batch.refused_of(part) {
            self.memory.refused(refused.seq);
        }
        self.acknowledge(now_ms, part.ack);
        self.memory.own(batch.tick, batch.own_of(part));
        self.memory.told(self.id, batch, part);
        for refused in batch.refused_of(part) {
            self.line_places.refused(refused.seq, out);
        }
        let resync = part.resync.then_some(part.after);
        if self.state == State::Disconnected {
            // The region made the frame before it knew that the client is disconnected.
            if self.link.is_to_tell_leave(now_ms, self.config.resend_ms) {
                self.link.forget_leave();
            }
        } else if self.slow_client.admit(now_ms, queued, (batch.tick, resync)) {
            self.shown.apply(batch, part);
            out.push(PlayerEffect::Forward);
        }
    }

    /// A region has applied all inputs up to this one.
    pub(super) fn acknowledge(&mut self, now_ms: u64, upto: Seq) {
        let memory = &mut self.memory;
        self.inputs.acknowledge(now_ms, upto, |seq, order| memory.applied(seq, order));
        self.memory.acknowledged(upto);
    }
}
