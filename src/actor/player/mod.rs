//! The shell of a session: an actor that carries bytes and messages between a client, the session's
//! state machine ([`Player`]) and regions. The machine decides; the shell reads, looks names up and
//! delivers.
//!
//! | file | what it does |
//! |---|---|
//! | `receive` | what the client's connection says: bytes become typed messages, names are looked up |
//! | `line` | by which the client's connection speaks to the session |
//! | `local` | the sessions of a thread: what regions say comes for all of them in one piece |
//! | `lookup` | where a join, a teleport or a resume leads to |
//! | `deliver` | what regions say, in order |
//! | `perform` | what the machine wants done |
//! | `answers` | messages for the client, as bytes |
//! | `login` | tokens, tickets and other sessions of the same subject |
//! | `join` | the way of a join: the player's record is read and claimed |
//! | `record` | the player's record, as the session knows it |
//! | `reorder`, `sink` | the order of regions' messages; the queue to the client |
//!
//! The gateway starts one actor for each connection. The actor owns the session; it has the mailbox of the
//! client's connection and the deadlines. Neither what regions say goes by this mailbox (the task of the thread
//! hands it to the session), nor what a client in the world says (`line`). A session holds no lock and waits for nothing while it handles a message.

mod admission;
mod answers;
mod deliver;
mod join;
mod line;
mod local;
mod login;
mod lookup;
mod perform;
mod receive;
mod record;
mod reorder;
pub mod sink;

use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, ActorStreamExt, Addr, AsyncContext, Context, Handler, Message};
use actix_rt::time::sleep_until;
use bytes::Bytes;

pub use self::line::{SessionLine, SessionOver};
pub use self::login::{Login, Pass, Passes, Planes, TokenCheck};

use self::local::Registration;
use self::login::Credentials;
use self::record::Record;
use self::reorder::ReorderBuffer;
use self::sink::{ClientQueue, ClientSink, QueueFull, WriteNow};
use super::address::{Delivery, LocalSession, SessionEntry};
use super::directory::Directory;
use super::idle_gate::IdleGated;
use super::player_store::PlayerStore;
use crate::scene::player::{Player, PlayerConfig, PlayerEffect, PlayerInput};
use crate::scene::{EntityId, SessionId};
#[cfg(doc)]
use crate::wire::MAX_CLIENT_FRAME;

/// Messages of the client that may wait in a session's mailbox. When it is full the connection reads no
/// further.
pub const MAILBOX: usize = 32;

/// What a client's connection tells its session. The answer says for how long the connection reads nothing more:
/// until there is room for the client's next message. After it, it asks again with [`FromSocket::Paused`].
#[derive(Message, Debug, Clone, PartialEq, Eq)]
#[rtype(result = "Duration")]
pub enum FromSocket {
    /// A binary message.
    Binary(Bytes),
    /// Data that is no binary message.
    Unsupported,
    /// A message that is longer than [`MAX_CLIENT_FRAME`].
    TooBig,
    /// A stream that cannot be cut into messages any more.
    Unframed,
    /// Far more frames than messages are allowed.
    TooManyFrames,
    /// A sign of life below the protocol.
    Alive,
    /// The connection has read nothing for as long as it was told.
    Paused,
    /// The connection ended.
    Gone,
    /// The server stops.
    Stop,
    /// This gateway stops, and others go on.
    Drain,
}

/// What a session is made of.
pub struct PlayerSetup {
    /// The process's directory.
    pub directory: Arc<Directory>,
    /// Where the client's messages go.
    pub sink: ClientSink,
    /// Judges tokens.
    pub tokens: TokenCheck,
    /// Makes and judges resume tickets; `None`: clients cannot come back.
    pub passes: Option<Arc<dyn Passes>>,
    /// The limits.
    pub config: PlayerConfig,
    /// How often deadlines and the client's queue are looked at.
    pub check_every: Duration,
}

impl PlayerSetup {
    /// A client's queue for a session with these limits. Frames fill at most `send_queue` of it;
    /// the other half is for answers, which a client that does not read cannot ask for without end.
    pub fn queue(config: &PlayerConfig) -> (ClientSink, ClientQueue) {
        ClientSink::channel(config.send_queue.max(1) * 2)
    }
}

/// A session, in its actor.
pub struct PlayerActor(Rc<RefCell<Session>>);

/// What a session is between a client and regions.
pub(in crate::actor) struct Session {
    player: Player,
    /// The session as its client and the registry of subjects know it: the number that it began with.
    connection: SessionId,
    directory: Arc<Directory>,
    sink: ClientSink,
    /// Writes to the client's socket at once; `None`: all messages go by the queue.
    writer: Option<Box<dyn WriteNow>>,
    credentials: Credentials,
    record: Record,
    /// Whether a join is on its way, for which a place in a line was taken.
    is_joining: bool,
    /// Whether the game is asked where a teleport may lead: the client's later messages wait.
    is_asking: bool,
    /// Restores the order of messages from several processes; unused in a single process.
    reorder: Option<ReorderBuffer>,
    config: PlayerConfig,
    check_every: Duration,
    /// Whether the registry of subjects was told that the client is disconnected.
    is_disconnected: bool,
    /// The entity under which other processes find the session.
    registered: EntityId,
    /// Where regions reach it; `None` before its actor has started.
    registration: Option<Registration>,
    /// Its actor, which ends when the session does.
    actor: Option<Addr<PlayerActor>>,
    /// Kept for its memory.
    effects: Vec<PlayerEffect>,
    /// Kept for its memory.
    due: Vec<Delivery>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("player", &self.player).finish_non_exhaustive()
    }
}

/// The session is over: its actor ends.
#[derive(Message)]
#[rtype(result = "()")]
struct Over;

impl Handler<Over> for PlayerActor {
    type Result = ();

    fn handle(&mut self, _: Over, ctx: &mut Context<Self>) {
        // The end of a join stops the actor.
        if !self.session().is_joining {
            ctx.stop();
        }
    }
}

/// Asks a session for the address by which regions reach it.
#[derive(Message, Debug, Clone, Copy)]
#[rtype(result = "Option<LocalSession>")]
pub struct AskAddress;

impl Handler<AskAddress> for PlayerActor {
    type Result = Option<LocalSession>;

    fn handle(&mut self, _: AskAddress, _: &mut Context<Self>) -> Option<LocalSession> {
        self.session().address().cloned()
    }
}

impl PlayerActor {
    /// A session whose client has just connected.
    pub fn new(setup: PlayerSetup) -> PlayerActor {
        PlayerActor(Rc::new(RefCell::new(Session::new(setup))))
    }

    fn session(&self) -> RefMut<'_, Session> {
        self.0.borrow_mut()
    }

    /// Looks at deadlines and at the client's queue, now and then.
    fn refresh(&mut self, ctx: &mut Context<Self>) {
        if let Some(claim) = self.claim_again() {
            ctx.spawn(claim);
        }
        let mut session = self.session();
        let queued = session.sink.queued();
        session.keep_position();
        session.renew_ticket();
        session.handle(PlayerInput::Timer { queued }, None);
        session.deliver_overdue();
    }
}

impl Session {
    fn new(setup: PlayerSetup) -> Session {
        let PlayerSetup { directory, sink, tokens, passes, config, check_every } = setup;
        let now_ms = directory.uptime().as_millis() as u64;
        let connection = directory.new_session();
        let player = Player::new(now_ms, connection, config.clone());
        Session {
            registered: player.id(),
            player,
            connection,
            sink,
            writer: None,
            credentials: Credentials::new(tokens, passes, &config),
            record: Record::default(),
            is_joining: false,
            is_asking: false,
            reorder: (!directory.is_alone()).then(ReorderBuffer::default),
            directory,
            config,
            check_every,
            is_disconnected: false,
            registration: None,
            actor: None,
            effects: Vec::new(),
            due: Vec::new(),
        }
    }

    /// Sends the client a message.
    fn send(&mut self, message: Bytes) -> Result<(), QueueFull> {
        self.sink.send(message, self.writer.as_deref())
    }

    /// The store of players' records, and the name of this session's player in it.
    fn store(&self) -> Option<(&Arc<dyn PlayerStore>, &str)> {
        let store = self.directory.player_store()?;
        Some((store, self.credentials.subject())).filter(|(_, subject)| !subject.is_empty())
    }

    /// Where regions reach it, once its actor has started.
    fn address(&self) -> Option<&LocalSession> {
        self.registration.as_ref().map(Registration::address)
    }

    /// Makes the session known to regions of other processes.
    fn register(&mut self) {
        self.registered = self.player.id();
        if let Some(to) = self.address() {
            let entry = SessionEntry { entity: self.registered, to: to.clone() };
            self.directory.register(self.player.session(), entry);
        }
    }
}

impl PlayerActor {
    /// To be called before the session takes a player. A number under which regions were asked for another player is
    /// given up, with its address: late answers to these questions reach nobody.
    fn renumber(&mut self) {
        let mut session = self.session();
        if !session.player.has_asked() {
            return;
        }
        session.directory.unregister(session.player.session());
        let number = session.directory.new_session();
        session.player.renumber(number);
        session.registration = Some(Registration::new(&session.directory, &self.0));
        session.reorder = session.reorder.take().map(|_| ReorderBuffer::default());
        session.register();
    }
}

impl Actor for PlayerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
        let (directory, every) = {
            let mut session = self.session();
            session.registration = Some(Registration::new(&session.directory, &self.0));
            session.actor = Some(ctx.address());
            session.register();
            (session.directory.clone(), session.check_every)
        };
        let refreshes = futures::stream::unfold(directory, move |directory| async move {
            sleep_until(directory.next_refresh(every)).await;
            Some(((), directory))
        });
        let refreshes = actix::fut::wrap_stream::<_, Self>(IdleGated::new(refreshes));
        ctx.spawn(refreshes.map(|(), actor, ctx| actor.refresh(ctx)).finish());
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        let mut session = self.session();
        session.registration = None;
        session.directory.unregister(session.player.session());
        if let Some(logins) = session.directory.logins() {
            logins.end(session.connection);
        }
        session.release_unused();
    }
}
