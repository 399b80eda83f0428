//! Reconnecting: attempts with growing pauses, and the inputs that wait meanwhile.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use purview::scene::Seq;
use purview::wire::client::{ClientMsg, Joined, Welcome};
use purview::wire::{CloseCode, ErrorCode};
use tokio::time::{Instant, sleep, timeout};

use crate::transport::Network;
use crate::trust::Trust;
use crate::{Client, ClientError, Login, Receiver, Sender};

/// How a player reconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Upper bound of the random pause before the first attempt, and the shortest pause between
    /// attempts.
    pub first: Duration,
    /// The longest pause between two attempts; pauses double up to it.
    pub most: Duration,
    /// Time limit of one attempt.
    pub attempt: Duration,
    /// Time after which reconnecting is given up.
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

/// Inputs without an acknowledgement.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub(super) waiting: VecDeque<(Seq, ClientMsg)>,
    /// The first input that was not sent on the present connection.
    pub(super) unsent: Seq,
}

impl Outbox {
    /// The next input to send, if any.
    pub(super) fn next(&mut self) -> Option<ClientMsg> {
        let (seq, message) = self.waiting.iter().find(|(seq, _)| *seq >= self.unsent)?;
        self.unsent = seq.next();
        Some(message.clone())
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.waiting.back().is_some_and(|(seq, _)| *seq >= self.unsent)
    }

    pub(super) fn acknowledged(&mut self, upto: Seq) {
        while self.waiting.front().is_some_and(|(seq, _)| *seq <= upto) {
            self.waiting.pop_front();
        }
    }
}

pub(super) type Shared = Arc<Mutex<Outbox>>;

pub(super) fn lock(outbox: &Shared) -> MutexGuard<'_, Outbox> {
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection on which the player has resumed.
pub(super) struct Back {
    /// Attempts that failed before this one.
    pub(super) failed: u64,
    pub(super) at: usize,
    pub(super) welcome: Welcome,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) joined: Joined,
}

/// Connects and sends the hello.
pub(super) async fn connect(
    carrier: &Carrier,
    url: &str,
    login: &Login,
) -> Result<Client, ClientError> {
    match carrier {
        Carrier::Given(network) => Client::connect_by(&**network, url, login.clone()).await,
        Carrier::Machine(trust) => Client::connect_trusting(trust, url, login.clone()).await,
    }
}

/// The source of connections.
#[derive(Clone)]
pub(super) enum Carrier {
    /// The machine's network.
    Machine(Trust),
    Given(Arc<dyn Network>),
}

impl Carrier {
    /// A random time below `most`.
    fn below(&self, most: Duration) -> Duration {
        let random = match self {
            Carrier::Machine(_) => RandomState::new().hash_one(SystemTime::now()) as u32,
            Carrier::Given(network) => network.random(),
        };
        most * (random % 1_024) / 1_024
    }
}

/// The parameters of reconnecting.
pub(super) struct Way {
    pub(super) carrier: Carrier,
    pub(super) urls: Arc<[String]>,
    pub(super) at: usize,
    pub(super) retry: Retry,
    pub(super) login: Login,
    pub(super) ticket: String,
    pub(super) ack: Seq,
    pub(super) outbox: Shared,
}

impl Way {
    pub(super) async fn reconnect(self) -> Result<Back, ClientError> {
        let until = Instant::now() + self.retry.patience;
        let (mut pause, mut failed) = (self.retry.first, 0);
        // Spread the attempts of clients that lost the same gateway.
        sleep(self.carrier.below(pause)).await;
        for at in self.at.. {
            let at = at % self.urls.len().max(1);
            let late = |_| ClientError::Io(std::io::ErrorKind::TimedOut.into());
            let tried = timeout(self.retry.attempt, self.attempt(at)).await;
            match tried.map_err(late).flatten() {
                Ok(back) => return catch_up(Back { failed, ..back }, &self.outbox).await,
                Err(error) if is_final(&error) || Instant::now() >= until => return Err(error),
                Err(error) => tracing::debug!(%error, url = self.urls[at], "cannot reconnect yet"),
            }
            failed += 1;
            sleep(pause + self.carrier.below(pause)).await;
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
        Ok(Back { failed: 0, at, welcome, sender, receiver, joined })
    }
}

/// Sends the inputs that the new connection has not carried, at half the rate that the server
/// allows, because the player continues meanwhile. A failure here shows at the next receive.
pub(super) async fn catch_up(mut back: Back, outbox: &Shared) -> Result<Back, ClientError> {
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

/// Whether every further attempt would fail in the same way.
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
