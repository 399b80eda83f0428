//! The console's connections, limited in number and time. A caller that sends nothing, or sends
//! slowly, is disconnected and must never keep out other callers.

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use crate::shutdown::CONSOLE;
use crate::tls::server::ServerTls;

/// Most connections at the same time; further ones wait.
const CONNECTIONS: usize = 256;

/// How long the head of a request may take, and how long a connection may be idle.
pub const HEAD_LIMIT: Duration = Duration::from_secs(5);

/// Largest head of a request, in bytes.
const HEAD_MAX: usize = 32 << 10;

/// Longest lifetime of a connection. It ends between two requests.
const LIFE: Duration = Duration::from_secs(600);

/// Pause after a failed accept, for example when file descriptors ran out.
const AGAIN: Duration = Duration::from_millis(100);

/// The address of the caller, an extension of the request.
#[derive(Debug, Clone, Copy)]
pub struct Caller(pub SocketAddr);

/// Serves until `stopped`; with `tls` only over HTTPS. Open requests may then take up to
/// [`CONSOLE`] to end.
pub async fn serve(
    (listener, tls): (TcpListener, Option<ServerTls>),
    router: Router,
    stopped: impl Future<Output = ()>,
) {
    let (stop, stopping) = watch::channel(());
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    let accepting = async {
        // The semaphore is never closed.
        while let Ok(permit) = permits.clone().acquire_owned().await {
            let (stream, from) = accept(&listener).await;
            let (router, stopping, tls) = (router.clone(), stopping.clone(), tls.clone());
            tokio::spawn(async move {
                match tls {
                    None => answer(stream, from, router, stopping).await,
                    Some(tls) => answer_by_tls(stream, from, &tls, router, stopping).await,
                }
                drop(permit);
            });
        }
    };
    tokio::select! {
        () = accepting => {}
        () = stopped => {}
    }
    drop((stop, listener));
    let all = u32::try_from(CONNECTIONS).unwrap_or(u32::MAX);
    let ended = tokio::time::timeout(CONSOLE, permits.acquire_many(all)).await;
    if ended.is_err() {
        tracing::debug!("the console stops before all connections have ended");
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::debug!(%error, "the task of a console connection failed");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// Calls [`answer`] after a TLS handshake, which may take [`HEAD_LIMIT`].
async fn answer_by_tls(
    stream: TcpStream,
    from: SocketAddr,
    tls: &ServerTls,
    router: Router,
    stopping: watch::Receiver<()>,
) {
    let handshake = TlsAcceptor::from(tls.config()).accept(stream);
    match tokio::time::timeout(HEAD_LIMIT, handshake).await {
        Ok(Ok(stream)) => answer(stream, from, router, stopping).await,
        Ok(Err(error)) => tracing::debug!(%from, %error, "a TLS handshake with the console failed"),
        Err(_) => tracing::debug!(%from, "a TLS handshake with the console took too long"),
    }
}

/// Serves one connection until it ends, is older than [`LIFE`], or `stopping` closes.
async fn answer<S>(stream: S, from: SocketAddr, router: Router, mut stopping: watch::Receiver<()>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(Caller(from));
        router.clone().call(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        _closed = stopping.changed() => None,
        () = tokio::time::sleep(LIFE) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            Pin::as_mut(&mut connection).graceful_shutdown();
            match tokio::time::timeout(CONSOLE, connection).await {
                Ok(ended) => ended,
                Err(_) => return tracing::debug!(%from, "a request to the console took too long"),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%from, %error, "a connection to the console failed");
    }
}
