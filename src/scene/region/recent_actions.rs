//! The actions that were told here of late, so that nobody misses one.
//!
//! An action is in the frames and border batches of its tick. These may be lost, or be late: while a link is cut a newer
//! batch replaces an older one, a player is on its way to another region, a region dies. So each region keeps the
//! actions of 300 ticks, and tells them again:
//!
//! | what happens | the actions that are told again | to |
//! |---|---|---|
//! | a full batch | those that the neighbour was to mirror | that neighbour |
//! | an entity comes to live here | its actions where it lived before | the neighbours that were to mirror them, and viewers here |
//! | a player comes to live here, its client reads again, or has missed frames | those since its last frame, and those that were late where it lived before | its client |
//! | a player goes on from a checkpoint | its own actions that the checkpoint has | as if it had come |
//!
//! Actions of an entity come in the order of their ticks. So one that is not after the last one told here is known. One
//! of 300 ticks ago may have been told here and be forgotten: it is not taken from anybody.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::Region;
use super::actions::PendingAction;
use super::custody::Past;
use super::entities::Role;
use super::views::Viewer;
use crate::scene::messages::{ActionsDue, EntityAction, Handoff, PastAction};
use crate::scene::mutants::{self, Mutant};
use crate::scene::{EntityId, RegionId, Tick, TickStamp};

/// For how many ticks actions are kept: longer than a lease and the takeover after it.
const KEPT_TICKS: u64 = 300;

/// Most bytes of the actions that are kept; the oldest ones give way.
const KEPT_BYTES: usize = 512 << 10;

/// Most bytes of an entity's actions that it takes along; the oldest ones stay behind.
const TAKEN_BYTES: usize = 64 << 10;

/// Bytes of an action beside its payload.
const HEAD_BYTES: usize = 32;

/// An action, and the tick whose frames have told it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RecentAction {
    tick: Tick,
    action: PastAction,
    /// Viewers here were told. Otherwise its entity has brought it along, and nobody here saw the entity then.
    here: bool,
}

/// The client of a player that has come may miss actions of another entity.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Behind {
    viewer: EntityId,
    due: ActionsDue,
    /// Frames of another region have told them. They count if the client was sent none of these.
    elsewhere: bool,
}

/// Actions in the order in which they were told.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RecentActions {
    told: VecDeque<RecentAction>,
    bytes: usize,
    /// All that were told in later ticks are kept.
    whole_since: Tick,
    /// What neighbours and handoffs have brought, until the next frames.
    untold: Vec<PastAction>,
    /// What entities have brought along, until the next batches to neighbours.
    brought: Vec<PastAction>,
    /// Players whose clients are to be told what they have missed, with their next frames.
    came: Vec<EntityId>,
    behind: Vec<Behind>,
}

fn bytes(action: &PastAction) -> usize {
    HEAD_BYTES + action.content.payload.len()
}

impl RecentActions {
    /// Forgets what is too old in this tick.
    pub fn forget_old(&mut self, now: Tick) {
        let is_old = |tick: Tick| tick.0.saturating_add(KEPT_TICKS) <= now.0;
        while self.told.front().is_some_and(|first| is_old(first.tick)) {
            self.forget_first();
        }
        self.behind.retain(|behind| !is_old(behind.due.came));
    }

    /// Frames of a tick tell an action.
    pub fn note(&mut self, tick: Tick, action: PastAction) {
        self.push(RecentAction { tick, action, here: true });
    }

    fn push(&mut self, told: RecentAction) {
        self.bytes += bytes(&told.action);
        self.told.push_back(told);
        while self.bytes > KEPT_BYTES {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some(first) = self.told.pop_front() {
            self.bytes -= bytes(&first.action);
            self.whole_since = self.whole_since.max(first.tick);
        }
    }

    /// Keeps those actions that cannot have been told here and be forgotten by now.
    fn keep_unforgotten(&self, now: Tick, acts: &mut Vec<PastAction>) {
        let since = self.whole_since.max(Tick(now.0.saturating_sub(KEPT_TICKS)));
        acts.retain(|action| action.tick > since);
    }

    /// After which tick none was forgotten.
    pub fn whole_since(&self) -> Tick {
        self.whole_since
    }

    /// Those of the ticks before this one that a neighbour was to be told.
    pub fn missed_by(&self, neighbour: RegionId, before: Tick) -> Vec<PastAction> {
        if mutants::has(Mutant::ActionsOnce) {
            return Vec::new();
        }
        let all = self.told.iter().map(|told| &told.action).chain(&self.untold);
        let missed = all.filter(|a| a.tick < before && a.to.contains(&neighbour));
        missed.map(PastAction::for_neighbour).collect()
    }

    /// Those that entities have brought along and that a neighbour was to be told.
    pub fn brought_for(&self, neighbour: RegionId) -> Vec<PastAction> {
        let missed = self.brought.iter().filter(|a| a.to.contains(&neighbour));
        missed.map(PastAction::for_neighbour).collect()
    }

    /// The last action of each of those entities of which one is kept.
    fn last_of(&self, ids: impl Fn(EntityId) -> bool) -> FxHashMap<EntityId, Tick> {
        let mut last = FxHashMap::default();
        let all = self.told.iter().map(|told| &told.action).chain(&self.untold);
        for action in all.filter(|action| ids(action.id)) {
            let tick = last.entry(action.id).or_insert(action.tick);
            *tick = action.tick.max(*tick);
        }
        last
    }

    /// Of repeated actions those that are not known here. They are told with the next frames.
    pub fn take_repeated(&mut self, now: Tick, mut repeated: Vec<PastAction>) {
        self.keep_unforgotten(now, &mut repeated);
        if !repeated.is_empty() {
            let last = self.last_of(|_| true);
            let is_new = |a: &PastAction| last.get(&a.id).is_none_or(|last| a.tick > *last);
            self.untold.extend(repeated.into_iter().filter(is_new));
        }
    }

    /// Actions that a neighbour tells for the first time. They are told with the next frames.
    pub fn take_new(&mut self, new: impl IntoIterator<Item = PastAction>) {
        self.untold.extend(new);
    }

    /// What a player that has come may miss of the actions of others.
    fn due_to(&self, viewer: EntityId) -> impl Iterator<Item = Behind> + '_ {
        self.behind.iter().filter(move |behind| behind.viewer == viewer).copied()
    }

    /// What a player that has come may miss of the actions of an entity.
    fn due_of(&self, viewer: EntityId, of: EntityId) -> impl Iterator<Item = Behind> + '_ {
        self.due_to(viewer).filter(move |behind| behind.due.of == of)
    }

    fn of(&self, id: EntityId) -> impl Iterator<Item = &PastAction> {
        let told = self.told.iter().map(|told| &told.action);
        told.chain(&self.untold).filter(move |action| action.id == id)
    }

    /// What an entity takes along: its actions, which viewers that go where it goes may have missed.
    pub fn to_take_along(&self, id: EntityId) -> Vec<PastAction> {
        if mutants::has(Mutant::ActionsLeft) {
            return Vec::new();
        }
        let all: Vec<_> = self.of(id).collect();
        let mut room = TAKEN_BYTES;
        let fits = |action: &&&PastAction| {
            room = room.saturating_sub(bytes(action));
            room > 0
        };
        let mut taken: Vec<_> = all.iter().rev().take_while(fits).copied().cloned().collect();
        taken.reverse();
        taken
    }

    /// An entity has come to live in a region, with its actions.
    fn take_along(&mut self, me: RegionId, (id, now): (EntityId, Tick), acts: &[PastAction]) {
        let last = self.last_of(|of| of == id).get(&id).copied().unwrap_or_default();
        let mut acts: Vec<_> = acts.iter().filter(|action| action.id == id).cloned().collect();
        self.keep_unforgotten(now, &mut acts);
        for action in acts {
            self.brought.push(action.clone());
            if action.tick > last && action.to.contains(&me) {
                self.untold.push(action);
            } else if !self.know_receivers(&action) {
                self.push(RecentAction { tick: now, action, here: false });
            }
        }
    }

    /// An action that is known here was to be told to others, too. False if it is not known.
    fn know_receivers(&mut self, action: &PastAction) -> bool {
        let told = self.told.iter_mut().map(|told| &mut told.action);
        let all = told.chain(&mut self.untold);
        let same = |a: &&mut PastAction| {
            (a.id, a.tick) == (action.id, action.tick) && a.content == action.content
        };
        let mut known = all.filter(same).peekable();
        let is_known = known.peek().is_some();
        known.for_each(|known| known.to.clone_from(&action.to));
        is_known
    }

    /// An entity goes on from a checkpoint: what it did before is told again, to viewers and neighbours that have missed it.
    fn tell_again(&mut self, id: EntityId) {
        let (again, others) =
            std::mem::take(&mut self.told).into_iter().partition(|t| t.action.id == id);
        self.told = others;
        let again: VecDeque<RecentAction> = again;
        self.bytes -= again.iter().map(|told| bytes(&told.action)).sum::<usize>();
        for RecentAction { action, .. } in again {
            self.brought.push(action.clone());
            self.untold.push(action);
        }
    }
}

/// What viewers miss.
impl Region {
    /// Actions of this region's own entities are told now; neighbours mirror some of them.
    pub(super) fn note_own_actions(&mut self) {
        let now = self.clock.tick();
        self.recent_actions.forget_old(now);
        self.recent_actions.brought.clear();
        for PendingAction { slot, id, content, of, .. } in self.actions.iter().filter(|a| a.here) {
            let is_here = self.entities.slot(*id) == Some(*slot);
            let real = if is_here { self.entities.real(*slot) } else { None };
            let to = self.border.mirrored_by(real.map_or(0, |real| real.mirrors));
            let action = PastAction { tick: *of, id: *id, content: content.clone(), to };
            self.recent_actions.note(now, action);
        }
    }

    /// What neighbours and handoffs have brought since the last tick is told in this one.
    pub(super) fn note_brought_actions(&mut self) {
        let now = self.clock.tick();
        for action in std::mem::take(&mut self.recent_actions.untold) {
            if let Some(slot) = self.entities.slot(action.id) {
                self.note_action(slot, action.content.clone(), false, action.tick);
                self.tell_those_behind(slot, &action);
            }
            self.recent_actions.note(now, action);
        }
    }

    /// Players that came from a region which had this late have frames from here of later ticks only.
    fn tell_those_behind(&mut self, slot: u32, action: &PastAction) {
        let behind = self.recent_actions.behind.iter();
        let misses = |due: ActionsDue| due.of == action.id && action.tick > due.after;
        let behind = behind.filter(|behind| !behind.elsewhere && misses(behind.due));
        let viewers: Vec<EntityId> = behind.map(|behind| behind.viewer).collect();
        for viewer in viewers {
            let Some(viewer) = self.entities.real_slot(viewer) else { continue };
            let told_before =
                self.views.of(&self.entities, viewer).map(|v| v.new_acts_from(self.clock.tick()));
            if told_before.is_some_and(|from| action.tick < from) {
                self.note_action_for(viewer, slot, action.content.clone(), action.tick);
            }
        }
    }

    /// A player has come to live here: its next frame tells what its client has missed on the way.
    pub(super) fn tell_missed_actions_of(&mut self, handoff: &Handoff) {
        let viewer = handoff.state.id;
        self.tell_missed_actions_to(viewer);
        self.recent_actions.behind.retain(|behind| behind.viewer != viewer);
        let due = handoff.acts_due.iter();
        let behind = due.map(|due| Behind { viewer, due: *due, elsewhere: due.served > Tick(0) });
        self.recent_actions.behind.extend(behind);
    }

    /// The next frame of a player's client tells what it has missed since its last one.
    pub(super) fn tell_missed_actions_to(&mut self, id: EntityId) {
        if !self.recent_actions.came.contains(&id) {
            self.recent_actions.came.push(id);
        }
    }

    /// A player goes on from a checkpoint: its client's next frame tells what it has missed since its last one, and others
    /// are told what it did by the checkpoint.
    pub(super) fn repeat_actions(&mut self, id: EntityId) {
        self.tell_missed_actions_to(id);
        self.recent_actions.behind.retain(|behind| behind.viewer != id);
        self.recent_actions.tell_again(id);
    }

    /// A player goes on as a checkpoint has it, and nobody knows what its client was told since: nothing is told again.
    pub(super) fn repeat_nothing_for(&mut self, id: EntityId) {
        self.recent_actions.came.retain(|viewer| *viewer != id);
        let (tick, slot) = (self.clock.next_frame(), self.entities.real_slot(id));
        if let Some(viewer) = slot.and_then(|slot| self.views.of_mut(&self.entities, slot)) {
            viewer.frames_from = tick;
        }
    }

    /// An entity has come to live here, with its actions.
    pub(super) fn take_actions_along(&mut self, handoff: &Handoff) {
        let (me, id) = (self.identity.id(), handoff.state.id);
        self.recent_actions.take_along(me, (id, self.clock.tick()), &handoff.acts);
    }

    /// The frames of this tick also tell those who have come what was told here before they came.
    pub(super) fn note_missed_actions(&mut self) {
        if self.recent_actions.came.is_empty() {
            return;
        }
        let now = self.clock.tick();
        for id in std::mem::take(&mut self.recent_actions.came) {
            if mutants::has(Mutant::WayUntold) {
                continue;
            }
            let Some(slot) = self.entities.real_slot(id) else { continue };
            let Some(viewer) = self.views.of(&self.entities, slot) else { continue };
            if !viewer.gets_frame_of(now) {
                self.recent_actions.came.push(id);
                continue;
            }
            let (from, since) = (viewer.acts_from(now), viewer.new_acts_from(now));
            let (viewer, after) = (slot, viewer.resync_after());
            let recent = &self.recent_actions;
            // Frames from here have told what was told before the last one, but for the first frame of a player from
            // a region where something was late. That frame was lost, too, if the client was sent none since.
            let is_unserved = |behind: Behind| {
                let served = behind.due.served;
                served == Tick(0) || (after > Tick(0) && served > after)
            };
            let misses = |told: &RecentAction| {
                let is_due = |behind: Behind| {
                    let is_late = !behind.elsewhere && told.tick >= from;
                    told.action.tick > behind.due.after && (is_unserved(behind) || is_late)
                };
                // A missed frame has told it here, however late, or nobody here.
                let is_missed = match told.here {
                    true => told.tick >= from && told.action.tick >= since,
                    false => told.action.tick >= from,
                };
                is_missed || recent.due_of(id, told.action.id).any(is_due)
            };
            let is_behind = recent.due_to(id).any(is_unserved);
            let told = recent.told.iter().rev();
            let told = told.take_while(|told| told.tick >= from || is_behind);
            let missed = told.filter(|t| (t.tick < now || !t.here) && misses(t));
            let mut missed: Vec<PastAction> = missed.map(|told| told.action.clone()).collect();
            missed.reverse();
            let behind = self.recent_actions.behind.iter_mut();
            let unserved = behind.filter(|b| b.viewer == id && b.due.served == Tick(0));
            unserved.for_each(|behind| behind.due.served = now);
            if let Some(told) = self.views.of_mut(&self.entities, viewer) {
                told.missed_from = Tick(0);
            }
            for action in missed {
                if let Some(slot) = self.entities.slot(action.id) {
                    self.note_action_for(viewer, slot, action.content, action.tick);
                }
            }
        }
    }

    fn note_action_for(&mut self, viewer: u32, slot: u32, content: EntityAction, of: Tick) {
        let id = self.entities.set_acted(slot, TickStamp::of(self.clock.tick()));
        let (only, here) = (Some(viewer), false);
        self.actions.note(PendingAction { slot, id, content, here, of, only });
    }

    /// What another region needs to know of an entity's actions: its own, and those of others of which its client may
    /// still miss some, since their owners were late here or where it lived before.
    pub(super) fn describe_actions(&self, slot: u32, past: Past, handoff: &mut Handoff) {
        if past != Past::ToTell {
            return;
        }
        let id = handoff.state.id;
        handoff.acts = self.recent_actions.to_take_along(id);
        let Some(viewer) = self.views.get(self.entities.body(slot).viewer) else { return };
        handoff.acts_due = self.recent_actions.due_to(id).map(|behind| behind.due).collect();
        for (of, sound) in self.late_in_view_of(viewer, handoff.tick) {
            // What came by way of another region was told, and what the player had been told where it lived before.
            let told_here = self.recent_actions.last_of(|id| id == of).get(&of).copied();
            let due = self.recent_actions.due_of(id, of).filter(|behind| !behind.elsewhere);
            let told_before = match due.last() {
                Some(behind) => behind.due.after,
                None => Tick(viewer.frames_from.0.saturating_sub(1)),
            };
            let after = told_here.unwrap_or_default().max(told_before).max(sound);
            let due = ActionsDue { of, after, came: handoff.tick, served: Tick(0) };
            // The first frame that told some may be lost.
            let first = handoff.acts_due.iter().find(|d| d.of == of && d.served > Tick(0)).copied();
            handoff.acts_due.retain(|due| due.of != of);
            handoff.acts_due.extend(first);
            handoff.acts_due.push(due);
        }
        handoff.acts_due.splice(0..0, self.told_late_to(viewer, handoff.tick));
    }

    /// The actions in a player's view that its client was told here after their ticks. Where it goes they were told in
    /// time, perhaps before the last frame that its client was sent, and the frames from here may be lost.
    fn told_late_to(&self, viewer: &Viewer, came: Tick) -> Vec<ActionsDue> {
        let mut late: Vec<ActionsDue> = Vec::new();
        let is_late = |told: &&RecentAction| {
            told.here && told.action.tick < told.tick && viewer.frames_from <= told.action.tick
        };
        for told in self.recent_actions.told.iter().filter(is_late) {
            let (of, served) = (told.action.id, told.tick);
            // The first one of a frame counts: all later ones of the entity are in this frame or in later ones.
            let is_first = late.iter().all(|due| (due.of, due.served) != (of, served));
            if is_first && in_view_of(viewer).any(|id| id == of) {
                let after = Tick(told.action.tick.0.saturating_sub(1));
                late.push(ActionsDue { of, after, came, served });
            }
        }
        late
    }

    /// The ghosts in a player's view whose owner is late here in this tick, and how far the owner has come.
    fn late_in_view_of(&self, viewer: &Viewer, tick: Tick) -> Vec<(EntityId, Tick)> {
        let is_late = |of: EntityId| {
            let role = self.entities.slot(of).map(|slot| self.entities.role(slot));
            let Some(Role::Ghost(ghost)) = role else { return None };
            let sound = self.border.sound(ghost.owner).filter(|sound| *sound < tick)?;
            Some((of, sound))
        };
        in_view_of(viewer).filter_map(is_late).collect()
    }
}

fn in_view_of(viewer: &Viewer) -> impl Iterator<Item = EntityId> + '_ {
    let peers = viewer.registers.yes_ids().iter().map(|ids| ids.id);
    peers.chain(viewer.seen.iter().map(|seen| seen.id))
}

#[cfg(test)]
mod tests;
