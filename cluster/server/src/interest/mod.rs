//! Interest management as a service, for game servers that want nothing else: `purview interest`.
//!
//! ```text
//!  listen ──► service ──► sessions ──► session ──► state ──► purview::interest::World
//!  (TCP, TLS, (gRPC,      (by name)    (a task,    (batches,
//!   Unix)      token)                   a stream)   ticks, updates)
//! ```
//!
//! Each client has a session with scenes of its own. What one client does must never delay another:
//! a session is a task, and works only while its client reads. The service needs no configuration
//! file, no etcd and no database. `proto/purview/interest/v1/interest.proto` is the contract.

pub(crate) mod apply;
pub mod client;
mod convert;
mod draft;
pub mod encode;
mod job;
mod limits;
mod metrics;
mod outbox;
pub mod proto;
mod service;
mod session;
mod session_status;
mod sessions;
mod shape;
mod state;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::metrics::{InterestMetrics, Metrics};
use self::service::Interest;
use self::sessions::Sessions;
use self::state::Shared;
pub use self::state::{Limits, Most};
use crate::admin::serve;
use crate::admission::Counters;
use crate::grpc::access::Guard;
use crate::grpc::listen::{UnixSocket, accept_tcp, accept_unix};
use crate::grpc::routes;
use crate::metrics::{CONTENT_TYPE, Registry, registry, text};
use crate::socket::{Accepted, connections};
use crate::tls::server::{INTEREST, ServerTls};
use crate::tls::{CertificateSettings, TlsError};
use crate::token_file;
pub use crate::token_file::TokenError;

/// How long streams may take to end when the service stops.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// What the service needs to know.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address of the service; port 0: any free one.
    pub listen: Option<SocketAddr>,
    /// A Unix socket.
    pub unix: Option<PathBuf>,
    /// The address of `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// The certificate; without it connections are plain.
    pub tls: Option<CertificateSettings>,
    /// The file with the token that clients must show.
    pub token_file: Option<PathBuf>,
    /// Allow plain text and no token beyond this machine.
    pub insecure: bool,
    /// What sessions may have.
    pub limits: Limits,
}

/// Where the service can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The address of the service.
    pub listen: Option<SocketAddr>,
    /// Its Unix socket.
    pub unix: Option<PathBuf>,
    /// The address of `/metrics`.
    pub metrics: Option<SocketAddr>,
}

/// Why the service did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Plain text, or no token, beyond this machine.
    #[error(
        "--listen {addr} is reachable from other machines, without {missing}: give {options}, or \
         --insecure if the network is private"
    )]
    Open {
        /// The address.
        addr: SocketAddr,
        /// What is missing.
        missing: &'static str,
        /// The options that provide it.
        options: &'static str,
    },
    /// A listener cannot be opened.
    #[error("cannot listen on {at}: {source}")]
    Listen {
        /// An address or a path.
        at: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The token is unusable.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The certificate is unusable.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The descriptors of the service are unusable.
    #[error("gRPC reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// A running service. [`Running::stop`] ends it.
#[derive(Debug)]
pub struct Running {
    ready: Ready,
    stop: CancellationToken,
    served: tokio::task::JoinHandle<()>,
}

impl Running {
    /// Where it can be reached.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Ends all sessions and waits for their streams, at most two seconds.
    pub async fn stop(self) {
        self.stop.cancel();
        if tokio::time::timeout(STOP_WITHIN, self.served).await.is_err() {
            tracing::debug!("the service stops before all streams have ended");
        }
    }
}

/// Starts the service on the current runtime, which must have several threads or none to spare for
/// anything else.
///
/// # Errors
/// [`StartError`]. Nothing runs then.
pub async fn start(settings: &Settings) -> Result<Running, StartError> {
    check_reach(settings)?;
    let token_file = settings.token_file.as_deref();
    let token = token_file.map(|file| token_file::read("--token-file", file)).transpose()?;
    let tls = settings.tls.as_ref().map(|files| ServerTls::load(INTEREST, files)).transpose()?;
    let stop = CancellationToken::new();
    let (accepted, incoming) = connections();
    let tcp = listen(settings.listen).await?;
    let metrics_at = listen(settings.metrics).await?;
    let unix = settings.unix.as_deref().map(|path| {
        let wrong = |source| StartError::Listen { at: path.display().to_string(), source };
        UnixSocket::bind(path).map_err(wrong)
    });
    let unix = unix.transpose()?;
    let local = |listener: &Option<TcpListener>| listener.as_ref()?.local_addr().ok();
    let (listen, metrics_addr) = (local(&tcp), local(&metrics_at));
    let ready = Ready { listen, unix: settings.unix.clone(), metrics: metrics_addr };
    let shared = Shared::new(settings.limits);
    let metrics = Arc::clone(&shared.metrics);
    let sessions = Arc::new(Sessions::new(shared, stop.clone()));
    let guard = Guard::new(token, metrics.denied.clone());
    let router = routes(Interest(sessions), proto::DESCRIPTORS, guard).await?;
    spawn_listeners((tcp, tls), unix, accepted, metrics.connections.clone());
    if let Some(listener) = metrics_at {
        tokio::spawn(serve_metrics(listener, metrics, stop.clone()));
    }
    let stopped = stop.clone().cancelled_owned();
    let served = tokio::spawn(async move {
        if let Err(error) = router.serve_with_incoming_shutdown(incoming, stopped).await {
            tracing::error!(%error, "the interest service has stopped");
        }
    });
    Ok(Running { ready, stop, served })
}

/// Refuses to be reached from other machines in plain text or without a token.
fn check_reach(settings: &Settings) -> Result<(), StartError> {
    let Some(addr) = settings.listen else { return Ok(()) };
    let open = |missing, options| Err(StartError::Open { addr, missing, options });
    if addr.ip().is_loopback() || settings.insecure {
        return Ok(());
    }
    match (&settings.tls, &settings.token_file) {
        (None, _) => open("TLS", "--tls-cert and --tls-key"),
        (_, None) => open("a token", "--token-file"),
        _ => Ok(()),
    }
}

async fn listen(addr: Option<SocketAddr>) -> Result<Option<TcpListener>, StartError> {
    let Some(addr) = addr else { return Ok(None) };
    let wrong = |source| StartError::Listen { at: addr.to_string(), source };
    TcpListener::bind(addr).await.map(Some).map_err(wrong)
}

fn spawn_listeners(
    (tcp, tls): (Option<TcpListener>, Option<ServerTls>),
    unix: Option<UnixSocket>,
    accepted: Accepted<()>,
    counters: Arc<Counters>,
) {
    if let Some(tcp) = tcp {
        tokio::spawn(accept_tcp(tcp, tls, accepted.clone(), counters));
    }
    if let Some(unix) = unix {
        tokio::spawn(accept_unix(unix, accepted));
    }
}

async fn serve_metrics(listener: TcpListener, metrics: Arc<Metrics>, stop: CancellationToken) {
    let registry = Arc::new(registry([Box::new(InterestMetrics(metrics)) as Box<_>]));
    let page = get(move || std::future::ready(metrics_page(&registry)));
    let router = Router::new().route("/metrics", page);
    serve::serve((listener, None), router, stop.cancelled_owned()).await;
}

fn metrics_page(registry: &Registry) -> Response {
    match text(registry) {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests;
