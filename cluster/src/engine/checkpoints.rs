//! Snapshots of regions and players' last places, kept for when nobody else knows them.

use bytes::Bytes;
use futures::future::BoxFuture;
use purview::scene::{Epoch, Tick};

use super::{CheckpointError, RegionKey};

/// Largest snapshot of a region, bytes.
pub const STATE_MAX: usize = 64 << 20;

/// Largest place of a player, bytes.
pub const PLACE_MAX: usize = 64 << 10;

/// Longest name of a player, bytes.
pub const PLAYER_NAME_MAX: usize = 255;

/// Most players of one request.
pub const PLAYERS_MAX: usize = 10_000;

/// Where checkpoints are kept.
pub trait Checkpoints: Send + Sync {
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

    /// The regions of which a snapshot is kept, in order.
    ///
    /// # Errors
    /// [`CheckpointError`].
    fn regions(&self) -> BoxFuture<'_, Result<Vec<RegionKey>, CheckpointError>>;

    /// Keeps players' last places, all or none of them. What has a lower epoch than what is kept of
    /// that player is passed over; of two of one name the later counts. At most 10,000 at a time.
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
    /// How many are kept.
    pub kept: usize,
    /// Of how many a newer place was kept already.
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
    /// Grows along the player's life, across regions and sessions: epochs of different regions do
    /// not compare, so it is not a region's.
    pub epoch: Epoch,
    /// What was saved, at most 64 KiB.
    pub place: Bytes,
}
