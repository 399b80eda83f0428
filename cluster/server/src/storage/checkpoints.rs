//! Snapshots of regions and players' last places, kept for when nobody else knows them.

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

/// Largest place of a player, bytes.
pub const PLACE_MAX: usize = 64 << 10;

/// Longest name of a player, bytes.
pub const PLAYER_NAME_MAX: usize = 255;

/// Most players of one request.
pub const PLAYERS_MAX: usize = 10_000;

/// Where checkpoints are kept.
pub trait Checkpoints: Whole {
    /// Keeps the snapshot of a region, and the one before it as the previous. What is older (by
    /// epoch, then by tick) than what is kept never replaces it; the same again changes nothing.
    /// `state` has at most 64 MiB.
    ///
    /// # Errors
    /// [`CheckpointError`]; that it is fenced is none.
    fn save<'a>(
        &'a self,
        key: &'a RegionKey,
        epoch: Epoch,
        tick: Tick,
        state: Bytes,
    ) -> BoxFuture<'a, Result<Saved, CheckpointError>>;

    /// The newest snapshot of a region and the one before.
    ///
    /// # Errors
    /// [`CheckpointError`]; that there is none is none.
    fn load<'a>(&'a self, key: &'a RegionKey) -> BoxFuture<'a, Result<Kept, CheckpointError>>;

    /// Sets everything aside that is kept of a region: it is loaded no more, and its bytes stay in the store for
    /// whoever looks into them. Gives how many snapshots.
    ///
    /// # Errors
    /// [`CheckpointError`]; that there is none is none.
    fn set_aside<'a>(&'a self, key: &'a RegionKey) -> BoxFuture<'a, Result<u64, CheckpointError>>;

    /// The regions of which a snapshot is kept, in order.
    ///
    /// # Errors
    /// [`CheckpointError`].
    fn regions(&self) -> BoxFuture<'_, Result<Vec<RegionKey>, CheckpointError>>;

    /// Keeps players' last places, all or none of them. What is older (by epoch, then by clock) than what is
    /// kept of that player is passed over; of two of one player the newer counts. At most 10,000 at a time.
    ///
    /// # Errors
    /// [`CheckpointError`].
    fn save_players(
        &self,
        places: Vec<PlayerPlace>,
    ) -> BoxFuture<'_, Result<PlayersSaved, CheckpointError>>;

    /// A player's last place.
    ///
    /// # Errors
    /// [`CheckpointError`]; that there is none is none.
    fn load_player<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<PlayerPlace>, CheckpointError>>;

    /// The highest epoch of any snapshot, 0 without one: a lease store that begins anew must grant
    /// higher ones.
    ///
    /// # Errors
    /// [`CheckpointError`].
    fn highest_epoch(&self) -> BoxFuture<'_, Result<Epoch, CheckpointError>>;
}

/// The answer to saving a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// It is kept.
    Ok,
    /// A newer one is kept. Nothing changed.
    Fenced {
        /// The epoch of the newer one.
        by: Epoch,
        /// Its tick.
        tick: Tick,
    },
}

/// The answer to saving players' places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlayersSaved {
    /// Of how many players a place is kept by this.
    pub kept: usize,
    /// Of how many a newer one was kept already.
    pub fenced: usize,
}

/// What is kept of a region.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    /// The newest snapshot.
    pub newest: Option<Snapshot>,
    /// The one before it.
    pub previous: Option<Snapshot>,
}

/// A snapshot of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The region's epoch.
    pub epoch: Epoch,
    /// The tick at whose end it was taken.
    pub tick: Tick,
    /// What was saved.
    pub state: Bytes,
}

/// A player's last place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayerPlace {
    /// The player's name, 1 to 255 bytes.
    pub name: String,
    /// The number of the session that told it, which grows along the player's life: not a region's epoch.
    pub epoch: Epoch,
    /// The cluster's clock when the player was there, milliseconds.
    pub clock: u64,
    /// What was saved, at most 64 KiB.
    pub place: Bytes,
}

impl PlayerPlace {
    /// By what places of one player are compared.
    pub fn age(&self) -> (u64, u64) {
        (self.epoch.0, self.clock)
    }
}

/// Refuses what no store can keep.
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

/// Refuses what no store can keep.
pub fn check_places(places: &[PlayerPlace]) -> Result<(), CheckpointError> {
    if places.len() > PLAYERS_MAX {
        let found = format!("{} players", places.len());
        let rule = format!("must be at most {PLAYERS_MAX} at a time");
        return Err(illegal("what is to be saved", found, rule));
    }
    for PlayerPlace { name, epoch, clock, place } in places {
        check_player(name)?;
        check_number("a player's epoch", epoch.0)?;
        check_number("a player's clock", *clock)?;
        check_size(&format!("the place of player {name:?}"), place.len(), PLACE_MAX)?;
    }
    Ok(())
}

/// Refuses names that no player has.
pub fn check_player(name: &str) -> Result<(), CheckpointError> {
    check_name("a player's name", name, PLAYER_NAME_MAX)
}

/// Of the places of each player the one that counts, ordered by name: the highest epoch and clock, and of
/// these the last.
pub fn newest_of_each(places: Vec<PlayerPlace>) -> Vec<PlayerPlace> {
    // As a book of last places tells them.
    if places.is_sorted_by(|a, b| a.name < b.name) {
        return places;
    }
    let mut newest: BTreeMap<String, PlayerPlace> = BTreeMap::new();
    for place in places {
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

/// Databases count to half of what we could.
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
