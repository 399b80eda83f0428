//! A change of the region map while everybody walks on: regions are cut, joined, made and given up.
//!
//! All regions of a scene change over between the same two ticks. Each is told of the new map beforehand
//! ([`Region::propose`]) and promises not to go beyond a certain tick without a decision; when all have
//! promised, the change is decided ([`Region::decide`]), usually long before that tick.
//!
//! ```text
//!             after is over,             Ended from all       Ceded from all who
//!             decided                    old neighbours       give ground
//!   Promised ------------> Ending -----------------> Ceding -------------------> the next tick,
//!                 Ended to all                 handoffs, Ceded                     by the new map
//!                 old neighbours               to all who get ground
//! ```
//!
//! *Ended* says that everything has been said that belongs to the old map: so nobody changes over while
//! something is on its way to it that only the old map explains. Then whoever stands on ground that is
//! another region's now is handed over as ever, and *Ceded* says that these were all. So the first tick
//! by the new map finds every entity where it belongs, and ghosts of that tick are whole.
//! A region that is given up hands everybody over and stays for a while as one that only passes on.
//!
//! Where a region dies meanwhile the others wait for it as for a silent neighbour, and no longer.

use std::sync::Arc;

use super::bodies::Role;
use super::handoff::MOVED_TICKS;
use super::{Moved, PATIENCE, Phase, Region};
use crate::scene::effects::{Change, Effect, Input, MapNews};
use crate::scene::map::{PlaneGroup, RegionEntry, RegionMap};
use crate::scene::terrain::{Ground, SavedDoors};
use crate::scene::{EntityId, Epoch, Plane, Rect, RegionId, Scene, Tick, TickStamp};

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
    #[error("the map is another scene's")]
    OtherScene,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Promised { decided: bool },
    Ending,
    Ceding,
}

/// A change of the map that is under way.
#[derive(Debug)]
pub(super) struct Remap {
    scene: Arc<Scene>,
    after: Tick,
    stage: Stage,
    /// The tick that was due when the old map's last one was over.
    held: Option<Tick>,
    ended: Vec<RegionId>,
    ceded: Vec<RegionId>,
    /// Whom to wait for in this stage.
    waits: Vec<RegionId>,
    doors: Vec<SavedDoors>,
    early: Vec<Input>,
}

/// What a region remembers of the last change.
#[derive(Debug, Default)]
pub(super) struct Remapped {
    /// Since when it owns no ground.
    pub retired: Option<Tick>,
    /// Who has got ground from here; told of doors until this tick, since not everybody may know of them.
    heirs: Vec<RegionId>,
    until: Tick,
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

    /// A region that the scene had by an earlier map: it hands on everybody whom it still has. Its time begins
    /// with its first tick, however old the checkpoint is from which it goes on.
    pub(super) fn given_up(scene: &Arc<Scene>, id: RegionId) -> Option<Region> {
        let mut region = (scene.map.version > 1).then(|| Region::unborn(scene.clone(), id))?;
        region.remapped.retired = Some(Tick(u64::MAX));
        Some(region)
    }

    /// Promises not to go beyond the tick `after` before it is decided whether `scene`, the same one with
    /// its next map, counts from then on. To be told twice changes nothing.
    ///
    /// # Errors
    /// It takes no part, and nothing has changed.
    pub fn propose(&mut self, scene: Arc<Scene>, after: Tick) -> Result<(), NotProposed> {
        let (known, proposed) = (self.scene.map.version, scene.map.version);
        if scene.id != self.scene.id {
            return Err(NotProposed::OtherScene);
        }
        if let Some(remap) = &self.remap {
            let same = remap.scene.map == scene.map && remap.after == after;
            return if same { Ok(()) } else { Err(NotProposed::Busy(remap.scene.map.version)) };
        }
        if proposed != known + 1 {
            return Err(NotProposed::NotNext { known, proposed });
        }
        if self.tick > after {
            return Err(NotProposed::TooLate { now: self.tick, after });
        }
        self.remap = Some(Box::new(Remap {
            scene,
            after,
            stage: Stage::Promised { decided: false },
            held: None,
            ended: Vec::new(),
            ceded: Vec::new(),
            waits: Vec::new(),
            doors: Vec::new(),
            early: Vec::new(),
        }));
        Ok(())
    }

    /// Whether the change to this version of the map, which was promised, comes to pass.
    pub fn decide(&mut self, version: u64, comes: bool, fx: &mut Vec<Effect>) {
        let Some(remap) = &mut self.remap else { return };
        if remap.scene.map.version != version {
            return;
        }
        match (&mut remap.stage, comes) {
            (Stage::Promised { decided }, true) => {
                *decided = true;
                if remap.held.is_some() {
                    self.begin_ending(fx);
                }
            }
            (Stage::Promised { decided: false }, false) => self.remap = None,
            _ => {}
        }
    }

    /// The version of the map that counts here.
    pub fn map_version(&self) -> u64 {
        self.scene.map.version
    }

    /// Whether a change of the map was promised that is not done.
    pub fn is_remapping(&self) -> bool {
        self.remap.is_some()
    }

    /// Whether a change of the map has given the region's ground to others.
    pub fn is_given_up(&self) -> bool {
        self.remapped.retired.is_some()
    }

    /// Whether nothing is left to do for a region that was given up.
    pub fn is_over(&self) -> bool {
        let long_ago = |since: Tick| self.tick.0 > since.0.saturating_add(MOVED_TICKS);
        self.remapped.retired.is_some_and(long_ago)
            && self.counts.reals == 0
            && self.incoming.is_empty()
            && self.dormant().next().is_none()
    }

    /// Whether the region stands between two maps: no tick is opened until it has changed over.
    pub fn is_held(&self) -> bool {
        self.remap.as_ref().is_some_and(|remap| remap.held.is_some())
    }

    /// Whether tick `now` may be opened, as far as the map is concerned. The last one is closed.
    pub(super) fn may_open(&mut self, now: Tick, fx: &mut Vec<Effect>) -> bool {
        self.remapped.retired = self.remapped.retired.map(|since| since.min(now));
        let log_ms = self.log_ms();
        let Some(remap) = &mut self.remap else { return true };
        if now <= remap.after {
            return true;
        }
        match (remap.stage, remap.held) {
            (Stage::Promised { decided }, _) => {
                remap.held.get_or_insert(now);
                if decided {
                    self.begin_ending(fx);
                }
            }
            (_, Some(held)) if now.0 >= held.0.saturating_add(PATIENCE) => {
                crate::log_limited!(at log_ms; warn, region = %self.id, waits = ?remap.waits, "not everybody takes part in a change of the map");
                remap.waits.clear();
                // The next stage has its time, too.
                remap.held = Some(now);
                self.change_over(fx);
            }
            _ => {}
        }
        self.remap.is_none()
    }

    /// What is for a later time, since its sender has changed over already. Given back otherwise.
    pub(super) fn too_early(&mut self, input: Input) -> Option<Input> {
        let Some(remap) = &mut self.remap else { return Some(input) };
        let from = match &input {
            Input::Border(batch) => batch.from,
            Input::Settle(batch) => batch.from,
            _ => return Some(input),
        };
        if remap.stage == Stage::Ceding
            || self.inbound.knows(from)
            || remap.early.len() >= MAX_EARLY
        {
            return Some(input);
        }
        remap.early.push(input);
        None
    }

    /// Hears another region's word.
    pub(super) fn hear_map_news(&mut self, news: MapNews, fx: &mut Vec<Effect>) {
        let Some(remap) = &mut self.remap else { return };
        if remap.scene.map.version != news.version {
            return;
        }
        match news.change {
            Change::Ended => {
                if !remap.ended.contains(&news.from) {
                    remap.ended.push(news.from);
                }
                self.inbound.has_ended(news.from);
                if self.phase == Phase::Open && self.inbound.complete(self.tick) {
                    self.close(fx);
                }
            }
            Change::Ceded { doors } => {
                // Said twice it is the same.
                if !remap.ceded.contains(&news.from) {
                    remap.ceded.push(news.from);
                    remap.doors.extend(doors);
                }
            }
        }
        self.change_over(fx);
    }

    fn news(&self, version: u64, change: Change) -> Input {
        Input::Map(Box::new(MapNews { from: self.id, version, change }))
    }

    /// The last tick by the old map is over.
    fn begin_ending(&mut self, fx: &mut Vec<Effect>) {
        let Some(remap) = &mut self.remap else { return };
        remap.stage = Stage::Ending;
        let version = remap.scene.map.version;
        let old: Vec<RegionId> = self.inbound.neighbours.iter().map(|n| n.id).collect();
        for to in &old {
            fx.push(Effect::Forward(*to, Box::new(self.news(version, Change::Ended))));
        }
        if let Some(remap) = &mut self.remap {
            remap.waits = old;
        }
        self.change_over(fx);
    }

    /// Goes on as far as everything has come for which it waits.
    fn change_over(&mut self, fx: &mut Vec<Effect>) {
        let Some(remap) = &mut self.remap else { return };
        if remap.stage == Stage::Ending {
            let Remap { waits, ended, .. } = &mut **remap;
            waits.retain(|id| !ended.contains(id));
            if !waits.is_empty() {
                return;
            }
            self.take_new_map(fx);
        }
        let Some(remap) = &mut self.remap else { return };
        if remap.stage == Stage::Ceding {
            let Remap { waits, ceded, .. } = &mut **remap;
            waits.retain(|id| !ceded.contains(id));
            if waits.is_empty() {
                self.finish_change(fx);
            }
        }
    }

    fn take_new_map(&mut self, fx: &mut Vec<Effect>) {
        let Some(remap) = &mut self.remap else { return };
        remap.stage = Stage::Ceding;
        let (scene, after) = (remap.scene.clone(), remap.after);
        let old = std::mem::replace(&mut self.scene, scene);
        let scene = &self.scene;
        // Whoever is not yet far enough beyond a border to be handed over counts, too.
        let margin = scene.spec.handoff_margin_cm + 1;
        let near = |map: &RegionMap, of: Option<&RegionEntry>| {
            let near = of.map(|r| map.meeting(r.group, r.rect.grown(margin)));
            near.into_iter().flatten().filter(|id| *id != self.id).collect::<Vec<_>>()
        };
        let (mine, will_be) = (old.map.get(self.id), scene.map.get(self.id));
        remap.waits = near(&old.map, will_be);
        let heirs = near(&scene.map, mine);
        let nowhere = Rect { x0: 0, z0: 0, x1: 0, z1: 0 };
        self.rect = will_be.map_or(nowhere, |entry| entry.rect);
        if will_be.is_none() {
            self.remapped.retired = Some(after);
        }
        let neighbours = scene.map.neighbours(self.id, scene.bonded_band_cm);
        let bits = self.outbound.rearrange(&neighbours);
        for slot in 0..self.bodies.hot.len() as u32 {
            if let Some(real) = self.bodies.real_mut(slot) {
                real.mirrors = bits(real.mirrors);
            }
        }
        self.inbound.rearrange(&neighbours, after);
        self.hand_over(after, fx);
        self.send_inputs_after(fx);
        self.bodies.set_ground(&self.scene, self.rect);
        self.sort_out_ghosts(after);
        let version = self.scene.map.version;
        for heir in &heirs {
            let is_new = old.map.get(*heir).is_none();
            let doors = self.ground.as_ref().filter(|_| is_new).map(Ground::save);
            let ceded = self.news(version, Change::Ceded { doors });
            fx.push(Effect::Forward(*heir, Box::new(ceded)));
        }
        (self.remapped.heirs, self.remapped.until) =
            (heirs, Tick(after.0.saturating_add(MOVED_TICKS)));
        self.still = false;
    }

    /// What has come for those who were handed over, for the next tick, is for it still.
    fn send_inputs_after(&mut self, fx: &mut Vec<Effect>) {
        for input in std::mem::take(&mut self.inbox) {
            let here = |id: &EntityId| self.real_slot(*id).is_some() || self.is_incoming(*id);
            let gone = input.entity().filter(|id| !here(id));
            match gone.and_then(|id| self.whereabouts(id)) {
                Some(owner) => fx.push(Effect::Forward(owner, Box::new(input))),
                None => self.inbox.push(input),
            }
        }
    }

    /// Ghosts that no neighbour mirrors any more: whoever stands on the ground of one, or on this region's
    /// own, was handed over to it; the others are far.
    fn sort_out_ghosts(&mut self, after: Tick) {
        for slot in 0..self.bodies.hot.len() as u32 {
            let cold = &self.bodies.cold[slot as usize];
            let Role::Ghost(ghost) = &cold.role else { continue };
            let (owner, epoch, plane) = (ghost.owner, cold.epoch, cold.plane);
            if self.inbound.knows(owner) {
                continue;
            }
            let (id, pos) = (self.bodies.hot[slot as usize].id, self.bodies.hot[slot as usize].pos);
            let heir = self.owner_of(plane, pos);
            if plane != Plane::LIMBO && (self.inbound.knows(heir) || heir == self.id) {
                if let Role::Ghost(ghost) = &mut self.bodies.cold[slot as usize].role {
                    ghost.owner = heir;
                    ghost.orphan_since.get_or_insert(TickStamp::of(after));
                }
            } else {
                self.moved.insert(id, Moved { region: owner, epoch, since: self.tick });
                self.bodies.remove(slot);
            }
        }
    }

    /// The next tick is by the new map.
    fn finish_change(&mut self, fx: &mut Vec<Effect>) {
        let Some(remap) = self.remap.take() else { return };
        let log_ms = self.log_ms();
        if let Some(ground) = &mut self.ground {
            for doors in &remap.doors {
                if let Err(why) = ground.merge(doors) {
                    crate::log_limited!(at log_ms; error, region = %self.id, %why, "doors of another region are not this map's");
                }
            }
        }
        for input in remap.early {
            self.handle(input, fx);
        }
        self.read_mail(fx);
        tracing::debug!(region = %self.id, version = self.scene.map.version, rect = ?self.rect, "by a new map");
    }

    /// Regions that are to hear of doors by way of this one.
    pub(super) fn heirs(&self) -> &[RegionId] {
        let due = self.tick <= self.remapped.until;
        if due { &self.remapped.heirs } else { &[] }
    }
}
