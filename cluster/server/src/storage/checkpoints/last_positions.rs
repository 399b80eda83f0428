//! Players' last places on their way to where they are kept, and back.
//!
//! Sessions tell places; of each player only the newest waits; they are written together, between two times
//! `BATCH` apart, outside of any tick. A store that is away costs memory for one place of each player, up to
//! a bound, beyond which new ones are lost and counted.
//!
//! A session asks for its player's last place before it tells any, and gets a number above all from which one is
//! kept: what an older session tells late replaces nothing, whatever the machines' clocks say. While nobody can
//! answer nobody joins.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use purview::actor::last_positions::{Found, LastPlace, NotFoundNow, Places, Stamp};
use purview::scene::Epoch;
use tokio::sync::Notify;

use super::check_player;
use crate::executor::Home;
use crate::storage::{CheckpointError, Checkpoints, PlayerPlace};

/// Between two batches.
const BATCH: Duration = Duration::from_millis(500);

/// Most players of one batch.
const BATCH_MAX: usize = 2_000;

/// Most players whose places wait.
const WAITING_MAX: usize = 100_000;

/// A client that says hello or joins waits no longer than this for its player's place.
pub const LOAD_LIMIT: Duration = Duration::from_secs(2);

/// What became of places.
#[derive(Debug, Default)]
pub struct PlacesMetrics {
    /// Kept.
    pub saved: AtomicU64,
    /// Not kept, since a newer one is.
    pub fenced: AtomicU64,
    /// Batches that failed: the store is away, or says no.
    pub failed: AtomicU64,
    /// Places that were lost: too many wait, or the player's name cannot be kept.
    pub lost: AtomicU64,
    /// Times that nobody could say in time where a player was: its join was refused.
    pub unknown: AtomicU64,
}

impl PlacesMetrics {
    fn cannot_say(&self, why: String) -> NotFoundNow {
        self.unknown.fetch_add(1, Relaxed);
        purview::log_limited!(warn, why, "a player's last place cannot be asked for");
        NotFoundNow { why }
    }
}

/// The book of last places.
pub struct PlaceBook {
    every: Duration,
    store: Arc<dyn Checkpoints>,
    /// Where the store's client lives.
    home: Home,
    waiting: Mutex<BTreeMap<String, PlayerPlace>>,
    more: Notify,
    metrics: Arc<PlacesMetrics>,
}

impl std::fmt::Debug for PlaceBook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlaceBook").field("metrics", &self.metrics).finish_non_exhaustive()
    }
}

impl Places for PlaceBook {
    fn every(&self) -> Duration {
        self.every
    }

    fn keep(&self, name: &str, place: LastPlace, stamp: Stamp) {
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
        let place = PlayerPlace { name: name.into(), epoch, clock, place: Bytes::from(bytes) };
        waiting.insert(name.into(), place);
        drop(waiting);
        self.more.notify_one();
    }

    fn load(&self, name: &str) -> BoxFuture<'static, Result<Found, NotFoundNow>> {
        // What waits here may be older than what another process has written.
        let waiting = self.waiting().get(name).cloned();
        let (store, metrics, name) = (self.store.clone(), self.metrics.clone(), name.to_owned());
        let load = self.home.spawn(async move {
            let stored = tokio::time::timeout(LOAD_LIMIT, store.load_player(&name)).await;
            let stored = match stored {
                Ok(Ok(stored)) => stored,
                // A name of which no place can be kept.
                Ok(Err(CheckpointError::Illegal { .. })) => None,
                Ok(Err(error)) => return Err(metrics.cannot_say(error.to_string())),
                Err(late) => return Err(metrics.cannot_say(late.to_string())),
            };
            let newest = stored.into_iter().chain(waiting).max_by_key(|p| (p.epoch, p.clock));
            let number = newest.as_ref().map_or(0, |newest| newest.epoch.0) + 1;
            let place = newest.and_then(|newest| read(&name, &newest.place));
            Ok(Found { place, number })
        });
        let ended = |e: tokio::task::JoinError| Err(NotFoundNow { why: e.to_string() });
        load.map(move |loaded| loaded.unwrap_or_else(ended)).boxed()
    }
}

fn read(name: &str, place: &[u8]) -> Option<LastPlace> {
    match serde_json::from_slice(place) {
        Ok(place) => Some(place),
        Err(error) => {
            purview::log_limited!(warn, player = name, %error, "a player's last place is not understood");
            None
        }
    }
}

impl PlaceBook {
    /// A book in which a session tells its player's place every so often, to be kept in `store`.
    pub fn new(every: Duration, store: Arc<dyn Checkpoints>, home: Home) -> PlaceBook {
        let (waiting, more, metrics) = Default::default();
        PlaceBook { every, store, home, waiting, more, metrics }
    }

    /// What became of places.
    pub fn metrics(&self) -> &PlacesMetrics {
        &self.metrics
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<String, PlayerPlace>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self, name: &str) {
        self.metrics.lost.fetch_add(1, Relaxed);
        purview::log_limited!(warn, player = name, "a player's last place is not kept");
    }

    /// Keeps what is told, for as long as it is run.
    pub async fn run(self: Arc<Self>) {
        loop {
            self.more.notified().await;
            while !self.waiting().is_empty() {
                tokio::time::sleep(BATCH).await;
                self.write().await;
            }
        }
    }

    /// Keeps all that waits, as far as the store takes it.
    pub async fn flush(&self) {
        while !self.waiting().is_empty() && self.write().await {}
    }

    /// Writes a batch; false when it is to be tried again.
    async fn write(&self) -> bool {
        let batch: Vec<PlayerPlace> = {
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
                purview::log_limited!(warn, %error, "players' last places wait");
                if matches!(error, CheckpointError::Unreachable { .. }) {
                    let mut waiting = self.waiting();
                    for place in batch {
                        // What has come meanwhile is newer.
                        waiting.entry(place.name.clone()).or_insert(place);
                    }
                    return false;
                }
                self.metrics.lost.fetch_add(count, Relaxed);
                true
            }
        }
    }

    /// Appends its figures in Prometheus' text form.
    pub fn write_metrics(&self, text: &mut String) {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        let m = &self.metrics;
        let families = [
            ("saved_total", "counter", "Last places that were kept.", of(&m.saved)),
            ("fenced_total", "counter", "Last places older than what was kept.", of(&m.fenced)),
            ("failed_total", "counter", "Batches that failed.", of(&m.failed)),
            ("lost_total", "counter", "Last places that were lost.", of(&m.lost)),
            (
                "unknown_total",
                "counter",
                "Players whose place could not be asked for.",
                of(&m.unknown),
            ),
            (
                "waiting",
                "gauge",
                "Last places that wait for their store.",
                self.waiting().len() as u64,
            ),
        ];
        for (name, kind, help, value) in families {
            let name = format!("purview_places_{name}");
            *text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
    }
}
