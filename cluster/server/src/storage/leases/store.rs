//! What a lease store must be able to do: keys with revisions, compare-and-swap of one key, leases
//! that take their keys with them, and a record of changes. Whoever can do this is [`Leases`].
//!
//! [`Leases`]: crate::storage::Leases

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};

use crate::storage::{Authority, LeaseError};

/// A key as the store has it. Keys are told without what the store puts in front of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    pub data: Bytes,
    /// The revision at which it came to be.
    pub created: u64,
    /// The revision of its last change.
    pub changed: u64,
    /// The lease that it ends with; 0: none.
    pub lease: i64,
}

/// What a swap wants the key to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    Absent,
    /// Last changed at this revision, which is not 0.
    At(u64),
}

/// What a swap makes of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// With lease 0: it stays when its writer is gone.
    Put {
        data: Bytes,
        lease: i64,
    },
    Delete,
}

/// A change of one key that is only made if the key is as it was thought to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    /// What for, for errors.
    pub asked: &'static str,
    /// The key.
    pub key: String,
    /// What must be true of it.
    pub guard: Guard,
    /// What becomes of it then.
    pub write: Write,
}

/// What came of a swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swapped {
    /// Made, at this revision.
    Done(u64),
    /// Not made now.
    Refused {
        /// What the key has.
        found: Option<Entry>,
        /// It was asked more than once, and an earlier time may have made it.
        again: bool,
    },
    /// The lease does not exist.
    NoLease,
}

/// All keys below a prefix, at one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The revision.
    pub revision: u64,
    /// The keys and what they have, in the order of the keys.
    pub entries: Vec<Entry>,
}

/// All that one revision changed, by key; gone keys have no entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub revision: u64,
    pub keys: Vec<(String, Option<Entry>)>,
}

/// What a follower is told; revisions only grow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Everything: first, and when the steps in between are no longer known.
    All(Listing),
    /// What changed next.
    Step(Step),
}

impl Told {
    /// Which it brings a follower to.
    pub fn revision(&self) -> u64 {
        match self {
            Told::All(all) => all.revision,
            Told::Step(step) => step.revision,
        }
    }
}

/// The stream of a follower.
pub type Follower = mpsc::Receiver<Result<Told, LeaseError>>;

/// How many events wait for a follower that is slow; then the store waits.
pub const FOLLOWER_QUEUE: usize = 64;

/// Why a membership is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The node left.
    Left,
    /// The store says that there is no such lease: its time ran out, or somebody ended it.
    Gone,
    /// The others say that this is no member any more, whatever the store says: it has granted to others what was held here.
    Disowned,
}

/// What a store has for a lease that it keeps alive: dropping it ends the keeping.
pub trait Lease: Send + Sync {
    /// The store's own number of it.
    fn id(&self) -> i64;

    /// Ends the lease, and the keeping.
    fn leave(&self) -> BoxFuture<'_, Result<(), LeaseError>>;
}

/// A lease that the store keeps alive until it is dropped.
pub struct Held {
    /// The lease.
    pub lease: Arc<dyn Lease>,
    /// What the store granted.
    pub ttl: Duration,
    /// Until when its holder may act.
    pub authority: Authority,
    /// Why it is gone, once it is.
    pub lost: watch::Receiver<Option<Loss>>,
}

/// See the module.
pub trait Store: Send + Sync + 'static {
    /// Epochs are revisions on top of this.
    fn epochs_above(&self) -> u64;

    /// Takes a lease of whole seconds and keeps it alive.
    fn lease(&self, ttl: Duration) -> impl Future<Output = Result<Held, LeaseError>> + Send;

    /// Ends a lease; false: there is none.
    fn revoke(&self, lease: i64) -> impl Future<Output = Result<bool, LeaseError>> + Send;

    /// See [`Swap`].
    fn swap(&self, swap: Swap) -> impl Future<Output = Result<Swapped, LeaseError>> + Send;

    /// All keys that begin with `prefix`.
    fn list(&self, prefix: &str) -> impl Future<Output = Result<Listing, LeaseError>> + Send;

    /// Everything below `prefix`, then every change, through outages.
    fn follow(&self, prefix: &str) -> Follower;
}
