//! The regions that run in this process, as they come and go.

use std::sync::Arc;

use actix::Recipient;
use parking_lot::RwLock;
use purview::actor::messages::{Inspect, InspectEntity, Weigh};
use purview::actor::region::metrics::RegionMetrics;
use purview::scene::{RegionId, SceneId};

/// What the console may ask of one region.
#[derive(Debug, Clone)]
pub struct RegionHandle {
    pub scene: SceneId,
    pub region: RegionId,
    pub inspect: Recipient<Inspect>,
    pub inspect_entity: Recipient<InspectEntity>,
    pub weigh: Recipient<Weigh>,
    pub metrics: Arc<RegionMetrics>,
}

/// A list that others change while the console reads it. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Hosted(Arc<RwLock<Arc<[RegionHandle]>>>);

impl Hosted {
    pub fn now(&self) -> Arc<[RegionHandle]> {
        self.0.read().clone()
    }

    /// Tells which regions run here from now on.
    pub fn set(&self, regions: Vec<RegionHandle>) {
        *self.0.write() = regions.into();
    }
}

impl From<Vec<RegionHandle>> for Hosted {
    fn from(regions: Vec<RegionHandle>) -> Hosted {
        let hosted = Hosted::default();
        hosted.set(regions);
        hosted
    }
}
