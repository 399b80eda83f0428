//! What one player keeps of another.

use crate::scene::views::NO_BOND;
use crate::scene::{EntityId, TickStamp};

/// I have said YES, and it stands.
const SAID: u8 = 1;
/// The other's YES stands.
const WANTED: u8 = 2;
/// The other said NO last and owes the next YES.
const OWED: u8 = 4;
/// The client is shown the other.
const SHOWN: u8 = 8;
/// The two were linked when the tick began.
const KEPT: u8 = 16;

/// What every tick looks at of a pair, seen from one end. Sixty of these per player go through the
/// processor's cache each tick, so they are small, which a test checks; [`Words`] has the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The other's slot in this region, as last known.
    pub slot: u32,
    /// Distance, centimetres, as of the last evaluation.
    pub dist_cm: u32,
    /// Tick of the last update that the client was sent of the other.
    pub sent: TickStamp,
    /// Bond class of the pair, 255 none.
    pub class: u8,
    /// Ring in which the other was at the last evaluation.
    pub ring: u8,
    flags: u8,
}

impl Peer {
    /// A peer with whom nothing was said yet.
    pub(super) fn new(slot: u32) -> Peer {
        Peer { slot, dist_cm: 0, sent: TickStamp::default(), class: NO_BOND, ring: 0, flags: 0 }
    }

    /// My YES stands: a link or a request.
    #[inline]
    pub fn said(&self) -> bool {
        self.flags & SAID != 0
    }

    /// The other's YES stands.
    #[inline]
    pub fn wanted(&self) -> bool {
        self.flags & WANTED != 0
    }

    /// The other said NO last and owes the next YES.
    #[inline]
    pub fn owed(&self) -> bool {
        self.flags & OWED != 0
    }

    /// Whether the client is shown the other.
    #[inline]
    pub fn shown(&self) -> bool {
        self.flags & SHOWN != 0
    }

    /// The two were linked when the tick began. Unlike a link it stays through the tick, so that the
    /// keys of a tick do not change while they are compared.
    #[inline]
    pub fn kept(&self) -> bool {
        self.flags & KEPT != 0
    }

    /// Both said YES: an entry of the view list.
    #[inline]
    pub fn linked(&self) -> bool {
        self.flags & (SAID | WANTED) == SAID | WANTED
    }

    /// Asked, no answer yet.
    #[inline]
    pub fn asked(&self) -> bool {
        self.flags & (SAID | WANTED) == SAID
    }

    /// Something was said that the other may count on.
    #[inline]
    pub fn stands(&self) -> bool {
        self.flags & (SAID | WANTED) != 0
    }

    /// Nothing here needs to be remembered.
    #[inline]
    pub fn is_blank(&self) -> bool {
        self.flags == 0
    }

    /// Notes whether the client is shown the other.
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

    pub(super) fn set_owed(&mut self, owed: bool) {
        self.set(OWED, owed);
    }

    /// Those linked now are the ones to keep.
    #[inline]
    pub(super) fn keep_link(&mut self) {
        self.set(KEPT, self.linked());
    }

    #[inline]
    fn set(&mut self, flag: u8, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }
}

/// What is needed of a pair only when something is said: who the other is, and the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// The other.
    pub id: EntityId,
    /// Number of my standing YES; 0 = none.
    pub mine: u32,
    /// The last YES number seen of the other.
    pub seen: u32,
}

/// Whom something is said to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addressee {
    /// Who.
    pub id: EntityId,
    /// Its slot, as last known.
    pub slot: u32,
}
