//! Ghosts for the neighbours: one batch for each of them and tick.

use std::collections::VecDeque;

use super::Region;
use super::bodies::{Bodies, Real, Role, TAG_BONDED};
use super::snapshot::SavedOutbound;
use crate::scene::border::{BorderBatch, GhostChange, GhostLeave, GhostState};
use crate::scene::effects::Effect;
use crate::scene::map::RegionEntry;
use crate::scene::{Plane, Rect, RegionId, Tick, TickStamp};

/// For how long a full batch repeats that ghosts have left: after that those whom nobody mirrors have
/// expired.
const REPEATED_TICKS: u64 = 40;

#[derive(Debug)]
struct Neighbour {
    id: RegionId,
    rect: Rect,
    needs_all: bool,
    last: Tick,
    leaves: Vec<GhostLeave>,
    /// Leaves of late and when they were said. A full batch repeats them: it names who is mirrored,
    /// which says nothing of a ghost that the neighbour has from an entity's old owner.
    said: VecDeque<(Tick, GhostLeave)>,
}

/// What neighbours were sent.
#[derive(Debug)]
pub struct Outbound {
    neighbours: Vec<Neighbour>,
}

impl Outbound {
    /// Nothing was sent yet. At most 32 neighbours can be told apart; a legal band, no wider than the
    /// smallest region, makes at most 16 of regions whose sides differ by less than a factor of four.
    pub fn new(neighbours: &[RegionEntry]) -> Outbound {
        let neighbours = neighbours.iter().take(32).map(|r| Neighbour {
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
    pub(super) fn save(&self) -> Vec<SavedOutbound> {
        let saved = self.neighbours.iter().map(|n| SavedOutbound {
            id: n.id,
            needs_all: n.needs_all,
            last: n.last,
            leaves: n.leaves.clone(),
            said: n.said.iter().copied().collect(),
        });
        saved.collect()
    }

    /// Goes on from a snapshot; a neighbour that is not in it needs everything.
    pub(super) fn restore(&mut self, saved: Vec<SavedOutbound>) {
        for saved in saved {
            let Some(n) = self.neighbours.iter_mut().find(|n| n.id == saved.id) else { continue };
            (n.needs_all, n.last, n.leaves) = (saved.needs_all, saved.last, saved.leaves);
            n.said = saved.said.into();
        }
    }

    /// The bits of the snapshot's neighbours as they are here.
    pub(super) fn mirrors(&self, saved: &[SavedOutbound], bits: u32) -> u32 {
        let here = |id: RegionId| self.neighbours.iter().position(|n| n.id == id);
        let set = saved.iter().enumerate().filter(|(i, _)| bits >> *i & 1 == 1);
        set.filter_map(|(_, n)| here(n.id)).fold(0, |bits, i| bits | 1 << i)
    }

    /// Other neighbours from now on; those that stay are sent what has changed. Gives the new bits of old
    /// ones.
    pub(super) fn rearrange(&mut self, neighbours: &[RegionEntry]) -> impl Fn(u32) -> u32 + use<> {
        let mut old = std::mem::replace(self, Outbound::new(neighbours)).neighbours;
        let place = |n: &Neighbour| self.neighbours.iter().position(|m| m.id == n.id);
        let places: Vec<Option<usize>> = old.iter().map(place).collect();
        for n in &mut self.neighbours {
            if let Some(at) = old.iter().position(|m| m.id == n.id) {
                let rect = n.rect;
                *n = Neighbour { rect, ..old.swap_remove(at) };
            }
        }
        move |bits| {
            let set = places.iter().enumerate().filter(|(i, _)| bits >> *i & 1 == 1);
            set.filter_map(|(_, place)| *place).fold(0, |bits, i| bits | 1 << i)
        }
    }

    /// Whether there is anybody to mirror to.
    pub fn is_alone(&self) -> bool {
        self.neighbours.is_empty()
    }
}

impl Region {
    /// Neighbours that mirror the entity at `slot` will be told that it leaves, and for where.
    pub(super) fn sign_off(&mut self, slot: u32, next: Option<RegionId>) {
        let (id, epoch) =
            (self.bodies.hot[slot as usize].id, self.bodies.cold[slot as usize].epoch);
        let mirrors = self.bodies.real_mut(slot).map_or(0, |r| std::mem::take(&mut r.mirrors));
        for (i, n) in self.outbound.neighbours.iter_mut().enumerate() {
            if mirrors >> i & 1 == 1 {
                n.leaves.push(GhostLeave { id, epoch, next });
            }
        }
    }

    /// Sends each neighbour its ghosts of this tick.
    pub(super) fn send_borders(&mut self, fx: &mut Vec<Effect>) {
        if self.outbound.is_alone() {
            return;
        }
        let mut batches: Vec<BorderBatch> = self
            .outbound
            .neighbours
            .iter_mut()
            .map(|n| BorderBatch {
                from: self.id,
                epoch: self.epoch,
                lineage: self.lineage,
                tick: self.tick,
                prev: n.last,
                full: n.needs_all,
                enters: Vec::new(),
                changes: Vec::new(),
                leaves: std::mem::take(&mut n.leaves),
                acts: Vec::new(),
            })
            .collect();
        let inner = self.rect.grown(-self.scene.bonded_band_cm);
        for slot in 0..self.bodies.hot.len() as u32 {
            // Most are ghosts, where regions are small: of these no more than this is looked at.
            let body = &self.bodies.hot[slot as usize];
            if !body.is_real() {
                debug_assert!(!matches!(self.bodies.cold[slot as usize].role, Role::Real(_)));
                continue;
            }
            let Role::Real(real) = &mut self.bodies.cold[slot as usize].role else { continue };
            if inner.contains(body.pos) && real.mirrors == 0 {
                continue;
            }
            let mut real = std::mem::take(real);
            self.mirror(slot, &mut real, &mut batches);
            self.bodies.cold[slot as usize].role = Role::Real(real);
        }
        for act in self.acts.iter().filter(|a| a.here && self.bodies.slot(a.id) == Some(a.slot)) {
            let Role::Real(real) = &self.bodies.cold[act.slot as usize].role else { continue };
            for (i, batch) in batches.iter_mut().enumerate() {
                if real.mirrors >> i & 1 == 1 {
                    batch.acts.push((act.id, act.deed.clone()));
                }
            }
        }
        for (n, mut batch) in self.outbound.neighbours.iter_mut().zip(batches) {
            while n
                .said
                .front()
                .is_some_and(|(said, _)| said.0.saturating_add(REPEATED_TICKS) <= self.tick.0)
            {
                n.said.pop_front();
            }
            n.said.extend(batch.leaves.iter().map(|leave| (self.tick, *leave)));
            if batch.full {
                batch.leaves = n.said.iter().map(|(_, leave)| *leave).collect();
            }
            n.needs_all = false;
            n.last = self.tick;
            fx.push(Effect::Border(n.id, Box::new(batch)));
        }
    }

    /// Sends a neighbour that has none of them all ghosts of the tick that is open.
    pub(super) fn send_border_again(&mut self, to: RegionId, fx: &mut Vec<Effect>) {
        let Some(i) = self.outbound.neighbours.iter().position(|n| n.id == to) else { return };
        let mut batch = BorderBatch {
            from: self.id,
            epoch: self.epoch,
            lineage: self.lineage,
            tick: self.tick,
            prev: self.tick,
            full: true,
            enters: Vec::new(),
            changes: Vec::new(),
            leaves: self.outbound.neighbours[i].said.iter().map(|(_, leave)| *leave).collect(),
            acts: Vec::new(),
        };
        let rect = self.outbound.neighbours[i].rect;
        for slot in 0..self.bodies.hot.len() as u32 {
            let (pos, band) = (self.bodies.hot[slot as usize].pos, self.band_of(slot));
            let near = self.bodies.cold[slot as usize].plane != Plane::LIMBO
                && rect.outside_by(pos) <= band;
            let Some(real) = self.bodies.real_mut(slot) else { continue };
            if near {
                real.mirrors |= 1 << i;
                batch.enters.push(state_of(&self.bodies, slot));
            } else {
                real.mirrors &= !(1 << i);
            }
        }
        for act in self.acts.iter().filter(|a| a.here && self.bodies.slot(a.id) == Some(a.slot)) {
            let Role::Real(real) = &self.bodies.cold[act.slot as usize].role else { continue };
            if real.mirrors >> i & 1 == 1 {
                batch.acts.push((act.id, act.deed.clone()));
            }
        }
        let n = &mut self.outbound.neighbours[i];
        (n.needs_all, n.last) = (false, self.tick);
        fx.push(Effect::Border(to, Box::new(batch)));
    }

    /// How far from a neighbour's ground the entity at `slot` is mirrored to it.
    pub(super) fn band_of(&self, slot: u32) -> i32 {
        let bonded = self.bodies.places[slot as usize].tag & TAG_BONDED != 0;
        if bonded { self.scene.bonded_band_cm } else { self.scene.band_cm }
    }

    fn mirror(&self, slot: u32, real: &mut Real, batches: &mut [BorderBatch]) {
        let body = &self.bodies.hot[slot as usize];
        let cold = &self.bodies.cold[slot as usize];
        let band = self.band_of(slot);
        let changed = body.changed == TickStamp::of(self.tick) || body.thr != real.thr_told;
        for (i, (n, batch)) in self.outbound.neighbours.iter().zip(batches).enumerate() {
            let bit = 1 << i;
            let near = cold.plane != Plane::LIMBO && n.rect.outside_by(body.pos) <= band;
            let mirrored = real.mirrors & bit != 0;
            if near && (!mirrored || batch.full || real.restate) {
                real.mirrors |= bit;
                batch.enters.push(state_of(&self.bodies, slot));
            } else if near && changed {
                let (id, epoch, pos, thr) = (body.id, cold.epoch, body.pos, body.thr);
                let course = self.bodies.tracks.get(slot).map(|t| t.course);
                batch.changes.push(GhostChange { id, epoch, pos, course, thr });
            } else if !near && mirrored {
                real.mirrors &= !bit;
                batch.leaves.push(GhostLeave { id: body.id, epoch: cold.epoch, next: None });
            }
        }
        real.restate = false;
        real.thr_told = body.thr;
    }
}

/// Everything that neighbours are told of who is at `slot`.
pub(super) fn state_of(bodies: &Bodies, slot: u32) -> GhostState {
    let (body, cold) = (&bodies.hot[slot as usize], &bodies.cold[slot as usize]);
    GhostState {
        id: body.id,
        epoch: cold.epoch,
        kind: body.kind,
        plane: cold.plane,
        pos: body.pos,
        course: bodies.tracks.get(slot).map(|t| t.course),
        range: bodies.places[slot as usize].range(),
        look: cold.look.clone(),
        ties: cold.ties.clone(),
        thr: body.thr,
    }
}
