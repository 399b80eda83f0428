//! The regions that run in this process.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::{Actor, Addr, ArbiterHandle};
use purview::actor::address::RemoteRegion;
use purview::actor::directory::Directory;
use purview::actor::messages::Halt;
use purview::actor::region::metrics::RegionMetrics;
use purview::actor::region::migration::depart::{Depart, Departing};
use purview::actor::region::{Clock, RegionActor};
use purview::scene::messages::Effect;
use purview::scene::{Epoch, Region, RegionId, Scene, SceneId};
use purview::wire::peer::ActorState;

use super::hosted::{Hosted, RegionHandle};
use crate::peer::Links;

#[derive(Debug)]
struct LocalRegion {
    scene: SceneId,
    epoch: Epoch,
    address: Addr<RegionActor>,
    metrics: Arc<RegionMetrics>,
    /// Every process has seen the grant: when the store shows it no more it has ended.
    confirmed: bool,
}

#[derive(Debug)]
pub(crate) enum Threads {
    Arbiters(Vec<ArbiterHandle>),
    /// In the [`tokio::task::LocalSet`] of the task that starts them.
    This,
}

#[derive(Debug)]
pub(super) struct LocalRegions {
    directory: Arc<Directory>,
    threads: Threads,
    running: BTreeMap<RegionId, LocalRegion>,
    started: usize,
    hosted: Hosted,
}

impl LocalRegions {
    pub(super) fn new(directory: Arc<Directory>, threads: Threads, hosted: Hosted) -> LocalRegions {
        LocalRegions { directory, threads, running: BTreeMap::new(), started: 0, hosted }
    }

    /// Starts a region under an epoch, with what it has to say at once. False when there is no thread
    /// for it.
    pub(super) fn start(
        &mut self,
        scene: &Arc<Scene>,
        region: Region,
        epoch: Epoch,
        (fx, links): (Vec<Effect>, &Links),
    ) -> bool {
        let id = region.id();
        let directory = self.directory.clone();
        let session = |session| links.session(&directory, session);
        let with = |actor: RegionActor| actor.saying(fx).reaching(session);
        let Some(address) = self.run(scene, region, epoch, with) else { return false };
        // It may have been about to leave from here, and have ended without.
        self.directory.left(id);
        self.directory.set_region(id, Some(address.recipient().into()));
        true
    }

    /// The same with a region that has come from another process, where it was running: it receives
    /// first the messages that have waited for it.
    pub(super) fn arrive(
        &mut self,
        scene: &Arc<Scene>,
        region: Region,
        epoch: Epoch,
        fx: Vec<Effect>,
        (actor_state, links): (ActorState, &Links),
    ) -> bool {
        let id = region.id();
        let directory = self.directory.clone();
        let unpack = |actor: RegionActor| {
            let session = |session| links.session(&directory, session);
            actor
                .saying(fx)
                .unpack(actor_state, session, |input| links.session_of(&directory, input))
        };
        let Some(address) = self.run(scene, region, epoch, unpack) else { return false };
        self.directory.arrive(id, address.recipient());
        true
    }

    fn run(
        &mut self,
        scene: &Arc<Scene>,
        region: Region,
        epoch: Epoch,
        with: impl FnOnce(RegionActor) -> RegionActor,
    ) -> Option<Addr<RegionActor>> {
        let id = region.id();
        let metrics = Arc::new(RegionMetrics::default());
        let clock = Clock::Real;
        let actor = RegionActor::new(region, scene.tick_ms, clock, &self.directory, &metrics);
        let actor = with(actor);
        let address = match &self.threads {
            Threads::This => actor.start(),
            Threads::Arbiters(all) => {
                let arbiter = all.get(self.started % all.len().max(1))?;
                RegionActor::start_in_arbiter(arbiter, move |_| actor)
            }
        };
        self.started += 1;
        let (scene, confirmed) = (scene.id, false);
        let local_region =
            LocalRegion { scene, epoch, address: address.clone(), metrics, confirmed };
        self.running.insert(id, local_region);
        self.show();
        Some(address)
    }

    /// Asks a region that runs here under `epoch` to end its life at the end of its tick. `None`: none does.
    pub(super) fn depart(
        &self,
        id: RegionId,
        epoch: Epoch,
        to: Option<Arc<dyn RemoteRegion>>,
    ) -> Option<Departing> {
        let local_region = self.running.get(&id).filter(|r| r.epoch == epoch)?;
        let (depart, departing) = Depart::new(to);
        local_region.address.do_send(depart);
        Some(departing)
    }

    /// Every process knows of a region's grant from the store.
    pub(super) fn confirm(&mut self, id: RegionId) {
        if let Some(local_region) = self.running.get_mut(&id) {
            local_region.confirmed = true;
        }
    }

    pub(super) fn is_confirmed(&self, id: RegionId) -> bool {
        self.running.get(&id).is_some_and(|local_region| local_region.confirmed)
    }

    /// Ends a region that is another's by now; what it holds is lost here.
    pub(super) fn end(&mut self, id: RegionId) {
        if let Some(local_region) = self.running.remove(&id) {
            local_region.address.do_send(Halt);
            self.show();
        }
    }

    pub(super) fn epoch(&self, id: RegionId) -> Option<Epoch> {
        self.running.get(&id).map(|local_region| local_region.epoch)
    }

    pub(super) fn ids(&self) -> Vec<RegionId> {
        self.running.keys().copied().collect()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = ((RegionId, u64), Addr<RegionActor>)> + '_ {
        let found = |(id, r): (&RegionId, &LocalRegion)| ((*id, r.epoch.0), r.address.clone());
        self.running.iter().map(found)
    }

    /// Whether a region was given up by a change of the map and has nothing to do any more.
    pub(super) fn is_over(&self, id: RegionId) -> bool {
        let over = |r: &LocalRegion| r.metrics.over.load(std::sync::atomic::Ordering::Relaxed);
        self.running.get(&id).is_some_and(over)
    }

    fn show(&self) {
        let handle = |(id, local_region): (&RegionId, &LocalRegion)| RegionHandle {
            scene: local_region.scene,
            region: *id,
            inspect: local_region.address.clone().recipient(),
            inspect_entity: local_region.address.clone().recipient(),
            weigh: local_region.address.clone().recipient(),
            metrics: local_region.metrics.clone(),
        };
        self.hosted.set(self.running.iter().map(handle).collect());
    }
}
