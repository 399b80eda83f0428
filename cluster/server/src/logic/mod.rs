//! Logic workers: the rules of a game in any language, over gRPC.
//!
//! ```text
//!                 Told                     Told
//!  a worker ◄──── stream ◄──── mailbox ◄──────── lease ◄─── remote     inside the tick of a region
//!      │            ▲                              ▲
//!      └────────────┴───────── hub, lane ──────────┘ Answer
//! ```
//!
//! A lease of a region is a conversation of question and answer. Whatever is lost ends it, and the next lease begins
//! with everything. `remote` is the logic of a region whose rules are a worker's: it is called inside the tick and must
//! never wait. What is part of the region's state is in `acts` and `ledger`; `picture` knows what a worker was told.
//! `relay` connects workers of one process with regions of another. `proto/purview/logic/v1/logic.proto` is the contract.

mod acts;
mod admission;
#[warn(missing_docs)]
pub mod client;
mod collector;
mod conduct;
mod convert;
mod factory;
mod hub;
mod id_quota;
mod lease;
mod ledger;
mod mailbox;
mod metrics;
mod picture;
mod planes;
pub mod proto;
mod relay;
mod remote;
mod service;
mod simulated;
mod stream;
mod told;
mod worker;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

pub use self::collector::LogicMetrics;
pub use self::factory::Workers;
pub use self::hub::{Hub, Limits};
use self::service::Logic;
pub use self::simulated::Responses;
use crate::config::LogicSettings;
use crate::grpc::access::Guard;
use crate::grpc::listen::accept_tcp;
use crate::grpc::routes;
use crate::socket::connections;
use crate::tls::TlsError;
use crate::tls::server::{LOGIC, ServerTls};
use crate::token_file::{self, TokenError};

/// How long streams may take to end when the server stops.
const STOP_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub enum LogicError {
    #[error(
        "logic.listen = {addr:?} is reachable from other machines, without {missing}: set {keys}, or listen on loopback"
    )]
    Open { addr: String, missing: &'static str, keys: &'static str },
    #[error(
        "logic.listen is set, but this server has the rules of the game inside: it would not ask any worker"
    )]
    Inside,
    #[error("logic.listen: cannot listen on {addr}: {source}")]
    Listen { addr: SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("gRPC reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// The running service, on a thread of its own. [`LogicService::stop`] ends it.
#[derive(Debug)]
pub struct LogicService {
    /// Where workers connect; `None`: it lets none in.
    addr: Option<SocketAddr>,
    hub: Arc<Hub>,
    stop: CancellationToken,
    served: tokio::task::JoinHandle<()>,
    runtime: Option<Runtime>,
}

fn service_runtime() -> Result<Runtime, LogicError> {
    let mut runtime = Builder::new_multi_thread();
    Ok(runtime.worker_threads(1).thread_name("purview-logic").enable_all().build()?)
}

impl LogicService {
    /// Starts the service.
    ///
    /// # Errors
    /// [`LogicError`]. Nothing runs then.
    pub async fn start(
        settings: &LogicSettings,
        addr: SocketAddr,
        hub: Arc<Hub>,
    ) -> Result<LogicService, LogicError> {
        check_reach(settings, addr)?;
        let token_file = settings.token_file.as_deref();
        let token =
            token_file.map(|file| token_file::read("logic.token_file", file)).transpose()?;
        let tls = settings.tls.as_ref().map(|files| ServerTls::load(LOGIC, files)).transpose()?;
        let listener = std::net::TcpListener::bind(addr)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        let listener = listener.map_err(|source| LogicError::Listen { addr, source })?;
        let addr = listener.local_addr().map_err(|source| LogicError::Listen { addr, source })?;
        let stop = CancellationToken::new();
        let guard = Guard::new(token, hub.metrics.denied.clone());
        let router = routes(Logic(hub.clone(), stop.clone()), proto::DESCRIPTORS, guard).await?;
        let runtime = service_runtime()?;
        let stopped = stop.clone().cancelled_owned();
        let telling = hub.clone().keep_telling();
        let connecting = hub.metrics.connections.clone();
        let served = runtime.spawn(async move {
            let listener = match TcpListener::from_std(listener) {
                Ok(listener) => listener,
                Err(error) => return tracing::error!(%error, "workers cannot connect"),
            };
            let (accepted, incoming) = connections();
            tokio::spawn(accept_tcp(listener, tls, accepted, connecting));
            tokio::spawn(telling);
            if let Err(error) = router.serve_with_incoming_shutdown(incoming, stopped).await {
                tracing::error!(%error, "the service for logic workers has stopped");
            }
        });
        Ok(LogicService { addr: Some(addr), hub, stop, served, runtime: Some(runtime) })
    }

    /// Follows the workers and the private planes of other processes and lets no workers in: a
    /// gateway asks workers about players.
    pub fn follow(hub: Arc<Hub>) -> Result<LogicService, LogicError> {
        let runtime = service_runtime()?;
        let (stop, telling) = (CancellationToken::new(), hub.clone().keep_telling());
        let stopped = stop.clone().cancelled_owned();
        let served = runtime.spawn(async move {
            tokio::select! {
                () = telling => {}
                () = stopped => {}
            }
        });
        Ok(LogicService { addr: None, hub, stop, served, runtime: Some(runtime) })
    }

    /// Where workers connect; `None`: it lets none in.
    pub fn addr(&self) -> Option<SocketAddr> {
        self.addr
    }

    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Ends all streams and waits for them, at most two seconds.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if tokio::time::timeout(STOP_WITHIN, &mut self.served).await.is_err() {
            tracing::debug!("the server stops before all streams of workers have ended");
        }
    }
}

impl Drop for LogicService {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Refuses to be reached from other machines in plain text or without a token.
fn check_reach(settings: &LogicSettings, addr: SocketAddr) -> Result<(), LogicError> {
    let open = |missing, keys| Err(LogicError::Open { addr: addr.to_string(), missing, keys });
    match (&settings.tls, &settings.token_file) {
        _ if addr.ip().is_loopback() => Ok(()),
        (None, _) => open("TLS", "[logic.tls] certificate and key"),
        (_, None) => open("a token", "logic.token_file"),
        _ => Ok(()),
    }
}
