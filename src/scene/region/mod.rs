//! A region: one authority over a block of lands, sans IO.
//!
//! A tick has three parts. [`Region::tick`] *opens* it: inputs are applied, positions become those of
//! the tick, and each neighbour is sent its ghosts. When the ghosts of that same tick have come from
//! every neighbour, views are evaluated over positions of one moment, on both sides of every border
//! alike, and neighbours *settle* what concerns both (see the module `settle`). Then the tick *closes*: frames
//! are made, and who has gone too far past a border is handed off.
//! A neighbour that is late is waited for, within bounds: the tick takes longer, on both sides of the
//! border, and ticks that are due meanwhile are left out.
//!
//! ```text
//!           tick(T)            ghosts of T or later            a round in which
//!                              from all neighbours             nobody says anything
//!   Closed ----------> Open(T) --------------------> Settling(T) ----------------> Closed(T)
//!     ^                   |                               |                            |
//!     |                   |  tick(T + PATIENCE): a neighbour is silent                 |
//!     |                   +-------------------------------+--------------------------->|
//!     +--------------------------------------------------------------------------------+
//! ```
//!
//! *Absent on purpose:* clocks, threads, sockets, actors, randomness. `now` is a tick.

mod absent;
mod ahead;
mod arrivals;
mod bodies;
mod border_in;
mod border_out;
mod doors;
mod escrow;
mod fights;
mod frames;
mod freeze;
mod handoff;
mod layout;
mod look;
mod negotiate;
mod plausible;
mod present;
mod recover;
mod remap;
mod renew;
mod restore;
mod scan;
mod seek;
mod settle;
mod snapshot;
mod tracks;
mod viewer;
mod walkers;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use self::bodies::{Bodies, Bound};
use self::border_in::Inbound;
use self::border_out::Outbound;
pub use self::escrow::ESCROW_TICKS;
use self::negotiate::Mail;
pub use self::plausible::Implausible;
pub use self::recover::Recovery;
pub use self::remap::NotProposed;
pub use self::restore::RestoreError;
pub use self::snapshot::{RegionSnapshot, SavedEntity};
use self::viewer::Viewer;
use super::border::{Claim, Handoff};
use super::effects::{Bond, Deed, Destination, Effect, Input, Notice, Order, Resume, Spawn};
use super::frames::{FrameBatch, InputRefused, Refusal};
use super::map::RegionEntry;
use super::movement::Reason;
use super::mutants::{self, Mutant};
use super::terrain::Ground;
use super::views::ViewRules;
use super::{
    EntityId, Epoch, Kind, Plane, Pos, Rect, RegionId, Scene, SceneId, Seq, Tick, TickStamp,
};

/// Counts of a region, as of its last closed tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Entities that live here.
    pub reals: u64,
    /// Of these, players with a session.
    pub players: u64,
    /// Mirrored entities.
    pub ghosts: u64,
    /// Entities handed off since the start.
    pub handoffs: u64,
    /// Frames made since the start.
    pub frames: u64,
    /// Enters, leaves, moves and acts in these frames.
    pub updates: u64,
    /// Messages of the view negotiation sent to other regions since the start.
    pub view_messages: u64,
    /// Messages of the view negotiation between players who both live here since the start.
    pub letters: u64,
    /// Acts that a viewer was not told since the start, because its frame was full.
    pub acts_dropped: u64,
    /// Ticks closed without the ghosts of every neighbour.
    pub forced_closes: u64,
    /// Neighbours whose ghosts were looked at, summed over the ticks since the start.
    pub border_ticks: u64,
    /// Of these, those whose ghosts were older than the tick.
    pub stale_border_ticks: u64,
    /// By how many ticks at most.
    pub stalest_ticks: u64,
    /// Entities that have come from regions of this scene since the start.
    pub arrivals: u64,
    /// Of these, those that act here later than in the tick after their last one there.
    pub late_arrivals: u64,
    /// Messages of regions that had died before they came, since the start.
    pub fenced: u64,
    /// Messages that could not be true and were refused since the start.
    pub implausible: u64,
    /// Inputs that were refused since the start, since too many waited.
    pub inputs_refused: u64,
    /// Messages of the view negotiation that found no room since the start.
    pub letters_lost: u64,
    /// Players of a checkpoint whom no session has presented yet.
    pub dormant: u64,
    /// Words about movement that were refused since the start, by reason: as [`Reason::WORDS`].
    pub moves_refused: [u64; Reason::WORDS.len()],
}

/// An act of this tick. Whoever did it may have left since, and its slot may be another's.
#[derive(Debug, Clone)]
struct PendingAct {
    slot: u32,
    id: EntityId,
    deed: Deed,
    /// It lived here when it acted: neighbours hear of it from here and from nowhere else.
    here: bool,
    /// The tick in which it acted: before this one, if a neighbour was late to tell.
    of: Tick,
}

/// Ticks for which a late neighbour is waited for. One that is silent for longer is not waited for
/// any more until it is heard again.
pub const PATIENCE: u64 = 10;

/// Where an entity was last known to live that is not known here any more. What carries a lower
/// epoch is late; the region is this one when the entity is gone for good.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Moved {
    region: RegionId,
    epoch: Epoch,
    since: Tick,
}

/// Inputs of clients that wait for the next tick; of others as many again.
const MAX_INBOX: usize = 65_536;

/// Longest payload of an act, bytes.
const MAX_ACT: usize = 1_024;

/// Refused inputs of which a client is not told yet; more of its inputs wait until it is.
const MAX_REFUSED: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Settling,
    Closed,
}

/// A region of a scene.
#[derive(Debug)]
pub struct Region {
    id: RegionId,
    epoch: Epoch,
    /// Since this region epoch nothing of it was lost.
    lineage: Epoch,
    rect: Rect,
    scene: Arc<Scene>,
    rules: ViewRules,
    /// Where one can walk; `None`: everywhere.
    ground: Option<Ground>,
    tick: Tick,
    /// The newest tick that was due.
    due: Tick,
    /// When it was told last that a message was refused that cannot be true.
    implausible_at: Option<Tick>,
    phase: Phase,
    /// The round of settling, and whether this region had nothing to say in it.
    round: u32,
    said_nothing: bool,
    inbox: Vec<Input>,
    /// To whom nobody is handed over for now, since too much waits for them.
    held_back: Vec<RegionId>,
    arrivals: Vec<Spawn>,
    incoming: Vec<Handoff>,
    moved: FxHashMap<EntityId, Moved>,
    /// Whom other regions that go on from checkpoints believe to have and have asked about in vain, and the first tick since.
    unanswered: FxHashMap<EntityId, (Claim, Option<Tick>)>,
    /// Of regions that have died: since which of their epochs they are believed again.
    fences: FxHashMap<RegionId, Epoch>,
    /// Since which of their epochs others had their owners when this one went on from a checkpoint.
    owners: FxHashMap<RegionId, Epoch>,
    escrow: escrow::Escrow,
    /// While the region map changes.
    remap: Option<Box<remap::Remap>>,
    remapped: remap::Remapped,
    /// While not everybody is back whom a checkpoint knew.
    recovering: Option<Box<recover::Recovering>>,
    bodies: Bodies,
    viewers: Vec<Viewer>,
    /// Players whose clients are away, and until when; those who are back are here until then, too.
    absent: Vec<(Tick, EntityId)>,
    /// Sessions whose players were dropped here, since these live elsewhere under a higher epoch, and where.
    displaced: Vec<(RegionId, Resume)>,
    acts: Vec<PendingAct>,
    /// Messages that were passed on in this tick to where entities live by now.
    passed_on: u32,
    fights: fights::Fights,
    inbound: Inbound,
    outbound: Outbound,
    mail: Mail,
    /// The tick whose views were evaluated last.
    view_tick: TickStamp,
    /// When the stamps of what is remembered of entities were renewed last.
    renewed: Tick,
    /// Everybody is where it was when views were evaluated.
    still: bool,
    scratch: scan::Scratch,
    frames: frames::Assembly,
    counts: Counts,
}

impl Region {
    /// The region `id` of `scene`, empty; `None` when the scene has no such region.
    pub fn new(scene: Arc<Scene>, id: RegionId) -> Option<Region> {
        let entry = scene.map.get(id)?.clone();
        let neighbours = scene.map.neighbours(id, scene.bonded_band_cm);
        Some(Region::of(scene, &entry, &neighbours))
    }

    fn of(scene: Arc<Scene>, entry: &RegionEntry, neighbours: &[RegionEntry]) -> Region {
        Region {
            id: entry.id,
            epoch: entry.epoch,
            lineage: entry.epoch,
            rect: entry.rect,
            rules: ViewRules::of(&scene),
            ground: scene.terrain.clone().map(Ground::new),
            tick: Tick(0),
            due: Tick(0),
            implausible_at: None,
            phase: Phase::Closed,
            round: 0,
            said_nothing: true,
            inbox: Vec::new(),
            held_back: Vec::new(),
            arrivals: Vec::new(),
            incoming: Vec::new(),
            moved: FxHashMap::default(),
            unanswered: FxHashMap::default(),
            fences: FxHashMap::default(),
            owners: FxHashMap::default(),
            escrow: escrow::Escrow::default(),
            remap: None,
            remapped: remap::Remapped::default(),
            recovering: None,
            bodies: Bodies::new(&scene, entry.rect),
            viewers: Vec::new(),
            absent: Vec::new(),
            displaced: Vec::new(),
            acts: Vec::new(),
            passed_on: 0,
            fights: fights::Fights::default(),
            inbound: Inbound::new(neighbours),
            outbound: Outbound::new(neighbours),
            mail: Mail::default(),
            view_tick: TickStamp::default(),
            renewed: Tick(0),
            still: false,
            scratch: scan::Scratch::default(),
            frames: frames::Assembly::default(),
            counts: Counts::default(),
            scene,
        }
    }

    /// The same region under this epoch.
    pub fn with_epoch(mut self, epoch: Epoch) -> Region {
        (self.epoch, self.lineage) = (epoch, epoch);
        self
    }

    /// The region's name.
    pub fn id(&self) -> RegionId {
        self.id
    }

    /// Its epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The scene whose ground it has.
    pub fn scene_id(&self) -> SceneId {
        self.scene.id
    }

    /// Its ground.
    pub fn rect(&self) -> Rect {
        self.rect
    }

    /// The tick that was opened last.
    pub fn current_tick(&self) -> Tick {
        self.tick
    }

    /// The time by which log lines are limited: that of the tick, milliseconds.
    pub(super) fn log_ms(&self) -> u64 {
        self.tick.0.saturating_mul(self.scene.tick_ms.into())
    }

    /// Whether the last opened tick is closed. A region that goes on from a checkpoint is as if in an open
    /// one until it knows what has become of its entities.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed && !self.is_rising() && !self.is_held()
    }

    /// Its figures.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Gives back a batch that was delivered, so that its memory is used again.
    pub fn recycle(&mut self, batch: FrameBatch) {
        self.frames.recycle(batch);
    }

    /// Takes an input. Most wait for the next tick; ghosts may close the present one, and messages
    /// of the view negotiation are answered at once while the tick is closed.
    pub fn handle(&mut self, input: Input, fx: &mut Vec<Effect>) {
        if !self.is_plausible(&input) {
            return;
        }
        let Some(input) = self.too_early(input) else { return };
        match input {
            Input::Border(batch) => {
                self.fence(batch.from, batch.lineage);
                self.counts.fenced += u64::from(self.inbound.keep(*batch, self.id, fx));
                if self.phase == Phase::Open && self.inbound.complete(self.tick) {
                    self.close(fx);
                }
            }
            Input::BorderLost(neighbour) => self.outbound.lost(neighbour),
            Input::Settle(batch) if self.is_late(batch.from, batch.epoch) => {}
            Input::Settle(batch) => self.settle(*batch, fx),
            Input::View(msg) => {
                self.counts.letters_lost += self.mail.post(msg);
                if self.phase == Phase::Closed {
                    self.read_mail(fx);
                }
            }
            Input::Handoff(handoff) if self.is_late(handoff.from, handoff.from_epoch) => {}
            Input::Handoff(handoff) => self.receive(*handoff, fx),
            Input::Elsewhere(claim) => self.take_for_gone(claim),
            Input::Recovered(news) => self.answer_recovered(&news, fx),
            Input::Claims(claims) => self.hear_claims(*claims, fx),
            Input::Map(news) => self.hear_map_news(*news, fx),
            Input::Door(order) => self.take_door_order(order, fx),
            other => self.queue(other),
        }
        self.follow_displaced(fx);
    }

    /// Keeps an input for the next tick. While a neighbour is late that may take a while. An input of a client is refused
    /// first: it stays with its player until it is acknowledged, and is sent again. Others have as much room again.
    fn queue(&mut self, input: Input) {
        let room = if matches!(input, Input::Client { .. }) { MAX_INBOX } else { 2 * MAX_INBOX };
        if self.inbox.len() < room {
            return self.inbox.push(input);
        }
        self.counts.inputs_refused += 1;
        let refused = self.counts.inputs_refused;
        crate::log_limited!(at self.log_ms(); warn, region = %self.id, refused, "too many inputs wait for the next tick");
    }

    /// Hands nobody over to a region for now, or again: too much waits for it.
    pub fn hold_back(&mut self, to: RegionId, hold: bool) {
        self.held_back.retain(|held| *held != to);
        if hold {
            self.held_back.push(to);
        }
    }

    /// Whether nobody is handed over to a region for now.
    pub fn holds_back(&self, to: RegionId) -> bool {
        self.held_back.contains(&to)
    }

    /// Opens tick `now`, which is greater than the last one; a tick that is not greater changes
    /// nothing. While the last one is still open because a neighbour is late nothing happens either:
    /// both sides of a border then take longer over a tick rather than disagree on it. After
    /// [`PATIENCE`] ticks the open one is closed with what there is.
    pub fn tick(&mut self, now: Tick, fx: &mut Vec<Effect>) {
        self.know_time(now);
        if now <= self.tick || !self.has_risen(now) {
            return;
        }
        if self.phase != Phase::Closed {
            if now.0 < self.tick.0.saturating_add(PATIENCE) {
                return;
            }
            self.counts.forced_closes += 1;
            self.force(fx);
        }
        if !self.may_open(now, fx) {
            return;
        }
        self.tick = now;
        self.bodies.now = now;
        self.phase = Phase::Open;
        self.still = false;
        self.acts.clear();
        self.passed_on = 0;
        self.turn_doors();
        self.mail.forget_reaches();
        self.renew_stamps();
        if now.0.is_multiple_of(layout::SORT_TICKS) {
            self.renew_numbers();
            self.sort_by_place();
        }
        self.end_fights();
        // What was late for the last tick counts before anybody comes to live here.
        self.catch_up(Tick(now.0 - 1));
        self.install_incoming();
        self.give_up_dormant();
        self.end_absences(fx);
        self.follow_displaced(fx);
        let mut inbox = std::mem::take(&mut self.inbox);
        let mut inputs = inbox.drain(..);
        while let Some(input) = inputs.next() {
            if let Some(later) = inputs.as_slice().get(ahead::INPUTS) {
                self.bodies.fetch(later.entity());
            }
            // What is for somebody who is not installed yet waits with it.
            match input.entity() {
                Some(id) if self.waits(id, &input) => self.inbox.push(input),
                _ => self.apply(input, fx),
            }
        }
        drop(inputs);
        // Its memory is used again.
        inbox.append(&mut self.inbox);
        self.inbox = inbox;
        self.hand_over_again(fx);
        self.wake_the_absent(fx);
        for spawn in std::mem::take(&mut self.arrivals) {
            self.add(spawn, fx);
        }
        self.advance_walkers();
        self.send_borders(fx);
        if self.inbound.complete(now) {
            self.close(fx);
        }
    }

    fn close(&mut self, fx: &mut Vec<Effect>) {
        self.look_around();
        self.hear_mail(fx);
        if self.outbound.is_alone() {
            self.finish(fx);
        } else {
            self.begin_settling(fx);
        }
    }

    /// Ends a tick whose neighbours are not heard, with what there is.
    fn force(&mut self, fx: &mut Vec<Effect>) {
        if self.phase == Phase::Open {
            self.look_around();
        }
        self.hear_mail(fx);
        self.finish(fx);
    }

    /// Brings ghosts and views to the positions of the tick that is open.
    fn look_around(&mut self) {
        self.apply_borders();
        self.phase = Phase::Settling;
        self.install_incoming();
        self.begin_anew_with_reborn();
        self.begin_fights();
        self.evaluate_all();
    }

    /// Ends a tick: views are as they are.
    fn finish(&mut self, fx: &mut Vec<Effect>) {
        self.make_frames(fx);
        self.apply_reaches();
        self.send_done(fx);
        self.send_handoffs(fx);
        self.follow_displaced(fx);
        self.still = false;
        self.phase = Phase::Closed;
        self.counts.ghosts = self.bodies.len() as u64 - self.counts.reals;
    }

    fn apply(&mut self, input: Input, fx: &mut Vec<Effect>) {
        match input {
            Input::Enter(spawn) => self.arrivals.push(*spawn),
            Input::Client { id, seq, order } => self.apply_client(id, seq, order, fx),
            Input::Leave(id) => match self.real_slot(id) {
                Some(slot) => self.remove_real(slot, fx),
                None => self.cancel_arrival(id, fx),
            },
            Input::Logic { id, ref order } => match self.real_slot(id) {
                Some(slot) => {
                    if let Err(why) = self.obey(slot, order.clone(), fx) {
                        crate::log_limited!(at self.log_ms(); warn, region = %self.id, entity = %id, ?why, "an order of the server's logic was refused");
                    }
                }
                None => self.forward(id, input, fx),
            },
            Input::Motion { id, motion } => match self.real_slot(id) {
                Some(slot) => {
                    if let Err(why) = self.set_in_motion(slot, motion) {
                        crate::log_limited!(at self.log_ms(); warn, region = %self.id, entity = %id, ?motion, ?why, "the server's logic cannot move an entity so");
                    }
                }
                None => self.forward(id, input, fx),
            },
            Input::Bonds { id, ref bonds } => match self.real_slot(id) {
                Some(slot) => self.set_bonds(slot, bonds.clone()),
                None => self.forward(id, input, fx),
            },
            Input::Hold(id) => self.steer(id, input, fx, |v| v.held = true),
            Input::Release(id) => self.steer(id, input, fx, |v| v.held = false),
            Input::Resync(id) => self.steer(id, input, fx, |v| v.resync = true),
            Input::Present(presented) => self.present(*presented, fx),
            Input::Absent { id, ms: 0, .. } if !self.is_anothers(&input) => {
                self.apply(Input::Leave(id), fx);
            }
            Input::Absent { .. } => self.make_absent(input, fx),
            Input::Resume(resume) => self.resume(resume, fx),
            Input::Border(_)
            | Input::Elsewhere(_)
            | Input::Recovered(_)
            | Input::Claims(_)
            | Input::BorderLost(_)
            | Input::Settle(_)
            | Input::View(_)
            | Input::Handoff(_)
            | Input::Map(_)
            | Input::Door(_) => {
                // `handle` takes these at once; they never wait in the inbox.
            }
        }
    }

    /// Whether an input is for somebody who is not quite here yet, or who is between two scenes.
    fn waits(&self, id: EntityId, input: &Input) -> bool {
        match self.real_slot(id) {
            Some(slot) => {
                let orders = matches!(
                    input,
                    Input::Client { .. }
                        | Input::Logic { .. }
                        | Input::Motion { .. }
                        | Input::Resume(_)
                );
                orders && self.bodies.cold[slot as usize].plane == Plane::LIMBO
            }
            None if self.is_incoming(id) => true,
            None if self.is_dormant(id) => {
                matches!(input, Input::Logic { .. } | Input::Motion { .. } | Input::Bonds { .. })
            }
            None if matches!(input, Input::Leave(_)) => false,
            None => self.arrivals.iter().any(|s| s.id == id),
        }
    }

    /// Whoever leaves before it was added never was here; whoever has moved on is followed.
    fn cancel_arrival(&mut self, id: EntityId, fx: &mut Vec<Effect>) {
        match self.arrivals.iter().position(|s| s.id == id) {
            Some(at) => {
                if let Some(session) = self.arrivals.swap_remove(at).session {
                    let (tick, epoch) = (self.tick, self.lineage.of_birth());
                    fx.push(Effect::Notice(session, Notice::Left { tick, epoch }));
                }
            }
            None if self.forget_dormant(id, fx) => {}
            None => self.forward(id, Input::Leave(id), fx),
        }
    }

    fn steer(&mut self, id: EntityId, i: Input, fx: &mut Vec<Effect>, f: impl Fn(&mut Viewer)) {
        match self.real_slot(id) {
            Some(slot) => {
                let ix = self.bodies.hot[slot as usize].viewer as usize;
                if let Some(viewer) = self.viewers.get_mut(ix) {
                    f(viewer);
                }
            }
            None => self.forward(id, i, fx),
        }
    }

    /// Sends an input after an entity that has moved to another region.
    fn forward(&mut self, id: EntityId, input: Input, fx: &mut Vec<Effect>) {
        if let Some(owner) = self.whereabouts(id).filter(|_| self.may_pass_on()) {
            fx.push(Effect::Forward(owner, Box::new(input)));
        }
    }

    /// The slot of an entity that lives here.
    fn real_slot(&self, id: EntityId) -> Option<u32> {
        self.bodies.slot(id).filter(|s| self.is_real(*s))
    }

    fn is_real(&self, slot: u32) -> bool {
        self.bodies.hot[slot as usize].is_real()
    }

    fn apply_client(&mut self, id: EntityId, seq: Seq, order: Order, fx: &mut Vec<Effect>) {
        // An input for an entity that has moved on is sent again by its session, which is told the
        // new owner; one out of order waits to be sent again.
        let Some(slot) = self.real_slot(id) else { return };
        let viewer = self.bodies.hot[slot as usize].viewer as usize;
        match self.viewers.get_mut(viewer) {
            Some(v) if v.refused.len() >= MAX_REFUSED => return,
            Some(v) if seq == v.last_applied => return,
            Some(v) if seq == v.last_applied.next() || mutants::has(Mutant::AnyNumber) => {
                v.last_applied = seq;
            }
            _ => return,
        }
        if mutants::has(Mutant::AckUnapplied) && seq.0.is_multiple_of(16) {
            return;
        }
        let done = match order {
            Order::Move(_) if self.scene.judged.is_some() => Err(Refusal::WrongForm),
            Order::Walk(ref word) => self.take_word(slot, seq, word),
            order => self.obey(slot, order, fx),
        };
        if let Err(why) = done {
            self.viewers[viewer].refused.push(InputRefused { seq, why });
        }
    }

    fn obey(&mut self, slot: u32, order: Order, fx: &mut Vec<Effect>) -> Result<(), Refusal> {
        match order {
            Order::Move(pos) if !self.scene.map.bounds.contains(pos) => Err(Refusal::OutOfBounds),
            Order::Move(pos) => {
                self.put(slot, pos);
                Ok(())
            }
            Order::Act(deed) if deed.payload.len() > MAX_ACT => Err(Refusal::TooLong),
            Order::Act(deed) => {
                self.note_act(slot, deed, true, self.tick);
                Ok(())
            }
            Order::Walk(_) => Err(Refusal::WrongForm),
            Order::Jump(to) => self.jump(slot, to, fx),
        }
    }

    fn note_act(&mut self, slot: u32, deed: Deed, here: bool, of: Tick) {
        let body = &mut self.bodies.hot[slot as usize];
        body.acted = TickStamp::of(self.tick);
        self.acts.push(PendingAct { slot, id: body.id, deed, here, of });
    }

    fn jump(&mut self, slot: u32, to: Destination, fx: &mut Vec<Effect>) -> Result<(), Refusal> {
        let away = to.scene != self.scene.id;
        let legal = self.scene.map.bounds.contains(to.pos);
        if to.plane == Plane::LIMBO || (!away && !legal) {
            return Err(Refusal::OutOfBounds);
        }
        let owner = if away { to.region } else { self.owner_of(to.plane, to.pos) };
        // Between two scenes an entity is nowhere.
        let plane = if away { Plane::LIMBO } else { to.plane };
        self.bodies.set_plane(slot, plane);
        if away {
            // The other scene judges it from there on.
            self.bodies.tracks.drop(slot);
            self.bodies.set_pos(slot, to.pos);
        } else {
            self.put(slot, to.pos);
        }
        self.bodies.hot[slot as usize].changed = TickStamp::of(self.tick);
        let Some(real) = self.bodies.real_mut(slot) else { return Ok(()) };
        real.restate = true;
        real.bound_for = (owner != self.id).then_some(Bound { region: owner, plane: to.plane });
        if real.bound_for.is_none() {
            self.notice_route(slot, true, fx);
        }
        Ok(())
    }

    /// The region that a place of this scene belongs to; on no plane it is this one's.
    fn owner_of(&self, plane: Plane, pos: Pos) -> RegionId {
        let owner = self.scene.map.at(plane, pos).filter(|_| plane != Plane::LIMBO);
        owner.map_or(self.id, |r| r.id)
    }

    fn set_bonds(&mut self, slot: u32, bonds: Vec<Bond>) {
        self.bodies.change_ties(slot, |ties| ties.set_bonds(bonds));
        // Neighbours must be told the new bonds: mirror it anew.
        if let Some(real) = self.bodies.real_mut(slot) {
            real.restate = true;
        }
    }

    /// Takes the registers of a player that lives here no more.
    fn take_viewer(&mut self, slot: u32) -> Option<Viewer> {
        let ix = std::mem::replace(&mut self.bodies.hot[slot as usize].viewer, u32::MAX) as usize;
        if ix >= self.viewers.len() {
            return None;
        }
        let viewer = self.viewers.swap_remove(ix);
        if let Some(moved) = self.viewers.get(ix) {
            self.bodies.hot[moved.slot as usize].viewer = ix as u32;
        }
        self.counts.players -= u64::from(viewer.session.is_some());
        Some(viewer)
    }

    fn remove_real(&mut self, slot: u32, fx: &mut Vec<Effect>) {
        self.sign_off(slot, None);
        let viewer = self.take_viewer(slot);
        let (id, epoch) =
            (self.bodies.hot[slot as usize].id, self.bodies.cold[slot as usize].epoch);
        self.moved.insert(id, Moved { region: self.id, epoch, since: self.tick });
        // Whoever knows it by an old checkpoint may hand it here long after that is forgotten.
        self.escrow.note(self.tick, id, epoch);
        self.bodies.remove(slot);
        self.counts.reals -= 1;
        if let Some(session) = viewer.and_then(|v| v.session) {
            fx.push(Effect::Notice(session, Notice::Left { tick: self.tick, epoch }));
        }
    }

    /// Tells the session of the entity at `slot` that it lives here.
    fn notice_route(&mut self, slot: u32, arrived: bool, fx: &mut Vec<Effect>) {
        let (body, cold) = (&self.bodies.hot[slot as usize], &self.bodies.cold[slot as usize]);
        let Some(viewer) = self.viewers.get(body.viewer as usize) else { return };
        let Some(session) = viewer.session else { return };
        let route = Notice::Route {
            scene: self.scene.id,
            region: self.id,
            epoch: cold.epoch,
            last_applied: viewer.last_applied,
            tick: self.tick,
            plane: cold.plane,
            pos: body.pos,
            own: self.own_of(slot).map(Box::new),
            arrived,
        };
        fx.push(Effect::Notice(session, route));
    }
}
