//! Follows the store: who is there, who owns what, what is planned; and does this process's part.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use purview::actor::directory::Directory;
use purview::actor::messages::ToRegion;
use purview::scene::region::{Recovery, RegionSnapshot, RestoreError};
use purview::scene::{Epoch, Region, RegionId, Scene};
use purview::wire::peer::PeerMsg;
use tokio::sync::{oneshot, watch};

use super::residents::Residents;
use super::{Status, regions_of};
use crate::engine::{
    Checkpoints, Claim, Event, Incarnation, LeaseError, Leases, Membership, Put, RegionKey, View,
};
use crate::link::{Links, follows};
use crate::placement::{Plot, Site, plan, plots};

/// The value that holds the plan: which incarnation each region is meant for.
const PLAN: &str = "plan";

/// How often what has not come to pass is tried again.
const AGAIN: Duration = Duration::from_millis(250);

/// After a node came, how long the leader waits for others before it plans: what starts together is
/// planned together.
const SETTLES: Duration = Duration::from_millis(1_500);

/// For how long the player of a checkpoint may be presented, milliseconds; after that it has left.
const GRACE_MS: u32 = 10_000;

/// How long a checkpoint may take to be read.
const CHECKPOINT_LIMIT: Duration = Duration::from_secs(2);

/// Why a region does not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Store(#[from] LeaseError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

/// Where a region is, as far as routes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whereabouts {
    Nowhere,
    Here(Epoch),
    At(u64, Epoch),
}

/// What outlives processes.
pub(super) struct Stores {
    pub(super) leases: Arc<dyn Leases>,
    pub(super) checkpoints: Option<Arc<dyn Checkpoints>>,
}

/// Where the keeper tells what it knows.
pub(super) struct Told {
    pub(super) status: watch::Sender<Status>,
    pub(super) view: Arc<RwLock<View>>,
}

/// The task that follows the store.
pub(super) struct Keeper {
    store: Arc<dyn Leases>,
    me: Membership,
    links: Links,
    directory: Arc<Directory>,
    regions: usize,
    /// The scene of each region.
    scenes: HashMap<RegionId, Arc<Scene>>,
    plots: Vec<Plot<RegionId>>,
    residents: Residents,
    /// Peers that were told to the links: the number of each.
    peers: HashMap<Incarnation, u64>,
    routes: HashMap<RegionId, Whereabouts>,
    /// The newest owner of each region that sessions were told of, by its epoch.
    seen: HashMap<RegionId, Epoch>,
    leads: Arc<AtomicBool>,
    /// When a node came last.
    changed: Instant,
    tell: Told,
    /// Where checkpoints are read from.
    checkpoints: Option<Arc<dyn Checkpoints>>,
}

impl Keeper {
    pub(super) fn new(
        stores: Stores,
        me: Membership,
        links: Links,
        directory: Arc<Directory>,
        scenes: &[Arc<Scene>],
        residents: Residents,
        tell: Told,
    ) -> Keeper {
        let of_scene = |scene: &Arc<Scene>| {
            let scene = scene.clone();
            let ids: Vec<_> = scene.map.regions.iter().map(|entry| entry.id).collect();
            ids.into_iter().map(move |id| (id, scene.clone()))
        };
        Keeper {
            store: stores.leases,
            checkpoints: stores.checkpoints,
            me,
            links,
            residents,
            directory,
            regions: regions_of(scenes),
            scenes: scenes.iter().flat_map(of_scene).collect(),
            plots: scenes.iter().flat_map(|scene| plots(&scene.map)).collect(),
            peers: HashMap::new(),
            routes: HashMap::new(),
            seen: HashMap::new(),
            leads: Arc::default(),
            changed: Instant::now(),
            tell,
        }
    }

    /// Follows until `stop` is dropped or the lease is gone; then no region runs here any more.
    pub(super) async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        let leads = self.leads.clone();
        let (store, me) = (self.store.clone(), self.me.clone());
        let campaign = tokio::spawn(async move {
            match store.campaign(&me).await {
                Ok(_) => leads.store(true, Ordering::Relaxed),
                Err(error) => tracing::debug!(%error, "not in line to lead any more"),
            }
        });
        let mut watch = self.store.watch();
        let mut again = tokio::time::interval(AGAIN);
        let mut view = View::default();
        let me = self.me.clone();
        let lost = me.lost();
        tokio::pin!(lost);
        loop {
            tokio::select! {
                event = watch.next() => match event {
                    Some(Ok(Event::Snapshot(all))) => view = all,
                    Some(Ok(Event::Change(change))) => view.apply(&change),
                    Some(Err(error)) => {
                        tracing::warn!(%error, "the store is not followed now");
                        continue;
                    }
                    None => break,
                },
                _ = again.tick() => self.directory.send_kept(),
                loss = &mut lost => {
                    tracing::error!(?loss, "the lease is gone: no region runs here any more");
                    break;
                }
                _ = &mut stop => break,
            }
            self.follow(&view).await;
        }
        campaign.abort();
        for id in self.residents.ids() {
            self.directory.set_region(id, None);
            self.residents.end(id);
        }
    }

    /// Brings this process in line with what the store says.
    async fn follow(&mut self, view: &View) {
        if view.nodes.is_empty() {
            // Not heard of yet.
            return;
        }
        self.greet(view);
        self.bid_farewell(view);
        self.route(view);
        self.claim(view).await;
        if self.leads.load(Ordering::Relaxed) {
            self.plan(view).await;
        }
        let known = self.routes.values().filter(|at| **at != Whereabouts::Nowhere).count();
        let status = Status {
            peers: self.peers.len(),
            regions: self.regions,
            located: known,
            here: self.residents.len(),
            leads: self.leads.load(Ordering::Relaxed),
        };
        self.tell.status.send_if_modified(|now| std::mem::replace(now, status.clone()) != status);
        let mut told = self.tell.view.write().unwrap_or_else(PoisonError::into_inner);
        if told.revision != view.revision {
            told.clone_from(view);
        }
    }

    fn greet(&mut self, view: &View) {
        for (incarnation, node) in &view.nodes {
            if *incarnation == self.me.incarnation() || self.peers.contains_key(incarnation) {
                continue;
            }
            tracing::info!(node = node.name, address = node.address, "a peer is there");
            self.links.join(node.process, &node.address);
            self.peers.insert(*incarnation, node.process);
            self.changed = Instant::now();
        }
    }

    /// Peers that are gone: what they did not acknowledge and must arrive waits for whoever owns the
    /// regions next.
    fn bid_farewell(&mut self, view: &View) {
        let gone: Vec<_> = self.peers.iter().filter(|(i, _)| !view.nodes.contains_key(i)).collect();
        let gone: Vec<(Incarnation, u64)> = gone.into_iter().map(|(i, p)| (*i, *p)).collect();
        for (incarnation, process) in gone {
            tracing::info!(process, "a peer is gone");
            self.peers.remove(&incarnation);
            for (region, at) in &mut self.routes {
                if matches!(at, Whereabouts::At(there, _) if *there == process) {
                    *at = Whereabouts::Nowhere;
                    self.directory.set_region(*region, None);
                }
            }
            for message in self.links.leave(process) {
                if let PeerMsg::Region { to, input, .. } = message
                    && follows(&input)
                {
                    let client = self.links.session_of(&self.directory, &input);
                    self.directory.keep(to, ToRegion { input, client });
                }
            }
        }
    }

    /// Tells the directory where every region is.
    fn route(&mut self, view: &View) {
        let mut now: BTreeMap<RegionId, Whereabouts> =
            self.scenes.keys().map(|id| (*id, Whereabouts::Nowhere)).collect();
        for (key, owner) in &view.owners {
            let id = RegionId(key.region);
            if !self.is_known(key) {
                continue;
            }
            let at = match owner.incarnation == self.me.incarnation() {
                true => Whereabouts::Here(owner.epoch),
                false => match self.peers.get(&owner.incarnation) {
                    Some(process) => Whereabouts::At(*process, owner.epoch),
                    None => Whereabouts::Nowhere,
                },
            };
            self.links.switch().set_epoch(id, owner.epoch);
            now.insert(id, at);
        }
        for (id, at) in now {
            let here = self.residents.epoch(id);
            match at {
                // Granted, and running or about to: see `claim`.
                Whereabouts::Here(_) => {
                    self.residents.confirm(id);
                    continue;
                }
                // The view is older than the grant.
                Whereabouts::At(_, epoch) if here.is_some_and(|mine| mine > epoch) => continue,
                Whereabouts::Nowhere if here.is_some() && !self.residents.is_confirmed(id) => {
                    continue;
                }
                Whereabouts::Nowhere | Whereabouts::At(..) => {}
            }
            if self.routes.get(&id) == Some(&at) {
                continue;
            }
            if here.is_some() {
                tracing::warn!(region = %id, "a region is another's now and ends here");
                self.residents.end(id);
            }
            let address = match at {
                Whereabouts::At(process, _) => self.links.region(process, id),
                _ => None,
            };
            self.directory.set_region(id, address);
            self.routes.insert(id, at);
            if let Whereabouts::At(_, epoch) = at
                && self.seen.insert(id, epoch).is_some_and(|before| before < epoch)
            {
                self.directory.tell_owner(id, epoch);
            }
        }
    }

    fn is_known(&self, key: &RegionKey) -> bool {
        let scene = self.scenes.get(&RegionId(key.region));
        key.planes == 0 && scene.is_some_and(|scene| scene.spec.name == key.scene)
    }

    fn key(&self, id: RegionId) -> Option<RegionKey> {
        let scene = self.scenes.get(&id)?;
        Some(RegionKey { scene: scene.spec.name.clone(), region: id.0, planes: 0 })
    }

    /// How regions are called in the store.
    pub(super) fn keys(&self) -> impl Fn(RegionId) -> Option<RegionKey> + Send + use<> {
        let scenes = self.scenes.clone();
        move |id| {
            let scene = scenes.get(&id)?;
            Some(RegionKey { scene: scene.spec.name.clone(), region: id.0, planes: 0 })
        }
    }

    /// Claims what is planned for this process and nobody owns, and starts it.
    async fn claim(&mut self, view: &View) {
        let plan = read_plan(view);
        let mine = self.me.incarnation();
        let meant: Vec<RegionId> =
            plan.iter().filter(|(_, to)| **to == mine.0).map(|(id, _)| RegionId(*id)).collect();
        for id in meant {
            let Some(key) = self.key(id) else { continue };
            if self.residents.epoch(id).is_some() {
                continue;
            }
            if view.owners.get(&key).is_some_and(|owner| owner.incarnation != mine) {
                continue;
            }
            match self.store.claim(&self.me, &key).await {
                Ok(Claim::Granted(grant)) => {
                    if let Err(error) = self.start(id, &key, grant.epoch).await {
                        tracing::error!(%error, region = %id, "a region cannot be started here");
                        self.give_up(&key, grant.epoch).await;
                    }
                }
                Ok(Claim::Refused(_)) => {}
                Err(error) => return tracing::warn!(%error, region = %id, "not claimed now"),
            }
        }
    }

    /// Starts a region that was granted: empty if it never ran, else from its last checkpoint.
    async fn start(
        &mut self,
        id: RegionId,
        key: &RegionKey,
        epoch: Epoch,
    ) -> Result<(), StartError> {
        let Some(scene) = self.scenes.get(&id).cloned() else { return Ok(()) };
        let mut fx = Vec::new();
        let region = match self.ran_before(key).await? {
            false => Region::new(scene.clone(), id).map(|region| region.with_epoch(epoch)),
            true => {
                let snapshot = self.last_checkpoint(&scene, id, key, epoch).await;
                tracing::info!(region = %id, tick = %snapshot.tick(), "a region goes on from a checkpoint");
                let ask = self.scenes.keys().copied().collect();
                let grace_ticks = u64::from(GRACE_MS / scene.tick_ms.max(1)).max(1);
                let how = Recovery { ask, grace_ticks };
                Some(Region::recover(scene.clone(), id, epoch, snapshot, how, &mut fx)?)
            }
        };
        let Some(region) = region else { return Ok(()) };
        self.links.switch().set_epoch(id, epoch);
        if self.residents.start(&scene, region, epoch, fx) {
            tracing::info!(region = %id, %epoch, "a region runs here");
            self.routes.insert(id, Whereabouts::Here(epoch));
            if self.seen.insert(id, epoch).is_some_and(|before| before < epoch) {
                self.directory.tell_owner(id, epoch);
            }
        }
        Ok(())
    }

    /// Whether a region ever had an owner; from now on it had.
    async fn ran_before(&self, key: &RegionKey) -> Result<bool, LeaseError> {
        let mark = format!("ran/{key}");
        if self.store.get(&mark).await?.is_some() {
            return Ok(true);
        }
        let put = self.store.put_if(&mark, None, Bytes::from_static(b"1")).await?;
        Ok(matches!(put, Put::Refused { .. }))
    }

    /// The newest checkpoint that can be read, or that of a region of which nothing is known.
    async fn last_checkpoint(
        &self,
        scene: &Scene,
        id: RegionId,
        key: &RegionKey,
        epoch: Epoch,
    ) -> RegionSnapshot {
        let nothing = || RegionSnapshot::nothing(scene.id, id, Epoch(epoch.0.saturating_sub(1)));
        let Some(checkpoints) = &self.checkpoints else { return nothing() };
        let kept = match tokio::time::timeout(CHECKPOINT_LIMIT, checkpoints.load(key)).await {
            Ok(Ok(kept)) => kept,
            Ok(Err(error)) => {
                tracing::error!(%error, region = %id, "its checkpoint cannot be read; sessions say what they know");
                return nothing();
            }
            Err(_) => {
                tracing::error!(region = %id, "its checkpoint is not there in time; sessions say what they know");
                return nothing();
            }
        };
        for kept in kept.newest.into_iter().chain(kept.previous) {
            match RegionSnapshot::decode(&kept.state) {
                Ok(snapshot) => return snapshot,
                Err(error) => {
                    tracing::error!(%error, region = %id, tick = %kept.tick, "a checkpoint is not sound; the one before counts");
                }
            }
        }
        nothing()
    }

    /// A region that was granted and cannot run here is somebody else's.
    async fn give_up(&self, key: &RegionKey, epoch: Epoch) {
        if let Err(error) = self.store.release(&self.me, key, epoch).await {
            tracing::warn!(%error, region = %key, "it could not be given up");
        }
    }

    /// As the leader: gives what nobody owns to those who have room.
    async fn plan(&mut self, view: &View) {
        let old = read_plan(view);
        let lives = |to: &u64| view.nodes.get(&Incarnation(*to)).is_some_and(|node| node.regions);
        let settled = self.scenes.keys().all(|id| old.get(&id.0).is_some_and(lives));
        if settled || self.changed.elapsed() < SETTLES {
            return;
        }
        let sites: Vec<Site<u64>> = view
            .nodes
            .iter()
            .filter(|(_, node)| node.regions)
            .map(|(i, node)| Site { node: i.0, capacity: node.capacity })
            .collect();
        let owned: HashMap<RegionId, u64> = view
            .owners
            .iter()
            .filter(|(key, _)| self.is_known(key))
            .map(|(key, owner)| (RegionId(key.region), owner.incarnation.0))
            .collect();
        let planned = plan(&sites, &self.plots, &owned);
        if planned.is_empty() {
            return;
        }
        let plan: BTreeMap<u32, u64> = planned.into_iter().map(|(id, to)| (id.0, to)).collect();
        let Ok(data) = serde_json::to_vec(&plan) else { return };
        let expected = view.values.get(PLAN).map(|value| value.revision);
        match self.store.put_if(PLAN, expected, Bytes::from(data)).await {
            Ok(Put::Done { .. }) => tracing::info!(nodes = sites.len(), "a new plan"),
            // Somebody else's is newer: it will be seen.
            Ok(Put::Refused { .. }) => {}
            Err(error) => tracing::warn!(%error, "the plan could not be told"),
        }
    }
}

/// The plan: for each region the incarnation that it is meant for. One that is not understood is none.
fn read_plan(view: &View) -> BTreeMap<u32, u64> {
    let value = view.values.get(PLAN);
    value.and_then(|value| serde_json::from_slice(&value.data).ok()).unwrap_or_default()
}
