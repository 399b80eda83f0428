//! The way from an accepted socket to a session: PROXY header, admission, TLS, WebSocket handshake.
//!
//! The accept loop calls `dispatch` and never waits for a client: everything that a client can
//! delay happens in the task of its connection, and until a valid hello within limits of time and
//! number.

use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use purview::wire::CloseCode;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, timeout_at};

use super::connection::await_hangup;
use super::ending::Ending;
use super::frames::FrameCounter;
use super::metrics::Open;
use super::upgrade::NoUpgrade;
use super::{Carrier, Shared, proxy, socket, tcp, ws};
use crate::admission::{AdmissionError, RefusalReason, Ticket};

enum EntryOutcome {
    /// Admitted; the receiver fires when the connection is evicted.
    Admitted(Ticket, oneshot::Receiver<()>),
    /// Refused; the client is told why.
    Refused(AdmissionError, OwnedSemaphorePermit),
}

pub(super) struct Accepted {
    pub(super) socket: std::net::TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) carrier: Carrier,
}

impl Shared {
    /// Starts the task of a connection on one of the arbiters.
    pub(super) fn dispatch(self: &Arc<Self>, accepted: Accepted, ending: Ending) {
        let open = Open::new(&self.metrics);
        let peer = accepted.peer.ip().to_canonical();
        // For a proxy's connection the client's address follows in the PROXY header, so admission
        // waits for it.
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
                if let Err(error) = shared.connection(accepted, entry, ending).await {
                    tracing::debug!(%peer, %error, "a connection failed before its session");
                    shared.metrics.ended(None);
                }
                drop(open);
            });
        });
        if !spawned {
            purview::log_limited!(error, "a session arbiter has stopped");
        }
    }

    /// Asks for admission; `None`: drop the connection silently.
    fn enter(&self, from: IpAddr) -> Option<EntryOutcome> {
        let refused = match self.admission.admit(Some(from)) {
            Ok((ticket, evicted)) => return Some(EntryOutcome::Admitted(ticket, evicted)),
            Err(refused) => refused,
        };
        self.metrics.ended(Some(CloseCode::Overload));
        purview::log_limited!(warn, %from, %refused, "connection refused");
        Some(EntryOutcome::Refused(refused, self.telling.clone().try_acquire_owned().ok()?))
    }

    async fn connection(
        self: &Arc<Self>,
        Accepted { socket, peer, carrier }: Accepted,
        entry: Option<EntryOutcome>,
        ending: Ending,
    ) -> io::Result<()> {
        let mut socket = TcpStream::from_std(socket)?;
        let until = Instant::now() + self.config.handshake_timeout;
        let mut from = peer.ip().to_canonical();
        let entry = match entry {
            Some(entry) => entry,
            None => {
                let named = timeout_at(until, proxy::client_of(&mut socket)).await?;
                let named =
                    named.inspect_err(|_| self.metrics.admission.refused(RefusalReason::Proxy))?;
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
            EntryOutcome::Refused(refused, _told) => {
                self.carry(socket, at, Err(refused), ending).await
            }
            EntryOutcome::Admitted(ticket, evicted) => {
                let ticket = Arc::new(ticket);
                tokio::select! {
                    biased;
                    () = until_evicted(evicted) => {
                        tracing::debug!(%from, "a connection without a login was evicted");
                        self.metrics.ended(None);
                        Ok(())
                    }
                    carried = self.carry(socket, at, Ok(&ticket), ending) => carried,
                }
            }
        }
    }

    async fn carry(
        &self,
        socket: TcpStream,
        (carrier, until): (Carrier, Instant),
        entry: Result<&Arc<Ticket>, AdmissionError>,
        ending: Ending,
    ) -> io::Result<()> {
        // Everything before the hello shares one deadline.
        let socket = timeout_at(until, socket::secure(socket, self.tls.as_ref())).await??;
        let (said, socket) = match carrier {
            Carrier::WebSocket => {
                let counted = FrameCounter::new(self.config.rate_limit, self.config.burst);
                let shaken = ws::accept(socket, &self.config.origins, counted);
                let (mut inbound, mut outbound) = match timeout_at(until, shaken).await? {
                    Ok(halves) => halves,
                    Err((socket, no)) => return self.not_upgraded(socket, no).await,
                };
                let said = self.serve(&mut inbound, &mut outbound, entry, ending).await;
                (said, ws::socket(inbound, outbound))
            }
            Carrier::Tcp => {
                let (mut inbound, mut outbound) = tcp::split(socket);
                let said = self.serve(&mut inbound, &mut outbound, entry, ending).await;
                (said, tcp::socket(inbound, outbound))
            }
        };
        if let Some(socket) = socket.filter(|_| said) {
            await_hangup(socket, self.config.close_grace).await;
        }
        Ok(())
    }

    /// Waits until a refused HTTP client has read the answer.
    async fn not_upgraded(&self, socket: Option<socket::Socket>, no: NoUpgrade) -> io::Result<()> {
        if let Some(socket) = socket {
            await_hangup(socket, self.config.close_grace).await;
        }
        match no {
            NoUpgrade::Io(error) => Err(error),
            NoUpgrade::Answered(_) => {
                self.metrics.admission.refused(RefusalReason::Http);
                Err(io::Error::other(no))
            }
        }
    }
}

async fn until_evicted(evicted: oneshot::Receiver<()>) {
    // An error means that the connection has logged in.
    if evicted.await.is_err() {
        pending::<()>().await;
    }
}
