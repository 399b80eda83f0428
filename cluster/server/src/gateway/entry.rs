//! From an accepted socket to a session: the proxy's header, admission, TLS, the WebSocket handshake.
//!
//! Accepting never waits for a client: all that a client may delay happens in the connection's own task, and until a
//! valid hello within limits of time and of number.

use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use purview::wire::CloseCode;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::time::{Instant, timeout_at};

use super::admission::{Refused, Ticket};
use super::connection::linger;
use super::metrics::{Open, Refusal};
use super::upgrade::NoUpgrade;
use super::{Carrier, Shared, proxy, socket, tcp, ws};

/// What becomes of a connection.
enum Entry {
    /// It goes on; it ends when the second part is told.
    In(Ticket, oneshot::Receiver<()>),
    /// It is told why it ends.
    Out(Refused, OwnedSemaphorePermit),
}

/// A connection that was accepted.
pub(super) struct Accepted {
    pub(super) socket: std::net::TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) carrier: Carrier,
}

impl Shared {
    /// Serves a connection on one of the arbiters.
    pub(super) fn dispatch(self: &Arc<Self>, accepted: Accepted, stop: watch::Receiver<bool>) {
        let open = Open::new(&self.metrics);
        let peer = accepted.peer.ip().to_canonical();
        // Whose client a proxy's connection is says its header, which is to be waited for.
        let entry = match self.config.proxies.iter().any(|net| net.contains(&peer)) {
            true => None,
            false => match self.enter(peer) {
                Some(entry) => Some(entry),
                None => return,
            },
        };
        let turn = self.next_arbiter.fetch_add(1, Ordering::Relaxed) % self.arbiters.len();
        let shared = Arc::clone(self);
        let spawned = self.arbiters[turn].spawn_fn(move || {
            actix::spawn(async move {
                if let Err(error) = shared.connection(accepted, entry, stop).await {
                    tracing::debug!(%peer, %error, "a connection failed before its session began");
                    shared.metrics.ended(None);
                }
                drop(open);
            });
        });
        if !spawned {
            purview::log_limited!(error, "an arbiter for sessions is gone");
        }
    }

    /// Asks for a place; `None`: the connection is to be dropped without a word.
    fn enter(&self, from: IpAddr) -> Option<Entry> {
        let refused = match self.admission.admit(Some(from)) {
            Ok((ticket, evicted)) => return Some(Entry::In(ticket, evicted)),
            Err(refused) => refused,
        };
        self.metrics.ended(Some(CloseCode::Overload));
        self.metrics.refused(refused.kind());
        if let Some(more) = self.refusals.due() {
            tracing::warn!(%from, %refused, more, "a connection is refused");
        }
        Some(Entry::Out(refused, self.telling.clone().try_acquire_owned().ok()?))
    }

    async fn connection(
        self: &Arc<Self>,
        Accepted { socket, peer, carrier }: Accepted,
        entry: Option<Entry>,
        stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let mut socket = TcpStream::from_std(socket)?;
        let until = Instant::now() + self.config.handshake_timeout;
        let mut from = peer.ip().to_canonical();
        let entry = match entry {
            Some(entry) => entry,
            None => {
                let named = timeout_at(until, proxy::client_of(&mut socket)).await?;
                let named = named.inspect_err(|_| self.metrics.refused(Refusal::Proxy))?;
                from = named.unwrap_or(from);
                match self.enter(from) {
                    Some(entry) => entry,
                    None => return Ok(()),
                }
            }
        };
        tracing::debug!(%from, ?carrier, "a client connects");
        let at = (carrier, until);
        match entry {
            Entry::Out(refused, _told) => self.carry(socket, at, Err(refused), stop).await,
            Entry::In(ticket, evicted) => {
                let ticket = Arc::new(ticket);
                tokio::select! {
                    biased;
                    () = told(evicted) => {
                        tracing::debug!(%from, "a client that has not logged in makes room");
                        self.metrics.ended(None);
                        Ok(())
                    }
                    carried = self.carry(socket, at, Ok(&ticket), stop) => carried,
                }
            }
        }
    }

    async fn carry(
        &self,
        socket: TcpStream,
        (carrier, until): (Carrier, Instant),
        entry: Result<&Arc<Ticket>, Refused>,
        stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        // What comes before hello shares one limit of time.
        let socket = timeout_at(until, socket::secure(socket, self.tls.as_ref())).await??;
        let (said, socket) = match carrier {
            Carrier::WebSocket => {
                let shaken = ws::accept(socket, &self.config.origins);
                let (mut inbound, mut outbound) = match timeout_at(until, shaken).await? {
                    Ok(halves) => halves,
                    Err((socket, no)) => return self.not_upgraded(socket, no).await,
                };
                let said = self.serve(&mut inbound, &mut outbound, entry, stop).await;
                (said, ws::socket(inbound, outbound))
            }
            Carrier::Tcp => {
                let (mut inbound, mut outbound) = tcp::split(socket);
                let said = self.serve(&mut inbound, &mut outbound, entry, stop).await;
                (said, tcp::socket(inbound, outbound))
            }
        };
        if let Some(socket) = socket.filter(|_| said) {
            linger(socket, self.config.close_grace).await;
        }
        Ok(())
    }

    /// Lets who asked for something else read the answer.
    async fn not_upgraded(&self, socket: Option<socket::Socket>, no: NoUpgrade) -> io::Result<()> {
        if let Some(socket) = socket {
            linger(socket, self.config.close_grace).await;
        }
        match no {
            NoUpgrade::Io(error) => Err(error),
            NoUpgrade::Answered(_) => {
                self.metrics.refused(Refusal::Http);
                Err(io::Error::other(no))
            }
        }
    }
}

/// Waits until a connection is told to make room.
async fn told(evicted: oneshot::Receiver<()>) {
    // An error says that it has logged in.
    if evicted.await.is_err() {
        pending::<()>().await;
    }
}
