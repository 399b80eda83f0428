//! One session of a client: connect, join or resume, send inputs, receive events.
//!
//! ```text
//! connect: Hello -> Welcome       join: Join -> Joined       leave: Leave -> Left
//!           │                            │                           │
//!       [greeted] ───────────────── [in scene] ──────────────── [greeted] ─ server closes
//! ```

mod sender;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use purview::scene::{Pos, Seq};
use purview::wire::client::{
    AskLines, Join, Joined, Left, Lines, Pong, Refused, Resume, ServerMsg, Ticket, Unconfirmed,
    Welcome,
};
use purview::wire::{CloseCode, Frame};

pub use self::sender::Sender;
use crate::inputs::inputs;
use crate::numbers::Numbers;
use crate::transport::{self, Incoming, Messages, Network, Reader, Writer};
use crate::{ClientError, Login, Trust};

/// An event from the server, after the welcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The player's view of a tick.
    Frame(Box<Frame>),
    /// The player is in a scene: the answer to a join, or after a teleport to another scene or
    /// plane.
    Joined(Box<Joined>),
    /// The player is in its scene as before, on a new connection: see [`crate::Player`]. The next
    /// frame is a resync.
    Resumed(Box<Joined>),
    /// The lines of a scene.
    Lines(Lines),
    /// Answer to a ping.
    Pong(Pong),
    /// A message was refused; the session goes on.
    Refused(Refused),
    /// A region of the server has died. Of actions among these inputs not all viewers may have been told: acting again is
    /// the game's choice.
    Unconfirmed(Unconfirmed),
    /// The player has left its scene.
    Left(Left),
    /// The session is over; every later call of `next` returns this again.
    Closed {
        /// The server's reason; `None` if it gave none, or one unknown to this version.
        code: Option<CloseCode>,
        /// Text for people.
        detail: String,
    },
}

impl Event {
    /// The event's name, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Event::Frame(_) => "Frame",
            Event::Joined(_) => "Joined",
            Event::Resumed(_) => "Resumed",
            Event::Lines(_) => "Lines",
            Event::Pong(_) => "Pong",
            Event::Refused(_) => "Refused",
            Event::Left(_) => "Left",
            Event::Unconfirmed(_) => "Unconfirmed",
            Event::Closed { .. } => "Closed",
        }
    }
}

/// A join of a scene where the server chooses: the last position, or the scene's spawn position.
pub fn join(scene: impl Into<String>) -> Join {
    Join {
        scene: scene.into(),
        plane: None,
        pos: None,
        sight: None,
        properties: Vec::new(),
        view_cap: 0,
    }
}

/// As [`join`], at a position. A scene refuses it unless its configuration says
/// `teleports = "clients"`.
pub fn join_at(scene: impl Into<String>, pos: Pos) -> Join {
    Join { pos: Some(pos), ..join(scene) }
}

/// A session that is connected and welcomed.
pub struct Client {
    welcome: Welcome,
    sender: Sender,
    receiver: Receiver,
}

impl Client {
    /// Connects to `ws://host:port/` or `tcp://host:port`, or to `wss://host:port/` or
    /// `tls://host:port` with [`Trust::platform`], and sends a hello with `login`.
    ///
    /// # Errors
    /// A bad URL, a failed connection, or a server that does not welcome the client (its reason is
    /// in [`ClientError::Closed`]).
    pub async fn connect(url: &str, login: impl Into<Login>) -> Result<Client, ClientError> {
        Client::connect_trusting(&Trust::platform(), url, login).await
    }

    /// As [`Client::connect`], with other certificate authorities for `wss://` and `tls://` than
    /// the platform's.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub async fn connect_trusting(
        trust: &Trust,
        url: &str,
        login: impl Into<Login>,
    ) -> Result<Client, ClientError> {
        let login = login.into();
        let (writer, reader) = transport::open(url, trust).await?;
        Client::welcomed(writer, reader, &login).await
    }

    /// As [`Client::connect`], over another network.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub async fn connect_by(
        network: &dyn Network,
        url: &str,
        login: impl Into<Login>,
    ) -> Result<Client, ClientError> {
        let login = login.into();
        let Messages { out, come } = network.open(url).await?;
        Client::welcomed(Writer::Messages(Some(out)), Reader::Messages(come), &login).await
    }

    async fn welcomed(
        writer: Writer,
        reader: Reader,
        login: &Login,
    ) -> Result<Client, ClientError> {
        let mut sender = Sender { writer, numbers: Numbers::default() };
        let mut receiver = Receiver {
            reader,
            early: VecDeque::new(),
            closed: None,
            ticket: None,
            bytes: 0,
            messages: 0,
        };
        sender.send(login.hello()).await?;
        match poll_fn(|cx| receiver.poll_message(cx)).await? {
            Decoded::Welcome(welcome) => Ok(Client { welcome, sender, receiver }),
            Decoded::Event(Event::Closed { code, detail }) => {
                Err(ClientError::Closed { code, detail })
            }
            Decoded::Event(Event::Refused(r)) => Err(ClientError::Refused(r)),
            Decoded::Event(e) => {
                Err(ClientError::Unexpected { want: "Welcome", got: e.name().into() })
            }
            Decoded::Renewed => {
                Err(ClientError::Unexpected { want: "Welcome", got: "Renewed".into() })
            }
        }
    }

    /// The server's welcome: its limits and tick length.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Enters a scene and waits for the answer; other events in between are kept for `next`. Input numbers
    /// continue after [`Joined::ack`], which is not 0 where the player was still there from an earlier login.
    ///
    /// # Errors
    /// [`ClientError::Refused`] if the server refuses (the session goes on), or the session's end.
    pub async fn join(&mut self, join: Join) -> Result<Joined, ClientError> {
        self.sender.join(join).await?;
        let joined = self.receiver.joined().await?;
        self.sender.numbers = Numbers::after(joined.ack);
        Ok(joined)
    }

    /// Asks for the lines of a scene, before a join or after it, and waits for the answer; other events in between are
    /// kept for `next`.
    ///
    /// # Errors
    /// [`ClientError::Refused`] if there is no such scene (the session goes on), or the session's end.
    pub async fn lines(&mut self, scene: impl Into<String>) -> Result<Lines, ClientError> {
        self.sender.send(AskLines { scene: scene.into() }).await?;
        self.receiver
            .answer(|event| match event {
                Event::Lines(lines) => Ok(lines),
                other => Err(other),
            })
            .await
    }

    /// Resumes the player of an earlier session, with the token of its newest [`Receiver::ticket`]
    /// and the last input that a frame has acknowledged. Input numbers continue after
    /// [`Joined::ack`]: later inputs were not applied and must be sent again with their old
    /// numbers.
    ///
    /// # Errors
    /// [`ClientError::Refused`] if the server refuses (the session goes on, and may join), or the
    /// session's end.
    pub async fn resume(&mut self, token: &str, ack: Seq) -> Result<Joined, ClientError> {
        self.sender.send(Resume { token: token.into(), ack }).await?;
        let joined = self.receiver.joined().await?;
        self.sender.numbers = Numbers::after(joined.ack);
        Ok(joined)
    }

    /// See [`Receiver::ticket`].
    pub fn ticket(&self) -> Option<&Ticket> {
        self.receiver.ticket()
    }

    /// Splits the session into halves for concurrent use.
    pub fn split(self) -> (Sender, Receiver) {
        (self.sender, self.receiver)
    }

    inputs!("The network failed; the session is over.", sender);

    /// See [`Sender::act`].
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn act(&mut self, payload: Vec<u8>) -> Result<Seq, ClientError> {
        self.sender.act(payload).await
    }

    /// See [`Sender::ping`].
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn ping(&mut self, nonce: u64) -> Result<(), ClientError> {
        self.sender.ping(nonce).await
    }

    /// See [`Sender::leave`].
    ///
    /// # Errors
    /// The network failed; the session is over.
    pub async fn leave(&mut self) -> Result<(), ClientError> {
        self.sender.leave().await
    }

    /// See [`Receiver::next`].
    ///
    /// # Errors
    /// The network failed, or the server broke the protocol.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        let event = self.receiver.next().await?;
        if let Event::Refused(refused) = &event {
            self.sender.note_refused(refused);
        }
        Ok(event)
    }
}

/// The receiving half of a session.
pub struct Receiver {
    reader: Reader,
    /// Events that arrived while `join` waited for its answer.
    early: VecDeque<Event>,
    closed: Option<(Option<CloseCode>, String)>,
    ticket: Option<Ticket>,
    bytes: u64,
    messages: u64,
}

enum Decoded {
    Renewed,
    Welcome(Welcome),
    Event(Event),
}

impl Receiver {
    /// The next event. Cancel-safe: the future may be dropped while it waits.
    ///
    /// # Errors
    /// The network failed, or the server broke the protocol.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`Self::next`], polled.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, ClientError>> {
        match self.early.pop_front() {
            Some(event) => Poll::Ready(Ok(event)),
            None => self.poll_fresh(cx),
        }
    }

    /// Waits for the answer to a join; other events in between are kept for `next`.
    ///
    /// # Errors
    /// [`ClientError::Refused`] if the server refuses (the session goes on), or the session's end.
    pub async fn joined(&mut self) -> Result<Joined, ClientError> {
        self.answer(|event| match event {
            Event::Joined(joined) => Ok(*joined),
            other => Err(other),
        })
        .await
    }

    /// Waits for the event that `take` takes; others in between are kept for `next`.
    async fn answer<T>(
        &mut self,
        take: impl Fn(Event) -> Result<T, Event>,
    ) -> Result<T, ClientError> {
        loop {
            match take(poll_fn(|cx| self.poll_fresh(cx)).await?) {
                Ok(answer) => return Ok(answer),
                Err(Event::Refused(r)) => return Err(ClientError::Refused(r)),
                Err(Event::Closed { code, detail }) => {
                    return Err(ClientError::Closed { code, detail });
                }
                Err(other) => self.early.push_back(other),
            }
        }
    }

    /// The newest ticket for resuming the player; servers renew it while the session lives.
    pub fn ticket(&self) -> Option<&Ticket> {
        self.ticket.as_ref()
    }

    /// Bytes of messages received, without the transport's own bytes.
    pub fn bytes_received(&self) -> u64 {
        self.bytes
    }

    /// Messages received so far.
    pub fn messages_received(&self) -> u64 {
        self.messages
    }

    fn poll_fresh(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, ClientError>> {
        Poll::Ready(match ready!(self.poll_message(cx))? {
            Decoded::Event(event) => Ok(event),
            Decoded::Welcome(_) | Decoded::Renewed => Err(ClientError::Unexpected {
                want: "an event after the first Welcome",
                got: "Welcome".into(),
            }),
        })
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Decoded, ClientError>> {
        if let Some((code, detail)) = self.closed.clone() {
            return Poll::Ready(Ok(Decoded::Event(Event::Closed { code, detail })));
        }
        loop {
            let incoming = ready!(self.reader.poll_next(cx))?;
            match self.take(incoming)? {
                Decoded::Renewed => {}
                told => return Poll::Ready(Ok(told)),
            }
        }
    }

    fn take(&mut self, incoming: Incoming) -> Result<Decoded, ClientError> {
        let bytes = match incoming {
            Incoming::Message(bytes) => bytes,
            Incoming::Closed { code, detail } => return Ok(self.close(code, detail)),
        };
        self.bytes += bytes.len() as u64;
        self.messages += 1;
        Ok(Decoded::Event(match ServerMsg::decode(&bytes)? {
            ServerMsg::Welcome(m) => return Ok(Decoded::Welcome(m)),
            ServerMsg::Joined(m) => {
                self.ticket.clone_from(&m.ticket);
                Event::Joined(m)
            }
            ServerMsg::Renewed(m) => {
                self.ticket = Some(m.ticket);
                return Ok(Decoded::Renewed);
            }
            ServerMsg::Frame(m) => Event::Frame(m),
            ServerMsg::Lines(m) => Event::Lines(m),
            ServerMsg::Pong(m) => Event::Pong(m),
            ServerMsg::Refused(m) => Event::Refused(m),
            ServerMsg::Left(m) => Event::Left(m),
            ServerMsg::Unconfirmed(m) => Event::Unconfirmed(m),
            ServerMsg::Closing(m) => return Ok(self.close(Some(m.code), m.detail)),
        }))
    }

    fn close(&mut self, code: Option<CloseCode>, detail: String) -> Decoded {
        self.closed = Some((code, detail.clone()));
        Decoded::Event(Event::Closed { code, detail })
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("welcome", &self.welcome).finish_non_exhaustive()
    }
}
