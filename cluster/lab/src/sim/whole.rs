//! The simulated checkpoint store as a whole: layouts, and everything that a backup reads.

use async_trait::async_trait;

use super::store::Memory;
use purview_server::simulation::checkpoints::check_layout;
use purview_server::storage::checkpoints::whole::{KeptLayout, PAGE_MAX, Whole};
use purview_server::storage::{CheckpointError, ClusterId, SavedPlayer};

#[async_trait]
impl Whole for Memory {
    async fn save_layout(&self, layout: KeptLayout) -> Result<bool, CheckpointError> {
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

    async fn layouts(&self) -> Result<Vec<KeptLayout>, CheckpointError> {
        self.ask("list layouts", |keeping| keeping.layouts.values().cloned().collect()).await
    }

    async fn players(&self, after: &str, most: usize) -> Result<Vec<SavedPlayer>, CheckpointError> {
        self.ask("list last positions", move |keeping| {
            let all = keeping.players.values().filter(|place| *place.name > *after);
            all.take(most.min(PAGE_MAX)).cloned().collect()
        })
        .await
    }

    async fn processes(&self) -> Result<u64, CheckpointError> {
        Ok(0)
    }

    async fn processes_are(&self, _: u64) -> Result<(), CheckpointError> {
        Ok(())
    }

    async fn cluster_id(&self, fresh: ClusterId) -> Result<ClusterId, CheckpointError> {
        self.ask("read the cluster's id", move |keeping| *keeping.cluster.get_or_insert(fresh))
            .await
    }

    async fn erase(&self) -> Result<(), CheckpointError> {
        self.ask("erase everything", |keeping| {
            keeping.regions.clear();
            keeping.players.clear();
            keeping.layouts.clear();
            keeping.cluster = None;
        })
        .await
    }
}
