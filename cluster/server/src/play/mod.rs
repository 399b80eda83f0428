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

use crate::admin::http_thread::{HttpThread, listen};
use crate::config::PlaySettings;
use crate::gateway::ClusterTokens;
use crate::node::hosted::Hosted;
use crate::tls::server::ServerTls;
use crate::tls::{self, TlsError};

/// What the page shows, and whom it lets in.
pub struct PlayState {
    pub directory: Arc<Directory>,
    pub regions: Hosted,
    pub node: String,
    pub tokens: ClusterTokens,
    /// Where WebSocket clients connect, and whether by TLS.
    pub gateway: (SocketAddr, bool),
}

/// Why the page is not served. Nothing keeps running.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    #[error("play.listen: cannot listen on {addr}: {source}; choose another address, or port 0")]
    Listen { addr: SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("play: cannot start the thread: {0}")]
    Thread(std::io::Error),
}

/// The running page. Dropping it stops it without waiting; [`PlayPage::stop`] waits.
#[derive(Debug)]
pub struct PlayPage {
    addr: SocketAddr,
    secure: bool,
    thread: HttpThread,
}

impl PlayPage {
    /// Listens on `play.listen` and serves from a thread of its own.
    pub fn start(state: PlayState, settings: &PlaySettings) -> Result<PlayPage, PlayError> {
        let addr = settings.listen;
        let wrong = |source| PlayError::Listen { addr, source };
        let (listener, addr) = listen(addr).map_err(wrong)?;
        let tls = settings.tls.as_ref().map(|files| ServerTls::load(tls::server::PLAY, files));
        let (tls, router) = (tls.transpose()?, routes::router(state, settings));
        let secure = tls.is_some();
        let thread = HttpThread::start("play", (listener, tls), router, std::future::ready(()));
        let thread = thread.map_err(PlayError::Thread)?;
        let page = PlayPage { addr, secure, thread };
        tracing::info!("visitors play on {}", page.url());
        Ok(page)
    }

    pub fn url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}/play", self.addr)
    }

    /// Accepts no more requests and returns when the port is free.
    pub async fn stop(self) {
        self.thread.stop().await;
    }
}
