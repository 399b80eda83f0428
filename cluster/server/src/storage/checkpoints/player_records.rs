//! Players' records on their way to the store and back: the server's [`PlayerStore`].
//!
//! Sessions report positions. Per player only the newest waits; positions are written in batches,
//! one batch every `BATCH` at most, outside of any tick. While the store is unreachable this costs
//! memory for one position per player, up to a bound; beyond it new positions are lost and counted.
//!
//! A claim goes to the store at once. It raises the record's number, so that a late report of an
//! older session replaces nothing, whatever the clocks of the machines say. While the store does
//! not answer, a claim is tried again for `wait`, and then the join is refused.
//!
//! The last state of a player that leaves is tried until it is saved, or until the record is found
//! to be another entity's: nothing that was read before may be written over it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use prometheus_client::encoding::DescriptorEncoder;
use purview::actor::directory::Fence;
use purview::actor::player_store::{
    ClaimOver, Claimed, LastPosition, LastState, NotClaimed, PlayerStore, Stamp, StoreAway,
    StoredPlayer,
};
use purview::scene::{EntityId, Epoch};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use super::{PlayerClaim, PlayerClaimed, check_player};
use crate::executor::Executor;
use crate::metrics::{Collector, Families};
use crate::storage::{CheckpointError, Checkpoints, SavedPlayer};

const BATCH: Duration = Duration::from_millis(500);

const BATCH_MAX: usize = 2_000;

/// Most players whose positions wait.
const WAITING_MAX: usize = 100_000;

const REQUEST_LIMIT: Duration = Duration::from_secs(2);

/// Time between two attempts of a request that the store did not answer.
const AGAIN: Duration = Duration::from_millis(500);

/// Last states that are saved at a time.
const AT_ONCE: usize = 16;

/// How long a join waits for the store by default.
pub const STORE_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub struct PlayerRecordMetrics {
    pub saved: AtomicU64,
    /// Positions that were older than the saved one.
    pub fenced: AtomicU64,
    /// Failed batches: the store is unreachable or refuses.
    pub failed: AtomicU64,
    /// Positions lost: too many wait, or the player's name is illegal.
    pub lost: AtomicU64,
    /// Joins refused because the record could not be claimed in time.
    pub unknown: AtomicU64,
    /// Claims of records that another entity held.
    pub held: AtomicU64,
    pub ended: AtomicU64,
}

impl PlayerRecordMetrics {
    fn cannot_say(&self, why: String) -> StoreAway {
        self.unknown.fetch_add(1, Relaxed);
        purview::log_limited!(warn, why, "a player's record could not be read");
        StoreAway { why }
    }
}

#[derive(Clone)]
pub struct RecordRules {
    /// Time between two reports of a session.
    pub every: Duration,
    /// How long a join waits for the store.
    pub wait: Duration,
    /// Whether a subject has one player at a time.
    pub exclusive: bool,
    /// Whether this process may act; `None`: always.
    pub fence: Option<Arc<dyn Fence>>,
}

impl Default for RecordRules {
    fn default() -> Self {
        let (every, wait) = (Duration::from_secs(1), STORE_WAIT);
        RecordRules { every, wait, exclusive: true, fence: None }
    }
}

/// Keeps players' records in a checkpoint store. Clones share the queue.
#[derive(Clone)]
pub struct PlayerRecords(Arc<Inner>);

struct Inner {
    rules: RecordRules,
    store: Arc<dyn Checkpoints>,
    executor: Executor,
    waiting: Mutex<BTreeMap<String, SavedPlayer>>,
    more: Notify,
    ending: Semaphore,
    metrics: PlayerRecordMetrics,
}

impl std::fmt::Debug for PlayerRecords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlayerRecords").field("metrics", &self.0.metrics).finish_non_exhaustive()
    }
}

impl PlayerStore for PlayerRecords {
    fn every(&self) -> Duration {
        self.0.rules.every
    }

    fn read(&self, name: &str) -> BoxFuture<'static, Result<Option<StoredPlayer>, StoreAway>> {
        let (inner, name) = (self.0.clone(), name.to_owned());
        self.on_executor(async move {
            let read = || async { inner.store.load_player(&name).await.map(Some) };
            match inner.ask(read).await {
                Ok(found) => Ok(found.flatten().and_then(|found| decode(&found))),
                Err(away) => Err(away),
            }
        })
    }

    fn claim(
        &self,
        name: &str,
        entity: EntityId,
        over: ClaimOver,
    ) -> BoxFuture<'static, Result<Claimed, NotClaimed>> {
        let (inner, name) = (self.0.clone(), name.to_owned());
        let over = if inner.rules.exclusive { over } else { ClaimOver::Anybody };
        self.on_executor(async move {
            let claim = PlayerClaim { entity, over };
            let claim = || async { inner.store.claim_player(&name, claim).await.map(Some) };
            match inner.ask(claim).await? {
                Some(PlayerClaimed::Yes(record)) => {
                    Ok(Claimed { kept: decode(&record), number: record.epoch.0 })
                }
                Some(PlayerClaimed::No(record)) => {
                    inner.metrics.held.fetch_add(1, Relaxed);
                    Err(NotClaimed::Held(record.holder))
                }
                // The store has no record under an illegal name.
                None => Ok(Claimed::default()),
            }
        })
    }

    fn keep(&self, name: &str, entity: EntityId, place: LastPosition, stamp: Stamp) {
        self.0.keep(name, entity, place, stamp);
    }

    fn ended(&self, entity: EntityId, last: Option<LastState>) -> BoxFuture<'static, ()> {
        let inner = self.0.clone();
        let saved = self.0.executor.spawn(async move { inner.end(entity, last).await });
        saved.map(drop).boxed()
    }
}

impl PlayerRecords {
    pub fn new(
        rules: RecordRules,
        store: Arc<dyn Checkpoints>,
        executor: Executor,
    ) -> PlayerRecords {
        let (waiting, more, metrics) = Default::default();
        let ending = Semaphore::new(AT_ONCE);
        PlayerRecords(Arc::new(Inner { rules, store, executor, waiting, more, ending, metrics }))
    }

    pub fn metrics(&self) -> &PlayerRecordMetrics {
        &self.0.metrics
    }

    /// Answers from where the client of the store runs.
    fn on_executor<T: Send + 'static, E: From<StoreAway> + Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, E>> {
        let asked = self.0.executor.spawn(work);
        let ended = |e: tokio::task::JoinError| Err(StoreAway { why: e.to_string() }.into());
        asked.map(move |answer| answer.unwrap_or_else(ended)).boxed()
    }

    /// Saves reported positions until dropped.
    pub async fn run(self) {
        loop {
            self.0.more.notified().await;
            while !self.0.waiting.lock().is_empty() {
                sleep(BATCH).await;
                self.0.write().await;
            }
        }
    }

    /// Saves all waiting positions, unless the store fails.
    pub async fn flush(&self) {
        while !self.0.waiting.lock().is_empty() && self.0.write().await {}
    }
}

#[derive(Serialize, Deserialize)]
struct Stored {
    place: LastPosition,
    clock_ms: u64,
}

fn encode(place: LastPosition, clock_ms: u64) -> Result<Bytes, serde_json::Error> {
    serde_json::to_vec(&Stored { place, clock_ms }).map(Bytes::from)
}

/// What a record keeps; `None`: nothing was kept yet.
fn decode(record: &SavedPlayer) -> Option<StoredPlayer> {
    if record.place.is_empty() {
        return None;
    }
    match serde_json::from_slice(&record.place) {
        Ok(Stored { place, clock_ms }) => Some(StoredPlayer { place, clock_ms }),
        Err(error) => {
            purview::log_limited!(warn, player = record.name, %error, "a player's record cannot be decoded");
            None
        }
    }
}

/// What is to be saved of a player that has left, whose record is this.
fn last_record(record: SavedPlayer, last: Option<&LastState>) -> SavedPlayer {
    let free = SavedPlayer { holder: None, ..record };
    // A session may have reported a later state than the checkpoint from which the region goes on.
    let Some(last) = last.filter(|last| last.clock_ms >= free.clock) else { return free };
    let before = decode(&free).map(|kept| kept.place);
    let Some(place) = last.clone().after(before) else { return free };
    match encode(place, last.clock_ms) {
        Ok(place) => SavedPlayer { clock: last.clock_ms, place, ..free },
        Err(error) => {
            purview::log_limited!(error, %error, "a player's last state cannot be encoded");
            free
        }
    }
}

impl Inner {
    /// Asks the store, again and again for as long as a join waits. `None`: the name is illegal.
    async fn ask<T, F: Future<Output = Result<Option<T>, CheckpointError>>>(
        &self,
        request: impl Fn() -> F,
    ) -> Result<Option<T>, StoreAway> {
        let until = Instant::now() + self.rules.wait;
        loop {
            let why = match timeout(REQUEST_LIMIT, request()).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(CheckpointError::Illegal { .. })) => return Ok(None),
                Ok(Err(error)) => error.to_string(),
                Err(late) => late.to_string(),
            };
            if Instant::now() + AGAIN > until {
                return Err(self.metrics.cannot_say(why));
            }
            sleep(AGAIN).await;
        }
    }

    fn keep(&self, name: &str, entity: EntityId, place: LastPosition, stamp: Stamp) {
        let Ok(place) = encode(place, stamp.clock_ms) else { return self.lose(name) };
        let player = SavedPlayer {
            name: name.into(),
            epoch: Epoch(stamp.number),
            clock: stamp.clock_ms,
            holder: Some(entity),
            place,
        };
        let mut waiting = self.waiting.lock();
        let newest = waiting.get(name).map(SavedPlayer::age);
        if newest.is_some_and(|newest| newest > player.age()) {
            self.metrics.fenced.fetch_add(1, Relaxed);
            return;
        }
        if check_player(name).is_err() || (waiting.len() >= WAITING_MAX && newest.is_none()) {
            drop(waiting);
            return self.lose(name);
        }
        waiting.insert(name.into(), player);
        drop(waiting);
        self.more.notify_one();
    }

    fn lose(&self, name: &str) {
        self.metrics.lost.fetch_add(1, Relaxed);
        purview::log_limited!(warn, player = name, "a player's record was lost");
    }

    /// Saves the last state of a player that has left, and frees its record.
    async fn end(&self, entity: EntityId, last: Option<LastState>) {
        let Ok(_permit) = self.ending.acquire().await else { return };
        loop {
            match timeout(REQUEST_LIMIT, self.try_to_end(entity, last.as_ref())).await {
                Ok(Ok(true)) => break,
                // Another claim of the same entity came between.
                Ok(Ok(false)) => continue,
                Ok(Err(error)) => {
                    self.metrics.failed.fetch_add(1, Relaxed);
                    purview::log_limited!(warn, %entity, %error, "a player's last state could not be saved and waits");
                }
                Err(_late) => _ = self.metrics.failed.fetch_add(1, Relaxed),
            }
            sleep(AGAIN).await;
        }
    }

    /// False: to be tried again at once.
    async fn try_to_end(
        &self,
        entity: EntityId,
        last: Option<&LastState>,
    ) -> Result<bool, CheckpointError> {
        let Some(record) = self.store.player_held_by(entity).await? else { return Ok(true) };
        // The next owner of a region that this process has lost may know the player to live.
        if self.rules.fence.as_ref().is_some_and(|fence| !fence.may_act()) {
            sleep(AGAIN).await;
            return Ok(false);
        }
        let saved = self.store.save_players(vec![last_record(record, last)]).await?;
        self.metrics.ended.fetch_add(saved.kept as u64, Relaxed);
        Ok(saved.kept > 0)
    }

    /// Writes a batch; false when it must be repeated.
    async fn write(&self) -> bool {
        let batch: Vec<SavedPlayer> = {
            let mut waiting = self.waiting.lock();
            let rest = match waiting.keys().nth(BATCH_MAX).cloned() {
                Some(first) => waiting.split_off(&first),
                None => BTreeMap::new(),
            };
            std::mem::replace(&mut *waiting, rest).into_values().collect()
        };
        let count = batch.len() as u64;
        match self.store.save_players(batch.clone()).await {
            Ok(saved) => {
                self.metrics.saved.fetch_add(saved.kept as u64, Relaxed);
                self.metrics.fenced.fetch_add(saved.fenced as u64, Relaxed);
                true
            }
            Err(error) => {
                self.metrics.failed.fetch_add(1, Relaxed);
                purview::log_limited!(warn, %error, "players' records could not be saved and wait");
                if matches!(error, CheckpointError::Unreachable { .. }) {
                    let mut waiting = self.waiting.lock();
                    for player in batch {
                        // A position that was reported meanwhile is newer.
                        waiting.entry(player.name.clone()).or_insert(player);
                    }
                    return false;
                }
                self.metrics.lost.fetch_add(count, Relaxed);
                true
            }
        }
    }
}

impl Collector for PlayerRecords {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let m = &self.0.metrics;
        let counters = [
            ("saved", "Players' records saved.", &m.saved),
            ("fenced", "Players' records older than the saved one.", &m.fenced),
            ("failed", "Failed batches.", &m.failed),
            ("held", "Claims of records that another entity held.", &m.held),
            ("ended", "Last states of players that were saved.", &m.ended),
            ("lost", "Players' records lost.", &m.lost),
            (
                "unknown",
                "Joins refused because the player's record could not be claimed in time.",
                &m.unknown,
            ),
        ];
        let waiting = self.0.waiting.lock().len() as u64;
        let mut out = Families::from(encoder);
        out.counters_of("purview_player_records", &counters)?;
        let help = "Players' records waiting to be saved.";
        out.gauge("purview_player_records_waiting", help, waiting)
    }
}
