//! The game's logic in the regions of a process: a factory makes a value for each region that begins here.

use std::fmt::Debug;
use std::sync::Arc;

use super::admission::Admission;
use crate::scene::region::GameLogic;
use crate::scene::{RegionId, Scene};

/// Makes the logic of each region that begins in this process: at the start, after a migration, and after the death of
/// its owner.
pub trait LogicFactory: Debug + Send + Sync {
    /// The logic of a region of this scene; `None`: the scene has none.
    fn make(&self, scene: &Arc<Scene>, region: RegionId) -> Option<Box<dyn GameLogic>>;

    /// Decides whether players may come; `None`: they may.
    fn admission(&self) -> Option<&dyn Admission> {
        None
    }
}
