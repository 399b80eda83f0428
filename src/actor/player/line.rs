//! How a client's connection speaks to its session, on the session's thread.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use actix::{Actor, Addr};
use bytes::Bytes;

use super::sink::WriteNow;
use super::{FromSocket, PlayerActor, PlayerSetup, Session};
use crate::scene::player::{PlayerInput, State};
use crate::wire::ClientMsg;

/// The session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session is over")]
pub struct SessionOver;

/// A connection's line to its session.
///
/// What a client says while its player is in the world is taken in the call. All else goes by the mailbox of the
/// session's actor, which can wait for answers from elsewhere.
#[derive(Debug)]
pub struct SessionLine {
    session: Rc<RefCell<Session>>,
    actor: Addr<PlayerActor>,
}

impl SessionLine {
    /// Starts the actor of a session whose client has just connected, on this thread. `writer` writes to the
    /// client's socket at once.
    pub fn start(setup: PlayerSetup, writer: Option<Box<dyn WriteNow>>) -> SessionLine {
        let actor = PlayerActor::new(setup);
        let session = Rc::clone(&actor.0);
        session.borrow_mut().writer = writer;
        SessionLine { session, actor: actor.start() }
    }

    /// Tells the session something. The answer says for how long the connection reads nothing more.
    ///
    /// # Errors
    /// The session is over.
    pub async fn tell(&self, what: FromSocket) -> Result<Duration, SessionOver> {
        if let FromSocket::Binary(bytes) = &what
            && let Some(pause) = self.session.borrow_mut().take_input(bytes)
        {
            return Ok(pause);
        }
        self.actor.send(what).await.map_err(|_| SessionOver)
    }

    /// Tells the session something, and waits for nothing.
    pub fn note(&self, what: FromSocket) {
        self.actor.do_send(what);
    }
}

impl Session {
    /// Takes a message of a client whose player is in the world, and says for how long the connection reads nothing
    /// more; `None` if the message may have to wait for an answer from elsewhere, or one before it waits.
    fn take_input(&mut self, bytes: &Bytes) -> Option<Duration> {
        if self.player.state() != State::InWorld || self.is_asking {
            return None;
        }
        let msg = ClientMsg::decode(bytes);
        let may_wait = matches!(
            msg,
            Ok(ClientMsg::Join(_)
                | ClientMsg::Hello(_)
                | ClientMsg::Resume(_)
                | ClientMsg::Teleport(_))
        );
        if may_wait {
            return None;
        }
        let request = self.read(msg);
        self.handle(PlayerInput::Request(request), None);
        Some(self.pause())
    }
}
