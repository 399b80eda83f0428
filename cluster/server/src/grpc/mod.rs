//! What the gRPC services of a server have in common: where clients connect, the token, the codec,
//! reflection and health.

pub mod access;
pub mod bounds;
pub(crate) mod half_plain;
pub(crate) mod listen;

use std::convert::Infallible;
use std::time::Duration;

use axum::http::{Request, Response};
use futures::{Stream, StreamExt};
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::transport::server::Router;
use tower_service::Service;

use self::access::Guard;

/// Flow-control windows of a stream and of a connection, bytes: what a client may send ahead.
const WINDOWS: (u32, u32) = (1 << 20, 4 << 20);

/// Most streams of a connection at the same time.
const STREAMS: u32 = 1_024;

/// After which silence a connection is probed, and how long the answer may take.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(10));

/// How long a stream may take for its first request.
const OPEN_WITHIN: Duration = Duration::from_secs(10);

/// What the first request of a stream opens, as `open_of` finds it in the request.
///
/// # Errors
/// No request comes in time, or the first one opens nothing.
pub(crate) async fn opening<R, O>(
    requests: &mut (impl Stream<Item = Result<R, Status>> + Unpin),
    open_of: impl FnOnce(R) -> Option<O>,
) -> Result<O, Status> {
    let first = tokio::time::timeout(OPEN_WITHIN, requests.next()).await;
    let first = first.map_err(|_| Status::deadline_exceeded("no request came within 10 s"))?;
    let first = first.ok_or_else(|| Status::invalid_argument("the stream has no requests"))??;
    let nothing = || Status::invalid_argument("the first request of a stream must be `open`");
    open_of(first).ok_or_else(nothing)
}

/// A service with reflection and health. Health needs no token, so that balancers can ask.
pub async fn routes<S>(
    service: S,
    descriptors: &[u8],
    guard: Guard,
) -> Result<Router, tonic_reflection::server::Error>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S: NamedService + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_service_status(S::NAME, tonic_health::ServingStatus::Serving).await;
    let described = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(descriptors)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let (v1, v1alpha) = (described().build_v1()?, described().build_v1alpha()?);
    Ok(Server::builder()
        .max_concurrent_streams(STREAMS)
        .http2_keepalive_interval(Some(KEEP_ALIVE.0))
        .http2_keepalive_timeout(Some(KEEP_ALIVE.1))
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1)
        .add_service(InterceptedService::new(service, guard.clone()))
        .add_service(InterceptedService::new(v1, guard.clone()))
        .add_service(InterceptedService::new(v1alpha, guard))
        .add_service(health))
}
