//! Every node's part: its regions promise to stop by the present map, and are told what was decided.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use purview::actor::directory::Directory;
use purview::actor::messages::{DecideMap, ProposeMap};
use purview::scene::{RegionId, Scene, SceneId, Tick};

use super::record::{Proposal, Record, change_map, key, record_of};
use crate::node::local_regions::Residents;
use crate::node::maps::Maps;
use crate::storage::{LeaseError, Leases, View};

/// How long regions have to answer.
const ANSWER: Duration = Duration::from_millis(500);

/// Every node's part.
#[derive(Debug, Default)]
pub(in crate::node) struct Follow {
    /// What regions here were asked to promise.
    asked: BTreeMap<SceneId, (Arc<Scene>, Tick)>,
}

/// What follows of a change for a process.
#[derive(Debug, Default)]
pub(in crate::node) struct Followed {
    /// Scenes have other maps.
    pub(in crate::node) changed: bool,
    /// Regions that do not come to be.
    pub(in crate::node) unborn: Vec<RegionId>,
}

impl Follow {
    /// Brings this process in line with what the store says of maps. `residents` names the regions that run
    /// here and asks them.
    pub(in crate::node) async fn follow(
        &mut self,
        store: &dyn Leases,
        (maps, directory): (&Maps, &Directory),
        view: &View,
        residents: &Mutex<Residents>,
    ) -> Followed {
        let mut followed = Followed::default();
        for scene in maps.scenes() {
            let record = record_of(view, &scene);
            let mut scene = scene;
            if let Some(layout) = &record.layout
                && layout.version > scene.map.version
            {
                match scene.with_layout(layout) {
                    Ok(new) => {
                        let new = Arc::new(new);
                        self.asked.remove(&scene.id);
                        self.take(&new, Tick(record.after), maps, residents);
                        directory.set_scene(new.clone());
                        maps.set(new.clone());
                        scene = new;
                        followed.changed = true;
                    }
                    Err(error) => {
                        purview::log_limited!(error, %error, scene = scene.spec.name, "the map in the store is none of this configuration's scene");
                        continue;
                    }
                }
            }
            // Also those that were given up before this process came.
            maps.expect_retiring(&scene, &record.retiring);
            let version = scene.map.version;
            let next = record.next.filter(|next| next.layout.version == version + 1);
            if let Some((asked, after)) = self.asked.get(&scene.id).cloned() {
                let same =
                    |n: &Proposal| asked.map.layout() == n.layout && n.after == Some(after.0);
                if !next.as_ref().is_some_and(same) {
                    self.asked.remove(&scene.id);
                    call_off(&asked, after, maps, residents);
                    let stays = |id: RegionId| {
                        let again = next.as_ref().is_some_and(|n| n.layout.plot(id).is_some());
                        again || scene.map.get(id).is_some()
                    };
                    let unborn = asked.map.regions.iter().map(|r| r.id);
                    followed.unborn.extend(unborn.filter(|id| !stays(*id)));
                }
            }
            if let Some(next) = next {
                maps.expect(&scene, &next.layout);
                if let Err(error) = self.promise(store, &scene, &next, maps, residents).await {
                    purview::log_limited!(warn, %error, "promises could not be told");
                }
            }
        }
        followed
    }

    /// A change has come to pass.
    fn take(&self, new: &Arc<Scene>, after: Tick, maps: &Maps, residents: &Mutex<Residents>) {
        for (_, address) in of_scene(new.id, maps, residents) {
            address.do_send(DecideMap { scene: new.clone(), after, comes: true });
        }
    }

    /// Asks regions here that were not asked yet for their promise, and writes down who gives it.
    async fn promise(
        &mut self,
        store: &dyn Leases,
        scene: &Arc<Scene>,
        next: &Proposal,
        maps: &Maps,
        residents: &Mutex<Residents>,
    ) -> Result<(), LeaseError> {
        let Some(after) = next.after.map(Tick) else { return Ok(()) };
        let new = match self.asked.get(&scene.id) {
            Some((new, _)) => new.clone(),
            None => match scene.with_layout(&next.layout) {
                Ok(new) => Arc::new(new),
                Err(error) => {
                    purview::log_limited!(error, %error, scene = scene.spec.name, "a map is proposed that cannot be");
                    return Ok(());
                }
            },
        };
        self.asked.insert(scene.id, (new.clone(), after));
        let mut asked = Vec::new();
        for ((id, epoch), address) in of_scene(scene.id, maps, residents) {
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

/// The regions of a scene that run here, each with its epoch.
fn of_scene(scene: SceneId, maps: &Maps, residents: &Mutex<Residents>) -> Vec<Found> {
    let residents = residents.lock().unwrap_or_else(PoisonError::into_inner);
    let is_of = |id: RegionId| maps.scene_of(id).is_some_and(|s| s.id == scene);
    residents.all().filter(|((id, _), _)| is_of(*id)).collect()
}

/// A change does not come to pass.
fn call_off(asked: &Arc<Scene>, after: Tick, maps: &Maps, residents: &Mutex<Residents>) {
    for (_, address) in of_scene(asked.id, maps, residents) {
        address.do_send(DecideMap { scene: asked.clone(), after, comes: false });
    }
}
