//! Changed layouts outlive the lease store: the leader copies each change of a scene's map to where checkpoints are
//! kept, and a process that joins a store which knows none takes them from there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use purview::scene::Scene;

use super::error::NodeError;
use super::layout_change::{self, Record};
use super::maps::Maps;
use crate::executor::Executor;
use crate::storage::{Checkpoints, KeptLayout, Leases, View};

/// How long one layout may take to be saved, before it is tried again.
const SAVE_LIMIT: Duration = Duration::from_secs(5);

/// Brings a store that knows nothing of a scene's map to what is kept of it.
///
/// # Errors
/// Either store; the process does not join then. It must not begin by the configuration's layout while another one
/// counts.
pub(super) async fn adopt(
    store: &dyn Leases,
    checkpoints: Option<&dyn Checkpoints>,
    scenes: &[Arc<Scene>],
) -> Result<(), NodeError> {
    let Some(checkpoints) = checkpoints else { return Ok(()) };
    let mut missing = Vec::new();
    for scene in scenes {
        if store.get(&layout_change::key(scene)).await?.is_none() {
            missing.push(scene);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let kept = checkpoints.layouts().await?;
    for scene in missing {
        let found = kept.iter().find(|layout| layout.scene == scene.spec.name);
        let data = match found {
            Some(layout) => {
                tracing::info!(
                    scene = layout.scene,
                    change = layout.change,
                    "a saved layout is used"
                );
                layout.data.clone()
            }
            None => layout_change::written(&Record::default()),
        };
        // Another process that comes at the same time writes the same.
        store.get_or_create(&layout_change::key(scene), data).await?;
    }
    Ok(())
}

/// Keeps layouts while this process leads. Cheap to clone.
#[derive(Clone)]
pub(super) struct LayoutSaver {
    checkpoints: Option<Arc<dyn Checkpoints>>,
    executor: Executor,
    saved: Arc<Mutex<Saved>>,
}

#[derive(Default)]
struct Saved {
    /// The last change of each scene's map that is kept.
    changes: BTreeMap<String, u64>,
    busy: bool,
}

impl Saved {
    fn is_new(&self, layout: &KeptLayout) -> bool {
        self.changes.get(&layout.scene).is_none_or(|change| *change < layout.change)
    }
}

impl LayoutSaver {
    pub(super) fn new(
        checkpoints: Option<Arc<dyn Checkpoints>>,
        executor: Executor,
    ) -> LayoutSaver {
        LayoutSaver { checkpoints, executor, saved: Arc::default() }
    }

    /// Saves what has changed by this view, beside whatever else is done. To be called again and again: what could not be
    /// saved is tried again.
    pub(super) fn follow(&self, view: &View, maps: &Maps) {
        let Some(checkpoints) = self.checkpoints.clone() else { return };
        let mut saved = self.saved.lock();
        if saved.busy {
            return;
        }
        let of_view = |scene: &Arc<Scene>| kept(&layout_change::record_of(view, scene), scene);
        let layouts: Vec<KeptLayout> = maps.scenes().iter().filter_map(of_view).collect();
        let layouts: Vec<KeptLayout> = layouts.into_iter().filter(|l| saved.is_new(l)).collect();
        if layouts.is_empty() {
            return;
        }
        saved.busy = true;
        drop(saved);
        let own = self.clone();
        self.executor.spawn(async move {
            for layout in layouts {
                own.save(&*checkpoints, layout).await;
            }
            own.saved.lock().busy = false;
        });
    }

    /// Saves what the lease store has and is not saved, before this process ends: a change may have been decided just
    /// now. The process waits no longer than `SAVE_LIMIT`.
    pub(super) async fn finish(&self, store: &dyn Leases, maps: &Maps) {
        if tokio::time::timeout(SAVE_LIMIT, self.save_last(store, maps)).await.is_err() {
            tracing::warn!("the last layouts may not be saved: no answer");
        }
    }

    async fn save_last(&self, store: &dyn Leases, maps: &Maps) {
        let Some(checkpoints) = &self.checkpoints else { return };
        for scene in maps.scenes() {
            match layout_change::record_now(store, &scene).await {
                Ok(record) => {
                    if let Some(layout) = kept(&record, &scene).filter(|l| self.is_new(l)) {
                        self.save(&**checkpoints, layout).await;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, scene = scene.spec.name, "its last layout may not be saved");
                }
            }
        }
    }

    fn is_new(&self, layout: &KeptLayout) -> bool {
        self.saved.lock().is_new(layout)
    }

    async fn save(&self, checkpoints: &dyn Checkpoints, layout: KeptLayout) {
        let (scene, change) = (layout.scene.clone(), layout.change);
        match tokio::time::timeout(SAVE_LIMIT, checkpoints.save_layout(layout)).await {
            // A later change is kept already, or this one.
            Ok(Ok(_)) => {
                let mut saved = self.saved.lock();
                saved.changes.insert(scene, change);
            }
            Ok(Err(error)) => {
                purview::log_limited!(warn, %error, scene, "cannot save a changed layout yet");
            }
            Err(_) => {
                purview::log_limited!(warn, scene, "cannot save a changed layout yet: no answer")
            }
        }
    }
}

/// What is to be kept of a scene's map; `None`: it has never changed.
fn kept(record: &Record, scene: &Scene) -> Option<KeptLayout> {
    let change = record.change;
    let data: Bytes = layout_change::written(&record.completed());
    (change > 0).then(|| KeptLayout { scene: scene.spec.name.clone(), change, data })
}

#[cfg(test)]
mod tests {
    use purview::scene::{Epoch, RegionId, SceneId, SceneSpec};

    use super::*;
    use crate::storage::checkpoints::redb::Redb;
    use crate::storage::leases::embedded::Embedded;

    #[tokio::test]
    async fn a_change_decided_just_before_the_end_is_saved_and_begins_the_next_cluster() {
        let side = SceneSpec { spawn_x_cm: 0, spawn_z_cm: 0, ..SceneSpec::default() };
        let scene = Arc::new(Scene::new(SceneId(0), side, 50, RegionId(0)).unwrap());
        let scenes = std::slice::from_ref(&scene);
        let (maps, folder) = (Maps::new(scenes), tempfile::tempdir().unwrap());
        let checkpoints: Arc<dyn Checkpoints> = Arc::new(Redb::open(folder.path()).unwrap());
        let executor = Executor::Machine(tokio::runtime::Handle::current());
        let saver = LayoutSaver::new(Some(checkpoints.clone()), executor);
        let store = Embedded::new(Epoch(0));
        saver.finish(&store, &maps).await;
        assert_eq!(checkpoints.layouts().await.unwrap().len(), 0, "nothing has changed");

        let layout = scene.map.layout().split(RegionId(0)).unwrap();
        let decided = Record { change: 1, layout: Some(layout), ..Record::default() };
        let data = layout_change::written(&decided);
        store.get_or_create(&layout_change::key(&scene), data).await.unwrap();
        saver.finish(&store, &maps).await;
        let next = Embedded::new(Epoch(0));
        adopt(&next, Some(&*checkpoints), scenes).await.unwrap();
        assert_eq!(layout_change::record_now(&next, &scene).await.unwrap(), decided);
    }
}
