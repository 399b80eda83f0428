//! The state of the lease store as a watch reports it: first everything, then every change in
//! order.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;
use purview::scene::Epoch;

use super::keys::Reader;
use super::store::{Follower, Told};
use crate::storage::{Incarnation, LeaseError, NodeInfo, Owner, RegionKey, Revision, Value};

/// The leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// The node's name.
    pub node: String,
    /// The incarnation of that node.
    pub incarnation: Incarnation,
    /// The revision at which its leadership began.
    pub revision: Revision,
}

/// The whole state of the store at one revision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// The revision of the last change.
    pub revision: Revision,
    /// The number that epochs are counted from: epoch = this + the revision of the grant.
    pub epochs_above: u64,
    /// The current members.
    pub nodes: BTreeMap<Incarnation, NodeInfo>,
    /// The owners of the regions that have one.
    pub owners: BTreeMap<RegionKey, Owner>,
    /// The leader, if there is one.
    pub leader: Option<Leader>,
    /// The values, by key.
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
    /// The changes, each key once.
    pub what: Vec<What>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A node joined.
    Joined(Incarnation, NodeInfo),
    /// A node's lease ended.
    Gone(Incarnation),
    /// A region has a new owner.
    Owned(RegionKey, Owner),
    /// A region has no owner.
    Freed(RegionKey),
    /// A node became the leader.
    Leads(Leader),
    /// There is no leader.
    LeadsNoMore,
    /// A value was set.
    Set(String, Value),
    /// A value was removed.
    Unset(String),
}

/// An event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The whole state, at a higher revision than any event before: first, and again when the
    /// changes in between were compacted.
    Snapshot(View),
    /// One step from the previous state.
    Change(Change),
}

/// A stream that never goes back and never ends by itself. It outlives outages of the store: an
/// error is reported once when an outage begins (or once per unreadable key), and missed changes
/// follow when the store is back.
#[derive(Debug)]
pub struct Watch {
    told: Follower,
    reader: Reader,
    /// Decoded events that have not been taken yet.
    ready: VecDeque<Result<Event, LeaseError>>,
}

impl Watch {
    pub(super) fn new(told: Follower, epochs_above: u64) -> Watch {
        Watch { told, reader: Reader::new(epochs_above), ready: VecDeque::new() }
    }

    /// The next event. `None`: the engine was dropped.
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
