//! The simulated checkpoint store as a whole: layouts, and everything that a backup reads.

use futures::FutureExt;
use futures::future::BoxFuture;

use super::store::Memory;
use purview_server::simulation::checkpoints::check_layout;
use purview_server::storage::checkpoints::whole::{KeptLayout, PAGE_MAX, Whole};
use purview_server::storage::{CheckpointError, ClusterId, SavedPlayer};

impl Whole for Memory {
    fn save_layout(&self, layout: KeptLayout) -> BoxFuture<'_, Result<bool, CheckpointError>> {
        async move {
            check_layout(&layout)?;
            self.ask("store a layout", |keeping| {
                let now = keeping.layouts.get(&layout.scene).map(|now| now.change);
                let is_newer = now.is_none_or(|now| now <= layout.change);
                if is_newer {
                    keeping.layouts.insert(layout.scene.clone(), layout);
                }
                is_newer
            })
            .await
        }
        .boxed()
    }

    fn layouts(&self) -> BoxFuture<'_, Result<Vec<KeptLayout>, CheckpointError>> {
        self.ask("list layouts", |keeping| keeping.layouts.values().cloned().collect()).boxed()
    }

    fn players<'a>(
        &'a self,
        after: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<SavedPlayer>, CheckpointError>> {
        self.ask("list last positions", move |keeping| {
            let all = keeping.players.values().filter(|place| *place.name > *after);
            all.take(most.min(PAGE_MAX)).cloned().collect()
        })
        .boxed()
    }

    fn processes(&self) -> BoxFuture<'_, Result<u64, CheckpointError>> {
        std::future::ready(Ok(0)).boxed()
    }

    fn processes_are(&self, _: u64) -> BoxFuture<'_, Result<(), CheckpointError>> {
        std::future::ready(Ok(())).boxed()
    }

    fn cluster_id(&self, fresh: ClusterId) -> BoxFuture<'_, Result<ClusterId, CheckpointError>> {
        let id =
            self.ask("read the cluster's id", move |keeping| *keeping.cluster.get_or_insert(fresh));
        id.boxed()
    }

    fn erase(&self) -> BoxFuture<'_, Result<(), CheckpointError>> {
        self.ask("erase everything", |keeping| {
            keeping.regions.clear();
            keeping.players.clear();
            keeping.layouts.clear();
            keeping.cluster = None;
        })
        .boxed()
    }
}
