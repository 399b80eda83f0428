//! View lists.

use serde::{Deserialize, Serialize};

use super::{EntityId, RegionId, Tick};

/// A message of the negotiation between two players.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewMsg {
    /// Whose registers sent it.
    pub from: EntityId,
    /// Where the sender lives.
    pub from_region: RegionId,
    /// Whose registers it is for.
    pub to: EntityId,
    /// What it says.
    pub say: Say,
}

/// What a player says to another (DESIGN, "VIEWS").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Say {
    /// I want you in my list; numbered by the speaker's counter.
    Yes(u32),
    /// I do not; cancels the other's YES of that number (0: none) and no newer one.
    No(u32),
}

/// The registers that a player keeps of one other, as they travel in a handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerState {
    /// Who.
    pub id: EntityId,
    /// Number of my YES; 0 = none.
    pub mine: u32,
    /// Number of the other's YES; 0 = none.
    pub his: u32,
    /// The last YES number seen of the other.
    pub seen: u32,
    /// The other said NO last and owes the next YES.
    pub owed: bool,
    /// Whether the client is shown the other.
    pub shown: bool,
    /// The tick of the last update that the client was sent.
    pub sent: Tick,
}
