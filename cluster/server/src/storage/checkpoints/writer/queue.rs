//! Which checkpoint is saved next: first a region without a saved checkpoint, then the region whose
//! last saved checkpoint is the oldest. Per region only the newest checkpoint waits, and at most
//! one is being saved. The checkpoint queue calls it with a lock held: it is pure, and the time is
//! an argument.

use std::collections::BTreeMap;
use std::time::Duration;

use purview::scene::{Epoch, RegionId, Tick};
use tokio::time::Instant;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Brought<T> {
    pub(super) epoch: Epoch,
    pub(super) tick: Tick,
    pub(super) at: Instant,
    pub(super) item: T,
}

#[derive(Debug)]
pub(super) struct Queue<T>(BTreeMap<RegionId, QueueEntry<T>>);

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue(BTreeMap::new())
    }
}

#[derive(Debug)]
struct QueueEntry<T> {
    epoch: Epoch,
    runs: bool,
    /// The tick of the checkpoint from which the region would go on, if it is known here.
    durable: Option<Tick>,
    /// When the region made the last saved checkpoint; before the first save, when it began here.
    since: Instant,
    was_saved: bool,
    waiting: Option<Brought<T>>,
    saving: bool,
}

impl<T> Queue<T> {
    /// A region runs here from now on. `durable`: the tick of the checkpoint from which it would go on, if it is known.
    pub(super) fn begin(
        &mut self,
        region: RegionId,
        epoch: Epoch,
        (durable, since): (Option<Tick>, Instant),
    ) {
        let (runs, was_saved) = (true, false);
        let entry = self.0.entry(region).or_insert(QueueEntry {
            epoch,
            runs,
            durable,
            since,
            was_saved,
            waiting: None,
            saving: false,
        });
        if !entry.runs && epoch > entry.epoch {
            // The region has come back from another node.
            (entry.epoch, entry.runs, entry.was_saved) = (epoch, runs, was_saved);
            (entry.durable, entry.since) = (durable, since);
        }
    }

    /// Adds a checkpoint; it replaces a waiting one.
    pub(super) fn bring(&mut self, region: RegionId, brought: Brought<T>) {
        self.begin(region, brought.epoch, (None, brought.at));
        let Some(entry) = self.0.get_mut(&region) else { return };
        entry.epoch = entry.epoch.max(brought.epoch);
        entry.waiting = Some(brought);
    }

    /// The next checkpoint to save. Its region is not returned again before [`Queue::is_saved`],
    /// [`Queue::give_back`] or [`Queue::drop_one`].
    pub(super) fn next(&mut self) -> Option<(RegionId, Brought<T>)> {
        let due = self.0.iter_mut().filter(|(_, entry)| entry.waiting.is_some() && !entry.saving);
        let (region, entry) = due.min_by_key(|(region, e)| (e.was_saved, e.since, **region))?;
        entry.saving = true;
        Some((*region, entry.waiting.take()?))
    }

    /// Records that the checkpoint of this tick, made at this time, was saved.
    pub(super) fn is_saved(&mut self, region: RegionId, tick: Tick, at: Instant) {
        if let Some(entry) = self.0.get_mut(&region) {
            entry.saving = false;
            if at >= entry.since {
                (entry.durable, entry.since, entry.was_saved) = (Some(tick), at, true);
            }
        }
        self.sweep(region);
    }

    /// Returns a checkpoint that was not saved; it waits again, unless a newer one does.
    pub(super) fn give_back(&mut self, region: RegionId, brought: Brought<T>) {
        if let Some(entry) = self.0.get_mut(&region) {
            entry.saving = false;
            entry.waiting.get_or_insert(brought);
        }
    }

    /// Discards a checkpoint that can never be saved.
    pub(super) fn drop_one(&mut self, region: RegionId) {
        if let Some(entry) = self.0.get_mut(&region) {
            entry.saving = false;
        }
        self.sweep(region);
    }

    /// The region no longer runs here; a waiting checkpoint is saved all the same.
    pub(super) fn forget(&mut self, region: RegionId, epoch: Epoch) {
        if let Some(entry) = self.0.get_mut(&region)
            && entry.epoch <= epoch
        {
            entry.runs = false;
        }
        self.sweep(region);
    }

    fn sweep(&mut self, region: RegionId) {
        let is_over = |e: &QueueEntry<T>| !e.runs && !e.saving && e.waiting.is_none();
        if self.0.get(&region).is_some_and(is_over) {
            self.0.remove(&region);
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.0.values().filter(|entry| entry.waiting.is_some()).count()
    }

    /// The age of the last saved checkpoint of each local region.
    pub(super) fn ages(&self, now: Instant) -> impl Iterator<Item = (RegionId, Duration)> + '_ {
        let running = self.0.iter().filter(|(_, entry)| entry.runs);
        running.map(move |(region, entry)| (*region, now.saturating_duration_since(entry.since)))
    }

    /// The oldest tick among the checkpoints from which local regions would go on; `None`: one of them is not known,
    /// since its region has come from another node and was not saved here yet, or there are no regions.
    pub(super) fn oldest(&self) -> Option<Tick> {
        // `None` is less than every tick.
        self.0.values().filter(|entry| entry.runs).map(|entry| entry.durable).min().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(begin: Instant, seconds: u64) -> Instant {
        begin + Duration::from_secs(seconds)
    }

    fn brought(tick: u64, at: Instant) -> Brought<()> {
        Brought { epoch: Epoch(1), tick: Tick(tick), at, item: () }
    }

    #[test]
    fn the_region_with_the_oldest_saved_checkpoint_is_next() {
        let (begin, mut queue) = (Instant::now(), Queue::default());
        for region in [RegionId(3), RegionId(1), RegionId(2)] {
            queue.bring(region, brought(10, at(begin, u64::from(region.0))));
        }
        let mut saved = Vec::new();
        for round in 1..=2_u64 {
            for _ in 0..3 {
                let (region, next) = queue.next().unwrap();
                saved.push(region.0);
                queue.is_saved(region, next.tick, next.at);
                // The region makes its next checkpoint at once, and still waits for its turn.
                queue.bring(
                    region,
                    brought(10 + round, at(begin, 100 * round + saved.len() as u64)),
                );
            }
        }
        assert_eq!(saved, [1, 2, 3, 1, 2, 3]);
    }

    #[test]
    fn a_region_has_one_save_at_a_time_and_a_failed_one_waits_again() {
        let (begin, mut queue) = (Instant::now(), Queue::default());
        let region = RegionId(1);
        queue.bring(region, brought(1, begin));
        let (_, first) = queue.next().unwrap();
        queue.bring(region, brought(2, at(begin, 1)));
        assert_eq!(queue.next(), None, "the first is being saved");
        queue.give_back(region, first);
        let (_, newest) = queue.next().unwrap();
        assert_eq!(newest.tick, Tick(2), "the newer checkpoint waits");
        queue.give_back(region, newest);
        assert_eq!(queue.next().unwrap().1.tick, Tick(2));
        assert_eq!(queue.ages(at(begin, 9)).next(), Some((region, Duration::from_secs(9))));
        queue.is_saved(region, Tick(2), at(begin, 1));
        assert_eq!(queue.ages(at(begin, 9)).next(), Some((region, Duration::from_secs(8))));
        assert_eq!(queue.oldest(), Some(Tick(2)));
    }

    #[test]
    fn a_region_that_left_has_no_age_and_its_last_checkpoint_is_saved() {
        let (begin, mut queue) = (Instant::now(), Queue::default());
        let region = RegionId(1);
        queue.bring(region, brought(1, begin));
        queue.forget(region, Epoch(1));
        assert_eq!((queue.ages(begin).count(), queue.oldest()), (0, None));
        let (_, last) = queue.next().unwrap();
        queue.is_saved(region, last.tick, last.at);
        assert!(queue.0.is_empty());
        // A late checkpoint of the former actor says nothing about the current one.
        queue.bring(region, Brought { epoch: Epoch(2), ..brought(9, begin) });
        queue.forget(region, Epoch(1));
        assert_eq!(queue.ages(begin).count(), 1);
    }

    #[test]
    fn nothing_is_durable_while_a_region_was_not_saved_since_it_came() {
        let (begin, mut queue) = (Instant::now(), Queue::default());
        let (here, comes) = (RegionId(1), RegionId(2));
        let save = |queue: &mut Queue<()>, region, epoch, tick, since| {
            let brought = Brought { epoch: Epoch(epoch), ..brought(tick, at(begin, since)) };
            queue.bring(region, brought);
            let before = queue.oldest();
            let (region, next) = queue.next().unwrap();
            queue.is_saved(region, next.tick, next.at);
            before
        };
        queue.begin(here, Epoch(1), (Some(Tick(4)), begin));
        assert_eq!(queue.oldest(), Some(Tick(4)), "it goes on from this checkpoint");
        assert_eq!(save(&mut queue, here, 1, 9, 1), Some(Tick(4)), "the new one is not saved yet");
        assert_eq!(queue.oldest(), Some(Tick(9)));
        queue.begin(comes, Epoch(2), (None, at(begin, 2)));
        assert_eq!(queue.oldest(), None, "its former node knows");
        assert_eq!(save(&mut queue, comes, 2, 12, 3), None);
        assert_eq!(queue.oldest(), Some(Tick(9)));
        // It goes, and comes back while its last checkpoint is being saved.
        queue.bring(comes, Brought { epoch: Epoch(2), ..brought(14, at(begin, 4)) });
        let (_, last) = queue.next().unwrap();
        queue.forget(comes, Epoch(2));
        assert_eq!(queue.oldest(), Some(Tick(9)));
        queue.begin(comes, Epoch(3), (None, at(begin, 5)));
        queue.is_saved(comes, last.tick, last.at);
        assert_eq!(queue.oldest(), None, "another node may have gone on without it");
    }
}
