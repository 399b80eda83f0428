//! A region: one authority over a block of lands, sans IO.
//!
//! The actor calls [`Region::handle`] with every input and [`Region::tick`] with every tick, and delivers the effects that
//! these push. *Absent on purpose:* clocks, threads, sockets, actors, randomness. `now` is a tick.
//!
//! A region composes parts. Each part owns its fields; the functions of a tick call the parts in order, and a rule that
//! needs two parts takes both as arguments.
//!
//! ```text
//!   Identity        which region, under which epoch, on which ground
//!   TickClock       which tick is open, and how far it has come
//!   TickInbox       what waits for the next tick
//!   TickActions     what entities did in this tick
//!   RecentActions   what they did before, for those who have missed it
//!   Doors           the terrain with its doors
//!   RegionContents  what the scene contains on the region's ground
//!   EntityStore     every entity that is known here, real or ghost
//!   ViewEngine      which players see each other
//!   BorderLinks     ghosts from and for the neighbours, and the rounds of a tick
//!   Custody         entities that come, go, are disconnected, or are recovered
//!   LogicHost       the game's logic, and what it is told
//!   Outbox          commands of its logic for entities that live elsewhere
//!   LayoutChange    regions are split, merged, made and given up
//!   FrameBuilder    what each client is told
//!   GroupMessages   messages of the logic for groups, kept for players that arrive
//! ```
//!
//! A tick has three parts. [`Region::tick`] *opens* it: inputs are applied, positions become those
//! of the tick, and each neighbour is sent its ghosts. When the ghosts of that same tick have come
//! from every neighbour, views are evaluated over positions of one moment, on both sides of every
//! border alike, and neighbours exchange *border rounds* about what concerns both (see
//! `views::border_rounds`). Then the tick *closes*: frames are made, and entities that have gone
//! too far past a border are handed off. A neighbour that is late is waited for, within bounds: the
//! tick takes longer, on both sides of the border, and ticks that are due meanwhile are left out.
//!
//! ```text
//!           tick(T)            ghosts of T or later            a round in which
//!                              from all neighbours             no more messages
//!   Closed ----------> Open(T) ----------------> BorderRounds(T) ----------------> Closed(T)
//!     ^                   |                               |                            |
//!     |                   |  tick(T + PATIENCE): a neighbour is silent                 |
//!     |                   +-------------------------------+--------------------------->|
//!     +--------------------------------------------------------------------------------+
//! ```

mod actions;
mod bonds;
mod border;
mod clock;
mod contents;
mod counts;
mod custody;
mod doors;
mod egress;
mod entities;
mod feed;
#[cfg(test)]
mod fixtures;
mod frames;
mod gossip;
mod group_messages;
mod identity;
mod inbox;
mod inputs;
mod known;
mod layout_change;
mod load;
mod logic;
mod mailbox;
mod plausibility;
mod portals;
mod properties;
mod queries;
mod recent_actions;
mod snapshot;
mod spawn;
mod views;
mod waiting;
mod watch;

use std::sync::Arc;

use self::actions::TickActions;
use self::border::BorderLinks;
use self::clock::TickClock;
use self::contents::RegionContents;
pub use self::counts::Counts;
use self::custody::Custody;
pub use self::custody::{ESCROW_TICKS, Recovery};
use self::doors::RegionDoors;
use self::entities::EntityStore;
pub use self::feed::{Changed, Followed};
use self::frames::FrameBuilder;
use self::group_messages::GroupMessages;
use self::identity::Identity;
use self::inbox::TickInbox;
pub use self::known::Known;
use self::layout_change::LayoutChange;
pub use self::layout_change::NotProposed;
pub use self::logic::{Commands, Draft, GameLogic, Given, NewEntities, Terms};
use self::logic::{LogicHost, Outbox};
pub use self::plausibility::Implausible;
pub use self::portals::Atlas;
use self::portals::OneScene;
use self::recent_actions::RecentActions;
pub use self::snapshot::{RegionSnapshot, RestoreError, SavedEntity};
use self::views::ViewEngine;
use super::layout::RegionEntry;
use super::messages::{Effect, FrameBatch};
use super::workers::{OneThread, Workers};
use super::{Epoch, Rect, RegionId, Scene, SceneId, Tick};

/// Ticks for which a late neighbour is waited for. One that is silent for longer is not waited for
/// any more until it sends again.
pub const PATIENCE: u64 = 10;

/// Ticks of silence after which a neighbour's ghosts expire, and for which a region keeps what concerns an entity
/// whose owner it does not know: such a ghost, and messages for a player that may be on its way.
const EXPIRY: u64 = 30;

/// A region of a scene.
#[derive(Debug)]
pub struct Region {
    identity: Identity,
    clock: TickClock,
    inbox: TickInbox,
    actions: TickActions,
    recent_actions: RecentActions,
    doors: RegionDoors,
    contents: RegionContents,
    entities: EntityStore,
    views: ViewEngine,
    border: BorderLinks,
    custody: Custody,
    layout: LayoutChange,
    logic: LogicHost,
    outbox: Outbox,
    frames: FrameBuilder,
    group_messages: GroupMessages,
    counts: Counts,
    /// Who works on a tick.
    workers: Arc<dyn Workers>,
    /// Where other scenes are.
    atlas: Arc<dyn Atlas>,
}

/// The tick.
///
/// ```text
///            tick(T)                 ghosts of T are here           nothing is left to say
///   +-------------------------+   +-------------------------+   +-------------------------+
///   | OPEN                    |   | EVALUATE                |   | CLOSE                   |
///   | doors, memory, fights   |   | ghosts of this tick     |   | frames                  |
///   | arrivals and departures |-->| fights begin            |-->| last border batch       |
///   | inputs, game logic      |   | views, what is watched  |   | handoffs                |
///   | positions               |   | messages, border rounds |   |                         |
///   | ghosts to the neighbours|   |                         |   |                         |
///   +-------------------------+   +-------------------------+   +-------------------------+
///        open_tick                      evaluate_tick                  finish_tick
/// ```
impl Region {
    /// Opens tick `now`, which is greater than the last one; a tick that is not greater changes
    /// nothing. While the last one is still open because a neighbour is late nothing happens either:
    /// both sides of a border then take longer over a tick rather than disagree on it. After
    /// [`PATIENCE`] ticks the open one is closed with what there is.
    pub fn tick(&mut self, now: Tick, fx: &mut Vec<Effect>) {
        self.know_time(now);
        if self.may_open_tick(now, fx) {
            self.open_tick(now);
            self.reset_planes(fx);
            self.let_entities_come_and_go(fx);
            self.apply_inputs(fx);
            self.run_logic(fx);
            self.bring_back_entities(fx);
            self.add_entering(fx);
            self.keep_contents();
            self.advance_walkers();
            self.enter_portals(fx);
            self.send_ghosts(fx);
            self.evaluate_when_complete(fx);
        }
    }

    fn may_open_tick(&mut self, now: Tick, fx: &mut Vec<Effect>) -> bool {
        if now <= self.clock.tick() || !self.may_begin_after_recovery(now) {
            return false;
        }
        if !self.clock.is_closed() {
            if now.0 < self.clock.tick().0.saturating_add(PATIENCE) {
                return false;
            }
            self.counts.forced_closes += 1;
            self.force_close(fx);
        }
        self.may_open(now, fx)
    }

    /// The tick begins: what is older than it ends.
    fn open_tick(&mut self, now: Tick) {
        self.clock.open(now);
        self.entities.set_now(now);
        self.views.positions_change();
        self.actions.clear();
        self.custody.begin_tick();
        self.turn_doors();
        self.entities.turn_relations(now);
        self.views.forget_reaches();
        if self.views.renew_stamps(now, &mut self.entities) {
            self.frames.forget_pieces();
        }
        if now.0.is_multiple_of(entities::SORT_TICKS) {
            self.views.renew_numbers(&mut self.entities, self.identity.scene());
            let slots = self.entities.sort_by_place();
            self.views.renumber(&mut self.entities, &slots);
            self.frames.renumber(&slots);
        }
        self.views.end_fights(now, &mut self.entities);
    }

    fn let_entities_come_and_go(&mut self, fx: &mut Vec<Effect>) {
        // What was late for the last tick counts before any entity comes to live here.
        self.catch_up(Tick(self.clock.tick().0 - 1));
        self.install_incoming();
        self.end_recovery();
        self.end_grace_periods(fx);
        self.resume_displaced(fx);
    }

    fn bring_back_entities(&mut self, fx: &mut Vec<Effect>) {
        self.repeat_handoffs(fx);
        self.return_disconnected(fx);
    }

    fn add_entering(&mut self, fx: &mut Vec<Effect>) {
        for spawn in self.inbox.take_entering() {
            self.add(spawn, fx);
        }
    }

    fn send_ghosts(&mut self, fx: &mut Vec<Effect>) {
        self.compare_relations(fx);
        let Region { identity, clock, entities, views, actions, border, recent_actions, .. } = self;
        let actions = (&*actions, &*recent_actions);
        border.send_ghosts(clock.tick(), identity, (entities, views), actions, fx);
        self.note_own_actions();
    }

    /// Goes on with the open tick when the ghosts of every neighbour are here.
    fn evaluate_when_complete(&mut self, fx: &mut Vec<Effect>) {
        if self.clock.is_open() && self.border.complete(self.clock.tick()) {
            self.evaluate_tick();
            self.handle_view_queue(fx);
            if self.border.is_alone() {
                self.finish_tick(fx);
            } else {
                self.begin_rounds(fx);
            }
        }
    }

    /// Brings ghosts and views to the positions of the tick that is open.
    fn evaluate_tick(&mut self) {
        self.apply_borders();
        self.clock.begin_border_rounds();
        self.install_incoming();
        let (now, entities, scene) = (self.clock.tick(), &mut self.entities, self.identity.scene());
        self.views.begin_anew_with_new_incarnations(entities, scene);
        self.views.begin_fights(now, &self.actions, entities, scene);
        self.views.evaluate_all(now, entities, scene, &*self.workers);
        self.watch();
    }

    /// Ends a tick whose neighbours are silent, with what there is.
    fn force_close(&mut self, fx: &mut Vec<Effect>) {
        if self.clock.is_open() {
            self.evaluate_tick();
        }
        self.handle_view_queue(fx);
        self.finish_tick(fx);
    }

    /// Ends a tick: views are as they are.
    fn finish_tick(&mut self, fx: &mut Vec<Effect>) {
        self.make_frames(fx);
        self.views.forget_predictions(&mut self.entities);
        self.views.apply_reaches(&mut self.entities);
        self.send_done(fx);
        self.send_handoffs(fx);
        self.resume_displaced(fx);
        self.clock.close();
        self.counts.ghosts = self.entities.len() as u64 - self.counts.reals;
        self.close_logic();
    }

    fn make_frames(&mut self, fx: &mut Vec<Effect>) {
        self.note_missed_actions();
        let Region { identity, clock, actions, entities, views, frames, counts, workers, .. } =
            self;
        let (tick, scene) = (clock.tick(), identity.scene());
        let viewers = views.viewers_mut();
        frames.bring_up(tick, scene, entities);
        if let Some(batch) =
            frames.make_frames(tick, scene, (entities, actions), viewers, &**workers)
        {
            counts.frames += batch.sessions.len() as u64;
            counts.updates += (batch.refs.len() + batch.leaves.len()) as u64;
            fx.push(Effect::Frames(batch));
        }
    }
}

/// What a region is.
impl Region {
    /// The region `id` of `scene`, empty; `None` when the scene has no such region.
    pub fn new(scene: Arc<Scene>, id: RegionId) -> Option<Region> {
        let entry = scene.map.get(id)?.clone();
        let neighbours = scene.map.neighbours(id, scene.bonded_band_cm);
        Some(Region::of(scene, &entry, &neighbours))
    }

    fn of(scene: Arc<Scene>, entry: &RegionEntry, neighbours: &[RegionEntry]) -> Region {
        Region {
            clock: TickClock::new(),
            inbox: TickInbox::default(),
            actions: TickActions::default(),
            recent_actions: RecentActions::default(),
            doors: RegionDoors::new(&scene),
            contents: RegionContents::default(),
            entities: EntityStore::new(&scene, entry.rect),
            views: ViewEngine::new(&scene),
            border: BorderLinks::new(neighbours),
            custody: Custody::default(),
            layout: LayoutChange::default(),
            logic: LogicHost::default(),
            outbox: Outbox::default(),
            frames: FrameBuilder::default(),
            group_messages: GroupMessages::default(),
            counts: Counts::default(),
            workers: Arc::new(OneThread),
            atlas: Arc::new(OneScene),
            identity: Identity::new(scene, entry),
        }
    }

    /// The same region under this epoch.
    pub fn with_epoch(mut self, epoch: Epoch) -> Region {
        self.identity.set_epochs(epoch, epoch);
        self
    }

    /// Lets ticks use the threads of `workers` from now on. What a tick does stays the same.
    pub fn set_workers(&mut self, workers: Arc<dyn Workers>) {
        self.workers = workers;
    }

    /// The region's name.
    pub fn id(&self) -> RegionId {
        self.identity.id()
    }

    /// Its epoch.
    pub fn epoch(&self) -> Epoch {
        self.identity.epoch()
    }

    /// The scene whose ground it has.
    pub fn scene_id(&self) -> SceneId {
        self.identity.scene().id
    }

    /// Its ground.
    pub fn rect(&self) -> Rect {
        self.identity.rect()
    }

    /// The tick that was opened last.
    pub fn current_tick(&self) -> Tick {
        self.clock.tick()
    }

    /// The time by which log lines are limited: that of the tick, milliseconds.
    pub(super) fn log_ms(&self) -> u64 {
        self.clock.tick().0.saturating_mul(self.identity.scene().tick_ms.into())
    }

    /// Whether the last opened tick is closed. A region that goes on from a checkpoint is as if in an open
    /// one until it knows what has become of its entities.
    pub fn is_closed(&self) -> bool {
        self.clock.is_closed() && !self.is_recovering() && !self.is_held()
    }

    /// Its figures.
    pub fn counts(&self) -> Counts {
        let views = self.views.figures();
        Counts {
            view_messages: views.sent,
            local_view_messages: views.local,
            view_messages_lost: views.lost,
            acts_dropped: self.frames.acts_dropped(),
            moves_waited: self.frames.moves_waited(),
            ..self.counts
        }
    }

    /// Gives back a batch that was delivered, so that its memory is used again.
    pub fn recycle(&mut self, batch: FrameBatch) {
        self.frames.recycle(batch);
    }
}
