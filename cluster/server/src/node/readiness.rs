//! Whether a process of a cluster is ready for sessions, and whether it sees the cluster whole.
//!
//! Readiness is about this process: one lost node must never take every gateway out of a load balancer. So a gateway
//! stays ready while it reaches a good share of the regions, and is not ready when it reaches none.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Node, Roles, Status};
use crate::peer::Links;
use crate::storage::{Membership, View};

/// How long a gateway may reach too few regions before it is not ready.
const TOO_FEW_FOR: Duration = Duration::from_secs(10);

/// What readiness depends on, beside the regions of this process.
pub(crate) struct Readiness {
    roles: Roles,
    ending: Arc<AtomicBool>,
    status: watch::Receiver<Status>,
    views: Arc<RwLock<View>>,
    links: Links,
    membership: Membership,
    share: Mutex<Share>,
}

/// Whether a gateway reaches enough regions.
#[derive(Debug)]
struct Share {
    /// Percent of the regions that are enough.
    enough: u32,
    /// Since when it reaches too few; before it has ever reached enough: `None`.
    reached: Option<Instant>,
}

impl Share {
    /// Whether this is enough, or has been until a moment ago.
    fn holds(&mut self, reached: usize, all: usize, now: Instant) -> bool {
        if reached == 0 {
            return false;
        }
        if reached * 100 >= all * self.enough as usize {
            self.reached = Some(now);
        }
        self.reached.is_some_and(|at| now.duration_since(at) < TOO_FEW_FOR)
    }
}

impl Readiness {
    /// Of a node; `ending` is set when its process stops, and `share` percent of the regions are enough for a gateway.
    pub(crate) fn new(
        (roles, share): (Roles, u32),
        node: &Node,
        ending: Arc<AtomicBool>,
    ) -> Readiness {
        Readiness {
            roles,
            ending,
            status: node.status(),
            views: node.surveyor().views().clone(),
            links: node.links().clone(),
            membership: node.membership().clone(),
            share: Mutex::new(Share { enough: share, reached: None }),
        }
    }

    /// What keeps the process from being ready, as text.
    pub(crate) fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        if self.ending.load(Ordering::Relaxed) || self.status.borrow().draining {
            lacks.push("this process is shutting down".to_owned());
        }
        if self.membership.loss().is_some() {
            lacks.push("the lease of this process is lost".to_owned());
        }
        if self.roles.gateway {
            let (reached, all) = self.reached();
            let mut share = self.share.lock();
            if !share.holds(reached, all, Instant::now()) {
                lacks.push(format!("{reached} of {all} regions can be reached"));
                lacks.extend(self.lacks_of_whole());
            }
        }
        lacks
    }

    /// What keeps the cluster from being whole, as this process sees it: regions without an owner, and owners without a
    /// connection.
    pub(crate) fn lacks_of_whole(&self) -> Vec<String> {
        let Status { regions, located, .. } = *self.status.borrow();
        let mut lacks = Vec::new();
        if regions == 0 || located < regions {
            lacks.push(format!("{located} of {regions} regions have an owner"));
        }
        let without = self.unconnected();
        let view = self.views.read();
        let owners: BTreeSet<_> = view.owners.values().map(|owner| owner.incarnation).collect();
        let owners = owners.iter().filter_map(|owner| view.nodes.get(owner));
        let unreached = owners.filter(|node| without.contains(&node.process));
        lacks.extend(unreached.map(|node| format!("no connection to {}", node.name)));
        lacks
    }

    /// Processes to which a channel is not connected.
    fn unconnected(&self) -> BTreeSet<u64> {
        let mut without = BTreeSet::new();
        self.links.each_channel(|process, _, _, connected, _| {
            if !connected {
                without.insert(process);
            }
        });
        without
    }

    /// How many regions have an owner that is reached, of how many.
    fn reached(&self) -> (usize, usize) {
        let Status { regions, located, .. } = *self.status.borrow();
        let without = self.unconnected();
        let view = self.views.read();
        let is_reached = |owner: &&crate::storage::Owner| {
            let node = view.nodes.get(&owner.incarnation);
            node.is_some_and(|node| !without.contains(&node.process))
        };
        (view.owners.values().filter(is_reached).count().min(located), regions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_stays_ready_with_half_of_the_regions_and_not_without_any() {
        let (mut share, begin) = (Share { enough: 50, reached: None }, Instant::now());
        let after = |s| begin + Duration::from_secs(s);
        assert!(!share.holds(0, 0, after(0)), "nothing is known yet");
        assert!(!share.holds(2, 6, after(1)), "it has never reached enough");
        assert!(share.holds(3, 6, after(2)));
        assert!(share.holds(2, 6, after(11)), "too few for nine seconds");
        assert!(!share.holds(2, 6, after(12)), "too few for ten seconds");
        assert!(share.holds(6, 6, after(13)));
        assert!(!share.holds(0, 6, after(14)), "none at all");
    }
}
