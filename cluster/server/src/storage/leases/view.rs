//! What the store holds, and its changes.

use std::collections::BTreeMap;

use purview::scene::Epoch;

use crate::storage::{Incarnation, NodeInfo, Owner, RegionKey, Revision, Value};

/// Who leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// The node's name.
    pub node: String,
    /// Which join of that node.
    pub incarnation: Incarnation,
    /// The revision at which it began to lead.
    pub revision: Revision,
}

/// Everything that the store holds, at one revision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// The revision of its last change.
    pub revision: Revision,
    /// What epochs are counted from: who owns a region since a revision does so under the sum of both.
    pub epochs_above: u64,
    /// The nodes that are there.
    pub nodes: BTreeMap<Incarnation, NodeInfo>,
    /// The owners of the regions that have one.
    pub owners: BTreeMap<RegionKey, Owner>,
    /// The leader, if there is one.
    pub leader: Option<Leader>,
    /// The values, by key.
    pub values: BTreeMap<String, Value>,
}

impl View {
    /// Brings the view from its revision to the change's. What is not newer changes nothing.
    pub fn apply(&mut self, change: &Change) {
        if change.revision <= self.revision {
            return;
        }
        self.revision = change.revision;
        for what in &change.what {
            self.take(what.clone());
        }
    }

    /// Whether it is as new as the grant of this epoch: it shows that owner, or one since, or that there is none any more. One
    /// that is older may show an owner before, or none.
    pub fn knows_of(&self, epoch: Epoch) -> bool {
        epoch.0 <= self.epochs_above.saturating_add(self.revision.0)
    }

    /// The newest epoch that it can know of.
    pub fn newest(&self) -> Epoch {
        Epoch(self.epochs_above.saturating_add(self.revision.0))
    }

    pub(super) fn take(&mut self, what: What) {
        match what {
            What::Joined(incarnation, node) => {
                self.nodes.insert(incarnation, node);
            }
            What::Gone(incarnation) => {
                self.nodes.remove(&incarnation);
            }
            What::Owned(key, owner) => {
                self.owners.insert(key, owner);
            }
            What::Freed(key) => {
                self.owners.remove(&key);
            }
            What::Leads(leader) => self.leader = Some(leader),
            What::LeadsNoMore => self.leader = None,
            What::Set(key, value) => {
                self.values.insert(key, value);
            }
            What::Unset(key) => {
                self.values.remove(&key);
            }
        }
    }
}

/// All that changed at one revision: a lease that ends takes the node and all it owned in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Higher than that of every event before.
    pub revision: Revision,
    /// What changed, each key once.
    pub what: Vec<What>,
}

/// One thing that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A node came.
    Joined(Incarnation, NodeInfo),
    /// A node's lease ended.
    Gone(Incarnation),
    /// A region has this owner now.
    Owned(RegionKey, Owner),
    /// A region has no owner now.
    Freed(RegionKey),
    /// A node leads.
    Leads(Leader),
    /// Nobody leads.
    LeadsNoMore,
    /// A value was set.
    Set(String, Value),
    /// A value was taken away.
    Unset(String),
}
