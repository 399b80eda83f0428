//! A player that stays in its scene when a connection breaks.
//!
//! ```text
//!             the connection breaks, or the gateway stops
//!   [up] --------------------------------------------------> [coming back]
//!     ^                                                       |    |
//!     |  resumed, and everything was sent again that          |    | the player is no more,
//!     |  was not acknowledged                                 |    | or patience is over
//!     '-------------------------------------------------------'    v
//!                                                               [over]
//! ```
//!
//! Each input is kept until a frame acknowledges it. What is said while the player comes back is kept, too, and
//! sent in order.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use purview::scene::movement::{MoveOrder, Tiles};
use purview::scene::{EntityId, Plane, Pos, Seq};
use purview::wire::client::{
    Act, ClientMsg, Join, Joined, Jump, Leave, Move, Ping, Refused, Ticket, Walk, Welcome,
};
use purview::wire::{CloseCode, ErrorCode};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::numbers::Numbers;
use crate::transport::Network;
use crate::trust::Trust;
use crate::{Client, ClientError, Event, Receiver, Sender, Walker};

/// Most inputs that wait for an acknowledgement; servers take a few more.
const MAX_WAITING: usize = 240;

/// How a player comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// The longest pause before the first attempt, and the shortest between two.
    pub first: Duration,
    /// The longest pause between two attempts; pauses double up to it.
    pub most: Duration,
    /// How long one attempt may take.
    pub attempt: Duration,
    /// After so long it is given up.
    pub patience: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            first: Duration::from_millis(100),
            most: Duration::from_secs(2),
            attempt: Duration::from_secs(12),
            patience: Duration::from_secs(30),
        }
    }
}

/// Inputs that were not acknowledged.
#[derive(Debug, Default)]
struct Outbox {
    waiting: VecDeque<(Seq, ClientMsg)>,
    /// The first that the present connection was not given.
    unsent: Seq,
}

impl Outbox {
    /// What is to be sent next, if anything.
    fn next(&mut self) -> Option<ClientMsg> {
        let (seq, message) = self.waiting.iter().find(|(seq, _)| *seq >= self.unsent)?;
        self.unsent = seq.next();
        Some(message.clone())
    }

    fn has_unsent(&self) -> bool {
        self.waiting.back().is_some_and(|(seq, _)| *seq >= self.unsent)
    }

    fn acknowledged(&mut self, upto: Seq) {
        while self.waiting.front().is_some_and(|(seq, _)| *seq <= upto) {
            self.waiting.pop_front();
        }
    }
}

type Shared = Arc<Mutex<Outbox>>;

fn lock(outbox: &Shared) -> MutexGuard<'_, Outbox> {
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection by which the player has come back.
struct Back {
    at: usize,
    welcome: Welcome,
    sender: Sender,
    receiver: Receiver,
    joined: Joined,
}

enum Line {
    Up(Box<(Sender, Receiver)>),
    ComingBack(JoinHandle<Result<Back, ClientError>>),
    Over,
}

/// A player in a scene, over one connection after another.
pub struct Player {
    carrier: Carrier,
    urls: Arc<[String]>,
    /// Which address the present connection goes to.
    at: usize,
    retry: Retry,
    /// The token of its login, for every hello.
    login: String,
    welcome: Welcome,
    line: Line,
    numbers: Numbers,
    outbox: Shared,
    ack: Seq,
    ticket: Option<Ticket>,
    resumed: u64,
    bytes_before: u64,
}

impl Player {
    /// Connects to the first of these addresses that lets it in, and joins.
    ///
    /// # Errors
    /// What the last of them said, or [`ClientError::Refused`] by the first one that refuses the join.
    pub async fn join(
        urls: &[String],
        token: &str,
        join: Join,
        retry: Retry,
    ) -> Result<(Player, Joined), ClientError> {
        Player::join_trusting(Trust::platform(), urls, token, join, retry).await
    }

    /// The same with other authorities for `wss://` and `tls://` than those of the machine.
    ///
    /// # Errors
    /// As [`Player::join`].
    pub async fn join_trusting(
        trust: Trust,
        urls: &[String],
        token: &str,
        join: Join,
        retry: Retry,
    ) -> Result<(Player, Joined), ClientError> {
        Player::join_over(Carrier::Machine(trust), urls, token, join, retry).await
    }

    /// The same by another network than the machine's.
    ///
    /// # Errors
    /// As [`Player::join`].
    pub async fn join_by(
        network: Arc<dyn Network>,
        urls: &[String],
        token: &str,
        join: Join,
        retry: Retry,
    ) -> Result<(Player, Joined), ClientError> {
        Player::join_over(Carrier::Given(network), urls, token, join, retry).await
    }

    async fn join_over(
        carrier: Carrier,
        urls: &[String],
        token: &str,
        join: Join,
        retry: Retry,
    ) -> Result<(Player, Joined), ClientError> {
        let mut failed = ClientError::BadUrl { url: String::new() };
        for (at, url) in urls.iter().enumerate() {
            let mut client = match connect(&carrier, url, token).await {
                Ok(client) => client,
                Err(error) => {
                    failed = error;
                    continue;
                }
            };
            let joined = client.join(join).await?;
            let welcome = client.welcome().clone();
            let player = Player {
                carrier,
                urls: urls.into(),
                at,
                retry,
                login: token.into(),
                welcome,
                line: Line::Up(Box::new(client.split())),
                numbers: Numbers::default(),
                outbox: Shared::default(),
                ack: Seq(0),
                ticket: joined.ticket.clone(),
                resumed: 0,
                bytes_before: 0,
            };
            return Ok((player, joined));
        }
        Err(failed)
    }

    /// What the server said at the door.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// The number that the next input will carry.
    pub fn next_seq(&self) -> Seq {
        self.numbers.next()
    }

    /// The last input that is known to have been applied.
    pub fn ack(&self) -> Seq {
        self.ack
    }

    /// Whether there is no connection just now.
    pub fn is_coming_back(&self) -> bool {
        matches!(self.line, Line::ComingBack(_))
    }

    /// How often it has come back.
    pub fn resumed(&self) -> u64 {
        self.resumed
    }

    /// Bytes of messages received so far, over all connections.
    pub fn bytes_received(&self) -> u64 {
        match &self.line {
            Line::Up(line) => self.bytes_before + line.1.bytes_received(),
            Line::ComingBack(_) | Line::Over => self.bytes_before,
        }
    }

    /// See [`Sender::send_move`].
    ///
    /// # Errors
    /// [`ClientError::Behind`]; a connection that breaks is none.
    pub async fn send_move(&mut self, pos: Pos) -> Result<Seq, ClientError> {
        self.input(|seq| Move { seq, pos }.into()).await
    }

    /// See [`Sender::walk`].
    ///
    /// # Errors
    /// As [`Player::send_move`].
    pub async fn walk<T: Tiles>(
        &mut self,
        now: purview::scene::movement::ClientMs,
        walker: &mut Walker<T>,
    ) -> Result<(), ClientError> {
        while let Some(order) = walker.poll(now, self.next_seq()) {
            self.send_walk(&order).await?;
        }
        Ok(())
    }

    /// See [`Sender::send_walk`].
    ///
    /// # Errors
    /// As [`Player::send_move`].
    pub async fn send_walk(&mut self, order: &MoveOrder) -> Result<Seq, ClientError> {
        self.input(|seq| Walk::of(seq, order).into()).await
    }

    /// See [`Sender::jump`].
    ///
    /// # Errors
    /// As [`Player::send_move`].
    pub async fn jump(
        &mut self,
        scene: Option<String>,
        plane: Option<Plane>,
        pos: Pos,
    ) -> Result<Seq, ClientError> {
        self.input(|seq| Jump { seq, scene, plane, pos }.into()).await
    }

    /// See [`Sender::act`]; `aim` as in [`Sender::act_at`].
    ///
    /// # Errors
    /// As [`Player::send_move`].
    pub async fn act(
        &mut self,
        payload: Vec<u8>,
        aim: Option<EntityId>,
    ) -> Result<Seq, ClientError> {
        self.input(|seq| Act { seq, payload: payload.into(), aim }.into()).await
    }

    /// See [`Sender::ping`]. Of no effect while there is no connection.
    ///
    /// # Errors
    /// None so far.
    pub async fn ping(&mut self, nonce: u64) -> Result<(), ClientError> {
        self.say(ClientMsg::from(Ping { nonce }).encode()).await;
        Ok(())
    }

    /// See [`Sender::leave`]. Of no effect while there is no connection: the player is left by then, or
    /// comes back first.
    ///
    /// # Errors
    /// None so far.
    pub async fn leave(&mut self) -> Result<(), ClientError> {
        self.say(ClientMsg::from(Leave {}).encode()).await;
        Ok(())
    }

    /// Closes the connection in order, without leaving first; the player does not come back.
    ///
    /// # Errors
    /// The network failed; it is over either way.
    pub async fn close(&mut self) -> Result<(), ClientError> {
        self.bytes_before = self.bytes_received();
        match std::mem::replace(&mut self.line, Line::Over) {
            Line::Up(mut line) => line.0.close().await,
            Line::ComingBack(task) => {
                task.abort();
                Ok(())
            }
            Line::Over => Ok(()),
        }
    }

    /// What happens next. May be dropped while it waits without losing anything.
    ///
    /// # Errors
    /// The player could not come back: [`ClientError::Refused`] says that it is no more. Or the server broke the
    /// protocol.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            match &mut self.line {
                Line::Up(line) => match line.1.next().await {
                    Ok(Event::Closed { code, .. }) if self.comes_back_after(code) => self.set_out(),
                    Ok(event) => {
                        if self.note(&event) {
                            return Ok(event);
                        }
                    }
                    Err(error) if self.is_broken_by(&error) => self.set_out(),
                    Err(error) => return Err(error),
                },
                Line::ComingBack(task) => {
                    let done = task.await;
                    let back = done.unwrap_or_else(|e| Err(std::io::Error::other(e).into()));
                    if let Some(event) = self.arrive(back)? {
                        return Ok(event);
                    }
                }
                Line::Over => {
                    let detail = "the player has not come back".to_owned();
                    return Err(ClientError::Closed { code: None, detail });
                }
            }
        }
    }

    fn comes_back_after(&self, code: Option<CloseCode>) -> bool {
        let excused = match code {
            None => true,
            Some(code) => matches!(
                code,
                CloseCode::GoingAway
                    | CloseCode::Elsewhere
                    | CloseCode::Heartbeat
                    | CloseCode::Slow
                    | CloseCode::Overload
                    | CloseCode::Internal
            ),
        };
        excused && self.ticket.is_some()
    }

    fn is_broken_by(&self, error: &ClientError) -> bool {
        self.ticket.is_some() && matches!(error, ClientError::Io(_) | ClientError::WebSocket(_))
    }

    /// Takes note of what has happened; false when nobody need know.
    fn note(&mut self, event: &Event) -> bool {
        match event {
            Event::Frame(frame) => {
                if frame.ack > self.ack {
                    self.ack = frame.ack;
                    lock(&self.outbox).acknowledged(self.ack);
                }
            }
            Event::Joined(joined) | Event::Resumed(joined) => {
                self.ticket.clone_from(&joined.ticket);
                self.ack = self.ack.max(joined.ack);
                lock(&self.outbox).acknowledged(self.ack);
            }
            Event::Refused(Refused { seq: Some(seq), code, .. }) => {
                let out_of_order = *code == ErrorCode::OutOfOrder;
                if out_of_order && *seq <= self.ack {
                    // It was sent again while the answer to the first time was on its way.
                    return false;
                }
                self.numbers.refused(*seq, out_of_order);
                let next = self.numbers.next();
                lock(&self.outbox).waiting.retain(|(seq, _)| *seq < next);
            }
            Event::Refused(_) | Event::Pong(_) | Event::Left(_) | Event::Closed { .. } => {}
        }
        true
    }

    /// Takes an input in, and sends it if there is a connection.
    async fn input(&mut self, message: impl FnOnce(Seq) -> ClientMsg) -> Result<Seq, ClientError> {
        let waiting = lock(&self.outbox).waiting.len();
        if waiting >= MAX_WAITING {
            return Err(ClientError::Behind(waiting));
        }
        let seq = self.numbers.take();
        let message = message(seq);
        let mut bytes = None;
        {
            let mut outbox = lock(&self.outbox);
            if matches!(self.line, Line::Up(_)) {
                bytes = Some(message.encode());
                outbox.unsent = seq.next();
            }
            outbox.waiting.push_back((seq, message));
        }
        if let Some(bytes) = bytes {
            self.say(bytes).await;
        }
        Ok(seq)
    }

    /// Sends by the present connection, if there is one.
    async fn say(&mut self, message: Vec<u8>) {
        let Line::Up(line) = &mut self.line else { return };
        if let Err(error) = line.0.send_encoded(message).await {
            tracing::debug!(%error, "a connection broke");
            // What was said by the server before that is heard before anything else is done.
        }
    }

    /// Begins to come back.
    fn set_out(&mut self) {
        self.bytes_before = self.bytes_received();
        if let Line::Up(line) = &self.line {
            self.ticket = line.1.ticket().cloned();
        }
        let Some(ticket) = self.ticket.clone() else {
            self.line = Line::Over;
            return;
        };
        let way = Way {
            carrier: self.carrier.clone(),
            urls: self.urls.clone(),
            at: self.at + 1,
            retry: self.retry,
            login: self.login.clone(),
            ticket: ticket.token,
            ack: self.ack,
            outbox: self.outbox.clone(),
        };
        self.line = Line::ComingBack(tokio::spawn(way.come_back()));
    }

    /// Goes on by the new connection. While something was said that it was not given, it is given that first.
    fn arrive(&mut self, back: Result<Back, ClientError>) -> Result<Option<Event>, ClientError> {
        let back = back.inspect_err(|_| self.line = Line::Over)?;
        if lock(&self.outbox).has_unsent() {
            let outbox = self.outbox.clone();
            self.line =
                Line::ComingBack(tokio::spawn(async move { catch_up(back, &outbox).await }));
            return Ok(None);
        }
        let Back { at, welcome, sender, receiver, joined } = back;
        (self.at, self.welcome) = (at, welcome);
        self.line = Line::Up(Box::new((sender, receiver)));
        self.resumed += 1;
        let event = Event::Resumed(Box::new(joined));
        self.note(&event);
        Ok(Some(event))
    }
}

/// Connects and says hello.
async fn connect(carrier: &Carrier, url: &str, token: &str) -> Result<Client, ClientError> {
    match carrier {
        Carrier::Given(network) => Client::connect_by(&**network, url, token).await,
        Carrier::Machine(trust) => Client::connect_trusting(trust, url, token).await,
    }
}

/// What connections are made by.
#[derive(Clone)]
enum Carrier {
    /// The machine's network.
    Machine(Trust),
    Given(Arc<dyn Network>),
}

/// What is needed to come back.
struct Way {
    carrier: Carrier,
    urls: Arc<[String]>,
    at: usize,
    retry: Retry,
    login: String,
    ticket: String,
    ack: Seq,
    outbox: Shared,
}

impl Way {
    async fn come_back(self) -> Result<Back, ClientError> {
        let until = Instant::now() + self.retry.patience;
        let jitter = Jitter::new(&self.carrier);
        let mut pause = self.retry.first;
        // Many who lost the same gateway do not all knock at the same door at the same time.
        sleep(jitter.below(pause)).await;
        for at in self.at.. {
            let at = at % self.urls.len().max(1);
            let late = |_| ClientError::Io(std::io::ErrorKind::TimedOut.into());
            let tried = timeout(self.retry.attempt, self.attempt(at)).await;
            match tried.map_err(late).flatten() {
                Ok(back) => return catch_up(back, &self.outbox).await,
                Err(error) if is_final(&error) || Instant::now() >= until => return Err(error),
                Err(error) => tracing::debug!(%error, url = self.urls[at], "cannot come back yet"),
            }
            sleep(pause + jitter.below(pause)).await;
            pause = (pause * 2).min(self.retry.most);
        }
        Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into())
    }

    async fn attempt(&self, at: usize) -> Result<Back, ClientError> {
        let url = self.urls.get(at).map(String::as_str).unwrap_or_default();
        let mut client = connect(&self.carrier, url, &self.login).await?;
        let joined = client.resume(&self.ticket, self.ack).await?;
        {
            let mut outbox = lock(&self.outbox);
            outbox.acknowledged(joined.ack);
            outbox.unsent = joined.ack.next();
        }
        let welcome = client.welcome().clone();
        let (sender, receiver) = client.split();
        Ok(Back { at, welcome, sender, receiver, joined })
    }
}

/// Sends what the new connection was not given: at half the rate that the server allows, since the player goes
/// on meanwhile. What breaks here is found out by whoever hears next.
async fn catch_up(mut back: Back, outbox: &Shared) -> Result<Back, ClientError> {
    let gap = Duration::from_secs(2) / back.welcome.rate_limit.max(1);
    let mut at_once = back.welcome.rate_limit / 2;
    loop {
        let Some(message) = lock(outbox).next() else { return Ok(back) };
        if let Err(error) = back.sender.send(message).await {
            tracing::debug!(%error, "a connection broke");
            return Ok(back);
        }
        match at_once {
            0 => sleep(gap).await,
            _ => at_once -= 1,
        }
    }
}

/// Whether another attempt would end in the same way.
fn is_final(error: &ClientError) -> bool {
    match error {
        ClientError::Refused(refused) => {
            matches!(refused.code, ErrorCode::Gone | ErrorCode::BadTicket)
        }
        ClientError::Closed { code, .. } => {
            matches!(code, Some(CloseCode::Token | CloseCode::Version | CloseCode::Replaced))
        }
        ClientError::BadUrl { .. }
        | ClientError::Trust(_)
        | ClientError::Decode(_)
        | ClientError::Unexpected { .. } => true,
        ClientError::Io(_) | ClientError::WebSocket(_) | ClientError::Behind(_) => false,
    }
}

/// Random enough for pauses.
enum Jitter {
    Own(RandomState),
    Given(Arc<dyn Network>),
}

impl Jitter {
    fn new(carrier: &Carrier) -> Jitter {
        match carrier {
            Carrier::Machine(_) => Jitter::Own(RandomState::new()),
            Carrier::Given(network) => Jitter::Given(network.clone()),
        }
    }

    /// A time below `most`.
    fn below(&self, most: Duration) -> Duration {
        let random = match self {
            Jitter::Own(state) => state.hash_one(std::time::SystemTime::now()) as u32,
            Jitter::Given(network) => network.random(),
        };
        most * (random % 1_024) / 1_024
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        if let Line::ComingBack(task) = &self.line {
            task.abort();
        }
    }
}

impl std::fmt::Debug for Player {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let back = self.is_coming_back();
        f.debug_struct("Player")
            .field("ack", &self.ack)
            .field("back", &back)
            .finish_non_exhaustive()
    }
}
