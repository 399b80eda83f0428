//! Snapshots of regions and the last positions of players: the trait [`Checkpoints`] over every
//! store, and the limits that every store has in common. A region must never be restored from a
//! snapshot older than the newest saved one.

pub mod last_positions;
pub mod postgres;
pub mod redb;
pub mod whole;
pub(crate) mod writer;
use std::collections::BTreeMap;

use bytes::Bytes;
use futures::future::BoxFuture;
use purview::scene::{Epoch, Tick};

use super::{CheckpointError, RegionKey};
use whole::Whole;

/// Largest snapshot of a region, bytes.
pub const STATE_MAX: usize = 64 << 20;

/// Largest saved position of a player, in bytes.
pub const POSITION_MAX: usize = 64 << 10;

/// Longest name of a player, in bytes.
pub const PLAYER_NAME_MAX: usize = 255;

/// Most players in one request.
pub const PLAYERS_MAX: usize = 10_000;

/// A store of checkpoints.
pub trait Checkpoints: Whole {
    /// Saves the snapshot of a region and keeps the one before it. A snapshot that is older than
    /// the saved one (by epoch, then by tick) never replaces it; saving the same snapshot again
    /// changes nothing. `state` has at most 64 MiB.
    ///
    /// # Errors
    /// [`CheckpointError`]; a fenced snapshot is not an error.
    fn save<'a>(
        &'a self,
        key: &'a RegionKey,
        epoch: Epoch,
        tick: Tick,
        state: Bytes,
    ) -> BoxFuture<'a, Result<Saved, CheckpointError>>;

    /// The newest snapshot of a region and the previous one.
    ///
    /// # Errors
    /// [`CheckpointError`]; a missing snapshot is not an error.
    fn load<'a>(&'a self, key: &'a RegionKey) -> BoxFuture<'a, Result<Kept, CheckpointError>>;

    /// Sets all snapshots of a region aside: they are no longer loaded, but their bytes stay in the
    /// store for inspection. Returns the number of snapshots.
    ///
    /// # Errors
    /// [`CheckpointError`]; a missing snapshot is not an error.
    fn set_aside<'a>(&'a self, key: &'a RegionKey) -> BoxFuture<'a, Result<u64, CheckpointError>>;

    /// The regions that have a snapshot, in order.
    ///
    /// # Errors
    /// [`CheckpointError`].
    fn regions(&self) -> BoxFuture<'_, Result<Vec<RegionKey>, CheckpointError>>;

    /// Saves the last positions of players, all or none of them. A position older than the saved
    /// one of its player (by epoch, then by clock) is skipped; of several positions of one player
    /// the newest counts. At most 10,000 at a time.
    ///
    /// # Errors
    /// [`CheckpointError`].
    fn save_players(
        &self,
        last_positions: Vec<SavedPosition>,
    ) -> BoxFuture<'_, Result<PlayersSaved, CheckpointError>>;

    /// The last position of a player.
    ///
    /// # Errors
    /// [`CheckpointError`]; a missing position is not an error.
    fn load_player<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<SavedPosition>, CheckpointError>>;

    /// The highest epoch of all snapshots, 0 without any. A new lease store must grant higher ones.
    ///
    /// # Errors
    /// [`CheckpointError`].
    fn highest_epoch(&self) -> BoxFuture<'_, Result<Epoch, CheckpointError>>;
}

/// The answer to saving a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// The snapshot is saved.
    Ok,
    /// A newer snapshot is saved already. Nothing changed.
    Fenced {
        /// The epoch of the newer snapshot.
        by: Epoch,
        /// Its tick.
        tick: Tick,
    },
}

/// The answer to saving the positions of players.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlayersSaved {
    /// Players whose position was saved.
    pub kept: usize,
    /// Players with a newer position in the store.
    pub fenced: usize,
}

/// The saved snapshots of a region.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    /// The newest snapshot.
    pub newest: Option<Snapshot>,
    /// The previous snapshot.
    pub previous: Option<Snapshot>,
}

/// A snapshot of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The region's epoch.
    pub epoch: Epoch,
    /// The tick at whose end the snapshot was taken.
    pub tick: Tick,
    /// The encoded region.
    pub state: Bytes,
}

/// The last position of a player.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedPosition {
    /// The player's name, 1 to 255 bytes.
    pub name: String,
    /// The number of the session that reported the position. It grows with each session of the
    /// player; it is not a region's epoch.
    pub epoch: Epoch,
    /// The cluster's clock when the player was there, in milliseconds.
    pub clock: u64,
    /// The encoded position, at most 64 KiB.
    pub place: Bytes,
}

impl SavedPosition {
    /// The order of the positions of one player.
    pub fn age(&self) -> (u64, u64) {
        (self.epoch.0, self.clock)
    }
}

/// Refuses a snapshot that no store accepts.
pub fn check_state(
    key: &RegionKey,
    epoch: Epoch,
    tick: Tick,
    state: &[u8],
) -> Result<(), CheckpointError> {
    check_name("a scene's name", &key.scene, super::leases::names::NAME_MAX)?;
    check_number("a region's epoch", epoch.0)?;
    check_number("a region's tick", tick.0)?;
    check_size(&format!("the snapshot of region {key}"), state.len(), STATE_MAX)
}

/// Refuses positions that no store accepts.
pub fn check_positions(last_positions: &[SavedPosition]) -> Result<(), CheckpointError> {
    if last_positions.len() > PLAYERS_MAX {
        let found = format!("{} players", last_positions.len());
        let rule = format!("must be at most {PLAYERS_MAX} at a time");
        return Err(illegal("a batch of players", found, rule));
    }
    for SavedPosition { name, epoch, clock, place } in last_positions {
        check_player(name)?;
        check_number("a player's epoch", epoch.0)?;
        check_number("a player's clock", *clock)?;
        check_size(&format!("the place of player {name:?}"), place.len(), POSITION_MAX)?;
    }
    Ok(())
}

/// Refuses an illegal player name.
pub fn check_player(name: &str) -> Result<(), CheckpointError> {
    check_name("a player's name", name, PLAYER_NAME_MAX)
}

/// The newest position of each player, ordered by name: the one with the highest epoch and clock,
/// and among equals the last one.
pub fn newest_of_each(last_positions: Vec<SavedPosition>) -> Vec<SavedPosition> {
    // Usual case: the writer of last positions sends them sorted.
    if last_positions.is_sorted_by(|a, b| a.name < b.name) {
        return last_positions;
    }
    let mut newest: BTreeMap<String, SavedPosition> = BTreeMap::new();
    for place in last_positions {
        if newest.get(&place.name).is_none_or(|now| now.age() <= place.age()) {
            newest.insert(place.name.clone(), place);
        }
    }
    newest.into_values().collect()
}

pub(crate) fn check_name(what: &str, name: &str, max: usize) -> Result<(), CheckpointError> {
    let rule = if !(1..=max).contains(&name.len()) {
        format!("must have 1 to {max} bytes")
    } else if name.contains('\0') {
        "must have no zero byte".into()
    } else {
        return Ok(());
    };
    Err(illegal(what, format!("{} bytes", name.len()), rule))
}

pub(crate) fn check_size(what: &str, size: usize, max: usize) -> Result<(), CheckpointError> {
    if size <= max {
        return Ok(());
    }
    Err(illegal(what, format!("{size} bytes"), format!("must have at most {max} bytes")))
}

/// Refuses a number above `i64::MAX`, the largest one that a database can store.
pub(crate) fn check_number(what: &str, number: u64) -> Result<(), CheckpointError> {
    let max = i64::MAX;
    if i64::try_from(number).is_ok() {
        return Ok(());
    }
    Err(illegal(what, number.to_string(), format!("must be at most {max}")))
}

fn illegal(what: &str, found: String, rule: String) -> CheckpointError {
    CheckpointError::Illegal { what: what.into(), found, rule }
}
