//! Ghosts from the neighbours, as levels.
//!
//! A ghost copies its owner's values: a batch that comes twice changes nothing, and one that is lost is healed by the next
//! full one.

use rustc_hash::FxHashSet;

use super::inbound::Neighbour;
use crate::scene::messages::{
    BorderBatch, Claim, GhostChange, GhostLeave, GhostLevels, GhostState, PastAction,
};
use crate::scene::mutants::{self, Mutant};
use crate::scene::region::custody::HandedOn;
use crate::scene::region::entities::{Ghost, NewEntity, Role};
use crate::scene::region::{EXPIRY, Region};
use crate::scene::{EntityId, RegionId, Tick, TickStamp};

/// Ticks between two searches for such ghosts.
const SWEEP: u64 = 10;

impl Region {
    /// Neighbours of which there are ghosts here that are older than this many ticks, and how old these are.
    pub fn ghosts_older_than(&self, ticks: u64) -> impl Iterator<Item = (RegionId, u64)> + '_ {
        self.ghosts_of_those(|n| n.sound, ticks)
    }

    /// Neighbours of which there are ghosts here and which have said nothing for more than this many ticks, and for how
    /// many. After `EXPIRY` (30) there are none of it any more.
    pub fn ghosts_silent_for(&self, ticks: u64) -> impl Iterator<Item = (RegionId, u64)> + '_ {
        self.ghosts_of_those(|n| n.last, ticks)
    }

    fn ghosts_of_those(
        &self,
        as_of: fn(&Neighbour) -> Tick,
        ticks: u64,
    ) -> impl Iterator<Item = (RegionId, u64)> + '_ {
        let age = move |n: &Neighbour| (n.id, self.clock.tick().0.saturating_sub(as_of(n).0));
        // What of it is here after this region has died is new, if not all.
        let received = self.border.inbound.neighbours.iter().filter(|n| !n.blank);
        let old = received.map(age).filter(move |(_, age)| *age > ticks);
        let theirs = |role: &Role, id: RegionId| matches!(role, Role::Ghost(ghost) if ghost.owner == id && ghost.orphan_since.is_none());
        old.filter(move |(id, _)| self.entities.all().any(|(_, record)| theirs(&record.role, *id)))
    }

    /// Makes the ghosts those of this tick.
    pub(in crate::scene::region) fn apply_borders(&mut self) {
        let now = self.clock.tick();
        self.catch_up(now);
        self.note_brought_actions();
        for i in 0..self.border.inbound.neighbours.len() {
            self.count_staleness(i);
            if let Some(silent) = self.border.inbound.expire(i, now) {
                self.drop_ghosts(|_, ghost| ghost.owner == silent);
            }
        }
        self.sweep_orphans();
        let crashed = std::mem::take(&mut self.border.inbound.crashed);
        if !crashed.is_empty() {
            let scene = self.identity.scene();
            self.views.begin_anew_afar(&crashed, &mut self.entities, scene);
        }
    }

    fn count_staleness(&mut self, neighbour: usize) {
        let n = &self.border.inbound.neighbours[neighbour];
        if !n.expired && !n.blank && n.sound > Tick(0) {
            let behind = self.clock.tick().0.saturating_sub(n.sound.0);
            self.counts.border_ticks += 1;
            self.counts.stale_border_ticks += u64::from(behind > 0);
            self.counts.stalest_ticks = self.counts.stalest_ticks.max(behind);
        }
    }

    /// Drops ghosts whose new owner has not mirrored them.
    fn sweep_orphans(&mut self) {
        let (tick, swept) = (self.clock.tick(), &mut self.border.inbound.swept);
        // A tick may be skipped: not only at multiples of anything.
        if swept.0.saturating_add(SWEEP) > tick.0 {
            return;
        }
        *swept = tick;
        let now = TickStamp::of(tick);
        let lost =
            |since: TickStamp| !since.is_after(now) && u64::from(now.ticks_since(since)) >= EXPIRY;
        self.drop_ghosts(|_, ghost| ghost.orphan_since.is_some_and(lost));
    }

    /// Applies what neighbours sent of their ticks up to `tick`.
    pub(in crate::scene::region) fn catch_up(&mut self, tick: Tick) {
        for i in 0..self.border.inbound.neighbours.len() {
            let remembered_since = self.recent_actions.whole_since();
            while let Some(batch) = self.border.inbound.next_batch(i, tick, remembered_since) {
                self.apply_batch(batch);
            }
        }
    }

    fn apply_batch(&mut self, mut batch: BorderBatch) {
        self.views.positions_change();
        let from = batch.from;
        if !mutants::has(Mutant::RelationsUnlearned) {
            self.entities.relations_mut().merge(std::mem::take(&mut batch.relations));
        }
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
        for levels in &batch.levels {
            self.ghost_levels(from, levels);
        }
        for links in &batch.links {
            self.views.note_links(from, links, &self.entities);
        }
        // An entity that has come to the sender with this batch acts there.
        let mute = mutants::has(Mutant::NewcomersMute);
        acts.extend(others.into_iter().filter(|(id, _)| !mute && self.may_tell_of(from, *id)));
        let lives_elsewhere =
            |id| self.entities.slot(id).is_some_and(|s| !self.entities.is_real(s));
        acts.retain(|(id, _)| lives_elsewhere(*id));
        let is_ghost = |id| {
            let slot = self.entities.slot(id);
            slot.is_some_and(|slot| matches!(self.entities.role(slot), Role::Ghost(_)))
        };
        batch.earlier.retain(|action| is_ghost(action.id));
        let told = |(id, content)| PastAction { tick: batch.tick, id, content, to: Vec::new() };
        self.recent_actions.take_repeated(self.clock.tick(), batch.earlier);
        self.recent_actions.take_new(acts.into_iter().map(told));
    }

    /// Whether a region may report an entity's acts: after a handoff the new owner reports them,
    /// and the acts arrive in their order. Before the new owner has announced the entity, its
    /// messages are of an earlier time, when it has had the entity before.
    fn may_tell_of(&self, from: RegionId, id: EntityId) -> bool {
        let role = self.entities.slot(id).map(|slot| self.entities.role(slot));
        let received = |ghost: &Ghost| ghost.owner == from && ghost.orphan_since.is_none();
        !matches!(role, Some(Role::Ghost(ghost)) if !received(ghost))
    }

    fn ghost_enters(&mut self, from: RegionId, state: GhostState) {
        if !self.entities.has_kind(state.kind) {
            crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), %from, entity = %state.id, kind = %state.kind, "a ghost of a kind that the scene does not have");
            return;
        }
        // Repeated for an arriving player, it belongs to a tick whose frames were made.
        let now = TickStamp::of(self.clock.next_frame());
        self.supersede(Claim { id: state.id, epoch: state.epoch, region: from });
        let before = self.custody.moved(state.id).map(|m| m.epoch);
        if before.is_some_and(|before| before.is_of_a_life_before(state.epoch)) {
            self.views.note_new_incarnation(state.id);
        }
        match self.entities.slot(state.id) {
            // Its owner may have reported its leave before this older message came.
            None if before.is_some_and(|before| state.epoch < before) => {}
            None => {
                let slot = self.add_ghost(state, Ghost { owner: from, orphan_since: None }, now);
                self.views.expect_ends(slot, &self.entities);
            }
            Some(slot) => self.renew_ghost(slot, from, state, now),
        }
    }

    /// Adds a ghost that is not known here.
    pub(in crate::scene::region) fn add_ghost(
        &mut self,
        state: GhostState,
        ghost: Ghost,
        changed: TickStamp,
    ) -> u32 {
        let GhostState { pos, trajectory, threshold, .. } = state;
        let slot = self.entities.add(NewEntity::of_ghost(state), Role::Ghost(ghost));
        self.follow_owner(slot, pos, trajectory);
        self.entities.set_changed(slot, changed);
        self.entities.stamp_properties(slot, changed);
        self.entities.set_threshold(slot, threshold);
        slot
    }

    /// A ghost that is known is as its owner says, unless that is late.
    fn renew_ghost(&mut self, slot: u32, from: RegionId, state: GhostState, changed: TickStamp) {
        let record = self.entities.record(slot);
        if matches!(record.role, Role::Real(_)) || state.epoch < record.epoch {
            return;
        }
        if record.epoch.is_of_a_life_before(state.epoch) {
            self.views.note_new_incarnation(state.id);
        }
        let rebonds = record.ties.bonds != state.ties.bonds;
        self.take_properties(slot, state.epoch, &state.properties);
        if rebonds {
            self.bonds_changed(slot, changed);
        }
        self.entities.set_facing(slot, state.facing, changed);
        let role = Role::Ghost(Ghost { owner: from, orphan_since: None });
        self.entities.set_role(slot, role, state.epoch);
        self.entities.set_plane(slot, state.plane);
        self.entities.set_pos(slot, state.pos);
        self.entities.set_ties(slot, state.ties);
        self.follow_owner(slot, state.pos, state.trajectory);
        self.entities.set_changed(slot, changed);
        self.entities.set_threshold(slot, state.threshold);
        self.views.expect_ends(slot, &self.entities);
    }

    fn ghost_changes(&mut self, from: RegionId, change: &GhostChange) {
        let Some(slot) = self.entities.slot(change.id) else { return };
        let record = self.entities.record(slot);
        let Role::Ghost(ghost) = &record.role else { return };
        if ghost.owner != from || change.epoch < record.epoch {
            return;
        }
        if self.follow_owner(slot, change.pos, change.trajectory) {
            self.entities.set_changed(slot, TickStamp::of(self.clock.next_frame()));
        }
        self.entities.set_facing(slot, change.facing, TickStamp::of(self.clock.next_frame()));
        self.entities.set_threshold(slot, change.threshold);
    }

    /// A neighbour says which properties of an entity that it owns have changed.
    fn ghost_levels(&mut self, from: RegionId, levels: &GhostLevels) {
        let Some(slot) = self.entities.slot(levels.id) else { return };
        let record = self.entities.record(slot);
        let is_owner = matches!(&record.role, Role::Ghost(ghost) if ghost.owner == from);
        if is_owner && levels.epoch >= record.epoch {
            self.take_properties(slot, record.epoch, &levels.properties);
        }
    }

    fn ghost_leaves(&mut self, from: RegionId, leave: &GhostLeave) {
        let Some(slot) = self.entities.slot(leave.id) else { return };
        let known = self.entities.record(slot).epoch;
        let Some(ghost) = self.entities.ghost(slot) else { return };
        // A newer owner's state counts before the older owner has signed off.
        if leave.epoch < known || (leave.epoch == known && ghost.owner != from) {
            return;
        }
        // One that is no neighbour does not mirror it here.
        let here = self.identity.id();
        let near = |next: &RegionId| *next == here || self.border.inbound.knows(*next);
        match leave.next.filter(near) {
            None => {
                let (region, epoch) = (from, leave.epoch);
                let moved = HandedOn { region, epoch, since: self.clock.tick() };
                self.custody.note_moved(leave.id, moved);
                self.entities.remove(slot);
            }
            Some(next) => {
                let orphan_since = Some(TickStamp::of(self.clock.tick()));
                let ghost = Role::Ghost(Ghost { owner: next, orphan_since });
                self.entities.set_role(slot, ghost, leave.epoch.next());
            }
        }
    }

    fn drop_ghosts(&mut self, which: impl Fn(EntityId, &Ghost) -> bool) {
        for slot in 0..self.entities.slot_count() {
            let id = self.entities.body(slot).id;
            let Some(ghost) = self.entities.ghost(slot) else { continue };
            if which(id, ghost) {
                let epoch = self.entities.record(slot).epoch;
                let moved = HandedOn { region: ghost.owner, epoch, since: self.clock.tick() };
                self.custody.note_moved(id, moved);
                self.entities.remove(slot);
            }
        }
    }
}
