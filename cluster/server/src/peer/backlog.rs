//! Queues for local regions whose mailboxes are full: one queue per region, in order, so that a
//! channel goes on for all other regions. The router fills and empties them. A message that must
//! arrive must never be dropped here.
//!
//! ```text
//!  a peer                               this process                           region
//!    message ──────────────────────────► mailbox is full: queue
//!    ◄─────────────────── Busy(region)   more than SOFT_BYTES are queued
//!  holds back messages for that region   ... the mailbox has room ──────────────► in order
//!    ◄─────────────────── Free(region)   the queue is empty
//! ```
//!
//! | queued for a region | bound | beyond it |
//! |---|---|---|
//! | ghosts | one batch per neighbour | a newer batch replaces it; the region detects the gap and
//! requests a full resync |
//! | everything | [`SOFT_BYTES`] | the peer is told; it keeps further messages in the outboxes of
//! its regions and starts no handoffs |
//! | everything, from a peer that ignores `Busy` | [`HARD_BYTES`] | its channel waits, with all
//! messages behind this one |
//!
//! A queued message counts as received, like a message in the mailbox.

#![allow(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use purview::actor::messages::ToRegion;
use purview::scene::RegionId;
use purview::scene::messages::Input;
use purview::wire::peer::Mark;
use tokio::sync::Notify;

/// Bytes queued for one region before peers are told that it is busy.
pub const SOFT_BYTES: usize = 8 << 20;

/// Most bytes queued for one region. What a peer can send before it receives `Busy` fits on top of
/// [`SOFT_BYTES`].
pub const HARD_BYTES: usize = SOFT_BYTES + super::CHANNEL_BYTES;

#[derive(Debug)]
pub(super) enum BacklogEntry {
    Say(ToRegion),
    /// A message that the region's old owner passed on while the region is migrating to this
    /// process.
    Passed(ToRegion),
    /// A marker: the sender sends nothing more over the old path. With the process that sent it,
    /// and the mark.
    Marked(u64, Mark),
}

impl BacklogEntry {
    fn ghosts_of(&self) -> Option<RegionId> {
        match self {
            BacklogEntry::Say(ToRegion { input: Input::Border(batch), .. }) => Some(batch.from),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
struct Backlog {
    waiting: VecDeque<(BacklogEntry, usize)>,
    bytes: usize,
    /// Numbers of entries that were queued, and taken, since the queue was created.
    came: u64,
    went: u64,
    told: BTreeSet<u64>,
}

impl Backlog {
    fn push(&mut self, entry: BacklogEntry, bytes: usize) {
        if let Some(of) = entry.ghosts_of() {
            let older = |(e, _): &(BacklogEntry, usize)| e.ghosts_of() == Some(of);
            if let Some((_, bytes)) =
                self.waiting.iter().rposition(older).and_then(|at| self.waiting.remove(at))
            {
                self.bytes -= bytes;
                self.went += 1;
            }
        }
        self.bytes += bytes;
        self.came += 1;
        self.waiting.push_back((entry, bytes));
    }
}

#[derive(Debug)]
pub(super) enum Brought {
    /// The region's mailbox has the entry.
    Delivered,
    Waits {
        /// The caller must start to empty the queue.
        first: bool,
        /// The caller must tell the peer that the region is busy.
        busy: bool,
    },
    /// The queue is full.
    NoRoom(BacklogEntry),
}

/// For each queue a position that must be passed.
pub(super) type Marks = Vec<(RegionId, u64)>;

/// The queues of all regions whose mailboxes are full.
#[derive(Debug, Default)]
pub(super) struct Backlogs {
    regions: Mutex<BTreeMap<RegionId, Backlog>>,
    /// The number of queues. It is usually 0, and then the lock is not taken.
    count: AtomicUsize,
    /// Notified when an entry was taken out of a queue.
    pub(super) room: Notify,
}

impl Backlogs {
    /// Delivers an entry to a region: `give` delivers it, or returns it when the mailbox is full.
    /// The entry is queued, too, if others are queued for the region already.
    pub(super) fn bring(
        &self,
        (from, to): (u64, RegionId),
        entry: BacklogEntry,
        bytes: usize,
        give: impl FnOnce(BacklogEntry) -> Result<(), BacklogEntry>,
    ) -> Brought {
        if self.count.load(Relaxed) == 0 {
            match give(entry) {
                Ok(()) => return Brought::Delivered,
                Err(entry) => return self.wait(from, to, entry, bytes),
            }
        }
        if self.regions.lock().contains_key(&to) {
            return self.wait(from, to, entry, bytes);
        }
        match give(entry) {
            Ok(()) => Brought::Delivered,
            Err(entry) => self.wait(from, to, entry, bytes),
        }
    }

    fn wait(&self, from: u64, to: RegionId, entry: BacklogEntry, bytes: usize) -> Brought {
        let mut regions = self.regions.lock();
        let first = !regions.contains_key(&to);
        let backlog = regions.entry(to).or_default();
        if backlog.bytes + bytes > HARD_BYTES && !backlog.waiting.is_empty() {
            return Brought::NoRoom(entry);
        }
        backlog.push(entry, bytes);
        let busy = backlog.bytes > SOFT_BYTES && !backlog.told.contains(&from);
        if first {
            self.count.fetch_add(1, Relaxed);
        }
        Brought::Waits { first, busy }
    }

    pub(super) fn told(&self, from: u64, region: RegionId) {
        if let Some(backlog) = self.regions.lock().get_mut(&region) {
            backlog.told.insert(from);
        }
    }

    /// Delivers queued entries while the region accepts them. False: the queue is empty, and every
    /// peer that was told that the region is busy was told that it is free.
    pub(super) fn empty(
        &self,
        region: RegionId,
        mut give: impl FnMut(BacklogEntry) -> Result<(), BacklogEntry>,
        tell_free: impl Fn(u64) -> bool,
    ) -> bool {
        let mut regions = self.regions.lock();
        let Some(backlog) = regions.get_mut(&region) else { return false };
        while let Some((entry, bytes)) = backlog.waiting.pop_front() {
            if let Err(entry) = give(entry) {
                backlog.waiting.push_front((entry, bytes));
                break;
            }
            backlog.bytes -= bytes;
            backlog.went += 1;
        }
        if backlog.waiting.is_empty() {
            backlog.told.retain(|peer| !tell_free(*peer));
            if backlog.told.is_empty() {
                regions.remove(&region);
                self.count.fetch_sub(1, Relaxed);
            }
        }
        let goes_on = regions.contains_key(&region);
        drop(regions);
        self.room.notify_waiters();
        goes_on
    }

    pub(super) fn marks(&self) -> Marks {
        self.regions.lock().iter().map(|(region, backlog)| (*region, backlog.came)).collect()
    }

    /// Whether all entries up to these positions were delivered.
    pub(super) fn have_passed(&self, marks: &Marks) -> bool {
        let regions = self.regions.lock();
        let passed = |(region, came): &(RegionId, u64)| {
            regions.get(region).is_none_or(|backlog| backlog.went >= *came)
        };
        marks.iter().all(passed)
    }

    /// The number of queued messages, and their bytes.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let regions = self.regions.lock();
        let sum = |of: fn(&Backlog) -> usize| regions.values().map(of).sum();
        (sum(|backlog| backlog.waiting.len()), sum(|backlog| backlog.bytes))
    }
}

/// The busy regions of a peer; messages for them are held back.
#[derive(Debug, Default)]
pub(super) struct Busy {
    regions: Mutex<BTreeSet<RegionId>>,
    count: AtomicUsize,
}

impl Busy {
    /// Most busy regions that are remembered; a peer has fewer regions.
    const MOST: usize = 65_536;

    /// Records the peer's message that a region is busy or free.
    pub(super) fn set(&self, region: RegionId, busy: bool) {
        let mut regions = self.regions.lock();
        match busy {
            true if regions.len() < Busy::MOST => drop(regions.insert(region)),
            true => {}
            false => drop(regions.remove(&region)),
        }
        self.count.store(regions.len(), Relaxed);
    }

    pub(super) fn is(&self, region: RegionId) -> bool {
        self.count.load(Relaxed) > 0 && self.regions.lock().contains(&region)
    }
}

#[cfg(test)]
mod tests {
    use purview::scene::messages::BorderBatch;
    use purview::scene::{EntityId, Epoch, Tick};

    use super::*;

    const BUSY: RegionId = RegionId(1);

    fn leave(n: u64) -> BacklogEntry {
        BacklogEntry::Say(ToRegion { input: Input::Leave(EntityId(n)), client: None })
    }

    fn ghosts(from: u32, tick: u64) -> BacklogEntry {
        let from = (RegionId(from), Epoch(1), Epoch(1));
        let batch = BorderBatch::empty(from, (Tick(tick), Tick(tick - 1)));
        BacklogEntry::Say(ToRegion { input: Input::Border(Box::new(batch)), client: None })
    }

    fn name(entry: &BacklogEntry) -> String {
        match entry {
            BacklogEntry::Say(ToRegion { input: Input::Leave(id), .. }) => id.to_string(),
            BacklogEntry::Say(ToRegion { input: Input::Border(batch), .. }) => {
                format!("g{}@{}", batch.from, batch.tick)
            }
            _ => "other".into(),
        }
    }

    fn drained(backlogs: &Backlogs, region: RegionId) -> Vec<String> {
        let mut all = Vec::new();
        let give = |entry: BacklogEntry| {
            all.push(name(&entry));
            Ok(())
        };
        backlogs.empty(region, give, |_| true);
        all
    }

    #[test]
    fn messages_for_a_full_region_wait_in_order_and_other_regions_get_theirs_at_once() {
        let backlogs = Backlogs::default();
        let waits = backlogs.bring((7, BUSY), leave(1), 10, Err);
        assert!(matches!(waits, Brought::Waits { first: true, busy: false }));
        // The mailbox has room now, but queued entries come first.
        let waits = backlogs.bring((7, BUSY), leave(2), 10, |_| Ok(()));
        assert!(matches!(waits, Brought::Waits { first: false, busy: false }));
        let delivered = backlogs.bring((7, RegionId(2)), leave(3), 10, |_| Ok(()));
        assert!(matches!(delivered, Brought::Delivered));
        let marks = backlogs.marks();
        assert!(!backlogs.have_passed(&marks));
        assert_eq!(drained(&backlogs, BUSY), ["1", "2"]);
        assert!(backlogs.have_passed(&marks));
        assert_eq!(backlogs.waiting(), (0, 0));
    }

    #[test]
    fn the_newest_batch_of_ghosts_per_neighbour_is_queued() {
        let backlogs = Backlogs::default();
        let bring = |entry| drop(backlogs.bring((7, BUSY), entry, 100, Err));
        bring(leave(1));
        for tick in 10..1_000 {
            bring(ghosts(3, tick));
            bring(ghosts(4, tick));
        }
        assert_eq!(backlogs.waiting(), (3, 300));
        assert_eq!(drained(&backlogs, BUSY), ["1", "g3@999", "g4@999"]);
    }

    #[test]
    fn a_peer_is_told_that_a_region_is_busy_and_that_it_is_free() {
        let backlogs = Backlogs::default();
        let mut busy = Vec::new();
        for n in 0..40 {
            match backlogs.bring((7, BUSY), leave(n), 1 << 20, Err) {
                Brought::Waits { busy: true, .. } => {
                    busy.push(n);
                    backlogs.told(7, BUSY);
                }
                Brought::Waits { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(busy, [8], "once, as soon as more than 8 MiB wait");
        let other = backlogs.bring((8, BUSY), leave(99), 1 << 20, Err);
        let Brought::NoRoom(entry) = other else { panic!("{other:?}") };
        assert_eq!(name(&entry), "99", "a peer that ignores Busy waits");
        assert!(backlogs.empty(BUSY, |_| Ok(()), |_| false), "the peer could not be told");
        assert!(!backlogs.empty(BUSY, |_| Ok(()), |peer| peer == 7));
        assert_eq!(backlogs.count.load(Relaxed), 0);
    }
}
