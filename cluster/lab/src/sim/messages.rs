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
    pub region: RegionId,
    pub epoch: u64,
    pub began: Tick,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum To {
    Player(EntityId),
    Group(Recipients),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Herald {
    pub sender: Sender,
    pub number: u64,
    pub to: To,
}

impl Herald {
    pub fn read(payload: &[u8]) -> Option<Herald> {
        serde_json::from_slice(payload).ok()
    }

    pub fn payload(&self) -> Vec<u8> {
        // Numbers and ids alone: they can be written.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

pub fn bond_of(subject: &str) -> NamedBond {
    group(subject.bytes().map(u64::from).sum())
}

pub fn group(number: u64) -> NamedBond {
    NamedBond::new("party", number % BONDS + 1)
}
