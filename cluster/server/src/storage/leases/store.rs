//! What a lease store provides: keys with revisions, compare-and-swap of one key, leases that
//! remove their keys when they end, and a stream of changes. Every [`Store`] implements [`Leases`]
//! (`over_store.rs`).
//!
//! [`Leases`]: crate::storage::Leases

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use super::Result;
use crate::storage::Authority;

/// A key in the store, without the prefix that the store adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreEntry {
    pub key: String,
    pub data: Bytes,
    pub created: u64,
    pub changed: u64,
    /// The lease with which it ends; 0: none.
    pub lease: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    Absent,
    /// Last changed at this revision, which is not 0.
    At(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// With lease 0 the key stays when its writer is gone.
    Put {
        data: Bytes,
        lease: i64,
    },
    Delete,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    pub asked: &'static str,
    pub key: String,
    pub guard: Guard,
    pub write: Write,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swapped {
    /// Applied, at this revision.
    Done(u64),
    /// Not applied by the last try.
    Refused {
        found: Option<StoreEntry>,
        /// The request was sent more than once, and an earlier try may have been applied.
        again: bool,
    },
    NoLease,
}

/// All keys below a prefix, at one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    pub revision: u64,
    /// The entries, ordered by key.
    pub entries: Vec<StoreEntry>,
}

/// All changes of one revision, by key; a removed key has no entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub revision: u64,
    pub keys: Vec<(String, Option<StoreEntry>)>,
}

/// What a follower receives; revisions only grow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreEvent {
    /// The whole state: first, and when the steps in between were compacted.
    All(Listing),
    Step(Step),
}

impl StoreEvent {
    /// The follower's revision after this.
    pub fn revision(&self) -> u64 {
        match self {
            StoreEvent::All(all) => all.revision,
            StoreEvent::Step(step) => step.revision,
        }
    }
}

/// The receiving end of a follower.
pub type Follower = mpsc::Receiver<Result<StoreEvent>>;

/// How many events wait for a slow follower; then the store waits.
pub const FOLLOWER_QUEUE: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Left,
    /// The store says that there is no such lease: its time ran out, or it was ended.
    Gone,
    /// The others say that this is no member any more, whatever the store says: it has granted to others what was held here.
    Disowned,
}

/// What a store has for a lease that it keeps alive: dropping it ends the keeping.
#[async_trait]
pub trait Lease: Send + Sync {
    fn id(&self) -> i64;

    async fn leave(&self) -> Result<()>;
}

/// A lease that the store keeps alive until this is dropped.
pub struct HeldLease {
    pub lease: Arc<dyn Lease>,
    /// The time to live that the store granted.
    pub ttl: Duration,
    /// Until when its holder may act.
    pub authority: Authority,
    /// Why the lease ended, once it has.
    pub lost: watch::Receiver<Option<Loss>>,
}

/// A lease store; see the module.
pub trait Store: Send + Sync + 'static {
    /// Epochs are revisions plus this number.
    fn epochs_above(&self) -> u64;

    /// Takes a lease of whole seconds and keeps it alive.
    fn lease(&self, ttl: Duration) -> impl Future<Output = Result<HeldLease>> + Send;

    /// Ends a lease; false: there is none.
    fn revoke(&self, lease: i64) -> impl Future<Output = Result<bool>> + Send;

    /// See [`Swap`].
    fn swap(&self, swap: Swap) -> impl Future<Output = Result<Swapped>> + Send;

    /// All keys that begin with `prefix`.
    fn list(&self, prefix: &str) -> impl Future<Output = Result<Listing>> + Send;

    /// The whole state below `prefix`, then every change, through outages.
    fn follow(&self, prefix: &str) -> Follower;
}
