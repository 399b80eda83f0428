//! Layouts, and the operations on the whole store, in redb.

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use redb::{ReadableTable, TableDefinition};

use super::{COUNTS, HELD, NEWEST, PLAYERS, PREVIOUS, RUNS, Redb, record};
use crate::storage::checkpoints::whole::{KeptLayout, PAGE_MAX, Whole, check_layout};
use crate::storage::{CheckpointError, ClusterId, SavedPlayer};

/// Scene name to change number and layout.
pub(super) const LAYOUTS: TableDefinition<'static, &str, (u64, &[u8])> =
    TableDefinition::new("layouts");

/// The cluster's id.
pub(super) const CLUSTER: TableDefinition<'static, (), &[u8; 16]> = TableDefinition::new("cluster");

impl Whole for Redb {
    fn save_layout(&self, layout: KeptLayout) -> BoxFuture<'_, Result<bool, CheckpointError>> {
        if let Err(e) = check_layout(&layout) {
            return std::future::ready(Err(e)).boxed();
        }
        let asked = "save a layout";
        self.blocking(asked, move |redb| {
            redb.write(asked, |txn| {
                let mut table = txn.open_table(LAYOUTS)?;
                let KeptLayout { scene, change, data } = layout;
                let now = table.get(scene.as_str())?.map(|found| found.value().0);
                if now.is_some_and(|now| now > change) {
                    return Ok(false);
                }
                table.insert(scene.as_str(), (change, &*data))?;
                Ok(true)
            })
        })
    }

    fn layouts(&self) -> BoxFuture<'_, Result<Vec<KeptLayout>, CheckpointError>> {
        let asked = "list layouts";
        self.blocking(asked, move |redb| {
            redb.read(asked, |txn| {
                let table = txn.open_table(LAYOUTS)?;
                let all = table.iter()?.map(|entry| {
                    let (scene, layout) = entry?;
                    let (change, data) = layout.value();
                    let (scene, data) = (scene.value().to_owned(), Bytes::copy_from_slice(data));
                    Ok(KeptLayout { scene, change, data })
                });
                all.collect()
            })
        })
    }

    fn players<'a>(
        &'a self,
        after: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<SavedPlayer>, CheckpointError>> {
        let (after, asked) = (after.to_owned(), "list players");
        self.blocking(asked, move |redb| {
            redb.read(asked, |txn| {
                let table = txn.open_table(PLAYERS)?;
                let from = (std::ops::Bound::Excluded(after.as_str()), std::ops::Bound::Unbounded);
                let all = table.range::<&str>(from)?.take(most.min(PAGE_MAX)).map(|entry| {
                    let (name, found) = entry?;
                    Ok(record(name.value(), found.value()))
                });
                all.collect()
            })
        })
    }

    fn processes(&self) -> BoxFuture<'_, Result<u64, CheckpointError>> {
        let asked = "read the number of runs";
        self.blocking(asked, move |redb| {
            redb.read(asked, |txn| {
                Ok(txn.open_table(COUNTS)?.get(RUNS)?.map_or(0, |found| found.value()))
            })
        })
    }

    fn processes_are(&self, least: u64) -> BoxFuture<'_, Result<(), CheckpointError>> {
        let asked = "count a run";
        self.blocking(asked, move |redb| {
            redb.write(asked, |txn| {
                let mut counts = txn.open_table(COUNTS)?;
                let now = counts.get(RUNS)?.map_or(0, |found| found.value());
                counts.insert(RUNS, now.max(least))?;
                Ok(())
            })
        })
    }

    fn cluster_id(&self, fresh: ClusterId) -> BoxFuture<'_, Result<ClusterId, CheckpointError>> {
        let asked = "read the cluster's id";
        self.blocking(asked, move |redb| {
            redb.write(asked, |txn| {
                let mut table = txn.open_table(CLUSTER)?;
                let known = table.get(())?.map(|found| ClusterId::new(*found.value()));
                if known.is_none() {
                    table.insert((), fresh.bytes())?;
                }
                Ok(known.unwrap_or(fresh))
            })
        })
    }

    fn erase(&self) -> BoxFuture<'_, Result<(), CheckpointError>> {
        let asked = "erase everything";
        self.blocking(asked, move |redb| {
            redb.write(asked, |txn| {
                txn.open_table(NEWEST)?.retain(|_, _| false)?;
                txn.open_table(PREVIOUS)?.retain(|_, _| false)?;
                txn.open_table(PLAYERS)?.retain(|_, _| false)?;
                txn.open_table(HELD)?.retain(|_, _| false)?;
                txn.open_table(LAYOUTS)?.retain(|_, _| false)?;
                txn.open_table(CLUSTER)?.retain(|_, _| false)?;
                Ok(())
            })
        })
    }
}
