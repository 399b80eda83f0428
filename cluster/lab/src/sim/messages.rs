//! The numbered messages of runs with `--logic messages`.

use purview::scene::messages::Recipients;
use purview::scene::views::NamedBond;
use purview::scene::{EntityId, RegionId, Tick};
use serde::{Deserialize, Serialize};

/// The number of bonds, which players share by their ids.
const BONDS: u64 = 4;

/// A region's logic, from its first tick to its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sender {
    /// The region.
    pub region: RegionId,
    /// Its epoch.
    pub epoch: u64,
    /// Its first tick.
    pub began: Tick,
}

/// For whom a message is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum To {
    /// One player.
    Player(EntityId),
    /// All in a group.
    Group(Recipients),
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Herald {
    /// Its sender.
    pub sender: Sender,
    /// How many the sender has sent before.
    pub number: u64,
    /// For whom it is.
    pub to: To,
}

impl Herald {
    /// Reads a message.
    pub fn read(payload: &[u8]) -> Option<Herald> {
        serde_json::from_slice(payload).ok()
    }

    /// The message as clients are told it.
    pub fn payload(&self) -> Vec<u8> {
        // Numbers and ids alone: they can be written.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The bond that the players of a subject have.
pub fn bond_of(subject: &str) -> NamedBond {
    group(subject.bytes().map(u64::from).sum())
}

/// One of the bonds.
pub fn group(number: u64) -> NamedBond {
    NamedBond::new("party", number % BONDS + 1)
}
