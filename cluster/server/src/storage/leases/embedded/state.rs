//! The state of the store of a single process: keys, leases and the latest steps. Pure; each change
//! is applied as a whole or not at all.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::storage::Authority;
use crate::storage::leases::store::{Guard, Listing, Loss, Step, StoreEntry, Swap, Swapped, Write};

const STEPS_MAX: usize = 10_000;

#[derive(Default)]
pub struct State {
    revision: u64,
    entries: BTreeMap<String, StoreEntry>,
    leases: BTreeMap<i64, Granted>,
    last_lease: i64,
    steps: VecDeque<Step>,
    /// Ended leases whose holders could not be told, because their path was cut.
    silent: Vec<Granted>,
}

struct Granted {
    ttl: Duration,
    /// The path through which the lease was taken.
    way: i64,
    cut: bool,
    /// The holder dropped it: it runs out, whatever happens to the path.
    left: bool,
    /// When the lease ends; `None`: not by time.
    ends: Option<Instant>,
    authority: Authority,
    lost: watch::Sender<Option<Loss>>,
}

/// What a follower of an older revision has missed.
pub enum Missed {
    Nothing,
    Steps(Vec<Step>),
    /// More steps than are kept.
    TooMuch,
}

impl State {
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn grant(
        &mut self,
        ttl: Duration,
        way: i64,
        now: Instant,
    ) -> (i64, Authority, watch::Receiver<Option<Loss>>) {
        self.last_lease += 1;
        let authority = Authority::new(now, ttl);
        authority.always();
        let (lost, lost_told) = watch::channel(None);
        let granted = Granted {
            ttl,
            way,
            cut: false,
            left: false,
            ends: None,
            authority: authority.clone(),
            lost,
        };
        self.leases.insert(self.last_lease, granted);
        (self.last_lease, authority, lost_told)
    }

    /// Ends a lease and removes all its keys; false: there is none.
    pub fn end(&mut self, lease: i64, loss: Loss) -> bool {
        let Some(granted) = self.leases.remove(&lease) else { return false };
        let theirs =
            |(key, entry): (&String, &StoreEntry)| (entry.lease == lease).then(|| key.clone());
        let keys: Vec<String> = self.entries.iter().filter_map(theirs).collect();
        for key in &keys {
            self.entries.remove(key);
        }
        if !keys.is_empty() {
            self.step(keys.into_iter().map(|key| (key, None)).collect());
        }
        if granted.cut {
            // The holder's own clock ends its authority; it is told when the path is mended.
            self.silent.push(granted);
        } else {
            granted.authority.end();
            granted.lost.send_replace(Some(loss));
        }
        true
    }

    /// Lets a dropped lease run out.
    pub fn run_out(&mut self, lease: i64, now: Instant) {
        if let Some(granted) = self.leases.get_mut(&lease) {
            granted.left = true;
            granted.stop(now);
        }
    }

    pub fn cut(&mut self, way: i64, now: Instant) {
        for granted in self.leases.values_mut().filter(|granted| granted.way == way) {
            granted.cut = true;
            granted.stop(now);
        }
    }

    pub fn mend(&mut self, way: i64) {
        for granted in self.leases.values_mut().filter(|granted| granted.way == way) {
            if std::mem::take(&mut granted.cut) && !granted.left {
                granted.ends = None;
                granted.authority.always();
            }
        }
        for granted in self.silent.extract_if(.., |granted| granted.way == way) {
            granted.authority.end();
            granted.lost.send_replace(Some(Loss::Gone));
        }
    }

    /// Ends the leases of a path silently; their holders are told when it is mended.
    pub fn revoke_silently(&mut self, way: i64) {
        let theirs = |(lease, granted): (&i64, &mut Granted)| {
            let theirs = granted.way == way;
            granted.cut |= theirs;
            theirs.then_some(*lease)
        };
        let theirs: Vec<i64> = self.leases.iter_mut().filter_map(theirs).collect();
        for lease in theirs {
            self.end(lease, Loss::Gone);
        }
    }

    pub fn expire(&mut self, now: Instant) {
        let over = |(lease, granted): (&i64, &Granted)| {
            granted.ends.is_some_and(|ends| ends <= now).then_some(*lease)
        };
        let over: Vec<i64> = self.leases.iter().filter_map(over).collect();
        for lease in over {
            self.end(lease, Loss::Gone);
        }
    }

    pub fn next_end(&self) -> Option<Instant> {
        self.leases.values().filter_map(|granted| granted.ends).min()
    }

    pub fn swap(&mut self, swap: &Swap) -> Swapped {
        let found = self.entries.get(&swap.key);
        let met = match swap.guard {
            Guard::Absent => found.is_none(),
            Guard::At(revision) => found.is_some_and(|entry| entry.changed == revision),
        };
        if !met {
            return Swapped::Refused { found: found.cloned(), again: false };
        }
        let entry = match &swap.write {
            Write::Put { lease, .. } if *lease != 0 && !self.leases.contains_key(lease) => {
                return Swapped::NoLease;
            }
            Write::Put { data, lease } => {
                let changed = self.revision + 1;
                let created = found.map_or(changed, |entry| entry.created);
                let (key, data) = (swap.key.clone(), data.clone());
                Some(StoreEntry { key, data, created, changed, lease: *lease })
            }
            Write::Delete => None,
        };
        match &entry {
            Some(entry) => self.entries.insert(swap.key.clone(), entry.clone()),
            None => self.entries.remove(&swap.key),
        };
        self.step(vec![(swap.key.clone(), entry)]);
        Swapped::Done(self.revision)
    }

    /// Removes a key, if it was last changed at this revision.
    pub fn remove(&mut self, key: &str, changed: u64) {
        if self.entries.get(key).is_some_and(|entry| entry.changed == changed) {
            self.entries.remove(key);
            self.step(vec![(key.to_owned(), None)]);
        }
    }

    pub fn list(&self, prefix: &str) -> Listing {
        let from = self.entries.range(prefix.to_owned()..);
        let below = from.take_while(|(key, _)| key.starts_with(prefix));
        let entries = below.map(|(_, entry)| entry.clone()).collect();
        Listing { revision: self.revision, entries }
    }

    pub fn missed(&self, revision: u64) -> Missed {
        if revision >= self.revision {
            return Missed::Nothing;
        }
        let first = self.steps.front().map_or(self.revision + 1, |step| step.revision);
        if first > revision + 1 {
            return Missed::TooMuch;
        }
        let after = self.steps.iter().filter(|step| step.revision > revision);
        Missed::Steps(after.cloned().collect())
    }

    pub fn compact(&mut self) {
        self.steps.clear();
    }

    fn step(&mut self, keys: Vec<(String, Option<StoreEntry>)>) {
        self.revision += 1;
        self.steps.push_back(Step { revision: self.revision, keys });
        if self.steps.len() > STEPS_MAX {
            self.steps.pop_front();
        }
    }
}

impl Granted {
    fn stop(&mut self, now: Instant) {
        if self.ends.is_none() {
            self.ends = Some(now + self.ttl);
            self.authority.always_no_more(now, self.ttl);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(3);

    #[tokio::test]
    async fn a_dropped_lease_runs_out_even_if_its_path_is_mended() {
        let (mut state, now) = (State::default(), Instant::now());
        let (held, ..) = state.grant(TTL, 1, now);
        let (left, ..) = state.grant(TTL, 1, now);
        state.cut(1, now);
        state.run_out(left, now);
        state.mend(1);
        assert_eq!(state.next_end(), Some(now + TTL));
        state.expire(now + TTL);
        assert!(!state.end(left, Loss::Gone), "it has ended");
        assert!(state.end(held, Loss::Gone), "it was renewed");
    }

    #[tokio::test]
    async fn the_holder_of_a_revoked_lease_is_told_when_the_path_is_mended() {
        let (mut state, now) = (State::default(), Instant::now());
        let (lease, authority, lost) = state.grant(TTL, 1, now);
        let (other, ..) = state.grant(TTL, 2, now);
        let put = Write::Put { data: bytes::Bytes::new(), lease };
        let swap = Swap { asked: "set a value", key: "a".into(), guard: Guard::Absent, write: put };
        assert!(matches!(state.swap(&swap), Swapped::Done(1)));
        state.revoke_silently(1);
        assert!(state.list("a").entries.is_empty(), "other nodes can have the region now");
        assert!(authority.holds(now) && lost.borrow().is_none(), "its holder does not know");
        state.mend(1);
        assert!(!authority.holds(now) && *lost.borrow() == Some(Loss::Gone));
        assert!(state.end(other, Loss::Left), "no other lease was revoked");
    }
}
