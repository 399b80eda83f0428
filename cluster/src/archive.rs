//! Checkpoints on their way to where they are kept: encoded and written outside of any tick. Of each
//! region only the newest waits, so a store that is away costs memory for one of each, and ticks go on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use purview::actor::directory::Archive;
use purview::scene::RegionId;
use purview::scene::region::RegionSnapshot;
use tokio::sync::Notify;

use crate::engine::{CheckpointError, Checkpoints, RegionKey, Saved};

/// Time between two tries while the store is away.
const AGAIN: Duration = Duration::from_millis(500);

/// What became of checkpoints.
#[derive(Debug, Default)]
pub struct ArchiveMetrics {
    /// Kept.
    pub saved: AtomicU64,
    /// Bytes of these.
    pub bytes: AtomicU64,
    /// Not kept, since a newer owner's is.
    pub fenced: AtomicU64,
    /// Tries that failed: the store is away, or says no.
    pub failed: AtomicU64,
}

/// Checkpoints that wait.
#[derive(Debug)]
pub struct Shelf {
    every_ticks: u64,
    waiting: Mutex<BTreeMap<RegionId, RegionSnapshot>>,
    more: Notify,
    metrics: ArchiveMetrics,
}

impl Archive for Shelf {
    fn every_ticks(&self) -> u64 {
        self.every_ticks
    }

    fn keep(&self, snapshot: RegionSnapshot) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(snapshot.region(), snapshot);
        drop(waiting);
        self.more.notify_one();
    }
}

impl Shelf {
    /// A shelf to which each region brings a checkpoint every so many ticks.
    pub(crate) fn new(every_ticks: u64) -> Shelf {
        let (waiting, more, metrics) = Default::default();
        Shelf { every_ticks: every_ticks.max(1), waiting, more, metrics }
    }

    fn next(&self) -> Option<RegionSnapshot> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.pop_first().map(|(_, snapshot)| snapshot)
    }

    /// Puts one back, unless a newer one is there by now.
    fn put_back(&self, snapshot: RegionSnapshot) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.entry(snapshot.region()).or_insert(snapshot);
    }

    /// Checkpoints that wait.
    fn waiting(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Keeps what is brought, for as long as it is run. `key` names regions.
    pub(crate) async fn run(
        self: Arc<Self>,
        store: Arc<dyn Checkpoints>,
        key: impl Fn(RegionId) -> Option<RegionKey> + Send,
    ) {
        loop {
            let Some(snapshot) = self.next() else {
                self.more.notified().await;
                continue;
            };
            let Some(key) = key(snapshot.region()) else { continue };
            match snapshot.encode() {
                Ok(bytes) => {
                    let (epoch, tick) = (snapshot.epoch(), snapshot.tick());
                    let saved = store.save(&key, epoch, tick, Bytes::from(bytes.clone())).await;
                    if !self.note(&key, saved, bytes.len()) {
                        self.put_back(snapshot);
                        tokio::time::sleep(AGAIN).await;
                    }
                }
                Err(error) => {
                    self.metrics.failed.fetch_add(1, Relaxed);
                    purview::log_limited!(error, %error, region = %key, "a checkpoint cannot be written");
                }
            }
        }
    }

    /// False when it is to be tried again.
    fn note(&self, key: &RegionKey, saved: Result<Saved, CheckpointError>, bytes: usize) -> bool {
        let metrics = &self.metrics;
        match saved {
            Ok(Saved::Ok) => {
                metrics.saved.fetch_add(1, Relaxed);
                metrics.bytes.fetch_add(bytes as u64, Relaxed);
                true
            }
            Ok(Saved::Fenced { by, .. }) => {
                metrics.fenced.fetch_add(1, Relaxed);
                purview::log_limited!(warn, region = %key, %by, "a checkpoint of a former owner was not kept");
                true
            }
            Err(error) => {
                metrics.failed.fetch_add(1, Relaxed);
                purview::log_limited!(warn, %error, region = %key, "a checkpoint waits");
                !matches!(error, CheckpointError::Unreachable { .. })
            }
        }
    }

    /// Appends its figures in Prometheus' text form.
    pub(crate) fn write_metrics(&self, text: &mut String) {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        let families = [
            ("saved_total", "counter", "Checkpoints that were kept.", of(&self.metrics.saved)),
            ("bytes_total", "counter", "Bytes of these.", of(&self.metrics.bytes)),
            ("fenced_total", "counter", "Checkpoints of former owners.", of(&self.metrics.fenced)),
            ("failed_total", "counter", "Tries that failed.", of(&self.metrics.failed)),
            ("waiting", "gauge", "Checkpoints that wait for their store.", self.waiting() as u64),
        ];
        for (name, kind, help, value) in families {
            let name = format!("purview_checkpoints_{name}");
            *text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
    }
}
