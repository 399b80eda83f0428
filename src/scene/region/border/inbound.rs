//! What neighbours have sent: batches that wait for their tick, and how far each neighbour has come.
//!
//! A batch may come twice or be lost: the next full one heals it. A batch is never applied before its tick, nor one of an
//! epoch that is not believed any more.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::Progress;
use crate::scene::layout::RegionEntry;
use crate::scene::messages::{BorderBatch, Effect, Input};
use crate::scene::mutants::{self, Mutant};
use crate::scene::region::{EXPIRY, PATIENCE};
use crate::scene::{EntityId, Epoch, RegionId, Tick};

/// Batches of one neighbour that wait for their tick; more mean that this region stands still.
const MAX_WAITING: usize = 32;

/// What a neighbour has sent. A snapshot has no more of it than what it cannot find out again.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Neighbour {
    pub(super) id: RegionId,
    /// What it says under a lower epoch is late.
    #[serde(skip)]
    pub(super) since: Epoch,
    /// The epoch of the last batch received.
    pub(super) epoch: Epoch,
    /// Its lineage in the last batch that was applied.
    pub(super) lineage: Epoch,
    /// Tick of the last batch received.
    pub(super) last: Tick,
    pub(super) progress: Progress,
    /// Tick up to which everything that it sent was applied, without a gap.
    pub(super) sound: Tick,
    pub(super) expired: bool,
    /// It says no more until the region map has changed.
    #[serde(skip)]
    pub(super) ended: bool,
    /// It was no neighbour before; what lineage it has is no news.
    #[serde(skip)]
    pub(super) is_new: bool,
    /// Nothing whole has come from it since this region goes on from a checkpoint, or since it is a
    /// neighbour: one that has changed its layout before this region has sent its state.
    #[serde(skip)]
    pub(super) blank: bool,
    /// After which tick the map has changed, until it has said what it has by the new one.
    #[serde(skip)]
    pub(super) changed: Option<Tick>,
    pub(super) waiting: VecDeque<BorderBatch>,
}

impl Neighbour {
    fn new(entry: &RegionEntry) -> Neighbour {
        Neighbour {
            id: entry.id,
            since: entry.epoch,
            epoch: entry.epoch,
            lineage: entry.epoch,
            ..Neighbour::default()
        }
    }

    /// What it says of thresholds in the border rounds of a tick is newer than what it has said of
    /// them in that tick and before, which may wait still: this region may be behind it.
    pub fn supersede_thresholds(&mut self, tick: Tick, thresholds: &[(EntityId, u64)]) {
        if thresholds.is_empty() {
            return;
        }
        for batch in self.waiting.iter_mut().filter(|batch| batch.tick <= tick) {
            let enters = batch.enters.iter_mut().map(|state| (state.id, &mut state.threshold));
            let changes = batch.changes.iter_mut().map(|change| (change.id, &mut change.threshold));
            for (id, waiting) in enters.chain(changes) {
                let newer = thresholds.iter().rev().find(|(of, t)| *of == id && *t != *waiting);
                if let Some((_, threshold)) =
                    newer.filter(|_| !mutants::has(Mutant::ThresholdOutdated))
                {
                    *waiting = *threshold;
                }
            }
        }
    }

    /// Nothing that it has said counts, nor when it was said: it is asked for everything.
    pub fn forget_ticks(&mut self) {
        (self.last, self.sound, self.blank) = (Tick(0), Tick(0), true);
        self.progress = Progress::default();
        self.waiting.clear();
    }

    /// A batch is applied. Of the actions that it repeats those stay that may have been missed: all those that were told
    /// here since a tick are remembered. After a gap actions wait for the full batch, which repeats them: so they are
    /// told in their order.
    fn note_applied(&mut self, batch: &mut BorderBatch, remembered_since: Tick) {
        batch.earlier.retain(|action| action.tick > self.sound.min(remembered_since));
        if batch.full || batch.prev <= self.sound {
            self.sound = batch.tick;
        } else {
            batch.acts.clear();
            batch.earlier.clear();
        }
    }

    /// Whether it takes part in the border rounds of this tick.
    pub fn has_rounds(&self, tick: Tick) -> bool {
        self.last == tick && !self.ended
    }
}

/// What neighbours have sent.
#[derive(Debug)]
pub struct Inbound {
    pub(super) neighbours: Vec<Neighbour>,
    /// When ghosts without a report of their owner were last searched.
    pub(super) swept: Tick,
    /// Regions that have crashed, or may have: what was said by way of them may be lost.
    pub(super) crashed: Vec<RegionId>,
}

impl Inbound {
    /// Nothing was received yet.
    pub fn new(neighbours: &[RegionEntry]) -> Inbound {
        let neighbours = neighbours.iter().map(Neighbour::new);
        Inbound { neighbours: neighbours.collect(), swept: Tick(0), crashed: Vec::new() }
    }

    /// Whether a region is a neighbour.
    pub fn knows(&self, region: RegionId) -> bool {
        self.neighbours.iter().any(|n| n.id == region)
    }

    /// A neighbour says no more until the region map has changed.
    pub fn has_ended(&mut self, region: RegionId) {
        self.neighbours.iter_mut().filter(|n| n.id == region).for_each(|n| n.ended = true);
    }

    /// Other neighbours from now on, by a map that counts after this tick. Those that are new are waited
    /// for like the others.
    pub fn rearrange(&mut self, neighbours: &[RegionEntry], after: Tick) {
        let mut old = std::mem::take(&mut self.neighbours);
        let neighbour = |r: &RegionEntry| match old.iter().position(|n| n.id == r.id) {
            Some(at) => Neighbour { ended: false, ..old.swap_remove(at) },
            None => {
                let new = Neighbour::new(r);
                Neighbour { last: after, sound: after, is_new: true, blank: true, ..new }
            }
        };
        self.neighbours = neighbours.iter().map(neighbour).collect();
        self.neighbours.iter_mut().for_each(|n| n.changed = Some(after));
    }

    /// Keeps a batch until the tick whose state it is. What is late or not from a neighbour is
    /// dropped; a gap asks the sender for everything. Says whether it was of a region that was
    /// another's already.
    pub fn keep(&mut self, mut batch: BorderBatch, me: RegionId, fx: &mut Vec<Effect>) -> bool {
        let Some(n) = self.neighbours.iter_mut().find(|n| n.id == batch.from) else { return false };
        if batch.epoch < n.since && !mutants::has(Mutant::AnyEpoch) {
            return true;
        }
        // An owner that goes on from a checkpoint may be behind the one that has died, or is none any more.
        let behind_silent = mutants::has(Mutant::BehindSilent);
        let same = batch.epoch == n.epoch || behind_silent;
        let known = same && batch.tick <= n.last;
        let is_first = n.blank && batch.full && batch.tick == n.last;
        if known && (!is_first || mutants::has(Mutant::AheadSilent)) {
            return false;
        }
        if known {
            // Everything of a tick of which only the changes were known.
            let before = n.waiting.len();
            n.waiting.retain(|waiting| waiting.tick < batch.tick);
            if n.waiting.len() == before && n.sound >= batch.tick {
                batch.acts.clear();
            }
        }
        // Of a neighbour whose ghosts have expired, changes alone say nothing; nor do those of one that was put together anew.
        let before = n.waiting.back().map_or(n.lineage, |before| before.lineage);
        let anew = batch.lineage > before && !n.is_new && !behind_silent;
        let gap = (batch.prev != n.last || n.expired || n.blank || anew) && !batch.full;
        // The question may have been lost before there was a connection: it is asked again once a second.
        let next = n.waiting.front().unwrap_or(&batch);
        let unanswered = next.prev > n.sound && !n.waiting.iter().any(|waiting| waiting.full);
        let gap = gap || (unanswered && !batch.full && batch.tick.0.is_multiple_of(PATIENCE));
        if (gap || n.waiting.len() >= MAX_WAITING) && !mutants::has(Mutant::GapUnasked) {
            fx.push(Effect::Forward(n.id, Box::new(Input::BorderLost(me))));
        }
        if n.waiting.len() >= MAX_WAITING {
            n.waiting.pop_front();
            n.sound = n.sound.min(Tick(batch.prev.0.saturating_sub(1)));
        }
        (n.since, n.epoch) = (batch.epoch, batch.epoch);
        n.last = batch.tick;
        n.expired = false;
        n.blank &= !batch.full;
        n.waiting.push_back(batch);
        false
    }

    /// Nothing of what neighbours have is known here: what was the last tick of each is as good as long
    /// ago, and its ghosts count from the next full batch on.
    pub fn forget_all(&mut self) {
        self.neighbours.iter_mut().for_each(|n| n.blank = true);
    }

    /// A neighbour is there, in this tick.
    pub fn note_tick_of(&mut self, region: RegionId, tick: Tick) {
        for n in self.neighbours.iter_mut().filter(|n| n.id == region && n.blank) {
            n.last = n.last.max(tick);
        }
    }

    /// What a region says under a lower epoch is late. Says whether it is a neighbour.
    pub fn outlived(&mut self, region: RegionId, epoch: Epoch) -> bool {
        let Some(n) = self.neighbours.iter_mut().find(|n| n.id == region) else { return false };
        n.since = n.since.max(epoch);
        true
    }

    /// What neighbours have sent, for a snapshot; where it is not whole, what they are called by.
    pub fn save(&self, whole: bool) -> Vec<Neighbour> {
        let saved = self.neighbours.iter().map(|n| Neighbour {
            expired: n.expired || n.blank,
            waiting: if whole { n.waiting.clone() } else { VecDeque::new() },
            // What is found out again.
            since: Epoch::default(),
            ended: false,
            is_new: false,
            blank: false,
            changed: None,
            ..*n
        });
        saved.collect()
    }

    /// Goes on from a snapshot.
    pub fn restore(
        &mut self,
        saved: Vec<Neighbour>,
        (swept, crashed): (Tick, Vec<RegionId>),
        fences: &FxHashMap<RegionId, Epoch>,
    ) {
        (self.swept, self.crashed) = (swept, crashed);
        for saved in saved {
            let Some(n) = self.neighbours.iter_mut().find(|n| n.id == saved.id) else { continue };
            (n.epoch, n.lineage) = (n.epoch.max(saved.epoch), n.lineage.max(saved.lineage));
            n.since = n.epoch.max(fences.get(&n.id).copied().unwrap_or_default());
            (n.last, n.sound, n.expired) = (saved.last, saved.sound, saved.expired);
            // There is nothing of it here to which changes alone could be applied.
            n.blank = saved.expired;
            n.progress = saved.progress;
            n.waiting = saved.waiting;
        }
    }

    /// Up to which tick what is known of the region's entities is whole.
    pub fn sound(&self, region: RegionId) -> Option<Tick> {
        self.neighbours.iter().find(|n| n.id == region).map(|n| n.sound)
    }

    /// Whether the ghosts of `tick` are here from every neighbour that is not silent.
    pub fn complete(&self, tick: Tick) -> bool {
        let here = |n: &Neighbour| n.last >= tick && !n.blank;
        self.neighbours
            .iter()
            .all(|n| here(n) || n.ended || n.last.0.saturating_add(PATIENCE) < tick.0)
    }

    /// Takes the next batch of a neighbour that counts in a tick.
    pub(super) fn next_batch(
        &mut self,
        neighbour: usize,
        upto: Tick,
        remembered_since: Tick,
    ) -> Option<BorderBatch> {
        let n = &mut self.neighbours[neighbour];
        // A neighbour may skip the first tick by a new map. What it has then counts for the one
        // that is not skipped here: without it viewers would not know players that were handed over
        // by that layout.
        let ahead = n.changed.is_some_and(|after| upto > after);
        let front = n.waiting.front()?.tick;
        if front > upto && !ahead {
            return None;
        }
        n.changed = n.changed.filter(|after| front <= *after);
        let mut batch = n.waiting.pop_front()?;
        if front > upto && !batch.acts.is_empty() {
            // Actions of its tick are reported in that tick: for an entity that is handed on
            // meanwhile, by its new owner.
            n.waiting.push_front(batch.take_acts());
        }
        n.note_applied(&mut batch, remembered_since);
        if batch.lineage > n.lineage {
            n.lineage = batch.lineage;
            if !n.is_new {
                self.crashed.push(batch.from);
            }
        }
        n.is_new = false;
        Some(batch)
    }

    /// Neighbours that have sent later ticks than this one count as silent so far.
    pub fn forget_beyond(&mut self, latest: Tick) {
        for n in self.neighbours.iter_mut().filter(|n| n.last > latest) {
            n.forget_ticks();
        }
    }

    /// A neighbour that has been silent for too long has crashed, as far as is known. Gives it once.
    pub(super) fn expire(&mut self, neighbour: usize, now: Tick) -> Option<RegionId> {
        let n = &mut self.neighbours[neighbour];
        if n.last.0.saturating_add(EXPIRY) >= now.0 || n.expired {
            return None;
        }
        n.expired = true;
        self.crashed.push(n.id);
        Some(n.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::layout::PlaneGroup;
    use crate::scene::messages::GhostChange;
    use crate::scene::mutants::is_noticed_by;
    use crate::scene::{Facing, Pos, Rect};

    const NEIGHBOUR: RegionId = RegionId(1);
    const SINCE: Epoch = Epoch(3);
    const GHOST: EntityId = EntityId(7);

    fn inbound() -> Inbound {
        let rect = Rect { x0: 0, z0: 0, x1: 100, z1: 100 };
        Inbound::new(&[RegionEntry { id: NEIGHBOUR, rect, epoch: SINCE, group: PlaneGroup(0) }])
    }

    /// A batch of the neighbour that says this of the ghost's threshold.
    fn batch(tick: u64, threshold: u64) -> BorderBatch {
        let empty = BorderBatch::empty((NEIGHBOUR, SINCE, SINCE), (Tick(tick), Tick(tick - 1)));
        let (pos, facing) = (Pos::ground(1, 1), Facing::EAST);
        let change =
            GhostChange { id: GHOST, epoch: SINCE, pos, facing, trajectory: None, threshold };
        BorderBatch { changes: vec![change], ..empty }
    }

    /// A region that goes on from a checkpoint knows of a neighbour's tick before it has anything of that tick.
    #[test]
    fn all_that_a_neighbour_has_of_a_tick_counts_although_the_tick_is_known() {
        let mut inbound = inbound();
        inbound.forget_all();
        inbound.note_tick_of(NEIGHBOUR, Tick(5));
        let fx = &mut Vec::new();
        inbound.keep(batch(5, 0), RegionId(0), fx);
        inbound.keep(BorderBatch { full: true, ..batch(5, 0) }, RegionId(0), fx);
        let waiting = inbound.neighbours[0].waiting.iter().map(|batch| (batch.tick, batch.full));
        assert_eq!(waiting.collect::<Vec<_>>(), [(Tick(5), true)]);
        assert!(inbound.complete(Tick(5)));
    }

    #[test]
    fn a_threshold_of_a_border_round_counts_before_what_waits_of_its_tick_and_earlier_ones() {
        let mut inbound = inbound();
        for tick in 4..8 {
            inbound.keep(batch(tick, tick), RegionId(0), &mut Vec::new());
        }
        inbound.neighbours[0].supersede_thresholds(Tick(6), &[(EntityId(8), 1), (GHOST, 90)]);
        let waiting = inbound.neighbours[0].waiting.iter().map(|batch| batch.changes[0].threshold);
        assert_eq!(waiting.collect::<Vec<_>>(), [90, 90, 90, 7]);
    }

    #[test]
    fn these_tests_notice_bugs() {
        let full = all_that_a_neighbour_has_of_a_tick_counts_although_the_tick_is_known;
        assert!(is_noticed_by(Mutant::AheadSilent, full));
        let round =
            a_threshold_of_a_border_round_counts_before_what_waits_of_its_tick_and_earlier_ones;
        assert!(is_noticed_by(Mutant::ThresholdOutdated, round));
    }
}
