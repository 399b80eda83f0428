//! The page `/play`, on which visitors play in the browser: its files, tokens for visitors, and what
//! the page must know of scenes. A process starts it once, where `play.enabled`.
//!
//! ```text
//!   browser                         this module                     the rest of the process
//!   GET /play, /play/...   ──────►  embedded files
//!   POST /play/token       ──────►  Doorkeeper (limits)   ──────►   ClusterTokens: a visitor's token
//!   GET /play/scenes       ──────►  Directory, Hosted: regions, owners, ghosts
//!   WebSocket, with the token ─────────────────────────────────────► gateway, as every client
//! ```
//!
//! The page has a thread and a listener of its own, apart from the console, which visitors must not
//! reach. What must be absent: a token that permits more than the lines of scenes, a file of another
//! host, and a request that waits for a region.

mod doorkeeper;
mod page;
mod routes;
mod scenes;

use std::net::SocketAddr;
use std::sync::Arc;

use purview::actor::directory::Directory;
use tokio::sync::oneshot;

use crate::admin::serve;
use crate::config::PlaySettings;
use crate::gateway::ClusterTokens;
use crate::node::hosted::Hosted;
use crate::tls::server::ServerTls;
use crate::tls::{self, TlsError};

/// What the page shows, and whom it lets in.
pub struct PlayState {
    /// The scenes.
    pub directory: Arc<Directory>,
    /// The regions of this process.
    pub regions: Hosted,
    /// The name of this node.
    pub node: String,
    /// Signs visitors' tokens.
    pub tokens: ClusterTokens,
    /// Where WebSocket clients connect, and whether by TLS.
    pub gateway: (SocketAddr, bool),
}

/// Why the page is not served. Nothing keeps running.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The page cannot listen on the address.
    #[error("play.listen: cannot listen on {addr}: {source}; choose another address, or port 0")]
    Listen {
        /// The configured address.
        addr: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The certificate is unusable.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The thread or its runtime cannot be created.
    #[error("play: cannot start the thread: {0}")]
    Thread(std::io::Error),
}

/// The running page. Dropping it stops it without waiting; [`PlayPage::stop`] waits.
#[derive(Debug)]
pub struct PlayPage {
    addr: SocketAddr,
    secure: bool,
    /// Dropping it stops the page.
    stop: oneshot::Sender<()>,
    /// Closed when the thread has ended.
    done: oneshot::Receiver<()>,
}

impl PlayPage {
    /// Listens on `play.listen` and serves from a thread of its own.
    ///
    /// # Errors
    /// [`PlayError`].
    pub fn start(state: PlayState, settings: &PlaySettings) -> Result<PlayPage, PlayError> {
        let addr = settings.listen;
        let wrong = |source| PlayError::Listen { addr, source };
        let listener = std::net::TcpListener::bind(addr).map_err(wrong)?;
        listener.set_nonblocking(true).map_err(wrong)?;
        let addr = listener.local_addr().map_err(wrong)?;
        let tls = settings.tls.as_ref().map(|files| ServerTls::load(tls::server::PLAY, files));
        let (tls, router) = (tls.transpose()?, routes::router(state, settings));
        let secure = tls.is_some();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(PlayError::Thread)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (ended, done) = oneshot::channel();
        std::thread::Builder::new()
            .name("play".into())
            .spawn(move || {
                let served = async {
                    let listener = tokio::net::TcpListener::from_std(listener)?;
                    serve::serve((listener, tls), router, async { drop(stopped.await) }).await;
                    Ok::<_, std::io::Error>(())
                };
                if let Err(error) = runtime.block_on(served) {
                    tracing::error!(%error, "the page of visitors stopped");
                }
                runtime.shutdown_background();
                drop(ended);
            })
            .map_err(PlayError::Thread)?;
        let page = PlayPage { addr, secure, stop, done };
        tracing::info!("visitors play on {}", page.url());
        Ok(page)
    }

    /// The address of the page.
    pub fn url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}/play", self.addr)
    }

    /// Accepts no more requests and returns when the port is free.
    pub async fn stop(self) {
        drop(self.stop);
        // No message is ever sent: the channel closes when the thread ends.
        let _closed = self.done.await;
    }
}
