//! Whether a process of a cluster is ready: it does not end, and, where it holds sessions, reaches every region.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use super::{Node, Roles, Status};
use crate::peer::Links;
use crate::storage::{Membership, View};

/// What readiness depends on, beside the regions of this process.
pub(crate) struct Readiness {
    roles: Roles,
    /// The process stops.
    ending: Arc<AtomicBool>,
    status: watch::Receiver<Status>,
    views: Arc<RwLock<View>>,
    links: Links,
    membership: Membership,
}

impl Readiness {
    /// Of a node; `ending` is set when its process stops.
    pub(crate) fn new(roles: Roles, node: &Node, ending: Arc<AtomicBool>) -> Readiness {
        Readiness {
            roles,
            ending,
            status: node.status(),
            views: node.surveyor().views().clone(),
            links: node.links().clone(),
            membership: node.membership().clone(),
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
            lacks.extend(self.unreached());
        }
        lacks
    }

    /// Regions without an owner, and owners without a connection.
    fn unreached(&self) -> Vec<String> {
        let Status { regions, located, .. } = *self.status.borrow();
        let mut lacks = Vec::new();
        if regions == 0 || located < regions {
            lacks.push(format!("{located} of {regions} regions have an owner"));
        }
        let mut without = BTreeSet::new();
        self.links.each_channel(|process, _, _, connected, _| {
            if !connected {
                without.insert(process);
            }
        });
        let view = self.views.read().unwrap_or_else(PoisonError::into_inner);
        let owners: BTreeSet<_> = view.owners.values().map(|owner| owner.incarnation).collect();
        let owners = owners.iter().filter_map(|owner| view.nodes.get(owner));
        let unreached = owners.filter(|node| without.contains(&node.process));
        lacks.extend(unreached.map(|node| format!("no connection to {}", node.name)));
        lacks
    }
}
