//! The frame builder: what each client is told in a tick.
//!
//! The tick calls [`FrameBuilder::make_frames`] when it closes. Each viewer's entries say what its client knows: so nothing
//! is told twice, and nothing is missed that changed while a client was held. Pieces of the batch are shared by all frames
//! that refer to them.

mod crowd;
mod estimate;
mod history;
mod moves;
mod pieces;
mod properties;

use self::crowd::Crowds;
use self::history::Histories;
use super::actions::TickActions;
use super::egress::{Budget, crowd_len};
use super::entities::{EntityStore, Renumbering, own_of};
use super::views::Viewer;
use crate::scene::messages::{FrameBatch, SessionFrame};
use crate::scene::movement::{ServerMs, Steps};
use crate::scene::mutants::{self, Mutant};
use crate::scene::{Pos, Scene, Tick, TickStamp, prefetch};

/// Most bytes that one entity's move takes in a frame: array, id, three coordinates, two velocities, facing.
const MOVE_BYTES: usize = 1 + 9 + 5 * 5 + 3;

/// Most bytes of each part of a frame, so that all of them together stay below
/// the 1 MiB that a client accepts: enters and moves that do not fit wait for another tick, acts
/// that do not fit are not told to that client, and counted. Properties that do not fit wait, too.
const PART_BYTES: usize = 220 * 1_024;

/// Most leaves in a frame, 9 bytes each. While more wait no entity enters, since a client that is told
/// of an entity anew must have been told before that the entity left.
const MAX_LEAVES: usize = 10_000;

/// Most messages in a frame, of 1,024 bytes at most.
const MAX_TOLD: usize = 32;

/// Bytes of an entering entity beside its properties, and of an act beside its payload, at most.
const ENTER_BYTES: usize = MOVE_BYTES + 2 + 5;

/// Bytes of a property beside its value, at most: array, entity, number, version, head of the value.
const PROPERTY_BYTES: usize = 1 + 9 + 1 + 5 + 3;

/// Most bytes of an entity's trajectory beside its id: a path of as many steps as may be.
const TRAJECTORY_BYTES: usize = 1 + 9 + 5 + 1 + 1 + 16 + 2 + Steps::MAX + 5 + 3;

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
    /// Its facing.
    turning: (TickStamp, u32),
    /// Where the pieces of its levels are noted: see [`FrameBuilder::cells`].
    properties: (TickStamp, u32),
}

impl SlotNotes {
    const NOTHING: SlotNotes =
        SlotNotes { entering: NOT_TOLD, moving: NOT_TOLD, turning: NOT_TOLD, properties: NOT_TOLD };
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
    /// It has turned, and no more.
    turns: bool,
}

/// What is known of the client that is told.
#[derive(Debug, Clone, Copy)]
struct Reader<'a> {
    scene: &'a Scene,
    tick: TickStamp,
    /// It was told of acts before this tick.
    since: Tick,
    /// Its player's slot.
    slot: u32,
    /// As of when it knows properties.
    properties_told: TickStamp,
    bonds_changed: bool,
}

impl<'a> Reader<'a> {
    fn of(viewer: &Viewer, scene: &'a Scene, tick: TickStamp) -> Reader<'a> {
        let again = mutants::has(Mutant::ActsAgain);
        Reader {
            scene,
            tick,
            since: if again { Tick(0) } else { viewer.frames_from },
            slot: viewer.slot,
            properties_told: viewer.properties_told,
            bonds_changed: viewer.bonds_changed,
        }
    }
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
    turns: Vec<u32>,
    act_refs: Vec<u32>,
    property_refs: Vec<u32>,
    kept: Vec<u32>,
    /// Of each entity of which a client is told a property: the piece of each of its levels.
    cells: Vec<u32>,
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
    property_bytes: usize,
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
    /// Properties that the client misses.
    withheld: u8,
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
        let stamp = TickStamp::of(tick);
        for ix in 0..viewers.len() {
            if let Some(v) = viewers.get(ix + prefetch::PLAYERS) {
                prefetch::fetch(v.registers.peers());
            }
            let viewer = &mut viewers[ix];
            if viewer.gets_frame_of(tick) {
                self.add_own(self.now, entities, viewer);
                let reader = Reader::of(viewer, scene, stamp);
                self.add_frame(reader, entities, viewer);
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
        self.told.resize(slots, SlotNotes::NOTHING);
        self.acts.clear();
        self.cells.clear();
        for act in actions.drain() {
            if entities.body(act.slot).id == act.id {
                self.acts.push((act.slot, self.batch.acting.len() as u32, act.of));
                self.batch.acting.push((act.id, act.content.payload, act.content.by));
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

    fn add_frame(&mut self, reader: Reader<'_>, entities: &EntityStore, viewer: &mut Viewer) {
        let mut frame = SessionFrame {
            session: viewer.session.unwrap_or_default(),
            ack: viewer.last_applied,
            epoch: entities.record(viewer.slot).epoch,
            resync: viewer.resync,
            refs_at: self.batch.refs.len() as u32,
            leaves_at: self.batch.leaves.len() as u32,
            refused_at: self.batch.refused.len() as u32,
            told_at: self.batch.told.len() as u32,
            own_at: self.owns_told,
            own: self.batch.owns.len() as u32 - self.owns_told,
            handle: viewer.handle,
            ..SessionFrame::default()
        };
        self.begin_frame(reader.tick, viewer);
        self.eye = entities.body(viewer.slot).pos;
        self.tell_own_properties(reader, entities, viewer);
        self.tell_peers(reader, entities, viewer);
        self.tell_seen(reader, entities, viewer);
        (viewer.properties_told, viewer.bonds_changed) = (reader.tick, false);
        frame.enters = self.batch.refs.len() as u32 - frame.refs_at;
        frame.leaves = self.batch.leaves.len() as u32 - frame.leaves_at;
        frame.refused = self.batch.refused.len() as u32 - frame.refused_at;
        frame.told = self.batch.told.len() as u32 - frame.told_at;
        self.pick_moves(reader, entities, viewer, &frame);
        self.add_crowd(reader.tick, entities, viewer, &mut frame);
        frame.moves = self.moves.len() as u32;
        frame.trajectories = self.trajectories.len() as u32;
        frame.turns = self.turns.len() as u32;
        frame.acts = self.act_refs.len() as u32;
        frame.properties = self.property_refs.len() as u32;
        frame.kept = self.kept.len() as u32;
        self.batch.refs.append(&mut self.moves);
        self.batch.refs.append(&mut self.trajectories);
        self.batch.refs.append(&mut self.turns);
        self.batch.refs.append(&mut self.act_refs);
        self.batch.refs.append(&mut self.property_refs);
        self.batch.refs.append(&mut self.kept);
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
            (viewer.resync, viewer.own_properties_due) = (false, true);
            viewer.gone.clear();
            viewer.registers.peers_mut().iter_mut().for_each(|p| p.set_shown(false));
            viewer.seen.iter_mut().for_each(|s| s.shown = false);
        }
        self.batch.refused.append(&mut viewer.refused);
        let told = viewer.mailbox.waiting.len().min(MAX_TOLD);
        self.batch.told.extend(viewer.mailbox.waiting.drain(..told));
        let leaving = viewer.gone.len().min(MAX_LEAVES);
        self.batch.leaves.extend(viewer.gone.drain(..leaving));
        (self.act_bytes, self.property_bytes) = (0, 0);
        self.enter_bytes = if viewer.gone.is_empty() { 0 } else { PART_BYTES };
        self.due.clear();
        self.moves.clear();
        self.trajectories.clear();
        self.turns.clear();
        self.act_refs.clear();
        self.property_refs.clear();
        self.kept.clear();
    }

    /// Tells of the players that a viewer has in its view list, or had.
    #[inline]
    fn tell_peers(&mut self, reader: Reader<'_>, entities: &EntityStore, viewer: &mut Viewer) {
        let moved = entities.have_moved();
        for i in 0..viewer.registers.peers().len() {
            if moved && !find_again(entities, viewer, i) {
                continue;
            }
            let p = &viewer.registers.peers()[i];
            let (wanted, shown) = (p.linked(), p.shown());
            let (slot, ring, sent, withheld) = (p.slot, p.ring, p.sent, p.withheld);
            let entry = FrameEntry { slot, ring, wanted, shown, sent, withheld };
            let (outcome, withheld) = self.tell(reader, entities, entry, (i as u32, true));
            if withheld != entry.withheld {
                viewer.registers.peers_mut()[i].withheld = withheld;
            }
            if outcome == Outcome::Leaves {
                self.batch.leaves.push(viewer.registers.yes_ids()[i].id);
            }
            if outcome != Outcome::Stays {
                let p = &mut viewer.registers.peers_mut()[i];
                p.set_shown(outcome == Outcome::Enters);
                p.sent = reader.tick;
            }
        }
    }

    /// Tells of the other entities that a viewer sees.
    #[inline]
    fn tell_seen(&mut self, reader: Reader<'_>, entities: &EntityStore, viewer: &mut Viewer) {
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
                withheld: s.withheld,
            };
            let (outcome, withheld) = self.tell(reader, entities, entry, (i as u32, false));
            s.withheld = withheld;
            if outcome == Outcome::Enters {
                (s.shown, s.sent) = (true, reader.tick);
            }
        }
    }

    /// Tells one entry's enter, leave, acts or properties, and notes whether its move is due. Gives also what is
    /// withheld of its properties from now on.
    #[inline]
    fn tell(
        &mut self,
        reader: Reader<'_>,
        entities: &EntityStore,
        e: FrameEntry,
        at: (u32, bool),
    ) -> (Outcome, u8) {
        if !e.wanted {
            return (if e.shown { Outcome::Leaves } else { Outcome::Stays }, e.withheld);
        }
        let body = entities.body(e.slot);
        let (mut outcome, mut withheld) = (Outcome::Stays, e.withheld);
        if !e.shown {
            self.enter_bytes +=
                ENTER_BYTES + TRAJECTORY_BYTES + properties::entering_bytes(entities, e.slot);
            if self.enter_bytes > PART_BYTES {
                return (outcome, withheld);
            }
            outcome = Outcome::Enters;
            let piece = self.entering(reader, entities, e.slot);
            self.batch.refs.push(piece);
            withheld = self.tell_entering_properties(reader, entities, e.slot);
            if self.histories.is_estimated() {
                self.tell_velocity(reader.tick, entities, e.slot);
            }
        } else {
            if body.shown.is_after(e.sent) {
                let turns = !body.moved.is_after(e.sent);
                if let Some(urgency) = self.urgency(reader, &e, body.pos, turns) {
                    let (peer, is_peer) = at;
                    let urgency = urgency.into();
                    self.due.push(Due { urgency, slot: e.slot, peer, is_peer, turns });
                }
            }
            let news = body.properties.is_after(reader.properties_told);
            if news || e.withheld > e.ring || reader.bonds_changed {
                withheld = self.tell_properties(reader, entities, e);
            }
        }
        if body.acted == reader.tick {
            self.acts_of(e.slot, reader.since);
        }
        (outcome, withheld)
    }
}
