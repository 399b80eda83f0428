//! The judge of the example game `hunt`, which the simulator, loads and benchmarks play: what its rules promise, and
//! the accounts of its gold.

pub mod accounts;
pub mod figures;

use std::fmt;
use std::sync::Arc;

use purview::actor::logic::LogicFactory;
use purview::scene::region::GameLogic;
use purview::scene::{RegionId, Scene};

pub use purview_demo::hunt::{hunt, is_hunt, is_secret, kinds, rules};

/// Makes the logic of each region that begins by a function.
pub fn each_region<F>(make: F) -> Arc<dyn LogicFactory>
where
    F: Fn(&Arc<Scene>, RegionId) -> Option<Box<dyn GameLogic>> + Send + Sync + 'static,
{
    Arc::new(EachRegion(make))
}

struct EachRegion<F>(F);

impl<F> fmt::Debug for EachRegion<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EachRegion")
    }
}

impl<F> LogicFactory for EachRegion<F>
where
    F: Fn(&Arc<Scene>, RegionId) -> Option<Box<dyn GameLogic>> + Send + Sync,
{
    fn make(&self, scene: &Arc<Scene>, region: RegionId) -> Option<Box<dyn GameLogic>> {
        (self.0)(scene, region)
    }
}
