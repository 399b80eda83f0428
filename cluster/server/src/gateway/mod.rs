//! The gateway: listens for clients over WebSocket and TCP and runs their connections.
//!
//! A process starts it once. Each connection is a task on one of the given arbiters, on the same
//! thread as its session. The task reads no faster than the session works, and it writes everything
//! that the session has queued at once. What must never happen here: bytes of one client that affect
//! another session, except through regions; or waiting for a client in the accept loop.

pub(crate) mod connection;
mod ending;
mod entry;
mod frames;
mod metrics;
mod proxy;
mod socket;
mod tcp;
pub mod token;
mod upgrade;
mod ws;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix::ArbiterHandle;
use ipnet::IpNet;
use parking_lot::Mutex;
use purview::actor::directory::Directory;
use purview::actor::player::{FromSocket, Passes, PlayerSetup, SessionLine, TokenCheck};
use purview::scene::player::PlayerConfig;
use purview::wire::CloseCode;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

pub use metrics::GatewayMetrics;
pub use token::{ClusterTokens, TokenError, Tokens};

use crate::admission::{AddressLimits, AdmissionControl, AdmissionError, Bounds, Ticket};
use crate::descriptors;
use crate::tls::server::ServerTls;
use crate::tls::{self, CertificateSettings, TlsError};
use connection::{Inbound, Link, Outbound, send_closing};
use ending::{Ending, Phase, Phases, closed};
use entry::Accepted;
use metrics::Open;

/// Most refused connections that are told the reason at the same time; further ones are dropped
/// silently.
const TOLD_AT_ONCE: usize = 64;

/// Pause after a failed accept, for example when file descriptors ran out.
const AGAIN: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayConfig {
    /// Address for WebSocket clients; port 0: any free port; `None`: off.
    pub ws_addr: Option<SocketAddr>,
    /// Address for TCP clients; port 0: any free port; `None`: off.
    pub tcp_addr: Option<SocketAddr>,
    /// Messages per second that a client may send on average.
    pub rate_limit: u32,
    /// Messages that a client may send in one burst.
    pub burst: u32,
    /// A client that sends nothing for this long is closed.
    pub heartbeat: Duration,
    /// Time for the WebSocket handshake, and again for hello and join.
    pub handshake_timeout: Duration,
    pub send_queue: usize,
    /// How long a client may read nothing before its session is closed.
    pub slow_close: Duration,
    /// Grace period of a player whose client disconnected, at most 49 days; zero: the player leaves
    /// at once.
    pub grace_period: Duration,
    /// Most sessions, that is, connections with a valid hello.
    pub max_sessions: u64,
    pub max_sessions_per_subject: u32,
    /// Most connections without a valid hello. One more evicts the oldest connection of the address
    /// that has most.
    pub unauthenticated: usize,
    pub limits: AddressLimits,
    /// Proxies that name the client of each connection in a PROXY protocol header, version 2.
    pub proxies: Vec<IpNet>,
    /// Origins of the web pages that may connect; empty: all.
    pub origins: Vec<String>,
    /// How long a client has to read its last messages and close the connection.
    pub close_grace: Duration,
    /// How often a session checks its deadlines and its queue.
    pub check_every: Duration,
    /// The kernel's send buffer per connection, in bytes. Data in it can no longer be replaced by
    /// newer state, so a small buffer keeps slow clients up to date.
    pub send_buffer: u32,
    /// The certificate that clients are shown; `None`: no TLS.
    pub tls: Option<CertificateSettings>,
}

impl GatewayConfig {
    /// The longest time in which a gateway closes all sessions.
    pub fn stop_limit(&self) -> Duration {
        self.close_grace * 2 + Duration::from_secs(1)
    }
}

impl Default for GatewayConfig {
    fn default() -> Self {
        GatewayConfig {
            ws_addr: Some(SocketAddr::from(([127, 0, 0, 1], 7777))),
            tcp_addr: Some(SocketAddr::from(([127, 0, 0, 1], 7778))),
            rate_limit: 100,
            burst: 1_000,
            heartbeat: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(5),
            send_queue: 32,
            slow_close: Duration::from_secs(10),
            grace_period: Duration::from_secs(10),
            max_sessions: 20_000,
            max_sessions_per_subject: 8,
            unauthenticated: 2_000,
            limits: AddressLimits::default(),
            proxies: Vec::new(),
            origins: Vec::new(),
            close_grace: Duration::from_secs(2),
            check_every: Duration::from_millis(250),
            send_buffer: 64 * 1_024,
            tls: None,
        }
    }
}

impl GatewayConfig {
    pub fn player(&self) -> PlayerConfig {
        PlayerConfig {
            rate_limit: self.rate_limit,
            rate_burst: self.burst,
            heartbeat_ms: self.heartbeat.as_millis() as u64,
            handshake_ms: self.handshake_timeout.as_millis() as u64,
            send_queue: self.send_queue,
            slow_close_ms: self.slow_close.as_millis() as u64,
            grace_period_ms: u32::try_from(self.grace_period.as_millis()).unwrap_or(u32::MAX),
            ..PlayerConfig::default()
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    #[error("cannot listen on {addr}: {source}")]
    Listen { addr: SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("a gateway needs at least one arbiter to run sessions")]
    NoArbiter,
}

/// A running gateway. Dropping it stops it without waiting for clients.
#[derive(Debug)]
pub struct Gateway {
    ws_addr: Option<SocketAddr>,
    tcp_addr: Option<SocketAddr>,
    secure: bool,
    metrics: Arc<GatewayMetrics>,
    phase: watch::Sender<Phase>,
    patience: Duration,
}

#[derive(Debug, Clone, Copy)]
enum Carrier {
    WebSocket,
    Tcp,
}

struct Shared {
    config: GatewayConfig,
    tls: Option<ServerTls>,
    directory: Arc<Directory>,
    tokens: TokenCheck,
    passes: Arc<dyn Passes>,
    metrics: Arc<GatewayMetrics>,
    admission: Arc<AdmissionControl>,
    /// Permits for refused connections that are told the reason.
    telling: Arc<Semaphore>,
    arbiters: Vec<ArbiterHandle>,
    next_arbiter: AtomicUsize,
}

impl Shared {
    fn new(
        config: GatewayConfig,
        directory: Arc<Directory>,
        tokens: TokenCheck,
        passes: Arc<dyn Passes>,
    ) -> Shared {
        let metrics = Arc::<GatewayMetrics>::default();
        let bounds = Bounds {
            sessions: config.max_sessions,
            waiting: config.unauthenticated,
            per_subject: config.max_sessions_per_subject,
            refuses_when_full: true,
        };
        let admission =
            AdmissionControl::new(config.limits.clone(), bounds, metrics.admission.clone());
        let telling = Arc::new(Semaphore::new(TOLD_AT_ONCE));
        let (tls, arbiters, next_arbiter) = Default::default();
        Shared {
            config,
            tls,
            directory,
            tokens,
            passes,
            metrics,
            admission,
            telling,
            arbiters,
            next_arbiter,
        }
    }
}

impl Gateway {
    /// Starts to listen. Call it inside a running arbiter, which then accepts connections; their
    /// sessions are spread over `arbiters`.
    pub async fn start(
        config: GatewayConfig,
        directory: Arc<Directory>,
        tokens: ClusterTokens,
        arbiters: Vec<ArbiterHandle>,
    ) -> Result<Gateway, GatewayError> {
        if arbiters.is_empty() {
            return Err(GatewayError::NoArbiter);
        }
        let bind = |addr: Option<SocketAddr>| {
            addr.map(|addr| {
                listen(addr, config.send_buffer)
                    .map_err(|source| GatewayError::Listen { addr, source })
            })
            .transpose()
        };
        let tls = config.tls.as_ref().map(|files| ServerTls::load(tls::server::GATEWAY, files));
        let tls = tls.transpose()?;
        descriptors::provide(config.max_sessions, config.unauthenticated as u64);
        let ws = bind(config.ws_addr)?;
        let tcp = bind(config.tcp_addr)?;
        let (phase, phases) = watch::channel(Phase::Open);
        let mut ends = phases.clone();
        let tokens_of = tokens.tokens().clone();
        actix::spawn(token::follow(tokens_of, async move { closed(&mut ends).await }));
        let passes: Arc<dyn Passes> = Arc::new(tokens.clone());
        let tokens: TokenCheck =
            Arc::new(move |token| tokens.check(token).map_err(|e| e.to_string()));
        let secure = tls.is_some();
        let shared = Shared::new(config, directory, tokens, passes);
        let shared = Arc::new(Shared { tls, arbiters, ..shared });
        let gateway = Gateway {
            ws_addr: ws.as_ref().map(|(addr, _)| *addr),
            tcp_addr: tcp.as_ref().map(|(addr, _)| *addr),
            secure,
            metrics: Arc::clone(&shared.metrics),
            phase,
            patience: shared.config.stop_limit(),
        };
        for (listener, carrier) in [(ws, Carrier::WebSocket), (tcp, Carrier::Tcp)] {
            if let Some((addr, listener)) = listener {
                tracing::info!(%addr, ?carrier, secure, "listening for clients");
                actix::spawn(accept(Arc::clone(&shared), listener, carrier, phases.clone()));
            }
        }
        Ok(gateway)
    }

    /// A gateway without listeners: tests bring the connections themselves.
    pub(crate) fn simulated(
        config: GatewayConfig,
        directory: Arc<Directory>,
        tokens: TokenCheck,
        passes: Arc<dyn Passes>,
    ) -> (Gateway, TestListener) {
        let (phase, phases) = watch::channel(Phase::Open);
        let patience = config.stop_limit();
        let shared = Shared::new(config, directory, tokens, passes);
        let (metrics, secure) = (shared.metrics.clone(), false);
        let gateway = Gateway { ws_addr: None, tcp_addr: None, secure, metrics, phase, patience };
        let stops = Arc::new(Mutex::new(Stops::default()));
        (gateway, TestListener { shared: Arc::new(shared), phases, stops })
    }

    pub fn ws_addr(&self) -> Option<SocketAddr> {
        self.ws_addr
    }

    pub fn tcp_addr(&self) -> Option<SocketAddr> {
        self.tcp_addr
    }

    /// Whether clients connect with TLS, by `wss://` and `tls://`.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    pub fn metrics(&self) -> &Arc<GatewayMetrics> {
        &self.metrics
    }

    /// Goes on to admit clients for this time, and meanwhile closes the sessions that it has, one by one.
    pub async fn lame_duck(&self, lasts: Duration) {
        if lasts.is_zero() {
            return;
        }
        tracing::info!(?lasts, "sessions are closed one by one; clients are still admitted");
        self.phase.send_replace(Phase::LameDuck { since: Instant::now(), lasts });
        tokio::time::sleep(lasts).await;
    }

    /// Stops: accepts no more connections, closes every session with [`CloseCode::GoingAway`], or,
    /// in a cluster, with [`CloseCode::Elsewhere`], and waits for the clients to close their
    /// connections, but not longer than [`GatewayConfig::stop_limit`].
    pub async fn stop(self) {
        self.phase.send_replace(Phase::Closed);
        if tokio::time::timeout(self.patience, self.phase.closed()).await.is_err() {
            let open = self.metrics.connections_open.load(Ordering::Relaxed);
            tracing::warn!(open, "some clients did not close their connections in time");
        }
    }
}

/// The entrance of a gateway without listeners, for tests.
#[derive(Clone)]
pub struct TestListener {
    shared: Arc<Shared>,
    phases: Phases,
    stops: Arc<Mutex<Stops>>,
}

/// Receivers of the stop signal, in the order in which they subscribed.
#[derive(Default)]
struct Stops {
    came: u64,
    open: BTreeMap<u64, watch::Sender<Phase>>,
}

impl TestListener {
    /// Waits until the gateway stops; then all connections are told.
    pub async fn stopped(&mut self) {
        closed(&mut self.phases).await;
        for stop in self.stops.lock().open.values() {
            stop.send_replace(Phase::Closed);
        }
    }

    /// Serves a connection until either side ends it.
    pub async fn serve(&self, inbound: &mut impl Inbound, outbound: &mut impl Outbound) {
        let _open = Open::new(&self.shared.metrics);
        let entry = self.shared.admission.admit(None).map(|(ticket, _)| Arc::new(ticket));
        let (stop, stopping) = watch::channel(*self.phases.borrow());
        let number = {
            let mut stops = self.stops.lock();
            stops.came += 1;
            let number = stops.came;
            stops.open.insert(number, stop);
            number
        };
        let entry = entry.as_ref().map_err(|refused| *refused);
        if entry.is_err() {
            self.shared.metrics.ended(Some(CloseCode::Overload));
        }
        self.shared.serve(inbound, outbound, entry, Ending::of(stopping, number)).await;
        self.stops.lock().open.remove(&number);
    }
}

fn listen(addr: SocketAddr, send_buffer: u32) -> std::io::Result<(SocketAddr, TcpListener)> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    // Accepted sockets inherit the size.
    socket.set_send_buffer_size(send_buffer)?;
    socket.bind(addr)?;
    let listener = socket.listen(1_024)?;
    Ok((listener.local_addr()?, listener))
}

async fn accept(shared: Arc<Shared>, listener: TcpListener, carrier: Carrier, mut phases: Phases) {
    let ends = phases.clone();
    for number in 0.. {
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            () = closed(&mut phases) => return,
        };
        // A std socket is not bound to this arbiter's reactor; the session's arbiter registers it
        // with its own.
        let accepted = accepted.and_then(|(socket, peer)| {
            socket.set_nodelay(true)?;
            Ok(Accepted { socket: socket.into_std()?, peer, carrier })
        });
        match accepted {
            Ok(accepted) => shared.dispatch(accepted, Ending::of(ends.clone(), number)),
            Err(error) => {
                // Probably out of file descriptors: evict a connection without a login, and let
                // sessions end.
                let makes_room = shared.admission.make_room();
                purview::log_limited!(warn, %error, makes_room, "cannot accept a connection");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

impl Shared {
    /// Serves a connection; true when its client was told why it ends.
    async fn serve(
        &self,
        inbound: &mut impl Inbound,
        outbound: &mut impl Outbound,
        entry: Result<&Arc<Ticket>, AdmissionError>,
        ending: Ending,
    ) -> bool {
        let ticket = match entry {
            Ok(ticket) => ticket,
            Err(refused) => {
                let say = send_closing(outbound, CloseCode::Overload, refused.to_string());
                let said = tokio::time::timeout(self.config.close_grace, say).await;
                return matches!(said, Ok(Ok(())));
            }
        };
        let config = self.config.player();
        let (sink, queue) = PlayerSetup::queue(&config);
        let setup = PlayerSetup {
            directory: Arc::clone(&self.directory),
            sink,
            tokens: self.tokens_of(ticket),
            passes: Some(Arc::clone(&self.passes)),
            config,
            check_every: self.config.check_every,
        };
        let session = SessionLine::start(setup, outbound.writer(&self.metrics));
        let close_grace = self.config.close_grace;
        // In a cluster clients can go on with another gateway.
        let at_stop = if self.directory.is_alone() { FromSocket::Stop } else { FromSocket::Drain };
        let metrics = &self.metrics;
        let link = Link { session, queue, metrics, ending, at_stop, close_grace, ticket };
        link.serve(inbound, outbound).await
    }

    /// The token check of a session. It records the result in the connection's ticket.
    fn tokens_of(&self, ticket: &Arc<Ticket>) -> TokenCheck {
        // A weak pointer, because the session outlives its connection.
        let (tokens, ticket) = (self.tokens.clone(), Arc::downgrade(ticket));
        Arc::new(move |token| {
            let checked = tokens(token);
            let ticket = ticket.upgrade().ok_or("the connection is gone")?;
            match &checked {
                Ok(login) => {
                    ticket.log_in(Some(&login.0.subject)).map_err(|why| why.to_string())?
                }
                Err(_) => ticket.fail(),
            }
            checked
        })
    }
}

#[cfg(test)]
mod tests;
