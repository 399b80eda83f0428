//! Changes of the region map: ordered by an operator, led by the leader, followed by every process.
//!
//! All of it is one value of the store for each scene, changed by compare-and-swap:
//!
//! ```text
//! operator   next = a layout
//! nodes      claim the regions that are new, which own nothing yet
//! leader     when everybody has an owner and nothing moves: after = a tick a second from now
//! nodes      their regions promise to stop after that tick; who has promised is written down
//! leader     when all have: layout = next           or, when somebody has not in time: after = nothing
//! nodes      their regions go on by the new map     or by the old one, and are asked again
//! leader                                            when it has tried for long enough: next = nothing
//! ```
//!
//! So whoever comes later, also the next leader, sees how far it is, and it is decided in one place.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use purview::actor::directory::Directory;
use purview::actor::messages::{DecideMap, ProposeMap};
use purview::scene::layout::{Layout, LayoutError, PlaneGroup, Plot};
use purview::scene::{RegionId, Scene, SceneId, Tick};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::leader::{change, move_of, read};
use super::local_regions::Residents;
use super::maps::Maps;
use crate::admin::whole::whole;
use crate::storage::{LeaseError, Leases, Owner, View};

/// Between the decision to ask for promises and the last tick by the old map.
const LEAD: Duration = Duration::from_secs(1);

/// How long a change may take before it is called off. Until then whoever was too slow is asked again.
const LIMIT: Duration = Duration::from_secs(10);

/// How long regions have to answer.
const ANSWER: Duration = Duration::from_millis(500);

/// A scene's map in the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The present map; `None`: the configuration's.
    pub(super) layout: Option<Layout>,
    /// The last tick by the map before.
    pub(super) after: u64,
    /// The map that may come.
    pub(super) next: Option<Proposal>,
    /// Names of regions below this one were given.
    pub(super) names: u32,
    /// Regions that were given up and have not handed everybody on yet, or pass on what still comes; with
    /// their planes.
    #[serde(default)]
    pub(super) retiring: BTreeMap<u32, PlaneGroup>,
    /// Grows with every change of this.
    #[serde(default)]
    pub(super) change: u64,
}

/// A map that may come to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Proposal {
    pub(super) layout: Layout,
    /// The last tick by the present one, once that is settled.
    pub(super) after: Option<u64>,
    /// Who has promised, and under which epoch.
    pub(super) promised: BTreeMap<u32, u64>,
}

impl Proposal {
    /// Whether it is this one, and by this tick.
    fn is(&self, version: u64, after: Option<u64>) -> bool {
        self.layout.version == version && self.after == after
    }
}

impl Record {
    /// What of it outlives the store: a change that is under way does not, but the names that it gave do.
    pub(super) fn settled(&self) -> Record {
        let mut settled = self.clone();
        if let Some(next) = settled.next.take() {
            settled.names = settled.names.max(next.layout.next.0);
        }
        settled
    }

    /// A change did not come to pass by its tick: it is tried again with another one, or it `is_over`.
    fn fail(&mut self, version: u64, after: Option<u64>, is_over: bool) {
        let Some(next) = self.next.as_mut().filter(|next| next.is(version, after)) else { return };
        if is_over {
            self.names = next.layout.next.0;
            self.next = None;
        } else {
            next.after = None;
            next.promised.clear();
        }
    }
}

/// Under which key.
pub(super) fn key(scene: &Scene) -> String {
    format!("map/{}", scene.spec.name)
}

/// A record as it is written.
pub(super) fn written(record: &Record) -> Bytes {
    // It is plain data.
    serde_json::to_vec(record).unwrap_or_default().into()
}

/// Changes a record, however often others change it meanwhile, and counts that.
async fn change_map(
    store: &dyn Leases,
    key: &str,
    with: impl Fn(&mut Record),
) -> Result<(), LeaseError> {
    let counted = |record: &mut Record| {
        let before = record.clone();
        with(record);
        if *record != before {
            record.change += 1;
        }
    };
    change(store, key, counted).await
}

/// A scene's map as a view of the store has it.
pub(super) fn record_of(view: &View, scene: &Scene) -> Record {
    read(view.values.get(&key(scene)))
}

/// Whether any map is about to change.
pub(super) fn is_changing(view: &View, maps: &Maps) -> bool {
    maps.scenes().iter().any(|scene| record_of(view, scene).next.is_some())
}

/// What may be ordered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum MapOrder {
    /// Cut a region in two.
    Split {
        /// Its number.
        #[serde(deserialize_with = "whole")]
        region: u32,
    },
    /// Make one region of two.
    Merge {
        /// The one that stays.
        #[serde(deserialize_with = "whole")]
        region: u32,
        /// The one that is given up.
        #[serde(deserialize_with = "whole")]
        gone: u32,
    },
    /// Cut a scene anew.
    Scale {
        /// Its name.
        scene: String,
        /// Regions side by side.
        #[serde(deserialize_with = "whole")]
        columns: i32,
        /// Regions from north to south.
        #[serde(deserialize_with = "whole")]
        rows: i32,
    },
}

/// Why a map does not change.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// There is no such scene.
    #[error("there is no scene {0:?}; there are: {1}")]
    NoScene(String, String),
    /// There is no such region.
    #[error("no scene has a region {0}; `purview ctl regions` lists them")]
    NoRegion(RegionId),
    /// The regions would not be legal.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Another change is under way.
    #[error("scene {0:?} is about to change already; when that is done it can change again")]
    Busy(String),
    /// The store says no or nothing.
    #[error(transparent)]
    Store(#[from] LeaseError),
}

/// The layout that an order asks for, and of which scene.
pub(crate) fn ordered(
    scenes: &[Arc<Scene>],
    order: &MapOrder,
) -> Result<(Arc<Scene>, Layout), MapError> {
    let with = |id: u32| {
        let found = scenes.iter().find(|scene| scene.map.get(RegionId(id)).is_some());
        found.cloned().ok_or(MapError::NoRegion(RegionId(id)))
    };
    let (scene, layout) = match order {
        MapOrder::Split { region } => {
            let scene = with(*region)?;
            let layout = scene.map.layout().split(RegionId(*region))?;
            (scene, layout)
        }
        MapOrder::Merge { region, gone } => {
            let scene = with(*region)?;
            with(*gone)?;
            let layout = scene.map.layout().merge(RegionId(*region), RegionId(*gone))?;
            (scene, layout)
        }
        MapOrder::Scale { scene: name, columns, rows } => {
            let found = scenes.iter().find(|scene| scene.spec.name == *name).cloned();
            let scene = found.ok_or_else(|| {
                let names: Vec<_> = scenes.iter().map(|s| s.spec.name.as_str()).collect();
                MapError::NoScene(name.clone(), names.join(", "))
            })?;
            let layout = scene.map.layout().scale(*columns, *rows)?;
            (scene, layout)
        }
    };
    scene.with_layout(&layout)?;
    Ok((scene, layout))
}

/// Writes an order down. Gives the scene's name and the version that its map will have.
pub(super) async fn order(
    store: &dyn Leases,
    maps: &Maps,
    order: &MapOrder,
) -> Result<(String, u64), MapError> {
    let mut scenes = maps.scenes();
    for scene in &mut scenes {
        let record: Record = read(store.get(&key(scene)).await?.as_ref());
        if record.next.is_some() {
            continue;
        }
        // No name is given twice, also not one of a map that did not come to be.
        let mut layout = record.layout.unwrap_or_else(|| scene.map.layout());
        layout.next = layout.next.max(RegionId(record.names));
        *scene = Arc::new(scene.with_layout(&layout)?);
    }
    let (scene, layout) = ordered(&scenes, order)?;
    let (name, version) = (scene.spec.name.clone(), layout.version);
    let wanted = Proposal { layout, after: None, promised: BTreeMap::new() };
    let taken = AtomicBool::new(false);
    change_map(store, &key(&scene), |record: &mut Record| {
        let known = record.layout.as_ref().map_or(1, |layout| layout.version);
        let free = record.next.is_none() && known + 1 == version;
        taken.store(free, Ordering::Relaxed);
        if free {
            record.next = Some(wanted.clone());
        }
    })
    .await?;
    if taken.into_inner() { Ok((name, version)) } else { Err(MapError::Busy(name)) }
}

/// The leader's part.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// Since when a change is seen, by scene and version.
    since: BTreeMap<(SceneId, u64), Instant>,
}

impl Change {
    /// Brings every change that is under way a step further.
    pub(super) async fn lead(
        &mut self,
        store: &dyn Leases,
        maps: &Maps,
        view: &View,
        now: impl Fn(&Scene) -> Tick,
    ) -> Result<(), LeaseError> {
        for scene in maps.scenes() {
            let record = record_of(view, &scene);
            let Some(next) = record.next else { continue };
            let version = next.layout.version;
            let since = *self.since.entry((scene.id, version)).or_insert_with(Instant::now);
            let tick = |limit: Duration| (limit.as_millis() / u128::from(scene.tick_ms)) as u64;
            let owner = |id: RegionId| -> Option<&Owner> { view.owners.get(&maps.key(id)?) };
            let old = scene.map.layout();
            let all = || old.plots.iter().chain(&next.layout.plots).map(|plot| plot.id);
            let has_promised = |id: RegionId| {
                let owner = owner(id).map(|owner| owner.epoch.0);
                owner.is_some() && next.promised.get(&id.0).copied() == owner
            };
            let now = now(&scene);
            let key = key(&scene);
            match next.after {
                None if all().all(|id| owner(id).is_some()) && move_of(view).is_none() => {
                    let after = now.0 + tick(LEAD);
                    change_map(store, &key, |record: &mut Record| {
                        if let Some(next) = record.next.as_mut().filter(|n| n.after.is_none()) {
                            next.after = Some(after);
                        }
                    })
                    .await?;
                }
                Some(after) if all().all(has_promised) => {
                    change_map(store, &key, |record: &mut Record| {
                        if let Some(next) = record.next.take_if(|n| n.is(version, Some(after))) {
                            let goes = |plot: &&Plot| next.layout.plot(plot.id).is_none();
                            let gone = old.plots.iter().filter(goes);
                            record.retiring.extend(gone.map(|plot| (plot.id.0, plot.group)));
                            record.layout = Some(next.layout);
                            record.after = after;
                        }
                    })
                    .await?;
                    tracing::info!(scene = scene.spec.name, version, after, "the map changes");
                }
                after => {
                    let is_over = since.elapsed() > LIMIT;
                    let is_late = after.map_or(is_over, |after| now.0 > after + tick(LEAD));
                    if !is_late {
                        continue;
                    }
                    change_map(store, &key, |record: &mut Record| {
                        record.fail(version, after, is_over)
                    })
                    .await?;
                    let missing: Vec<_> = all().filter(|id| !has_promised(*id)).collect();
                    tracing::warn!(
                        scene = scene.spec.name,
                        version,
                        ?missing,
                        again = !is_over,
                        "not every region has promised in time to change its map"
                    );
                }
            }
        }
        Ok(())
    }
}

/// Every node's part.
#[derive(Debug, Default)]
pub(super) struct Follow {
    /// What regions here were asked to promise.
    asked: BTreeMap<SceneId, (Arc<Scene>, Tick)>,
}

/// A region that was given up has nothing to do any more.
pub(super) async fn retired(
    store: &dyn Leases,
    scene: &Scene,
    id: RegionId,
) -> Result<(), LeaseError> {
    change_map(store, &key(scene), |record: &mut Record| {
        record.retiring.remove(&id.0);
    })
    .await
}

/// What follows of a change for a process.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// Scenes have other maps.
    pub(super) changed: bool,
    /// Regions that do not come to be.
    pub(super) unborn: Vec<RegionId>,
}

impl Follow {
    /// Brings this process in line with what the store says of maps. `residents` names the regions that run
    /// here and asks them.
    pub(super) async fn follow(
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
