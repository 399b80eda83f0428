//! The changed pairs of a tick, eight bytes each. Threads gather them in chunks, within a common
//! bound.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Changes of a chunk: 128 KiB.
const CHUNK: usize = if cfg!(test) { 8 } else { 1 << 14 };

/// Bits of a slot.
const SLOT: u32 = 28;
const _: () = assert!(super::MOST_ENTITIES == 1 << SLOT);

/// A changed pair, by slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change(u64);

impl Change {
    #[inline]
    pub fn new(observer: u32, subject: u32, appears: bool) -> Change {
        Change(u64::from(observer) << (SLOT + 1) | u64::from(subject) << 1 | u64::from(appears))
    }

    #[inline]
    pub fn observer(self) -> u32 {
        (self.0 >> (SLOT + 1)) as u32
    }

    #[inline]
    pub fn subject(self) -> u32 {
        (self.0 >> 1) as u32 & ((1 << SLOT) - 1)
    }

    #[inline]
    pub fn appears(self) -> bool {
        self.0 & 1 == 1
    }

    #[inline]
    fn gain(self) -> isize {
        if self.appears() { 1 } else { -1 }
    }

    /// What two changes of the same pair have in common.
    pub fn pair(self) -> u64 {
        self.0 >> 1
    }
}

/// How many changes a tick may have.
#[derive(Debug)]
pub struct Room {
    most: usize,
    /// Changes of full chunks.
    found: AtomicUsize,
}

impl Room {
    pub fn new(most: usize) -> Room {
        Room { most, found: AtomicUsize::new(0) }
    }

    /// Counts a full chunk; whether there are too many now.
    fn count(&self) -> bool {
        self.found.fetch_add(CHUNK, Relaxed) + CHUNK > self.most
    }
}

/// The changes that a thread finds.
#[derive(Debug)]
pub struct Found<'a> {
    changes: Changes,
    room: &'a Room,
    is_over: bool,
}

impl<'a> Found<'a> {
    pub fn new(room: &'a Room) -> Found<'a> {
        Found { changes: Changes::default(), room, is_over: false }
    }

    #[inline]
    pub fn push(&mut self, change: Change) {
        if self.changes.last.len() == CHUNK {
            self.is_over |= self.room.count();
            self.changes.close();
        }
        self.changes.last.push(change);
        self.changes.gain += change.gain();
    }

    /// Whether all threads together have found more than there may be: the search should end.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

/// The changes of a tick.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    full: Vec<Vec<Change>>,
    last: Vec<Change>,
    /// How many pairs more there are after these changes.
    gain: isize,
}

impl Changes {
    pub fn len(&self) -> usize {
        self.full.iter().map(Vec::len).sum::<usize>() + self.last.len()
    }

    pub fn clear(&mut self) {
        self.full = Vec::new();
        super::clear(&mut self.last);
        self.gain = 0;
    }

    fn close(&mut self) {
        self.full.push(std::mem::take(&mut self.last));
    }

    /// Adds what a thread has found, behind what is here.
    pub fn add(&mut self, found: Found) {
        let Changes { full, last, gain } = found.changes;
        self.gain += gain;
        let fits = full.is_empty() && self.last.len() + last.len() <= CHUNK;
        if fits && !self.last.is_empty() {
            self.last.extend_from_slice(&last);
            return;
        }
        if !self.last.is_empty() {
            self.close();
        }
        self.full.extend(full);
        self.last = last;
    }

    pub fn iter(&self) -> impl Iterator<Item = Change> + Clone + '_ {
        self.full.iter().flatten().chain(&self.last).copied()
    }

    /// The chunks.
    pub fn chunks(&self) -> Vec<&[Change]> {
        self.full.iter().map(Vec::as_slice).chain([self.last.as_slice()]).collect()
    }

    /// Keeps the changes from a place on, in one piece.
    pub fn split_off(&mut self, from: usize) -> Vec<Change> {
        let mut all = self.take();
        let rest = all.split_off(from);
        self.last = all;
        self.count_gain();
        rest
    }

    /// All changes, in one piece.
    pub fn take(&mut self) -> Vec<Change> {
        let mut all = Vec::with_capacity(self.len());
        std::mem::take(&mut self.full).into_iter().for_each(|chunk| all.extend(chunk));
        all.append(&mut self.last);
        all
    }

    /// Leaves out pairs that disappear in one engine and appear in the other.
    pub fn cancel(&mut self) {
        let mut all = self.take();
        all.sort_unstable();
        let mut kept = 0;
        for at in 0..all.len() {
            let change = all[at];
            if kept > 0 && all[kept - 1].pair() == change.pair() {
                kept -= 1;
            } else {
                all[kept] = change;
                kept += 1;
            }
        }
        all.truncate(kept);
        self.full = vec![all];
        self.count_gain();
    }

    /// How many pairs more there are after these changes.
    pub fn gain(&self) -> isize {
        self.gain
    }

    fn count_gain(&mut self) {
        self.gain = self.iter().map(Change::gain).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_keeps_the_largest_slots() {
        let most = (1 << SLOT) - 1;
        for (observer, subject, appears) in [(0, 0, false), (most, 0, true), (7, most, false)] {
            let change = Change::new(observer, subject, appears);
            let told = (change.observer(), change.subject(), change.appears());
            assert_eq!(told, (observer, subject, appears));
        }
        assert_eq!(size_of::<Change>(), 8);
    }

    #[test]
    fn threads_stop_soon_after_they_have_found_too_many_together() {
        let room = Room::new(3 * CHUNK);
        let mut found = [Found::new(&room), Found::new(&room)];
        let mut pushed = 0;
        while let Some(one) = found.iter_mut().find(|one| !one.is_over()) {
            one.push(Change::new(pushed, 0, true));
            pushed += 1;
        }
        let mut changes = Changes::default();
        found.into_iter().for_each(|one| changes.add(one));
        assert_eq!(changes.len(), pushed as usize);
        assert!(pushed as usize > room.most && pushed as usize <= 8 * CHUNK, "{pushed}");
        assert!(changes.iter().map(Change::observer).eq(0..pushed));
    }

    #[test]
    fn changes_stay_in_the_order_in_which_they_are_added() {
        let room = Room::new(usize::MAX);
        let (mut changes, mut next) = (Changes::default(), 0);
        for len in [3, 0, 20, 2, 8, 1, 7, 30] {
            let mut found = Found::new(&room);
            for slot in next..next + len {
                found.push(Change::new(slot, 1, true));
            }
            next += len;
            changes.add(found);
        }
        assert!(changes.iter().map(Change::observer).eq(0..next));
        let rest = changes.split_off(30);
        assert!(rest.into_iter().map(Change::observer).eq(30..next));
        assert_eq!(changes.len(), 30);
    }
}
