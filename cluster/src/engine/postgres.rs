//! Checkpoints of a cluster: PostgreSQL, 12 or later.
//!
//! One connection, kept by a task that makes it again with growing pauses. While there is none every
//! request fails at once; whoever asks keeps what it has and asks again.

mod connection;
mod secure;
mod whole;

use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use purview::scene::{Epoch, Tick};
use tokio_postgres::tls::TlsConnect;
use tokio_postgres::types::{FromSql, ToSql};
use tokio_postgres::{NoTls, Row, Socket};

use crate::tls;

use super::checkpoints::{
    Checkpoints, Kept, PlayerPlace, PlayersSaved, Saved, Snapshot, check_places, check_player,
    check_state, newest_of_each,
};
use super::{CheckpointError, RegionKey};
use connection::{Connection, Demand, Schema};
use secure::Secure;

pub use connection::Tls;

/// How long one answer is waited for: a snapshot of 64 MiB takes a while.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// The tables. Two states of each region alternate, so that a save writes one only.
static SCHEMA: Schema = Schema {
    there: "SELECT to_regclass('purview_layouts') IS NOT NULL",
    // Nodes that come at the same time would get into each other's way.
    make: "
BEGIN;
SELECT pg_advisory_xact_lock(hashtext('purview schema'));
CREATE TABLE IF NOT EXISTS purview_regions (
    cluster text NOT NULL, scene text NOT NULL, region bigint NOT NULL, planes integer NOT NULL,
    epoch bigint NOT NULL, tick bigint NOT NULL, slot smallint NOT NULL,
    PRIMARY KEY (cluster, scene, region, planes));
CREATE TABLE IF NOT EXISTS purview_states (
    cluster text NOT NULL, scene text NOT NULL, region bigint NOT NULL, planes integer NOT NULL,
    slot smallint NOT NULL, epoch bigint NOT NULL, tick bigint NOT NULL, state bytea NOT NULL,
    PRIMARY KEY (cluster, scene, region, planes, slot));
ALTER TABLE purview_states ALTER COLUMN state SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS purview_players (
    cluster text NOT NULL, name text NOT NULL, epoch bigint NOT NULL, place bytea NOT NULL,
    PRIMARY KEY (cluster, name));
CREATE TABLE IF NOT EXISTS purview_layouts (
    cluster text NOT NULL, scene text NOT NULL, change bigint NOT NULL, layout bytea NOT NULL,
    PRIMARY KEY (cluster, scene));
COMMIT",
};

/// No row: fenced. The same epoch and tick again keep their slot.
const SAVE: &str = "
WITH fence AS (
    INSERT INTO purview_regions AS r VALUES ($1, $2, $3, $4, $5, $6, 0)
    ON CONFLICT (cluster, scene, region, planes) DO UPDATE SET
        slot = CASE WHEN (r.epoch, r.tick) = ($5, $6) THEN r.slot ELSE 1 - r.slot END,
        epoch = $5, tick = $6
    WHERE (r.epoch, r.tick) <= ($5, $6)
    RETURNING slot)
INSERT INTO purview_states AS s SELECT $1, $2, $3, $4, slot, $5, $6, $7 FROM fence
ON CONFLICT (cluster, scene, region, planes, slot) DO UPDATE SET
    epoch = excluded.epoch, tick = excluded.tick, state = excluded.state
RETURNING slot";

const FENCED_BY: &str = "
SELECT epoch, tick FROM purview_regions
WHERE cluster = $1 AND scene = $2 AND region = $3 AND planes = $4";

/// The newest first.
const LOAD: &str = "
SELECT s.epoch, s.tick, s.state FROM purview_regions r
JOIN purview_states s USING (cluster, scene, region, planes)
WHERE cluster = $1 AND scene = $2 AND region = $3 AND planes = $4
ORDER BY s.slot <> r.slot";

const REGIONS: &str = "
SELECT scene, region, planes FROM purview_regions WHERE cluster = $1";

const SAVE_PLAYERS: &str = "
INSERT INTO purview_players AS p
SELECT $1, n, e, w FROM unnest($2::text[], $3::bigint[], $4::bytea[]) AS new (n, e, w)
ON CONFLICT (cluster, name) DO UPDATE SET epoch = excluded.epoch, place = excluded.place
WHERE p.epoch <= excluded.epoch";

const LOAD_PLAYER: &str = "
SELECT epoch, place FROM purview_players WHERE cluster = $1 AND name = $2";

const HIGHEST_EPOCH: &str = "
SELECT coalesce(max(epoch), 0) FROM purview_regions WHERE cluster = $1";

/// Checkpoints in a PostgreSQL. Clones share the connection.
#[derive(Clone)]
pub struct Postgres {
    connection: Connection,
    cluster: String,
}

impl Postgres {
    /// Connects to `url` (`postgres://user:password@host:port/database`, or in words) and makes the
    /// tables if they are missing. What is kept belongs to `cluster`: clusters of different names
    /// do not see each other. The connection is kept on the runtime on which this is called.
    ///
    /// # Errors
    /// [`CheckpointError::Illegal`]: the URL; [`CheckpointError::Unreachable`] and
    /// [`CheckpointError::Refused`]: the first connection did not come about.
    pub async fn connect(url: &str, cluster: &str) -> Result<Postgres, CheckpointError> {
        let connection = Connection::open(url, &SCHEMA, Demand::AsTheAddressSays, NoTls).await?;
        Ok(Postgres { connection, cluster: cluster.into() })
    }

    /// The same, with certificates on both sides: a database that does not speak TLS is not talked to.
    ///
    /// # Errors
    /// As [`Postgres::connect`].
    pub async fn connect_with(
        url: &str,
        cluster: &str,
        tls: &tls::Tls,
    ) -> Result<Postgres, CheckpointError> {
        Postgres::connect_by(url, cluster, Secure::new(tls)).await
    }

    /// The same over encrypted connections, made by `tls`; plain ones are refused.
    ///
    /// # Errors
    /// As [`Postgres::connect`].
    pub async fn connect_by<T: Tls>(
        url: &str,
        cluster: &str,
        tls: T,
    ) -> Result<Postgres, CheckpointError>
    where
        T::Stream: Send,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let connection = Connection::open(url, &SCHEMA, Demand::Encrypted, tls).await?;
        Ok(Postgres { connection, cluster: cluster.into() })
    }

    /// Whether there is a connection now.
    pub fn is_connected(&self) -> bool {
        self.connection.is_up()
    }
}

/// A region's name in columns.
struct Columns {
    scene: String,
    region: i64,
    planes: i32,
}

impl From<&RegionKey> for Columns {
    fn from(key: &RegionKey) -> Columns {
        let RegionKey { scene, region, planes } = key;
        Columns { scene: scene.clone(), region: (*region).into(), planes: (*planes).into() }
    }
}

/// What was checked to fit.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(row: &Row, column: usize) -> Result<u64, CheckpointError> {
    let number: i64 = get(row, column)?;
    u64::try_from(number).map_err(|_| bad(row, column, &format!("{number}: want 0 or more")))
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, CheckpointError> {
    row.try_get(column).map_err(|e| bad(row, column, &e.to_string()))
}

fn bad(row: &Row, column: usize, rule: &str) -> CheckpointError {
    let key = row.columns().get(column).map_or("", |column| column.name()).to_owned();
    CheckpointError::BadData { key, rule: rule.into() }
}

fn snapshot(row: &Row) -> Result<Snapshot, CheckpointError> {
    let state: &[u8] = get(row, 2)?;
    Ok(Snapshot {
        epoch: Epoch(unsigned(row, 0)?),
        tick: Tick(unsigned(row, 1)?),
        state: Bytes::copy_from_slice(state),
    })
}

fn region(row: &Row) -> Result<RegionKey, CheckpointError> {
    let (region, planes): (i64, i32) = (get(row, 1)?, get(row, 2)?);
    Ok(RegionKey {
        scene: get(row, 0)?,
        region: u32::try_from(region).map_err(|e| bad(row, 1, &format!("{region}: {e}")))?,
        planes: u16::try_from(planes).map_err(|e| bad(row, 2, &format!("{planes}: {e}")))?,
    })
}

impl Postgres {
    async fn save_state(
        &self,
        key: &RegionKey,
        epoch: Epoch,
        tick: Tick,
        state: &[u8],
    ) -> Result<Saved, CheckpointError> {
        check_state(key, epoch, tick, state)?;
        let Columns { scene, region, planes } = key.into();
        let (cluster, asked) = (&self.cluster, "save a region");
        let (e, t) = (signed(epoch.0), signed(tick.0));
        let saved = self
            .connection
            .query(asked, SAVE, &[cluster, &scene, &region, &planes, &e, &t, &state])
            .await?;
        if !saved.is_empty() {
            return Ok(Saved::Ok);
        }
        let key: [&(dyn ToSql + Sync); 4] = [cluster, &scene, &region, &planes];
        let by = self.connection.query(asked, FENCED_BY, &key).await?;
        match by.first() {
            Some(row) => {
                Ok(Saved::Fenced { by: Epoch(unsigned(row, 0)?), tick: Tick(unsigned(row, 1)?) })
            }
            None => Err(CheckpointError::BadData {
                key: format!("region {scene}/{region}"),
                rule: "was taken away while it was saved: nothing else may write here".into(),
            }),
        }
    }

    async fn save_places(&self, places: Vec<PlayerPlace>) -> Result<PlayersSaved, CheckpointError> {
        check_places(&places)?;
        let (mut names, mut epochs, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for PlayerPlace { name, epoch, place } in newest_of_each(places) {
            names.push(name);
            epochs.push(signed(epoch.0));
            bytes.push(place.to_vec());
        }
        let kept = self
            .connection
            .execute("save players", SAVE_PLAYERS, &[&self.cluster, &names, &epochs, &bytes])
            .await?;
        let kept = usize::try_from(kept).unwrap_or(names.len()).min(names.len());
        Ok(PlayersSaved { kept, fenced: names.len() - kept })
    }
}

impl Checkpoints for Postgres {
    fn save<'a>(
        &'a self,
        key: &'a RegionKey,
        epoch: Epoch,
        tick: Tick,
        state: Bytes,
    ) -> BoxFuture<'a, Result<Saved, CheckpointError>> {
        async move { self.save_state(key, epoch, tick, &state).await }.boxed()
    }

    fn load<'a>(&'a self, key: &'a RegionKey) -> BoxFuture<'a, Result<Kept, CheckpointError>> {
        async move {
            let Columns { scene, region, planes } = key.into();
            let key: [&(dyn ToSql + Sync); 4] = [&self.cluster, &scene, &region, &planes];
            let rows = self.connection.query("load a region", LOAD, &key).await?;
            let mut snapshots = rows.iter().map(snapshot);
            let mut next = || snapshots.next().transpose();
            Ok(Kept { newest: next()?, previous: next()? })
        }
        .boxed()
    }

    fn regions(&self) -> BoxFuture<'_, Result<Vec<RegionKey>, CheckpointError>> {
        async move {
            let rows = self.connection.query("list regions", REGIONS, &[&self.cluster]).await?;
            let mut keys = rows.iter().map(region).collect::<Result<Vec<_>, _>>()?;
            keys.sort();
            Ok(keys)
        }
        .boxed()
    }

    fn save_players(
        &self,
        places: Vec<PlayerPlace>,
    ) -> BoxFuture<'_, Result<PlayersSaved, CheckpointError>> {
        self.save_places(places).boxed()
    }

    fn load_player<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<PlayerPlace>, CheckpointError>> {
        async move {
            check_player(name)?;
            let key: [&(dyn ToSql + Sync); 2] = [&self.cluster, &name];
            let rows = self.connection.query("load a player", LOAD_PLAYER, &key).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            let place: &[u8] = get(row, 1)?;
            Ok(Some(PlayerPlace {
                name: name.into(),
                epoch: Epoch(unsigned(row, 0)?),
                place: Bytes::copy_from_slice(place),
            }))
        }
        .boxed()
    }

    fn highest_epoch(&self) -> BoxFuture<'_, Result<Epoch, CheckpointError>> {
        async move {
            let asked = "say its highest epoch";
            let rows = self.connection.query(asked, HIGHEST_EPOCH, &[&self.cluster]).await?;
            rows.first().map_or(Ok(Epoch(0)), |row| Ok(Epoch(unsigned(row, 0)?)))
        }
        .boxed()
    }
}
