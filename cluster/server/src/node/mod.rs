//! One process of a cluster: it is a member, owns regions, and knows
//! where all others are.
//!
//! ```text
//!              etcd: members, owners, the plan
//!                │ watch                      ▲ claim, plan (the leader)
//!                ▼                            │
//!  Reconciler ── joins and leaves ──► Links ◄──► other processes
//!    │ starts and ends
//!    ▼
//!  RegionActors ◄── Directory (where every region is) ──► Gateway, its sessions
//! ```
//!
//! The process follows the store and assumes nothing: a region runs here from its grant until the
//! grant, or the lease, is gone; and no tick begins unless the lease's
//! [`crate::storage::Authority`] holds.
//!
//! [`crate::process`] assembles a [`Node`] with everything else of a process. *Absent on purpose:* the configuration,
//! clients' connections and the console; they know the node, and the node does not know them.

pub(crate) mod answers;
mod apply;
pub mod balance;
pub mod balancer;
pub(crate) mod clock_sync;
pub mod down;
mod error;
pub(crate) mod fence;
mod handles;
pub mod hosted;
pub mod inspect;
pub mod layout_change;
mod layouts;
mod leader;
mod lines;
mod loads;
pub(crate) mod local_regions;
pub(crate) mod logins;
pub mod maps;
mod metrics;
mod migration;
pub mod orders;
pub mod placement;
mod plan;
mod pools;
pub mod population;
mod previous_run;
pub(crate) mod readiness;
pub mod ready;
mod reconcile;
mod reconciler;
mod reservations;
mod sessions;
mod sharing;
pub(crate) mod startup;
mod status;
mod store_watch;
mod survey;
pub(crate) mod surveyor;
mod values;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use purview::actor::directory::Directory;
use purview::scene::Scene;
use purview::wire::peer::query::Question;
use tokio::sync::{oneshot, watch};

use crate::executor::Executor;
use crate::logins::Subjects;
use crate::peer::Links;
use crate::shutdown;
use crate::storage::checkpoints::writer::CheckpointQueue;
use crate::storage::{Checkpoints, Leases, Membership, View};

use apply::Apply;
use balancer::{BalanceMode, Board};
use clock_sync::ClockStatus;
use handles::Handles;
use hosted::Hosted;
use local_regions::{LocalRegions, Threads};
use maps::Maps;
use metrics::NodeCollector;
use migration::Migrator;
use orders::{OrderError, Orders};
use population::Population;
use reconciler::Reconciler;
use surveyor::Surveyor;

pub use error::NodeError;
pub(crate) use sessions::find_sessions;
pub use status::{Roles, Status};
pub use survey::{ChannelLine, ClusterSurvey, LeftOut, MapLine, NodeLine, RegionLine};

pub(crate) struct Parts {
    pub(crate) executor: Executor,
    pub(crate) store: Arc<dyn Leases>,
    pub(crate) checkpoints: Option<Arc<dyn Checkpoints>>,
    pub(crate) checkpoint_queue: Option<Arc<CheckpointQueue>>,
    pub(crate) membership: Membership,
    pub(crate) links: Links,
    pub(crate) directory: Arc<Directory>,
    pub(crate) scenes: Vec<Arc<Scene>>,
    /// Sessions by the subjects of their tokens.
    pub(crate) subjects: Subjects,
    pub(crate) threads: Threads,
    pub(crate) balance: BalanceMode,
    /// How long a node may take to give its regions away.
    pub(crate) drain: Duration,
}

/// A member of the cluster and what runs here as one.
#[derive(Debug)]
pub struct Node {
    executor: Executor,
    directory: Arc<Directory>,
    membership: Membership,
    links: Links,
    subjects: Subjects,
    clock: Arc<ClockStatus>,
    hosted: Hosted,
    surveyor: Surveyor,
    board: Board,
    migrator: Migrator,
    orders: Orders,
    waits: Option<(Reconciler, oneshot::Receiver<()>)>,
    /// Dropped to end the reconciler.
    stop: Option<oneshot::Sender<()>>,
    reconciler: Option<tokio::task::JoinHandle<()>>,
}

impl Node {
    /// Assembles a member. It answers other processes and takes regions that move here, and owns
    /// nothing yet.
    pub(crate) fn new(parts: Parts) -> Node {
        let Parts { executor, store, checkpoints, checkpoint_queue, membership, .. } = parts;
        let Parts { links, directory, scenes, subjects, threads, balance: mode, drain, .. } = parts;
        let (stop, stopping) = oneshot::channel();
        let (tell, status) = watch::channel(Status::default());
        let (hosted, views) = (Hosted::default(), Arc::new(RwLock::new(View::default())));
        let maps = Maps::new(&scenes);
        let clock = ClockStatus::new(directory.clock().clone());
        // The directory has these links itself.
        let weak = Arc::downgrade(&directory);
        let board = Board::default();
        let answers = answers::responder(hosted.clone(), weak, subjects.clone(), board.clone());
        links.respond_with(answers);
        let local_regions = LocalRegions::new(directory.clone(), threads, hosted.clone());
        let handles = Handles {
            executor: executor.clone(),
            store: store.clone(),
            checkpoints: checkpoints.clone(),
            me: membership.clone(),
            links: links.clone(),
            directory: directory.clone(),
            maps: maps.clone(),
            local_regions: Arc::new(Mutex::new(local_regions)),
            view: views.clone(),
        };
        let apply = Apply::new(handles.clone(), checkpoint_queue.clone(), clock.clone(), drain);
        let reconciler = Reconciler::new(handles, apply, tell);
        let migrator = reconciler.migrator();
        let follower = clock_sync::Follower {
            directory: directory.clone(),
            links: links.clone(),
            views: views.clone(),
            hosted: hosted.clone(),
            status: clock.clone(),
        };
        executor.spawn(follower.run());
        executor.spawn(clock_sync::remember(store.clone(), directory.clone(), status.clone()));
        if let (Some(checkpoint_queue), Some(checkpoints)) = (checkpoint_queue, checkpoints) {
            let named = maps.clone();
            executor.spawn(checkpoint_queue.run(checkpoints, move |id| named.key(id)));
        }
        let orders = Orders::new(store.clone(), maps.clone(), views.clone(), executor.clone());
        let name = membership.node().name.clone();
        let surveyor = Surveyor::new(name, (views, maps.clone()), status, links.clone());
        // A gateway never leads.
        if membership.node().regions {
            balancer::start(&executor, (mode, store), (maps, &surveyor), (&hosted, &board));
        }
        Node {
            executor,
            directory,
            membership,
            links,
            subjects,
            clock,
            hosted,
            surveyor,
            board,
            migrator,
            orders,
            waits: Some((reconciler, stopping)),
            stop: Some(stop),
            reconciler: None,
        }
    }

    /// Follows the store from now on, and owns what it is granted.
    pub(crate) fn run(&mut self) {
        if let Some((reconciler, stopping)) = self.waits.take() {
            self.reconciler = Some(self.executor.spawn(reconciler.run(stopping)));
        }
    }

    /// Shares lines and sessions' subjects with other gateways: this process holds sessions, too.
    pub(crate) fn follow_gateways(&self) {
        let (links, views) = (self.links.clone(), self.surveyor.views().clone());
        self.executor.spawn(lines::follow(self.directory.clone(), links.clone(), views.clone()));
        self.executor.spawn(logins::follow(
            self.subjects.clone(),
            links,
            views,
            self.executor.clone(),
        ));
    }

    /// Creates the demo entities, if they are this process's to create, and moves those that live here.
    pub(crate) fn populate(&self, population: Arc<dyn Population>, creates: bool) {
        let (directory, mut whole) = (self.directory.clone(), self.status());
        let hosted = self.hosted.clone();
        self.executor.spawn(async move {
            if creates && whole.wait_for(Status::is_whole).await.is_ok() {
                population.create(directory.clone()).await;
            }
            population.drive(directory, hosted).await;
        });
    }

    /// Waits until the cluster's clock is known here.
    pub(crate) async fn clock_is_set(&self) {
        self.clock.set().await;
    }

    pub fn name(&self) -> &str {
        self.surveyor.name()
    }

    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    pub fn links(&self) -> &Links {
        &self.links
    }

    pub(crate) fn membership(&self) -> &Membership {
        &self.membership
    }

    pub(crate) fn clock(&self) -> &Arc<ClockStatus> {
        &self.clock
    }

    pub(crate) fn hosted(&self) -> &Hosted {
        &self.hosted
    }

    pub(crate) fn surveyor(&self) -> &Surveyor {
        &self.surveyor
    }

    pub(crate) fn collector(&self) -> NodeCollector {
        NodeCollector {
            surveyor: self.surveyor.clone(),
            authority: self.membership.authority().clone(),
            board: self.board.clone(),
            migrator: self.migrator.clone(),
        }
    }

    /// What it knows of its cluster, as it changes.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.surveyor.status()
    }

    /// Waits until the lease is gone, by which the process is no member any more.
    pub async fn lost(&self) -> NodeError {
        NodeError::Lost(self.membership.lost().await)
    }

    /// What the leader decides of balancing: from here, if this process leads, or asked of the leader.
    pub(crate) fn balance(&self) -> impl Fn() -> BoxFuture<'static, Option<String>> + use<> {
        let (board, surveyor) = (self.board.clone(), self.surveyor.clone());
        move || {
            let (board, surveyor) = (board.clone(), surveyor.clone());
            async move {
                let own = board.json();
                let told = if own.is_empty() {
                    let answer = surveyor.ask_leader(&Question::Balance).await;
                    answer.map(|answer| answer.balance).unwrap_or_default()
                } else {
                    own
                };
                Some(told).filter(|told| !told.is_empty())
            }
            .boxed()
        }
    }

    /// What may be ordered here, of the whole cluster.
    pub fn orders(&self) -> &Orders {
        &self.orders
    }

    /// Waits until this process has given its regions to others, as it was ordered to.
    pub async fn drained(&self) {
        let mut status = self.status();
        if status.wait_for(|status| status.drained).await.is_err() {
            // The reconciler has ended, which the lease tells, too.
            std::future::pending::<()>().await;
        }
    }

    /// Gives its regions to others one by one, while players walk, if there are others; for at most so long.
    pub(crate) async fn drain(&self, limit: Duration) {
        let status = self.status();
        let done = status.borrow().here == 0 || status.borrow().drained;
        if done || self.membership.loss().is_some() {
            return;
        }
        let (orders, name) = (self.orders.clone(), self.name().to_owned());
        let me = self.membership.incarnation();
        let order = async move {
            tokio::time::timeout(shutdown::ORDER, orders.drain_member(me, &name)).await
        };
        match self.executor.run(order).await {
            Ok(Ok(())) => {}
            // The last state of each region is kept for its next owner.
            Ok(Err(OrderError::OnlyNode(_))) => {
                return tracing::info!("no other node can take the regions");
            }
            Ok(Err(error)) => return tracing::warn!(%error, "cannot give regions to other nodes"),
            Err(late) => return tracing::warn!(%late, "cannot give regions to other nodes"),
        }
        tracing::info!("regions were given to other nodes");
        tokio::select! {
            () = self.drained() => {}
            lost = self.lost() => tracing::warn!(%lost, "cannot give regions to other nodes"),
            () = tokio::time::sleep(limit) => {
                let left = status.borrow().here;
                tracing::warn!(left, "not all regions were given to other nodes in time");
            }
        }
    }

    /// Ends the regions here, whose last checkpoints are kept, and gives the lease up.
    pub(crate) async fn leave(&mut self) {
        drop(self.stop.take());
        let (reconciler, membership) = (self.reconciler.take(), self.membership.clone());
        let left = async move {
            if let Some(reconciler) = reconciler
                && let Err(error) = reconciler.await
            {
                tracing::error!(%error, "the reconciler failed");
            }
            membership.leave().await
        };
        let left = async move { tokio::time::timeout(shutdown::LEAVE, left).await };
        match self.executor.run(left).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the lease could not be given up; it runs out by itself");
            }
            Err(_) => tracing::warn!(
                "not every last checkpoint was saved in time; the lease runs out by itself"
            ),
        }
    }
}
