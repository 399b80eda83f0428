//! What a store of checkpoints keeps beside snapshots and places, and all of what it keeps: for an etcd that
//! has lost its data, and for backups.

use bytes::Bytes;
use futures::future::BoxFuture;

use super::{check_name, check_number, check_size};
use crate::storage::leases::names::{NAME_MAX, VALUE_MAX};
use crate::storage::{CheckpointError, PlayerPlace};

/// Most players of one page.
pub const PAGE_MAX: usize = 10_000;

/// A scene's changed layout, as the lease store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptLayout {
    /// The scene's name.
    pub scene: String,
    /// Grows with every change of it.
    pub change: u64,
    /// What was saved, at most 512 KiB.
    pub data: Bytes,
}

/// The rest of a store of checkpoints.
pub trait Whole: Send + Sync {
    /// Keeps a scene's layout. False: a later change of it is kept, and nothing has changed.
    ///
    /// # Errors
    /// [`CheckpointError`].
    fn save_layout(&self, layout: KeptLayout) -> BoxFuture<'_, Result<bool, CheckpointError>>;

    /// The layouts that are kept, by scene.
    ///
    /// # Errors
    /// [`CheckpointError`].
    fn layouts(&self) -> BoxFuture<'_, Result<Vec<KeptLayout>, CheckpointError>>;

    /// The next players in the store's order of names, at most so many and [`PAGE_MAX`], after the one of this
    /// name; the empty name is before all.
    ///
    /// # Errors
    /// [`CheckpointError`].
    fn players<'a>(
        &'a self,
        after: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<PlayerPlace>, CheckpointError>>;

    /// How many processes have named entities, where the store counts them itself; else 0.
    ///
    /// # Errors
    /// [`CheckpointError`].
    fn processes(&self) -> BoxFuture<'_, Result<u64, CheckpointError>>;

    /// At least so many processes have. Without effect where the store does not count them.
    ///
    /// # Errors
    /// [`CheckpointError`].
    fn processes_are(&self, least: u64) -> BoxFuture<'_, Result<(), CheckpointError>>;

    /// Erases everything that is kept, save the count of processes.
    ///
    /// # Errors
    /// [`CheckpointError`]; then nothing is erased.
    fn erase(&self) -> BoxFuture<'_, Result<(), CheckpointError>>;
}

/// Refuses what no store can keep.
pub fn check_layout(layout: &KeptLayout) -> Result<(), CheckpointError> {
    check_name("a scene's name", &layout.scene, NAME_MAX)?;
    check_number("a layout's change", layout.change)?;
    check_size(&format!("the layout of scene {:?}", layout.scene), layout.data.len(), VALUE_MAX)
}
