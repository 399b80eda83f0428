//! Where an empty store continues to count when there are checkpoints: an etcd that has lost
//! everything, or a new one.
//!
//! Regions that go on from checkpoints have entities whose names begin with their processes' numbers, and their ticks are
//! those of a clock. So processes' numbers and the cluster's clock go on above what is kept.

use std::time::Duration;

use purview::scene::SessionId;
use purview::scene::region::{RegionSnapshot, SavedEntity};

use crate::storage::leases::names::GATEWAY_NUMBERS;
use crate::storage::{CheckpointError, Checkpoints};

/// Processes may have given names of which checkpoints remember nothing by their entities: those that came last.
const UNKNOWN: u64 = 1_000;

/// Where numbers and the clock are to go on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PreviousRun {
    /// How many nodes there were; 0 if nothing is kept.
    pub(super) nodes: u64,
    pub(super) gateways: u64,
    /// The cluster's time.
    pub(super) clock: Duration,
}

impl PreviousRun {
    /// What checkpoints know of it.
    pub(super) async fn of(
        checkpoints: &dyn Checkpoints,
        tick_ms: u32,
    ) -> Result<PreviousRun, CheckpointError> {
        let mut previous = PreviousRun::default();
        for key in checkpoints.regions().await? {
            let kept = checkpoints.load(&key).await?;
            for kept in kept.newest.into_iter().chain(kept.previous) {
                let end = kept.tick.next().0.saturating_mul(tick_ms.into());
                previous.clock = previous.clock.max(Duration::from_millis(end));
                // A damaged checkpoint is never used.
                if let Ok(snapshot) = RegionSnapshot::decode(&kept.state) {
                    previous.count(&snapshot);
                }
            }
        }
        Ok(previous)
    }

    /// Counts on above the process numbers in the names of a snapshot's entities and sessions.
    fn count(&mut self, snapshot: &RegionSnapshot) {
        let names = |entity: SavedEntity| {
            let session = entity.session.map(SessionId::process);
            // The ids of contents name no process.
            let own = entity.id.content().is_none().then(|| entity.id.process());
            [own, session].into_iter().flatten()
        };
        (self.nodes, self.gateways) = (self.nodes.max(UNKNOWN), self.gateways.max(UNKNOWN));
        for process in snapshot.entities().flat_map(names) {
            match process.checked_sub(GATEWAY_NUMBERS) {
                Some(gateway) => self.gateways = self.gateways.max(gateway + UNKNOWN),
                None => self.nodes = self.nodes.max(process + UNKNOWN),
            }
        }
    }
}
