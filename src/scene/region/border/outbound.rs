//! What neighbours were sent: which of them miss something, and which leaves a full batch repeats.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::scene::layout::RegionEntry;
use crate::scene::messages::{BorderBatch, GhostLeave};
use crate::scene::region::identity::Identity;
use crate::scene::{Rect, RegionId, Tick};

/// For how long a full batch repeats that ghosts have left: after that ghosts without an owner have expired.
const REPEATED_TICKS: u64 = 40;

/// What a neighbour was sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Mirror {
    pub(super) id: RegionId,
    #[serde(skip)]
    pub(super) rect: Rect,
    pub(super) needs_all: bool,
    pub(super) last: Tick,
    pub(super) leaves: Vec<GhostLeave>,
    /// Recent leaves and when they were sent. A full batch repeats them: it names the mirrored
    /// entities, which says nothing of a ghost that the neighbour has from an entity's old owner.
    pub(super) said: VecDeque<(Tick, GhostLeave)>,
}

/// What neighbours were sent.
#[derive(Debug)]
pub struct Outbound {
    pub(super) neighbours: Vec<Mirror>,
}

impl Outbound {
    /// Nothing was sent yet. At most 32 neighbours can be told apart; a legal band, no wider than the
    /// smallest region, makes at most 16 of regions whose sides differ by less than a factor of four.
    pub fn new(neighbours: &[RegionEntry]) -> Outbound {
        let neighbours = neighbours.iter().take(32).map(|r| Mirror {
            id: r.id,
            rect: r.rect,
            needs_all: true,
            last: Tick(0),
            leaves: Vec::new(),
            said: VecDeque::new(),
        });
        Outbound { neighbours: neighbours.collect() }
    }

    /// The neighbour missed something: its next batch is a full one.
    pub fn lost(&mut self, neighbour: RegionId) {
        for n in self.neighbours.iter_mut().filter(|n| n.id == neighbour) {
            n.needs_all = true;
        }
    }

    /// Which bit is a neighbour's; `None` when it is none, or one too many.
    pub fn bit_of(&self, neighbour: RegionId) -> Option<u32> {
        self.neighbours.iter().position(|n| n.id == neighbour).map(|bit| bit as u32)
    }

    /// All neighbours, a bit each.
    pub fn everybody(&self) -> u32 {
        ((1_u64 << self.neighbours.len()) - 1) as u32
    }

    /// What neighbours were sent, for a snapshot.
    pub fn save(&self) -> Vec<Mirror> {
        let saved = self.neighbours.iter();
        saved.map(|n| Mirror { rect: Rect::default(), ..n.clone() }).collect()
    }

    /// Goes on from a snapshot; a neighbour that is not in it needs everything.
    pub fn restore(&mut self, saved: Vec<Mirror>) {
        for saved in saved {
            if let Some(n) = self.neighbours.iter_mut().find(|n| n.id == saved.id) {
                *n = Mirror { rect: n.rect, ..saved };
            }
        }
    }

    /// The bits of the snapshot's neighbours as they are here.
    pub fn mirrors(&self, saved: &[Mirror], bits: u32) -> u32 {
        let here = |id: RegionId| self.neighbours.iter().position(|n| n.id == id);
        let set = saved.iter().enumerate().filter(|(i, _)| bits >> *i & 1 == 1);
        set.filter_map(|(_, n)| here(n.id)).fold(0, |bits, i| bits | 1 << i)
    }

    /// Other neighbours from now on; those that stay are sent what has changed. Gives the new bits of old
    /// ones.
    pub fn rearrange(&mut self, neighbours: &[RegionEntry]) -> impl Fn(u32) -> u32 + use<> {
        let mut old = std::mem::replace(self, Outbound::new(neighbours)).neighbours;
        let place = |n: &Mirror| self.neighbours.iter().position(|m| m.id == n.id);
        let places: Vec<Option<usize>> = old.iter().map(place).collect();
        for n in &mut self.neighbours {
            if let Some(at) = old.iter().position(|m| m.id == n.id) {
                let rect = n.rect;
                *n = Mirror { rect, ..old.swap_remove(at) };
            }
        }
        move |bits| {
            let set = places.iter().enumerate().filter(|(i, _)| bits >> *i & 1 == 1);
            set.filter_map(|(_, place)| *place).fold(0, |bits, i| bits | 1 << i)
        }
    }

    /// Whether there is any neighbour to mirror to.
    pub fn is_alone(&self) -> bool {
        self.neighbours.is_empty()
    }
}

impl Mirror {
    /// A batch for the neighbour, of a tick, with the leaves that it has not been told.
    pub(super) fn next_batch(&mut self, identity: &Identity, tick: Tick) -> BorderBatch {
        let leaves = std::mem::take(&mut self.leaves);
        empty_batch(identity, (tick, self.last), self.needs_all, leaves)
    }

    /// A batch of the open tick for a neighbour that has received nothing of it: it follows itself.
    pub(super) fn whole_batch(&self, identity: &Identity, tick: Tick) -> BorderBatch {
        let leaves = self.said.iter().map(|(_, leave)| *leave).collect();
        empty_batch(identity, (tick, tick), true, leaves)
    }

    /// The neighbour is sent a batch: later full batches repeat its leaves, as this one does those of before.
    pub(super) fn note_sent(&mut self, batch: &mut BorderBatch) {
        let tick = batch.tick;
        let old = |said: &(Tick, GhostLeave)| said.0.0.saturating_add(REPEATED_TICKS) <= tick.0;
        while self.said.front().is_some_and(old) {
            self.said.pop_front();
        }
        self.said.extend(batch.leaves.iter().map(|leave| (tick, *leave)));
        if batch.full {
            batch.leaves = self.said.iter().map(|(_, leave)| *leave).collect();
        }
        (self.needs_all, self.last) = (false, tick);
    }
}

fn empty_batch(
    identity: &Identity,
    (tick, prev): (Tick, Tick),
    full: bool,
    leaves: Vec<GhostLeave>,
) -> BorderBatch {
    let from = (identity.id(), identity.epoch(), identity.lineage());
    BorderBatch { full, leaves, ..BorderBatch::empty(from, (tick, prev)) }
}
