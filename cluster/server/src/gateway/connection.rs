//! The work of one connection, over any carrier: messages from the client go to its session, and
//! messages that the session queues are written to the client. The listeners call [`Link::serve`],
//! and so does the simulator.
//!
//! What must never happen here: a session that does not learn that its connection ended, or an
//! unbounded queue.

use std::cell::RefCell;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::rc::Weak;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use purview::actor::idle_gate::IdleGated;
use purview::actor::player::sink::{ClientOut, ClientQueue, WriteNow, WrittenNow};
use purview::actor::player::{FromSocket, SessionLine};
use purview::wire::client::Closing;
use purview::wire::{CloseCode, ServerMsg};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::ending::Ending;
use super::metrics::GatewayMetrics;
use super::socket::Socket;
use crate::admission::{NotIn, Ticket};

/// Most messages of a client that are read in a row before what waits for it is written.
const IN_A_ROW: u32 = 16;

/// Most messages between two flushes.
const MAX_BATCH: u64 = 64;

#[derive(Debug)]
pub enum SocketEvent {
    Message(Bytes),
    /// Data that is not a binary message; the last thing received.
    Unsupported,
    /// A message beyond the size limit; the last thing received.
    TooBig,
    /// A stream without valid framing; the last thing received.
    Unframed,
    /// Far more frames of the carrier than messages are allowed; the last thing received.
    TooManyFrames,
    /// A keep-alive of the carrier, such as a WebSocket ping.
    Alive,
    /// The client closed the connection, or it broke.
    End,
}

#[derive(Debug)]
pub struct Broken;

pub trait Inbound {
    fn receive(&mut self) -> impl Future<Output = SocketEvent>;
}

/// The writing half of a connection. Every error means that the connection is broken.
pub trait Outbound {
    /// Adds a message to the write buffer if that works without waiting; otherwise returns the
    /// message.
    fn put_now(&mut self, message: Bytes) -> Result<Option<Bytes>, Broken> {
        Ok(Some(message))
    }
    /// Adds a message to the write buffer.
    fn put(&mut self, message: Bytes) -> impl Future<Output = Result<(), Broken>>;
    /// Writes the buffered messages.
    fn flush(&mut self) -> impl Future<Output = Result<(), Broken>>;
    /// Writes to the connection from elsewhere on this thread, for as long as this half lives.
    fn writer(&self, _metrics: &Arc<GatewayMetrics>) -> Option<Box<dyn WriteNow>> {
        None
    }
    /// Closes the connection in the carrier's own way, after the last message.
    fn goodbye(&mut self, code: CloseCode, why: &str) -> impl Future<Output = Result<(), Broken>>;
}

/// A carrier that buffers what its socket does not take.
pub(super) trait Buffered {
    /// Adds a message to the write buffer, which has room.
    fn buffer(&mut self, message: Bytes) -> Result<(), Broken>;
    /// Writes the buffered messages.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>>;
}

/// Writes to a carrier that its connection shares.
pub(super) struct SharedWriter<C> {
    pub(super) carrier: Weak<RefCell<C>>,
    pub(super) metrics: Arc<GatewayMetrics>,
}

impl<C: Buffered> WriteNow for SharedWriter<C> {
    fn write_now(&self, message: Bytes) -> WrittenNow {
        let Some(carrier) = self.carrier.upgrade() else { return WrittenNow::Broken };
        let mut carrier = carrier.borrow_mut();
        let len = message.len() as u64;
        // The connection's task flushes what is left, and is woken for it by its queue.
        let mut nobody = Context::from_waker(Waker::noop());
        if carrier.buffer(message).is_err() {
            return WrittenNow::Broken;
        }
        let written = match carrier.poll_flush(&mut nobody) {
            Poll::Ready(Ok(())) => WrittenNow::Whole,
            Poll::Pending => WrittenNow::Partly,
            Poll::Ready(Err(Broken)) => return WrittenNow::Broken,
        };
        self.metrics.sent(1, len);
        written
    }
}

pub(super) struct Link<'a> {
    pub(super) session: SessionLine,
    pub(super) queue: ClientQueue,
    pub(super) metrics: &'a GatewayMetrics,
    pub(super) ending: Ending,
    /// What the session is told when the gateway stops.
    pub(super) at_stop: FromSocket,
    /// How long a client has to read its last messages.
    pub(super) close_grace: Duration,
    /// The connection's place among all connections.
    pub(super) ticket: &'a Ticket,
}

impl Link<'_> {
    /// Serves the connection until either side ends it; true when the closing message was written.
    pub(super) async fn serve(
        self,
        inbound: &mut impl Inbound,
        outbound: &mut impl Outbound,
    ) -> bool {
        let Link { session, mut queue, metrics, mut ending, at_stop, close_grace, ticket } = self;
        // An evicted connection is dropped at any await; the guard then tells the session.
        let left = Left(Some(&session));
        let (closing, closed) = (queue.closing(), queue.closing());
        let expire = async {
            if closing.await.is_none() {
                tracing::debug!("a session ended without a close code");
            }
            tokio::time::sleep(close_grace).await;
        };
        let stopping = async {
            ending.is_due().await;
            // An error means that the session has ended.
            let _told = session.tell(at_stop).await.is_ok();
            pending::<()>().await;
        };
        let ends = IdleGated::new(async {
            tokio::select! {
                biased;
                () = expire => {}
                () = stopping => {}
            }
        });
        // Ordered by frequency: writing is most frequent, then reading, then ends.
        let rest = IdleGated::new(async {
            tokio::select! {
                biased;
                () = listen(inbound, &session, metrics) => {}
                () = ends => {}
            }
        });
        let said = tokio::select! {
            biased;
            said = write_queue(&mut queue, outbound, metrics, ticket) => said,
            () = rest => false,
        };
        metrics.ended(closed.now_or_never().flatten().map(|code| amended(code, ticket)));
        // An error means that the session has ended.
        let _told = session.tell(FromSocket::Gone).await.is_ok();
        left.forget();
        said
    }
}

/// Tells the session on drop that its connection ended.
struct Left<'a>(Option<&'a SessionLine>);

impl Left<'_> {
    fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.0 {
            session.note(FromSocket::Gone);
        }
    }
}

/// The close code for the client: only the ticket knows that the token is valid, and that there is
/// no session for it.
fn amended(code: CloseCode, ticket: &Ticket) -> CloseCode {
    match (code, ticket.refusal()) {
        (CloseCode::Token, Some(NotIn::Subject(_))) => CloseCode::SubjectFull,
        (CloseCode::Token, Some(NotIn::Full | NotIn::Evicted)) => CloseCode::Overload,
        (code, _) => code,
    }
}

/// Sends an event to the session, and then waits for as long as it wants; false when the session has ended.
async fn tell(session: &SessionLine, what: FromSocket) -> bool {
    let mut pause = session.tell(what).await;
    while let Ok(time) = pause
        && !time.is_zero()
    {
        // The socket is not read: its buffers fill up, and the client's machine stops sending.
        tokio::time::sleep(time).await;
        pause = session.tell(FromSocket::Paused).await;
    }
    pause.is_ok()
}

async fn listen(inbound: &mut impl Inbound, session: &SessionLine, metrics: &GatewayMetrics) {
    let mut in_a_row = 0;
    loop {
        let (received, waited) = receive(inbound).await;
        in_a_row = if waited { 0 } else { in_a_row + 1 };
        if in_a_row == IN_A_ROW {
            in_a_row = 0;
            tokio::task::yield_now().await;
        }
        let (what, last) = match received {
            SocketEvent::Message(bytes) => {
                metrics.received(bytes.len());
                (FromSocket::Binary(bytes), false)
            }
            SocketEvent::Alive => (FromSocket::Alive, false),
            SocketEvent::Unsupported => (FromSocket::Unsupported, true),
            SocketEvent::Unframed => (FromSocket::Unframed, true),
            SocketEvent::TooBig => (FromSocket::TooBig, true),
            SocketEvent::TooManyFrames => (FromSocket::TooManyFrames, true),
            SocketEvent::End => return,
        };
        let alive = tell(session, what).await;
        if last || !alive {
            // The session closes the connection through its queue.
            return pending().await;
        }
    }
}

/// The next event, and whether it was waited for.
async fn receive(inbound: &mut impl Inbound) -> (SocketEvent, bool) {
    let mut waited = false;
    let mut next = pin!(inbound.receive());
    let event = poll_fn(|cx| {
        let polled = next.as_mut().poll(cx);
        waited |= polled.is_pending();
        polled
    });
    let event = event.await;
    (event, waited)
}

/// Writes what the session queues; true when the session closed the queue and everything was
/// written.
async fn write_queue(
    queue: &mut ClientQueue,
    outbound: &mut impl Outbound,
    metrics: &GatewayMetrics,
    ticket: &Ticket,
) -> bool {
    loop {
        let written = match queue.next().await {
            None => return false,
            Some(ClientOut::Rest) => outbound.flush().await,
            Some(ClientOut::Message(message)) => {
                let mut batch = Batch::default();
                match batch.put_ready(message, queue, outbound) {
                    Ok(None) => outbound.flush().await.inspect(|()| batch.count(metrics)),
                    Ok(Some(left)) => write_rest(batch, left, queue, outbound, metrics).await,
                    Err(broken) => Err(broken),
                }
            }
            Some(ClientOut::Close(code, why)) => {
                return send_closing(outbound, amended(code, ticket), why).await.is_ok();
            }
        };
        if written.is_err() {
            return false;
        }
    }
}

/// The messages since the last flush.
#[derive(Debug, Clone, Copy, Default)]
struct Batch {
    messages: u64,
    bytes: u64,
}

impl Batch {
    /// Buffers a message and those queued behind it, up to the first that would have to wait.
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

    /// Counts a buffered message and takes the next one, unless the batch is full.
    fn next(&mut self, len: usize, queue: &mut ClientQueue) -> Option<Bytes> {
        self.messages += 1;
        self.bytes += len as u64;
        if self.messages < MAX_BATCH { queue.take_ready() } else { None }
    }

    fn count(self, metrics: &GatewayMetrics) {
        metrics.sent(self.messages, self.bytes);
    }
}

/// Continues a batch when a message has to wait.
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

pub(super) async fn send_closing(
    outbound: &mut impl Outbound,
    code: CloseCode,
    why: String,
) -> Result<(), Broken> {
    let closing = ServerMsg::from(Closing { code, detail: why.clone() });
    outbound.put(Bytes::from(closing.encode())).await?;
    outbound.goodbye(code, &why).await
}

/// Waits until the client has read its last messages and closed the connection. Closing a socket
/// with unread data resets the connection, and a reset discards data that the client has not read
/// yet.
pub(super) async fn await_hangup(mut socket: Socket, patience: Duration) {
    let drain = async {
        socket.shutdown().await?;
        let mut unread = [0; 1_024];
        while socket.read(&mut unread).await? > 0 {}
        Ok::<(), std::io::Error>(())
    };
    match tokio::time::timeout(patience, drain).await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => tracing::trace!(error = %e, "the connection of a client broke"),
        Err(_) => tracing::trace!("a client did not close its connection in time"),
    }
}
