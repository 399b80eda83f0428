//! What the store holds, and its changes.

use std::collections::BTreeMap;

use purview::scene::Epoch;

use crate::storage::{Incarnation, NodeInfo, Owner, RegionKey, Revision, Value};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    pub node: String,
    pub incarnation: Incarnation,
    /// The revision at which its leadership began.
    pub revision: Revision,
}

/// The whole state of the store at one revision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    pub revision: Revision,
    /// The number that epochs are counted from: epoch = this + the revision of the grant.
    pub epochs_above: u64,
    pub nodes: BTreeMap<Incarnation, NodeInfo>,
    pub owners: BTreeMap<RegionKey, Owner>,
    pub leader: Option<Leader>,
    pub values: BTreeMap<String, Value>,
}

impl View {
    /// Applies a change. A change that is not newer than the view has no effect.
    pub fn apply(&mut self, change: &Change) {
        if change.revision <= self.revision {
            return;
        }
        self.revision = change.revision;
        for what in &change.what {
            self.take(what.clone());
        }
    }

    /// Whether the view is new enough to include the grant of this epoch: it shows that owner, a
    /// later one, or none. An older view may show an earlier owner, or none.
    pub fn knows_of(&self, epoch: Epoch) -> bool {
        epoch.0 <= self.epochs_above.saturating_add(self.revision.0)
    }

    /// The newest epoch that the view can include.
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

/// All changes of one revision. The end of a lease removes the node and frees all its regions in
/// one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Higher than the revision of every event before.
    pub revision: Revision,
    pub what: Vec<What>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    Joined(Incarnation, NodeInfo),
    Gone(Incarnation),
    Owned(RegionKey, Owner),
    Freed(RegionKey),
    Leads(Leader),
    LeadsNoMore,
    Set(String, Value),
    Unset(String),
}
