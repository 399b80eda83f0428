//! View lists: which of the players in range a player sees, symmetric and capped (DESIGN, "VIEWS").
//!
//! The region evaluates views, drives these registers and delivers their messages. Two things must
//! never happen: a list longer than the cap, and a link that only one side keeps at rest.
//!
//! For each other player that it negotiates with, a player keeps a few registers. `my_yes` is the
//! number of its own standing YES, `their_yes` the number of the other player's YES. A link, which
//! is an entry of the view list, exists where both stand. The side that said NO last owes the next
//! YES, so neither side waits for a message that never comes. A region forgets such a debt between two of
//! its own players, since it asks for both.
//!
//! ```text
//!                 ask / YES(n)                      YES arrives
//!   (nothing) ------------------> asked (my_yes) -----------------> linked (my_yes, their_yes)
//!       |  ^                        |     ^                          |        |
//!       |  |     NO(my_yes) arrives |     |                  refuse  |        | NO(my_yes) arrives
//!       |  |                        v     |             /NO(their_yes)        v
//!       |  |<-- out of range -- their_turn (to send the next YES) <--|-- their_turn
//!       |  |                                                         |
//!       |  +---------------------------------------------------------+
//!       +-- YES arrives, wanted / YES(n) --> linked    YES arrives, not wanted / NO --> (nothing)
//! ```
//!
//! Invariants: (V1) the two sides disagree on a link only while a message between them is in
//! flight; (V2) a player never has more links than the cap; (V3) a NO cancels only the YES that it
//! names; (V4) a disagreement lasts at most one one-way delay, or two if the asker withdraws its
//! YES. When a region crashes, and messages are lost with it, its neighbours say NO to all pairs
//! across that border as soon as they know, and negotiate anew. As a last resort standing YESes are
//! repeated now and then: a repetition changes nothing where nothing was lost, and repairs the
//! rest.
//!
//! At rest the links are *the* stable assignment. With a strict total order over pairs it is unique
//! and equals the greedy one: sort all pairs in range by bond, distance and ids; match while both
//! have room. Source: Gai, Lebedev, Mathieu et al., *Acyclic preference systems*, arXiv 0704.3904.

pub mod matcher;
mod named_bonds;
mod registers;
mod relations;
mod rules;
mod ties;

pub use named_bonds::{KeptBonds, MAX_KEPT, NamedBond};
pub use registers::{Addressee, NUMBERS_LEFT, NoEffect, Peer, Registers, YesIds};
pub use relations::{GroupRelation, MAX_RELATIONS, Relation, RelationClasses, Relations};
pub use rules::{Key, ViewRules};
pub use ties::{Bond, Fight, MAX_BONDS, NO_BOND, Ties};

use serde::{Deserialize, Serialize};

use super::{EntityId, Epoch, RegionId, Tick};

/// A message of the negotiation between two players.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewMsg {
    /// The player whose registers sent it.
    pub from: EntityId,
    /// The region that owns the sender.
    pub from_region: RegionId,
    /// Epoch of that region.
    pub from_epoch: Epoch,
    /// The player that it is for.
    pub to: EntityId,
    /// The content.
    pub say: ViewMsgBody,
}

/// The body of a view message: what one player tells another (DESIGN, "VIEWS").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViewMsgBody {
    /// I want you on my list; numbered by the sender's counter.
    Yes(u32),
    /// My YES of this number stands. Sent now and then, and to a player that seems to have
    /// forgotten it. Changes nothing where nothing was lost.
    Again(u32),
    /// I do not want you on my list.
    No {
        /// The NO cancels the receiver's YES of this number (0: none) and no newer one.
        echo: u32,
        /// The sender's counter: its own YESes up to this number are withdrawn. This orders a NO
        /// that took a longer way, through an old owner, before a YES that overtook it.
        at: u32,
    },
}

/// The registers of one peer, as they travel in a handoff.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerState {
    /// The peer.
    pub id: EntityId,
    /// Number of my YES; 0 = none.
    pub my_yes: u32,
    /// Number of the peer's YES; 0 = none.
    pub their_yes: u32,
    /// Highest YES number seen from the peer.
    pub seen: u32,
    /// The peer said NO last and owes the next YES.
    pub their_turn: bool,
    /// Whether the client is shown the peer.
    pub shown: bool,
    /// Tick of the last update of the peer that the client was sent.
    pub sent: Tick,
    /// The peer's epoch as the sending region knew it; 0: unknown. What was said to an earlier life
    /// of the peer no longer counts.
    pub epoch: Epoch,
    /// The farthest ring in which a change of a property of the peer was withheld from the client,
    /// since the property is not told that far; 0: none was; above the rings: for another reason.
    pub withheld: u8,
}
