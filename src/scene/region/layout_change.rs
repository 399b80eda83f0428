//! Layout change: regions are split, merged, made and given up while entities walk on.
//!
//! All regions of a scene change over between the same two ticks. Each is told of the new map beforehand
//! ([`Region::propose`]) and promises not to go beyond a certain tick without a decision; when all have
//! promised, the change is decided ([`Region::decide`]), usually long before that tick.
//!
//! ```text
//!             after is over,             Ended from all       Ceded from all that
//!             decided                    old neighbours       give ground
//!   Promised ------------> Ending -----------------> Ceding -------------------> the next tick,
//!                 Ended to all                 handoffs, Ceded                     by the new map
//!                 old neighbours               to all that get ground
//! ```
//!
//! *Ended* says that everything has been said that belongs to the old map: so no region changes over while
//! something is on its way to it that only the old map explains. Then every entity that stands on ground which is
//! another region's now is handed over as ever, and *Ceded* says that these were all. So the first tick
//! by the new map finds every entity where it belongs, and ghosts of that tick are whole.
//! A region that is given up hands all its entities over and stays for a while as one that only passes on.
//!
//! Where a region dies meanwhile the others wait for it as for a silent neighbour, and no longer.

mod recovered;

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::custody::{HandedOn, MOVED_TICKS};
use super::{PATIENCE, Region};
use crate::scene::contents::SavedContents;
use crate::scene::layout::{PlaneGroup, RegionEntry, RegionMap};
use crate::scene::messages::{Change, Effect, Input, MapNews, Recovered, SceneOrder};
use crate::scene::terrain::SavedDoors;
use crate::scene::{EntityId, Epoch, Plane, Rect, RegionId, Scene, Tick, TickStamp};

/// How long a region that was given up waits for its logic to handle what has happened there.
const ANSWER_TICKS: u64 = 3_000;

/// Messages of regions that have changed over, which wait until this one has.
const MAX_EARLY: usize = 4_096;

/// Why a region takes no part in a change of the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotProposed {
    /// The tick after which it would be is over.
    #[error("tick {now} is open; the change was to come after tick {after}")]
    TooLate {
        /// The newest tick.
        now: Tick,
        /// The last one by the old map.
        after: Tick,
    },
    /// Another one is under way.
    #[error("a change to version {0} of the map is under way")]
    Busy(u64),
    /// It does not follow the present one.
    #[error("version {proposed} does not follow version {known}")]
    NotNext {
        /// The version of the present map.
        known: u64,
        /// The version of the new one.
        proposed: u64,
    },
    /// It moves to another process.
    #[error("the region moves")]
    Moving,
    /// It is of another scene.
    #[error("the map belongs to another scene")]
    OtherScene,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Promised { decided: bool },
    Ending,
    Ceding,
}

/// A change of the layout that is under way.
#[derive(Debug)]
struct Pending {
    scene: Arc<Scene>,
    after: Tick,
    stage: Stage,
    /// The tick that was due when the old layout's last one was over.
    held: Option<Tick>,
    ended: Vec<RegionId>,
    ceded: Vec<RegionId>,
    /// Regions to wait for in this stage.
    waits: Vec<RegionId>,
    doors: Vec<SavedDoors>,
    contents: Vec<SavedContents>,
    early: Vec<Input>,
    /// Regions that have recovered by the new map, which are answered when this one has changed over.
    recovered: Vec<Recovered>,
}

impl Pending {
    fn new(scene: Arc<Scene>, after: Tick) -> Pending {
        Pending {
            scene,
            after,
            stage: Stage::Promised { decided: false },
            held: None,
            ended: Vec::new(),
            ceded: Vec::new(),
            waits: Vec::new(),
            doors: Vec::new(),
            contents: Vec::new(),
            early: Vec::new(),
            recovered: Vec::new(),
        }
    }
}

/// The change of the layout that is under way, and what a region remembers of the last one.
#[derive(Debug, Default)]
pub(super) struct LayoutChange {
    pending: Option<Box<Pending>>,
    /// Since when the region owns no ground.
    retired: Option<Tick>,
    /// Regions that have got ground from here; told of doors until this tick, since not every region may know of them.
    heirs: Vec<RegionId>,
    until: Tick,
    /// Orders for the scene that they were told since.
    passed_on: FxHashSet<SceneOrder>,
}

impl LayoutChange {
    /// Regions that learn of an order for the scene through this one: once, since they may pass it on to this one.
    pub fn pass_on(&mut self, order: SceneOrder, tick: Tick) -> &[RegionId] {
        if tick > self.until {
            self.passed_on.clear();
            return &[];
        }
        if self.passed_on.insert(order) { &self.heirs } else { &[] }
    }
}

impl Region {
    /// A region that the scene does not have yet. It owns nothing until a change of the map
    /// ([`Region::propose`]) gives it ground.
    pub fn unborn(scene: Arc<Scene>, id: RegionId) -> Region {
        let rect = Rect { x0: 0, z0: 0, x1: 0, z1: 0 };
        let group = PlaneGroup::default();
        let entry = RegionEntry { id, rect, group, epoch: Epoch(1) };
        Region::of(scene, &entry, &[])
    }

    /// A region that the scene had by an earlier map: it hands on all entities that it still has. Its time begins
    /// with its first tick, however old the checkpoint is from which it goes on.
    pub(super) fn given_up(scene: &Arc<Scene>, id: RegionId) -> Option<Region> {
        let mut region = (scene.map.version > 1).then(|| Region::unborn(scene.clone(), id))?;
        region.layout.retired = Some(Tick(u64::MAX));
        Some(region)
    }

    /// Promises not to go beyond the tick `after` before it is decided whether `scene`, the same one with
    /// its next map, counts from then on. To be told twice changes nothing.
    ///
    /// # Errors
    /// It takes no part, and nothing has changed.
    pub fn propose(&mut self, scene: Arc<Scene>, after: Tick) -> Result<(), NotProposed> {
        let (known, proposed) = (self.identity.scene().map.version, scene.map.version);
        if scene.id != self.identity.scene().id {
            return Err(NotProposed::OtherScene);
        }
        if let Some(pending) = &self.layout.pending {
            let same = pending.scene.map == scene.map && pending.after == after;
            return if same { Ok(()) } else { Err(NotProposed::Busy(pending.scene.map.version)) };
        }
        if proposed != known + 1 {
            return Err(NotProposed::NotNext { known, proposed });
        }
        if self.clock.tick() > after {
            return Err(NotProposed::TooLate { now: self.clock.tick(), after });
        }
        self.layout.pending = Some(Box::new(Pending::new(scene, after)));
        Ok(())
    }

    /// Whether the change to this version of the map, which was promised, comes to pass.
    pub fn decide(&mut self, version: u64, comes: bool, fx: &mut Vec<Effect>) {
        let Some(pending) = &mut self.layout.pending else { return };
        if pending.scene.map.version != version {
            return;
        }
        match (&mut pending.stage, comes) {
            (Stage::Promised { decided }, true) => {
                *decided = true;
                if pending.held.is_some() {
                    self.begin_ending(fx);
                }
            }
            (Stage::Promised { decided: false }, false) => self.layout.pending = None,
            _ => {}
        }
    }

    /// The version of the map that counts here.
    pub fn map_version(&self) -> u64 {
        self.identity.scene().map.version
    }

    /// Whether a change of the map was promised that is not done.
    pub fn is_remapping(&self) -> bool {
        self.layout.pending.is_some()
    }

    /// Whether a change of the map has given the region's ground to others.
    pub fn is_given_up(&self) -> bool {
        self.layout.retired.is_some()
    }

    /// Whether nothing is left to do for a region that was given up.
    pub fn is_over(&self) -> bool {
        let Some(since) = self.layout.retired else { return false };
        let is_past = |ticks| self.clock.tick().0 > since.0.saturating_add(ticks);
        is_past(MOVED_TICKS)
            && (self.logic.is_at_rest() || is_past(ANSWER_TICKS))
            && self.counts.reals == 0
            && self.custody.incoming().next().is_none()
            && self.unclaimed().next().is_none()
            && self.custody.departing().all().next().is_none()
            && self.outbox.is_empty()
    }

    /// Whether the region stands between two maps: no tick is opened until it has changed over.
    pub fn is_held(&self) -> bool {
        self.layout.pending.as_ref().is_some_and(|pending| pending.held.is_some())
    }

    /// Whether tick `now` may be opened, as far as the map is concerned. The last one is closed.
    pub(super) fn may_open(&mut self, now: Tick, fx: &mut Vec<Effect>) -> bool {
        self.layout.retired = self.layout.retired.map(|since| since.min(now));
        let log_ms = self.log_ms();
        let Some(pending) = &mut self.layout.pending else { return true };
        if now <= pending.after {
            return true;
        }
        match (pending.stage, pending.held) {
            (Stage::Promised { decided }, _) => {
                pending.held.get_or_insert(now);
                if decided {
                    self.begin_ending(fx);
                }
            }
            (_, Some(held)) if now.0 >= held.0.saturating_add(PATIENCE) => {
                crate::log_limited!(at log_ms; warn, region = %self.identity.id(), waits = ?pending.waits, "some regions do not take part in a layout change");
                pending.waits.clear();
                // The next stage has its time, too.
                pending.held = Some(now);
                self.change_over(fx);
            }
            _ => {}
        }
        self.layout.pending.is_none()
    }

    /// What is for a later time, since its sender has changed over already. Given back otherwise.
    pub(super) fn hold_early(&mut self, input: Input) -> Option<Input> {
        let Some(pending) = &mut self.layout.pending else { return Some(input) };
        let from = match &input {
            Input::Border(batch) => batch.from,
            Input::BorderRound(batch) => batch.from,
            _ => return Some(input),
        };
        if pending.stage == Stage::Ceding
            || self.border.knows(from)
            || pending.early.len() >= MAX_EARLY
        {
            return Some(input);
        }
        pending.early.push(input);
        None
    }

    /// Handles another region's notice of a layout change.
    pub(super) fn take_layout_news(&mut self, news: MapNews, fx: &mut Vec<Effect>) {
        let Some(pending) = &mut self.layout.pending else {
            return self.take_ceded_late(news);
        };
        if pending.scene.map.version != news.version {
            return;
        }
        match news.change {
            Change::Ended => {
                if !pending.ended.contains(&news.from) {
                    pending.ended.push(news.from);
                }
                self.border.has_ended(news.from);
                self.evaluate_when_complete(fx);
            }
            Change::Ceded { doors, relations, contents } => {
                // Said twice it is the same.
                if !pending.ceded.contains(&news.from) {
                    pending.ceded.push(news.from);
                    pending.doors.extend(doors);
                    self.entities.relations_mut().merge(relations);
                    pending.contents.extend(contents.map(|contents| *contents));
                }
            }
        }
        self.change_over(fx);
    }

    /// What others know of ground that was theirs.
    fn inherit(&mut self, doors: &[SavedDoors], contents: impl IntoIterator<Item = SavedContents>) {
        let log_ms = self.log_ms();
        for doors in doors {
            if let Err(why) = self.doors.merge(doors) {
                crate::log_limited!(at log_ms; error, region = %self.identity.id(), %why, "doors of another region do not fit this map");
            }
        }
        for contents in contents {
            self.contents.merge(self.identity.scene(), contents);
        }
    }

    fn news(&self, version: u64, change: Change) -> Input {
        Input::Map(Box::new(MapNews { from: self.identity.id(), version, change }))
    }

    /// The last tick by the old map is over.
    fn begin_ending(&mut self, fx: &mut Vec<Effect>) {
        let Some(pending) = &mut self.layout.pending else { return };
        pending.stage = Stage::Ending;
        let version = pending.scene.map.version;
        let old = self.border.neighbour_ids();
        for to in &old {
            fx.push(Effect::Forward(*to, Box::new(self.news(version, Change::Ended))));
        }
        if let Some(pending) = &mut self.layout.pending {
            pending.waits = old;
        }
        self.change_over(fx);
    }

    /// Goes on as far as everything has come for which it waits.
    fn change_over(&mut self, fx: &mut Vec<Effect>) {
        let Some(pending) = &mut self.layout.pending else { return };
        if pending.stage == Stage::Ending {
            let Pending { waits, ended, .. } = &mut **pending;
            waits.retain(|id| !ended.contains(id));
            if !waits.is_empty() {
                return;
            }
            self.take_new_map(fx);
        }
        let Some(pending) = &mut self.layout.pending else { return };
        if pending.stage == Stage::Ceding {
            let Pending { waits, ceded, .. } = &mut **pending;
            waits.retain(|id| !ceded.contains(id));
            if waits.is_empty() {
                self.finish_change(fx);
            }
        }
    }

    fn take_new_map(&mut self, fx: &mut Vec<Effect>) {
        let Some(pending) = &mut self.layout.pending else { return };
        pending.stage = Stage::Ceding;
        let (scene, after) = (pending.scene.clone(), pending.after);
        let old = self.identity.take_layout(scene);
        let (me, scene) = (self.identity.id(), self.identity.scene());
        // An entity that is not yet far enough beyond a border to be handed over counts, too.
        let margin = scene.spec.handoff_margin_cm + 1;
        let near = |map: &RegionMap, of: Option<&RegionEntry>| {
            let near = of.map(|r| map.meeting(r.group, r.rect.grown(margin)));
            near.into_iter().flatten().filter(|id| *id != me).collect::<Vec<_>>()
        };
        let (own, will_be) = (old.map.get(me), scene.map.get(me));
        pending.waits = near(&old.map, will_be);
        let heirs = near(&scene.map, own);
        if will_be.is_none() {
            self.layout.retired = Some(after);
        }
        self.take_new_neighbours(after);
        self.hand_over(after, fx);
        self.send_inputs_after(fx);
        self.entities.set_ground(self.identity.scene(), self.identity.rect());
        self.sort_out_ghosts(after);
        self.cede(&old, &heirs, fx);
        (self.layout.heirs, self.layout.until) = (heirs, Tick(after.0.saturating_add(MOVED_TICKS)));
        self.views.positions_change();
    }

    /// Neighbours by the new layout: entities stay mirrored to those that stay.
    fn take_new_neighbours(&mut self, after: Tick) {
        let scene = self.identity.scene();
        let neighbours = scene.map.neighbours(self.identity.id(), scene.bonded_band_cm);
        let bits = self.border.rearrange(&neighbours, after);
        for slot in 0..self.entities.slot_count() {
            if let Some(real) = self.entities.real_mut(slot) {
                real.mirrors = bits(real.mirrors);
            }
        }
    }

    /// Says that all entities were handed over that stand on ground which is another region's now.
    fn cede(&self, old: &Scene, heirs: &[RegionId], fx: &mut Vec<Effect>) {
        let version = self.identity.scene().map.version;
        for heir in heirs {
            let is_new = old.map.get(*heir).is_none();
            let doors = is_new.then(|| self.doors.save()).flatten();
            let contents = self.save_contents(true);
            let relations = if is_new { self.entities.relations().all() } else { Vec::new() };
            let ceded = self.news(version, Change::Ceded { doors, relations, contents });
            fx.push(Effect::Forward(*heir, Box::new(ceded)));
        }
    }

    /// Messages for handed-over entities, for the next tick, still belong to it.
    fn send_inputs_after(&mut self, fx: &mut Vec<Effect>) {
        for input in self.inbox.take() {
            let here = |id: &EntityId| {
                self.entities.real_slot(*id).is_some() || self.custody.is_incoming(*id)
            };
            let gone = input.entity().filter(|id| !here(id));
            match gone.and_then(|id| self.whereabouts(id)) {
                Some(owner) => fx.push(Effect::Forward(owner, Box::new(input))),
                None => self.inbox.push(input),
            }
        }
    }

    /// Ghosts that no neighbour mirrors any more: an entity that stands on the ground of one, or on this region's
    /// own, was handed over to it; the others are far.
    fn sort_out_ghosts(&mut self, after: Tick) {
        for slot in 0..self.entities.slot_count() {
            let Some(ghost) = self.entities.ghost(slot) else { continue };
            let (owner, record) = (ghost.owner, self.entities.record(slot));
            let (epoch, plane) = (record.epoch, record.plane);
            if self.border.knows(owner) {
                continue;
            }
            let (id, pos) = (self.entities.body(slot).id, self.entities.body(slot).pos);
            let heir = self.identity.owner_of(plane, pos);
            let near = self.border.knows(heir) || heir == self.identity.id();
            if plane != Plane::LIMBO && near {
                if let Some(ghost) = self.entities.ghost_mut(slot) {
                    ghost.owner = heir;
                    ghost.orphan_since.get_or_insert(TickStamp::of(after));
                }
            } else {
                let since = self.clock.tick();
                self.custody.note_moved(id, HandedOn { region: owner, epoch, since });
                self.entities.remove(slot);
            }
        }
    }

    /// The next tick is by the new map.
    fn finish_change(&mut self, fx: &mut Vec<Effect>) {
        let Some(pending) = self.layout.pending.take() else { return };
        self.inherit(&pending.doors, pending.contents);
        for input in pending.early {
            self.handle(input, fx);
        }
        for news in &pending.recovered {
            self.say_what_lives(news, fx);
        }
        self.read_view_queue(fx);
        tracing::debug!(region = %self.identity.id(), version = self.identity.scene().map.version, rect = ?self.identity.rect(), "by a new map");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::messages::SceneChange;
    use crate::scene::views::Relation;

    /// Found by simulation: two regions that had ground from each other told each other the same order until the
    /// messages of others were lost.
    #[test]
    fn an_order_is_passed_on_once_and_only_while_others_may_not_know_the_heirs() {
        let heirs = vec![RegionId(1)];
        let mut change = LayoutChange { heirs, until: Tick(10), ..Default::default() };
        let war = SceneChange::Relation(0, [1, 2], Relation::Enemy);
        let [first, second] = [7, 8].map(|version| SceneOrder::new(war, Tick(5), version));
        let told = [first, first, second, first].map(|order| change.pass_on(order, Tick(9)).len());
        assert_eq!(told, [1, 0, 1, 0]);
        assert!(change.pass_on(SceneOrder::new(war, Tick(5), 9), Tick(11)).is_empty());
    }
}
