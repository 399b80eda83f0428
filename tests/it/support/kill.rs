//! Regions that die without notice and are restored elsewhere from a checkpoint that is some ticks
//! old; and owners that were only paused, and go on sending.

use std::collections::BTreeMap;

use purview::scene::messages::Input;
use purview::scene::region::{Recovery, RegionSnapshot};
use purview::scene::{Epoch, Region, RegionId, SceneId, Tick};

use super::alone::message_of;
use super::world::World;

/// Grace period of restored players, ticks.
pub const GRACE: u64 = 40;

/// Configuration and record of deaths.
#[derive(Default)]
pub struct Kills {
    /// Ticks between two checkpoints of a region; 0: no checkpoints.
    pub checkpoint_every: u64,
    /// Percentage of steps before which a region dies; any step can be hit.
    pub deadly: u64,
    /// Percentage of deaths that are only pauses, long enough for another owner to take over.
    pub paused: u64,
    /// The newest checkpoint of each region.
    pub kept: BTreeMap<RegionId, (Tick, Vec<u8>)>,
    /// The newest epoch that any region was given.
    pub epoch: Epoch,
    /// Former owners that go on in this tick, and the messages that they have not received.
    pub zombies: Vec<(Tick, Region, Vec<Input>)>,
    /// Each death: the region, the tick of its last checkpoint, and the tick of the death.
    pub deaths: Vec<(RegionId, Tick, Tick)>,
    pub late: u64,
    pub recovered: u64,
    /// Messages that regions recognised as stale.
    pub fenced: u64,
}

impl World {
    /// Every region stores a checkpoint, each in a tick of its own.
    pub fn keep_checkpoints(&mut self) {
        let every = self.kills.checkpoint_every;
        for region in self.regions.iter().filter(|r| !self.down.contains_key(&r.id())) {
            let id = region.id();
            if every == 0 || !(self.tick.0 + u64::from(id.0)).is_multiple_of(every) {
                continue;
            }
            if let Some(snapshot) = region.checkpoint() {
                let bytes = snapshot.encode().expect("not too big");
                self.kills.kept.insert(id, (snapshot.tick(), bytes));
            }
        }
    }

    /// Kills a region; another takes its place after `back_in` ticks.
    pub fn kill(&mut self, id: RegionId, back_in: u64) {
        if self.down.contains_key(&id) || self.mapping.gone.contains(&id) {
            return;
        }
        let at = id.0 as usize;
        let empty = Region::unborn(self.scene.clone(), id);
        let dead = std::mem::replace(&mut self.regions[at], empty);
        self.kills.fenced += dead.counts().fenced;
        let kept = self.kills.kept.get(&id).map_or(Tick(0), |(tick, _)| *tick);
        self.kills.deaths.push((id, kept, self.tick));
        let paused = self.rng.chance(self.kills.paused);
        let loses_sent = !paused && self.rng.chance(50);
        let mut silent = Vec::new();
        for (link, queue) in &mut self.queues {
            if link.1 == id {
                silent.extend(queue.drain(..));
            } else if link.0 == id && loses_sent {
                queue.clear();
            }
        }
        self.due.remove(&id);
        let back = Tick(self.tick.0 + back_in);
        self.down.insert(id, back);
        if paused {
            let wakes = Tick(back.0 + self.rng.next() % 20);
            self.kills.zombies.push((wakes, dead, silent));
        }
    }

    /// Restores the regions whose time has come, and resumes paused owners.
    pub fn bring_back(&mut self) {
        if !self.sessions {
            return;
        }
        let back: Vec<RegionId> =
            self.down.iter().filter(|(_, at)| **at <= self.tick).map(|(id, _)| *id).collect();
        for id in back {
            self.down.remove(&id);
            self.recover(id);
        }
        let (awake, is_unclaimed) = std::mem::take(&mut self.kills.zombies)
            .into_iter()
            .partition(|(wakes, ..)| *wakes <= self.tick);
        self.kills.zombies = is_unclaimed;
        for (wakes, mut region, silent) in awake {
            self.go_on_talking(&mut region, silent);
            // A former owner goes on for a while.
            if self.rng.chance(80) {
                self.kills.zombies.push((wakes, region, Vec::new()));
            }
        }
    }

    /// Region epochs come from one counter.
    pub fn next_epoch(&mut self) -> Epoch {
        self.kills.epoch = Epoch(self.kills.epoch.0.max(1) + 1);
        self.kills.epoch
    }

    fn recover(&mut self, id: RegionId) {
        let epoch = self.next_epoch();
        let snapshot = match self.kills.kept.get(&id) {
            Some((_, bytes)) => RegionSnapshot::decode(bytes).expect("as it was written"),
            None => RegionSnapshot::nothing(SceneId(0), id, Epoch(1)),
        };
        let gone = |id: &RegionId| self.mapping.gone.contains(id);
        let ask = self.regions.iter().map(Region::id).filter(|id| !gone(id)).collect();
        let how = Recovery { ask, grace_ticks: GRACE, owners: Vec::new() };
        if self.is_unborn(id) {
            let again = Region::unborn(self.scene.clone(), id).with_epoch(epoch);
            self.regions[id.0 as usize] = again;
            return;
        }
        let mut fx = Vec::new();
        let region = Region::recover(self.scene.clone(), id, epoch, snapshot, how, &mut fx);
        self.regions[id.0 as usize] = region.expect("it fits");
        self.kills.recovered += 1;
        self.fx = fx;
        self.carry_effects(id);
        self.tell_sessions_of_owner(id, epoch);
    }

    /// A former owner receives what was for it and ticks; all its messages are delivered.
    fn go_on_talking(&mut self, region: &mut Region, silent: Vec<Input>) {
        let mut fx = Vec::new();
        silent.into_iter().for_each(|input| region.handle(input, &mut fx));
        region.tick(self.tick, &mut fx);
        for effect in fx {
            self.kills.late += 1;
            match message_of(effect) {
                Ok((to, input)) => self.tell(to, input),
                Err(effect) => {
                    self.fx = vec![*effect];
                    self.carry_effects(region.id());
                }
            }
        }
    }
}
