//! HTTP on one port, served from a thread of its own: the console, and the page of visitors.

use std::io;
use std::net::{SocketAddr, TcpListener};

use axum::Router;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::sync::oneshot;

use super::serve::serve;
use crate::tls::server::ServerTls;

/// Bytes of answers that may wait in the operating system for a caller to read them. A caller that asks
/// for much and reads nothing costs the thread no more answers than these hold.
const SEND_BUFFER: usize = 64 << 10;

pub fn listen(addr: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(addr)?;
    // Accepted sockets inherit the size.
    set_socket_send_buffer_size(&listener, SEND_BUFFER)?;
    listener.set_nonblocking(true)?;
    let addr = listener.local_addr()?;
    Ok((listener, addr))
}

/// A port that is served. Dropping it ends that without waiting.
#[derive(Debug)]
pub struct HttpThread {
    stop: oneshot::Sender<()>,
    /// Closed when the thread has ended.
    done: oneshot::Receiver<()>,
}

impl HttpThread {
    /// `background` runs for as long as the port is served. Callable with or without a runtime.
    pub fn start(
        name: &'static str,
        (listener, tls): (TcpListener, Option<ServerTls>),
        router: Router,
        background: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<HttpThread> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (ended, done) = oneshot::channel();
        let work = move || {
            let served = runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                let background = tokio::spawn(background);
                serve((listener, tls), router, async { drop(stopped.await) }).await;
                background.abort();
                Ok::<_, io::Error>(())
            });
            if let Err(error) = served {
                tracing::error!(%error, "the {name} stopped");
            }
            runtime.shutdown_background();
            drop(ended);
        };
        std::thread::Builder::new().name(name.into()).spawn(work)?;
        Ok(HttpThread { stop, done })
    }

    /// Accepts no more requests, waits for open ones (at most two seconds) and returns when the
    /// port is free. The future runs under any runtime.
    pub async fn stop(self) {
        drop(self.stop);
        // No message is ever sent: the channel closes when the thread ends.
        let _closed = self.done.await;
    }
}
