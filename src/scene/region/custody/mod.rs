//! Custody: which region an entity lives in while entities change regions, clients disconnect, and regions die.
//!
//! ```text
//!   handoff      an entity goes to, or comes from, another region
//!   escrow       what is remembered of entities that went and came, in case that a region dies
//!   departing    a player that has left is kept until its last state is stored
//!   disconnected a player stays for a grace period when its client is gone
//!   recovery     this region goes on from a checkpoint: its players are unclaimed until ...
//!   reclaim      ... a session presents its player
//!   spoiled      deliberate bugs of handoffs
//!   subjects     a player goes on for sessions of its own subject alone
//!   claims       regions tell each other which entities live where; the highest epoch counts
//!   repeated     what the owner that died has handed over in vain is handed over again
//! ```
//!
//! [`Custody`] is the part: what is known of entities that are not, or not quite, in the entity store. An entity that is
//! handed off is never in two stores as a real.

mod claims;
mod departing;
mod disconnected;
mod escrow;
mod handoff;
mod reclaim;
mod recovery;
mod repeated;
mod spoiled;
mod subjects;

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

pub use self::departing::Departing;
pub use self::escrow::{ESCROW_TICKS, Escrow};
pub use self::handoff::{MOVED_TICKS, Past};
pub use self::reclaim::counter;
use self::recovery::Recovering;
pub use self::recovery::Recovery;
use crate::scene::messages::Resume;
use crate::scene::messages::{Claim, Handoff};
use crate::scene::region::Region;
use crate::scene::region::waiting::Waiting;
use crate::scene::{EntityId, Epoch, RegionId, Tick};

/// Where an entity was last known to live that is not known here any more. What carries a lower
/// epoch is late; the region is this one when the entity is gone for good.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct HandedOn {
    pub region: RegionId,
    pub epoch: Epoch,
    pub since: Tick,
}

/// What the region knows of entities that come, have gone, or are not claimed.
#[derive(Debug, Default)]
pub struct Custody {
    /// Entities that have come and are not due yet.
    incoming: Waiting<Handoff>,
    moved: FxHashMap<EntityId, HandedOn>,
    /// Entities that other regions which go on from checkpoints believe to have and have asked about in vain, and the
    /// first tick since.
    unanswered: FxHashMap<EntityId, (Claim, Option<Tick>)>,
    /// Of regions that have died: since which of their epochs they are believed again.
    fences: FxHashMap<RegionId, Epoch>,
    /// Since which of their epochs others had their owners when this one went on from a checkpoint.
    owners: FxHashMap<RegionId, Epoch>,
    escrow: Escrow,
    /// While not all players are back that a checkpoint knew.
    recovering: Option<Box<Recovering>>,
    departing: Departing,
    /// Players whose clients are gone, and until when; players whose clients are back stay listed
    /// until then, too.
    disconnected: Vec<(Tick, EntityId)>,
    /// Sessions whose players were dropped here, since these live elsewhere under a higher epoch, and where.
    displaced: Vec<(RegionId, Resume)>,
    /// Regions to which no entity is handed over for now, since too much waits for them.
    held_back: BTreeSet<RegionId>,
    /// Players whom only their sessions knew, about which the other regions are to be asked.
    unasked: Vec<Claim>,
    /// Messages that were passed on in this tick to where entities live by now.
    passed_on: u32,
}

impl Custody {
    /// A tick begins: messages may be passed on again.
    pub fn begin_tick(&mut self) {
        self.passed_on = 0;
    }

    /// Entities that have come but are not installed yet.
    pub fn incoming(&self) -> impl Iterator<Item = &Handoff> {
        self.incoming.iter()
    }

    /// An entity that has come but is not installed yet.
    pub fn incoming_of(&self, id: EntityId) -> Option<&Handoff> {
        self.incoming.first_of(id)
    }

    /// Whether an entity has come but is not installed yet.
    pub fn is_incoming(&self, id: EntityId) -> bool {
        self.incoming.has(id)
    }

    /// Entities that have come cannot have lived in ticks after `latest`: they did in the one before `now`.
    pub fn forget_beyond(&mut self, latest: Tick, now: Tick) {
        for handoff in self.incoming.iter_mut().filter(|handoff| handoff.tick > latest) {
            handoff.tick = Tick(now.0.saturating_sub(1));
        }
    }

    /// Where an entity went that is not known here any more.
    pub fn moved(&self, id: EntityId) -> Option<&HandedOn> {
        self.moved.get(&id)
    }

    /// Whether it is known what became of an entity that was here.
    pub fn knows_moved(&self, id: EntityId) -> bool {
        self.moved.contains_key(&id)
    }

    /// Whether an entity was in the region `here`, which is this one, and has gone for good.
    pub fn has_left(&self, id: EntityId, here: RegionId) -> bool {
        self.moved.get(&id).is_some_and(|moved| moved.region == here)
    }

    /// An entity is not known here any more.
    pub fn note_moved(&mut self, id: EntityId, moved: HandedOn) {
        self.moved.insert(id, moved);
    }

    /// An entity leaves for good. A region that knows it by an old checkpoint may hand it here long after `moved` is
    /// forgotten.
    pub fn note_left(&mut self, id: EntityId, epoch: Epoch, here: RegionId, now: Tick) {
        self.moved.insert(id, HandedOn { region: here, epoch, since: now });
        self.escrow.note(now, id, epoch);
    }

    /// Players that have left and are not stored yet.
    pub fn departing(&self) -> &Departing {
        &self.departing
    }

    /// Whether the region came from a checkpoint and some of its players are still unclaimed.
    pub fn expects_players(&self) -> bool {
        self.recovering.is_some()
    }

    /// For a snapshot: entities that have moved, in order.
    pub fn save_moved(&self) -> Vec<(EntityId, HandedOn)> {
        let mut moved: Vec<_> = self.moved.iter().map(|(id, moved)| (*id, *moved)).collect();
        moved.sort_unstable_by_key(|(id, _)| *id);
        moved
    }

    /// For a snapshot: since which of their epochs dead regions are believed again, in order.
    pub fn save_fences(&self) -> Vec<(RegionId, Epoch)> {
        let mut fences: Vec<_> = self.fences.iter().map(|(id, epoch)| (*id, *epoch)).collect();
        fences.sort_unstable();
        fences
    }

    /// Entities that went and came of late.
    pub fn escrow(&self) -> &Escrow {
        &self.escrow
    }

    /// Since which of their epochs dead regions are believed again.
    pub fn fences(&self) -> &FxHashMap<RegionId, Epoch> {
        &self.fences
    }

    /// What a snapshot knows before anything of it is placed.
    pub fn begin(&mut self, fences: &[(RegionId, Epoch)], escrow: Escrow) {
        self.fences = fences.iter().copied().collect();
        self.escrow = escrow;
    }

    /// The entities of a snapshot that had moved, and those that were coming.
    pub fn restore(&mut self, moved: Vec<(EntityId, HandedOn)>, incoming: Vec<Handoff>) {
        self.moved = moved.into_iter().collect();
        self.incoming = incoming.into_iter().collect();
    }
}

/// Messages that may be passed on in one tick.
const MAX_PASSED_ON: u32 = 4_096;

impl Region {
    /// Whether one more message may be passed on in this tick to where an entity lives by now. Two regions each of which
    /// believes that it lives in the other, since both have died, would pass it to and fro for ever. Beyond it
    /// messages are lost: sessions and players say theirs again, the server's logic does not.
    pub(in crate::scene::region) fn may_pass_on(&mut self) -> bool {
        self.custody.passed_on += 1;
        if self.custody.passed_on == MAX_PASSED_ON {
            crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), "too many messages for entities that live elsewhere; further messages of this tick are dropped");
        }
        self.custody.passed_on < MAX_PASSED_ON
    }
}

impl Region {
    /// Forgets where entities went long ago, when no message for them can be under way any more.
    fn forget_moved(&mut self) {
        let now = self.clock.tick().0;
        self.custody.moved.retain(|_, m| m.since.0.saturating_add(MOVED_TICKS) > now);
        let old = |since: &mut Option<Tick>| {
            since.get_or_insert(self.clock.tick()).0.saturating_add(MOVED_TICKS) <= now
        };
        self.custody.unanswered.retain(|_, (_, since)| !old(since));
    }
}
