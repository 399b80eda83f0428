//! Makes the logic of the regions of a process in which workers have the rules.

use std::sync::Arc;

use purview::actor::admission::Admission;
use purview::actor::logic::LogicFactory;
use purview::scene::region::GameLogic;
use purview::scene::{RegionId, Scene};

use super::hub::Hub;
use super::remote::RemoteLogic;

/// Makes the logic of regions whose rules are those of workers.
#[derive(Debug)]
pub struct Workers(pub Arc<Hub>);

impl LogicFactory for Workers {
    fn make(&self, scene: &Arc<Scene>, region: RegionId) -> Option<Box<dyn GameLogic>> {
        Some(Box::new(RemoteLogic::new(self.0.clone(), scene.clone(), region)))
    }

    fn admission(&self) -> Option<&dyn Admission> {
        Some(&*self.0)
    }
}
