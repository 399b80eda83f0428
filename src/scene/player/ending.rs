//! How a session ends, and what it does as time passes.
//!
//! A session that has a player ends only when the player's region has confirmed that the player is gone,
//! or when patience ends: no player is left behind without a session that looks after it.

use super::Player;
use super::io::{End, PlayerEffect, Problem, Reply, State};
use crate::scene::Tick;

impl Player {
    /// Ends the session: the client is told why.
    pub(super) fn close(
        &mut self,
        now_ms: u64,
        end: End,
        why: impl Into<String>,
        out: &mut Vec<PlayerEffect>,
    ) {
        if self.client_is_here() {
            out.push(PlayerEffect::Close(end, why.into()));
            self.part(now_ms, end.is_excused(), out);
        }
    }

    /// The process ends, and its sessions end with it.
    pub(super) fn stop(&mut self, now_ms: u64, end: End, why: &str, out: &mut Vec<PlayerEffect>) {
        self.close(now_ms, end, why, out);
        if self.state == State::Disconnected {
            self.send_disconnected(now_ms, out);
            self.finish(out);
        }
    }

    /// The session is over, and its player leaves, even if the client is disconnected already; at once if it
    /// is kicked.
    pub(super) fn dismiss(
        &mut self,
        now_ms: u64,
        end: End,
        why: &str,
        out: &mut Vec<PlayerEffect>,
    ) {
        if end == End::Kicked {
            self.is_kicked = true;
            self.link.forget_leave();
        }
        if self.state == State::Disconnected {
            self.state = State::Parting;
            self.deadline_ms = now_ms.saturating_add(self.config.part_ms);
            self.link.forget_leave();
            return;
        }
        self.close(now_ms, end, why, out);
    }

    /// The client is gone: its player leaves, or stays for the grace period if the client is `excused`.
    pub(super) fn part(&mut self, now_ms: u64, excused: bool, out: &mut Vec<PlayerEffect>) {
        match self.state {
            State::Disconnected | State::Parting | State::Closed => {}
            State::Joining if !self.link.was_asked_to_enter() => self.finish(out),
            State::Connected | State::Greeted | State::Claiming | State::Resuming => {
                self.finish(out);
            }
            State::InWorld if excused && self.config.grace_period_ms > 0 => {
                self.state = State::Disconnected;
                self.deadline_ms = now_ms.saturating_add(self.config.grace_period_ms.into());
                self.shown.clear();
                self.link.forget_leave();
                self.line_places.give_back(out);
            }
            State::Joining | State::InWorld | State::Leaving => {
                self.state = State::Parting;
                self.deadline_ms = now_ms.saturating_add(self.config.part_ms);
                self.shown.clear();
            }
        }
    }

    /// The player stays though its client has left or is gone, and its session with it: if the region dies, only
    /// the session may know that.
    pub(super) fn stays(
        &mut self,
        now_ms: u64,
        (until, ms): (Tick, u32),
        out: &mut Vec<PlayerEffect>,
    ) {
        let deadline_ms = now_ms.saturating_add(ms.into());
        match self.state {
            State::Disconnected => self.deadline_ms = self.deadline_ms.max(deadline_ms),
            State::Leaving | State::Parting if !self.is_kicked => {
                if self.state == State::Leaving {
                    out.push(PlayerEffect::Reply(Reply::Left { tick: until }));
                    out.push(PlayerEffect::Close(End::Normal, "left: the player stays".into()));
                }
                (self.state, self.deadline_ms) = (State::Disconnected, deadline_ms);
                self.shown.clear();
                self.line_places.give_back(out);
            }
            State::Leaving
            | State::Parting
            | State::Connected
            | State::Greeted
            | State::Joining
            | State::Claiming
            | State::Resuming
            | State::InWorld
            | State::Closed => {}
        }
    }

    /// Nothing is left to do.
    pub(super) fn finish(&mut self, out: &mut Vec<PlayerEffect>) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.line_places.give_back(out);
        out.push(PlayerEffect::Done);
    }

    /// Time has passed: deadlines, a silent client, a client that does not read, unanswered messages.
    pub(super) fn timer(&mut self, now_ms: u64, queued: usize, out: &mut Vec<PlayerEffect>) {
        self.link.unblock();
        let patience_ends = now_ms >= self.deadline_ms;
        match self.state {
            State::Connected | State::Greeted if patience_ends => {
                let why = format!("no hello and join within {} ms", self.config.handshake_ms);
                return self.close(now_ms, End::Handshake, why, out);
            }
            State::Joining if patience_ends => {
                return self.close(now_ms, End::Overload, "the region did not answer", out);
            }
            State::Leaving if patience_ends => {
                return self.close(now_ms, End::Normal, "left", out);
            }
            State::Claiming if patience_ends => {
                return self.give_up(now_ms, Problem::NotFree, out);
            }
            State::Resuming if patience_ends => {
                return self.give_up(now_ms, Problem::NotFound, out);
            }
            State::Disconnected | State::Parting if patience_ends => return self.finish(out),
            State::Disconnected | State::Parting => {
                return self.memory.present_again(now_ms, self.config.resend_ms);
            }
            State::Closed => return,
            State::Connected
            | State::Greeted
            | State::Joining
            | State::Claiming
            | State::Resuming
            | State::InWorld
            | State::Leaving => {}
        }
        if now_ms.saturating_sub(self.received_ms) >= self.config.heartbeat_ms {
            let why = format!("nothing received for {} ms", self.config.heartbeat_ms);
            return self.close(now_ms, End::Heartbeat, why, out);
        }
        self.slow_client.drained(queued);
        if self.slow_client.held_for_ms(now_ms) >= Some(self.config.slow_close_ms) {
            let why = format!("did not read for {} ms", self.config.slow_close_ms);
            return self.close(now_ms, End::Slow, why, out);
        }
        self.inputs.resend_if_stalled(now_ms, self.config.resend_ms);
        self.memory.present_again(now_ms, self.config.resend_ms);
        self.slow_client.ask_again(now_ms, self.config.resend_ms);
        self.slow_client.go_on_again(now_ms, 3 * self.config.resend_ms);
    }
}
