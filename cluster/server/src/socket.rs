//! Connections of gRPC servers, and how they are accepted: plain, encrypted, or on a Unix socket of
//! this machine. `peer` and `interest` use it; what a peer's certificate must say is theirs to check.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsStream;
use tonic::transport::server::Connected;

/// How long the other side may take for its TLS handshake.
pub const HANDSHAKE: Duration = Duration::from_secs(5);

/// Most accepted connections that wait to be served.
const QUEUE: usize = 128;

/// Pause after a failed accept, for example when file descriptors ran out.
const AGAIN: Duration = Duration::from_millis(100);

/// The bytes of a connection.
#[derive(Debug)]
pub enum Socket {
    /// Plain text.
    Tcp(TcpStream),
    /// Encrypted.
    Tls(Box<TlsStream<TcpStream>>),
    /// On this machine.
    Unix(UnixStream),
}

/// A connection, and what is known of the other side.
#[derive(Debug)]
pub struct Connection<I> {
    socket: Socket,
    info: I,
}

impl<I> Connection<I> {
    /// A connection.
    pub fn new(socket: Socket, info: I) -> Connection<I> {
        Connection { socket, info }
    }

    /// What is known of the other side.
    pub fn info(&self) -> &I {
        &self.info
    }
}

/// Takes accepted connections.
pub type Accepted<I> = mpsc::Sender<Connection<I>>;

/// A queue of accepted connections, and the stream that serves them. Accepting stops when the stream
/// is dropped.
pub fn connections<I>() -> (Accepted<I>, impl Stream<Item = io::Result<Connection<I>>>) {
    let (accepted, mut queue) = mpsc::channel(QUEUE);
    (accepted, futures::stream::poll_fn(move |cx| queue.poll_recv(cx).map(|c| c.map(Ok))))
}

/// Accepts connections until nothing takes them any more. `greet` makes the handshake; `None`: the
/// connection is refused. At most `handshakes` are made at the same time; further connections wait.
pub async fn accept<I, F>(
    listener: TcpListener,
    handshakes: usize,
    accepted: Accepted<I>,
    greet: impl Fn(TcpStream, SocketAddr) -> F,
) where
    I: Send + 'static,
    F: Future<Output = Option<Connection<I>>> + Send + 'static,
{
    let handshakes = Arc::new(Semaphore::new(handshakes));
    while let Some((stream, from)) = next(&accepted, || listener.accept()).await {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, %from, "a connection was closed at once");
            continue;
        }
        // The semaphore is never closed.
        let Ok(turn) = handshakes.clone().acquire_owned().await else { return };
        let (accepted, greeted) = (accepted.clone(), greet(stream, from));
        tokio::spawn(async move {
            if let Some(connection) = greeted.await {
                // An error means that the server has stopped.
                drop(accepted.send(connection).await);
            }
            drop(turn);
        });
    }
}

/// The next connection; `None`: nothing takes connections any more.
pub async fn next<I, T, F: Future<Output = io::Result<T>>>(
    accepted: &Accepted<I>,
    accept: impl Fn() -> F,
) -> Option<T> {
    loop {
        let connection = tokio::select! {
            connection = accept() => connection,
            () = accepted.closed() => return None,
        };
        match connection {
            Ok(connection) => return Some(connection),
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

impl<I: Clone + Send + Sync + 'static> Connected for Connection<I> {
    type ConnectInfo = I;

    fn connect_info(&self) -> I {
        self.info.clone()
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
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        on!(self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl<I: Unpin> AsyncWrite for Connection<I> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        on!(self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
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
