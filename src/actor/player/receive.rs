//! What the client's connection says: bytes become one typed message for the session's machine.
//!
//! A message that needs an answer from elsewhere (the player's record, other sessions of the
//! subject) holds up the client's later messages, and nothing else.

use std::time::Duration;

use actix::{Context, Handler, MessageResult};
use bytes::Bytes;

use super::{FromSocket, PlayerActor, Session};
use crate::scene::messages::{EntityAction, Order, SetProperty, Speaker};
use crate::scene::movement::{Go, MoveCommand};
use crate::scene::player::{ClientRequest, PlayerInput, Problem, State};
use crate::wire::client::{Set, Walk};
use crate::wire::{ClientMsg, DecodeError, MAX_CLIENT_FRAME};

impl Handler<FromSocket> for PlayerActor {
    type Result = MessageResult<FromSocket>;

    fn handle(&mut self, msg: FromSocket, ctx: &mut Context<Self>) -> Self::Result {
        let input = match msg {
            FromSocket::Binary(bytes) => {
                self.receive(&bytes, ctx);
                return MessageResult(self.session().pause());
            }
            FromSocket::Paused => {
                let mut session = self.session();
                session.is_not_read();
                return MessageResult(session.pause());
            }
            FromSocket::Unsupported => PlayerInput::Request(ClientRequest::Unsupported),
            FromSocket::TooBig => PlayerInput::Request(ClientRequest::TooBig(MAX_CLIENT_FRAME)),
            FromSocket::Unframed => PlayerInput::Request(ClientRequest::Unframed),
            FromSocket::TooManyFrames => PlayerInput::Request(ClientRequest::TooManyFrames),
            FromSocket::Alive => PlayerInput::Request(ClientRequest::Alive),
            FromSocket::Gone => PlayerInput::Gone,
            FromSocket::Stop => PlayerInput::Stop,
            FromSocket::Drain => PlayerInput::Drain,
        };
        let mut session = self.session();
        session.handle(input, None);
        MessageResult(session.pause())
    }
}

impl PlayerActor {
    /// Takes a message of the client.
    fn receive(&mut self, bytes: &[u8], ctx: &mut Context<Self>) {
        let msg = match ClientMsg::decode(bytes) {
            Ok(ClientMsg::Join(join)) => return self.join(join, ctx),
            msg => msg,
        };
        let said = self.session().read(msg);
        match said {
            said @ (ClientRequest::Hello(_) | ClientRequest::Resume(_)) => self.admit(said, ctx),
            said @ ClientRequest::Teleport(_, Ok(_)) => self.ask_to_jump(said, ctx),
            said => self.session().handle(PlayerInput::Request(said), None),
        }
    }
}

impl Session {
    /// For how long the client's connection reads nothing.
    pub(super) fn pause(&self) -> Duration {
        let now_ms = self.directory.uptime().as_millis() as u64;
        Duration::from_millis(self.player.pause_ms(now_ms))
    }

    fn is_not_read(&mut self) {
        let now_ms = self.directory.uptime().as_millis() as u64;
        self.player.is_not_read(now_ms);
    }

    /// What a message says, with its names looked up.
    pub(super) fn read(&mut self, msg: Result<ClientMsg, DecodeError>) -> ClientRequest {
        match msg {
            // A second hello changes nothing.
            Ok(ClientMsg::Hello(_)) if self.player.state() != State::Connected => {
                ClientRequest::Hello(Ok(self.credentials.whose()))
            }
            Ok(ClientMsg::Hello(hello)) => {
                ClientRequest::Hello(self.credentials.judge(self.connection, &hello))
            }
            Ok(ClientMsg::Resume(resume)) => ClientRequest::Resume(self.comeback(&resume)),
            // `join` takes joins.
            Ok(ClientMsg::Join(_)) => ClientRequest::Join(Err(Problem::NotFree)),
            Ok(ClientMsg::Move(m)) => ClientRequest::Input(m.seq, Order::Move(m.pos)),
            Ok(ClientMsg::Walk(walk)) => {
                ClientRequest::Input(walk.seq, Order::Walk(self.command(&walk)))
            }
            Ok(ClientMsg::Teleport(teleport)) => {
                ClientRequest::Teleport(teleport.seq, self.teleport_target(&teleport))
            }
            Ok(ClientMsg::Act(act)) => {
                let payload = Bytes::from(act.payload.into_vec());
                let by = Speaker::Client;
                ClientRequest::Input(
                    act.seq,
                    Order::Act(EntityAction { payload, aim: act.aim, by }),
                )
            }
            Ok(ClientMsg::Face(face)) => ClientRequest::Input(face.seq, Order::Face(face.facing)),
            Ok(ClientMsg::Set(Set { seq, property: id, value })) => {
                ClientRequest::Input(seq, Order::Set(SetProperty { id, value }))
            }
            Ok(ClientMsg::Ping(ping)) => ClientRequest::Ping(ping.nonce),
            Ok(ClientMsg::AskLines(ask)) => ClientRequest::AskLines(self.lines(&ask.scene)),
            Ok(ClientMsg::Leave(_)) => ClientRequest::Leave,
            Err(e @ DecodeError::Malformed(_)) => {
                ClientRequest::Garbage(Problem::Malformed(e.to_string()))
            }
            Err(e @ DecodeError::UnknownType(_)) => {
                ClientRequest::Garbage(Problem::UnknownType(e.to_string()))
            }
            Err(e @ DecodeError::BadField { .. }) => {
                ClientRequest::Garbage(Problem::BadField(e.to_string()))
            }
            Err(e @ DecodeError::ActTooLong { .. }) => {
                ClientRequest::Garbage(Problem::ActTooLong(e.to_string()))
            }
            Err(DecodeError::TooBig { max, .. }) => ClientRequest::TooBig(max),
        }
    }

    /// A move command as regions take it. Over which tiles a path leads says the region's own map.
    fn command(&self, walk: &Walk) -> MoveCommand {
        let scene = self.player.place().and_then(|(scene, _)| self.directory.scene(scene));
        let tile_cm = scene.map_or(1, |s| s.tile_cm());
        let go = walk.form.map_or(Go::On, |form| Go::Walk(form.on_tiles(tile_cm)));
        MoveCommand { correction: walk.correction, at: walk.at_ms, go }
    }
}
