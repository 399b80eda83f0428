//! The console: a live map in the browser, a JSON API beneath it, metrics and health.
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
//! The server has a thread and a runtime of its own, so that a slow reader never holds up a tick,
//! and it only ever reads, but for what an operator orders of the cluster. What is absent: no write to a region, no state that outlives a request
//! except figures, no resource from another host in the page.

mod access;
mod api;
mod audit;
mod guard;
mod hosts;
pub mod kick;
mod metrics;
mod openapi;
pub mod orders;
mod page;
mod people;
mod process;
mod quantiles;
mod sampler;
mod serve;
mod shapes;
mod terrain;
pub(crate) mod whole;
mod why;

use std::net::SocketAddr;
use std::sync::Arc;

use purview::actor::directory::Directory;
use purview::actor::region::metrics::RegionMetrics;
use purview::scene::RegionId;
use tokio::sync::oneshot;

use crate::config::ConsoleSettings;
use crate::tls::server::ServerTls;
use crate::tls::{self, TlsError};

pub use access::{Access, AccessError, Denied, Scope, Shown, on_loopback, token_at, token_for};
pub use api::paths;
use hosts::Hosts;

pub use crate::node::hosted::{Hosted, RegionHandle};
pub use openapi::DOCUMENT as OPENAPI;
pub use people::{AskOthers, People, Whereabouts, answer};
pub use quantiles::{TickTimes, tick_times};

/// Appends families of metrics in Prometheus' text form.
pub type ExtraMetrics = Box<dyn Fn(&mut String) + Send + Sync>;

/// Tells what keeps the process from being ready, beside its own regions, in words.
pub type Readiness = Box<dyn Fn() -> Vec<String> + Send + Sync>;

/// Tells what is known of the cluster, as JSON.
pub type ClusterView = Box<dyn Fn() -> serde_json::Value + Send + Sync>;

/// All that the console looks at.
pub struct ConsoleState {
    /// Scenes and the players in their planes.
    pub directory: Arc<Directory>,
    /// The regions of this process.
    pub regions: Hosted,
    /// Further metrics, appended to `/metrics` in this order; their families' names must not be
    /// among the console's own.
    pub extra_metrics: Vec<ExtraMetrics>,
    /// The name of this node, shown as the owner of its regions.
    pub node: String,
    /// What this process knows of its cluster, as JSON; `None` where it is alone.
    pub cluster: Option<ClusterView>,
    /// What may be ordered; `None` where it is alone.
    pub orders: Option<crate::node::leader::Orders>,
    /// Asks other processes who lives there; `None` where it is alone.
    pub others: Option<AskOthers>,
    /// What else `/ready` depends on; `None`: at least one region.
    pub readiness: Option<Readiness>,
}

/// The regions' figures.
fn figures(regions: &[RegionHandle]) -> impl Iterator<Item = (RegionId, &RegionMetrics)> + Clone {
    regions.iter().map(|r| (r.region, &*r.metrics))
}

impl std::fmt::Debug for ConsoleState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleState")
            .field("node", &self.node)
            .field("regions", &self.regions)
            .field("extra_metrics", &self.extra_metrics.len())
            .finish_non_exhaustive()
    }
}

/// Why a console could not start. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The address cannot be listened on.
    #[error(
        "console: cannot listen on {addr}: {source}; choose another address, or port 0 for any free one"
    )]
    Listen {
        /// The address asked for.
        addr: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no token to ask for.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Its certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The thread or its runtime cannot be made.
    #[error("console: cannot start its thread: {0}")]
    Thread(std::io::Error),
}

/// A running console. Dropping it stops it without waiting; [`Console::stop`] waits.
#[derive(Debug)]
pub struct Console {
    addr: SocketAddr,
    /// Dropped to say stop.
    stop: oneshot::Sender<()>,
    /// Closed when the thread has ended.
    done: oneshot::Receiver<()>,
}

impl Console {
    /// Where a console listens unless told otherwise: this machine only.
    pub const DEFAULT_ADDR: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7070);

    /// Listens on `addr` (port 0: any free one) and serves from a thread of its own. May be called
    /// from any thread, with or without a runtime. `settings` say which tokens it asks for ([`Access::new`]) and by
    /// which names it may be called.
    ///
    /// # Errors
    /// The address is taken or not of this machine, there is no token, or the system gives no thread.
    pub fn start(
        state: ConsoleState,
        addr: SocketAddr,
        settings: &ConsoleSettings,
    ) -> Result<Console, ConsoleError> {
        let listener = listen(addr).map_err(|source| ConsoleError::Listen { addr, source })?;
        let addr = listener.local_addr().map_err(|source| ConsoleError::Listen { addr, source })?;
        let guards = (Access::new(addr, settings)?, Hosts::new(&settings.hosts));
        let tls = settings.tls.as_ref().map(|files| ServerTls::load(tls::server::CONSOLE, files));
        let tls = tls.transpose()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ConsoleError::Thread)?;
        let (stop, stopped) = oneshot::channel();
        let (ended, done) = oneshot::channel();
        std::thread::Builder::new()
            .name("console".into())
            .spawn(move || {
                if let Err(e) = runtime.block_on(serve(state, guards, (listener, tls), stopped)) {
                    tracing::error!("the console ended: {e}");
                }
                runtime.shutdown_background();
                drop(ended);
            })
            .map_err(ConsoleError::Thread)?;
        tracing::info!("console on {scheme}://{addr}");
        Ok(Console { addr, stop, done })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Takes no more requests, lets those under way end (two seconds at most) and returns when the
    /// port is free. The future runs under any runtime.
    pub async fn stop(self) {
        drop(self.stop);
        // Nothing is ever sent: the end of the channel is the end of the thread.
        let _closed = self.done.await;
    }
}

fn listen(addr: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(addr)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn serve(
    state: ConsoleState,
    (access, hosts): (Access, Hosts),
    (listener, tls): (std::net::TcpListener, Option<ServerTls>),
    stopped: oneshot::Receiver<()>,
) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let shared = Arc::new(api::Shared::new(state));
    let sampling = tokio::spawn(sampler::run(shared.clone()));
    let router = api::router(shared, access, hosts);
    serve::serve((listener, tls), router, async { drop(stopped.await) }).await;
    sampling.abort();
    Ok(())
}
