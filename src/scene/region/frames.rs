//! The frame builder: what each client is told in a tick.
//!
//! The tick calls [`FrameBuilder::make_frames`] when it closes. Each viewer's entries say what its client knows: so nothing
//! is told twice, and nothing is missed that changed while a client was held. Pieces of the batch are shared by all frames
//! that refer to them.

mod crowd;
mod estimate;
mod history;
mod moves;

use self::crowd::Crowds;
use self::history::Histories;
use super::actions::TickActions;
use super::egress::{Budget, crowd_len};
use super::entities::{EntityStore, Renumbering, own_of};
use super::views::Viewer;
use crate::scene::messages::{Entering, FrameBatch, SessionFrame};
use crate::scene::movement::{ServerMs, Steps};
use crate::scene::mutants::{self, Mutant};
use crate::scene::prefetch;
use crate::scene::spec::Rates;
use crate::scene::{Pos, Scene, Tick, TickStamp};

/// Most bytes that one entity's move takes in a frame: array, id, three coordinates, two velocities.
const MOVE_BYTES: usize = 1 + 9 + 5 * 5;

/// Most bytes of each part of a frame, so that all of them together stay below
/// the 1 MiB that a client accepts: enters and moves that do not fit wait for another tick, acts
/// that do not fit are not told to that client, and counted.
const PART_BYTES: usize = 240 * 1_024;

/// Most leaves in a frame, 9 bytes each. While more wait no entity enters, since a client that is told
/// of an entity anew must have been told before that the entity left.
const MAX_LEAVES: usize = 10_000;

/// Bytes of an entering entity beside its look, and of an act beside its payload, at most.
const ENTER_BYTES: usize = MOVE_BYTES + 2 + 5;

/// Most bytes of an entity's trajectory beside its id: a path of as many steps as may be.
const TRAJECTORY_BYTES: usize = 1 + 9 + 5 + 1 + 1 + 16 + 2 + Steps::MAX + 5;

/// The index of what is in no batch.
const NO_PIECE: u32 = u32::MAX;

const NOT_TOLD: (TickStamp, u32) = (TickStamp::of(Tick(0)), NO_PIECE);

/// Marks the index of a trajectory. No batch has as many pieces.
const TRAJECTORY: u32 = 1 << 31;

/// Where the pieces of each slot are in this tick's batch: tick and index.
#[derive(Debug, Clone, Copy)]
struct SlotNotes {
    entering: (TickStamp, u32),
    /// Its place or, marked by [`TRAJECTORY`], its trajectory.
    moving: (TickStamp, u32),
}

/// A move that is due for a viewer.
#[derive(Debug, Clone, Copy)]
struct Due {
    /// How late it is, in 1/256 of its ring's interval, or how wrong what the viewer shows, in 1/256 of the
    /// tolerance: whichever is greater.
    urgency: u64,
    slot: u32,
    peer: u32,
    is_peer: bool,
}

/// The batch under way and the buffers to make it.
#[derive(Debug, Default)]
pub struct FrameBuilder {
    batch: FrameBatch,
    spare: Vec<FrameBatch>,
    told: Vec<SlotNotes>,
    /// Of each act: slot and index of its piece, sorted by slot.
    acts: Vec<(u32, u32, Tick)>,
    due: Vec<Due>,
    moves: Vec<u32>,
    trajectories: Vec<u32>,
    act_refs: Vec<u32>,
    /// Moves are trajectories.
    judged: bool,
    /// What was told of each entity's movement.
    histories: Histories,
    now: ServerMs,
    /// Where the viewer is whose frame is under way.
    eye: Pos,
    crowds: Crowds,
    /// What a client may be sent.
    budget: Option<Budget>,
    /// Moves that were due and waited since the start, a tick each, for want of room.
    moves_waited: u64,
    /// Entries of the batch's `owns` that belong to frames which were added.
    owns_told: u32,
    /// Bytes of enters and of acts in the frame under way.
    enter_bytes: usize,
    act_bytes: usize,
    /// Acts that were not told to a viewer since the start, for want of room.
    acts_dropped: u64,
}

impl FrameBuilder {
    /// Forgets where pieces were in batches of old.
    pub fn forget_pieces(&mut self) {
        self.told.clear();
    }

    /// Slots are numbered anew.
    pub fn renumber(&mut self, new: &Renumbering) {
        self.histories.renumber(new);
    }

    /// Takes the positions of a tick, before its frames are made.
    pub fn bring_up(&mut self, tick: Tick, scene: &Scene, entities: &mut EntityStore) {
        self.histories.bring_up(tick, scene, entities);
    }

    /// Keeps a batch's memory for another tick.
    pub fn recycle(&mut self, batch: FrameBatch) {
        if self.spare.len() < 4 {
            self.spare.push(batch);
        }
    }

    fn entering(&mut self, tick: TickStamp, entities: &EntityStore, slot: u32) -> u32 {
        let told = &mut self.told[slot as usize].entering;
        if told.0 != tick || told.1 == NO_PIECE {
            *told = (tick, self.batch.entering.len() as u32);
            let body = entities.body(slot);
            let appearance = entities.record(slot).appearance.clone();
            let (id, kind, pos) = (body.id, body.kind, body.pos);
            let trajectory = entities.trajectory(slot);
            self.batch.entering.push(Entering { id, kind, pos, trajectory, appearance });
        }
        told.1
    }

    /// Adds the piece of where an entity is, or of what it does.
    #[inline]
    fn moving(&mut self, tick: TickStamp, entities: &EntityStore, slot: u32) {
        let mut told = self.told[slot as usize].moving;
        if told.0 != tick || told.1 == NO_PIECE {
            told = (tick, self.new_piece(entities, slot));
            self.told[slot as usize].moving = told;
        }
        match told.1 & TRAJECTORY {
            0 => self.moves.push(told.1),
            _ => self.trajectories.push(told.1 & !TRAJECTORY),
        }
    }

    fn new_piece(&mut self, entities: &EntityStore, slot: u32) -> u32 {
        let body = entities.body(slot);
        match entities.moving(slot) {
            Some(track) => {
                self.batch.trajectories.push((body.id, track.trajectory));
                (self.batch.trajectories.len() - 1) as u32 | TRAJECTORY
            }
            None => {
                let moving = self.histories.moving(slot, body.id, body.pos, self.now);
                self.batch.moving.push(moving);
                (self.batch.moving.len() - 1) as u32
            }
        }
    }

    /// Tells what an entity has done, but for what the viewer was told of where it lived before.
    fn acts_of(&mut self, slot: u32, since: Tick) {
        let first = self.acts.partition_point(|(s, ..)| *s < slot);
        let acts = self.acts[first..].iter().take_while(|(s, ..)| *s == slot);
        for (_, piece, _) in acts.filter(|(.., of)| *of >= since) {
            self.act_bytes += ENTER_BYTES + self.batch.acting[*piece as usize].1.len();
            if self.act_bytes <= PART_BYTES {
                self.act_refs.push(*piece);
            } else {
                self.acts_dropped += 1;
            }
        }
    }
}

/// An entry of a viewer's.
#[derive(Clone, Copy)]
struct FrameEntry {
    slot: u32,
    ring: u8,
    /// It is to be shown.
    wanted: bool,
    /// It is shown.
    shown: bool,
    sent: TickStamp,
}

/// What becomes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Stays,
    Leaves,
    Enters,
}

/// Finds the peer at `ix` where it is now: it may have come to live here, or be gone, since its viewer
/// looked around. False when it is gone; the client is told when its viewer looks around again.
fn find_again(entities: &EntityStore, viewer: &mut Viewer, ix: usize) -> bool {
    let known = viewer.registers.peers()[ix].slot;
    if entities.is_free(known) {
        let Some(slot) = entities.slot(viewer.registers.yes_ids()[ix].id) else { return false };
        viewer.registers.peers_mut()[ix].slot = slot;
    }
    true
}

impl FrameBuilder {
    /// Makes the frames of a tick.
    pub fn make_frames(
        &mut self,
        tick: Tick,
        scene: &Scene,
        entities: &EntityStore,
        actions: &mut TickActions,
        viewers: &mut [Viewer],
    ) -> Option<FrameBatch> {
        self.begin(tick, scene, entities, actions);
        let (spec, stamp) = (&scene.spec, TickStamp::of(tick));
        for ix in 0..viewers.len() {
            if let Some(v) = viewers.get(ix + prefetch::PLAYERS) {
                prefetch::fetch(v.registers.peers());
            }
            let viewer = &mut viewers[ix];
            if viewer.gets_frame_of(tick) {
                self.add_own(self.now, entities, viewer);
                self.add_frame(stamp, entities, viewer, &spec.rates, spec.frame_budget_bytes);
            }
        }
        let batch = std::mem::take(&mut self.batch);
        if batch.sessions.is_empty() {
            self.recycle(batch);
            return None;
        }
        Some(batch)
    }

    /// Begins a batch with the actions of the tick.
    fn begin(
        &mut self,
        tick: Tick,
        scene: &Scene,
        entities: &EntityStore,
        actions: &mut TickActions,
    ) {
        self.batch = self.spare.pop().unwrap_or_default();
        self.batch.clear(tick);
        self.owns_told = 0;
        let slots = entities.slot_count() as usize;
        self.told.resize(slots, SlotNotes { entering: NOT_TOLD, moving: NOT_TOLD });
        self.acts.clear();
        for act in actions.drain() {
            if entities.body(act.slot).id == act.id {
                self.acts.push((act.slot, self.batch.acting.len() as u32, act.of));
                self.batch.acting.push((act.id, act.content.payload));
            }
        }
        self.acts.sort_by_key(|(slot, ..)| *slot);
        self.judged = scene.judged.is_some();
        self.crowds.begin(scene.spec.crowd);
        self.budget = Budget::of(scene.spec.egress_bits_s, scene.tick_ms);
        self.now = ServerMs(tick.0.saturating_mul(scene.tick_ms.into()));
    }

    /// Moves that were due and waited since the start, a tick each, for want of room.
    pub fn moves_waited(&self) -> u64 {
        self.moves_waited
    }

    /// Acts that a viewer was not told since the start, because its frame was full.
    pub fn acts_dropped(&self) -> u64 {
        self.acts_dropped
    }
}

impl FrameBuilder {
    /// Adds a player's own movement to the frame that is about to be added, if its client must be told.
    fn add_own(&mut self, now: ServerMs, entities: &EntityStore, viewer: &mut Viewer) {
        if self.judged && (std::mem::take(&mut viewer.own_due) || viewer.resync) {
            self.batch.owns.extend(own_of(entities, viewer.slot, now));
        }
    }

    fn add_frame(
        &mut self,
        tick: TickStamp,
        entities: &EntityStore,
        viewer: &mut Viewer,
        rates: &Rates,
        budget: usize,
    ) {
        let mut frame = SessionFrame {
            session: viewer.session.unwrap_or_default(),
            ack: viewer.last_applied,
            epoch: entities.record(viewer.slot).epoch,
            resync: viewer.resync,
            refs_at: self.batch.refs.len() as u32,
            leaves_at: self.batch.leaves.len() as u32,
            refused_at: self.batch.refused.len() as u32,
            own_at: self.owns_told,
            own: self.batch.owns.len() as u32 - self.owns_told,
            ..SessionFrame::default()
        };
        self.begin_frame(tick, viewer);
        self.eye = entities.body(viewer.slot).pos;
        let since = if mutants::has(Mutant::ActsAgain) { Tick(0) } else { viewer.frames_from };
        self.tell_peers((tick, since), entities, viewer, rates);
        self.tell_seen((tick, since), entities, viewer, rates);
        frame.enters = self.batch.refs.len() as u32 - frame.refs_at;
        frame.leaves = self.batch.leaves.len() as u32 - frame.leaves_at;
        frame.refused = self.batch.refused.len() as u32 - frame.refused_at;
        self.pick_moves(tick, entities, viewer, &frame, budget);
        self.add_crowd(tick, entities, viewer, &mut frame);
        frame.moves = self.moves.len() as u32;
        frame.trajectories = self.trajectories.len() as u32;
        frame.acts = self.act_refs.len() as u32;
        self.batch.refs.append(&mut self.moves);
        self.batch.refs.append(&mut self.trajectories);
        self.batch.refs.append(&mut self.act_refs);
        self.owns_told = self.batch.owns.len() as u32;
        self.batch.sessions.push(frame);
    }

    /// Adds the crowd around the viewer's patch, if it is due and the client's allowance is not spent.
    fn add_crowd(
        &mut self,
        tick: TickStamp,
        entities: &EntityStore,
        viewer: &mut Viewer,
        frame: &mut SessionFrame,
    ) {
        if self.budget.is_some() && !viewer.allowance.is_open() {
            return;
        }
        let crowds = &mut self.batch.crowds;
        if let Some(ix) = self.crowds.of_viewer(tick, entities, viewer.slot, crowds) {
            viewer.allowance.charge(crowd_len(&self.batch.crowds[ix as usize]));
            (frame.crowd_at, frame.crowd) = (ix, 1);
        }
    }

    /// Begins a viewer's frame with what its client must be told whatever else there is.
    #[inline]
    fn begin_frame(&mut self, tick: TickStamp, viewer: &mut Viewer) {
        if std::mem::take(&mut viewer.told_elsewhere) && self.histories.is_estimated() {
            let never = tick.long_before();
            viewer.registers.peers_mut().iter_mut().for_each(|p| p.sent = never);
            viewer.seen.iter_mut().for_each(|s| s.sent = never);
        }
        if viewer.resync {
            viewer.resync = false;
            viewer.gone.clear();
            viewer.registers.peers_mut().iter_mut().for_each(|p| p.set_shown(false));
            viewer.seen.iter_mut().for_each(|s| s.shown = false);
        }
        self.batch.refused.append(&mut viewer.refused);
        let leaving = viewer.gone.len().min(MAX_LEAVES);
        self.batch.leaves.extend(viewer.gone.drain(..leaving));
        self.act_bytes = 0;
        self.enter_bytes = if viewer.gone.is_empty() { 0 } else { PART_BYTES };
        self.due.clear();
        self.moves.clear();
        self.trajectories.clear();
        self.act_refs.clear();
    }

    /// Tells of the players that a viewer has in its view list, or had.
    #[inline]
    fn tell_peers(
        &mut self,
        (tick, since): (TickStamp, Tick),
        entities: &EntityStore,
        viewer: &mut Viewer,
        rates: &Rates,
    ) {
        let moved = entities.have_moved();
        for i in 0..viewer.registers.peers().len() {
            if moved && !find_again(entities, viewer, i) {
                continue;
            }
            let p = &viewer.registers.peers()[i];
            let (wanted, shown) = (p.linked(), p.shown());
            let entry = FrameEntry { slot: p.slot, ring: p.ring, wanted, shown, sent: p.sent };
            let outcome = self.tell((tick, since), entities, entry, rates, (i as u32, true));
            if outcome == Outcome::Leaves {
                self.batch.leaves.push(viewer.registers.yes_ids()[i].id);
            }
            if outcome != Outcome::Stays {
                let p = &mut viewer.registers.peers_mut()[i];
                p.set_shown(outcome == Outcome::Enters);
                p.sent = tick;
            }
        }
    }

    /// Tells of the other entities that a viewer sees.
    #[inline]
    fn tell_seen(
        &mut self,
        (tick, since): (TickStamp, Tick),
        entities: &EntityStore,
        viewer: &mut Viewer,
        rates: &Rates,
    ) {
        let moved = entities.have_moved();
        for (i, s) in viewer.seen.iter_mut().enumerate() {
            if moved && entities.is_free(s.slot) {
                let Some(slot) = entities.slot(s.id) else { continue };
                s.slot = slot;
            }
            let entry = FrameEntry {
                slot: s.slot,
                ring: s.ring,
                wanted: true,
                shown: s.shown,
                sent: s.sent,
            };
            if self.tell((tick, since), entities, entry, rates, (i as u32, false))
                == Outcome::Enters
            {
                (s.shown, s.sent) = (true, tick);
            }
        }
    }

    /// Tells one entry's enter, leave or acts, and notes whether its move is due.
    #[inline]
    fn tell(
        &mut self,
        (tick, since): (TickStamp, Tick),
        entities: &EntityStore,
        e: FrameEntry,
        rates: &Rates,
        at: (u32, bool),
    ) -> Outcome {
        if !e.wanted {
            return if e.shown { Outcome::Leaves } else { Outcome::Stays };
        }
        let body = entities.body(e.slot);
        let mut outcome = Outcome::Stays;
        if !e.shown {
            self.enter_bytes +=
                ENTER_BYTES + TRAJECTORY_BYTES + entities.record(e.slot).appearance.len();
            if self.enter_bytes > PART_BYTES {
                return outcome;
            }
            outcome = Outcome::Enters;
            let piece = self.entering(tick, entities, e.slot);
            self.batch.refs.push(piece);
            if self.histories.is_estimated() {
                self.tell_velocity(tick, entities, e.slot);
            }
        } else if body.shown.is_after(e.sent)
            && let Some(urgency) = self.urgency(tick, &e, body.pos, rates)
        {
            let (peer, is_peer) = at;
            self.due.push(Due { urgency: urgency.into(), slot: e.slot, peer, is_peer });
        }
        if body.acted == tick {
            self.acts_of(e.slot, since);
        }
        outcome
    }
}
