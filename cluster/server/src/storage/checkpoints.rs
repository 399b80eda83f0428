//! Snapshots of regions and the records of players: the trait [`Checkpoints`] over every
//! store, and the limits that every store has in common. A region must never be restored from a
//! snapshot older than the newest saved one.

pub mod player_records;
pub mod postgres;
pub mod redb;
pub mod whole;
pub(crate) mod writer;

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
pub use purview::actor::player_store::ClaimOver;
use purview::scene::{EntityId, Epoch, Tick};

use super::{CheckpointError, RegionKey};
use whole::Whole;

pub type Result<T, E = CheckpointError> = std::result::Result<T, E>;

/// Largest snapshot of a region, bytes.
pub const STATE_MAX: usize = 64 << 20;

/// Largest record of a player, in bytes.
pub const POSITION_MAX: usize = 64 << 10;

/// Longest name of a player, in bytes.
pub const PLAYER_NAME_MAX: usize = 255;

/// Most players in one request.
pub const PLAYERS_MAX: usize = 10_000;

#[async_trait]
pub trait Checkpoints: Whole {
    /// Saves the snapshot of a region and keeps the one before it. A snapshot that is older than
    /// the saved one (by epoch, then by tick) never replaces it, nor does one of an epoch before the
    /// last claim; saving the same snapshot again changes nothing. `state` has at most 64 MiB.
    /// A fenced snapshot is not an error.
    async fn save(&self, key: &RegionKey, epoch: Epoch, tick: Tick, state: Bytes) -> Result<Saved>;

    /// Claims a region's snapshots for the owner of an epoch, and reads them. From then on no
    /// snapshot of an earlier epoch is saved, so that an owner that has lost its lease without
    /// knowing cannot replace what the next owner goes on from. A claim of an earlier epoch changes
    /// nothing.
    /// A missing snapshot is not an error.
    async fn claim(&self, key: &RegionKey, epoch: Epoch) -> Result<SavedSnapshots>;

    /// The newest snapshot of a region and the previous one.
    /// A missing snapshot is not an error.
    async fn load(&self, key: &RegionKey) -> Result<SavedSnapshots>;

    /// Sets all snapshots of a region aside: they are no longer loaded, but their bytes stay in the
    /// store for inspection. Returns the number of snapshots.
    /// A missing snapshot is not an error.
    async fn set_aside(&self, key: &RegionKey) -> Result<u64>;

    /// The regions that have a snapshot, in order.
    async fn regions(&self) -> Result<Vec<RegionKey>>;

    /// Saves the records of players, all or none of them. A record older than the saved one of its
    /// player ([`SavedPlayer::age`]) is skipped; of several records of one player the newest
    /// counts. At most 10,000 at a time.
    async fn save_players(&self, players: Vec<SavedPlayer>) -> Result<PlayersSaved>;

    /// Reads a player's record and claims it for an entity, in one step. The claim raises the
    /// record's epoch, so that no record of an earlier claim is saved afterwards.
    /// A record that another entity holds is not an error.
    async fn claim_player(&self, name: &str, claim: PlayerClaim) -> Result<PlayerClaimed>;

    /// The record of a player.
    /// A missing record is not an error.
    async fn load_player(&self, name: &str) -> Result<Option<SavedPlayer>>;

    /// The record that an entity holds.
    /// A missing record is not an error.
    async fn player_held_by(&self, entity: EntityId) -> Result<Option<SavedPlayer>>;

    /// The highest epoch of all snapshots and claims, 0 without any. A new lease store must grant
    /// higher ones.
    async fn highest_epoch(&self) -> Result<Epoch>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    Ok,
    /// A newer snapshot is saved already, or a later owner has claimed the region. Nothing changed.
    Fenced {
        /// The epoch of the newer snapshot, or of the claim.
        by: Epoch,
        /// The tick of the newer snapshot; 0 for a claim.
        tick: Tick,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlayersSaved {
    pub kept: usize,
    pub fenced: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SavedSnapshots {
    pub newest: Option<Snapshot>,
    pub previous: Option<Snapshot>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub epoch: Epoch,
    /// The tick at whose end the snapshot was taken.
    pub tick: Tick,
    pub state: Bytes,
}

/// What is stored of a player under its name: its last position and its persistent properties.
///
/// ```text
///               claim by E                      E has left, and its last state is saved
///   free ------------------------> held by E ------------------------------------------> free
///                                     | claim by F, when E is known to be gone: held by F
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedPlayer {
    /// The player's name, 1 to 255 bytes.
    pub name: String,
    /// The number of the claim under which the record was saved. It grows with each claim; it is
    /// not a region's epoch.
    pub epoch: Epoch,
    /// The cluster's clock when the record was true, in milliseconds; 0 where nothing was saved
    /// since the claim.
    pub clock: u64,
    /// The entity that plays the player, and whose state is newer than the record.
    pub holder: Option<EntityId>,
    /// The encoded position and properties, at most 64 KiB; empty where nothing was saved yet.
    pub place: Bytes,
}

impl SavedPlayer {
    /// The record of a player of whom nothing is stored.
    pub fn new(name: String) -> SavedPlayer {
        SavedPlayer { name, epoch: Epoch(0), clock: 0, holder: None, place: Bytes::new() }
    }

    /// The order of the records of one player. Of two records of one time the one that says that
    /// its entity has left is the later one.
    pub fn age(&self) -> (u64, u64, bool) {
        (self.epoch.0, self.clock, self.holder.is_none())
    }

    pub fn claimed_by(self, entity: EntityId) -> SavedPlayer {
        let clock = if self.holder == Some(entity) { self.clock } else { 0 };
        SavedPlayer { epoch: Epoch(self.epoch.0 + 1), clock, holder: Some(entity), ..self }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlayerClaim {
    /// The entity that is to hold the record.
    pub entity: EntityId,
    /// Whose claim may end.
    pub over: ClaimOver,
}

impl PlayerClaim {
    /// Whether the claim may follow a record with this holder.
    pub fn may_follow(self, holder: Option<EntityId>) -> bool {
        match (self.over, holder) {
            (ClaimOver::Itself, None) => false,
            (ClaimOver::Anybody, _) | (_, None) => true,
            (ClaimOver::Gone(gone), Some(holder)) => holder == gone || holder == self.entity,
            (ClaimOver::Nobody | ClaimOver::Itself, Some(holder)) => holder == self.entity,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlayerClaimed {
    /// The record is the entity's; the record as it is now.
    Yes(SavedPlayer),
    /// The claim does not follow: the record as it stays. Nothing changed.
    No(SavedPlayer),
}

pub fn check_state(key: &RegionKey, epoch: Epoch, tick: Tick, state: &[u8]) -> Result<()> {
    check_claim(key, epoch)?;
    check_number("a region's tick", tick.0)?;
    check_size(&format!("the snapshot of region {key}"), state.len(), STATE_MAX)
}

pub fn check_claim(key: &RegionKey, epoch: Epoch) -> Result<()> {
    check_name("a scene's name", &key.scene, super::leases::names::NAME_MAX)?;
    check_number("a region's epoch", epoch.0)
}

pub fn check_players(players: &[SavedPlayer]) -> Result<()> {
    if players.len() > PLAYERS_MAX {
        let found = format!("{} players", players.len());
        let rule = format!("must be at most {PLAYERS_MAX} at a time");
        return Err(illegal("a batch of players", found, rule));
    }
    for SavedPlayer { name, epoch, clock, holder, place } in players {
        check_player(name)?;
        check_number("a player's epoch", epoch.0)?;
        check_number("a player's clock", *clock)?;
        check_number("a player's entity", holder.map_or(0, |holder| holder.0))?;
        check_size(&format!("the record of player {name:?}"), place.len(), POSITION_MAX)?;
    }
    Ok(())
}

pub fn check_player(name: &str) -> Result<()> {
    check_name("a player's name", name, PLAYER_NAME_MAX)
}

/// The newest record of each player, ordered by name; among equals the last one.
pub fn newest_of_each(players: Vec<SavedPlayer>) -> Vec<SavedPlayer> {
    // Usual case: the writer of records sends them sorted.
    if players.is_sorted_by(|a, b| a.name < b.name) {
        return players;
    }
    let mut newest: BTreeMap<String, SavedPlayer> = BTreeMap::new();
    for player in players {
        if newest.get(&player.name).is_none_or(|now| now.age() <= player.age()) {
            newest.insert(player.name.clone(), player);
        }
    }
    newest.into_values().collect()
}

pub(crate) fn check_name(what: &str, name: &str, max: usize) -> Result<()> {
    let rule = if !(1..=max).contains(&name.len()) {
        format!("must have 1 to {max} bytes")
    } else if name.contains('\0') {
        "must have no zero byte".into()
    } else {
        return Ok(());
    };
    Err(illegal(what, format!("{} bytes", name.len()), rule))
}

pub(crate) fn check_size(what: &str, size: usize, max: usize) -> Result<()> {
    if size <= max {
        return Ok(());
    }
    Err(illegal(what, format!("{size} bytes"), format!("must have at most {max} bytes")))
}

/// Refuses a number above `i64::MAX`, the largest one that a database can store.
pub(crate) fn check_number(what: &str, number: u64) -> Result<()> {
    let max = i64::MAX;
    if i64::try_from(number).is_ok() {
        return Ok(());
    }
    Err(illegal(what, number.to_string(), format!("must be at most {max}")))
}

fn illegal(what: &str, found: String, rule: String) -> CheckpointError {
    CheckpointError::Illegal { what: what.into(), found, rule }
}
