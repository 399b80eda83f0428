//! Establishes connections with peers in both directions: plain, or with mutual TLS. `dial` and
//! `serve` use it. A peer without a valid certificate must never get past it.

use std::fmt::Display;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};
use tonic::transport::server::Connected;

use crate::tls::{Named, Tls, Untrusted};

/// How long a peer may take for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Most handshakes at the same time; further connections wait.
const HANDSHAKES: usize = 1_024;

/// Most accepted connections that wait to be served.
const QUEUE: usize = 128;

/// Pause after a failed accept, for example when file descriptors ran out.
const AGAIN: Duration = Duration::from_millis(100);

/// Time between two log lines about refused peers.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// A connection with a peer.
#[derive(Debug)]
pub(super) enum Connection {
    Plain(TcpStream),
    /// Encrypted, with the process that the peer's certificate names.
    Secure(Box<TlsStream<TcpStream>>, Arc<Named>),
}

impl Connection {
    /// Connects to a peer, whose certificate must name `host`.
    pub(super) async fn call(
        stream: TcpStream,
        host: &str,
        tls: Option<&Tls>,
    ) -> Result<Connection, Untrusted> {
        let Some(tls) = tls else { return Ok(Connection::Plain(stream)) };
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(bare).map_err(|_| Untrusted::Name(host.into()))?;
        let called = TlsConnector::from(tls.call()).connect(name, stream).await;
        Connection::secure(called.map_err(|e| Untrusted::from(&e))?.into())
    }

    fn secure(stream: TlsStream<TcpStream>) -> Result<Connection, Untrusted> {
        let named = Named::of(stream.get_ref().1.peer_certificates())?;
        Ok(Connection::Secure(Box::new(stream), Arc::new(named)))
    }

    /// The process that the peer's certificate names.
    pub(super) fn named(&self) -> Shown {
        match self {
            Connection::Plain(_) => Shown(None),
            Connection::Secure(_, named) => Shown(Some(named.clone())),
        }
    }

    /// Performs the handshake with a peer that connected.
    async fn answer(stream: TcpStream, tls: Tls) -> Result<Connection, Untrusted> {
        let answered = TlsAcceptor::from(tls.serve()).accept(stream);
        let answered = tokio::time::timeout(HANDSHAKE, answered).await;
        let answered = answered.map_err(|_| Untrusted::Slow)?;
        Connection::secure(answered.map_err(|e| Untrusted::from(&e))?.into())
    }
}

/// The process that the peer's certificate names; `None` without TLS.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown(pub(super) Option<Arc<Named>>);

/// Counts and logs refused peers.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    count: AtomicU64,
    /// When the last line was logged, and the count at that time.
    told: Mutex<Option<(Instant, u64)>>,
}

impl Refusals {
    /// The number of refusals.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Counts a refused peer, and logs at most once a second.
    pub(super) fn note(&self, from: &dyn Display, error: &dyn Display) {
        self.note_as("a peer was refused", from, error);
    }

    /// The same with another log message.
    pub(super) fn note_as(&self, what: &str, from: &dyn Display, error: &dyn Display) {
        let count = self.count.fetch_add(1, Relaxed) + 1;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match *told {
            Some((at, _)) if at.elapsed() < SAY_EVERY => return,
            Some((_, before)) => before,
            None => 0,
        };
        *told = Some((Instant::now(), count));
        let more = count.saturating_sub(before + 1);
        tracing::warn!(%from, %error, more, "{what}");
    }
}

/// The stream of accepted connections. Accepting stops when it is dropped.
pub(super) fn callers(
    listener: TcpListener,
    tls: Option<Tls>,
    refusals: Arc<Refusals>,
) -> impl Stream<Item = io::Result<Connection>> {
    let (tell, told) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        tokio::select! {
            () = accept(listener, tls, refusals, tell.clone()) => {}
            () = tell.closed() => {}
        }
    });
    futures::stream::unfold(told, |mut told| async move { Some((Ok(told.recv().await?), told)) })
}

async fn accept(
    listener: TcpListener,
    tls: Option<Tls>,
    refusals: Arc<Refusals>,
    tell: mpsc::Sender<Connection>,
) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES));
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "the task of a peer's handshake failed");
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, %from, "a peer closed its connection at once");
            continue;
        }
        let Some(tls) = tls.clone() else {
            if tell.send(Connection::Plain(stream)).await.is_err() {
                return;
            }
            continue;
        };
        // The semaphore is never closed.
        let Ok(turn) = handshakes.clone().acquire_owned().await else { return };
        let (tell, refusals) = (tell.clone(), refusals.clone());
        tokio::spawn(async move {
            match Connection::answer(stream, tls).await {
                // An error means that the server has stopped.
                Ok(connection) => drop(tell.send(connection).await),
                Err(error) => refusals.note(&from, &error),
            }
            drop(turn);
        });
    }
}

impl Connected for Connection {
    type ConnectInfo = Shown;

    fn connect_info(&self) -> Shown {
        self.named()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Connection::Secure(stream, _) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Connection::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Connection::Secure(stream, _) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Connection::Secure(stream, _) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Connection::Secure(stream, _) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Connection::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Connection::Secure(stream, _) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Connection::Plain(stream) => stream.is_write_vectored(),
            Connection::Secure(stream, _) => stream.is_write_vectored(),
        }
    }
}
