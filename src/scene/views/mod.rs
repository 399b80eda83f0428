//! View lists: whom a player sees of those in range, symmetric and capped (DESIGN, "VIEWS").
//!
//! Every player keeps, of each other player that it deals with, a few registers. `mine` is the
//! number of its own standing YES, `his` that of the other's; a link, an entry of the view list, is
//! where both stand. Whoever said NO last owes the next YES, so nobody waits for a message that will
//! not come.
//!
//! ```text
//!                 ask / YES(n)                     hear YES
//!   (nothing) ------------------> asked (mine) -----------------> linked (mine, his)
//!       |  ^                        |     ^                          |        |
//!       |  |          hear NO(mine) |     |                  refuse  |        | hear NO(mine)
//!       |  |                        v     |                  /NO(his)|        v
//!       |  |<-- out of range -- owed (he owes the next YES) <--------|-- owed
//!       |  |                                                         |
//!       |  +---------------------------------------------------------+
//!       +-- hear YES, wanted / YES(n) --> linked      hear YES, not wanted / NO --> (nothing)
//! ```
//!
//! Safe, step by step: (V1) the two sides disagree on a link only while a message between them is in
//! flight; (V2) never more links than the cap; (V3) a NO cancels only the YES that it names; (V4) a
//! disagreement lasts at most one one-way delay, two when the asker takes its YES back. Where a region
//! has crashed, and messages with it, its neighbours say NO to everybody across a border and begin
//! anew as soon as they hear of it. As a last resort what stands is said again now and then: that changes
//! nothing where nothing was lost, and mends the rest.
//!
//! At rest the links are *the* stable assignment: with a strict total order over pairs it is unique,
//! and equal to the greedy one (sort all pairs in range by bond, distance and ids; match while both
//! have room). See arXiv 0704.3904.

mod registers;
mod rules;
mod ties;

pub use registers::{Addressee, Heard, NUMBERS_LEFT, Peer, Registers, Tally, Words};
pub use rules::{Key, ViewRules};
pub use ties::{Bond, Fight, MAX_BONDS, NO_BOND, Ties};

use serde::{Deserialize, Serialize};

use super::{EntityId, Epoch, RegionId, Tick};

/// A message of the negotiation between two players.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewMsg {
    /// Whose registers sent it.
    pub from: EntityId,
    /// Where the sender lives.
    pub from_region: RegionId,
    /// That region's epoch.
    pub from_epoch: Epoch,
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
    /// My YES of this number stands. Said now and then, and to one who seems to have forgotten it: where nothing was
    /// lost it changes nothing.
    Again(u32),
    /// I do not.
    No {
        /// Cancels the other's YES of this number (0: none) and no newer one.
        echo: u32,
        /// The speaker's counter: the speaker's own YESes up to this number are withdrawn. Orders a
        /// NO that took a longer way, by an old owner, before the YES that overtook it.
        at: u32,
    },
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
    /// The other's epoch, as it was known where the registers come from; 0 where it was not. What was said
    /// to the other in a life before its present one counts no more.
    pub epoch: Epoch,
}
