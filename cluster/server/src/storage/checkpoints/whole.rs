//! Layouts in a checkpoint store, and operations on the whole store. Backups use them, and so does
//! a cluster whose etcd lost its data.

use async_trait::async_trait;
use bytes::Bytes;

use super::{Result, check_name, check_number, check_size};
use crate::storage::leases::names::{NAME_MAX, VALUE_MAX};
use crate::storage::{ClusterId, SavedPlayer};

/// Most players in one page.
pub const PAGE_MAX: usize = 10_000;

/// A changed layout of a scene, in the form of the lease store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptLayout {
    pub scene: String,
    /// Grows with every change of the layout.
    pub change: u64,
    /// The encoded layout, at most 512 KiB.
    pub data: Bytes,
}

/// The operations on a whole checkpoint store.
#[async_trait]
pub trait Whole: Send + Sync {
    /// Saves a scene's layout. False: a later change is saved already, and nothing changed.
    async fn save_layout(&self, layout: KeptLayout) -> Result<bool>;

    /// The saved layouts, by scene.
    async fn layouts(&self) -> Result<Vec<KeptLayout>>;

    /// The next players in the store's order of names, after `after`, at most `limit` and
    /// [`PAGE_MAX`]; the empty name comes before all others.
    async fn players(&self, after: &str, most: usize) -> Result<Vec<SavedPlayer>>;

    /// The number of processes that have given ids to entities, if the store counts them; otherwise
    /// 0.
    async fn processes(&self) -> Result<u64>;

    /// Raises that number to at least `least`. No effect if the store does not count processes.
    async fn processes_are(&self, least: u64) -> Result<()>;

    /// The id of the cluster whose state this is; from now on `fresh`, if the store has none.
    async fn cluster_id(&self, fresh: ClusterId) -> Result<ClusterId>;

    /// Erases everything, the cluster's id too, except the number of processes.
    /// On an error nothing was erased.
    async fn erase(&self) -> Result<()>;
}

/// Refuses a layout that no store accepts.
pub fn check_layout(layout: &KeptLayout) -> Result<()> {
    check_name("a scene's name", &layout.scene, NAME_MAX)?;
    check_number("a layout's change", layout.change)?;
    check_size(&format!("the layout of scene {:?}", layout.scene), layout.data.len(), VALUE_MAX)
}
