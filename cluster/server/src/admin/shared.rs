//! What all requests to the console share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::ConsoleState;
use super::metrics::{ProcessCollector, RegionCollector};
use super::sampler::Sampler;
use crate::metrics::RegionSeries;
use crate::metrics::{self, Collector, Registry};
use crate::node::inspect::Surveys;

/// Time between samples.
const EVERY: Duration = Duration::from_secs(1);

pub struct Shared {
    pub state: ConsoleState,
    registry: Registry,
    surveys: Surveys,
    pub sampler: Mutex<Sampler>,
    /// Whole clusters are asked by one at a time.
    asking: tokio::sync::Mutex<()>,
}

impl Shared {
    pub fn new(mut state: ConsoleState, series: RegionSeries) -> Shared {
        let (surveys, sampler, asking) = Default::default();
        let directory = state.directory.clone();
        let regions = RegionCollector {
            directory: directory.clone(),
            regions: state.regions.clone(),
            series,
            totals: Mutex::default(),
        };
        let own: [Box<dyn Collector>; 2] =
            [Box::new(ProcessCollector { directory }), Box::new(regions)];
        let further = std::mem::take(&mut state.collectors);
        let registry = metrics::registry(own.into_iter().chain(further));
        Shared { state, registry, surveys, sampler, asking }
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    pub fn surveys(&self) -> &Surveys {
        &self.surveys
    }

    /// Waits for its turn to ask the whole cluster, and has it until the guard is dropped.
    pub async fn turn(&self) -> impl Drop + '_ {
        self.asking.lock().await
    }
}

pub async fn sample(shared: Arc<Shared>) {
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        shared.sampler.lock().sample(Instant::now(), super::figures(&shared.state.regions.now()));
    }
}
