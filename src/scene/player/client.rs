//! What becomes of a client's messages, one by one: join, teleport, leave, and messages that are
//! not legal. `Player::request` decides which message is legal in which state.
//!
//! A message that is refused changes nothing, and gives back the place in a line that it brought.

use super::Player;
use super::io::{Arrival, ClientRequest, End, PlayerEffect, Problem, Reply, State, TeleportTarget};
use crate::scene::messages::{KeptBonds, Order, Spawn};
use crate::scene::{Kind, Seq};

impl Player {
    pub(super) fn premature(&mut self, request: &ClientRequest, out: &mut Vec<PlayerEffect>) {
        give_back(request, out);
        let (what, seq) = match request {
            ClientRequest::Hello(_) => ("hello", None),
            ClientRequest::Join(_) => ("join", None),
            ClientRequest::Resume(_) => ("resume", None),
            ClientRequest::Input(seq, Order::Move(_)) => ("move", Some(*seq)),
            ClientRequest::Input(seq, Order::Walk(_)) => ("walk", Some(*seq)),
            ClientRequest::Input(seq, Order::Act(_)) => ("act", Some(*seq)),
            ClientRequest::Input(seq, Order::Face(_)) => ("face", Some(*seq)),
            ClientRequest::Input(seq, Order::Set(_)) => ("set", Some(*seq)),
            ClientRequest::Input(seq, Order::Teleport(_) | Order::Travel(_))
            | ClientRequest::Teleport(seq, _) => ("teleport", Some(*seq)),
            ClientRequest::Ping(_) => ("ping", None),
            ClientRequest::AskLines(_) => ("ask_lines", None),
            ClientRequest::Leave => ("leave", None),
            ClientRequest::Garbage(_)
            | ClientRequest::Unsupported
            | ClientRequest::TooBig(_)
            | ClientRequest::Unframed
            | ClientRequest::TooManyFrames
            | ClientRequest::Alive => ("this", None),
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
        let Arrival { id, to, sight, left_at, properties, bonds } = arrival;
        (self.id, self.state, self.has_asked) = (id, State::Joining, true);
        self.deadline_ms = now_ms.saturating_add(self.config.handshake_ms);
        self.line_places.enter((to.scene, to.plane));
        self.sight = sight;
        let bonds = KeptBonds { named: bonds, ..KeptBonds::default() };
        self.memory.begin_with(&properties);
        self.memory.take_bonds(bonds.clone());
        let spawn = Spawn {
            plane: to.plane,
            sight,
            left_at,
            properties,
            session: Some(self.session),
            subject: self.subject,
            account: self.account.clone(),
            bonds,
            ..Spawn::new(id, Kind::PLAYER, to.pos)
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

    pub(super) fn teleport(
        &mut self,
        now_ms: u64,
        seq: Seq,
        target: Result<TeleportTarget, Problem>,
        out: &mut Vec<PlayerEffect>,
    ) {
        let target = match target {
            Ok(target) if !self.line_places.is_teleporting() => target,
            Ok(_) => {
                give_back(&ClientRequest::Teleport(seq, target), out);
                return refuse(Problem::Teleporting, Some(seq), out);
            }
            Err(problem) => return refuse(problem, Some(seq), out),
        };
        if !self.order(now_ms, seq, Order::Teleport(target.to), out) {
            give_back(&ClientRequest::Teleport(seq, Ok(target)), out);
        } else if target.takes_place {
            self.line_places.teleport(seq, (target.to.scene, target.to.plane));
        }
    }
}

/// Tells the client that a message was refused.
pub(super) fn refuse(problem: Problem, seq: Option<Seq>, out: &mut Vec<PlayerEffect>) {
    out.push(PlayerEffect::Reply(Reply::Refused { problem, seq }));
}

/// Gives back the place that comes with a message that is refused.
pub(super) fn give_back(request: &ClientRequest, out: &mut Vec<PlayerEffect>) {
    match request {
        ClientRequest::Join(Ok(Arrival { to, .. }))
        | ClientRequest::Teleport(_, Ok(TeleportTarget { to, takes_place: true })) => {
            out.push(PlayerEffect::GiveBack(to.scene, to.plane));
        }
        _ => {}
    }
}
