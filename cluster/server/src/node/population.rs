//! Entities that a process brings along and moves itself: the demo entities of the lab.

use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;
use purview::actor::directory::Directory;

use super::hosted::Hosted;

/// Creates entities and moves them as game logic in the same process.
pub trait Population: Debug + Send + Sync {
    /// Creates the entities of a new cluster; called once, in one process.
    fn create(&self, directory: Arc<Directory>) -> BoxFuture<'static, ()>;

    /// Moves the entities that live in the regions of this process, until the future is dropped.
    fn drive(&self, directory: Arc<Directory>, regions: Hosted) -> BoxFuture<'static, ()>;
}
