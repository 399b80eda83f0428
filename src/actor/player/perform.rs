//! What happened goes to the session's machine, and what the machine wants done is done.
//!
//! What cannot be done now (a region's mailbox or the client's queue is full) goes back to the machine at
//! once, which decides what that means.

use super::answers::{close_code, frame_bytes};
use super::sink::QueueFull;
use super::{Over, Session};
use crate::actor::address::{SessionAddress, ToRegion};
use crate::scene::messages::Input;
use crate::scene::player::{PlayerEffect, PlayerInput, State};
use crate::wire::EncodedBatch;

impl Session {
    /// Hands the machine what happened and does what it wants done.
    pub(super) fn handle(&mut self, input: PlayerInput<'_>, frame: Option<(&EncodedBatch, usize)>) {
        let now_ms = self.directory.uptime().as_millis() as u64;
        let mut effects = std::mem::take(&mut self.effects);
        self.player.handle(now_ms, input, &mut effects);
        if self.registered != self.player.id() {
            self.register();
        }
        let mut failed: Vec<PlayerInput<'_>> = Vec::new();
        loop {
            for effect in effects.drain(..) {
                failed.extend(self.perform(effect, frame));
            }
            if failed.is_empty() {
                break;
            }
            // The machine answers a failure with silence or with the session's end, so this ends.
            for failure in failed.drain(..) {
                self.player.handle(now_ms, failure, &mut effects);
            }
        }
        self.effects = effects;
        self.release_unused();
        if self.player.state() == State::Disconnected
            && !std::mem::replace(&mut self.is_disconnected, true)
            && let Some(logins) = self.directory.logins()
        {
            logins.disconnected(self.connection);
        }
    }

    /// Does one thing; says what could not be done.
    fn perform(
        &mut self,
        effect: PlayerEffect,
        frame: Option<(&EncodedBatch, usize)>,
    ) -> Option<PlayerInput<'static>> {
        match effect {
            PlayerEffect::ToRegion(region, input) => {
                let client =
                    matches!(input, Input::Enter(_) | Input::Present(_) | Input::Resume(_))
                        .then(|| self.address().cloned().map(SessionAddress::from))
                        .flatten();
                let sent = self.directory.send(region, ToRegion { input, client });
                sent.err().map(|e| PlayerInput::Undelivered(e.into_message().input))
            }
            PlayerEffect::Reply(reply) => {
                let bytes = self.encode(reply)?;
                self.send(bytes).err().map(|QueueFull| PlayerInput::Choked)
            }
            PlayerEffect::Forward => {
                let (batch, index) = frame?;
                let bytes = frame_bytes(batch, index, self.credentials.wants_crowd());
                self.send(bytes).err().map(|QueueFull| PlayerInput::Choked)
            }
            PlayerEffect::Take(scene, plane) => {
                self.directory.take_line(scene, Some(plane));
                None
            }
            PlayerEffect::GiveBack(scene, plane) => {
                self.directory.give_back_line(scene, plane);
                None
            }
            PlayerEffect::Close(end, why) => {
                tracing::debug!(session = %self.connection, ?end, why, "session closed");
                self.sink.close(close_code(end), why);
                None
            }
            PlayerEffect::Done => {
                if let Some(actor) = &self.actor {
                    actor.do_send(Over);
                }
                None
            }
        }
    }
}
