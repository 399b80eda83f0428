//! One process of a cluster: a member that owns regions, holds clients' sessions, or both, with its console.
//!
//! `purview node` and the simulator start it; `assemble` puts it together. It lives inside
//! an actix system. What must never happen here: a session is closed before the regions had their chance to move.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use purview::actor::directory::Directory;
use tokio::sync::watch;

use super::arbiters::Arbiters;
use super::observe::Observation;
use super::runtime::TaskRuntime;
use crate::admin::Console;
use crate::gateway::Gateway;
use crate::logic::LogicService;
use crate::node::orders::Orders;
use crate::node::{Node, NodeError, Status};
use crate::peer::Links;
use crate::play::PlayPage;
use crate::shutdown;
use crate::storage::checkpoints::player_records::PlayerRecords;

/// A running process of a cluster.
#[derive(Debug)]
pub struct ClusterProcess {
    pub(super) node: Node,
    pub(super) gateway: Option<Gateway>,
    pub(super) logic: Option<LogicService>,
    pub(super) players: Option<PlayerRecords>,
    pub(super) console: Option<Console>,
    pub(super) play: Option<PlayPage>,
    pub(super) arbiters: Arbiters,
    pub(super) drain_limit: Duration,
    /// How long clients are still admitted.
    pub(super) lame_duck: Duration,
    /// Watches how the process is, until it stops.
    pub(super) observer: Option<Observation>,
    pub(super) ending: Arc<AtomicBool>,
    /// Where links and the store's client live.
    pub(super) runtime: TaskRuntime,
}

impl ClusterProcess {
    /// Its name.
    pub fn name(&self) -> &str {
        self.node.name()
    }

    /// Its scenes and clock, and where regions are.
    pub fn directory(&self) -> &Arc<Directory> {
        self.node.directory()
    }

    /// Its links to other processes.
    pub fn links(&self) -> &Links {
        self.node.links()
    }

    /// Where WebSocket clients connect, if they may.
    pub fn ws_addr(&self) -> Option<SocketAddr> {
        self.gateway.as_ref().and_then(Gateway::ws_addr)
    }

    /// Where TCP clients connect, if they may.
    pub fn tcp_addr(&self) -> Option<SocketAddr> {
        self.gateway.as_ref().and_then(Gateway::tcp_addr)
    }

    /// Where console, metrics and health are served, if they are.
    pub fn console_addr(&self) -> Option<SocketAddr> {
        self.console.as_ref().map(Console::addr)
    }

    /// The address of the page on which visitors play, if it is served.
    pub fn play_url(&self) -> Option<String> {
        self.play.as_ref().map(PlayPage::url)
    }

    /// Where logic workers connect, if they may.
    pub fn logic_addr(&self) -> Option<SocketAddr> {
        self.logic.as_ref().and_then(LogicService::addr)
    }

    /// What it knows of its cluster, as it changes.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.node.status()
    }

    /// Waits until the lease is gone, by which the process is no member any more.
    pub async fn lost(&self) -> NodeError {
        self.node.lost().await
    }

    /// What may be ordered here, of the whole cluster.
    pub fn orders(&self) -> &Orders {
        self.node.orders()
    }

    /// Waits until this process has given its regions to others, as it was ordered to.
    pub async fn drained(&self) {
        self.node.drained().await;
    }

    /// Gives its regions to others, closes every session, and stops: the steps of [`shutdown::steps`].
    pub async fn stop(mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(play) = self.play.take() {
            play.stop().await;
        }
        let gateway = self.gateway.as_ref();
        let lame_duck = async {
            if let Some(gateway) = gateway {
                gateway.lame_duck(self.lame_duck).await;
            }
        };
        tokio::join!(self.node.drain(self.drain_limit), lame_duck);
        if let Some(gateway) = self.gateway.take() {
            gateway.stop().await;
        }
        if let Some(logic) = self.logic.take() {
            logic.stop().await;
        }
        self.save_players().await;
        if let Some(console) = self.console.take() {
            console.stop().await;
        }
        drop(self.observer.take());
        self.node.leave().await;
        self.node.links().stop();
        self.arbiters.stop();
    }

    /// Saves where the players of the sessions were that have just ended.
    async fn save_players(&mut self) {
        let Some(players) = self.players.take() else { return };
        let flush = async move { tokio::time::timeout(shutdown::FLUSH, players.flush()).await };
        if self.runtime.executor().run(flush).await.is_err() {
            tracing::warn!("some players' last positions could not be saved in time");
        }
    }
}
