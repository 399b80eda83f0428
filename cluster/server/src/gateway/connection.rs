//! One connection's work, whatever carries it: what is heard goes to the session, what the session
//! queues is written.

use std::future::pending;
use std::time::Duration;

use actix::Addr;
use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use purview::actor::idle_gate::Seldom;
use purview::actor::player::sink::{ClientOut, ClientQueue};
use purview::actor::player::{FromSocket, PlayerActor};
use purview::wire::client::Closing;
use purview::wire::{CloseCode, ServerMsg};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

use super::admission::Ticket;
use super::metrics::GatewayMetrics;
use super::socket::Socket;

/// Most messages that are written before they are flushed.
const MAX_BATCH: u64 = 64;

/// What came from a client.
#[derive(Debug)]
pub enum Heard {
    /// A binary message.
    Message(Bytes),
    /// Data that is no binary message; nothing is heard after it.
    Unsupported,
    /// A message beyond the limit; nothing is heard after it.
    TooBig,
    /// A stream that has lost its place; nothing is heard after it.
    Unframed,
    /// A sign of life below the protocol.
    Alive,
    /// The client's end of the connection is closed or broken.
    End,
}

/// The connection is broken.
#[derive(Debug)]
pub struct Broken;

/// The reading half of a connection.
pub trait Inbound {
    /// Waits for the client.
    fn hear(&mut self) -> impl Future<Output = Heard>;
}

/// The writing half of a connection. Each error says that the connection is broken.
pub trait Outbound {
    /// Puts a message among those to be written where that is done at once; else it is given back.
    ///
    /// # Errors
    /// The connection is broken.
    fn put_now(&mut self, message: Bytes) -> Result<Option<Bytes>, Broken> {
        Ok(Some(message))
    }
    /// Puts a message among those to be written.
    fn put(&mut self, message: Bytes) -> impl Future<Output = Result<(), Broken>>;
    /// Writes what was put.
    fn flush(&mut self) -> impl Future<Output = Result<(), Broken>>;
    /// Says goodbye in the carrier's own way, after the last message.
    fn goodbye(&mut self, code: CloseCode, why: &str) -> impl Future<Output = Result<(), Broken>>;
}

/// What binds a connection to its session.
pub(super) struct Link<'a> {
    pub(super) session: Addr<PlayerActor>,
    pub(super) queue: ClientQueue,
    pub(super) metrics: &'a GatewayMetrics,
    pub(super) stop: watch::Receiver<bool>,
    /// What the session is told then.
    pub(super) at_stop: FromSocket,
    /// How long a client has to read its last messages.
    pub(super) close_grace: Duration,
    /// The connection's place.
    pub(super) ticket: &'a Ticket,
}

impl Link<'_> {
    /// Serves the connection until either side ends it; true when the last word was written.
    pub(super) async fn serve(
        self,
        inbound: &mut impl Inbound,
        outbound: &mut impl Outbound,
    ) -> bool {
        let Link { session, mut queue, metrics, mut stop, at_stop, close_grace, ticket } = self;
        // A connection that makes room for another is dropped where it stands.
        let left = Left(Some(&session));
        let (closing, closed) = (queue.closing(), queue.closing());
        let expire = async {
            if closing.await.is_none() {
                tracing::debug!("a session ended without a close");
            }
            tokio::time::sleep(close_grace).await;
        };
        let stopping = async {
            // An error says that the gateway itself is gone: the same.
            let _stopped = stop.wait_for(|stop| *stop).await.is_ok();
            tell(&session, at_stop).await;
            pending::<()>().await;
        };
        let ends = Seldom::new(async {
            tokio::select! {
                biased;
                () = expire => {}
                () = stopping => {}
            }
        });
        // There is more to say than to hear, and more to hear than ends.
        let rest = Seldom::new(async {
            tokio::select! {
                biased;
                () = listen(inbound, &session, metrics) => {}
                () = ends => {}
            }
        });
        let said = tokio::select! {
            biased;
            said = speak(&mut queue, outbound, metrics, ticket) => said,
            () = rest => false,
        };
        metrics.ended(closed.now_or_never().flatten().map(|code| amended(code, ticket)));
        tell(&session, FromSocket::Gone).await;
        left.forget();
        said
    }
}

/// A session whose connection has not ended.
struct Left<'a>(Option<&'a Addr<PlayerActor>>);

impl Left<'_> {
    /// The session knows that its connection has ended.
    fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.0 {
            session.do_send(FromSocket::Gone);
        }
    }
}

/// The session knows only that it may not go on; the connection's ticket knows whether that is for want of room.
fn amended(code: CloseCode, ticket: &Ticket) -> CloseCode {
    match code {
        CloseCode::Token if ticket.is_too_many() => CloseCode::Overload,
        other => other,
    }
}

/// Tells the session; false when it is over.
async fn tell(session: &Addr<PlayerActor>, what: FromSocket) -> bool {
    session.send(what).await.is_ok()
}

async fn listen(inbound: &mut impl Inbound, session: &Addr<PlayerActor>, metrics: &GatewayMetrics) {
    loop {
        let (what, last) = match inbound.hear().await {
            Heard::Message(bytes) => {
                metrics.heard(bytes.len());
                (FromSocket::Binary(bytes), false)
            }
            Heard::Alive => (FromSocket::Alive, false),
            Heard::Unsupported => (FromSocket::Unsupported, true),
            Heard::Unframed => (FromSocket::Unframed, true),
            Heard::TooBig => (FromSocket::TooBig, true),
            Heard::End => return,
        };
        let alive = tell(session, what).await;
        if last || !alive {
            // The session has the last word; the writer ends the connection.
            return pending().await;
        }
    }
}

/// Writes what the session queues; true when it closed the queue and that was written.
async fn speak(
    queue: &mut ClientQueue,
    outbound: &mut impl Outbound,
    metrics: &GatewayMetrics,
    ticket: &Ticket,
) -> bool {
    loop {
        let written = match queue.next().await {
            None => return false,
            Some(ClientOut::Message(message)) => {
                let mut batch = Batch::default();
                match batch.put_ready(message, queue, outbound) {
                    Ok(None) => outbound.flush().await.inspect(|()| batch.count(metrics)),
                    Ok(Some(left)) => write_rest(batch, left, queue, outbound, metrics).await,
                    Err(broken) => Err(broken),
                }
            }
            Some(ClientOut::Close(code, why)) => {
                return last_word(outbound, amended(code, ticket), why).await.is_ok();
            }
        };
        if written.is_err() {
            return false;
        }
    }
}

/// Messages that are written before they are flushed.
#[derive(Debug, Clone, Copy, Default)]
struct Batch {
    messages: u64,
    bytes: u64,
}

impl Batch {
    /// Puts a message and what is queued behind it, up to the first that would have to wait.
    fn put_ready(
        &mut self,
        first: Bytes,
        queue: &mut ClientQueue,
        outbound: &mut impl Outbound,
    ) -> Result<Option<Bytes>, Broken> {
        let mut next = Some(first);
        while let Some(message) = next {
            let len = message.len();
            if let Some(left) = outbound.put_now(message)? {
                return Ok(Some(left));
            }
            next = self.next(len, queue);
        }
        Ok(None)
    }

    /// One was put; gives the next one, if any is to be.
    fn next(&mut self, len: usize, queue: &mut ClientQueue) -> Option<Bytes> {
        self.messages += 1;
        self.bytes += len as u64;
        if self.messages < MAX_BATCH { queue.take_ready() } else { None }
    }

    fn count(self, metrics: &GatewayMetrics) {
        metrics.sent(self.messages, self.bytes);
    }
}

/// The same where a message has to wait.
async fn write_rest(
    mut batch: Batch,
    mut message: Bytes,
    queue: &mut ClientQueue,
    outbound: &mut impl Outbound,
    metrics: &GatewayMetrics,
) -> Result<(), Broken> {
    loop {
        let len = message.len();
        outbound.put(message).await?;
        match batch.next(len, queue) {
            Some(next) => message = next,
            None => break,
        }
    }
    outbound.flush().await?;
    batch.count(metrics);
    Ok(())
}

/// Tells a client why its connection ends.
pub(super) async fn last_word(
    outbound: &mut impl Outbound,
    code: CloseCode,
    why: String,
) -> Result<(), Broken> {
    let closing = ServerMsg::from(Closing { code, detail: why.clone() });
    outbound.put(Bytes::from(closing.encode())).await?;
    outbound.goodbye(code, &why).await
}

/// Lets the client read its last messages before the socket goes: closing a socket with unread data
/// resets the connection, and a reset takes away what the client has not read.
pub(super) async fn linger(mut socket: Socket, patience: Duration) {
    let drain = async {
        socket.shutdown().await?;
        let mut unread = [0; 1_024];
        while socket.read(&mut unread).await? > 0 {}
        Ok::<(), std::io::Error>(())
    };
    match tokio::time::timeout(patience, drain).await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => tracing::trace!(error = %e, "a client broke off"),
        Err(_) => tracing::trace!("a client did not hang up"),
    }
}
