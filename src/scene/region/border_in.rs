//! Ghosts from the neighbours, as levels: a batch may come twice or be lost and the next full one
//! heals it.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::bodies::{Ghost, Role};
use super::settle::Progress;
use super::{PATIENCE, Region};
use crate::scene::border::{BorderBatch, GhostChange, GhostLeave, GhostState};
use crate::scene::effects::{Effect, Input};
use crate::scene::map::RegionEntry;
use crate::scene::{EntityId, Epoch, RegionId, Tick};

/// Ticks without a word after which a neighbour's ghosts expire, and for which a ghost is kept whose
/// new owner has not mirrored it yet.
const EXPIRY: u64 = 30;

/// Batches of one neighbour that wait for their tick; more mean that this region stands still.
const MAX_WAITING: usize = 32;

#[derive(Debug)]
pub struct Neighbour {
    pub id: RegionId,
    epoch: Epoch,
    /// Tick of the last batch received.
    pub last: Tick,
    pub progress: Progress,
    expired: bool,
    waiting: VecDeque<BorderBatch>,
}

/// What neighbours have sent.
#[derive(Debug)]
pub struct Inbound {
    pub neighbours: Vec<Neighbour>,
}

impl Inbound {
    /// Nothing was received yet.
    pub fn new(neighbours: &[RegionEntry]) -> Inbound {
        let neighbours = neighbours.iter().map(|r| Neighbour {
            id: r.id,
            epoch: r.epoch,
            last: Tick(0),
            progress: Progress::default(),
            expired: false,
            waiting: VecDeque::new(),
        });
        Inbound { neighbours: neighbours.collect() }
    }

    /// Keeps a batch until the tick whose state it is. What is late or from nobody's neighbour is
    /// dropped; a gap asks the sender for everything.
    pub fn keep(&mut self, batch: BorderBatch, me: RegionId, fx: &mut Vec<Effect>) {
        let Some(n) = self.neighbours.iter_mut().find(|n| n.id == batch.from) else { return };
        if batch.epoch < n.epoch || (batch.epoch == n.epoch && batch.tick <= n.last) {
            return;
        }
        let gap = batch.prev != n.last && !batch.full;
        if gap || n.waiting.len() >= MAX_WAITING {
            fx.push(Effect::Forward(n.id, Box::new(Input::BorderLost(me))));
        }
        if n.waiting.len() >= MAX_WAITING {
            n.waiting.pop_front();
        }
        n.epoch = batch.epoch;
        n.last = batch.tick;
        n.expired = false;
        n.waiting.push_back(batch);
    }

    /// Whether the ghosts of `tick` are here from every neighbour that is heard of at all.
    pub fn complete(&self, tick: Tick) -> bool {
        self.neighbours.iter().all(|n| n.last >= tick || n.last.0 + PATIENCE < tick.0)
    }
}

impl Region {
    /// Makes the ghosts those of this tick.
    pub(super) fn apply_borders(&mut self) {
        for i in 0..self.inbound.neighbours.len() {
            while let Some(batch) = self.next_batch(i) {
                self.apply_batch(batch);
            }
            let n = &mut self.inbound.neighbours[i];
            if n.last.0 + EXPIRY < self.tick.0 && !n.expired {
                n.expired = true;
                let id = n.id;
                self.drop_ghosts(|_, ghost| ghost.owner == id);
            }
        }
        let now = self.tick.0 as u32;
        let lost = |since: u32| since + EXPIRY as u32 <= now;
        if self.tick.0.is_multiple_of(EXPIRY) {
            self.drop_ghosts(|_, ghost| ghost.orphan_since.is_some_and(lost));
        }
    }

    fn next_batch(&mut self, neighbour: usize) -> Option<BorderBatch> {
        let waiting = &mut self.inbound.neighbours[neighbour].waiting;
        if waiting.front()?.tick <= self.tick { waiting.pop_front() } else { None }
    }

    fn apply_batch(&mut self, batch: BorderBatch) {
        let from = batch.from;
        for leave in &batch.leaves {
            self.ghost_leaves(from, leave);
        }
        if batch.full {
            let all: FxHashSet<EntityId> = batch.enters.iter().map(|g| g.id).collect();
            self.drop_ghosts(|id, g| {
                g.owner == from && g.orphan_since.is_none() && !all.contains(&id)
            });
        }
        for state in batch.enters {
            self.ghost_enters(from, state);
        }
        for change in &batch.changes {
            self.ghost_changes(from, change);
        }
        for (id, payload) in batch.acts {
            if let Some(slot) = self.bodies.slot(id).filter(|s| !self.is_real(*s)) {
                self.note_act(slot, payload);
            }
        }
    }

    fn ghost_enters(&mut self, from: RegionId, state: GhostState) {
        if !self.bodies.has_kind(state.kind) {
            tracing::warn!(region = %self.id, %from, entity = %state.id, kind = %state.kind, "a ghost of a kind that the scene does not have");
            return;
        }
        let role = Role::Ghost(Ghost { owner: from, orphan_since: None });
        let now = self.tick.0 as u32;
        let slot = match self.bodies.slot(state.id) {
            None => self.bodies.add(
                state.id,
                state.kind,
                state.plane,
                state.pos,
                state.range,
                state.look,
                state.bonds,
                state.epoch,
                role,
            ),
            Some(slot) => {
                let cold = &mut self.bodies.cold[slot as usize];
                if matches!(cold.role, Role::Real(_)) || state.epoch < cold.epoch {
                    return;
                }
                (cold.role, cold.epoch, cold.look) = (role, state.epoch, state.look);
                self.bodies.set_plane(slot, state.plane);
                self.bodies.set_pos(slot, state.pos);
                self.bodies.set_traits(slot, state.range, state.bonds);
                slot
            }
        };
        self.bodies.hot[slot as usize].changed = now;
        self.bodies.hot[slot as usize].thr = state.thr;
    }

    fn ghost_changes(&mut self, from: RegionId, change: &GhostChange) {
        let Some(slot) = self.bodies.slot(change.id) else { return };
        let cold = &self.bodies.cold[slot as usize];
        let Role::Ghost(ghost) = &cold.role else { return };
        if ghost.owner != from || change.epoch < cold.epoch {
            return;
        }
        if self.bodies.hot[slot as usize].pos != change.pos {
            self.bodies.set_pos(slot, change.pos);
            self.bodies.hot[slot as usize].changed = self.tick.0 as u32;
        }
        self.bodies.hot[slot as usize].thr = change.thr;
    }

    fn ghost_leaves(&mut self, from: RegionId, leave: &GhostLeave) {
        let Some(slot) = self.bodies.slot(leave.id) else { return };
        let cold = &mut self.bodies.cold[slot as usize];
        let Role::Ghost(ghost) = &mut cold.role else { return };
        // A new owner's word counts even before the old one has signed off.
        let newer = leave.epoch > cold.epoch;
        if !newer && (ghost.owner != from || leave.epoch < cold.epoch) {
            return;
        }
        match leave.next {
            None => {
                self.moved.insert(leave.id, (from, self.tick));
                self.bodies.remove(slot);
            }
            Some(next) => {
                ghost.owner = next;
                cold.epoch = leave.epoch.next();
                ghost.orphan_since = Some(self.tick.0 as u32);
            }
        }
    }

    fn drop_ghosts(&mut self, which: impl Fn(EntityId, &Ghost) -> bool) {
        for slot in 0..self.bodies.hot.len() as u32 {
            let id = self.bodies.hot[slot as usize].id;
            let Role::Ghost(ghost) = &self.bodies.cold[slot as usize].role else { continue };
            if which(id, ghost) {
                self.moved.insert(id, (ghost.owner, self.tick));
                self.bodies.remove(slot);
            }
        }
    }
}
