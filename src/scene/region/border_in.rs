//! Ghosts from the neighbours, as levels: a batch may come twice or be lost and the next full one
//! heals it.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::bodies::{Ghost, Role};
use super::settle::Progress;
use super::snapshot::SavedInbound;
use super::{Moved, PATIENCE, Region};
use crate::scene::border::{BorderBatch, Claim, GhostChange, GhostLeave, GhostState};
use crate::scene::effects::{Effect, Input};
use crate::scene::map::RegionEntry;
use crate::scene::mutants::{self, Mutant};
use crate::scene::{EntityId, Epoch, RegionId, Tick, TickStamp};

/// Ticks without a word after which a neighbour's ghosts expire, and for which a ghost is kept whose
/// new owner has not mirrored it yet.
pub const EXPIRY: u64 = 30;

/// Ticks between two searches for such ghosts.
const SWEEP: u64 = 10;

/// Batches of one neighbour that wait for their tick; more mean that this region stands still.
const MAX_WAITING: usize = 32;

#[derive(Debug)]
pub struct Neighbour {
    pub id: RegionId,
    /// What it says under a lower epoch is late.
    since: Epoch,
    /// The epoch of the last batch received.
    epoch: Epoch,
    /// Its lineage in the last batch that was applied.
    lineage: Epoch,
    /// Tick of the last batch received.
    pub last: Tick,
    pub progress: Progress,
    /// Tick up to which everything that it sent was applied, without a gap.
    sound: Tick,
    expired: bool,
    /// It says no more until the region map has changed.
    ended: bool,
    /// It was no neighbour before; what lineage it has is no news.
    is_new: bool,
    /// Nothing whole has come from it since this region goes on from a checkpoint, or since it is a neighbour: one that
    /// has gone by a new map before this region has said what it has when nobody heard it.
    blank: bool,
    /// After which tick the map has changed, until it has said what it has by the new one.
    changed: Option<Tick>,
    waiting: VecDeque<BorderBatch>,
}

impl Neighbour {
    fn new(entry: &RegionEntry) -> Neighbour {
        Neighbour {
            id: entry.id,
            since: entry.epoch,
            epoch: entry.epoch,
            lineage: entry.epoch,
            last: Tick(0),
            progress: Progress::default(),
            sound: Tick(0),
            expired: false,
            ended: false,
            is_new: false,
            blank: false,
            changed: None,
            waiting: VecDeque::new(),
        }
    }

    /// What it says of thresholds while it settles a tick is newer than what it has said of them in that tick and before,
    /// which may wait still: this region may be behind it.
    pub fn supersede_thrs(&mut self, tick: Tick, thrs: &[(EntityId, u64)]) {
        if thrs.is_empty() || mutants::has(Mutant::ThresholdOutdated) {
            return;
        }
        for batch in self.waiting.iter_mut().filter(|batch| batch.tick <= tick) {
            let enters = batch.enters.iter_mut().map(|state| (state.id, &mut state.thr));
            let changes = batch.changes.iter_mut().map(|change| (change.id, &mut change.thr));
            for (id, waiting) in enters.chain(changes) {
                if let Some((_, thr)) = thrs.iter().rev().find(|(of, _)| *of == id) {
                    *waiting = *thr;
                }
            }
        }
    }

    /// Nothing that it has said counts, nor when it was said: it is asked for everything.
    pub fn forget_ticks(&mut self) {
        (self.last, self.sound, self.blank) = (Tick(0), Tick(0), true);
        self.progress = Progress::default();
        self.waiting.clear();
    }

    /// Whether it settles this tick.
    pub fn settles(&self, tick: Tick) -> bool {
        self.last == tick && !self.ended
    }
}

/// What neighbours have sent.
#[derive(Debug)]
pub struct Inbound {
    pub neighbours: Vec<Neighbour>,
    /// When ghosts without an owner's word were last looked for.
    pub(super) swept: Tick,
    /// Regions that have crashed, or may have: what was said by way of them may be lost.
    pub(super) crashed: Vec<RegionId>,
}

impl Inbound {
    /// Nothing was received yet.
    pub fn new(neighbours: &[RegionEntry]) -> Inbound {
        let neighbours = neighbours.iter().map(Neighbour::new);
        Inbound { neighbours: neighbours.collect(), swept: Tick(0), crashed: Vec::new() }
    }

    /// Whether a region is a neighbour.
    pub fn knows(&self, region: RegionId) -> bool {
        self.neighbours.iter().any(|n| n.id == region)
    }

    /// A neighbour says no more until the region map has changed.
    pub(super) fn has_ended(&mut self, region: RegionId) {
        self.neighbours.iter_mut().filter(|n| n.id == region).for_each(|n| n.ended = true);
    }

    /// Other neighbours from now on, by a map that counts after this tick. Those that are new are waited
    /// for like the others.
    pub(super) fn rearrange(&mut self, neighbours: &[RegionEntry], after: Tick) {
        let mut old = std::mem::take(&mut self.neighbours);
        let neighbour = |r: &RegionEntry| match old.iter().position(|n| n.id == r.id) {
            Some(at) => Neighbour { ended: false, ..old.swap_remove(at) },
            None => {
                let new = Neighbour::new(r);
                let blank = !mutants::has(Mutant::AheadUnheard);
                Neighbour { last: after, sound: after, is_new: true, blank, ..new }
            }
        };
        self.neighbours = neighbours.iter().map(neighbour).collect();
        self.neighbours.iter_mut().for_each(|n| n.changed = Some(after));
    }

    /// Keeps a batch until the tick whose state it is. What is late or from nobody's neighbour is
    /// dropped; a gap asks the sender for everything. Says whether it was of a region that was
    /// another's already.
    pub fn keep(&mut self, mut batch: BorderBatch, me: RegionId, fx: &mut Vec<Effect>) -> bool {
        let Some(n) = self.neighbours.iter_mut().find(|n| n.id == batch.from) else { return false };
        if batch.epoch < n.since && !mutants::has(Mutant::AnyEpoch) {
            return true;
        }
        // An owner that goes on from a checkpoint may be behind the one that has died, or is none any more.
        let same = batch.epoch == n.epoch || mutants::has(Mutant::BehindUnheard);
        let known = same && batch.tick <= n.last;
        if known && !(n.blank && batch.full && batch.tick == n.last) {
            return false;
        }
        if known {
            // Everything of a tick of which only the changes were known.
            let before = n.waiting.len();
            n.waiting.retain(|waiting| waiting.tick < batch.tick);
            if n.waiting.len() == before {
                batch.acts.clear();
            }
        }
        // Of a neighbour whose ghosts have expired, changes alone say nothing; nor do those of one that was put together anew.
        let before = n.waiting.back().map_or(n.lineage, |before| before.lineage);
        let anew = batch.lineage > before && !n.is_new && !mutants::has(Mutant::BehindUnheard);
        let gap = (batch.prev != n.last || n.expired || n.blank || anew) && !batch.full;
        // The question may have been lost before there was a connection: it is asked again once a second.
        let next = n.waiting.front().unwrap_or(&batch);
        let unanswered = next.prev > n.sound && !n.waiting.iter().any(|waiting| waiting.full);
        let gap = gap || (unanswered && !batch.full && batch.tick.0.is_multiple_of(PATIENCE));
        if (gap || n.waiting.len() >= MAX_WAITING) && !mutants::has(Mutant::GapUnasked) {
            fx.push(Effect::Forward(n.id, Box::new(Input::BorderLost(me))));
        }
        if n.waiting.len() >= MAX_WAITING {
            n.waiting.pop_front();
            n.sound = n.sound.min(Tick(batch.prev.0.saturating_sub(1)));
        }
        (n.since, n.epoch) = (batch.epoch, batch.epoch);
        n.last = batch.tick;
        n.expired = false;
        n.blank &= !batch.full;
        n.waiting.push_back(batch);
        false
    }

    /// Nothing of what neighbours have is known here: what was the last tick of each is as good as long
    /// ago, and its ghosts count from the next full batch on.
    pub fn forget_all(&mut self) {
        self.neighbours.iter_mut().for_each(|n| n.blank = true);
    }

    /// A neighbour is there, in this tick.
    pub fn hear_of(&mut self, region: RegionId, tick: Tick) {
        for n in self.neighbours.iter_mut().filter(|n| n.id == region && n.blank) {
            n.last = n.last.max(tick);
        }
    }

    /// What a region says under a lower epoch is late. Says whether it is a neighbour.
    pub fn outlived(&mut self, region: RegionId, epoch: Epoch) -> bool {
        let Some(n) = self.neighbours.iter_mut().find(|n| n.id == region) else { return false };
        n.since = n.since.max(epoch);
        true
    }

    /// What neighbours have sent, for a snapshot; where it is not whole, what they are called by.
    pub(super) fn save(&self, whole: bool) -> Vec<SavedInbound> {
        let saved = self.neighbours.iter().map(|n| SavedInbound {
            id: n.id,
            epoch: n.epoch,
            lineage: n.lineage,
            last: n.last,
            progress: n.progress,
            sound: n.sound,
            expired: n.expired || n.blank,
            waiting: if whole { n.waiting.iter().cloned().collect() } else { Vec::new() },
        });
        saved.collect()
    }

    /// Goes on from a snapshot.
    pub(super) fn restore(
        &mut self,
        saved: Vec<SavedInbound>,
        (swept, crashed): (Tick, Vec<RegionId>),
        fences: &FxHashMap<RegionId, Epoch>,
    ) {
        (self.swept, self.crashed) = (swept, crashed);
        for saved in saved {
            let Some(n) = self.neighbours.iter_mut().find(|n| n.id == saved.id) else { continue };
            (n.epoch, n.lineage) = (n.epoch.max(saved.epoch), n.lineage.max(saved.lineage));
            n.since = n.epoch.max(fences.get(&n.id).copied().unwrap_or_default());
            (n.last, n.sound, n.expired) = (saved.last, saved.sound, saved.expired);
            // There is nothing of it here to which changes alone could be applied.
            n.blank = saved.expired;
            n.progress = saved.progress;
            n.waiting = saved.waiting.into();
        }
    }

    /// Up to which tick what is known of the region's entities is whole.
    pub fn sound(&self, region: RegionId) -> Option<Tick> {
        self.neighbours.iter().find(|n| n.id == region).map(|n| n.sound)
    }

    /// Whether the ghosts of `tick` are here from every neighbour that is heard of at all.
    pub fn complete(&self, tick: Tick) -> bool {
        let here = |n: &Neighbour| n.last >= tick && !n.blank;
        self.neighbours
            .iter()
            .all(|n| here(n) || n.ended || n.last.0.saturating_add(PATIENCE) < tick.0)
    }
}

impl Region {
    /// Neighbours of which there are ghosts here that are older than this many ticks, and how old these are.
    pub fn ghosts_older_than(&self, ticks: u64) -> impl Iterator<Item = (RegionId, u64)> + '_ {
        self.ghosts_of_those(|n| n.sound, ticks)
    }

    /// Neighbours of which there are ghosts here and which have said nothing for more than this many ticks, and for how
    /// many. After `EXPIRY` (30) there are none of it any more.
    pub fn ghosts_unheard_for(&self, ticks: u64) -> impl Iterator<Item = (RegionId, u64)> + '_ {
        self.ghosts_of_those(|n| n.last, ticks)
    }

    fn ghosts_of_those(
        &self,
        as_of: fn(&Neighbour) -> Tick,
        ticks: u64,
    ) -> impl Iterator<Item = (RegionId, u64)> + '_ {
        let age = move |n: &Neighbour| (n.id, self.tick.0.saturating_sub(as_of(n).0));
        // What of it is here after this region has died is new, if not all.
        let heard = self.inbound.neighbours.iter().filter(|n| !n.blank);
        let old = heard.map(age).filter(move |(_, age)| *age > ticks);
        let theirs = |role: &Role, id: RegionId| matches!(role, Role::Ghost(ghost) if ghost.owner == id && ghost.orphan_since.is_none());
        old.filter(move |(id, _)| self.bodies.cold.iter().any(|cold| theirs(&cold.role, *id)))
    }

    /// Makes the ghosts those of this tick.
    pub(super) fn apply_borders(&mut self) {
        self.catch_up(self.tick);
        for i in 0..self.inbound.neighbours.len() {
            let n = &mut self.inbound.neighbours[i];
            if !n.expired && !n.blank && n.sound > Tick(0) {
                let behind = self.tick.0.saturating_sub(n.sound.0);
                self.counts.border_ticks += 1;
                self.counts.stale_border_ticks += u64::from(behind > 0);
                self.counts.stalest_ticks = self.counts.stalest_ticks.max(behind);
            }
            if n.last.0.saturating_add(EXPIRY) < self.tick.0 && !n.expired {
                n.expired = true;
                let id = n.id;
                self.inbound.crashed.push(id);
                self.drop_ghosts(|_, ghost| ghost.owner == id);
            }
        }
        // A tick may be skipped: not only at multiples of anything.
        if self.inbound.swept.0.saturating_add(SWEEP) <= self.tick.0 {
            self.inbound.swept = self.tick;
            let now = TickStamp::of(self.tick);
            let lost = |since: TickStamp| {
                !since.is_after(now) && u64::from(now.ticks_since(since)) >= EXPIRY
            };
            self.drop_ghosts(|_, ghost| ghost.orphan_since.is_some_and(lost));
        }
        let crashed = std::mem::take(&mut self.inbound.crashed);
        if !crashed.is_empty() {
            self.begin_anew_afar(&crashed);
        }
    }

    /// Applies what neighbours sent of their ticks up to `tick`.
    pub(super) fn catch_up(&mut self, tick: Tick) {
        for i in 0..self.inbound.neighbours.len() {
            while let Some(batch) = self.next_batch(i, tick) {
                self.apply_batch(batch);
            }
        }
    }

    fn next_batch(&mut self, neighbour: usize, upto: Tick) -> Option<BorderBatch> {
        let n = &mut self.inbound.neighbours[neighbour];
        // A neighbour may skip the first tick by a new map. What it has then counts for the one that is not skipped here:
        // without it players handed over by that map would not be known to those who are shown them.
        let ahead = n.changed.is_some_and(|after| upto > after);
        let front = n.waiting.front()?.tick;
        if front > upto && !ahead {
            return None;
        }
        n.changed = n.changed.filter(|after| front <= *after);
        let mut batch = n.waiting.pop_front()?;
        if front > upto && !batch.acts.is_empty() {
            // What was done in its tick is told in that one: whoever is handed on meanwhile is told of it there.
            n.waiting.push_front(batch.take_acts());
        }
        if batch.full || batch.prev <= n.sound {
            n.sound = batch.tick;
        }
        if batch.lineage > n.lineage {
            n.lineage = batch.lineage;
            if !n.is_new {
                self.inbound.crashed.push(batch.from);
            }
        }
        n.is_new = false;
        Some(batch)
    }

    fn apply_batch(&mut self, mut batch: BorderBatch) {
        let from = batch.from;
        let acts = std::mem::take(&mut batch.acts);
        let (mut acts, others): (Vec<_>, Vec<_>) =
            acts.into_iter().partition(|(id, _)| self.may_tell_of(from, *id));
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
        // Whoever has come to it with this batch acts there.
        let mute = mutants::has(Mutant::NewcomersMute);
        acts.extend(others.into_iter().filter(|(id, _)| !mute && self.may_tell_of(from, *id)));
        for (id, deed) in acts {
            if let Some(slot) = self.bodies.slot(id).filter(|s| !self.is_real(*s)) {
                self.note_act(slot, deed, false, batch.tick);
            }
        }
    }

    /// Whether a region may tell of an entity's acts: whoever has gone on since is heard by way of its new owner, and its
    /// acts in the order in which it did them. Before that one has said that it is there, what comes from it is of an
    /// earlier time, when it has had the entity before.
    fn may_tell_of(&self, from: RegionId, id: EntityId) -> bool {
        let role = self.bodies.slot(id).map(|slot| &self.bodies.cold[slot as usize].role);
        let heard = |ghost: &Ghost| ghost.owner == from && ghost.orphan_since.is_none();
        !matches!(role, Some(Role::Ghost(ghost)) if !heard(ghost))
    }

    fn ghost_enters(&mut self, from: RegionId, state: GhostState) {
        if !self.bodies.has_kind(state.kind) {
            crate::log_limited!(at self.log_ms(); warn, region = %self.id, %from, entity = %state.id, kind = %state.kind, "a ghost of a kind that the scene does not have");
            return;
        }
        let role = Role::Ghost(Ghost { owner: from, orphan_since: None });
        // Caught up with for one who comes, it is of a tick of which frames were made.
        let now = TickStamp::of(self.next_frame());
        self.outdo(Claim { id: state.id, epoch: state.epoch, region: from });
        let before = self.moved.get(&state.id).map(|m| m.epoch);
        if before.is_some_and(|before| before.is_of_a_life_before(state.epoch)) {
            self.mail.reborn.insert(state.id);
        }
        let slot = match self.bodies.slot(state.id) {
            // Its owner may have said that it is gone before this, older, word came.
            None if self.moved.get(&state.id).is_some_and(|m| state.epoch < m.epoch) => return,
            None => self.bodies.add(
                state.id,
                state.kind,
                state.plane,
                state.pos,
                state.range,
                state.look,
                state.ties,
                state.epoch,
                role,
            ),
            Some(slot) => {
                let cold = &self.bodies.cold[slot as usize];
                if matches!(cold.role, Role::Real(_)) || state.epoch < cold.epoch {
                    return;
                }
                if cold.epoch.is_of_a_life_before(state.epoch) {
                    self.mail.reborn.insert(state.id);
                }
                self.bodies.set_role(slot, role, state.epoch);
                self.bodies.cold[slot as usize].look = state.look;
                self.bodies.set_plane(slot, state.plane);
                self.bodies.set_pos(slot, state.pos);
                self.bodies.set_traits(slot, state.range, state.ties);
                slot
            }
        };
        self.follow_owner(slot, state.pos, state.course);
        self.bodies.hot[slot as usize].changed = now;
        self.bodies.set_thr(&self.rules, slot, state.thr);
        self.expect_ends(slot);
    }

    fn ghost_changes(&mut self, from: RegionId, change: &GhostChange) {
        let Some(slot) = self.bodies.slot(change.id) else { return };
        let cold = &self.bodies.cold[slot as usize];
        let Role::Ghost(ghost) = &cold.role else { return };
        if ghost.owner != from || change.epoch < cold.epoch {
            return;
        }
        if self.follow_owner(slot, change.pos, change.course) {
            self.bodies.hot[slot as usize].changed = TickStamp::of(self.next_frame());
        }
        self.bodies.set_thr(&self.rules, slot, change.thr);
    }

    fn ghost_leaves(&mut self, from: RegionId, leave: &GhostLeave) {
        let Some(slot) = self.bodies.slot(leave.id) else { return };
        let cold = &mut self.bodies.cold[slot as usize];
        let Role::Ghost(ghost) = &mut cold.role else { return };
        // A newer owner's word counts before the older one has signed off.
        if leave.epoch < cold.epoch || (leave.epoch == cold.epoch && ghost.owner != from) {
            return;
        }
        // One that is no neighbour does not mirror it here.
        let near = |next: &RegionId| *next == self.id || self.inbound.knows(*next);
        match leave.next.filter(near) {
            None => {
                let moved = Moved { region: from, epoch: leave.epoch, since: self.tick };
                self.moved.insert(leave.id, moved);
                self.bodies.remove(slot);
            }
            Some(next) => {
                ghost.owner = next;
                cold.epoch = leave.epoch.next();
                ghost.orphan_since = Some(TickStamp::of(self.tick));
            }
        }
    }

    fn drop_ghosts(&mut self, which: impl Fn(EntityId, &Ghost) -> bool) {
        for slot in 0..self.bodies.hot.len() as u32 {
            let id = self.bodies.hot[slot as usize].id;
            let Role::Ghost(ghost) = &self.bodies.cold[slot as usize].role else { continue };
            if which(id, ghost) {
                let epoch = self.bodies.cold[slot as usize].epoch;
                let moved = Moved { region: ghost.owner, epoch, since: self.tick };
                self.moved.insert(id, moved);
                self.bodies.remove(slot);
            }
        }
    }
}
