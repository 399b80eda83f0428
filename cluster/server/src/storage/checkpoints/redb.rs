//! Checkpoints of a single machine: one file, synced to disk with every save.

mod whole;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::RwLock;
use purview::scene::{EntityId, Epoch, Tick};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::{
    Checkpoints, PlayerClaim, PlayerClaimed, PlayersSaved, Result, Saved, SavedPlayer,
    SavedSnapshots, Snapshot, check_claim, check_number, check_player, check_players, check_state,
    newest_of_each,
};
use crate::storage::{CheckpointError, RegionKey};

/// The file's name below `data_dir`.
pub const FILE: &str = "checkpoints.redb";

/// Region name to epoch, tick and state.
type States = TableDefinition<'static, &'static str, (u64, u64, &'static [u8])>;

const NEWEST: States = TableDefinition::new("newest");
const PREVIOUS: States = TableDefinition::new("previous");

/// Region name to the highest epoch whose owner has claimed the region.
const CLAIMED: TableDefinition<'static, &str, u64> = TableDefinition::new("claimed");

/// Snapshots that were set aside, by region name, `#`, epoch and tick.
const ASIDE: States = TableDefinition::new("set_aside");

/// Player name to epoch, clock, holder (0: none) and record.
type Players = TableDefinition<'static, &'static str, (u64, u64, u64, &'static [u8])>;

const PLAYERS: Players = TableDefinition::new("players");

/// Entity to the name of the player whose record it holds.
const HELD: TableDefinition<'static, u64, &str> = TableDefinition::new("held_players");

const COUNTS: TableDefinition<'static, &str, u64> = TableDefinition::new("counts");

/// The number of processes that have used the file.
const RUNS: &str = "runs";

/// Checkpoints in one file. Clones share it.
#[derive(Debug, Clone)]
pub struct Redb {
    /// None once the file is closed.
    database: Arc<RwLock<Option<Database>>>,
    path: PathBuf,
}

impl Redb {
    /// Opens or creates `data_dir/checkpoints.redb`. Blocks.
    ///
    /// # Errors
    /// [`CheckpointError::Refused`]: the folder is not writable, or another process uses the file;
    /// [`CheckpointError::BadData`]: the file is damaged, or is not a checkpoint file.
    pub fn open(data_dir: &Path) -> Result<Redb> {
        let path = data_dir.join(FILE);
        std::fs::create_dir_all(data_dir).map_err(|e| refused(&path, "create its folder", &e))?;
        let database = Database::create(&path).map_err(|e| opening(&path, &e))?;
        let redb = Redb { database: Arc::new(RwLock::new(Some(database))), path };
        // Create every table now, so that later reads find them.
        redb.write("create its tables", |txn| {
            txn.open_table(NEWEST)?;
            txn.open_table(PREVIOUS)?;
            txn.open_table(CLAIMED)?;
            txn.open_table(ASIDE)?;
            txn.open_table(PLAYERS)?;
            txn.open_table(HELD)?;
            txn.open_table(COUNTS)?;
            txn.open_table(whole::CLUSTER)?;
            txn.open_table(whole::LAYOUTS)?;
            Ok(())
        })?;
        Ok(redb)
    }

    /// Counts one more process that uses the file and returns its number, from 1. Blocks.
    pub fn count_run(&self) -> Result<u64> {
        self.write("count a run", |txn| {
            let mut counts = txn.open_table(COUNTS)?;
            let run = counts.get(RUNS)?.map_or(0, |found| found.value()).saturating_add(1);
            counts.insert(RUNS, run)?;
            Ok(run)
        })
    }

    /// Closes the file, for all clones, when what runs on it has ended: another process may open it. Blocks.
    pub fn close(&self) {
        self.database.write().take();
    }

    /// Runs an operation on the open file.
    fn on<T>(
        &self,
        asked: &'static str,
        f: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T> {
        let database = self.database.read();
        match &*database {
            Some(database) => f(database).map_err(|e| failed(&self.path, asked, &e)),
            None => Err(refused(&self.path, asked, &"it is closed")),
        }
    }

    fn write<T>(
        &self,
        asked: &'static str,
        f: impl FnOnce(&redb::WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T> {
        self.on(asked, |database| {
            let txn = database.begin_write()?;
            let done = f(&txn)?;
            txn.commit()?;
            Ok(done)
        })
    }

    /// Writes on a thread for blocking work.
    async fn change<T: Send + 'static>(
        &self,
        asked: &'static str,
        f: impl FnOnce(&redb::WriteTransaction) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T> {
        self.blocking(asked, move |redb| redb.write(asked, f)).await
    }

    /// Reads on a thread for blocking work.
    async fn look<T: Send + 'static>(
        &self,
        asked: &'static str,
        f: impl FnOnce(&redb::ReadTransaction) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T> {
        let read = move |redb: &Redb| redb.on(asked, |database| f(&database.begin_read()?));
        self.blocking(asked, read).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        asked: &'static str,
        f: impl FnOnce(&Redb) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let redb = self.clone();
        let done = tokio::task::spawn_blocking(move || f(&redb)).await;
        done.unwrap_or_else(|e| Err(unreachable(&self.path, asked, &e)))
    }
}

fn opening(path: &Path, error: &redb::DatabaseError) -> CheckpointError {
    use redb::DatabaseError as E;
    match error {
        E::DatabaseAlreadyOpen => refused(path, "open it", &"another process uses it"),
        E::RepairAborted | E::UpgradeRequired(_) => bad(path, error),
        E::Storage(redb::StorageError::Corrupted(_)) => bad(path, error),
        // The file is not a database.
        E::Storage(redb::StorageError::Io(e)) if e.kind() == std::io::ErrorKind::InvalidData => {
            bad(path, error)
        }
        _ => refused(path, "open it", error),
    }
}

fn failed(path: &Path, asked: &'static str, error: &redb::Error) -> CheckpointError {
    match error {
        redb::Error::Corrupted(_) => bad(path, error),
        _ => refused(path, asked, error),
    }
}

fn bad(path: &Path, error: &dyn std::fmt::Display) -> CheckpointError {
    CheckpointError::BadData { key: path.display().to_string(), rule: error.to_string() }
}

fn refused(path: &Path, asked: &'static str, cause: &dyn std::fmt::Display) -> CheckpointError {
    let (store, cause) = (path.display().to_string(), cause.to_string());
    CheckpointError::Refused { store, asked, cause }
}

fn unreachable(path: &Path, asked: &'static str, cause: &dyn std::fmt::Display) -> CheckpointError {
    let (store, cause) = (path.display().to_string(), cause.to_string());
    CheckpointError::Unreachable { store, asked, cause }
}

#[async_trait]
impl Checkpoints for Redb {
    async fn save(&self, key: &RegionKey, epoch: Epoch, tick: Tick, state: Bytes) -> Result<Saved> {
        check_state(key, epoch, tick, &state)?;
        let key = key.to_string();
        self.change("save a region", move |txn| save(txn, &key, epoch, tick, &state)).await
    }

    async fn claim(&self, key: &RegionKey, epoch: Epoch) -> Result<SavedSnapshots> {
        check_claim(key, epoch)?;
        let name = key.to_string();
        self.change("claim a region", move |txn| claim(txn, &name, epoch)).await?;
        self.load(key).await
    }

    async fn load(&self, key: &RegionKey) -> Result<SavedSnapshots> {
        let key = key.to_string();
        self.look("load a region", move |txn| {
            let snapshot = |table| -> Result<Option<Snapshot>, redb::Error> {
                Ok(txn.open_table(table)?.get(key.as_str())?.map(|found| {
                    let (epoch, tick, state) = found.value();
                    let state = Bytes::copy_from_slice(state);
                    Snapshot { epoch: Epoch(epoch), tick: Tick(tick), state }
                }))
            };
            Ok(SavedSnapshots { newest: snapshot(NEWEST)?, previous: snapshot(PREVIOUS)? })
        })
        .await
    }

    async fn set_aside(&self, key: &RegionKey) -> Result<u64> {
        let key = key.to_string();
        self.change("set a region's snapshots aside", move |txn| set_aside(txn, &key)).await
    }

    async fn regions(&self) -> Result<Vec<RegionKey>> {
        let names = self.look("list regions", |txn| {
            let table = txn.open_table(NEWEST)?;
            let names = table.iter()?.map(|entry| Ok(entry?.0.value().to_owned()));
            names.collect::<Result<Vec<String>, redb::Error>>()
        });
        let keys = names.await?.into_iter().map(|name| name.parse());
        let keys: Result<Vec<_>, crate::storage::LeaseError> = keys.collect();
        let mut keys = keys.map_err(|e| bad(&self.path, &e))?;
        keys.sort();
        Ok(keys)
    }

    async fn save_players(&self, players: Vec<SavedPlayer>) -> Result<PlayersSaved> {
        check_players(&players)?;
        self.change("save players", move |txn| save_players(txn, players)).await
    }

    async fn claim_player(&self, name: &str, claim: PlayerClaim) -> Result<PlayerClaimed> {
        check_player(name)?;
        check_number("a player's entity", claim.entity.0)?;
        let name = name.to_owned();
        self.change("claim a player", move |txn| claim_player(txn, name, claim)).await
    }

    async fn load_player(&self, name: &str) -> Result<Option<SavedPlayer>> {
        check_player(name)?;
        let name = name.to_owned();
        self.look("load a player", move |txn| player(&txn.open_table(PLAYERS)?, &name)).await
    }

    async fn player_held_by(&self, entity: EntityId) -> Result<Option<SavedPlayer>> {
        self.look("find a held player", move |txn| {
            let held = txn.open_table(HELD)?.get(entity.0)?.map(|name| name.value().to_owned());
            held.map_or(Ok(None), |name| player(&txn.open_table(PLAYERS)?, &name))
        })
        .await
    }

    async fn highest_epoch(&self) -> Result<Epoch> {
        self.look("read the highest epoch", move |txn| {
            let mut highest = 0;
            for table in [NEWEST, ASIDE] {
                for entry in txn.open_table(table)?.iter()? {
                    highest = highest.max(entry?.1.value().0);
                }
            }
            for entry in txn.open_table(CLAIMED)?.iter()? {
                highest = highest.max(entry?.1.value());
            }
            Ok(Epoch(highest))
        })
        .await
    }
}

fn claim(txn: &redb::WriteTransaction, key: &str, epoch: Epoch) -> Result<(), redb::Error> {
    let mut claimed = txn.open_table(CLAIMED)?;
    let now = claimed.get(key)?.map_or(0, |found| found.value());
    claimed.insert(key, now.max(epoch.0))?;
    Ok(())
}

fn save(
    txn: &redb::WriteTransaction,
    key: &str,
    epoch: Epoch,
    tick: Tick,
    state: &[u8],
) -> Result<Saved, redb::Error> {
    let claimed = txn.open_table(CLAIMED)?.get(key)?.map_or(0, |found| found.value());
    if claimed > epoch.0 {
        return Ok(Saved::Fenced { by: Epoch(claimed), tick: Tick(0) });
    }
    let mut newest = txn.open_table(NEWEST)?;
    let now = newest.get(key)?.map(|found| {
        let (epoch, tick, _) = found.value();
        (Epoch(epoch), Tick(tick))
    });
    match now {
        Some((by, at)) if (by, at) > (epoch, tick) => return Ok(Saved::Fenced { by, tick: at }),
        Some(same) if same == (epoch, tick) => return Ok(Saved::Ok),
        _ => {}
    }
    if let Some(before) = newest.insert(key, (epoch.0, tick.0, state))? {
        txn.open_table(PREVIOUS)?.insert(key, before.value())?;
    }
    Ok(Saved::Ok)
}

fn set_aside(txn: &redb::WriteTransaction, key: &str) -> Result<u64, redb::Error> {
    let (mut aside, mut moved) = (txn.open_table(ASIDE)?, 0);
    for table in [NEWEST, PREVIOUS] {
        if let Some(kept) = txn.open_table(table)?.remove(key)? {
            let (epoch, tick, state) = kept.value();
            aside.insert(format!("{key}#{epoch}.{tick}").as_str(), (epoch, tick, state))?;
            moved += 1;
        }
    }
    Ok(moved)
}

/// A row of the table of players.
fn record(name: &str, (epoch, clock, holder, place): (u64, u64, u64, &[u8])) -> SavedPlayer {
    SavedPlayer {
        name: name.to_owned(),
        epoch: Epoch(epoch),
        clock,
        holder: (holder > 0).then_some(EntityId(holder)),
        place: Bytes::copy_from_slice(place),
    }
}

type Row = (u64, u64, u64, &'static [u8]);

fn player(
    table: &impl ReadableTable<&'static str, Row>,
    name: &str,
) -> Result<Option<SavedPlayer>, redb::Error> {
    Ok(table.get(name)?.map(|found| record(name, found.value())))
}

fn put(
    txn: &redb::WriteTransaction,
    before: Option<EntityId>,
    new: &SavedPlayer,
) -> Result<(), redb::Error> {
    let holder = new.holder.map_or(0, |holder| holder.0);
    let row = (new.epoch.0, new.clock, holder, &*new.place);
    txn.open_table(PLAYERS)?.insert(new.name.as_str(), row)?;
    if before != new.holder {
        let mut held = txn.open_table(HELD)?;
        if let Some(before) = before {
            held.remove(before.0)?;
        }
        if let Some(holder) = new.holder {
            held.insert(holder.0, new.name.as_str())?;
        }
    }
    Ok(())
}

fn save_players(
    txn: &redb::WriteTransaction,
    players: Vec<SavedPlayer>,
) -> Result<PlayersSaved, redb::Error> {
    let mut saved = PlayersSaved::default();
    for new in newest_of_each(players) {
        let now = player(&txn.open_table(PLAYERS)?, &new.name)?;
        if now.as_ref().is_some_and(|now| now.age() > new.age()) {
            saved.fenced += 1;
        } else {
            put(txn, now.and_then(|now| now.holder), &new)?;
            saved.kept += 1;
        }
    }
    Ok(saved)
}

fn claim_player(
    txn: &redb::WriteTransaction,
    name: String,
    claim: PlayerClaim,
) -> Result<PlayerClaimed, redb::Error> {
    let now = player(&txn.open_table(PLAYERS)?, &name)?.unwrap_or_else(|| SavedPlayer::new(name));
    if !claim.may_follow(now.holder) {
        return Ok(PlayerClaimed::No(now));
    }
    let before = now.holder;
    let claimed = now.claimed_by(claim.entity);
    put(txn, before, &claimed)?;
    Ok(PlayerClaimed::Yes(claimed))
}
