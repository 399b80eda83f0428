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
pub mod kick;
mod metrics;
mod openapi;
pub mod orders;
mod page;
mod people;
mod process;
pub mod properties;
mod quantiles;
mod region_series;
mod routing;
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

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use purview::actor::directory::Directory;
use purview::actor::region::metrics::RegionMetrics;
use purview::scene::RegionId;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::sync::oneshot;

use crate::config::ConsoleSettings;
use crate::metrics::Collector;
use crate::tls::server::ServerTls;
use crate::tls::{self, TlsError};

pub use access::{Access, AccessError, Denied, Scope, Shown, on_loopback, token_at, token_for};
pub use api::paths;
use hosts::Hosts;

pub use crate::node::hosted::{Hosted, RegionHandle};
pub use openapi::DOCUMENT as OPENAPI;
pub use people::{AskOthers, People, Whereabouts};
pub use quantiles::{TickTimes, tick_times};
pub use workers::{ListWorkers, WorkerShape, WorkerStatus, WorkersShape};

/// Reports as text why the process is not ready, apart from its own regions.
pub type Readiness = Box<dyn Fn() -> Vec<String> + Send + Sync>;

/// The state of the cluster as JSON.
pub type ClusterView = Box<dyn Fn() -> serde_json::Value + Send + Sync>;

/// Everything that the console shows.
pub struct ConsoleState {
    /// The scenes, and the players in their planes.
    pub directory: Arc<Directory>,
    /// The regions of this process.
    pub regions: Hosted,
    /// Further metrics of `/metrics`, in this order. Their names must differ from the console's own.
    pub collectors: Vec<Box<dyn Collector>>,
    /// The name of this node, shown as the owner of its regions.
    pub node: String,
    /// This process's view of its cluster, as JSON; `None` in a single-process server.
    pub cluster: Option<ClusterView>,
    /// What may be ordered; `None` where it is alone.
    pub orders: Option<crate::node::orders::Orders>,
    /// Asks other processes for the entities that live there; `None` in a single process.
    pub others: Option<AskOthers>,
    /// Asks the leader of balancing; `None` in a single process.
    pub balance: Option<balance::AskBalance>,
    /// Further conditions of `/ready`; `None`: at least one region.
    pub readiness: Option<Readiness>,
    /// What keeps the cluster from being whole, as this process sees it; `None`: it is.
    pub whole: Option<Readiness>,
    /// Lists the logic workers that the process knows; `None`: it lets none in.
    pub workers: Option<ListWorkers>,
}

/// The metrics of the regions.
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
    /// The console cannot listen on the address.
    #[error(
        "console: cannot listen on {addr}: {source}; choose another address, or port 0 for any free one"
    )]
    Listen {
        /// The configured address.
        addr: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// There is no usable token.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The certificate is unusable.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The thread or its runtime cannot be created.
    #[error("console: cannot start the thread: {0}")]
    Thread(std::io::Error),
}

/// Bytes of answers that may wait in the operating system for a caller to read them. A caller that asks
/// for much and reads nothing costs the console's thread no more answers than these hold.
const SEND_BUFFER: usize = 64 << 10;

/// A running console. Dropping it stops it without waiting; [`Console::stop`] waits.
#[derive(Debug)]
pub struct Console {
    addr: SocketAddr,
    /// Dropping it stops the console.
    stop: oneshot::Sender<()>,
    /// Closed when the thread has ended.
    done: oneshot::Receiver<()>,
}

impl Console {
    /// The default address, on this machine only.
    pub const DEFAULT_ADDR: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7070);

    /// Listens on `addr` (port 0: any free port) and serves from a thread of its own. Callable from
    /// any thread, with or without a runtime. `settings` name the token files ([`Access::new`]) and
    /// the host names.
    ///
    /// # Errors
    /// The address is in use or not local, there is no usable token, or the thread cannot be
    /// created.
    pub fn start(
        state: ConsoleState,
        addr: SocketAddr,
        settings: &ConsoleSettings,
    ) -> Result<Console, ConsoleError> {
        let (listener, addr) = bind(addr)?;
        let (access, hosts) = (Access::new(addr, settings)?, Hosts::new(&settings.hosts));
        let shared = Arc::new(shared::Shared::new(state, settings.region_metrics));
        let router = api::router(shared.clone(), access, hosts);
        Console::run((listener, addr), settings, (router, Some(shared)))
    }

    /// The same for a process that waits for its stores: health checks say why.
    ///
    /// # Errors
    /// As [`Console::start`].
    pub(crate) fn waiting(
        why: Arc<Mutex<String>>,
        addr: SocketAddr,
        settings: &ConsoleSettings,
    ) -> Result<Console, ConsoleError> {
        let router = health::waiting(why, Hosts::new(&settings.hosts));
        Console::run(bind(addr)?, settings, (router, None))
    }

    fn run(
        (listener, addr): (std::net::TcpListener, SocketAddr),
        settings: &ConsoleSettings,
        (router, sampled): (axum::Router, Option<Arc<shared::Shared>>),
    ) -> Result<Console, ConsoleError> {
        let tls = settings.tls.as_ref().map(|files| ServerTls::load(tls::server::CONSOLE, files));
        let tls = tls.transpose()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ConsoleError::Thread)?;
        let (stop, stopped) = oneshot::channel();
        let (ended, done) = oneshot::channel();
        let work = move || {
            let served = serve(router, sampled, (listener, tls), stopped);
            if let Err(e) = runtime.block_on(served) {
                tracing::error!("the console stopped: {e}");
            }
            runtime.shutdown_background();
            drop(ended);
        };
        let thread = std::thread::Builder::new().name("console".into());
        thread.spawn(work).map_err(ConsoleError::Thread)?;
        tracing::info!("console on {scheme}://{addr}");
        Ok(Console { addr, stop, done })
    }

    /// The address on which it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Accepts no more requests, waits for open ones (at most two seconds) and returns when the
    /// port is free. The future runs under any runtime.
    pub async fn stop(self) {
        drop(self.stop);
        // No message is ever sent: the channel closes when the thread ends.
        let _closed = self.done.await;
    }
}

fn bind(addr: SocketAddr) -> Result<(std::net::TcpListener, SocketAddr), ConsoleError> {
    let failed = |source| ConsoleError::Listen { addr, source };
    let listener = listen(addr).map_err(failed)?;
    let addr = listener.local_addr().map_err(failed)?;
    Ok((listener, addr))
}

fn listen(addr: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(addr)?;
    // Accepted sockets inherit the size.
    set_socket_send_buffer_size(&listener, SEND_BUFFER)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn serve(
    router: axum::Router,
    sampled: Option<Arc<shared::Shared>>,
    (listener, tls): (std::net::TcpListener, Option<ServerTls>),
    stopped: oneshot::Receiver<()>,
) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let sampling = sampled.map(|shared| tokio::spawn(shared::sample(shared)));
    serve::serve((listener, tls), router, async { drop(stopped.await) }).await;
    if let Some(sampling) = sampling {
        sampling.abort();
    }
    Ok(())
}
