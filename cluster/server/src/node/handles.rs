//! What the parts of a node act on: its stores, its links, and the regions that run here.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use purview::actor::directory::Directory;

use super::local_regions::LocalRegions;
use super::maps::Maps;
use crate::executor::Executor;
use crate::peer::Links;
use crate::storage::{Checkpoints, Leases, Membership, View};

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct Handles {
    pub(super) executor: Executor,
    pub(super) store: Arc<dyn Leases>,
    pub(super) checkpoints: Option<Arc<dyn Checkpoints>>,
    pub(super) me: Membership,
    pub(super) links: Links,
    pub(super) directory: Arc<Directory>,
    pub(super) maps: Maps,
    pub(super) local_regions: Arc<Mutex<LocalRegions>>,
    /// The store as this process saw it last.
    pub(super) view: Arc<RwLock<View>>,
}
