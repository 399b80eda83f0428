//! One player's state for one peer, split into what every tick reads and what only messages need.

use crate::scene::views::NO_BOND;
use crate::scene::{EntityId, TickStamp};

/// My YES stands.
const SAID: u8 = 1;
/// The peer's YES stands.
const WANTED: u8 = 2;
/// The peer said NO last and owes the next YES.
const THEIR_TURN: u8 = 4;
/// The client is shown the peer.
const SHOWN: u8 = 8;
/// The two were linked when the tick began.
const KEPT: u8 = 16;

/// What every tick reads for a pair, seen from one end. Sixty of these per player pass through the
/// processor's cache each tick, so they are small, which a test checks. [`YesIds`] has the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The peer's slot in this region, as last known.
    pub slot: u32,
    /// Ground distance at the last evaluation, centimetres.
    pub dist_cm: u32,
    /// Tick of the last update of the peer that the client was sent.
    pub sent: TickStamp,
    /// Bond class of the pair; 255 = none.
    pub class: u8,
    /// Ring in which the peer was at the last evaluation.
    pub ring: u8,
    /// Properties that the client misses: see [`PeerState::withheld`](crate::scene::views::PeerState::withheld).
    pub withheld: u8,
    flags: u8,
}

impl Peer {
    /// A peer without any message so far.
    pub(super) fn new(slot: u32) -> Peer {
        let sent = TickStamp::default();
        Peer { slot, dist_cm: 0, sent, class: NO_BOND, ring: 0, withheld: 0, flags: 0 }
    }

    /// My YES stands: a link or a request.
    #[inline]
    pub fn said(&self) -> bool {
        self.flags & SAID != 0
    }

    /// The peer's YES stands.
    #[inline]
    pub fn wanted(&self) -> bool {
        self.flags & WANTED != 0
    }

    /// The peer said NO last and owes the next YES.
    #[inline]
    pub fn their_turn(&self) -> bool {
        self.flags & THEIR_TURN != 0
    }

    /// Whether the client is shown the peer.
    #[inline]
    pub fn shown(&self) -> bool {
        self.flags & SHOWN != 0
    }

    /// The two were linked when the tick began. Unlike a link, this does not change within the
    /// tick, so that the keys of a tick stay equal while they are compared.
    #[inline]
    pub fn kept(&self) -> bool {
        self.flags & KEPT != 0
    }

    /// Both YESes stand: an entry of the view list.
    #[inline]
    pub fn linked(&self) -> bool {
        self.flags & (SAID | WANTED) == SAID | WANTED
    }

    /// Asked, without an answer yet.
    #[inline]
    pub fn asked(&self) -> bool {
        self.flags & (SAID | WANTED) == SAID
    }

    /// A YES of either side stands.
    #[inline]
    pub fn stands(&self) -> bool {
        self.flags & (SAID | WANTED) != 0
    }

    /// The entry carries no information and can be dropped.
    #[inline]
    pub fn is_blank(&self) -> bool {
        self.flags == 0
    }

    /// Records whether the client is shown the peer.
    #[inline]
    pub fn set_shown(&mut self, shown: bool) {
        self.set(SHOWN, shown);
    }

    pub(super) fn set_said(&mut self, said: bool) {
        self.set(SAID, said);
    }

    pub(super) fn set_wanted(&mut self, wanted: bool) {
        self.set(WANTED, wanted);
    }

    pub(super) fn set_their_turn(&mut self, their_turn: bool) {
        self.set(THEIR_TURN, their_turn);
    }

    /// Marks the peer as linked at the start of the tick if it is linked now.
    #[inline]
    pub(super) fn keep_link(&mut self) {
        self.set(KEPT, self.linked());
    }

    #[inline]
    fn set(&mut self, flag: u8, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }
}

/// What only messages need: the peer's id and the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YesIds {
    /// The peer.
    pub id: EntityId,
    /// Number of my standing YES; 0 = none.
    pub my_yes: u32,
    /// Highest YES number seen from the peer.
    pub seen: u32,
}

/// The receiver of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addressee {
    /// The player.
    pub id: EntityId,
    /// The player's slot, as last known.
    pub slot: u32,
}
