//! Where an empty store continues to count when there are checkpoints: an etcd that has lost
//! everything, or a new one.
//!
//! Regions that go on from checkpoints have entities whose names begin with their processes' numbers, and their ticks are
//! those of a clock. So processes' numbers and the cluster's clock go on above what is kept.

use std::time::Duration;

use purview::actor::directory::Directory;
use purview::scene::SessionId;
use purview::scene::region::{RegionSnapshot, SavedEntity};

use crate::storage::{CheckpointError, Checkpoints};

/// Processes may have given names of which checkpoints remember nothing by their entities: those that came last.
const UNKNOWN: u64 = 1_000;

/// Where numbers and the clock are to go on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Past {
    /// The number of the last process; 0 if nothing is kept.
    pub(super) number: u64,
    /// The cluster's time.
    pub(super) clock: Duration,
}

impl Past {
    /// What checkpoints know of it.
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub(super) async fn of(
        checkpoints: &dyn Checkpoints,
        tick_ms: u32,
    ) -> Result<Past, CheckpointError> {
        let mut past = Past::default();
        for key in checkpoints.regions().await? {
            let kept = checkpoints.load(&key).await?;
            for kept in kept.newest.into_iter().chain(kept.previous) {
                let end = kept.tick.next().0.saturating_mul(tick_ms.into());
                past.clock = past.clock.max(Duration::from_millis(end));
                // A damaged checkpoint is never used.
                if let Ok(snapshot) = RegionSnapshot::decode(&kept.state) {
                    past.number = past.number.max(newest_process(&snapshot) + UNKNOWN);
                }
            }
        }
        Ok(past)
    }
}

/// The highest process number in the names of a snapshot's entities.
fn newest_process(snapshot: &RegionSnapshot) -> u64 {
    // Entities and sessions are named alike.
    let names =
        |entity: SavedEntity| [Some(SessionId(entity.id.0)), entity.session].into_iter().flatten();
    snapshot.entities().flat_map(names).map(Directory::process_of).max().unwrap_or_default()
}
