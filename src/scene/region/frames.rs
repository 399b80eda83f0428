//! The frame builder: what each client is told in a tick.
//!
//! The tick calls [`FrameBuilder::make_frames`] when it closes. Each viewer's entries say what its client knows: so nothing
//! is told twice, and nothing is missed that changed while a client was held. Pieces of the batch are shared by all frames
//! that refer to them.

mod crowd;
mod estimate;
mod history;
mod merge;
mod moves;
mod part;
mod pieces;
mod properties;

use self::crowd::Crowds;
use self::history::Histories;
use self::merge::PieceSlots;
use super::actions::TickActions;
use super::egress::Budget;
use super::entities::{Body, EntityStore, Renumbering};
use super::views::Viewer;
use crate::scene::messages::FrameBatch;
use crate::scene::movement::{ServerMs, Steps};
use crate::scene::mutants::{self, Mutant};
use crate::scene::workers::{self, Workers, share};
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
    /// Its trajectory for clients that were told the one before, marked in the same way.
    following: (TickStamp, u32),
    /// Its facing.
    turning: (TickStamp, u32),
    /// Where the pieces of its levels are noted: see [`FrameBuilder::cells`].
    properties: (TickStamp, u32),
}

impl SlotNotes {
    const NOTHING: SlotNotes = SlotNotes {
        entering: NOT_TOLD,
        moving: NOT_TOLD,
        following: NOT_TOLD,
        turning: NOT_TOLD,
        properties: NOT_TOLD,
    };
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
    /// The client was told the trajectory before the present one.
    follows: bool,
}

/// An action that viewers are told.
#[derive(Debug, Clone, Copy)]
struct ActPiece {
    slot: u32,
    piece: u32,
    /// The tick in which the entity acted.
    of: Tick,
    /// The slot of the only viewer that is told.
    only: Option<u32>,
}

/// What is known of the client that is told.
#[derive(Debug, Clone, Copy)]
struct FrameReader<'a> {
    all: &'a Common,
    scene: &'a Scene,
    tick: TickStamp,
    /// It was told of acts before this tick.
    since: Tick,
    /// For so many ticks this region has made its frames, without a break.
    made_here: u64,
    /// Its player's slot.
    slot: u32,
    /// As of when it knows properties.
    properties_told: TickStamp,
    bonds_changed: bool,
    /// All that there may be to tell of an entity that the client is shown is its movement, when it is due by the rates.
    only_rates: bool,
}

impl<'a> FrameReader<'a> {
    fn of(
        viewer: &Viewer,
        now: Tick,
        (all, scene, tick): (&'a Common, &'a Scene, TickStamp),
    ) -> FrameReader<'a> {
        let again = mutants::has(Mutant::ActsAgain);
        let news = !all.acts.is_empty() || all.last_property.is_after(viewer.properties_told);
        FrameReader {
            all,
            scene,
            tick,
            since: if again { Tick(0) } else { viewer.new_acts_from(now) },
            made_here: now.0.saturating_sub(viewer.frames_from.0),
            slot: viewer.slot,
            properties_told: viewer.properties_told,
            bonds_changed: viewer.bonds_changed,
            only_rates: !news && !viewer.bonds_changed && all.histories.rule().is_none(),
        }
    }

    /// Whether there is certainly nothing to tell of an entry: what changed of its entity is not asked for.
    #[inline]
    fn can_skip(&self, e: &FrameEntry) -> bool {
        let waits = || self.tick.ticks_since(e.sent) < self.scene.spec.rates.of_ring(e.ring.into());
        self.only_rates && e.wanted && e.shown && e.withheld <= e.ring && waits()
    }
}

impl FrameReader<'_> {
    /// Whether the client was told, by this region, the trajectory that the entity had before its present one.
    fn has_trajectory_before(&self, e: &FrameEntry) -> bool {
        self.all.judged
            && u64::from(self.tick.ticks_since(e.sent)) <= self.made_here
            && self.all.histories.was_told_before(e.slot, e.sent)
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

/// What is the same for all viewers in a tick.
#[derive(Debug, Default)]
struct Common {
    /// What was told of each entity's movement.
    histories: Histories,
    /// Sorted by slot.
    acts: Vec<ActPiece>,
    /// Moves are trajectories.
    judged: bool,
    now: ServerMs,
    /// What a client may be sent.
    budget: Option<Budget>,
    /// By slot.
    news: Vec<ChangeStamps>,
    /// When a property of any entity changed last.
    last_property: TickStamp,
}

/// When what viewers are told of an entity changed last. Kept apart from all else of the entities, so
/// that those with nothing to tell are not loaded.
#[derive(Debug, Clone, Copy)]
struct ChangeStamps {
    shown: TickStamp,
    moved: TickStamp,
    properties: TickStamp,
    acted: TickStamp,
}

impl ChangeStamps {
    fn of(body: &Body) -> ChangeStamps {
        let Body { shown, moved, properties, acted, .. } = *body;
        ChangeStamps { shown, moved, properties, acted }
    }
}

/// Makes the frames of a tick, in parts of the viewers.
#[derive(Debug, Default)]
pub struct FrameBuilder {
    common: Common,
    /// The first one's batch becomes that of the tick.
    parts: Vec<FramePart>,
    spare: Vec<FrameBatch>,
}

/// The frames of a part of the viewers, and the buffers to make them.
#[derive(Debug, Default)]
struct FramePart {
    batch: FrameBatch,
    told: Vec<SlotNotes>,
    /// The slots of the batch's pieces.
    slots: PieceSlots,
    due: Vec<Due>,
    moves: Vec<u32>,
    trajectories: Vec<u32>,
    turns: Vec<u32>,
    act_refs: Vec<u32>,
    property_refs: Vec<u32>,
    kept: Vec<u32>,
    /// Of each entity of which a client is told a property: the piece of each of its levels.
    cells: Vec<u32>,
    /// Where the viewer is whose frame is under way.
    eye: Pos,
    crowds: Crowds,
    /// Moves that were due and waited since the start, a tick each, for want of room.
    moves_waited: u64,
    /// Entries of the batch's `owns` that belong to frames which were added.
    owns_told: u32,
    /// Bytes of enters and of acts in the frame under way.
    enter_bytes: usize,
    act_bytes: usize,
    property_bytes: usize,
    /// Most bytes of acts and properties in it. One that begins within is told as a whole.
    room: usize,
    /// Acts that were not told to a viewer since the start, for want of room.
    acts_dropped: u64,
}

impl FrameBuilder {
    /// Forgets where pieces were in batches of old.
    pub fn forget_pieces(&mut self) {
        self.parts.iter_mut().for_each(|part| part.told.clear());
    }

    /// Slots are numbered anew.
    pub fn renumber(&mut self, new: &Renumbering) {
        self.common.histories.renumber(new);
    }

    /// Takes the positions of a tick, before its frames are made.
    pub fn bring_up(&mut self, tick: Tick, scene: &Scene, entities: &mut EntityStore) {
        self.common.histories.bring_up(tick, scene, entities);
    }

    /// Keeps a batch's memory for another tick.
    pub fn recycle(&mut self, batch: FrameBatch) {
        if self.spare.len() < 4 {
            self.spare.push(batch);
        }
    }
}

impl FrameBuilder {
    /// Makes the frames of a tick. They are the same for any number of workers.
    pub fn make_frames(
        &mut self,
        tick: Tick,
        scene: &Scene,
        (entities, actions): (&EntityStore, &mut TickActions),
        viewers: &mut [Viewer],
        workers: &dyn Workers,
    ) -> Option<FrameBatch> {
        let count = workers::parts(workers, viewers.len(), workers::LEAST_PLAYERS);
        self.begin(tick, scene, entities, actions, count);
        let FrameBuilder { common, parts, .. } = self;
        let all = (&*common, scene, TickStamp::of(tick));
        let parts = &mut parts[..count];
        share(workers, viewers, parts, |part, _, viewers| {
            part.add_frames(tick, all, entities, viewers);
        });
        let (first, others) = parts.split_first_mut()?;
        for part in others {
            first.append(TickStamp::of(tick), part);
        }
        let batch = std::mem::take(&mut first.batch);
        if batch.sessions.is_empty() {
            self.recycle(batch);
            return None;
        }
        Some(batch)
    }

    /// Begins a batch, in so many parts, with the actions of the tick.
    fn begin(
        &mut self,
        tick: Tick,
        scene: &Scene,
        entities: &EntityStore,
        actions: &mut TickActions,
        parts: usize,
    ) {
        if self.parts.len() < parts {
            self.parts.resize_with(parts, FramePart::default);
        }
        self.parts[0].batch = self.spare.pop().unwrap_or_default();
        for part in &mut self.parts[..parts] {
            part.begin(tick, scene, entities);
        }
        let (common, acting) = (&mut self.common, &mut self.parts[0].batch.acting);
        common.news.clear();
        common.news.extend(entities.all().map(|(body, _)| ChangeStamps::of(body)));
        common.last_property = TickStamp::of(tick).long_before();
        for news in &common.news {
            if news.properties.is_after(common.last_property) {
                common.last_property = news.properties;
            }
        }
        common.acts.clear();
        for act in actions.drain() {
            if entities.body(act.slot).id == act.id {
                let (slot, piece) = (act.slot, acting.len() as u32);
                common.acts.push(ActPiece { slot, piece, of: act.of, only: act.only });
                acting.push((act.id, act.content.payload, act.content.by));
            }
        }
        // Actions that a neighbour repeats are of earlier ticks than its others.
        common.acts.sort_by_key(|act| (act.slot, act.of));
        common.judged = scene.judged.is_some();
        common.budget = Budget::of(scene.spec.egress_bits_s, scene.tick_ms);
        common.now = ServerMs(tick.0.saturating_mul(scene.tick_ms.into()));
        if let [first, others @ ..] = &mut self.parts[..parts] {
            others.iter_mut().for_each(|part| part.batch.acting.clone_from(&first.batch.acting));
        }
    }

    /// Moves that were due and waited since the start, a tick each, for want of room.
    pub fn moves_waited(&self) -> u64 {
        self.parts.iter().map(|part| part.moves_waited).sum()
    }

    /// Acts that a viewer was not told since the start, because its frame was full.
    pub fn acts_dropped(&self) -> u64 {
        self.parts.iter().map(|part| part.acts_dropped).sum()
    }
}

impl FramePart {
    fn begin(&mut self, tick: Tick, scene: &Scene, entities: &EntityStore) {
        self.batch.clear(tick);
        self.slots.clear();
        self.owns_told = 0;
        self.told.resize(entities.slot_count() as usize, SlotNotes::NOTHING);
        self.cells.clear();
        self.crowds.begin(scene);
    }

    fn add_frames(
        &mut self,
        tick: Tick,
        all: (&Common, &Scene, TickStamp),
        entities: &EntityStore,
        viewers: &mut [Viewer],
    ) {
        for ix in 0..viewers.len() {
            if let Some(v) = viewers.get(ix + prefetch::PLAYERS) {
                prefetch::fetch(v.registers.peers());
            }
            let viewer = &mut viewers[ix];
            if viewer.gets_frame_of(tick) {
                let reader = FrameReader::of(viewer, tick, all);
                self.add_own(reader, entities, viewer);
                self.add_frame(reader, entities, viewer);
            }
        }
    }
}
