//! Every node's part: its regions promise to stop by the present map, and receive the decision.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use purview::actor::directory::Directory;
use purview::actor::messages::{DecideMap, ProposeMap};
use purview::scene::layout::LayoutError;
use purview::scene::{RegionId, Scene, SceneId, Tick};

use super::record::{Proposal, Record, change_map, key, record_of};
use crate::node::local_regions::LocalRegions;
use crate::node::maps::Maps;
use crate::storage::{LeaseError, Leases, View};

const ANSWER: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(in crate::node) struct Follow {
    asked: BTreeMap<SceneId, (Arc<Scene>, Tick)>,
}

impl Follow {
    /// Brings this process in line with what the store says of maps. `local_regions` names the
    /// regions that run here and asks them. Gives the regions that do not come to be.
    pub(in crate::node) async fn follow(
        &mut self,
        store: &dyn Leases,
        (maps, directory): (&Maps, &Directory),
        view: &View,
        local_regions: &Mutex<LocalRegions>,
    ) -> Vec<RegionId> {
        let mut unborn = Vec::new();
        for scene in maps.scenes() {
            let record = record_of(view, &scene);
            let scene = match self.present(scene.clone(), &record, maps, local_regions) {
                Ok(None) => scene,
                Ok(Some(new)) => {
                    directory.set_scene(new.clone());
                    maps.set(new.clone());
                    new
                }
                Err(error) => {
                    purview::log_limited!(error, %error, scene = scene.spec.name, "the map in the store does not fit the configured scene");
                    continue;
                }
            };
            // Also those that were given up before this process came.
            maps.expect_retiring(&scene, &record.retiring);
            let version = scene.map.version;
            let next = record.next.filter(|next| next.layout.version == version + 1);
            unborn.extend(self.drop_asked(&scene, next.as_ref(), maps, local_regions));
            if let Some(next) = next {
                maps.expect(&scene, &next.layout);
                if let Err(error) = self.promise(store, &scene, &next, maps, local_regions).await {
                    purview::log_limited!(warn, %error, "promises could not be saved");
                }
            }
        }
        unborn
    }

    /// The scene by the layout that counts, if that is another one by now; its regions here are told.
    fn present(
        &mut self,
        scene: Arc<Scene>,
        record: &Record,
        maps: &Maps,
        local_regions: &Mutex<LocalRegions>,
    ) -> Result<Option<Arc<Scene>>, LayoutError> {
        let layout = record.layout.as_ref().filter(|layout| layout.version > scene.map.version);
        let Some(layout) = layout else { return Ok(None) };
        let new = Arc::new(scene.with_layout(layout)?);
        self.asked.remove(&scene.id);
        self.take(&new, Tick(record.after), maps, local_regions);
        Ok(Some(new))
    }

    /// Calls off what regions were asked, if that is not what may come any more. Gives those that do not come to be.
    fn drop_asked(
        &mut self,
        scene: &Scene,
        next: Option<&Proposal>,
        maps: &Maps,
        local_regions: &Mutex<LocalRegions>,
    ) -> Vec<RegionId> {
        let same = |(asked, after): &(Arc<Scene>, Tick)| {
            next.is_some_and(|n| asked.map.layout() == n.layout && n.after == Some(after.0))
        };
        if self.asked.get(&scene.id).is_none_or(same) {
            return Vec::new();
        }
        let Some((asked, after)) = self.asked.remove(&scene.id) else { return Vec::new() };
        call_off(&asked, after, maps, local_regions);
        let stays = |id: RegionId| {
            let again = next.is_some_and(|n| n.layout.plot(id).is_some());
            again || scene.map.get(id).is_some()
        };
        asked.map.regions.iter().map(|r| r.id).filter(|id| !stays(*id)).collect()
    }

    fn take(
        &self,
        new: &Arc<Scene>,
        after: Tick,
        maps: &Maps,
        local_regions: &Mutex<LocalRegions>,
    ) {
        for (_, address) in of_scene(new.id, maps, local_regions) {
            address.do_send(DecideMap { scene: new.clone(), after, comes: true });
        }
    }

    /// Asks regions here that were not asked yet for their promise, and records the promises.
    async fn promise(
        &mut self,
        store: &dyn Leases,
        scene: &Arc<Scene>,
        next: &Proposal,
        maps: &Maps,
        local_regions: &Mutex<LocalRegions>,
    ) -> Result<(), LeaseError> {
        let Some(after) = next.after.map(Tick) else { return Ok(()) };
        let new = match self.asked.get(&scene.id) {
            Some((new, _)) => new.clone(),
            None => match scene.with_layout(&next.layout) {
                Ok(new) => Arc::new(new),
                Err(error) => {
                    purview::log_limited!(error, %error, scene = scene.spec.name, "the proposed map is invalid");
                    return Ok(());
                }
            },
        };
        self.asked.insert(scene.id, (new.clone(), after));
        let mut asked = Vec::new();
        for ((id, epoch), address) in of_scene(scene.id, maps, local_regions) {
            if next.promised.get(&id.0) == Some(&epoch) {
                continue;
            }
            let promise = address.send(ProposeMap { scene: new.clone(), after });
            asked.push(async move {
                match tokio::time::timeout(ANSWER, promise).await {
                    Ok(Ok(Ok(()))) => Some((id.0, epoch)),
                    other => {
                        purview::log_limited!(warn, region = %id, answer = ?other, "a region does not promise");
                        None
                    }
                }
            });
        }
        let promised: Vec<_> = join_all(asked).await.into_iter().flatten().collect();
        if promised.is_empty() {
            return Ok(());
        }
        let version = next.layout.version;
        change_map(store, &key(scene), |record: &mut Record| {
            let same = |next: &&mut Proposal| next.is(version, Some(after.0));
            if let Some(next) = record.next.as_mut().filter(same) {
                next.promised.extend(promised.iter().copied());
            }
        })
        .await
    }
}

type Found = ((RegionId, u64), actix::Addr<purview::actor::region::RegionActor>);

fn of_scene(scene: SceneId, maps: &Maps, local_regions: &Mutex<LocalRegions>) -> Vec<Found> {
    let local_regions = local_regions.lock();
    let is_of = |id: RegionId| maps.scene_of(id).is_some_and(|s| s.id == scene);
    local_regions.all().filter(|((id, _), _)| is_of(*id)).collect()
}

fn call_off(asked: &Arc<Scene>, after: Tick, maps: &Maps, local_regions: &Mutex<LocalRegions>) {
    for (_, address) in of_scene(asked.id, maps, local_regions) {
        address.do_send(DecideMap { scene: asked.clone(), after, comes: false });
    }
}
