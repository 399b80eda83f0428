//! Carries out actions on the store, the links, the directory and the regions here.
//!
//! Only [`super::reconciler`] calls this, one action at a time and in the order of the decision. A
//! decision may be a moment old: other threads move regions and learn of owners meanwhile. So each
//! action that ends a region or changes its route is checked against the present state, and left
//! out if that has changed; the next decision sees it.

mod claim;
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use purview::actor::messages::ToRegion;
use purview::scene::mutants::{self, Mutant};
use purview::scene::{Epoch, RegionId, Scene};
use purview::wire::peer::PeerMsg;
use tokio::time::Instant;

use super::clock_sync::ClockStatus;
use super::down::{self, Downs};
use super::handles::Handles;
use super::layout_change::{self, Follow};
use super::layouts::LayoutSaver;
use super::leader::Planner;
use super::migration::Migrator;
use super::reconcile::{self, Action, Local, LocalRegion, Route, Running, Suspect};
use super::store_watch::SupersededRegions;
use crate::peer::{Member, bequeathed};
use crate::storage::checkpoints::writer::CheckpointQueue;
use crate::storage::{Incarnation, LeaseError, Leases, RegionKey, View};
use start::Start;

/// How long another process's report of a dead process counts.
const SUSPICION_WINDOW: Duration = Duration::from_secs(2);

/// How long a region's last tick may take to end when the process does.
const LAST_TICK: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    GoOn,
    /// The action has waited for the store: the rest of the decision may be old.
    Replan,
}

/// Everything that actions change, and what is remembered of them.
pub(super) struct Apply {
    handles: Handles,
    checkpoint_queue: Option<Arc<CheckpointQueue>>,
    /// No region begins here before it is set.
    clock: Arc<ClockStatus>,
    follow: Follow,
    layouts: LayoutSaver,
    planner: Planner,
    migrator: Migrator,
    /// Peers that the links know: the number of each.
    peers: BTreeMap<Incarnation, u64>,
    routes: BTreeMap<RegionId, Route>,
    /// The epoch of the newest owner that sessions know, for each region.
    told: BTreeMap<RegionId, Epoch>,
    changed: Instant,
    downs: Downs,
    /// How often a checkpoint was older than recovery assumes.
    recovered_late: u64,
    /// By the present view: whether the layouts were followed, and claims made.
    follows_layouts: bool,
    has_claimed: bool,
    unborn: BTreeSet<RegionId>,
}

impl Apply {
    /// `drain`: how long a node may take to give its regions away.
    pub(super) fn new(
        handles: Handles,
        checkpoint_queue: Option<Arc<CheckpointQueue>>,
        clock: Arc<ClockStatus>,
        drain: Duration,
    ) -> Apply {
        Apply {
            follow: Follow::default(),
            layouts: LayoutSaver::new(handles.checkpoints.clone(), handles.executor.clone()),
            // The next node of an upgrade comes while the one before it is drained, or soon after.
            planner: Planner::new(
                (handles.store.clone(), handles.executor.clone()),
                handles.maps.clone(),
                drain * 2,
            ),
            migrator: Migrator::start(handles.clone()),
            handles,
            checkpoint_queue,
            clock,
            peers: BTreeMap::new(),
            routes: BTreeMap::new(),
            told: BTreeMap::new(),
            changed: Instant::now(),
            downs: Downs::default(),
            recovered_late: 0,
            follows_layouts: false,
            has_claimed: false,
            unborn: BTreeSet::new(),
        }
    }

    fn store(&self) -> &dyn Leases {
        &*self.handles.store
    }

    /// Ends local regions that other processes own by now, also while an action waits for the
    /// store.
    pub(super) fn superseded_regions(&self) -> SupersededRegions {
        SupersededRegions { handles: self.handles.clone(), migrator: self.migrator.clone() }
    }

    /// From now on decisions are made by a view anew.
    pub(super) fn begin(&mut self) {
        (self.follows_layouts, self.has_claimed) = (false, false);
        self.unborn.clear();
    }

    pub(super) fn migrator(&self) -> &Migrator {
        &self.migrator
    }

    pub(super) fn local(&self, leads: bool, shuts_down: bool) -> Local {
        let router = self.handles.links.router();
        let suspect =
            |process| Suspect { process, reporters: router.reporters(process, SUSPICION_WINDOW) };
        let known = self.handles.maps.all().into_iter();
        Local {
            me: self.handles.me.incarnation(),
            name: self.handles.me.node().name.clone(),
            shuts_down,
            leads,
            clock_is_set: self.clock.is_set(),
            follows_layouts: self.follows_layouts,
            has_claimed: self.has_claimed,
            peers: self.peers.clone(),
            suspects: self.handles.links.suspects().into_iter().map(suspect).collect(),
            regions: known.map(|(id, key, ground)| (id, self.region(id, key, ground))).collect(),
            down: self.downs.ids().collect(),
            overdue: self.checkpoint_queue.as_ref().map(|queue| queue.overdue()),
            recovered_late: self.recovered_late,
        }
    }

    fn region(&self, id: RegionId, key: RegionKey, has_ground: bool) -> LocalRegion {
        // Take one lock at a time.
        let runs = {
            let local_regions = self.handles.local_regions.lock();
            local_regions.epoch(id).map(|epoch| Running {
                epoch,
                is_confirmed: local_regions.is_confirmed(id),
                is_over: local_regions.is_over(id) || self.unborn.contains(&id),
            })
        };
        let router = self.handles.links.router();
        LocalRegion {
            runs,
            moves: self.migrator.is_moving(id),
            route: self.routes.get(&id).copied().unwrap_or_default(),
            known_epoch: router.epoch(id),
            moved: router.elsewhere(id).map(|moved| moved.epoch),
            told: self.told.get(&id).copied(),
            ..LocalRegion::new(key, has_ground)
        }
    }

    /// Carries one action out, by the view from which it was decided.
    pub(super) async fn apply(&mut self, action: Action, view: &View, leads: bool) -> Then {
        match action {
            Action::Greet(incarnation) => self.greet(incarnation, view),
            Action::TellSuspicion(process) => self.handles.links.tell_suspicion(process),
            Action::EndSuperseded => self.superseded_regions().end(),
            Action::ForgetProcess(incarnation, process) => {
                self.forget_processes(incarnation, process)
            }
            Action::Forget(id) => self.forget(id),
            Action::ForgetMove(id, epoch) => self.forget_move(id, epoch),
            Action::LearnEpoch(id, epoch) => self.handles.links.router().set_epoch(id, epoch),
            Action::Confirm(id) => self.handles.local_regions.lock().confirm(id),
            Action::RouteHere { region, epoch, lineage } => {
                self.routes.insert(region, Route::Here(epoch));
                self.told.insert(region, lineage);
            }
            Action::RouteRemote { .. } => self.route_remote(&action, view),
            Action::TellRegions => self.handles.directory.maps_are_known(self.handles.maps.ids()),
            Action::LeaveDown(id) => self.downs.leave(id),
            Action::SendOff { region, key, epoch, to } => self.send_off(region, key, epoch, to),
            Action::ClearDown => self.clear_down(leads).await,
            Action::TellOverdue(ids) => self.tell_overdue(view, &ids).await,
            Action::Lead => self.lead(view).await,
            Action::EndAll(all) => self.end_all(all).await,
            Action::Evict(incarnation, process) => {
                self.evict(incarnation, process).await;
                return Then::Replan;
            }
            Action::FollowLayouts => {
                self.follow_layouts(view).await;
                return Then::Replan;
            }
            Action::Retire(id) => {
                self.retire(id).await;
                return Then::Replan;
            }
            Action::GiveUp { region, key, epoch, unless_due } => {
                self.give_up_leftover(region, &key, epoch, unless_due).await;
                return Then::Replan;
            }
            Action::Claim(ids) => {
                self.has_claimed = true;
                self.claim(ids, view).await;
                return Then::Replan;
            }
        }
        Then::GoOn
    }

    fn greet(&mut self, incarnation: Incarnation, view: &View) {
        let Some(node) = view.nodes.get(&incarnation) else { return };
        tracing::info!(node = node.name, address = node.address, "a peer is there");
        let member = Member { name: node.name.clone(), regions: node.regions };
        self.handles.links.join_as(node.process, &node.address, member);
        self.peers.insert(incarnation, node.process);
        self.changed = Instant::now();
    }

    async fn evict(&self, incarnation: Incarnation, process: u64) {
        match self.store().evict(incarnation).await {
            Ok(true) => tracing::warn!(process, "a dead process's lease is ended"),
            Ok(false) => {}
            Err(error) => {
                purview::log_limited!(warn, %error, "a dead process's lease runs out by itself")
            }
        }
    }

    fn forget_processes(&mut self, incarnation: Incarnation, process: u64) {
        tracing::info!(process, "a peer is gone");
        self.peers.remove(&incarnation);
        for (region, at) in &mut self.routes {
            if matches!(at, Route::At(there, _) if *there == process) {
                *at = Route::Nowhere;
            }
            // It may have arrived and run meanwhile, or its next owner may be known, before the
            // store tells.
            self.handles.directory.lose_region(*region, Some(process));
        }
        for message in self.handles.links.leave(process) {
            let PeerMsg::Region { to, input, .. } = message else { continue };
            if let Some(input) = bequeathed(input) {
                let client = self.handles.links.session_of(&self.handles.directory, &input);
                self.handles.directory.keep(to, ToRegion { input, client });
            }
        }
    }

    /// Follows changes of the layouts, and publishes up to which epoch the store knows owners.
    async fn follow_layouts(&mut self, view: &View) {
        let (store, maps) = (self.handles.store.clone(), self.handles.maps.clone());
        let both = (&maps, &*self.handles.directory);
        self.unborn
            .extend(self.follow.follow(&*store, both, view, &self.handles.local_regions).await);
        self.follows_layouts = true;
        let router = self.handles.links.router();
        router.knows_up_to(view.newest());
        for (key, owner) in view.owners.iter().filter(|(key, _)| maps.knows(key)) {
            router.correct_epoch(RegionId(key.region), owner.epoch, view.newest());
        }
    }

    /// Ends a region that was given up by a change of its layout, once the store knows that it has nothing to do.
    async fn retire(&self, id: RegionId) {
        let Some((epoch, key)) =
            self.handles.local_regions.lock().epoch(id).zip(self.handles.maps.key(id))
        else {
            return;
        };
        if let Some(scene) = self.handles.maps.scene_of(id)
            && let Err(error) = layout_change::retired(self.store(), &scene, id).await
        {
            purview::log_limited!(warn, %error, region = %id, "cannot remove a region now; will retry");
            return;
        }
        tracing::info!(region = %id, "a region is no more");
        self.handles.local_regions.lock().end(id);
        self.give_up(&key, epoch).await;
    }

    async fn give_up_leftover(
        &self,
        id: RegionId,
        key: &RegionKey,
        epoch: Epoch,
        unless_due: bool,
    ) {
        let lives =
            self.handles.local_regions.lock().epoch(id).is_some() || self.migrator.is_moving(id);
        let is_anothers = self.handles.links.router().epoch(id) > epoch;
        if lives || is_anothers || mutants::has(Mutant::GivenUpOnce) {
            return;
        }
        if unless_due && !matches!(self.is_due(id).await, Ok(false)) {
            return;
        }
        tracing::debug!(region = %id, "a region that does not run here is released again");
        self.give_up(key, epoch).await;
    }

    /// Releases a region that was granted and cannot run here.
    async fn give_up(&self, key: &RegionKey, epoch: Epoch) {
        if let Err(error) = self.store().release(&self.handles.me, key, epoch).await {
            purview::log_limited!(warn, %error, region = %key, "the region could not be released");
        }
    }

    /// Whether a region is to have an owner. One without ground is only while it is about to be
    /// made, or has not handed on all its entities; ask the store about that, since a plan may be
    /// older.
    async fn is_due(&self, id: RegionId) -> Result<bool, LeaseError> {
        let Some(scene) = self.handles.maps.scene_of(id) else { return Ok(false) };
        if scene.map.get(id).is_some() {
            return Ok(true);
        }
        Ok(layout_change::record_now(self.store(), &scene).await?.comes(id))
    }

    fn forget(&mut self, id: RegionId) {
        self.handles.maps.forget(id);
        self.routes.remove(&id);
        self.handles.directory.retire(id);
    }

    fn forget_move(&self, id: RegionId, epoch: Epoch) {
        let router = self.handles.links.router();
        if router.elsewhere(id).is_some_and(|moved| moved.epoch == epoch) {
            router.forget_move(id);
        }
    }

    /// Routes a region elsewhere, or nowhere; one that runs here ends.
    fn route_remote(&mut self, action: &Action, view: &View) {
        let Action::RouteRemote { region, to, lineage, here, was_told, is_new } = *action else {
            return;
        };
        let is_old = self.handles.local_regions.lock().epoch(region) != here
            || !view.knows_of(self.handles.links.router().epoch(region));
        if is_old {
            return;
        }
        if here.is_some() {
            if !was_told {
                tracing::warn!(region = %region, "another process owns the region now; it ends here");
            }
            self.handles.local_regions.lock().end(region);
        }
        let directory = &self.handles.directory;
        directory.left(region);
        match to {
            Route::At(process, _) => {
                directory.set_region(region, self.handles.links.region(process, region));
            }
            Route::Here(_) | Route::Nowhere if here.is_some() => directory.set_region(region, None),
            Route::Here(_) | Route::Nowhere => directory.lose_region(region, None),
        }
        self.routes.insert(region, to);
        if matches!(to, Route::At(..)) {
            self.told.insert(region, lineage);
        }
        if is_new && !mutants::has(Mutant::OwnerUntold) {
            directory.tell_owner(region, lineage);
        }
    }

    async fn clear_down(&self, leads: bool) {
        let local = self.local(leads, false);
        let is_over = |id: RegionId, down: &down::Down| reconcile::is_over(&local, id, down);
        if let Err(error) = down::clear(self.store(), is_over).await {
            tracing::warn!(%error, "cannot report the state of regions now; will retry");
        }
    }

    async fn tell_overdue(&self, view: &View, ids: &[RegionId]) {
        let name = &self.handles.me.node().name;
        if let Err(error) = down::tell_overdue(self.store(), view, name, ids).await {
            tracing::warn!(%error, "cannot report the state of regions now; will retry");
        }
    }

    fn send_off(&self, id: RegionId, key: RegionKey, epoch: Epoch, to: (Incarnation, u64)) {
        if self.handles.local_regions.lock().epoch(id) == Some(epoch)
            && !self.migrator.is_moving(id)
        {
            self.migrator.depart(id, key, epoch, to);
        }
    }

    async fn lead(&mut self, view: &View) {
        let directory = self.handles.directory.clone();
        let quiet = match self.handles.links.is_alone() {
            true => Duration::MAX,
            false => self.changed.elapsed(),
        };
        let now = |scene: &Scene| directory.tick_now(scene.tick_ms);
        self.planner.lead(view, quiet, now).await;
        self.layouts.follow(view, &self.handles.maps);
    }

    /// Keeps the last layouts before the process ends.
    pub(super) async fn keep_layouts(&self) {
        self.layouts.finish(self.store(), &self.handles.maps).await;
    }

    /// Ends regions here and keeps the last state of each, so that the next owner loses nothing.
    async fn end_all(&self, all: Vec<(RegionId, Epoch)>) {
        let mut ending = Vec::new();
        for (id, epoch) in all {
            self.handles.directory.set_region(id, None);
            if self.handles.directory.may_act()
                && let Some(departing) = self.handles.local_regions.lock().depart(id, epoch, None)
            {
                ending.push((id, departing));
            }
        }
        let kept = ending.into_iter().map(async |(id, departing)| {
            if let Some(departure) = departing.unless(tokio::time::sleep(LAST_TICK)).await
                && let Some(key) = self.handles.maps.key(id)
            {
                self.migrator.keep(&key, departure.checkpoint).await;
            }
        });
        futures::future::join_all(kept).await;
        let mut local_regions = self.handles.local_regions.lock();
        local_regions.ids().into_iter().for_each(|id| local_regions.end(id));
    }

    fn starter(&self) -> Start<'_> {
        let checkpoints = self.handles.checkpoints.as_deref();
        Start { store: self.store(), checkpoints, directory: &self.handles.directory }
    }
}
