//! The gateway: where clients connect, over WebSocket and over TCP.
//!
//! Each connection is a task on one of the given arbiters, beside its session, a
//! [`PlayerActor`]. The task reads no faster than the session works and writes whatever the session
//! has queued in one go. Nothing that a client sends reaches another session but through regions.

mod link;
mod metrics;
mod socket;
mod tcp;
pub mod token;
mod ws;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::{Actor, ArbiterHandle};
use purview::actor::directory::Directory;
use purview::actor::player::{FromSocket, Passes, PlayerActor, PlayerSetup, TokenCheck};
use purview::scene::player::PlayerConfig;
use purview::wire::CloseCode;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

pub use self::metrics::GatewayMetrics;
pub use self::token::Tokens;

pub(crate) use self::link::{Broken, Heard, Inbound, Outbound};
use self::link::{Link, last_word, linger};
use self::metrics::Open;
use crate::config::CertificateSettings;
use crate::tls::server::ServerTls;
use crate::tls::{self, TlsError};

/// Connections beyond the cap that are told so; still more are dropped without a word.
const TURNED_AWAY_AT_ONCE: u64 = 64;

/// How a gateway is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayConfig {
    /// Where WebSocket clients connect; port 0 takes any, `None` none.
    pub ws_addr: Option<SocketAddr>,
    /// Where TCP clients connect; port 0 takes any, `None` none.
    pub tcp_addr: Option<SocketAddr>,
    /// Messages that a client may send per second.
    pub rate_limit: u32,
    /// Messages that it may send at once after a silence.
    pub burst: u32,
    /// A client must be heard from at least this often.
    pub heartbeat: Duration,
    /// Time for the WebSocket handshake, and again for hello and join.
    pub handshake_timeout: Duration,
    /// Messages that may wait for a client.
    pub send_queue: usize,
    /// How long a client that does not read is held before it is closed.
    pub slow_close: Duration,
    /// For how long a player stays in its scene when its client's connection breaks, at most 49 days; zero: it
    /// leaves at once.
    pub linger: Duration,
    /// Most connections.
    pub max_sessions: u64,
    /// How long a client has to read its last messages and hang up.
    pub close_grace: Duration,
    /// How often a session looks at its deadlines and its queue.
    pub check_every: Duration,
    /// The kernel's send buffer per connection, in bytes. What lies there can no longer be
    /// replaced by newer state, so a small one keeps slow clients up to date.
    pub send_buffer: u32,
    /// The certificate that clients are shown; `None`: they are talked to plain.
    pub tls: Option<CertificateSettings>,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        GatewayConfig {
            ws_addr: Some(SocketAddr::from(([127, 0, 0, 1], 7777))),
            tcp_addr: Some(SocketAddr::from(([127, 0, 0, 1], 7778))),
            rate_limit: 60,
            burst: 120,
            heartbeat: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(5),
            send_queue: 32,
            slow_close: Duration::from_secs(10),
            linger: Duration::from_secs(10),
            max_sessions: 20_000,
            close_grace: Duration::from_secs(2),
            check_every: Duration::from_millis(250),
            send_buffer: 64 * 1_024,
            tls: None,
        }
    }
}

impl GatewayConfig {
    /// The limits of each session.
    pub fn player(&self) -> PlayerConfig {
        PlayerConfig {
            rate_limit: self.rate_limit,
            rate_burst: self.burst,
            heartbeat_ms: self.heartbeat.as_millis() as u64,
            handshake_ms: self.handshake_timeout.as_millis() as u64,
            send_queue: self.send_queue,
            slow_close_ms: self.slow_close.as_millis() as u64,
            linger_ms: u32::try_from(self.linger.as_millis()).unwrap_or(u32::MAX),
            ..PlayerConfig::default()
        }
    }
}

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// An address cannot be listened on.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The certificate that clients would be shown cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There is no arbiter to run sessions on.
    #[error("a gateway needs an arbiter to run its sessions on")]
    NoArbiter,
}

/// A running gateway. Dropping it stops it, too, without waiting for anybody.
#[derive(Debug)]
pub struct Gateway {
    ws_addr: Option<SocketAddr>,
    tcp_addr: Option<SocketAddr>,
    secure: bool,
    metrics: Arc<GatewayMetrics>,
    stop: watch::Sender<bool>,
    patience: Duration,
}

#[derive(Debug, Clone, Copy)]
enum Carrier {
    WebSocket,
    Tcp,
}

/// What all connections share.
struct Shared {
    config: GatewayConfig,
    tls: Option<ServerTls>,
    directory: Arc<Directory>,
    tokens: TokenCheck,
    passes: Arc<dyn Passes>,
    metrics: Arc<GatewayMetrics>,
    arbiters: Vec<ArbiterHandle>,
    next_arbiter: AtomicUsize,
}

impl Gateway {
    /// Listens; to be called inside a running arbiter, which accepts connections. Their sessions
    /// are spread over `arbiters`.
    ///
    /// # Errors
    /// When an address cannot be listened on, or `arbiters` is empty.
    pub async fn start(
        config: GatewayConfig,
        directory: Arc<Directory>,
        tokens: Tokens,
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
        let ws = bind(config.ws_addr)?;
        let tcp = bind(config.tcp_addr)?;
        let (stop, stopping) = watch::channel(false);
        let metrics = Arc::new(GatewayMetrics::default());
        let gateway = Gateway {
            ws_addr: ws.as_ref().map(|(addr, _)| *addr),
            tcp_addr: tcp.as_ref().map(|(addr, _)| *addr),
            secure: tls.is_some(),
            metrics: Arc::clone(&metrics),
            stop,
            patience: config.close_grace * 2 + Duration::from_secs(1),
        };
        let passes: Arc<dyn Passes> = Arc::new(tokens.clone());
        let tokens: TokenCheck = Arc::new(move |token| {
            tokens.verify(token).map(|claims| claims.sub).map_err(|e| e.to_string())
        });
        let next_arbiter = AtomicUsize::new(0);
        let shared = Arc::new(Shared {
            config,
            tls,
            directory,
            tokens,
            passes,
            metrics,
            arbiters,
            next_arbiter,
        });
        for (listener, carrier) in [(ws, Carrier::WebSocket), (tcp, Carrier::Tcp)] {
            if let Some((addr, listener)) = listener {
                let secure = shared.tls.is_some();
                tracing::info!(%addr, ?carrier, secure, "clients may connect");
                actix::spawn(accept(Arc::clone(&shared), listener, carrier, stopping.clone()));
            }
        }
        Ok(gateway)
    }

    /// A gateway that listens nowhere: its connections are those that are brought to it.
    pub(crate) fn simulated(
        config: GatewayConfig,
        directory: Arc<Directory>,
        tokens: TokenCheck,
        passes: Arc<dyn Passes>,
    ) -> (Gateway, Doors) {
        let metrics = Arc::new(GatewayMetrics::default());
        let (stop, stopping) = watch::channel(false);
        let patience = config.close_grace * 2 + Duration::from_secs(1);
        let (arbiters, next_arbiter) = (Vec::new(), AtomicUsize::new(0));
        let shared = Shared {
            config,
            tls: None,
            directory,
            tokens,
            passes,
            metrics: metrics.clone(),
            arbiters,
            next_arbiter,
        };
        let gateway =
            Gateway { ws_addr: None, tcp_addr: None, secure: false, metrics, stop, patience };
        let stops = Arc::new(Mutex::new(Stops::default()));
        (gateway, Doors { shared: Arc::new(shared), stopping, stops })
    }

    /// Where WebSocket clients connect.
    pub fn ws_addr(&self) -> Option<SocketAddr> {
        self.ws_addr
    }

    /// Where TCP clients connect.
    pub fn tcp_addr(&self) -> Option<SocketAddr> {
        self.tcp_addr
    }

    /// Whether clients connect by `wss://` and `tls://`.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// What it counts.
    pub fn metrics(&self) -> &Arc<GatewayMetrics> {
        &self.metrics
    }

    /// Takes no more connections, closes every session with [`CloseCode::GoingAway`], or where others
    /// go on with [`CloseCode::Elsewhere`], and waits until
    /// the clients have hung up, but not for ever.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if tokio::time::timeout(self.patience, self.stop.closed()).await.is_err() {
            let open = self.metrics.sessions_open.load(Ordering::Relaxed);
            tracing::warn!(open, "some clients did not hang up in time");
        }
    }
}

/// Where connections are brought to a gateway that listens nowhere.
#[derive(Clone)]
pub(crate) struct Doors {
    shared: Arc<Shared>,
    stopping: watch::Receiver<bool>,
    stops: Arc<Mutex<Stops>>,
}

/// Who is told that the gateway stops: in the order in which they came.
#[derive(Default)]
struct Stops {
    came: u64,
    open: BTreeMap<u64, watch::Sender<bool>>,
}

impl Doors {
    fn stops(&self) -> MutexGuard<'_, Stops> {
        self.stops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the gateway stops; then all connections are told.
    pub(crate) async fn stopped(&mut self) {
        // An error says that the gateway itself is gone: the same.
        let _stopped = self.stopping.wait_for(|stop| *stop).await.is_ok();
        for stop in self.stops().open.values() {
            stop.send_replace(true);
        }
    }

    /// Serves a connection until either side ends it.
    pub(crate) async fn serve(&self, inbound: &mut impl Inbound, outbound: &mut impl Outbound) {
        let open = Open::new(&self.shared.metrics);
        let full = open.before >= self.shared.config.max_sessions;
        let (stop, stopping) = watch::channel(*self.stopping.borrow());
        let number = {
            let mut stops = self.stops();
            stops.came += 1;
            let number = stops.came;
            stops.open.insert(number, stop);
            number
        };
        self.shared.serve(inbound, outbound, full, stopping).await;
        self.stops().open.remove(&number);
    }
}

fn listen(addr: SocketAddr, send_buffer: u32) -> std::io::Result<(SocketAddr, TcpListener)> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    // Accepted sockets inherit it.
    socket.set_send_buffer_size(send_buffer)?;
    socket.bind(addr)?;
    let listener = socket.listen(1_024)?;
    Ok((listener.local_addr()?, listener))
}

async fn accept(
    shared: Arc<Shared>,
    listener: TcpListener,
    carrier: Carrier,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        // A std socket leaves this arbiter's reactor; the session's own one takes it up.
        let socket = accepted.and_then(|(socket, _)| {
            socket.set_nodelay(true)?;
            socket.into_std()
        });
        match socket {
            Ok(socket) => shared.dispatch(socket, carrier, stop.clone()),
            Err(e) => {
                // Out of file descriptors, most likely: give sessions time to end.
                tracing::warn!(error = %e, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

impl Shared {
    fn dispatch(
        self: &Arc<Self>,
        socket: std::net::TcpStream,
        carrier: Carrier,
        stop: watch::Receiver<bool>,
    ) {
        let open = Open::new(&self.metrics);
        if open.before >= self.config.max_sessions.saturating_add(TURNED_AWAY_AT_ONCE) {
            return self.metrics.ended(Some(CloseCode::Overload));
        }
        let turn = self.next_arbiter.fetch_add(1, Ordering::Relaxed) % self.arbiters.len();
        let shared = Arc::clone(self);
        let spawned = self.arbiters[turn].spawn_fn(move || {
            actix::spawn(async move {
                if let Err(e) = shared.connection(socket, carrier, open.before, stop).await {
                    tracing::debug!(error = %e, "a connection failed before its session began");
                    shared.metrics.ended(None);
                }
                drop(open);
            });
        });
        if !spawned {
            purview::log_limited!(error, "an arbiter for sessions is gone");
        }
    }

    async fn connection(
        &self,
        socket: std::net::TcpStream,
        carrier: Carrier,
        before: u64,
        stop: watch::Receiver<bool>,
    ) -> std::io::Result<()> {
        let socket = TcpStream::from_std(socket)?;
        let full = before >= self.config.max_sessions;
        // What comes before hello shares one limit of time.
        let until = Instant::now() + self.config.handshake_timeout;
        let socket = timeout_at(until, socket::secure(socket, self.tls.as_ref())).await??;
        let (said, socket) = match carrier {
            Carrier::WebSocket => {
                let (mut inbound, mut outbound) =
                    timeout_at(until, ws::accept(socket)).await?.map_err(std::io::Error::other)?;
                let said = self.serve(&mut inbound, &mut outbound, full, stop).await;
                (said, ws::socket(inbound, outbound))
            }
            Carrier::Tcp => {
                let (mut inbound, mut outbound) = tcp::split(socket);
                let said = self.serve(&mut inbound, &mut outbound, full, stop).await;
                (said, tcp::socket(inbound, outbound))
            }
        };
        if let Some(socket) = socket.filter(|_| said) {
            linger(socket, self.config.close_grace).await;
        }
        Ok(())
    }

    /// Serves a connection; true when its client was told that it ends.
    async fn serve(
        &self,
        inbound: &mut impl Inbound,
        outbound: &mut impl Outbound,
        full: bool,
        stop: watch::Receiver<bool>,
    ) -> bool {
        if full {
            self.metrics.ended(Some(CloseCode::Overload));
            let why = "the server is full".to_owned();
            let say = last_word(outbound, CloseCode::Overload, why);
            let said = tokio::time::timeout(self.config.close_grace, say).await;
            return matches!(said, Ok(Ok(())));
        }
        let config = self.config.player();
        let (sink, queue) = PlayerSetup::queue(&config);
        let session = PlayerActor::new(PlayerSetup {
            directory: Arc::clone(&self.directory),
            sink,
            tokens: Arc::clone(&self.tokens),
            passes: Some(Arc::clone(&self.passes)),
            config,
            check_every: self.config.check_every,
        })
        .start();
        let close_grace = self.config.close_grace;
        // Where this process is one of many, others go on.
        let at_stop =
            if self.directory.process() > 0 { FromSocket::Drain } else { FromSocket::Stop };
        let link = Link { session, queue, metrics: &self.metrics, stop, at_stop, close_grace };
        link.serve(inbound, outbound).await
    }
}
