//! Where a server that is a single process can be reached, and how it keeps up.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use purview::actor::directory::Directory;
use purview::actor::region::metrics::RegionMetrics;

use super::cluster::ClusterProcess;
use super::error::ServerError;
use super::figures::{ServerFigures, TickMs};
use crate::admin::tick_times;
use crate::gateway::GatewayMetrics;
use crate::node::hosted::Hosted;

/// Where a server can be reached, and what may be asked of it from any thread.
#[derive(Debug, Clone)]
pub struct ServerReach {
    /// WebSocket clients.
    pub ws: Option<SocketAddr>,
    /// TCP clients.
    pub tcp: Option<SocketAddr>,
    /// Whether both connect by TLS.
    pub secure: bool,
    /// Console, metrics and health.
    pub console: Option<SocketAddr>,
    /// The page on which visitors play.
    pub play: Option<String>,
    /// The regions that run here.
    pub hosted: Hosted,
    /// Scenes, lines and the clock.
    pub directory: Arc<Directory>,
    /// Logic workers.
    pub logic: Option<SocketAddr>,
    /// What the gateway counts.
    pub gateway: Arc<GatewayMetrics>,
}

impl ServerReach {
    pub(super) fn of(process: &ClusterProcess) -> Result<ServerReach, ServerError> {
        let gateway = process.gateway.as_ref().ok_or(ServerError::Ended)?;
        Ok(ServerReach {
            ws: gateway.ws_addr(),
            tcp: gateway.tcp_addr(),
            secure: gateway.is_secure(),
            console: process.console_addr(),
            play: process.play_url(),
            hosted: process.node.hosted().clone(),
            directory: process.directory().clone(),
            logic: process.logic_addr(),
            gateway: gateway.metrics().clone(),
        })
    }

    /// The URL for clients: WebSocket, else TCP.
    pub fn url(&self) -> Option<String> {
        self.ws_url().or_else(|| self.tcp_url())
    }

    /// The URL for WebSocket clients.
    pub fn ws_url(&self) -> Option<String> {
        let scheme = if self.secure { "wss" } else { "ws" };
        self.ws.map(|addr| format!("{scheme}://{addr}/"))
    }

    /// The URL for clients over TCP.
    pub fn tcp_url(&self) -> Option<String> {
        let scheme = if self.secure { "tls" } else { "tcp" };
        self.tcp.map(|addr| format!("{scheme}://{addr}"))
    }

    /// How the regions have kept up since the start.
    pub fn figures(&self) -> ServerFigures {
        let sum = |of: fn(&RegionMetrics) -> &AtomicU64| {
            self.hosted.now().iter().map(|r| of(&r.metrics).load(Ordering::Relaxed)).sum()
        };
        ServerFigures {
            skipped_ticks: sum(|m| &m.skipped_ticks),
            forced_closes: sum(|m| &m.forced_closes),
            frames_lost: sum(|m| &m.frames_lost),
            borders_lost: sum(|m| &m.borders_lost),
        }
    }

    /// The regions' tick times since the start.
    pub fn tick_ms(&self) -> TickMs {
        let regions = self.hosted.now();
        tick_times(regions.iter().map(|r| &*r.metrics))
    }
}
