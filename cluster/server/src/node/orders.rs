//! What an operator orders of the cluster, at any process: written into the store, where the leader and the nodes
//! find it.

mod reserve;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use purview::scene::spec::PoolSpec;
use purview::scene::{Epoch, RegionId, Scene};

use super::layout_change::{self, MapError, MapOrder};
use super::maps::Maps;
use super::plan::{DRAINS, PLAN, Plan, has_others, plan_of, sites};
use super::pools::Pools;
use super::reservations::reservations;
use super::values::change;
use crate::executor::Executor;
use crate::storage::{Incarnation, LeaseError, Leases, Owner, RegionKey, View};

pub use reserve::Reserve;

#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    #[error(transparent)]
    Store(#[from] LeaseError),
    #[error("no node {0:?} takes regions; there are: {1}")]
    NoNode(String, String),
    #[error("no region {0} has an owner; `purview ctl status regions` lists them")]
    NoRegion(RegionId),
    #[error("region {0} is not down; `purview ctl status regions` tells which are")]
    NotDown(RegionId),
    #[error("{0:?} is the only node that takes regions: add another one first")]
    OnlyNode(String),
    #[error("the subject has {0} bytes: want 1 to 128 of printable text, as the `sub` of a token")]
    NoSubject(usize),
    #[error(
        "{0} kicks count already: one goes when its time is over, or with `purview ctl kick SUBJECT --for 0s`"
    )]
    TooManyKicks(usize),
    #[error("{0} regions are pinned already; `purview ctl balance unpin REGION` takes one off")]
    TooManyPins(usize),
    #[error("there is no scene {0:?}; `purview ctl status` lists them")]
    NoScene(String),
    #[error(
        "no ground lies within {area_m:?}: write west, north, east and south edge in metres, west below east and north \
         below south, on a map of {width_m} x {depth_m} m"
    )]
    NoArea {
        area_m: [u32; 4],
        /// The size of the map along x, metres.
        width_m: i32,
        /// The size of the map along z, metres.
        depth_m: i32,
    },
    #[error("a part of this ground of {0:?} is reserved already; `--for 0s` ends that first")]
    Reserved(String),
    #[error("{0} reservations count already; one ends when its time is over, or with `--for 0s`")]
    TooManyReservations(usize),
    #[error(
        "{wanted} nodes are to be reserved; {free} are not reserved, {fit} of them fit scene {scene:?}, and one must stay \
         for everything else: want 1 to {}", (*fit).min(free.saturating_sub(1))
    )]
    TooFewNodes {
        scene: String,
        wanted: usize,
        /// Nodes of the scene's pool that are not reserved.
        fit: usize,
        free: usize,
    },
    #[error("{node} may not run regions of {scene:?}: the scene wants {wants}")]
    NotInPool { node: String, scene: String, wants: String },
}

/// What a scene asks of nodes, in words.
fn wants(pool: &PoolSpec, is_reserved: bool) -> String {
    let labels = pool.labels.iter().map(|(key, value)| format!("label {key}={value}"));
    let zone = (!pool.zone.is_empty()).then(|| format!("zone {}", pool.zone));
    let kept = "reservations kept (`purview ctl balance status` lists them)";
    let reserved = is_reserved.then(|| kept.to_owned());
    labels.chain(zone).chain(reserved).collect::<Vec<_>>().join(", ")
}

/// What an operator may order, at any process.
#[derive(Clone)]
pub struct Orders {
    store: Arc<dyn Leases>,
    maps: Maps,
    view: Arc<RwLock<View>>,
    executor: Executor,
}

impl std::fmt::Debug for Orders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Orders").finish_non_exhaustive()
    }
}

impl Orders {
    pub(super) fn new(
        store: Arc<dyn Leases>,
        maps: Maps,
        view: Arc<RwLock<View>>,
        executor: Executor,
    ) -> Orders {
        Orders { store, maps, view, executor }
    }

    pub(super) fn store(&self) -> &dyn Leases {
        &*self.store
    }

    pub(super) fn time_of_day(&self) -> Duration {
        self.executor.time_of_day()
    }

    fn node(&self, view: &View, name: &str) -> Result<Incarnation, OrderError> {
        let takes = || view.nodes.iter().filter(|(_, node)| node.regions);
        let named = takes().find(|(_, node)| node.name == name).map(|(i, _)| *i);
        named.ok_or_else(|| {
            let all: Vec<&str> = takes().map(|(_, node)| node.name.as_str()).collect();
            OrderError::NoNode(name.to_owned(), all.join(", "))
        })
    }

    /// The scenes as this process knows them.
    pub fn scenes(&self) -> Vec<Arc<Scene>> {
        self.maps.scenes()
    }

    pub(super) fn view(&self) -> View {
        self.view.read().clone()
    }

    pub async fn move_region(&self, region: RegionId, node: &str) -> Result<(), OrderError> {
        let view = self.view();
        let to = self.node(&view, node)?;
        if !view.owners.keys().any(|key| key.region == region.0) {
            return Err(OrderError::NoRegion(region));
        }
        self.may_run(&view, region, to)?;
        Ok(change(&*self.store, PLAN, |plan: &mut Plan| {
            plan.of.insert(region.0, to.0);
        })
        .await?)
    }

    /// Whether a region's pool has a node, or no node at all.
    fn may_run(&self, view: &View, region: RegionId, to: Incarnation) -> Result<(), OrderError> {
        let Some(scene) = self.maps.scene_of(region) else { return Ok(()) };
        let reserved = reservations(view, self.time_of_day());
        let pool = Pools::new((view, &sites(view)), &self.maps.scenes(), &reserved);
        let ground = scene.map.layout().plots.into_iter().find(|plot| plot.id == region);
        let index = pool.of(&scene.spec.name, ground.as_ref());
        let is_in = pool.all.get(index).is_none_or(|pool| pool.nodes.contains(&to.0));
        let node = view.nodes.get(&to).map(|node| node.name.clone()).unwrap_or_default();
        match is_in {
            true => Ok(()),
            false => Err(OrderError::NotInPool {
                node,
                scene: scene.spec.name.clone(),
                wants: wants(&scene.spec.pool, !reserved.is_empty()),
            }),
        }
    }

    pub fn owned_by(&self, node: &str) -> Vec<(RegionKey, Epoch)> {
        let owners = self.view().owners.into_iter();
        owners.filter(|(_, owner)| owner.node == node).map(|(key, o)| (key, o.epoch)).collect()
    }

    /// Regions that are meant for another node than the one that has them, both of which are there: what was ordered
    /// and is not done.
    pub fn outstanding(&self) -> Vec<RegionId> {
        let view = self.view();
        let lives = |node: u64| view.nodes.contains_key(&Incarnation(node));
        let plan = plan_of(&view);
        let elsewhere = |region: u32, owner: &Owner| {
            let meant = plan.of.get(&region).copied().filter(|node| lives(*node));
            lives(owner.incarnation.0) && meant.is_some_and(|node| node != owner.incarnation.0)
        };
        let known = view.owners.iter().filter(|(key, _)| self.maps.knows(key));
        known
            .filter(|(key, owner)| elsewhere(key.region, owner))
            .map(|(key, _)| RegionId(key.region))
            .collect()
    }

    /// Changes a scene's layout while players walk on. Returns the scene's name and the version
    /// that its map will have.
    pub async fn change_map(&self, order: &MapOrder) -> Result<(String, u64), MapError> {
        layout_change::order(&*self.store, &self.maps, order).await
    }

    /// A node is to give its regions to others, one by one; when it has none it ends.
    pub async fn drain(&self, node: &str) -> Result<(), OrderError> {
        let who = self.node(&self.view(), node)?;
        self.drain_member(who, node).await
    }

    /// The same for one incarnation, whichever process has its name by now.
    pub(super) async fn drain_member(
        &self,
        who: Incarnation,
        node: &str,
    ) -> Result<(), OrderError> {
        let view = self.view();
        if !has_others(&view, who) {
            return Err(OrderError::OnlyNode(node.to_owned()));
        }
        let living: BTreeSet<u64> = view.nodes.keys().map(|i| i.0).collect();
        Ok(change(&*self.store, DRAINS, |drains: &mut BTreeSet<u64>| {
            drains.retain(|i| living.contains(i));
            drains.insert(who.0);
        })
        .await?)
    }
}
