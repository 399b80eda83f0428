//! Establishes connections with peers in both directions: plain, or with mutual TLS. `dial` and
//! `serve` use it. A peer without a valid certificate must never get past it.

use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures::Stream;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use super::Links;
use crate::admission::{AdmissionControl, Counters};
use crate::socket::{self, HANDSHAKE, Socket};
use crate::tls::{Named, Tls, Untrusted};

/// Most connections of peers that were accepted by their hello: each has one for each kind of
/// channel.
const SESSIONS: u64 = 4_096;

/// Most connections without an accepted hello. One more makes the oldest one of the busiest source
/// end.
const WAITING: usize = 1_024;

/// Most connections of one address, and of these without an accepted hello.
const OF_ADDRESS: (u32, u32) = (1_024, 128);

/// Most streams of a peer's connection at the same time; it uses one.
pub(super) const STREAMS: u32 = 64;

/// Time between two log lines about refused peers.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// A connection with a peer, and the process that its certificate names.
pub(super) type Connection = socket::Connection<PeerIdentity>;

/// Connects to a peer, whose certificate must name `host`, unless that is an IP address. The caller checks which
/// process the certificate names.
pub(super) async fn call(
    stream: TcpStream,
    host: &str,
    tls: Option<&Tls>,
) -> Result<Connection, Untrusted> {
    let Some(tls) = tls else { return Ok(plain(stream)) };
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(bare).map_err(|_| Untrusted::Name(host.into()))?;
    let config = match &name {
        ServerName::IpAddress(_) => tls.call_by_ip(),
        _ => tls.call(),
    };
    let called = TlsConnector::from(config).connect(name, stream).await;
    secure(called.map_err(|e| Untrusted::from(&e))?.into())
}

fn plain(stream: TcpStream) -> Connection {
    Connection::new(Socket::Tcp(stream), PeerIdentity::default())
}

fn secure(stream: TlsStream<TcpStream>) -> Result<Connection, Untrusted> {
    let named = Named::of(stream.get_ref().1.peer_certificates())?;
    Ok(Connection::new(Socket::Tls(Box::new(stream)), PeerIdentity(Some(Arc::new(named)))))
}

async fn answer(stream: TcpStream, tls: Option<Tls>) -> Result<Connection, Untrusted> {
    let Some(tls) = tls else { return Ok(plain(stream)) };
    let answered = TlsAcceptor::from(tls.serve()).accept(stream);
    let answered = tokio::time::timeout(HANDSHAKE, answered).await;
    let answered = answered.map_err(|_| Untrusted::Slow)?;
    secure(answered.map_err(|e| Untrusted::from(&e))?.into())
}

/// The process that the peer's certificate names; `None` without TLS.
#[derive(Debug, Clone, Default)]
pub(super) struct PeerIdentity(pub(super) Option<Arc<Named>>);

#[derive(Debug, Default)]
pub(super) struct Refusals {
    count: AtomicU64,
    /// When the last line was logged, and the count at that time.
    told: Mutex<Option<(Instant, u64)>>,
}

impl Refusals {
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
        let mut told = self.told.lock();
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

impl Links {
    pub(crate) fn connections(&self) -> &Counters {
        &self.0.inboxes.connections
    }
}

/// The stream of accepted connections. Accepting stops when it is dropped.
pub(super) fn callers(
    listener: TcpListener,
    tls: Option<Tls>,
    refusals: Arc<Refusals>,
    counters: Arc<Counters>,
) -> impl Stream<Item = io::Result<Connection>> {
    let (accepted, connections) = socket::connections();
    let admission = AdmissionControl::of_listener(SESSIONS, WAITING, OF_ADDRESS, counters);
    tokio::spawn(socket::accept(listener, admission, accepted, move |stream, from| {
        let (tls, refusals) = (tls.clone(), refusals.clone());
        async move {
            let answered = answer(stream, tls).await;
            answered.inspect_err(|error| refusals.note(&from, error)).ok()
        }
    }));
    connections
}
