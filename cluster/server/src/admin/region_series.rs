//! Which regions have metric series of their own. Region ids are never used again, so a cluster whose layouts change by
//! themselves would make new series without end.
//!
//! | `console.region_metrics` | counters and histograms | gauges |
//! |---|---|---|
//! | `all` | of each region | of each region |
//! | `top` | of each scene | of the busiest regions, and of all others of a scene together |
//! | `off` | of each scene | of each scene |
//!
//! The counters of a scene never shrink: what an ended region has counted stays in the sum.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use purview::actor::region::metrics::RegionMetrics;
use purview::scene::{RegionId, SceneId};

use super::quantiles::Buckets;

pub(super) type Figures = (SceneId, RegionId, Arc<RegionMetrics>);

pub(super) type Counter = fn(&RegionMetrics) -> &AtomicU64;

pub(super) const BUSIEST: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Sum {
    /// What the families of counters read.
    pub(super) metrics: RegionMetrics,
    pub(super) buckets: Buckets,
}

impl Sum {
    /// Adds what a region has counted; `counters` reads each counter, apart from refused moves and times.
    pub(super) fn add(&mut self, of: &RegionMetrics, counters: &[Counter]) {
        let sum = &self.metrics;
        for counter in counters {
            counter(sum).fetch_add(counter(of).load(Relaxed), Relaxed);
        }
        for (sum, of) in sum.moves_refused.iter().zip(&of.moves_refused) {
            sum.fetch_add(of.load(Relaxed), Relaxed);
        }
        sum.tick_us_sum.fetch_add(of.tick_us_sum.load(Relaxed), Relaxed);
        sum.tick_us_max.fetch_max(of.tick_us_max.load(Relaxed), Relaxed);
        sum.delivery_ns_sum.fetch_add(of.delivery_ns_sum.load(Relaxed), Relaxed);
        for (sum, of) in self.buckets.iter_mut().zip(of.tick_buckets()) {
            *sum += of;
        }
    }

    fn add_sum(&mut self, of: &Sum, counters: &[Counter]) {
        self.add(&of.metrics, counters);
        for (sum, of) in self.buckets.iter_mut().zip(of.buckets) {
            *sum += of;
        }
    }
}

/// What regions have counted that have ended, by scene; and the regions that run.
#[derive(Debug, Default)]
pub(super) struct Totals {
    ended: BTreeMap<SceneId, Sum>,
    running: Vec<Figures>,
}

impl Totals {
    /// The sums of all regions, those that have ended among them, by scene.
    pub(super) fn sums(&mut self, now: &[Figures], counters: &[Counter]) -> BTreeMap<SceneId, Sum> {
        let runs: BTreeSet<_> = now.iter().map(|(_, _, metrics)| Arc::as_ptr(metrics)).collect();
        for (scene, _, metrics) in self.running.drain(..) {
            if !runs.contains(&Arc::as_ptr(&metrics)) {
                self.ended.entry(scene).or_default().add(&metrics, counters);
            }
        }
        self.running = now.to_vec();
        let mut sums: BTreeMap<SceneId, Sum> = BTreeMap::new();
        for (scene, ended) in &self.ended {
            sums.entry(*scene).or_default().add_sum(ended, counters);
        }
        for (scene, _, metrics) in now {
            sums.entry(*scene).or_default().add(metrics, counters);
        }
        sums
    }
}

/// The regions with most players, and then most entities.
pub(super) fn busiest(regions: &[Figures]) -> Vec<RegionId> {
    let mut all: Vec<_> = regions
        .iter()
        .map(|(_, region, m)| (m.players.load(Relaxed), m.reals.load(Relaxed), *region))
        .collect();
    all.sort_by(|a, b| b.cmp(a));
    all.into_iter().take(BUSIEST).map(|(_, _, region)| region).collect()
}
