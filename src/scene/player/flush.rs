//! What the session tells its player's region: everything that it has not been told yet, in order.
//!
//! Runs after every event. While the player has to be presented, nothing else is sent: a region
//! that knows less than the session must receive that first.

use super::Player;
use super::io::{PlayerEffect, State};
use super::link::Route;
use crate::scene::messages::Input;

impl Player {
    /// Sends the region everything that it has not been sent yet.
    pub(super) fn flush(&mut self, now_ms: u64, out: &mut Vec<PlayerEffect>) {
        if matches!(self.state, State::Claiming | State::Resuming) {
            return self.search(now_ms, out);
        }
        let Some(Route { region, handle, .. }) = self.link.route() else { return };
        if self.link.is_blocked() || self.present(now_ms, out) {
            return;
        }
        let mut tell = |input| out.push(PlayerEffect::ToRegion(region, input));
        match self.state {
            State::Connected
            | State::Greeted
            | State::Claiming
            | State::Resuming
            | State::Closed => {}
            State::Joining => {
                if let Some(spawn) = self.link.take_enter() {
                    tell(Input::Enter(spawn));
                }
            }
            State::InWorld | State::Leaving => {
                let (id, session) = (self.id, self.session);
                self.slow_client.flush(now_ms, (id, session), &mut tell);
                self.inputs.send(|seq, order| {
                    tell(Input::Client { id, session, seq, order, handle });
                });
                if self.state == State::Leaving {
                    self.tell_leave(now_ms, out);
                }
            }
            State::Disconnected => {
                if !self.link.was_told_leave() {
                    self.send_disconnected(now_ms, out);
                }
            }
            State::Parting => self.tell_leave(now_ms, out),
        }
    }

    /// Presents the player if that is due; true while the region has not answered.
    fn present(&mut self, now_ms: u64, out: &mut Vec<PlayerEffect>) -> bool {
        // A player that leaves is presented, too: what its session knows of it may be more than the checkpoint has.
        let has_player = match self.state {
            State::InWorld | State::Disconnected | State::Leaving => true,
            State::Parting => self.link.route().is_some_and(|route| route.epoch.is_some()),
            State::Connected
            | State::Greeted
            | State::Joining
            | State::Claiming
            | State::Resuming
            | State::Closed => false,
        };
        if !has_player {
            return false;
        }
        if let Some(Route { region, epoch: Some(epoch), .. }) = self.link.route()
            && self.memory.is_to_present(now_ms)
        {
            let who = (self.id, self.session, self.subject, self.since_ms);
            let to = (region, epoch);
            let account = self.account.clone();
            let presented = self.memory.presented(who, to, self.sight, self.tick, account);
            out.push(PlayerEffect::ToRegion(region, Input::Present(Box::new(presented))));
        }
        self.memory.is_presented()
    }

    /// Asks the region to remove the player, until the region says that it has.
    fn tell_leave(&mut self, now_ms: u64, out: &mut Vec<PlayerEffect>) {
        let Some(Route { region, .. }) = self.link.route() else { return };
        if self.link.is_to_tell_leave(now_ms, self.config.resend_ms) {
            self.link.told_leave(now_ms);
            let (id, session) = (self.id, self.session);
            let leave = match self.is_kicked {
                true => Input::Kicked { id, session },
                false => Input::Disconnected { id, session, ms: 0 },
            };
            out.push(PlayerEffect::ToRegion(region, leave));
        }
    }

    /// The player stays, without its client, for what is left of its time. A loss of this message does no
    /// harm: the region looks for sessions that are gone.
    pub(super) fn send_disconnected(&mut self, now_ms: u64, out: &mut Vec<PlayerEffect>) {
        let Some(Route { region, .. }) = self.link.route() else { return };
        let left_ms = self.deadline_ms.saturating_sub(now_ms).max(1);
        let ms = u32::try_from(left_ms).unwrap_or(u32::MAX);
        self.link.told_leave(now_ms);
        let (id, session) = (self.id, self.session);
        out.push(PlayerEffect::ToRegion(region, Input::Disconnected { id, session, ms }));
    }

    /// A region's mailbox was full or closed: this is to be sent again.
    pub(super) fn undelivered(&mut self, input: &Input) {
        self.link.block();
        match input {
            Input::Enter(_) => self.link.enter_undelivered(),
            Input::Client { seq, .. } => self.inputs.undelivered(*seq),
            Input::Disconnected { .. } | Input::Kicked { .. } => self.link.forget_leave(),
            Input::Present(_) => self.memory.present(),
            other => self.slow_client.undelivered(other),
        }
    }
}
