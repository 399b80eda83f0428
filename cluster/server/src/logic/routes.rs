//! The regions of a worker, as a process knows them that passes on what they say: where each is, under which epoch, and
//! how far it has told the worker what happened.
//!
//! What a region says under an epoch counts until one of its name speaks under a higher epoch. A process that was silent
//! and does not know yet that others have its regions is not believed: neither that they have applied commands, nor that
//! these are durable.
//!
//! *Absent on purpose:* locks, connections, time.

use std::collections::BTreeMap;

use purview::scene::{Epoch, RegionId, Tick};
use purview::wire::peer::{LeaseNews, RegionNews};

/// What is known of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Route {
    epoch: Epoch,
    lease: Option<Held>,
}

/// The worker has the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    /// The process in which the region is; 0: this one.
    by: u64,
    /// The number of the lease.
    lease: u64,
    /// The worker is told what happened before this tick and in it.
    told: Tick,
}

/// A lease that has ended without a word of its region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// The region.
    pub region: RegionId,
    /// The epoch of the lease.
    pub epoch: Epoch,
    /// The number of the lease.
    pub lease: u64,
}

/// The regions of a worker.
#[derive(Debug, Default)]
pub struct Routes(BTreeMap<RegionId, Route>);

/// What has become of what a region says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It counts; before it the worker is told that a lease under an earlier epoch has ended, if there is one.
    Counts(Option<Lost>),
    /// Another region of the name has spoken under a higher epoch.
    Outdated,
}

impl Routes {
    /// A region says something: by a process, or in this one (0).
    pub fn take(&mut self, by: u64, news: RegionNews) -> Taken {
        let RegionNews { region, epoch, lease } = news;
        let route = self.0.entry(region).or_default();
        if epoch < route.epoch {
            return Taken::Outdated;
        }
        let mut lost = None;
        if epoch > route.epoch {
            let before = std::mem::replace(route, Route { epoch, lease: None });
            lost = before.lost(region);
        }
        match lease {
            LeaseNews::Same => {}
            LeaseNews::Begins(lease, told) => route.lease = Some(Held { by, lease, told }),
            LeaseNews::Told(tick) => route.lease.iter_mut().for_each(|held| held.told = tick),
            LeaseNews::Ended => route.lease = None,
        }
        Taken::Counts(lost)
    }

    /// The process in which a region of the worker is; `None`: the worker does not have it. 0: this one.
    pub fn process(&self, region: RegionId) -> Option<u64> {
        self.0.get(&region)?.lease.map(|held| held.by)
    }

    /// How many regions the worker has.
    pub fn len(&self) -> usize {
        self.0.values().filter(|route| route.lease.is_some()).count()
    }

    /// Whether the region still has to tell the worker what happened at the end of this tick.
    pub fn owes(&self, region: RegionId, tick: Tick) -> bool {
        let lease = self.0.get(&region).and_then(|route| route.lease);
        lease.is_some_and(|held| held.told <= tick)
    }

    /// All leases have ended, as the worker knows.
    pub fn end_all(&mut self) {
        self.0.values_mut().for_each(|route| route.lease = None);
    }

    /// Ends the leases in processes that are gone.
    pub fn end_where(&mut self, is_gone: impl Fn(u64) -> bool) -> Vec<Lost> {
        let mut lost = Vec::new();
        for (region, route) in &mut self.0 {
            if route.lease.is_some_and(|held| is_gone(held.by)) {
                lost.extend(route.lost(*region));
                route.lease = None;
            }
        }
        lost
    }
}

impl Route {
    fn lost(&self, region: RegionId) -> Option<Lost> {
        self.lease.map(|held| Lost { region, epoch: self.epoch, lease: held.lease })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: RegionId = RegionId(4);

    fn says(epoch: u64, lease: LeaseNews) -> RegionNews {
        RegionNews { region: R, epoch: Epoch(epoch), lease }
    }

    #[test]
    fn a_region_tells_up_to_a_tick_while_the_worker_has_it() {
        let mut routes = Routes::default();
        assert!(!routes.owes(R, Tick(1)) && routes.process(R).is_none());
        assert_eq!(routes.take(7, says(1, LeaseNews::Begins(3, Tick(10)))), Taken::Counts(None));
        assert_eq!((routes.process(R), routes.len()), (Some(7), 1));
        assert!(!routes.owes(R, Tick(9)) && routes.owes(R, Tick(10)));
        routes.take(7, says(1, LeaseNews::Told(Tick(11))));
        assert!(!routes.owes(R, Tick(10)) && routes.owes(R, Tick(11)));
        routes.take(7, says(1, LeaseNews::Same));
        assert!(routes.owes(R, Tick(11)));
        routes.take(7, says(1, LeaseNews::Ended));
        assert!(!routes.owes(R, Tick(11)) && routes.len() == 0);
    }

    #[test]
    fn what_a_region_says_under_an_earlier_epoch_does_not_count() {
        let mut routes = Routes::default();
        routes.take(7, says(1, LeaseNews::Begins(3, Tick(10))));
        // Another process has the region: it speaks, and has no lease yet.
        let lost = Lost { region: R, epoch: Epoch(1), lease: 3 };
        assert_eq!(routes.take(8, says(2, LeaseNews::Same)), Taken::Counts(Some(lost)));
        assert_eq!(routes.process(R), None);
        assert_eq!(routes.take(8, says(2, LeaseNews::Begins(1, Tick(20)))), Taken::Counts(None));
        for late in [LeaseNews::Same, LeaseNews::Told(Tick(30)), LeaseNews::Ended] {
            assert_eq!(routes.take(7, says(1, late)), Taken::Outdated);
        }
        assert_eq!(routes.process(R), Some(8));
        assert!(routes.owes(R, Tick(20)));
    }

    #[test]
    fn leases_in_processes_that_are_gone_end() {
        let mut routes = Routes::default();
        routes.take(7, says(1, LeaseNews::Begins(3, Tick(10))));
        assert_eq!(routes.end_where(|process| process == 8), []);
        let lost = Lost { region: R, epoch: Epoch(1), lease: 3 };
        assert_eq!(routes.end_where(|process| process == 7), [lost]);
        assert!(routes.end_where(|process| process == 7).is_empty() && routes.len() == 0);
        assert_eq!(routes.take(7, says(0, LeaseNews::Same)), Taken::Outdated, "epochs are kept");
    }
}
