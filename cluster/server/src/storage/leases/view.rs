//! What the store holds, as one watches it: everything first, then every change in order.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;
use purview::scene::Epoch;

use super::keys::Reader;
use super::store::{Follower, Told};
use crate::storage::{Incarnation, LeaseError, NodeInfo, Owner, RegionKey, Revision, Value};

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

/// What a watch tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Everything, at a revision higher than that of any event before: first, and again when the
    /// store no longer knows the changes in between.
    Snapshot(View),
    /// One step from the state before.
    Change(Change),
}

/// A stream that never goes back and never ends by itself. It outlives outages of the store: an
/// error is told once when one begins (or for each key that nobody can read), and the changes that
/// were missed follow when the store is back.
#[derive(Debug)]
pub struct Watch {
    told: Follower,
    reader: Reader,
    /// Events of what was told last that have not been taken.
    ready: VecDeque<Result<Event, LeaseError>>,
}

impl Watch {
    pub(super) fn new(told: Follower, epochs_above: u64) -> Watch {
        Watch { told, reader: Reader::new(epochs_above), ready: VecDeque::new() }
    }

    /// The next event. None: the engine was dropped.
    pub async fn next(&mut self) -> Option<Result<Event, LeaseError>> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, LeaseError>>> {
        while self.ready.is_empty() {
            match ready!(self.told.poll_recv(cx)) {
                Some(told) => self.read(told),
                None => return Poll::Ready(None),
            }
        }
        Poll::Ready(self.ready.pop_front())
    }

    fn read(&mut self, told: Result<Told, LeaseError>) {
        let (event, errors) = match told {
            Ok(Told::All(listing)) => {
                let (view, errors) = self.reader.view(listing);
                (Ok(Event::Snapshot(view)), errors)
            }
            Ok(Told::Step(step)) => {
                let (change, errors) = self.reader.change(step);
                (Ok(Event::Change(change)), errors)
            }
            Err(e) => (Err(e), Vec::new()),
        };
        self.ready.extend(errors.into_iter().map(Err));
        self.ready.push_back(event);
    }
}

impl Stream for Watch {
    type Item = Result<Event, LeaseError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_event(cx)
    }
}
