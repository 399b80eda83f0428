//! What becomes of a client's messages, one by one: join, jump, leave, and messages that are not legal.
//! `Player::said` decides which message is legal in which state.
//!
//! A message that is refused changes nothing, and gives back the place in a line that it brought.

use super::Player;
use super::io::{Answer, Arrival, End, Leap, PlayerEffect, Problem, Said, State};
use crate::scene::messages::{Order, Spawn};
use crate::scene::{Kind, Seq};

impl Player {
    pub(super) fn premature(&mut self, said: &Said, out: &mut Vec<PlayerEffect>) {
        give_back(said, out);
        let (what, seq) = match said {
            Said::Hello(_) => ("hello", None),
            Said::Join(_) => ("join", None),
            Said::Resume(_) => ("resume", None),
            Said::Input(seq, Order::Move(_)) => ("move", Some(*seq)),
            Said::Input(seq, Order::Walk(_)) => ("walk", Some(*seq)),
            Said::Input(seq, Order::Act(_)) => ("act", Some(*seq)),
            Said::Input(seq, Order::Jump(_)) | Said::Jump(seq, _) => ("jump", Some(*seq)),
            Said::Ping(_) => ("ping", None),
            Said::Leave => ("leave", None),
            Said::Garbage(_)
            | Said::Unsupported
            | Said::TooBig(_)
            | Said::Unframed
            | Said::Alive => ("this", None),
        };
        refuse(Problem::Premature { what, state: self.state }, seq, out);
    }

    pub(super) fn garbage(&mut self, now_ms: u64, problem: Problem, out: &mut Vec<PlayerEffect>) {
        self.malformed += 1;
        if self.malformed > self.config.malformed_allowed {
            let why = format!("{} malformed messages; the last: {problem}", self.malformed);
            return self.close(now_ms, End::Protocol, why, out);
        }
        refuse(problem, None, out);
    }

    pub(super) fn join(&mut self, now_ms: u64, arrival: Arrival) {
        let Arrival { to, range, look } = arrival;
        self.state = State::Joining;
        self.deadline_ms = now_ms.saturating_add(self.config.handshake_ms);
        self.places.enter((to.scene, to.plane));
        self.range = range;
        self.memory.look(&look);
        let spawn = Spawn {
            id: self.id,
            kind: Kind::PLAYER,
            plane: to.plane,
            pos: to.pos,
            range,
            look,
            session: Some(self.session),
            bonds: Vec::new(),
        };
        self.link.enter(to.region, Box::new(spawn));
    }

    pub(super) fn leave(&mut self, now_ms: u64, out: &mut Vec<PlayerEffect>) {
        if self.state == State::Joining && !self.link.was_asked_to_enter() {
            return self.close(now_ms, End::Normal, "left", out);
        }
        self.state = State::Leaving;
        self.deadline_ms = now_ms.saturating_add(self.config.leave_ms);
    }

    pub(super) fn jump(
        &mut self,
        now_ms: u64,
        seq: Seq,
        leap: Result<Leap, Problem>,
        out: &mut Vec<PlayerEffect>,
    ) {
        let leap = match leap {
            Ok(leap) if !self.places.is_jumping() => leap,
            Ok(_) => {
                give_back(&Said::Jump(seq, leap), out);
                return refuse(Problem::Jumping, Some(seq), out);
            }
            Err(problem) => return refuse(problem, Some(seq), out),
        };
        if !self.order(now_ms, seq, Order::Jump(leap.to), out) {
            give_back(&Said::Jump(seq, Ok(leap)), out);
        } else if leap.takes_place {
            self.places.jump(seq, (leap.to.scene, leap.to.plane));
        }
    }
}

/// Tells the client that a message was refused.
pub(super) fn refuse(problem: Problem, seq: Option<Seq>, out: &mut Vec<PlayerEffect>) {
    out.push(PlayerEffect::Answer(Answer::Refused { problem, seq }));
}

/// Gives back the place that comes with a message that is refused.
pub(super) fn give_back(said: &Said, out: &mut Vec<PlayerEffect>) {
    match said {
        Said::Join(Ok(Arrival { to, .. })) | Said::Jump(_, Ok(Leap { to, takes_place: true })) => {
            out.push(PlayerEffect::GiveBack(to.scene, to.plane));
        }
        _ => {}
    }
}
