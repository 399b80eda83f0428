//! Checkpoints of a cluster: PostgreSQL, 12 or later.
//!
//! A few connections to the server that accepts writes, each made on demand. A failed request
//! returns an error; the caller keeps its data and asks again. Migrations create the tables
//! (`schema.rs`).

mod connection;
mod failure;
mod schema;
mod tls_connector;
mod whole;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use purview::scene::{EntityId, Epoch, Tick};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};

use super::{
    Checkpoints, ClaimOver, PlayerClaim, PlayerClaimed, PlayersSaved, Result, Saved, SavedPlayer,
    SavedSnapshots, Snapshot, check_claim, check_number, check_player, check_players, check_state,
    newest_of_each,
};
use crate::storage::{CheckpointError, RegionKey};
use crate::tls::Tls;
use connection::Connections;
use tls_connector::Secure;

/// How long one answer may take; a snapshot of 64 MiB takes a while.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Returns no row when fenced. Saving the same epoch and tick again keeps the slot.
const SAVE: &str = "
WITH fence AS (
    INSERT INTO purview_regions AS r VALUES ($1, $2, $3, $4, $5, $6, 0)
    ON CONFLICT (cluster, scene, region, planes) DO UPDATE SET
        slot = CASE WHEN (r.epoch, r.tick) = ($5, $6) THEN r.slot ELSE 1 - r.slot END,
        epoch = $5, tick = $6
    WHERE (r.epoch, r.tick) <= ($5, $6) AND r.claimed <= $5
    RETURNING slot)
INSERT INTO purview_states AS s SELECT $1, $2, $3, $4, slot, $5, $6, $7 FROM fence
ON CONFLICT (cluster, scene, region, planes, slot) DO UPDATE SET
    epoch = excluded.epoch, tick = excluded.tick, state = excluded.state
RETURNING slot";

const FENCED_BY: &str = "
SELECT greatest(epoch, claimed), CASE WHEN claimed > epoch THEN 0 ELSE tick END FROM purview_regions
WHERE cluster = $1 AND scene = $2 AND region = $3 AND planes = $4";

/// A region without a snapshot has no state in its slot.
const CLAIM: &str = "
INSERT INTO purview_regions AS r (cluster, scene, region, planes, epoch, tick, slot, claimed)
VALUES ($1, $2, $3, $4, 0, 0, 0, $5)
ON CONFLICT (cluster, scene, region, planes) DO UPDATE SET claimed = greatest(r.claimed, $5)";

/// Newest first.
const LOAD: &str = "
SELECT s.epoch, s.tick, s.state FROM purview_regions r
JOIN purview_states s USING (cluster, scene, region, planes)
WHERE cluster = $1 AND scene = $2 AND region = $3 AND planes = $4
ORDER BY s.slot <> r.slot";

/// The region's own row stays, because it fences older snapshots.
const SET_ASIDE: &str = "
WITH moved AS (
    DELETE FROM purview_states
    WHERE cluster = $1 AND scene = $2 AND region = $3 AND planes = $4
    RETURNING cluster, scene, region, planes, epoch, tick, state)
INSERT INTO purview_quarantine (cluster, scene, region, planes, epoch, tick, state)
SELECT * FROM moved
ON CONFLICT (cluster, scene, region, planes, epoch, tick) DO UPDATE SET
    state = excluded.state, since = now()";

const REGIONS: &str = "
SELECT DISTINCT scene, region, planes FROM purview_states WHERE cluster = $1";

const SAVE_PLAYERS: &str = "
INSERT INTO purview_players AS p (cluster, name, epoch, clock, holder, place)
SELECT $1, n, e, c, h, w
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[]) AS new (n, e, c, h, w)
ON CONFLICT (cluster, name) DO UPDATE SET
    epoch = excluded.epoch, clock = excluded.clock, holder = excluded.holder, place = excluded.place
WHERE (p.epoch, p.clock, p.holder IS NULL)
    <= (excluded.epoch, excluded.clock, excluded.holder IS NULL)";

/// Claims a record: `$3` is the entity, `$4` a holder that is gone, `$5` whether any holder gives
/// way, `$6` whether the entity must hold the record already. No row: the claim does not follow.
const CLAIM_PLAYER: &str = "
WITH new AS (
    INSERT INTO purview_players AS p (cluster, name, epoch, clock, holder, place)
    SELECT $1, $2, 1, 0, $3, '' WHERE NOT $6
    ON CONFLICT (cluster, name) DO NOTHING
    RETURNING epoch, clock, holder, place),
old AS (
    UPDATE purview_players AS p SET
        epoch = epoch + 1, holder = $3, clock = CASE WHEN holder = $3 THEN clock ELSE 0 END
    WHERE cluster = $1 AND name = $2 AND (holder = $3 OR holder = $4 OR $5 OR (holder IS NULL AND NOT $6))
    RETURNING epoch, clock, holder, place)
SELECT * FROM new UNION ALL SELECT * FROM old";

const LOAD_PLAYER: &str = "
SELECT name, epoch, clock, holder, place FROM purview_players WHERE cluster = $1 AND name = $2";

const HELD_PLAYER: &str = "
SELECT name, epoch, clock, holder, place FROM purview_players WHERE cluster = $1 AND holder = $2";

const HIGHEST_EPOCH: &str = "
SELECT coalesce(max(greatest(epoch, claimed)), 0) FROM purview_regions WHERE cluster = $1";

/// A checkpoint store in PostgreSQL. Clones share the connections.
#[derive(Clone)]
pub struct Postgres {
    connections: Connections,
    cluster: String,
}

impl Postgres {
    /// Connects to `url` (`postgres://user:password@host:port/database`, or key=value pairs) and
    /// applies missing migrations. The URL may name several hosts: the first host that accepts
    /// writes is used. The data belong to `cluster`: clusters with different names do not see each
    /// other. Connections run on the calling runtime.
    pub async fn connect(url: &str, cluster: &str) -> Result<Postgres> {
        Postgres::connect_with(url, cluster, None).await
    }

    /// Like [`Postgres::connect`]; with certificates, on both sides, a database without TLS is
    /// refused.
    pub async fn connect_with(url: &str, cluster: &str, tls: Option<&Tls>) -> Result<Postgres> {
        let connections = Connections::open(url, Secure::new(tls)).await?;
        Ok(Postgres { connections, cluster: cluster.into() })
    }
}

/// A region's name as column values.
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

/// A number that was checked to fit.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(row: &Row, column: usize) -> Result<u64> {
    let number: i64 = get(row, column)?;
    u64::try_from(number).map_err(|_| bad(row, column, &format!("{number}: must be 0 or more")))
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(|e| bad(row, column, &e.to_string()))
}

fn bad(row: &Row, column: usize, rule: &str) -> CheckpointError {
    let key = row.columns().get(column).map_or("", |column| column.name()).to_owned();
    CheckpointError::BadData { key, rule: rule.into() }
}

fn snapshot(row: &Row) -> Result<Snapshot> {
    let state: &[u8] = get(row, 2)?;
    Ok(Snapshot {
        epoch: Epoch(unsigned(row, 0)?),
        tick: Tick(unsigned(row, 1)?),
        state: Bytes::copy_from_slice(state),
    })
}

/// A row of `name, epoch, clock, holder, place`.
fn player(row: &Row) -> Result<SavedPlayer> {
    record(get(row, 0)?, row, 1)
}

/// The columns `epoch, clock, holder, place` of a row, from a column on.
fn record(name: String, row: &Row, at: usize) -> Result<SavedPlayer> {
    let (holder, place): (Option<i64>, &[u8]) = (get(row, at + 2)?, get(row, at + 3)?);
    let holder = holder.map(|_| unsigned(row, at + 2)).transpose()?.map(EntityId);
    Ok(SavedPlayer {
        name,
        epoch: Epoch(unsigned(row, at)?),
        clock: unsigned(row, at + 1)?,
        holder,
        place: Bytes::copy_from_slice(place),
    })
}

fn region(row: &Row) -> Result<RegionKey> {
    let (region, planes): (i64, i32) = (get(row, 1)?, get(row, 2)?);
    Ok(RegionKey {
        scene: get(row, 0)?,
        region: u32::try_from(region).map_err(|e| bad(row, 1, &format!("{region}: {e}")))?,
        planes: u16::try_from(planes).map_err(|e| bad(row, 2, &format!("{planes}: {e}")))?,
    })
}

/// How often a claim is tried that meets other claims of the same record.
const CLAIM_TRIES: usize = 8;

#[async_trait]
impl Checkpoints for Postgres {
    async fn save(&self, key: &RegionKey, epoch: Epoch, tick: Tick, state: Bytes) -> Result<Saved> {
        check_state(key, epoch, tick, &state)?;
        let Columns { scene, region, planes } = key.into();
        let (cluster, asked) = (&self.cluster, "save a region");
        let (e, t) = (signed(epoch.0), signed(tick.0));
        let saved = self
            .connections
            .query(asked, SAVE, &[cluster, &scene, &region, &planes, &e, &t, &&*state])
            .await?;
        if !saved.is_empty() {
            return Ok(Saved::Ok);
        }
        let key: [&(dyn ToSql + Sync); 4] = [cluster, &scene, &region, &planes];
        let by = self.connections.query(asked, FENCED_BY, &key).await?;
        match by.first() {
            Some(row) => {
                Ok(Saved::Fenced { by: Epoch(unsigned(row, 0)?), tick: Tick(unsigned(row, 1)?) })
            }
            None => Err(CheckpointError::BadData {
                key: format!("region {scene}/{region}"),
                rule: "was removed during the save: no other program may write to this table"
                    .into(),
            }),
        }
    }

    async fn claim(&self, key: &RegionKey, epoch: Epoch) -> Result<SavedSnapshots> {
        check_claim(key, epoch)?;
        let (Columns { scene, region, planes }, epoch) = (key.into(), signed(epoch.0));
        let claim: [&(dyn ToSql + Sync); 5] = [&self.cluster, &scene, &region, &planes, &epoch];
        self.connections.execute("claim a region", CLAIM, &claim).await?;
        self.load(key).await
    }

    async fn load(&self, key: &RegionKey) -> Result<SavedSnapshots> {
        let Columns { scene, region, planes } = key.into();
        let key: [&(dyn ToSql + Sync); 4] = [&self.cluster, &scene, &region, &planes];
        let rows = self.connections.query("load a region", LOAD, &key).await?;
        let mut snapshots = rows.iter().map(snapshot);
        let mut next = || snapshots.next().transpose();
        Ok(SavedSnapshots { newest: next()?, previous: next()? })
    }

    async fn set_aside(&self, key: &RegionKey) -> Result<u64> {
        let Columns { scene, region, planes } = key.into();
        let key: [&(dyn ToSql + Sync); 4] = [&self.cluster, &scene, &region, &planes];
        self.connections.execute("set a region's snapshots aside", SET_ASIDE, &key).await
    }

    async fn regions(&self) -> Result<Vec<RegionKey>> {
        let rows = self.connections.query("list regions", REGIONS, &[&self.cluster]).await?;
        let mut keys = rows.iter().map(region).collect::<Result<Vec<_>, _>>()?;
        keys.sort();
        Ok(keys)
    }

    async fn save_players(&self, players: Vec<SavedPlayer>) -> Result<PlayersSaved> {
        check_players(&players)?;
        let (mut names, mut bytes, mut holders) = (Vec::new(), Vec::new(), Vec::new());
        let (mut epochs, mut clocks) = (Vec::new(), Vec::new());
        for SavedPlayer { name, epoch, clock, holder, place } in newest_of_each(players) {
            names.push(name);
            epochs.push(signed(epoch.0));
            clocks.push(signed(clock));
            holders.push(holder.map(|holder| signed(holder.0)));
            bytes.push(place.to_vec());
        }
        let new: [&(dyn ToSql + Sync); 6] =
            [&self.cluster, &names, &epochs, &clocks, &holders, &bytes];
        let kept = self.connections.execute("save players", SAVE_PLAYERS, &new).await?;
        let kept = usize::try_from(kept).unwrap_or(names.len()).min(names.len());
        Ok(PlayersSaved { kept, fenced: names.len() - kept })
    }

    async fn claim_player(&self, name: &str, claim: PlayerClaim) -> Result<PlayerClaimed> {
        check_player(name)?;
        check_number("a player's entity", claim.entity.0)?;
        let (gone, anybody, itself) = match claim.over {
            ClaimOver::Nobody => (None, false, false),
            ClaimOver::Gone(gone) => (Some(signed(gone.0)), false, false),
            ClaimOver::Anybody => (None, true, false),
            ClaimOver::Itself => (None, false, true),
        };
        let entity = signed(claim.entity.0);
        let row: [&(dyn ToSql + Sync); 6] =
            [&self.cluster, &name, &entity, &gone, &anybody, &itself];
        for _ in 0..CLAIM_TRIES {
            let rows = self.connections.query("claim a player", CLAIM_PLAYER, &row).await?;
            if let Some(row) = rows.first() {
                return Ok(PlayerClaimed::Yes(record(name.to_owned(), row, 0)?));
            }
            let now = self.load_player(name).await?;
            let now = now.unwrap_or_else(|| SavedPlayer::new(name.to_owned()));
            if !claim.may_follow(now.holder) {
                return Ok(PlayerClaimed::No(now));
            }
            // The record was inserted, or became free, between the two statements.
        }
        Err(CheckpointError::Unreachable {
            store: "PostgreSQL".into(),
            asked: "claim a player",
            cause: "other claims of the same record come first".into(),
        })
    }

    async fn load_player(&self, name: &str) -> Result<Option<SavedPlayer>> {
        check_player(name)?;
        let key: [&(dyn ToSql + Sync); 2] = [&self.cluster, &name];
        let rows = self.connections.query("load a player", LOAD_PLAYER, &key).await?;
        rows.first().map(player).transpose()
    }

    async fn player_held_by(&self, entity: EntityId) -> Result<Option<SavedPlayer>> {
        let entity = signed(entity.0);
        let key: [&(dyn ToSql + Sync); 2] = [&self.cluster, &entity];
        let rows = self.connections.query("find a held player", HELD_PLAYER, &key).await?;
        rows.first().map(player).transpose()
    }

    async fn highest_epoch(&self) -> Result<Epoch> {
        let asked = "read the highest epoch";
        let rows = self.connections.query(asked, HIGHEST_EPOCH, &[&self.cluster]).await?;
        rows.first().map_or(Ok(Epoch(0)), |row| Ok(Epoch(unsigned(row, 0)?)))
    }
}
