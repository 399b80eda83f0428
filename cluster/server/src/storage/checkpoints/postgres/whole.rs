//! Layouts, and the operations on the whole store, in PostgreSQL.

use async_trait::async_trait;
use bytes::Bytes;

use super::{Postgres, get, player, signed, unsigned};
use crate::storage::checkpoints::Result;
use crate::storage::checkpoints::whole::{KeptLayout, PAGE_MAX, Whole, check_layout};
use crate::storage::{CheckpointError, ClusterId, SavedPlayer};

const SAVE_LAYOUT: &str = "
INSERT INTO purview_layouts AS l VALUES ($1, $2, $3, $4)
ON CONFLICT (cluster, scene) DO UPDATE SET change = excluded.change, layout = excluded.layout
WHERE l.change <= excluded.change";

const LAYOUTS: &str = "
SELECT scene, change, layout FROM purview_layouts WHERE cluster = $1 ORDER BY scene COLLATE \"C\"";

const PLAYERS: &str = "
SELECT name, epoch, clock, holder, place FROM purview_players
WHERE cluster = $1 AND name > $2 ORDER BY name LIMIT $3";

/// The first process decides.
const NAME: &str = "INSERT INTO purview_clusters VALUES ($1, $2) ON CONFLICT (cluster) DO NOTHING";

const CLUSTER_ID: &str = "SELECT id FROM purview_clusters WHERE cluster = $1";

/// One statement, so that all or nothing is erased.
const ERASE: &str = "
WITH s AS (DELETE FROM purview_states WHERE cluster = $1),
     r AS (DELETE FROM purview_regions WHERE cluster = $1),
     l AS (DELETE FROM purview_layouts WHERE cluster = $1),
     i AS (DELETE FROM purview_clusters WHERE cluster = $1)
DELETE FROM purview_players WHERE cluster = $1";

#[async_trait]
impl Whole for Postgres {
    async fn save_layout(&self, layout: KeptLayout) -> Result<bool> {
        check_layout(&layout)?;
        let KeptLayout { scene, change, data } = layout;
        let (change, data) = (signed(change), data.to_vec());
        let asked = "save a layout";
        let saved = self
            .connections
            .execute(asked, SAVE_LAYOUT, &[&self.cluster, &scene, &change, &data])
            .await?;
        Ok(saved > 0)
    }

    async fn layouts(&self) -> Result<Vec<KeptLayout>> {
        let rows = self.connections.query("list layouts", LAYOUTS, &[&self.cluster]).await?;
        let layout = |row| -> Result<KeptLayout> {
            let data: &[u8] = get(row, 2)?;
            let (scene, change) = (get(row, 0)?, unsigned(row, 1)?);
            Ok(KeptLayout { scene, change, data: Bytes::copy_from_slice(data) })
        };
        rows.iter().map(layout).collect()
    }

    async fn players(&self, after: &str, most: usize) -> Result<Vec<SavedPlayer>> {
        let most = i64::try_from(most.min(PAGE_MAX)).unwrap_or(i64::MAX);
        let asked = "list players";
        let rows = self.connections.query(asked, PLAYERS, &[&self.cluster, &after, &most]).await?;
        rows.iter().map(player).collect()
    }

    async fn processes(&self) -> Result<u64> {
        Ok(0)
    }

    async fn processes_are(&self, _: u64) -> Result<()> {
        Ok(())
    }

    async fn cluster_id(&self, fresh: ClusterId) -> Result<ClusterId> {
        let asked = "read the cluster's id";
        // A gateway's user may read the id, and nodes write it.
        let mut rows = self.connections.query(asked, CLUSTER_ID, &[&self.cluster]).await?;
        if rows.is_empty() {
            let id = fresh.to_string();
            self.connections.execute(asked, NAME, &[&self.cluster, &id]).await?;
            rows = self.connections.query(asked, CLUSTER_ID, &[&self.cluster]).await?;
        }
        // It was erased meanwhile.
        let Some(row) = rows.first() else { return Ok(fresh) };
        let text: &str = get(row, 0)?;
        ClusterId::read(text.as_bytes()).ok_or_else(|| CheckpointError::BadData {
            key: "purview_clusters.id".into(),
            rule: format!("{text:?}: must be 32 hexadecimal digits"),
        })
    }

    async fn erase(&self) -> Result<()> {
        self.connections.execute("erase everything", ERASE, &[&self.cluster]).await.map(drop)
    }
}
