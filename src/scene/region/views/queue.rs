//! View messages on their way: what other regions said, what players of this region say to each other, and what is
//! for players of other regions.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::ViewEngine;
use crate::scene::region::entities::Renumbering;
use crate::scene::views::{Addressee, Key, ViewMsg, ViewMsgBody};
use crate::scene::{EntityId, Epoch, RegionId, Tick};

/// Messages from other regions, and thresholds, that wait until they are read.
const MAX_QUEUED: usize = 65_536;

/// A message between two players that are both known here.
#[derive(Debug, Clone, Copy)]
pub struct LocalMessage {
    pub(super) from: u32,
    pub(super) to: u32,
    /// The entity in slot `to` when the message was written; the slot may be another's since.
    pub(super) to_id: EntityId,
    pub(super) say: ViewMsgBody,
}

impl LocalMessage {
    pub fn new(from: u32, to: Addressee, say: ViewMsgBody) -> LocalMessage {
        LocalMessage { from, to: to.slot, to_id: to.id, say }
    }
}

/// Messages of the view negotiation that wait here, in a snapshot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SavedViewQueue {
    pub incoming: Vec<ViewMsg>,
    pub early: Vec<(Tick, ViewMsg)>,
    pub thresholds: Vec<(EntityId, u64)>,
    /// For players of these regions.
    pub unsent: Vec<(RegionId, ViewMsg)>,
}

/// What was known of a ghost before its threshold was predicted.
#[derive(Debug, Clone, Copy)]
pub struct Assumed {
    /// Its threshold, as it was told last.
    pub(super) published: u64,
    /// A pair of the rank of the predicted threshold was refused in its name, by a tie that its owner may see
    /// otherwise.
    pub(super) tied: bool,
}

/// Messages on their way.
#[derive(Debug, Default)]
pub struct ViewQueue {
    /// From other regions, not yet handled.
    pub(super) incoming: Vec<ViewMsg>,
    /// From other regions, for a player that is not known here: the player may be on its way. With the tick
    /// in which each came.
    pub(super) early: Vec<(Tick, ViewMsg)>,
    /// Thresholds of players of other regions, not yet handled.
    pub(super) thresholds: Vec<(EntityId, u64)>,
    pub(super) local: VecDeque<LocalMessage>,
    /// For players of other regions.
    pub(super) outgoing: Vec<LocalMessage>,
    /// For players that are not mirrored here any more: from, to.
    pub(super) undeliverable: Vec<(EntityId, EntityId, ViewMsgBody)>,
    /// Players that have lost a link or a request.
    pub(super) dirty: Vec<u32>,
    /// Players that the matcher must look at again, with their thresholds at that time: their registers have changed
    /// since the pass, or they are ghosts and accept others.
    pub(super) changed: Vec<(u32, Key)>,
    /// A player, a ghost that may take it now, and the rank of the two.
    pub(super) proposed: Vec<(u32, u32, u64)>,
    /// Players that have kept a place, in this tick, for a ghost that owes the next YES and likely says it.
    pub(super) expecting: Vec<u32>,
    /// Ghosts whose thresholds are as predicted, until their owners have told of this tick.
    pub(super) assumed: FxHashMap<u32, Assumed>,
    /// Players that go on from a checkpoint, or from where it was not known that they live, and know
    /// nothing of what was said to them.
    pub(super) new_incarnations: FxHashSet<EntityId>,
    /// How far players' bonds reach from the next tick on.
    pub(super) reaches: Vec<(u32, Option<u64>)>,
}

impl ViewQueue {
    /// Keeps a message from another region until it is read. Returns how many were lost: where
    /// [`MAX_QUEUED`] wait, since this region's tick does not end, it is said anew.
    #[must_use]
    pub fn enqueue(&mut self, msg: ViewMsg) -> u64 {
        let room = self.incoming.len() < MAX_QUEUED;
        if room {
            self.incoming.push(msg);
        }
        u64::from(!room)
    }

    /// Keeps thresholds of players of another region until they are read, the newest of each player. Returns how many
    /// were lost: a later one comes with the player's ghost.
    #[must_use]
    pub fn enqueue_thresholds(&mut self, thresholds: Vec<(EntityId, u64)>) -> u64 {
        self.thresholds.extend(thresholds);
        if self.thresholds.len() <= MAX_QUEUED {
            return 0;
        }
        let mut newest = FxHashSet::default();
        self.thresholds.reverse();
        self.thresholds.retain(|(id, _)| newest.insert(*id));
        let lost = self.thresholds.len().saturating_sub(MAX_QUEUED);
        self.thresholds.truncate(MAX_QUEUED);
        self.thresholds.reverse();
        lost as u64
    }

    /// Forgets what a repair would go out from: a pass looks at all players.
    pub fn forget_changes(&mut self) {
        self.changed.clear();
        self.proposed.clear();
    }

    /// Follows slots that were given out anew.
    pub fn renumber(&mut self, new: &Renumbering) {
        for message in self.local.iter_mut().chain(&mut self.outgoing) {
            new.apply(&mut message.from);
            new.apply(&mut message.to);
        }
        self.dirty.iter_mut().for_each(|slot| new.apply(slot));
    }

    /// Whether anything is to be said to players of other regions.
    pub fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty() || !self.undeliverable.is_empty()
    }
}

impl ViewEngine {
    /// Copies of all messages that still have to be handled here, or to be sent to other regions.
    /// `id` names the entity in a slot.
    pub fn waiting(
        &self,
        (from_region, from_epoch): (RegionId, Epoch),
        id: impl Fn(u32) -> Option<EntityId>,
    ) -> Vec<ViewMsg> {
        let ViewQueue { incoming, early, local, outgoing, undeliverable, .. } = &self.queue;
        let received = incoming.iter().chain(early.iter().map(|(_, msg)| msg)).copied();
        let local = local.iter().chain(outgoing).map(|l| (id(l.from), l.to_id, l.say));
        let undeliverable = undeliverable.iter().map(|(from, to, say)| (Some(*from), *to, *say));
        let own = local.chain(undeliverable).filter_map(|(from, to, say)| {
            Some(ViewMsg { from: from?, from_region, from_epoch, to, say })
        });
        received.chain(own).collect()
    }

    /// View messages for a snapshot. Between ticks nothing is on its way inside.
    pub fn save_queue(&self) -> SavedViewQueue {
        let ViewQueue { incoming, early, thresholds, local, .. } = &self.queue;
        debug_assert!(local.is_empty(), "local messages are delivered at once");
        let (incoming, early, thresholds) = (incoming.clone(), early.clone(), thresholds.clone());
        SavedViewQueue { incoming, early, thresholds, unsent: Vec::new() }
    }

    /// The view messages of a snapshot.
    pub fn restore_queue(&mut self, saved: SavedViewQueue) {
        let queue = &mut self.queue;
        (queue.incoming, queue.early, queue.thresholds) =
            (saved.incoming, saved.early, saved.thresholds);
    }
}
