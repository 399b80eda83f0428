//! Layouts, and the operations on the whole store, in redb.

use async_trait::async_trait;
use bytes::Bytes;
use redb::{ReadableTable, TableDefinition};

use super::{COUNTS, HELD, NEWEST, PLAYERS, PREVIOUS, RUNS, Redb, record};
use crate::storage::checkpoints::Result;
use crate::storage::checkpoints::whole::{KeptLayout, PAGE_MAX, Whole, check_layout};
use crate::storage::{ClusterId, SavedPlayer};

/// Scene name to change number and layout.
pub(super) const LAYOUTS: TableDefinition<'static, &str, (u64, &[u8])> =
    TableDefinition::new("layouts");

pub(super) const CLUSTER: TableDefinition<'static, (), &[u8; 16]> = TableDefinition::new("cluster");

#[async_trait]
impl Whole for Redb {
    async fn save_layout(&self, layout: KeptLayout) -> Result<bool> {
        check_layout(&layout)?;
        self.change("save a layout", move |txn| {
            let mut table = txn.open_table(LAYOUTS)?;
            let KeptLayout { scene, change, data } = layout;
            let now = table.get(scene.as_str())?.map(|found| found.value().0);
            if now.is_some_and(|now| now > change) {
                return Ok(false);
            }
            table.insert(scene.as_str(), (change, &*data))?;
            Ok(true)
        })
        .await
    }

    async fn layouts(&self) -> Result<Vec<KeptLayout>> {
        self.look("list layouts", move |txn| {
            let table = txn.open_table(LAYOUTS)?;
            let all = table.iter()?.map(|entry| {
                let (scene, layout) = entry?;
                let (change, data) = layout.value();
                let (scene, data) = (scene.value().to_owned(), Bytes::copy_from_slice(data));
                Ok(KeptLayout { scene, change, data })
            });
            all.collect()
        })
        .await
    }

    async fn players(&self, after: &str, most: usize) -> Result<Vec<SavedPlayer>> {
        let after = after.to_owned();
        self.look("list players", move |txn| {
            let table = txn.open_table(PLAYERS)?;
            let from = (std::ops::Bound::Excluded(after.as_str()), std::ops::Bound::Unbounded);
            let all = table.range::<&str>(from)?.take(most.min(PAGE_MAX)).map(|entry| {
                let (name, found) = entry?;
                Ok(record(name.value(), found.value()))
            });
            all.collect()
        })
        .await
    }

    async fn processes(&self) -> Result<u64> {
        self.look("read the number of runs", move |txn| {
            Ok(txn.open_table(COUNTS)?.get(RUNS)?.map_or(0, |found| found.value()))
        })
        .await
    }

    async fn processes_are(&self, least: u64) -> Result<()> {
        self.change("count a run", move |txn| {
            let mut counts = txn.open_table(COUNTS)?;
            let now = counts.get(RUNS)?.map_or(0, |found| found.value());
            counts.insert(RUNS, now.max(least))?;
            Ok(())
        })
        .await
    }

    async fn cluster_id(&self, fresh: ClusterId) -> Result<ClusterId> {
        self.change("read the cluster's id", move |txn| {
            let mut table = txn.open_table(CLUSTER)?;
            let known = table.get(())?.map(|found| ClusterId::new(*found.value()));
            if known.is_none() {
                table.insert((), fresh.bytes())?;
            }
            Ok(known.unwrap_or(fresh))
        })
        .await
    }

    async fn erase(&self) -> Result<()> {
        self.change("erase everything", move |txn| {
            txn.open_table(NEWEST)?.retain(|_, _| false)?;
            txn.open_table(PREVIOUS)?.retain(|_, _| false)?;
            txn.open_table(PLAYERS)?.retain(|_, _| false)?;
            txn.open_table(HELD)?.retain(|_, _| false)?;
            txn.open_table(LAYOUTS)?.retain(|_, _| false)?;
            txn.open_table(CLUSTER)?.retain(|_, _| false)?;
            Ok(())
        })
        .await
    }
}
