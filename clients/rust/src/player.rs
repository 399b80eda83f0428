//! A player that stays in its scene when a connection breaks.
//!
//! Games that want automatic reconnection use [`Player`] instead of [`crate::Client`]. No accepted
//! input may be lost or sent twice with two numbers.
//!
//! ```text
//!             the connection breaks, or the gateway stops
//!   [up] --------------------------------------------------> [reconnecting]
//!     ^                                                        |    |
//!     |  resumed, and all inputs without an                    |    | the player is gone,
//!     |  acknowledgement were sent again                       |    | or patience is over
//!     '--------------------------------------------------------'    v
//!                                                               [over]
//! ```
//!
//! Each input is kept until a frame acknowledges it. Inputs given while reconnecting are kept, too,
//! and sent in order.

mod reconnect;

use std::sync::Arc;

use purview::scene::{EntityId, Seq};
use purview::wire::client::{Act, ClientMsg, Join, Joined, Leave, Ping, Refused, Ticket, Welcome};
use purview::wire::{CloseCode, ErrorCode};
use tokio::task::JoinHandle;

pub use self::reconnect::Retry;
use self::reconnect::{Back, Carrier, Shared, Way, catch_up, connect, lock};
use crate::inputs::inputs;
use crate::numbers::Numbers;
use crate::transport::Network;
use crate::trust::Trust;
use crate::{ClientError, Event, Login, Receiver, Sender};

/// Most inputs that wait for an acknowledgement; servers accept a few more.
const MAX_WAITING: usize = 240;

enum Line {
    Up(Box<(Sender, Receiver)>),
    Reconnecting(JoinHandle<Result<Back, ClientError>>),
    Over,
}

/// A player in a scene, over one connection after another.
pub struct Player {
    carrier: Carrier,
    urls: Arc<[String]>,
    /// Index of the present connection's address.
    at: usize,
    retry: Retry,
    /// The login token, for every hello.
    login: Login,
    welcome: Welcome,
    line: Line,
    numbers: Numbers,
    outbox: Shared,
    ack: Seq,
    ticket: Option<Ticket>,
    resumed: u64,
    failed_attempts: u64,
    bytes_before: u64,
}

impl Player {
    /// Connects to the first of these addresses that accepts the session, and joins.
    ///
    /// # Errors
    /// The last address's error, or [`ClientError::Refused`] from the first server that refuses the
    /// join.
    pub async fn join(
        urls: &[String],
        login: impl Into<Login>,
        join: Join,
        retry: Retry,
    ) -> Result<(Player, Joined), ClientError> {
        Player::join_trusting(Trust::platform(), urls, login, join, retry).await
    }

    /// As [`Player::join`], with other certificate authorities for `wss://` and `tls://` than the
    /// platform's.
    ///
    /// # Errors
    /// As [`Player::join`].
    pub async fn join_trusting(
        trust: Trust,
        urls: &[String],
        login: impl Into<Login>,
        join: Join,
        retry: Retry,
    ) -> Result<(Player, Joined), ClientError> {
        Player::join_over(Carrier::Machine(trust), urls, login.into(), join, retry).await
    }

    /// As [`Player::join`], over another network than the machine's.
    ///
    /// # Errors
    /// As [`Player::join`].
    pub async fn join_by(
        network: Arc<dyn Network>,
        urls: &[String],
        login: impl Into<Login>,
        join: Join,
        retry: Retry,
    ) -> Result<(Player, Joined), ClientError> {
        Player::join_over(Carrier::Given(network), urls, login.into(), join, retry).await
    }

    async fn join_over(
        carrier: Carrier,
        urls: &[String],
        login: Login,
        join: Join,
        retry: Retry,
    ) -> Result<(Player, Joined), ClientError> {
        let mut failed = ClientError::BadUrl { url: String::new() };
        for (at, url) in urls.iter().enumerate() {
            let mut client = match connect(&carrier, url, &login).await {
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
                login,
                welcome,
                line: Line::Up(Box::new(client.split())),
                numbers: Numbers::after(joined.ack),
                outbox: Shared::default(),
                ack: joined.ack,
                ticket: joined.ticket.clone(),
                resumed: 0,
                failed_attempts: 0,
                bytes_before: 0,
            };
            return Ok((player, joined));
        }
        Err(failed)
    }

    /// The server's welcome: its limits and tick length.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// The number that the next input will carry.
    pub fn next_seq(&self) -> Seq {
        self.numbers.next()
    }

    /// The last input that is known to be applied.
    pub fn ack(&self) -> Seq {
        self.ack
    }

    /// Whether the player has no connection and is reconnecting.
    pub fn is_coming_back(&self) -> bool {
        matches!(self.line, Line::Reconnecting(_))
    }

    /// How often the player has resumed.
    pub fn resumed(&self) -> u64 {
        self.resumed
    }

    /// How many attempts to resume failed before others succeeded.
    pub fn failed_attempts(&self) -> u64 {
        self.failed_attempts
    }

    /// Bytes of messages received over all connections.
    pub fn bytes_received(&self) -> u64 {
        match &self.line {
            Line::Up(line) => self.bytes_before + line.1.bytes_received(),
            Line::Reconnecting(_) | Line::Over => self.bytes_before,
        }
    }

    inputs!(
        "[`ClientError::Behind`]. A broken connection is not an error here: the input is kept."
    );

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

    /// See [`Sender::ping`]. Has no effect without a connection.
    ///
    /// # Errors
    /// None so far.
    pub async fn ping(&mut self, nonce: u64) -> Result<(), ClientError> {
        self.say(ClientMsg::from(Ping { nonce }).encode()).await;
        Ok(())
    }

    /// See [`Sender::leave`]. Has no effect without a connection: the player leaves when its grace
    /// period ends, or resumes first.
    ///
    /// # Errors
    /// None so far.
    pub async fn leave(&mut self) -> Result<(), ClientError> {
        self.say(ClientMsg::from(Leave {}).encode()).await;
        Ok(())
    }

    /// Closes the connection in order without leaving the scene; the player does not reconnect.
    ///
    /// # Errors
    /// The network failed; the player is over in any case.
    pub async fn close(&mut self) -> Result<(), ClientError> {
        self.bytes_before = self.bytes_received();
        match std::mem::replace(&mut self.line, Line::Over) {
            Line::Up(mut line) => line.0.close().await,
            Line::Reconnecting(task) => {
                task.abort();
                Ok(())
            }
            Line::Over => Ok(()),
        }
    }

    /// The next event. Cancel-safe: the future may be dropped while it waits.
    ///
    /// # Errors
    /// The player could not resume: [`ClientError::Refused`] says that it no longer exists. Or the
    /// server broke the protocol.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            match &mut self.line {
                Line::Up(line) => match line.1.next().await {
                    Ok(Event::Closed { code, .. }) if self.reconnects_after(code) => {
                        self.start_reconnecting()
                    }
                    Ok(event) => {
                        if self.note(&event) {
                            return Ok(event);
                        }
                    }
                    Err(error) if self.is_broken_by(&error) => self.start_reconnecting(),
                    Err(error) => return Err(error),
                },
                Line::Reconnecting(task) => {
                    let done = task.await;
                    let back = done.unwrap_or_else(|e| Err(std::io::Error::other(e).into()));
                    if let Some(event) = self.arrive(back)? {
                        return Ok(event);
                    }
                }
                Line::Over => {
                    let detail = "the player could not be resumed; join again".to_owned();
                    return Err(ClientError::Closed { code: None, detail });
                }
            }
        }
    }

    fn reconnects_after(&self, code: Option<CloseCode>) -> bool {
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

    /// Records an event; false if the caller need not see it.
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
                    // The input was sent again while the answer to its first copy was on its way.
                    return false;
                }
                self.numbers.refused(*seq, out_of_order);
                let next = self.numbers.next();
                lock(&self.outbox).waiting.retain(|(seq, _)| *seq < next);
            }
            Event::Refused(_)
            | Event::Lines(_)
            | Event::Pong(_)
            | Event::Unconfirmed(_)
            | Event::Left(_)
            | Event::Closed { .. } => {}
        }
        true
    }

    /// Accepts an input, and sends it if there is a connection.
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

    /// Sends on the present connection, if there is one.
    async fn say(&mut self, message: Vec<u8>) {
        let Line::Up(line) = &mut self.line else { return };
        if let Err(error) = line.0.send_encoded(message).await {
            tracing::debug!(%error, "a connection broke");
            // Messages that the server sent before the failure are received first.
        }
    }

    /// Starts reconnecting.
    fn start_reconnecting(&mut self) {
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
        self.line = Line::Reconnecting(tokio::spawn(way.reconnect()));
    }

    /// Continues on the new connection, after sending it the inputs that it has not carried yet.
    fn arrive(&mut self, back: Result<Back, ClientError>) -> Result<Option<Event>, ClientError> {
        let back = back.inspect_err(|_| self.line = Line::Over)?;
        if lock(&self.outbox).has_unsent() {
            let outbox = self.outbox.clone();
            self.line =
                Line::Reconnecting(tokio::spawn(async move { catch_up(back, &outbox).await }));
            return Ok(None);
        }
        let Back { failed, at, welcome, sender, receiver, joined } = back;
        (self.at, self.welcome) = (at, welcome);
        self.line = Line::Up(Box::new((sender, receiver)));
        self.resumed += 1;
        self.failed_attempts += failed;
        let event = Event::Resumed(Box::new(joined));
        self.note(&event);
        Ok(Some(event))
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        if let Line::Reconnecting(task) = &self.line {
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
