//! The checkpoint queue: encodes and saves checkpoints outside of any tick. Per region only the
//! newest checkpoint waits, so an unreachable store costs memory for one per region, and ticks go
//! on. A few are saved at the same time, first the region whose last saved checkpoint is the
//! oldest.

mod queue;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use prometheus_client::encoding::DescriptorEncoder;
use purview::actor::directory::CheckpointWriter;
use purview::clock;
use purview::scene::region::{ESCROW_TICKS, RegionSnapshot};
use purview::scene::{Epoch, RegionId, Tick};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::metrics::{Collector, Families};
use crate::storage::{CheckpointError, Checkpoints, RegionKey, Saved};

use queue::{Brought, Queue};

/// Time between two attempts while the store is unreachable.
const AGAIN: Duration = Duration::from_millis(500);

pub(crate) const SAVES_AT_ONCE: usize = 4;

/// Time between two warnings about overdue checkpoints.
const WARN_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub struct CheckpointMetrics {
    pub saved: AtomicU64,
    pub bytes: AtomicU64,
    /// Checkpoints refused because a newer owner saved one.
    pub fenced: AtomicU64,
    /// Failed attempts: the store is unreachable or refuses.
    pub failed: AtomicU64,
}

#[derive(Debug)]
pub struct CheckpointQueue {
    every_ticks: u64,
    /// An older checkpoint is overdue; recovery assumes that none is.
    limit: Duration,
    queue: Mutex<Queue<RegionSnapshot>>,
    warned: Mutex<Option<Instant>>,
    more: Notify,
    metrics: CheckpointMetrics,
}

impl CheckpointWriter for CheckpointQueue {
    fn every_ticks(&self) -> u64 {
        self.every_ticks
    }

    fn begin(&self, region: RegionId, epoch: Epoch, durable: Option<Tick>) {
        self.queue.lock().begin(region, epoch, (durable, clock::now()));
    }

    fn keep(&self, snapshot: RegionSnapshot) {
        let (epoch, tick, at) = (snapshot.epoch(), snapshot.tick(), clock::now());
        self.queue.lock().bring(snapshot.region(), Brought { epoch, tick, at, item: snapshot });
        self.more.notify_one();
        self.warn_if_overdue(at);
    }

    fn oldest(&self) -> Option<Tick> {
        self.queue.lock().oldest()
    }

    fn forget(&self, region: RegionId, epoch: Epoch) {
        self.queue.lock().forget(region, epoch);
    }
}

impl CheckpointQueue {
    /// A queue for regions that make a checkpoint every `every_ticks` ticks of length `tick`.
    pub(crate) fn new(every_ticks: u64, tick: Duration) -> CheckpointQueue {
        CheckpointQueue {
            every_ticks: every_ticks.max(1),
            limit: tick * ESCROW_TICKS as u32,
            queue: Mutex::default(),
            warned: Mutex::default(),
            more: Notify::new(),
            metrics: CheckpointMetrics::default(),
        }
    }

    /// Saves queued checkpoints until dropped. `key` maps a region to its name in the store.
    pub(crate) async fn run(
        self: Arc<Self>,
        store: Arc<dyn Checkpoints>,
        key: impl Fn(RegionId) -> Option<RegionKey> + Send + Sync,
    ) {
        let savers = (0..SAVES_AT_ONCE).map(|_| self.save_all(&*store, &key));
        futures::future::join_all(savers).await;
    }

    async fn save_all(
        &self,
        store: &dyn Checkpoints,
        key: &(impl Fn(RegionId) -> Option<RegionKey> + Send + Sync),
    ) {
        loop {
            let next = self.queue.lock().next();
            let Some((region, brought)) = next else {
                self.more.notified().await;
                continue;
            };
            match key(region) {
                Some(key) => self.save(store, (region, key), brought).await,
                None => self.queue.lock().drop_one(region),
            }
        }
    }

    async fn save(
        &self,
        store: &dyn Checkpoints,
        (region, key): (RegionId, RegionKey),
        brought: Brought<RegionSnapshot>,
    ) {
        let bytes = match brought.item.encode() {
            Ok(bytes) => Bytes::from(bytes),
            Err(error) => {
                self.metrics.failed.fetch_add(1, Relaxed);
                purview::log_limited!(error, %error, region = %key, "a checkpoint cannot be written");
                return self.queue.lock().drop_one(region);
            }
        };
        let (epoch, tick) = (brought.epoch, brought.tick);
        let saved = store.save(&key, epoch, tick, bytes.clone()).await;
        let is_ok = matches!(saved, Ok(Saved::Ok));
        if !self.note(&key, saved, bytes.len()) {
            self.queue.lock().give_back(region, brought);
            tokio::time::sleep(AGAIN).await;
        } else if is_ok {
            self.queue.lock().is_saved(region, tick, brought.at);
        } else {
            self.queue.lock().drop_one(region);
        }
    }

    /// Records the result of a save; false when it must be repeated.
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
                purview::log_limited!(warn, region = %key, %by, "a checkpoint of a former owner was refused");
                true
            }
            Err(error) => {
                metrics.failed.fetch_add(1, Relaxed);
                purview::log_limited!(warn, %error, region = %key, "a checkpoint could not be saved and waits");
                !matches!(error, CheckpointError::Unreachable { .. })
            }
        }
    }

    /// Local regions whose last saved checkpoint is older than recovery assumes.
    pub(crate) fn overdue(&self) -> Vec<RegionId> {
        self.overdue_at(clock::now())
    }

    fn overdue_at(&self, now: Instant) -> Vec<RegionId> {
        let queue = self.queue.lock();
        let old = queue.ages(now).filter(|(_, age)| *age > self.limit);
        old.map(|(region, _)| region).collect()
    }

    fn warn_if_overdue(&self, now: Instant) {
        let mut warned = self.warned.lock();
        if warned.is_some_and(|last| now.saturating_duration_since(last) < WARN_EVERY) {
            return;
        }
        let overdue = self.overdue_at(now);
        let Some(first) = overdue.first() else { return };
        *warned = Some(now);
        let (regions, limit) = (overdue.len(), self.limit);
        tracing::error!(regions, %first, ?limit, "checkpoints are overdue: the store is unreachable or too slow");
    }
}

impl Collector for CheckpointQueue {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let now = clock::now();
        // Never hold both locks at the same time.
        let waiting = self.queue.lock().waiting() as u64;
        let overdue = self.overdue_at(now).len() as u64;
        let ages: Vec<_> = self.queue.lock().ages(now).collect();
        let mut out = Families::from(encoder);
        let m = &self.metrics;
        let counters = [
            ("saved", "Checkpoints saved.", &m.saved),
            ("bytes", "Bytes of saved checkpoints.", &m.bytes),
            ("fenced", "Checkpoints refused because a newer owner saved one.", &m.fenced),
            ("failed", "Failed attempts to save.", &m.failed),
        ];
        out.counters_of("purview_checkpoints", &counters)?;
        out.gauge("purview_checkpoints_waiting", "Checkpoints waiting to be saved.", waiting)?;
        let help = "Regions with a checkpoint older than recovery assumes.";
        out.gauge("purview_checkpoints_overdue", help, overdue)?;
        let help = "Age of a region's last saved checkpoint.";
        let mut samples = out.gauges("purview_checkpoint_age_seconds", help)?;
        for (region, age) in ages {
            samples.gauge(&[("region", &region.0.to_string())], age.as_secs_f64())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
