//! Follows the store: who is there, who owns what, what is planned; and does this process's part.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use purview::actor::directory::Directory;
use purview::actor::messages::ToRegion;
use purview::scene::mutants::{self, Mutant};
use purview::scene::region::{ESCROW_TICKS, Recovery, RegionSnapshot, RestoreError};
use purview::scene::{Epoch, Region, RegionId, Scene, Tick};
use purview::wire::peer::PeerMsg;
use tokio::sync::{oneshot as once, watch};
use tokio::time::Instant;

use super::Status;
use super::clock_sync::ClockStatus;
use super::down::{self, Downs, Next};
use super::layout_change::{self, Follow};
use super::layouts::LayoutSaver;
use super::leader::Planner;
use super::local_regions::Residents;
use super::maps::Maps;
use super::migration::{Mover, Tools};
use super::plan;
use super::store_watch::{Deposer, Heard, News};
use super::values::read;
use crate::executor::Home;
use crate::peer::{Links, Member, bequeathed};
use crate::storage::checkpoints::writer::Shelf;
use crate::storage::{
    CheckpointError, Checkpoints, Claim, Incarnation, LeaseError, Leases, Membership, Put,
    RegionKey, View,
};

/// How often what has not come to pass is tried again.
const AGAIN: Duration = Duration::from_millis(250);

/// For how long the player of a checkpoint may be presented at least, milliseconds, or its client may come back;
/// after that it has left.
const GRACE_MS: u32 = 10_000;

/// How long a checkpoint may take to be read.
const CHECKPOINT_LIMIT: Duration = Duration::from_secs(2);

/// For how long another process's word counts that somebody is dead.
const WITNESS: Duration = Duration::from_secs(2);

/// How long a region's last tick may take to end when the process does.
const LAST_TICK: Duration = Duration::from_secs(1);

/// Why a region does not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Store(#[from] LeaseError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// What keeps checkpoints does not answer. A region that went on without would lose what no client steers.
    #[error("its checkpoint cannot be read now: {0}")]
    NotNow(String),
    /// There is a checkpoint, and nobody can read it: only an operator may start the region without.
    #[error("its checkpoint cannot be read: {0}")]
    Unreadable(String),
}

impl StartError {
    /// Whether another try, here or elsewhere, fails as well.
    fn is_for_an_operator(&self) -> bool {
        use RestoreError as E;
        match self {
            StartError::Unreadable(_) => true,
            StartError::Restore(
                E::WrongScene { .. } | E::WrongRegion { .. } | E::Illegal { .. },
            ) => true,
            StartError::Restore(_) | StartError::Store(_) | StartError::NotNow(_) => false,
        }
    }
}

/// Where a region is, as far as routes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whereabouts {
    Nowhere,
    Here(Epoch),
    At(u64, Epoch),
}

/// The same, and since which owner it has neither begun nor gone on from a checkpoint.
type Found = (Whereabouts, Epoch);

/// What outlives processes.
pub(super) struct Stores {
    /// Where its clients live.
    pub(super) home: Home,
    pub(super) leases: Arc<dyn Leases>,
    pub(super) checkpoints: Option<Arc<dyn Checkpoints>>,
    /// On their way to these.
    pub(super) shelf: Option<Arc<Shelf>>,
}

/// Where the keeper tells what it knows.
pub(super) struct Told {
    pub(super) status: watch::Sender<Status>,
    pub(super) view: Arc<RwLock<View>>,
}

/// The task that follows the store.
pub(super) struct Keeper {
    store: Arc<dyn Leases>,
    home: Home,
    me: Membership,
    links: Links,
    directory: Arc<Directory>,
    maps: Maps,
    remap: Follow,
    layouts: LayoutSaver,
    planner: Planner,
    residents: Arc<Mutex<Residents>>,
    mover: Mover,
    /// Peers that were told to the links: the number of each.
    peers: BTreeMap<Incarnation, u64>,
    routes: BTreeMap<RegionId, Whereabouts>,
    /// The newest owner of each region that sessions were told of, by its epoch.
    seen: BTreeMap<RegionId, Epoch>,
    leads: Arc<AtomicBool>,
    /// When a node came last.
    changed: Instant,
    tell: Told,
    /// Where checkpoints are read from.
    checkpoints: Option<Arc<dyn Checkpoints>>,
    /// No region begins here before it is set.
    clock: Option<Arc<ClockStatus>>,
    shelf: Option<Arc<Shelf>>,
    /// The regions that stay down here.
    downs: Downs,
    /// How often a checkpoint was older than recovery assumes.
    recovered_late: u64,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Keeper {
    pub(super) fn new(
        stores: Stores,
        me: Membership,
        links: Links,
        directory: Arc<Directory>,
        maps: Maps,
        residents: Residents,
        tell: Told,
    ) -> Keeper {
        let residents = Arc::new(Mutex::new(residents));
        let tools = Tools {
            store: stores.leases.clone(),
            checkpoints: stores.checkpoints.clone(),
            me: me.clone(),
            links: links.clone(),
            directory: directory.clone(),
            maps: maps.clone(),
            residents: residents.clone(),
            view: tell.view.clone(),
            home: stores.home.clone(),
        };
        let layouts = LayoutSaver::new(stores.checkpoints.clone(), stores.home.clone());
        let mover = Mover::start(tools);
        Keeper {
            planner: Planner::new(stores.leases.clone(), maps.clone()),
            store: stores.leases,
            home: stores.home,
            checkpoints: stores.checkpoints,
            shelf: stores.shelf,
            downs: Downs::default(),
            recovered_late: 0,
            me,
            links,
            residents,
            mover,
            directory,
            maps,
            remap: Follow::default(),
            layouts,
            peers: BTreeMap::new(),
            routes: BTreeMap::new(),
            seen: BTreeMap::new(),
            leads: Arc::default(),
            changed: Instant::now(),
            tell,
            clock: None,
        }
    }

    /// The same, by a clock that is to be set before a region begins here.
    pub(super) fn acting_by(self, clock: Arc<ClockStatus>) -> Keeper {
        Keeper { clock: Some(clock), ..self }
    }

    fn residents(&self) -> MutexGuard<'_, Residents> {
        self.residents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deposer(&self) -> Deposer {
        Deposer {
            me: self.me.clone(),
            links: self.links.clone(),
            maps: self.maps.clone(),
            mover: self.mover.clone(),
            residents: self.residents.clone(),
        }
    }

    /// Follows until `stop` is dropped or the lease is gone; then no region runs here any more.
    pub(super) async fn run(mut self, mut stop: once::Receiver<()>) {
        let leads = self.leads.clone();
        let (store, me) = (self.store.clone(), self.me.clone());
        let campaign = self.home.spawn(async move {
            match store.campaign(&me).await {
                Ok(_) => leads.store(true, Ordering::Relaxed),
                Err(error) => tracing::debug!(%error, "not in line to lead any more"),
            }
        });
        let mut heard = Heard::new(self.store.watch());
        let suspicion = self.links.switch().suspicion();
        let deposer = self.deposer();
        let ends = self.home.spawn(self.deposer().run());
        let mut again = tokio::time::interval(AGAIN);
        let me = self.me.clone();
        let lost = me.lost();
        tokio::pin!(lost);
        loop {
            tokio::select! {
                biased;
                _ = &mut stop => break,
                loss = &mut lost => {
                    tracing::error!(?loss, "the lease is gone: no region runs here any more");
                    break;
                }
                news = heard.next() => match news {
                    News::More => {}
                    News::Nothing => continue,
                    News::Over => break,
                },
                () = suspicion.notified() => {}
                _ = again.tick() => self.directory.send_kept(),
            }
            let view = heard.view();
            heard.while_doing(self.follow(&view), |newer| deposer.heed(newer)).await;
        }
        campaign.abort();
        ends.abort();
        self.end_all().await;
    }

    /// Ends every region here; what each was last is kept, so that whoever goes on loses nothing.
    async fn end_all(&mut self) {
        let all: Vec<_> = {
            let residents = self.residents();
            residents.ids().into_iter().filter_map(|id| Some((id, residents.epoch(id)?))).collect()
        };
        let mut ending = Vec::new();
        for (id, epoch) in all {
            self.directory.set_region(id, None);
            if self.directory.may_act()
                && let Some(departing) = self.residents().depart(id, epoch, None)
            {
                ending.push((id, departing));
            }
        }
        let kept = ending.into_iter().map(async |(id, departing)| {
            if let Some(departure) = departing.unless(tokio::time::sleep(LAST_TICK)).await
                && let Some(key) = self.key(id)
            {
                self.mover.keep(&key, departure.checkpoint).await;
            }
        });
        futures::future::join_all(kept).await;
        let mut residents = self.residents();
        residents.ids().into_iter().for_each(|id| residents.end(id));
    }

    /// Brings this process in line with what the store says.
    async fn follow(&mut self, view: &View) {
        if view.nodes.is_empty() {
            // Not heard of yet.
            return;
        }
        self.show(view);
        self.greet(view);
        self.suspect(view).await;
        self.deposer().end_deposed();
        self.bid_farewell(view);
        self.follow_maps(view).await;
        self.route(view);
        self.directory.maps_are_known(self.maps.ids());
        self.claim(view).await;
        self.tell_troubles(view).await;
        self.send_off(view);
        if self.leads.load(Ordering::Relaxed) {
            let (directory, quiet) = (self.directory.clone(), self.changed.elapsed());
            let now = |scene: &Scene| directory.tick_now(scene.tick_ms);
            self.planner.lead(view, quiet, now).await;
            self.layouts.follow(view, &self.maps);
        }
        let down = down::all(view);
        let known = |(id, at): &(&RegionId, &Whereabouts)| {
            let is_down = down.contains_key(&id.0);
            **at != Whereabouts::Nowhere && self.maps.is_present(**id) && !is_down
        };
        let known = self.routes.iter().filter(known).count();
        // One lock after the other.
        let here = self.residents().len();
        let drained = self.is_drained(view);
        let status = Status {
            peers: self.peers.len(),
            regions: self.maps.present(),
            located: known,
            here,
            down: down.keys().filter(|id| self.maps.is_present(RegionId(**id))).count(),
            recovered_late: self.recovered_late,
            leads: self.leads.load(Ordering::Relaxed),
            draining: plan::is_drained(view, self.me.incarnation()),
            drained,
        };
        self.tell.status.send_if_modified(|now| std::mem::replace(now, status.clone()) != status);
    }

    /// Lets others of this process see what the store says.
    fn show(&self, view: &View) {
        let mut told = self.tell.view.write().unwrap_or_else(PoisonError::into_inner);
        if told.revision != view.revision {
            told.clone_from(view);
        }
    }

    /// Hands over the region that the leader says is to move, if it runs here.
    fn send_off(&self, view: &View) {
        let Some(order) = plan::move_of(view) else { return };
        let (id, to) = (RegionId(order.region), Incarnation(order.to));
        let (Some(process), Some(key)) = (self.peers.get(&to), self.key(id)) else { return };
        let epoch = Epoch(order.epoch);
        let mine = order.from == self.me.incarnation().0
            && view.owners.get(&key).is_some_and(|owner| owner.epoch == epoch)
            && self.residents().epoch(id) == Some(epoch);
        if mine && !self.mover.is_moving(id) {
            self.mover.depart(id, key, epoch, (to, *process));
        }
    }

    /// Whether this node was to give everything up, and has.
    fn is_drained(&self, view: &View) -> bool {
        let mine = self.me.incarnation();
        let moving = self.maps.ids().into_iter().any(|id| self.mover.is_moving(id));
        plan::is_drained(view, mine)
            && self.residents().len() == 0
            && !view.owners.values().any(|owner| owner.incarnation == mine)
            && !moving
    }

    fn greet(&mut self, view: &View) {
        for (incarnation, node) in &view.nodes {
            if *incarnation == self.me.incarnation() || self.peers.contains_key(incarnation) {
                continue;
            }
            tracing::info!(node = node.name, address = node.address, "a peer is there");
            let member = Member { name: node.name.clone(), regions: node.regions };
            self.links.join_as(node.process, &node.address, member);
            self.peers.insert(*incarnation, node.process);
            self.changed = Instant::now();
        }
    }

    /// A process whose machine says that nobody listens there any more is dead. When two have been told so
    /// the leader ends its lease, which would else run out some time later.
    async fn suspect(&mut self, view: &View) {
        for suspect in self.links.suspects() {
            let found = self.peers.iter().find(|(_, process)| **process == suspect);
            let Some(incarnation) = found.map(|(incarnation, _)| *incarnation) else { continue };
            self.links.tell_suspicion(suspect);
            let leads = self.leads.load(Ordering::Relaxed)
                || view.leader.as_ref().is_some_and(|leader| leader.incarnation == incarnation);
            let others = view.nodes.len().saturating_sub(2);
            let told = self.links.switch().witnesses(suspect, WITNESS);
            if !leads || told < others.min(1) {
                continue;
            }
            match self.store.evict(incarnation).await {
                Ok(true) => tracing::warn!(process = suspect, "a dead process's lease is ended"),
                Ok(false) => {}
                Err(error) => {
                    purview::log_limited!(warn, %error, "a dead process's lease runs out by itself")
                }
            }
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
                }
                // It may have come here meanwhile, and be running, or its next owner may have been heard, before the store tells.
                self.directory.lose_region(*region, Some(process));
            }
            for message in self.links.leave(process) {
                let PeerMsg::Region { to, input, .. } = message else { continue };
                if let Some(input) = bequeathed(input) {
                    let client = self.links.session_of(&self.directory, &input);
                    self.directory.keep(to, ToRegion { input, client });
                }
            }
        }
    }

    /// Tells the directory where every region is.
    fn route(&mut self, view: &View) {
        self.links.switch().knows_up_to(view.newest());
        let nowhere = (Whereabouts::Nowhere, Epoch(0));
        let mut now: BTreeMap<RegionId, Found> =
            self.maps.ids().into_iter().map(|id| (id, nowhere)).collect();
        for (key, owner) in &view.owners {
            let id = RegionId(key.region);
            if !self.is_known(key) {
                continue;
            }
            self.links.switch().correct_epoch(id, owner.epoch, view.newest());
            let at = match owner.incarnation == self.me.incarnation() {
                true => Whereabouts::Here(owner.epoch),
                false => match self.peers.get(&owner.incarnation) {
                    Some(process) => Whereabouts::At(*process, owner.epoch),
                    None => Whereabouts::Nowhere,
                },
            };
            now.insert(id, (at, owner.lineage));
        }
        for (id, found) in now {
            // Else it is the newest owner itself that has been heard, and the store tells of it later: whoever looked for it where
            // the store says by now would look in vain.
            if view.knows_of(self.links.switch().epoch(id)) {
                self.route_one(id, found);
            }
        }
    }

    fn route_one(&mut self, id: RegionId, (at, lineage): Found) {
        let switch = self.links.switch();
        let moved = switch.elsewhere(id);
        if let (Some(moved), Whereabouts::At(_, epoch) | Whereabouts::Here(epoch)) = (moved, at)
            && epoch <= moved.epoch
        {
            // The store does not tell of it yet.
            return;
        }
        if moved.is_some() {
            switch.forget_move(id);
        }
        if let Whereabouts::At(_, epoch) | Whereabouts::Here(epoch) = at {
            switch.set_epoch(id, epoch);
        }
        let here = self.residents().epoch(id);
        match at {
            // Granted, and running or about to: see `claim`, or the mover.
            Whereabouts::Here(epoch) => {
                if here == Some(epoch) {
                    // Not an older grant of this process's, which it has given up.
                    self.residents().confirm(id);
                }
                if here == Some(epoch) && self.routes.insert(id, at) != Some(at) {
                    self.seen.insert(id, lineage);
                }
                return;
            }
            // The view is older than the grant.
            Whereabouts::At(_, epoch) if here.is_some_and(|mine| mine > epoch) => return,
            Whereabouts::Nowhere if here.is_some() && !self.residents().is_confirmed(id) => return,
            Whereabouts::Nowhere | Whereabouts::At(..) => {}
        }
        if self.routes.get(&id) == Some(&at) {
            return;
        }
        if here.is_some() {
            if moved.is_none() {
                tracing::warn!(region = %id, "a region is another's now and ends here");
            }
            self.residents().end(id);
        }
        self.directory.left(id);
        match at {
            Whereabouts::At(process, _) => {
                self.directory.set_region(id, self.links.region(process, id));
            }
            _ if here.is_some() => self.directory.set_region(id, None),
            _ => self.directory.lose_region(id, None),
        }
        self.routes.insert(id, at);
        if let Whereabouts::At(..) = at
            && self.seen.insert(id, lineage).is_some_and(|before| before < lineage)
            && !mutants::has(Mutant::OwnerUntold)
        {
            self.directory.tell_owner(id, lineage);
        }
    }

    fn is_known(&self, key: &RegionKey) -> bool {
        self.maps.knows(key)
    }

    fn key(&self, id: RegionId) -> Option<RegionKey> {
        self.maps.key(id)
    }

    /// Follows changes of the region maps: asks regions here for promises, tells them what was decided, and
    /// ends those that have nothing to do any more.
    async fn follow_maps(&mut self, view: &View) {
        let (store, maps) = (self.store.clone(), self.maps.clone());
        let both = (&maps, &*self.directory);
        let followed = self.remap.follow(&*store, both, view, &self.residents).await;
        let mut over = followed.unborn;
        over.extend(self.residents().over());
        for id in over {
            let Some((epoch, key)) = self.residents().epoch(id).zip(self.key(id)) else { continue };
            if let Some(scene) = self.maps.scene_of(id)
                && let Err(error) = layout_change::retired(&*self.store, &scene, id).await
            {
                purview::log_limited!(warn, %error, region = %id, "a region that is over ends later");
                continue;
            }
            tracing::info!(region = %id, "a region is no more");
            self.residents().end(id);
            self.give_up(&key, epoch).await;
        }
        self.give_up_leftovers(view).await;
        let mut records = BTreeMap::new();
        for id in self.maps.ids() {
            let (Some(scene), Some(key)) = (self.maps.scene_of(id), self.key(id)) else { continue };
            let record =
                records.entry(scene.id).or_insert_with(|| layout_change::record_of(view, &scene));
            let comes = record.next.as_ref().is_some_and(|next| next.layout.plot(id).is_some())
                || record.retiring.contains_key(&id.0);
            let lives = view.owners.contains_key(&key) || self.residents().epoch(id).is_some();
            if scene.map.get(id).is_none() && !comes && !lives {
                self.maps.forget(id);
                self.routes.remove(&id);
                self.directory.retire(id);
            }
        }
    }

    /// Gives up what is this process's by the store, does not run here, and is to run elsewhere or nowhere: the store did
    /// not answer when it was given up first. Everybody would take it for a region that says nothing.
    async fn give_up_leftovers(&self, view: &View) {
        let mine = self.me.incarnation();
        let plan = plan::plan_of(view).of;
        let is_meant = |id: RegionId| plan.get(&id.0).is_none_or(|node| *node == mine.0);
        for (key, owner) in view.owners.iter().filter(|(_, owner)| owner.incarnation == mine) {
            let id = RegionId(key.region);
            let lives = self.residents().epoch(id).is_some() || self.mover.is_moving(id);
            // The store does not tell yet who has it by now.
            let is_anothers = self.links.switch().epoch(id) > owner.epoch;
            if !lives
                && !is_anothers
                && !mutants::has(Mutant::GivenUpOnce)
                && self.is_known(key)
                && (!is_meant(id) || matches!(self.is_due(id).await, Ok(false)))
            {
                tracing::debug!(region = %id, "a region that does not run here is given up again");
                self.give_up(key, owner.epoch).await;
            }
        }
    }

    /// Claims what is planned for this process and nobody owns, and starts it.
    async fn claim(&mut self, view: &View) {
        if self.clock.as_ref().is_some_and(|clock| !clock.is_set()) {
            return;
        }
        let plan = plan::plan_of(view).of;
        let mine = self.me.incarnation();
        let meant: Vec<RegionId> =
            plan.iter().filter(|(_, to)| **to == mine.0).map(|(id, _)| RegionId(*id)).collect();
        self.downs.retain(|id| meant.contains(&id));
        for id in meant {
            let Some(key) = self.key(id) else { continue };
            if self.residents().epoch(id).is_some() || self.mover.is_moving(id) {
                continue;
            }
            if view.owners.get(&key).is_some_and(|owner| owner.incarnation != mine) {
                continue;
            }
            match self.is_due(id).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    return purview::log_limited!(warn, %error, region = %id, "not claimed now");
                }
            }
            let stores = (&*self.store, self.checkpoints.as_deref());
            match self.downs.obey(stores, id, &key, view).await {
                Ok(Next::Start) => {}
                Ok(Next::Wait) => continue,
                Err(error) => return tracing::warn!(%error, region = %id, "not claimed now"),
            }
            match self.store.claim(&self.me, &key).await {
                // Taken over with all that lived there, which has not come. Gateways hold this epoch for its own: it goes
                // on from a checkpoint under another.
                Ok(Claim::Granted(grant)) if grant.lineage != grant.epoch => {
                    self.give_up(&key, grant.epoch).await;
                }
                Ok(Claim::Granted(grant)) => {
                    match self.start(id, &key, grant.epoch).await {
                        Ok(()) => {}
                        // The grant stays; it is tried again.
                        Err(error @ StartError::NotNow(_)) => {
                            return purview::log_limited!(warn, %error, region = %id, "a region does not go on yet");
                        }
                        // So does it here; nobody starts it elsewhere.
                        Err(error) if error.is_for_an_operator() => {
                            let told = (&*self.store, self.me.node().name.as_str());
                            self.downs.hold(told, id, grant.epoch, error.to_string()).await;
                        }
                        Err(error) => {
                            purview::log_limited!(error, %error, region = %id, "a region cannot be started here");
                            self.give_up(&key, grant.epoch).await;
                        }
                    }
                }
                Ok(Claim::Refused(_)) => {}
                Err(error) => {
                    return purview::log_limited!(warn, %error, region = %id, "not claimed now");
                }
            }
        }
    }

    /// Tells everybody which regions are down no more, and which checkpoints are overdue.
    async fn tell_troubles(&self, view: &View) {
        let (me, leads) = (&self.me.node().name, self.leads.load(Ordering::Relaxed));
        let is_over = |id: RegionId, down: &down::Down| {
            let runs = self.residents().epoch(id).is_some();
            runs || (down.node == *me && !self.downs.has(id)) || (leads && self.key(id).is_none())
        };
        let mut told = down::clear(&*self.store, view, is_over).await;
        if let Some(shelf) = &self.shelf {
            let overdue = shelf.overdue();
            told = told.and(down::tell_overdue(&*self.store, view, me, &overdue).await);
        }
        if let Err(error) = told {
            tracing::warn!(%error, "what is wrong with regions is told later");
        }
    }

    /// Whether a region is to have an owner. One without ground is only while it is about to be made, or has not
    /// handed everybody on; of that the store itself is asked, since a plan may be older.
    async fn is_due(&self, id: RegionId) -> Result<bool, LeaseError> {
        let Some(scene) = self.maps.scene_of(id) else { return Ok(false) };
        if scene.map.get(id).is_some() {
            return Ok(true);
        }
        let record = self.store.get(&layout_change::key(&scene)).await?;
        let record: layout_change::Record = read(record.as_ref());
        let comes = record.next.is_some_and(|next| next.layout.plot(id).is_some());
        Ok(comes || record.retiring.contains_key(&id.0))
    }

    /// Starts a region that was granted: empty if it never ran, else from its last checkpoint.
    async fn start(
        &mut self,
        id: RegionId,
        key: &RegionKey,
        epoch: Epoch,
    ) -> Result<(), StartError> {
        let Some(scene) = self.maps.scene_of(id) else { return Ok(()) };
        let mut fx = Vec::new();
        let ran_before = self.ran_before(key).await? && !mutants::has(Mutant::StartsEmpty);
        let record = self.store.get(&layout_change::key(&scene)).await?;
        let record: layout_change::Record = read(record.as_ref());
        let is_new = scene.map.get(id).is_none() && !record.retiring.contains_key(&id.0);
        let region = match ran_before {
            // It owns nothing before the map changes.
            _ if is_new => Some(Region::unborn(scene.clone(), id).with_epoch(epoch)),
            false => Region::new(scene.clone(), id).map(|region| region.with_epoch(epoch)),
            true => {
                let snapshot = self.last_checkpoint(&scene, id, key, epoch).await?;
                tracing::info!(region = %id, tick = %snapshot.tick(), "a region goes on from a checkpoint");
                self.note_age(&scene, &snapshot);
                let ask = self.maps.ids();
                let grace_ms = GRACE_MS.max(self.directory.linger_ms());
                let grace_ticks = u64::from(grace_ms / scene.tick_ms.max(1)).max(1);
                let owners = self.seen.iter().map(|(id, since)| (*id, *since)).collect();
                let how = Recovery { ask, grace_ticks, owners };
                Some(Region::recover(scene.clone(), id, epoch, snapshot, how, &mut fx)?)
            }
        };
        let Some(region) = region else { return Ok(()) };
        if self.residents().epoch(id).is_some() {
            // It has come meanwhile from another process, which a store that keeps its word does not let come to pass.
            tracing::warn!(region = %id, %epoch, "a region that was to start runs here by now");
            return Ok(());
        }
        self.links.switch().set_epoch(id, epoch);
        let runs = self.residents().start(&scene, region, epoch, (fx, &self.links));
        if runs {
            tracing::info!(region = %id, %epoch, "a region runs here");
            self.routes.insert(id, Whereabouts::Here(epoch));
            if self.seen.insert(id, epoch).is_some_and(|before| before < epoch) {
                self.directory.tell_owner(id, epoch);
            }
        }
        Ok(())
    }

    /// Says so when others may not remember any more what has happened since a checkpoint.
    fn note_age(&mut self, scene: &Scene, snapshot: &RegionSnapshot) {
        let now = self.directory.tick_now(scene.tick_ms);
        let ticks = now.0.saturating_sub(snapshot.tick().0);
        // Tick 0: there is none, and nothing that it could miss.
        if ticks > ESCROW_TICKS && snapshot.tick() > Tick(0) {
            self.recovered_late += 1;
            let region = snapshot.region();
            tracing::error!(
                %region, ticks, limit = ESCROW_TICKS,
                "a checkpoint is older than its neighbours remember: what no client steers may be lost or doubled"
            );
        }
    }

    /// Whether a region ever had an owner; from now on it had.
    async fn ran_before(&self, key: &RegionKey) -> Result<bool, LeaseError> {
        let mark = format!("ran/{key}");
        if self.store.get(&mark).await?.is_some() {
            return Ok(true);
        }
        let put = self.store.put_if(&mark, None, Bytes::from_static(b"1")).await?;
        Ok(matches!(put, Put::Refused { .. }) || self.is_kept(key).await)
    }

    /// Whether there is a checkpoint of a region, as far as is known: the store may have lost what it knew.
    async fn is_kept(&self, key: &RegionKey) -> bool {
        let Some(checkpoints) = &self.checkpoints else { return false };
        match tokio::time::timeout(CHECKPOINT_LIMIT, checkpoints.load(key)).await {
            Ok(Ok(kept)) => kept.newest.is_some(),
            Ok(Err(_)) | Err(_) => true,
        }
    }

    /// The newest checkpoint that can be read, or that of a region of which nothing is known.
    async fn last_checkpoint(
        &self,
        scene: &Scene,
        id: RegionId,
        key: &RegionKey,
        epoch: Epoch,
    ) -> Result<RegionSnapshot, StartError> {
        let nothing = || RegionSnapshot::nothing(scene.id, id, Epoch(epoch.0.saturating_sub(1)));
        let Some(checkpoints) = &self.checkpoints else { return Ok(nothing()) };
        let kept = match tokio::time::timeout(CHECKPOINT_LIMIT, checkpoints.load(key)).await {
            Ok(Ok(kept)) => kept,
            Ok(Err(error @ CheckpointError::Unreachable { .. })) => {
                return Err(StartError::NotNow(error.to_string()));
            }
            Ok(Err(error)) => return Err(StartError::Unreadable(error.to_string())),
            Err(_) => return Err(StartError::NotNow(format!("no answer in {CHECKPOINT_LIMIT:?}"))),
        };
        let mut unsound = Vec::new();
        for kept in kept.newest.into_iter().chain(kept.previous) {
            match RegionSnapshot::decode(&kept.state) {
                Ok(snapshot) => return Ok(snapshot),
                Err(error) => {
                    tracing::error!(%error, region = %id, tick = %kept.tick, "a checkpoint is not sound");
                    unsound.push(format!("that of tick {}: {error}", kept.tick));
                }
            }
        }
        match unsound.is_empty() {
            true => Ok(nothing()),
            false => Err(StartError::Unreadable(unsound.join("; "))),
        }
    }

    /// A region that was granted and cannot run here is somebody else's.
    async fn give_up(&self, key: &RegionKey, epoch: Epoch) {
        if let Err(error) = self.store.release(&self.me, key, epoch).await {
            purview::log_limited!(warn, %error, region = %key, "it could not be given up");
        }
    }
}
