//! The last positions of players on their way to the store and back.
//!
//! Sessions report positions. Per player only the newest waits; positions are written in batches,
//! one batch every `BATCH` at most, outside of any tick. While the store is unreachable this costs
//! memory for one position per player, up to a bound; beyond it new positions are lost and counted.
//!
//! A session asks for its player's last position before it reports any, and gets a number above
//! every saved one. Therefore a late report of an older session replaces nothing, whatever the
//! clocks of the machines say. While the store cannot answer, joins are refused.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use prometheus_client::encoding::DescriptorEncoder;
use purview::actor::last_positions::{Found, LastPosition, LastPositions, NotFoundNow, Stamp};
use purview::scene::Epoch;
use tokio::sync::Notify;

use super::check_player;
use crate::executor::Executor;
use crate::metrics::{Collector, Families};
use crate::storage::{CheckpointError, Checkpoints, SavedPosition};

/// Time between two batches.
const BATCH: Duration = Duration::from_millis(500);

/// Most players in one batch.
const BATCH_MAX: usize = 2_000;

/// Most players whose positions wait.
const WAITING_MAX: usize = 100_000;

/// A client's hello or join waits at most this long for its player's position.
pub const LOAD_LIMIT: Duration = Duration::from_secs(2);

/// Counters of positions.
#[derive(Debug, Default)]
pub struct LastPositionMetrics {
    /// Positions saved.
    pub saved: AtomicU64,
    /// Positions that were older than the saved one.
    pub fenced: AtomicU64,
    /// Failed batches: the store is unreachable or refuses.
    pub failed: AtomicU64,
    /// Positions lost: too many wait, or the player's name is illegal.
    pub lost: AtomicU64,
    /// Joins refused because the last position could not be loaded in time.
    pub unknown: AtomicU64,
}

impl LastPositionMetrics {
    fn cannot_say(&self, why: String) -> NotFoundNow {
        self.unknown.fetch_add(1, Relaxed);
        purview::log_limited!(warn, why, "a player's last position could not be loaded");
        NotFoundNow { why }
    }
}

/// The queue of last positions.
pub struct LastPositionWriter {
    every: Duration,
    store: Arc<dyn Checkpoints>,
    /// The executor of the store's client.
    executor: Executor,
    waiting: Mutex<BTreeMap<String, SavedPosition>>,
    more: Notify,
    metrics: Arc<LastPositionMetrics>,
}

impl std::fmt::Debug for LastPositionWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LastPositionWriter").field("metrics", &self.metrics).finish_non_exhaustive()
    }
}

impl LastPositions for LastPositionWriter {
    fn every(&self) -> Duration {
        self.every
    }

    fn keep(&self, name: &str, place: LastPosition, stamp: Stamp) {
        let Ok(bytes) = serde_json::to_vec(&place) else { return self.lose(name) };
        let mut waiting = self.waiting();
        let newest = waiting.get(name).map(|place| (place.epoch.0, place.clock));
        if newest.is_some_and(|newest| newest > (stamp.number, stamp.clock_ms)) {
            self.metrics.fenced.fetch_add(1, Relaxed);
            return;
        }
        if check_player(name).is_err() || (waiting.len() >= WAITING_MAX && newest.is_none()) {
            drop(waiting);
            return self.lose(name);
        }
        let (epoch, clock) = (Epoch(stamp.number), stamp.clock_ms);
        let place = SavedPosition { name: name.into(), epoch, clock, place: Bytes::from(bytes) };
        waiting.insert(name.into(), place);
        drop(waiting);
        self.more.notify_one();
    }

    fn load(&self, name: &str) -> BoxFuture<'static, Result<Found, NotFoundNow>> {
        // A position that waits here may be older than one that another process has saved.
        let waiting = self.waiting().get(name).cloned();
        let (store, metrics, name) = (self.store.clone(), self.metrics.clone(), name.to_owned());
        let load = self.executor.spawn(async move {
            let stored = tokio::time::timeout(LOAD_LIMIT, store.load_player(&name)).await;
            let stored = match stored {
                Ok(Ok(stored)) => stored,
                // The store holds no position under an illegal name.
                Ok(Err(CheckpointError::Illegal { .. })) => None,
                Ok(Err(error)) => return Err(metrics.cannot_say(error.to_string())),
                Err(late) => return Err(metrics.cannot_say(late.to_string())),
            };
            let newest = stored.into_iter().chain(waiting).max_by_key(|p| (p.epoch, p.clock));
            let number = newest.as_ref().map_or(0, |newest| newest.epoch.0) + 1;
            let left_ms = newest.as_ref().map_or(0, |newest| newest.clock);
            let place = newest.and_then(|newest| read(&name, &newest.place));
            Ok(Found { place, left_ms, number })
        });
        let ended = |e: tokio::task::JoinError| Err(NotFoundNow { why: e.to_string() });
        load.map(move |loaded| loaded.unwrap_or_else(ended)).boxed()
    }
}

fn read(name: &str, place: &[u8]) -> Option<LastPosition> {
    match serde_json::from_slice(place) {
        Ok(place) => Some(place),
        Err(error) => {
            purview::log_limited!(warn, player = name, %error, "a player's last position cannot be decoded");
            None
        }
    }
}

impl LastPositionWriter {
    /// A queue to which each session reports its player's position every `every`; positions are
    /// saved in `store`.
    pub fn new(
        every: Duration,
        store: Arc<dyn Checkpoints>,
        executor: Executor,
    ) -> LastPositionWriter {
        let (waiting, more, metrics) = Default::default();
        LastPositionWriter { every, store, executor, waiting, more, metrics }
    }

    /// The counters.
    pub fn metrics(&self) -> &LastPositionMetrics {
        &self.metrics
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<String, SavedPosition>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self, name: &str) {
        self.metrics.lost.fetch_add(1, Relaxed);
        purview::log_limited!(warn, player = name, "a player's last position was lost");
    }

    /// Saves reported positions until dropped.
    pub async fn run(self: Arc<Self>) {
        loop {
            self.more.notified().await;
            while !self.waiting().is_empty() {
                tokio::time::sleep(BATCH).await;
                self.write().await;
            }
        }
    }

    /// Saves all waiting positions, unless the store fails.
    pub async fn flush(&self) {
        while !self.waiting().is_empty() && self.write().await {}
    }

    /// Writes a batch; false when it must be repeated.
    async fn write(&self) -> bool {
        let batch: Vec<SavedPosition> = {
            let mut waiting = self.waiting();
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
                purview::log_limited!(warn, %error, "players' last positions could not be saved and wait");
                if matches!(error, CheckpointError::Unreachable { .. }) {
                    let mut waiting = self.waiting();
                    for place in batch {
                        // A position that was reported meanwhile is newer.
                        waiting.entry(place.name.clone()).or_insert(place);
                    }
                    return false;
                }
                self.metrics.lost.fetch_add(count, Relaxed);
                true
            }
        }
    }
}

impl Collector for LastPositionWriter {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let m = &self.metrics;
        let counters = [
            ("purview_last_positions_saved", "Last positions saved.", &m.saved),
            (
                "purview_last_positions_fenced",
                "Last positions older than the saved one.",
                &m.fenced,
            ),
            ("purview_last_positions_failed", "Failed batches.", &m.failed),
            ("purview_last_positions_lost", "Last positions lost.", &m.lost),
            (
                "purview_last_positions_unknown",
                "Joins refused because the last position could not be loaded.",
                &m.unknown,
            ),
        ];
        let waiting = self.waiting().len() as u64;
        let mut out = Families::from(encoder);
        for (name, help, value) in counters {
            out.counter(name, help, value.load(Relaxed))?;
        }
        out.gauge("purview_last_positions_waiting", "Last positions waiting to be saved.", waiting)
    }
}
