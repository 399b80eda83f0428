//! The regions that run in this process, as they come and go.

use std::sync::{Arc, PoisonError, RwLock};

use super::RegionHandle;

/// A list that others change while the console reads it. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Hosted(Arc<RwLock<Arc<[RegionHandle]>>>);

impl Hosted {
    /// The regions as they are now.
    pub fn now(&self) -> Arc<[RegionHandle]> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells which regions run here from now on.
    pub fn set(&self, regions: Vec<RegionHandle>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = regions.into();
    }
}

impl From<Vec<RegionHandle>> for Hosted {
    fn from(regions: Vec<RegionHandle>) -> Hosted {
        let hosted = Hosted::default();
        hosted.set(regions);
        hosted
    }
}
