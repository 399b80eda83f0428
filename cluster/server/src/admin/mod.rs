//! The console: a live map in the browser, a JSON API, metrics and health checks. A process starts
//! it once.
//!
//! ```text
//!  region ticks                     console's own thread
//!  ────────────                     ────────────────────
//!  RegionMetrics ◄── atomics ─────  Sampler (once a second) ──► recent figures, liveness
//!  Inspect ◄──────── at most one ─  Surveys (shared, 1 s limit) ──► /api/entities
//!  InspectEntity ◄── at a time ───  /api/player, /api/why
//!
//!  Terrain ◄──────── immutable ───  /api/terrain, /api/terrain.png
//! ```
//!
//! The console has a thread and a runtime of its own, so that a slow reader never delays a tick. It
//! only reads, except for an operator's commands to the cluster. What must be absent: a write to a
//! region, state that outlives a request (except figures), and resources from another host in the
//! page.

mod access;
mod api;
mod audit;
pub mod balance;
pub(crate) mod error;
mod guard;
mod health;
pub(crate) mod hosts;
pub(crate) mod http_thread;
pub mod kick;
mod metrics;
mod openapi;
pub mod orders;
pub(crate) mod page;
mod people;
mod process;
pub mod properties;
mod quantiles;
mod region_series;
pub(crate) mod routing;
mod run_folder;
mod sampler;
pub(crate) mod serve;
mod shapes;
mod shared;
mod slow_reader;
mod stats;
mod terrain;
mod why;
mod workers;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use parking_lot::Mutex;
use purview::actor::directory::Directory;
use purview::actor::region::metrics::RegionMetrics;
use purview::scene::RegionId;

use crate::config::ConsoleSettings;
use crate::metrics::Collector;
use crate::tls::server::ServerTls;
use crate::tls::{self, TlsError};

pub use access::{Access, AccessError, Denied, Scope, Shown, on_loopback, token_at, token_for};
pub use api::paths;
use hosts::Hosts;
use http_thread::{HttpThread, listen};

pub use crate::node::hosted::{Hosted, RegionHandle};
pub use openapi::DOCUMENT as OPENAPI;
pub use people::{AskOthers, People, Whereabouts};
pub use quantiles::{TickTimes, tick_times};
pub use workers::{ListWorkers, WorkerShape, WorkerStatus, WorkersShape};

/// Reports as text why the process is not ready, apart from its own regions.
pub type Readiness = Box<dyn Fn() -> Vec<String> + Send + Sync>;

pub type ClusterView = Box<dyn Fn() -> serde_json::Value + Send + Sync>;

pub struct ConsoleState {
    /// The scenes, and the players in their planes.
    pub directory: Arc<Directory>,
    pub regions: Hosted,
    /// Further metrics of `/metrics`, in this order. Their names must differ from the console's own.
    pub collectors: Vec<Box<dyn Collector>>,
    /// The name of this node, shown as the owner of its regions.
    pub node: String,
    // A console alone, as in tests, has none of these.
    /// This process's view of its cluster, as JSON.
    pub cluster: Option<ClusterView>,
    pub orders: Option<crate::node::orders::Orders>,
    /// Asks other processes for the entities that live there.
    pub others: Option<AskOthers>,
    /// Asks the leader of balancing.
    pub balance: Option<balance::AskBalance>,
    /// Further conditions of `/ready`; otherwise at least one region.
    pub readiness: Option<Readiness>,
    /// What keeps the cluster from being whole, as this process sees it.
    pub whole: Option<Readiness>,
    /// Lists the logic workers that the process knows; `None`: it lets none in.
    pub workers: Option<ListWorkers>,
}

fn figures(regions: &[RegionHandle]) -> impl Iterator<Item = (RegionId, &RegionMetrics)> + Clone {
    regions.iter().map(|r| (r.region, &*r.metrics))
}

impl std::fmt::Debug for ConsoleState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleState")
            .field("node", &self.node)
            .field("regions", &self.regions)
            .field("collectors", &self.collectors.len())
            .finish_non_exhaustive()
    }
}

/// Why a console did not start. Nothing keeps running.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    #[error(
        "console: cannot listen on {addr}: {source}; choose another address, or port 0 for any free one"
    )]
    Listen { addr: SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("console: cannot start the thread: {0}")]
    Thread(std::io::Error),
}

/// A running console. Dropping it stops it without waiting; [`Console::stop`] waits.
#[derive(Debug)]
pub struct Console {
    addr: SocketAddr,
    thread: HttpThread,
}

impl Console {
    /// Listens on `addr` (port 0: any free port) and serves from a thread of its own. Callable from
    /// any thread, with or without a runtime. `settings` name the token files ([`Access::new`]) and
    /// the host names.
    pub fn start(
        state: ConsoleState,
        addr: SocketAddr,
        settings: &ConsoleSettings,
    ) -> Result<Console, ConsoleError> {
        let (listener, addr) = bind(addr)?;
        let (access, hosts) = (Access::new(addr, settings)?, Hosts::new(&settings.hosts));
        let shared = Arc::new(shared::Shared::new(state, settings.region_metrics));
        let router = api::router(shared.clone(), access, hosts);
        Console::run((listener, addr), settings, router, shared::sample(shared))
    }

    /// The same for a process that waits for its stores: health checks say why.
    pub(crate) fn waiting(
        why: Arc<Mutex<String>>,
        addr: SocketAddr,
        settings: &ConsoleSettings,
    ) -> Result<Console, ConsoleError> {
        let router = health::waiting(why, Hosts::new(&settings.hosts));
        Console::run(bind(addr)?, settings, router, std::future::ready(()))
    }

    fn run(
        (listener, addr): (TcpListener, SocketAddr),
        settings: &ConsoleSettings,
        router: axum::Router,
        background: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Console, ConsoleError> {
        let tls = settings.tls.as_ref().map(|files| ServerTls::load(tls::server::CONSOLE, files));
        let tls = tls.transpose()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let thread = HttpThread::start("console", (listener, tls), router, background);
        let thread = thread.map_err(ConsoleError::Thread)?;
        tracing::info!("console on {scheme}://{addr}");
        Ok(Console { addr, thread })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Stops serving, and waits until the thread has ended.
    pub async fn stop(self) {
        self.thread.stop().await;
    }
}

fn bind(addr: SocketAddr) -> Result<(TcpListener, SocketAddr), ConsoleError> {
    listen(addr).map_err(|source| ConsoleError::Listen { addr, source })
}
