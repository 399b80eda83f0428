//! The state with which a region starts here: empty, or its newest readable checkpoint.
//!
//! What must never happen here: a region that ran before begins empty because its checkpoint cannot be read now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use purview::actor::directory::Directory;
use purview::scene::messages::Effect;
use purview::scene::region::{ESCROW_TICKS, Recovery, RegionSnapshot, RestoreError};
use purview::scene::{Epoch, Region, RegionId, Scene, Tick};

use crate::storage::{CheckpointError, Checkpoints, LeaseError, Leases, Put, RegionKey};

/// For how long the player of a checkpoint may be presented at least, milliseconds, or its client may come back;
/// after that it has left.
const GRACE_MS: u32 = 10_000;

/// How long a checkpoint may take to be read.
const CHECKPOINT_LIMIT: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error(transparent)]
    Store(#[from] LeaseError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The checkpoint store does not answer. A region that started without would lose entities
    /// without a client.
    #[error("its checkpoint cannot be read now: {0}")]
    NotNow(String),
    /// There is a checkpoint that cannot be read: only an operator may start the region without it.
    #[error("its checkpoint cannot be read: {0}")]
    Unreadable(String),
}

impl StartError {
    /// Whether another try, here or elsewhere, fails as well.
    pub(super) fn is_for_an_operator(&self) -> bool {
        use RestoreError as E;
        match self {
            StartError::Unreadable(_) => true,
            StartError::Restore(
                E::WrongScene { .. } | E::WrongRegion { .. } | E::Illegal { .. },
            ) => true,
            StartError::Restore(_) | StartError::Store(_) | StartError::NotNow(_) => false,
        }
    }
}

/// A region that is to run here, and what it has to say at once.
pub(super) struct Started {
    pub(super) region: Region,
    pub(super) effects: Vec<Effect>,
}

impl Started {
    /// A region that owns nothing before the layout changes.
    pub(super) fn unborn(scene: &Arc<Scene>, id: RegionId, epoch: Epoch) -> Started {
        let region = Region::unborn(scene.clone(), id).with_epoch(epoch);
        Started { region, effects: Vec::new() }
    }

    /// A region without entities. `None`: the scene has no such region.
    pub(super) fn empty(scene: &Arc<Scene>, id: RegionId, epoch: Epoch) -> Option<Started> {
        let region = Region::new(scene.clone(), id)?.with_epoch(epoch);
        Some(Started { region, effects: Vec::new() })
    }
}

/// A region that goes on from a checkpoint.
pub(super) struct Recovered {
    pub(super) with: Result<Started, RestoreError>,
    /// Other regions may have forgotten what has happened since the checkpoint.
    pub(super) is_late: bool,
}

/// Where a start finds a region's last state.
pub(super) struct Start<'a> {
    pub(super) store: &'a dyn Leases,
    pub(super) checkpoints: Option<&'a dyn Checkpoints>,
    pub(super) directory: &'a Directory,
}

impl Start<'_> {
    /// Goes on from a checkpoint. `known`: the regions that are asked what they know, and since which owner each is
    /// as sessions know it.
    pub(super) fn recovered(
        &self,
        scene: &Arc<Scene>,
        (id, epoch): (RegionId, Epoch),
        snapshot: RegionSnapshot,
        (ask, told): (Vec<RegionId>, &BTreeMap<RegionId, Epoch>),
    ) -> Recovered {
        tracing::info!(region = %id, tick = %snapshot.tick(), "a region recovers from a checkpoint");
        let is_late = self.is_late(scene, &snapshot);
        let grace_ms = GRACE_MS.max(self.directory.grace_period_ms());
        let grace_ticks = u64::from(grace_ms / scene.tick_ms.max(1)).max(1);
        let owners = told.iter().map(|(id, since)| (*id, *since)).collect();
        let how = Recovery { ask, grace_ticks, owners };
        let mut effects = Vec::new();
        let region = Region::recover(scene.clone(), id, epoch, snapshot, how, &mut effects);
        Recovered { with: region.map(|region| Started { region, effects }), is_late }
    }

    /// Whether others may not remember any more what has happened since a checkpoint.
    fn is_late(&self, scene: &Scene, snapshot: &RegionSnapshot) -> bool {
        let now = self.directory.tick_now(scene.tick_ms);
        let ticks = now.0.saturating_sub(snapshot.tick().0);
        // Tick 0: there is none, and nothing that it could miss.
        let is_late = ticks > ESCROW_TICKS && snapshot.tick() > Tick(0);
        if is_late {
            let region = snapshot.region();
            tracing::error!(
                %region, ticks, limit = ESCROW_TICKS,
                "the checkpoint is older than the neighbours' memory: entities without a client may be lost or duplicated"
            );
        }
        is_late
    }

    /// Whether a region ever had an owner; from now on it had.
    pub(super) async fn ran_before(&self, key: &RegionKey) -> Result<bool, LeaseError> {
        let mark = format!("ran/{key}");
        if self.store.get(&mark).await?.is_some() {
            return Ok(true);
        }
        let put = self.store.put_if(&mark, None, Bytes::from_static(b"1")).await?;
        Ok(matches!(put, Put::Refused(_)) || self.is_kept(key).await)
    }

    /// Whether there is a checkpoint of a region, as far as is known: the store may have lost what it knew.
    async fn is_kept(&self, key: &RegionKey) -> bool {
        let Some(checkpoints) = self.checkpoints else { return false };
        match tokio::time::timeout(CHECKPOINT_LIMIT, checkpoints.load(key)).await {
            Ok(Ok(kept)) => kept.newest.is_some(),
            Ok(Err(_)) | Err(_) => true,
        }
    }

    /// The newest checkpoint that can be read, or that of a region of which nothing is known.
    pub(super) async fn last_checkpoint(
        &self,
        scene: &Scene,
        id: RegionId,
        key: &RegionKey,
        epoch: Epoch,
    ) -> Result<RegionSnapshot, StartError> {
        let nothing = || RegionSnapshot::nothing(scene.id, id, Epoch(epoch.0.saturating_sub(1)));
        let Some(checkpoints) = self.checkpoints else { return Ok(nothing()) };
        // The lease that this process holds says when it may start. The claim says so to the store, so that a save
        // of the owner before, which waits for its answer, comes too late.
        let claim = checkpoints.claim(key, epoch);
        let kept = match tokio::time::timeout(CHECKPOINT_LIMIT, claim).await {
            Ok(Ok(kept)) => kept,
            Ok(Err(error @ CheckpointError::Unreachable { .. })) => {
                return Err(StartError::NotNow(error.to_string()));
            }
            Ok(Err(error)) => return Err(StartError::Unreadable(error.to_string())),
            Err(_) => return Err(StartError::NotNow(format!("no answer in {CHECKPOINT_LIMIT:?}"))),
        };
        let mut unsound = Vec::new();
        for kept in kept.newest.into_iter().chain(kept.previous) {
            match RegionSnapshot::decode(&kept.state) {
                Ok(snapshot) => return Ok(snapshot),
                Err(error) => {
                    tracing::error!(%error, region = %id, tick = %kept.tick, "a checkpoint is not sound");
                    unsound.push(format!("that of tick {}: {error}", kept.tick));
                }
            }
        }
        match unsound.is_empty() {
            true => Ok(nothing()),
            false => Err(StartError::Unreadable(unsound.join("; "))),
        }
    }
}
