//! The console's connections, limited in number and time. A caller that sends nothing, sends slowly
//! or reads slowly is disconnected and must never keep out other callers.
//!
//! A connection has its login with the first request that is no health check. Health checks need
//! none: they are answered however many connections there are.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, header};
use axum::response::IntoResponse;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use super::error::ApiError;
use super::health;
pub use super::routing::Caller;
use super::slow_reader::Hurried;
use crate::admission::{AdmissionControl, Ticket};
use crate::shutdown::CONSOLE;
use crate::tls::server::ServerTls;

/// Most connections with a request that is no health check; further ones are answered with 503.
const CONNECTIONS: u64 = 256;

/// Most connections without such a request. One more makes the oldest one of the busiest source end.
const WAITING: usize = 256;

/// Most connections of one address, and of these without such a request.
const OF_ADDRESS: (u32, u32) = (128, 64);

/// How long the head of a request may take, and how long a connection may be idle.
pub const HEAD_LIMIT: Duration = Duration::from_secs(5);

/// Largest head of a request, in bytes.
const HEAD_MAX: usize = 32 << 10;

/// Longest lifetime of a connection. It ends between two requests.
const LIFE: Duration = Duration::from_secs(600);

/// Pause after a failed accept, for example when file descriptors ran out.
const AGAIN: Duration = Duration::from_millis(100);

/// A connection that is served: its caller, its place, and what tells it that the server stops.
struct Served {
    from: SocketAddr,
    ticket: Arc<Ticket>,
    router: Router,
    stopping: watch::Receiver<bool>,
}

/// Serves until `stopped`; with `tls` only over HTTPS. Open requests may then take up to
/// [`CONSOLE`] to end.
pub async fn serve(
    (listener, tls): (TcpListener, Option<ServerTls>),
    router: Router,
    stopped: impl Future<Output = ()>,
) {
    let (stop, stopping) = watch::channel(false);
    let admission = AdmissionControl::of_listener(CONNECTIONS, WAITING, OF_ADDRESS, Arc::default());
    let accepting = async {
        loop {
            let (stream, from) = accept(&listener, &admission).await;
            let (ticket, evicted) = match admission.admit(Some(from.ip())) {
                Ok(admitted) => admitted,
                Err(why) => {
                    purview::log_limited!(warn, %from, %why, "a console connection was refused");
                    continue;
                }
            };
            let (router, stopping) = (router.clone(), stopping.clone());
            let served = Served { from, ticket: Arc::new(ticket), router, stopping };
            let (stream, tls) = (Hurried::new(stream), tls.clone());
            tokio::spawn(async move {
                let answered = async {
                    match tls {
                        None => served.answer(stream).await,
                        Some(tls) => served.answer_by_tls(stream, &tls).await,
                    }
                };
                tokio::select! {
                    biased;
                    Ok(()) = evicted => tracing::debug!(%from, "a console connection was evicted"),
                    () = answered => {}
                }
            });
        }
    };
    tokio::select! {
        () = accepting => {}
        () = stopped => {}
    }
    stop.send_replace(true);
    drop((stopping, listener));
    if tokio::time::timeout(CONSOLE, stop.closed()).await.is_err() {
        tracing::debug!("the console stops before all connections have ended");
    }
}

async fn accept(
    listener: &TcpListener,
    admission: &Arc<AdmissionControl>,
) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                // Probably out of file descriptors.
                let makes_room = admission.make_room();
                tracing::debug!(%error, makes_room, "the console cannot accept a connection");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// The answer when there are too many connections.
fn busy() -> Response<Body> {
    let error = "the console has as many connections as it may have";
    let expected = "another try in a few seconds; health checks are always answered";
    let mut response = ApiError::unavailable(error, expected).into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

impl Served {
    /// Calls [`Served::answer`] after a TLS handshake, which may take [`HEAD_LIMIT`].
    async fn answer_by_tls(self, stream: Hurried, tls: &ServerTls) {
        let from = self.from;
        let handshake = TlsAcceptor::from(tls.config()).accept(stream);
        match tokio::time::timeout(HEAD_LIMIT, handshake).await {
            Ok(Ok(stream)) => self.answer(stream).await,
            Ok(Err(error)) => {
                tracing::debug!(%from, %error, "a TLS handshake with the console failed");
            }
            Err(_) => tracing::debug!(%from, "a TLS handshake with the console took too long"),
        }
    }

    /// Serves one connection until it ends, is older than [`LIFE`], or the server stops.
    async fn answer<S>(self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Served { from, ticket, router, mut stopping } = self;
        let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(Caller(from));
            let is_health = health::PATHS.contains(&request.uri().path());
            let called = (is_health || ticket.log_in(None).is_ok())
                .then(|| router.clone().call(request.map(Body::new)));
            async move {
                match called {
                    Some(called) => called.await,
                    None => Ok::<_, Infallible>(busy()),
                }
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_LIMIT)
            .max_buf_size(HEAD_MAX)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            _ = stopping.wait_for(|stop| *stop) => None,
            () = tokio::time::sleep(LIFE) => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                Pin::as_mut(&mut connection).graceful_shutdown();
                match tokio::time::timeout(CONSOLE, connection).await {
                    Ok(ended) => ended,
                    Err(_) => {
                        return tracing::debug!(%from, "a request to the console took too long");
                    }
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%from, %error, "a connection to the console failed");
        }
    }
}

#[cfg(test)]
mod tests;
