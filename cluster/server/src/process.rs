//! A whole server in one process: scenes, regions on their arbiters, gateway and console, on the
//! embedded engine.

pub mod figures;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use actix::{Arbiter, System};
use purview::actor::directory::Directory;
use purview::actor::region::metrics::RegionMetrics;
use purview::actor::region::{Clock, RegionRef, start_regions};
use tokio::sync::oneshot;

use crate::admin::{
    Console, ConsoleError, ConsoleState, ExtraMetrics, Hosted, Readiness, RegionHandle, tick_times,
};
use crate::config::{Config, ConfigErrors, GatewaySettings};
use crate::gateway::token::keys::{Files, KeysError};
use crate::gateway::token::random_secret;
use crate::gateway::{Gateway, GatewayConfig, GatewayError, GatewayMetrics, Tokens};
use crate::logins::Subjects;
use crate::storage::restore::{DataError, Durable};
use figures::{ServerFigures, TickMs};

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The keys of tokens cannot be used.
    #[error(transparent)]
    Token(#[from] KeysError),
    /// Nothing says whose tokens hold.
    #[error(
        "token.secret_file is missing: it names the file with the secret that signs clients' tokens (or token.keys_file \
         one with public keys); make one with `head -c 32 /dev/urandom | base64 > purview.secret`"
    )]
    NoSecret,
    /// The secret of `dev` mode, which everybody knows, would let the world in.
    #[error(
        "{key} = \"{addr}\" is not on loopback: there `purview dev`, too, needs token.secret_file, the file with the \
         secret that signs clients' tokens; without it everybody could sign one"
    )]
    OpenToAll {
        /// The key of the listener.
        key: &'static str,
        /// Where it would listen.
        addr: SocketAddr,
    },
    /// Clients could not connect.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The console cannot be served.
    #[error(transparent)]
    Console(#[from] ConsoleError),
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// What an earlier process kept cannot be gone on from.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The thread that starts the server ended before it was up.
    #[error("the server ended before it was up")]
    Ended,
}

/// Where a server can be reached, and what may be asked of it from any thread.
#[derive(Debug, Clone)]
pub struct Reach {
    /// WebSocket clients.
    pub ws: Option<SocketAddr>,
    /// TCP clients.
    pub tcp: Option<SocketAddr>,
    /// Whether both connect by TLS.
    pub secure: bool,
    /// Console, metrics and health.
    pub console: Option<SocketAddr>,
    /// The regions.
    pub regions: Vec<RegionRef>,
    /// The same as the console knows them.
    pub hosted: Hosted,
    /// Scenes, lines and the clock.
    pub directory: Arc<Directory>,
    /// What the gateway counts.
    pub gateway: Arc<GatewayMetrics>,
}

impl Reach {
    /// The URL for clients: WebSocket, else TCP.
    pub fn url(&self) -> Option<String> {
        self.ws_url().or_else(|| self.tcp_url())
    }

    /// The URL for WebSocket clients.
    pub fn ws_url(&self) -> Option<String> {
        let scheme = if self.secure { "wss" } else { "ws" };
        self.ws.map(|addr| format!("{scheme}://{addr}/"))
    }

    /// The URL for clients over TCP.
    pub fn tcp_url(&self) -> Option<String> {
        let scheme = if self.secure { "tls" } else { "tcp" };
        self.tcp.map(|addr| format!("{scheme}://{addr}"))
    }

    /// How the regions have kept up since the start.
    pub fn figures(&self) -> ServerFigures {
        let sum = |of: fn(&RegionMetrics) -> &AtomicU64| {
            self.regions.iter().map(|r| of(&r.metrics).load(Ordering::Relaxed)).sum()
        };
        ServerFigures {
            skipped_ticks: sum(|m| &m.skipped_ticks),
            forced_closes: sum(|m| &m.forced_closes),
            frames_lost: sum(|m| &m.frames_lost),
            borders_lost: sum(|m| &m.borders_lost),
        }
    }

    /// The regions' tick times since the start.
    pub fn tick_ms(&self) -> TickMs {
        let times = tick_times(self.regions.iter().map(|r| &*r.metrics));
        TickMs { mean: times.mean, p50: times.p50, p99: times.p99, max: times.max }
    }
}

/// A running server. It lives inside an actix system.
#[derive(Debug)]
pub struct Server {
    reach: Reach,
    /// Set when it stops.
    ending: Arc<AtomicBool>,
    gateway: Gateway,
    console: Option<Console>,
    durable: Option<Durable>,
    arbiters: Vec<Arbiter>,
}

/// The tokens that a configuration asks for.
///
/// # Errors
/// It names no secret, or the secret's file cannot be read or is too short.
pub fn tokens(config: &Config) -> Result<Tokens, ServerError> {
    configured_tokens(config)?.ok_or(ServerError::NoSecret)
}

/// The tokens of `purview dev` in one process: as configured, else with the secret that everybody knows, as long as
/// nobody of another machine can connect.
///
/// # Errors
/// As [`tokens`]; or there is no secret, and a listener is not on loopback.
pub fn dev_tokens(config: &Config) -> Result<Tokens, ServerError> {
    if let Some(tokens) = configured_tokens(config)? {
        return Ok(tokens);
    }
    let listeners = [
        ("gateway.ws", Some(config.gateway.ws)),
        ("gateway.tcp", config.gateway.tcp),
        ("console.listen", config.console.listen),
    ];
    let open = |(key, addr): (_, Option<SocketAddr>)| {
        Some((key, addr.filter(|addr| !addr.ip().is_loopback())?))
    };
    match listeners.into_iter().find_map(open) {
        Some((key, addr)) => Err(ServerError::OpenToAll { key, addr }),
        None => Ok(Tokens::dev().with_rules(config.token.rules())),
    }
}

/// The tokens of a server that a command starts for its own clients: as configured, else with a secret that is made
/// for this run.
///
/// # Errors
/// The secret's file cannot be read or is too short, or the system gives no random bytes.
pub fn run_tokens(config: &Config) -> Result<Tokens, ServerError> {
    match configured_tokens(config)? {
        Some(tokens) => Ok(tokens),
        None => Ok(Tokens::random()?.with_rules(config.token.rules())),
    }
}

fn configured_tokens(config: &Config) -> Result<Option<Tokens>, ServerError> {
    match config.token.files() {
        files if files == Files::default() => Ok(None),
        files => Ok(Some(Tokens::of_files(files, config.token.rules())?)),
    }
}

pub(crate) fn gateway_config(s: &GatewaySettings) -> GatewayConfig {
    GatewayConfig {
        ws_addr: Some(s.ws),
        tcp_addr: s.tcp,
        rate_limit: s.rate_limit,
        burst: s.burst,
        heartbeat: s.heartbeat,
        handshake_timeout: s.handshake_timeout,
        send_queue: s.send_queue,
        slow_close: s.slow_close,
        linger: s.linger,
        max_sessions: s.max_sessions as u64,
        unauthenticated: s.unauthenticated,
        limits: s.limits.clone(),
        proxies: s.proxies.clone(),
        origins: s.origins.clone(),
        tls: s.tls.clone(),
        ..GatewayConfig::default()
    }
}

impl Server {
    /// Starts everything; to be called inside a running actix system.
    ///
    /// # Errors
    /// What cannot be started; what was started before it is stopped again.
    pub async fn start(config: &Config, tokens: Tokens) -> Result<Server, ServerError> {
        let (scenes, linger) = (config.build_scenes()?, config.gateway.linger);
        let (durable, start) = match &config.server.data_dir {
            Some(path) => {
                let every = config.server.checkpoint;
                let opened = Durable::open(path, &scenes, every, linger).await?;
                (Some(opened.0), Some(opened.1))
            }
            None => (None, None),
        };
        let directory = match &start {
            Some(start) => Directory::of_process(scenes, start.process.clone()),
            None => Directory::new(scenes),
        };
        let directory = directory.with_linger(linger);
        let subjects = Subjects::new(config.token.duplicate.unwrap_or_default());
        let directory = directory.with_logins(Arc::new(subjects));
        if !tokens.signs() {
            // Tickets of one run: its players end with it.
            tokens.sign_tickets_with(random_secret()?.as_bytes());
        }
        let directory = Arc::new(match &durable {
            Some(durable) => directory.with_places(durable.places().clone()),
            None => directory,
        });
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let threads = if config.server.arbiters == 0 { cores } else { config.server.arbiters };
        let arbiters: Vec<Arbiter> = (0..threads).map(|_| Arbiter::new()).collect();
        let handles: Vec<_> = arbiters.iter().map(Arbiter::handle).collect();
        let regions = match start {
            Some(start) => start.run(&directory, &handles),
            None => start_regions(&directory, &handles, Clock::Real),
        };
        durable.iter().for_each(Durable::keep);
        let hosted = hosted(&regions);
        let gateway = gateway_config(&config.gateway);
        let gateway = Gateway::start(gateway, directory.clone(), tokens, handles).await?;
        let ending = Arc::new(AtomicBool::new(false));
        let console = match config.console.listen {
            Some(addr) => {
                let mut state = console_state(&directory, &hosted, &gateway, durable.as_ref());
                state.readiness = Some(readiness(hosted.clone(), ending.clone()));
                Some(Console::start(state, addr, &config.console)?)
            }
            None => None,
        };
        let reach = Reach {
            ws: gateway.ws_addr(),
            tcp: gateway.tcp_addr(),
            secure: gateway.is_secure(),
            console: console.as_ref().map(Console::addr),
            regions,
            hosted,
            directory,
            gateway: gateway.metrics().clone(),
        };
        Ok(Server { reach, ending, gateway, console, durable, arbiters })
    }

    /// Where it can be reached.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Closes every session, then stops everything, and keeps how it was where that is configured.
    pub async fn stop(self) {
        self.ending.store(true, Ordering::Relaxed);
        self.gateway.stop().await;
        if let Some(console) = self.console {
            console.stop().await;
        }
        if let Some(durable) = &self.durable {
            durable.end(&self.reach.regions).await;
        }
        for arbiter in &self.arbiters {
            arbiter.stop();
        }
        for arbiter in self.arbiters {
            if arbiter.join().is_err() {
                tracing::error!("a region thread ended in a panic");
            }
        }
    }
}

fn hosted(regions: &[RegionRef]) -> Hosted {
    let handles = regions.iter().map(|r| RegionHandle {
        scene: r.scene,
        region: r.region,
        inspect: r.addr.clone().recipient(),
        inspect_entity: r.addr.clone().recipient(),
        metrics: r.metrics.clone(),
    });
    handles.collect::<Vec<_>>().into()
}

/// What keeps a server that is a single process from being ready.
fn readiness(hosted: Hosted, ending: Arc<AtomicBool>) -> Readiness {
    Box::new(move || {
        let ends = ending.load(Ordering::Relaxed).then_some("this process is asked to end");
        let empty = hosted.now().is_empty().then_some("there is no region");
        ends.into_iter().chain(empty).map(str::to_owned).collect()
    })
}

fn console_state(
    directory: &Arc<Directory>,
    regions: &Hosted,
    gateway: &Gateway,
    durable: Option<&Durable>,
) -> ConsoleState {
    let metrics = gateway.metrics().clone();
    let mut extra: Vec<ExtraMetrics> = vec![Box::new(move |text| metrics.write(text))];
    extra.extend(durable.map(|durable| Box::new(durable.metrics()) as _));
    ConsoleState {
        directory: directory.clone(),
        regions: regions.clone(),
        extra_metrics: extra,
        node: "local".into(),
        cluster: None,
        orders: None,
        others: None,
        readiness: None,
    }
}

/// A server on a thread of its own, for a process that does other things too.
#[derive(Debug)]
pub struct Background {
    reach: Reach,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts a server on a thread and waits until it is up.
    ///
    /// # Errors
    /// As [`Server::start`], or the system gives no thread.
    pub fn start(config: Config, tokens: Tokens) -> Result<Background, ServerError> {
        let (stop, stopping) = oneshot::channel();
        let (up, is_up) = std::sync::mpsc::channel();
        let thread =
            std::thread::Builder::new().name("purview-server".into()).spawn(move || {
                System::new().block_on(async move {
                    match Server::start(&config, tokens).await {
                        Err(e) => drop(up.send(Err(e))),
                        Ok(server) => {
                            drop(up.send(Ok(server.reach().clone())));
                            // An error means that the owner is gone, which is a reason to stop too.
                            drop(stopping.await);
                            server.stop().await;
                        }
                    }
                });
            })?;
        let reach = is_up.recv().map_err(|_| ServerError::Ended)??;
        Ok(Background { reach, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it can be reached.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }
}

impl Drop for Background {
    /// Stops the server and waits for its end.
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|t| t.join().is_err()) {
            tracing::error!("the server ended in a panic");
        }
    }
}
