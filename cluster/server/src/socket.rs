//! Connections of gRPC servers, and how they are accepted: plain, encrypted, or on a Unix socket of
//! this machine. `peer`, `logic` and `interest` use it; what a peer's certificate must say is theirs
//! to check.
//!
//! A connection waits until its login ([`Caller::log_in`]). Until then it has little time, and gives
//! way to others ([`AdmissionControl`]). What must never happen here: a connection that is not accepted
//! because others say nothing.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{FutureExt, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Sleep;
use tokio_rustls::TlsStream;
use tonic::transport::server::Connected;

use crate::admission::{AdmissionControl, NotIn, Ticket};

/// How long the other side may take for its TLS handshake.
pub const HANDSHAKE: Duration = Duration::from_secs(5);

/// How long a connection may take until its login, its TLS handshake included.
const LOGIN: Duration = Duration::from_secs(10);

/// Most accepted connections that wait to be served.
const QUEUE: usize = 128;

/// Pause after a failed accept, for example when file descriptors ran out.
const AGAIN: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

#[derive(Debug)]
pub struct Connection<I> {
    socket: Socket,
    info: I,
    /// Its place among those of its listener; `None`: it was called, or comes from this machine.
    slot: Option<ConnectionSlot>,
}

impl<I> Connection<I> {
    pub fn new(socket: Socket, info: I) -> Connection<I> {
        Connection { socket, info, slot: None }
    }

    pub fn info(&self) -> &I {
        &self.info
    }
}

/// The place of a connection among those of its listener.
#[derive(Debug)]
struct ConnectionSlot {
    ticket: Arc<Ticket>,
    /// What ends the connection before its login; `None`: it has one.
    waits: Option<Waits>,
}

#[derive(Debug)]
struct Waits {
    evicted: oneshot::Receiver<()>,
    until: Pin<Box<Sleep>>,
}

impl ConnectionSlot {
    fn new((ticket, evicted): (Ticket, oneshot::Receiver<()>)) -> ConnectionSlot {
        let waits = Waits { evicted, until: Box::pin(tokio::time::sleep(LOGIN)) };
        ConnectionSlot { ticket: Arc::new(ticket), waits: Some(waits) }
    }

    /// Ready when the connection must end, because it has no login.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let Some(waits) = &mut self.waits else { return Poll::Pending };
        if self.ticket.is_logged_in() {
            self.waits = None;
            return Poll::Pending;
        }
        if let Poll::Ready(evicted) = waits.evicted.poll_unpin(cx) {
            self.waits = None;
            // An error means that it has a login by now.
            return match evicted {
                Ok(()) => Poll::Ready(io::Error::other("it gave way to another connection")),
                Err(_) => Poll::Pending,
            };
        }
        waits.until.as_mut().poll(cx).map(|()| {
            let why = format!("no request with a valid login within {} s", LOGIN.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, why)
        })
    }
}

/// The other side of a connection, as requests know it.
#[derive(Debug, Clone)]
pub struct Caller<I> {
    pub info: I,
    ticket: Option<Arc<Ticket>>,
}

impl<I> Caller<I> {
    /// The caller has shown who it is.
    pub fn log_in(&self) -> Result<(), NotIn> {
        self.ticket.as_ref().map_or(Ok(()), |ticket| ticket.log_in(None))
    }
}

pub type Accepted<I> = mpsc::Sender<Connection<I>>;

/// A queue of accepted connections, and the stream that serves them. Accepting stops when the stream
/// is dropped.
pub fn connections<I>() -> (Accepted<I>, impl Stream<Item = io::Result<Connection<I>>>) {
    let (accepted, mut queue) = mpsc::channel(QUEUE);
    (accepted, futures::stream::poll_fn(move |cx| queue.poll_recv(cx).map(|c| c.map(Ok))))
}

/// Accepts connections until nothing takes them any more. `greet` makes the handshake; `None`: the
/// connection is refused.
pub async fn accept<I, F>(
    listener: TcpListener,
    admission: Arc<AdmissionControl>,
    accepted: Accepted<I>,
    greet: impl Fn(TcpStream, SocketAddr) -> F,
) where
    I: Send + 'static,
    F: Future<Output = Option<Connection<I>>> + Send + 'static,
{
    let make_room = || {
        admission.make_room();
    };
    while let Some((stream, from)) = next(&accepted, || listener.accept(), make_room).await {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, %from, "a connection was closed at once");
            continue;
        }
        let mut slot = match admission.admit(Some(from.ip())) {
            Ok(admitted) => ConnectionSlot::new(admitted),
            Err(why) => {
                purview::log_limited!(warn, %from, %why, "a connection was refused");
                continue;
            }
        };
        let (accepted, greeted) = (accepted.clone(), greet(stream, from));
        tokio::spawn(async move {
            let greeted = tokio::select! {
                biased;
                why = poll_fn(|cx| slot.poll_end(cx)) => {
                    return tracing::debug!(%from, %why, "a connection ended in its handshake");
                }
                greeted = greeted => greeted,
            };
            if let Some(connection) = greeted {
                // An error means that the server has stopped.
                drop(accepted.send(Connection { slot: Some(slot), ..connection }).await);
            }
        });
    }
}

/// The next connection; `None`: nothing takes connections any more.
pub async fn next<I, T, F: Future<Output = io::Result<T>>>(
    accepted: &Accepted<I>,
    accept: impl Fn() -> F,
    make_room: impl Fn(),
) -> Option<T> {
    loop {
        let connection = tokio::select! {
            connection = accept() => connection,
            () = accepted.closed() => return None,
        };
        match connection {
            Ok(connection) => return Some(connection),
            Err(error) => {
                // Probably out of file descriptors.
                tracing::debug!(%error, "a connection could not be accepted");
                make_room();
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

impl<I: Clone + Send + Sync + 'static> Connected for Connection<I> {
    type ConnectInfo = Caller<I>;

    fn connect_info(&self) -> Caller<I> {
        let ticket = self.slot.as_ref().map(|slot| slot.ticket.clone());
        Caller { info: self.info.clone(), ticket }
    }
}

impl<I> Connection<I> {
    /// An error when the connection must end: a connection whose other side reads nothing is polled
    /// for writing only.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.slot.as_mut().map(|slot| slot.poll_end(cx)) {
            Some(Poll::Ready(why)) => Err(why),
            Some(Poll::Pending) | None => Ok(()),
        }
    }
}

/// Calls a method of whatever the bytes go through.
macro_rules! on {
    ($connection:expr, $stream:ident => $call:expr) => {
        match &mut $connection.get_mut().socket {
            Socket::Tcp($stream) => $call,
            Socket::Tls($stream) => $call,
            Socket::Unix($stream) => $call,
        }
    };
}

impl<I: Unpin> AsyncRead for Connection<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.as_mut().get_mut().check(cx)?;
        on!(self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl<I: Unpin> AsyncWrite for Connection<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.as_mut().get_mut().check(cx)?;
        on!(self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_mut().get_mut().check(cx)?;
        on!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.as_mut().get_mut().check(cx)?;
        on!(self, stream => Pin::new(stream).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.socket {
            Socket::Tcp(stream) => stream.is_write_vectored(),
            Socket::Tls(stream) => stream.is_write_vectored(),
            Socket::Unix(stream) => stream.is_write_vectored(),
        }
    }
}
