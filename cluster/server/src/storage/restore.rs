//! Restores a single-process server from the file in `server.data_dir`, and keeps its checkpoints
//! and last positions there. The process calls it at the start and at shutdown.
//!
//! A new process continues the work of the previous one. Three things keep the two apart: each
//! process has a number of its own, with which its entity ids and session numbers begin; the epochs
//! of its regions are above all saved ones; and its clock begins at the last saved tick, so that
//! nothing has moved, ended or expired meanwhile.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use purview::actor::directory::{CheckpointWriter, Directory, Process};
use purview::actor::region::migration::depart::Depart;
use purview::actor::region::{Clock, RegionRef, start_regions_as};
use purview::scene::layout::RegionEntry;
use purview::scene::messages::Effect;
use purview::scene::region::{Recovery, RegionSnapshot, RestoreError};
use purview::scene::{Epoch, Region, RegionId, Scene};
use purview::wire::SnapshotError;

use super::checkpoints::player_records::{PlayerRecords, RecordRules};
use super::checkpoints::redb::Redb;
use super::checkpoints::writer::CheckpointQueue;
use super::{CheckpointError, Checkpoints, ClusterId, RegionKey, Snapshot, Whole};
use crate::metrics::Collector;

/// The shortest grace period of a restored player, in milliseconds.
const GRACE_MS: u32 = 10_000;

/// How long a region's last tick may take at shutdown.
const LAST_TICK: Duration = Duration::from_secs(1);

/// Why a server cannot continue from the saved state. Nothing in the file has changed.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The file cannot be opened, read or written.
    #[error(transparent)]
    Store(#[from] CheckpointError),
    /// Neither the newest checkpoint of a region nor the previous one is readable.
    #[error(
        "region {region}: its checkpoint cannot be read: {newest}, nor the one before it: {previous}; \
         restore server.data_dir from a copy, or set the region's checkpoints aside and start it empty: \
         `purview ctl region R{} empty --data-dir DIR`",
        .region.region
    )]
    Unsound {
        /// The region.
        region: RegionKey,
        /// The error of the newest one.
        newest: SnapshotError,
        /// The error of the previous one, or that there is none.
        previous: String,
    },
    /// The configuration has no such region.
    #[error(
        "server.data_dir holds region {0}, but the configuration has no such region; restore its scene's name, position and regions, \
         or start with an empty server.data_dir"
    )]
    Unknown(RegionKey),
    /// A checkpoint does not fit the scene.
    #[error("region {region}: {source}")]
    Unfit {
        /// The region.
        region: RegionKey,
        /// Why.
        source: RestoreError,
    },
    /// The folder was used by the maximum number of processes.
    #[error(
        "server.data_dir was used by {0} processes, which is the maximum; start with an empty folder"
    )]
    Runs(u64),
}

/// Most processes of one folder; entity ids have room for so many.
const MAX_RUNS: u64 = (1 << 21) - 1;

/// The stores of a single-process server.
pub struct Persistence {
    store: Arc<Redb>,
    checkpoint_queue: Arc<CheckpointQueue>,
    players: PlayerRecords,
    regions: HashMap<RegionId, RegionKey>,
    cluster: ClusterId,
}

impl std::fmt::Debug for Persistence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Persistence").field("regions", &self.regions.len()).finish_non_exhaustive()
    }
}

/// The regions of a server before they run.
type Beginnings = HashMap<RegionId, (Region, Vec<Effect>)>;

/// The initial state of regions.
pub struct Start {
    beginnings: Beginnings,
    /// What the directory needs to know.
    pub process: Process,
}

impl Start {
    /// Starts every region.
    pub fn run(
        mut self,
        directory: &Arc<Directory>,
        arbiters: &[actix::ArbiterHandle],
    ) -> Vec<RegionRef> {
        start_regions_as(directory, arbiters, Clock::Real, |_, id| self.beginnings.remove(&id))
    }
}

impl Persistence {
    /// Opens or creates `data_dir` and prepares the regions of `scenes`: empty, or from their
    /// checkpoints. A folder without an id gets the `fresh` one. Call it on a runtime that lives as long as the
    /// server.
    ///
    /// # Errors
    /// [`DataError`]; nothing in the file has changed.
    pub async fn open(
        (data_dir, fresh): (&Path, ClusterId),
        scenes: &[Arc<Scene>],
        rules: RecordRules,
        grace_period: Duration,
    ) -> Result<(Persistence, Start), DataError> {
        let every = rules.every;
        let store = Arc::new(Redb::open(data_dir)?);
        let regions = names_of(scenes);
        let kept = load(&store, &regions).await?;
        let above = store.highest_epoch().await?;
        let clock = kept.values().map(|(_, s)| end_of(s, scenes)).max().unwrap_or_default();
        let beginnings = begin(kept, scenes, above, grace_period)?;
        let (cluster, number) = (store.cluster_id(fresh).await?, store.count_run()?);
        if number >= MAX_RUNS {
            return Err(DataError::Runs(number));
        }
        let tick_ms = scenes.first().map_or(100, |scene| scene.tick_ms);
        let ticks = every.as_millis().div_ceil(u128::from(tick_ms.max(1))) as u64;
        let checkpoint_queue =
            Arc::new(CheckpointQueue::new(ticks, Duration::from_millis(tick_ms.into())));
        let checkpoint_writer = Some(checkpoint_queue.clone() as Arc<dyn CheckpointWriter>);
        let process = Process { number, clock, fence: None, checkpoint_writer };
        let executor = tokio::runtime::Handle::current().into();
        let players = PlayerRecords::new(rules, store.clone(), executor);
        let persistence = Persistence { store, checkpoint_queue, players, regions, cluster };
        Ok((persistence, Start { beginnings, process }))
    }

    /// Saves checkpoints and last positions until the runtime ends.
    pub fn keep(&self) {
        let names = self.regions.clone();
        let key = move |id| names.get(&id).cloned();
        tokio::spawn(self.checkpoint_queue.clone().run(self.store.clone(), key));
        tokio::spawn(self.players.clone().run());
    }

    /// Which cluster this is.
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// The players' records.
    pub fn players(&self) -> &PlayerRecords {
        &self.players
    }

    /// The metrics of the checkpoint queue and of players' records.
    pub fn collectors(&self) -> [Box<dyn Collector>; 2] {
        [Box::new(self.checkpoint_queue.clone()), Box::new(self.players.clone())]
    }

    /// Shutdown: ends every region, then saves its last state and the players' last positions.
    pub async fn end(&self, regions: &[RegionRef]) {
        let ended = regions.iter().map(async |region| {
            let (depart, departing) = Depart::new(None);
            region.addr.do_send(depart);
            let departure = departing.unless(tokio::time::sleep(LAST_TICK)).await;
            let Some(last) = departure.and_then(|departure| departure.checkpoint) else {
                return tracing::warn!(region = %region.region, "the region's last tick did not end in time");
            };
            if let Err(why) = self.keep_last(&last).await {
                tracing::warn!(%why, region = %region.region, "the region's last checkpoint could not be saved");
            }
        });
        futures::future::join_all(ended).await;
        self.players.flush().await;
    }

    async fn keep_last(&self, last: &RegionSnapshot) -> anyhow::Result<()> {
        let Some(key) = self.regions.get(&last.region()) else { return Ok(()) };
        let bytes = last.encode()?;
        self.store.save(key, last.epoch(), last.tick(), bytes.into()).await?;
        Ok(())
    }
}

/// The names of regions in the store.
fn names_of(scenes: &[Arc<Scene>]) -> HashMap<RegionId, RegionKey> {
    let of_scene = |scene: &Arc<Scene>| {
        let name = scene.spec.name.clone();
        let key = move |id: RegionId| RegionKey { scene: name.clone(), region: id.0, planes: 0 };
        scene.map.regions.iter().map(|entry| (entry.id, key(entry.id))).collect::<Vec<_>>()
    };
    scenes.iter().flat_map(of_scene).collect()
}

/// The checkpoint to use for each region.
type Loaded = HashMap<RegionId, (RegionKey, RegionSnapshot)>;

async fn load(store: &Redb, regions: &HashMap<RegionId, RegionKey>) -> Result<Loaded, DataError> {
    let mut all = HashMap::new();
    for key in store.regions().await? {
        let id = RegionId(key.region);
        if regions.get(&id) != Some(&key) {
            return Err(DataError::Unknown(key));
        }
        let kept = store.load(&key).await?;
        let Some(newest) = kept.newest else { continue };
        let snapshot = match RegionSnapshot::decode(&newest.state) {
            Ok(snapshot) => snapshot,
            Err(error) => before(&key, error, kept.previous)?,
        };
        all.insert(id, (key, snapshot));
    }
    Ok(all)
}

/// The checkpoint before a damaged one.
fn before(
    key: &RegionKey,
    newest: SnapshotError,
    previous: Option<Snapshot>,
) -> Result<RegionSnapshot, DataError> {
    let read = |kept: Snapshot| RegionSnapshot::decode(&kept.state).map_err(|e| e.to_string());
    match previous.ok_or_else(|| "there is none".to_owned()).and_then(read) {
        Ok(before) => {
            tracing::error!(region = %key, error = %newest, tick = %before.tick(), "a checkpoint is damaged; using the previous one");
            Ok(before)
        }
        Err(previous) => Err(DataError::Unsound { region: key.clone(), newest, previous }),
    }
}

/// When the tick after the snapshot begins.
fn end_of(snapshot: &RegionSnapshot, scenes: &[Arc<Scene>]) -> Duration {
    let scene = scenes.iter().find(|scene| scene.id == snapshot.scene());
    let tick_ms = scene.map_or(100, |scene| scene.tick_ms);
    Duration::from_millis(snapshot.tick().next().0.saturating_mul(tick_ms.into()))
}

/// Prepares every region: from its checkpoint, or empty.
fn begin(
    mut kept: Loaded,
    scenes: &[Arc<Scene>],
    above: Epoch,
    grace_period: Duration,
) -> Result<Beginnings, DataError> {
    let of_scene = |scene| move |entry: &RegionEntry| (scene, entry.id);
    let all: Vec<(&Arc<Scene>, RegionId)> =
        scenes.iter().flat_map(|scene| scene.map.regions.iter().map(of_scene(scene))).collect();
    let ask: Vec<RegionId> = all.iter().map(|(_, id)| *id).collect();
    let grace_period_ms = u32::try_from(grace_period.as_millis()).unwrap_or(u32::MAX);
    let mut beginnings = HashMap::new();
    for (nth, (scene, id)) in all.into_iter().enumerate() {
        let epoch = Epoch(above.0 + 1 + nth as u64);
        let mut fx = Vec::new();
        let region = match kept.remove(&id) {
            None => Region::new(scene.clone(), id).map(|region| region.with_epoch(epoch)),
            Some((region, snapshot)) => {
                let grace_ms = GRACE_MS.max(grace_period_ms);
                let grace_ticks = u64::from(grace_ms / scene.tick_ms.max(1)).max(1);
                let how = Recovery { ask: ask.clone(), grace_ticks, owners: Vec::new() };
                let begun = Region::recover(scene.clone(), id, epoch, snapshot, how, &mut fx);
                Some(begun.map_err(|source| DataError::Unfit { region, source })?)
            }
        };
        beginnings.extend(region.map(|region| (id, (region, fx))));
    }
    Ok(beginnings)
}
