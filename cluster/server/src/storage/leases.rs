//! Membership, ownership of regions and leadership: granted by compare-and-swap, held by leases.
//! Nodes use the trait [`Leases`]. Two nodes must never own the same region at the same time.
//!
//! ```text
//! nothing ── join ──▶ member ── leave, evict, or the time to live runs out ──▶ lost: all it owned is free
//!
//! free ── claim ──▶ owned (epoch e) ── take_over(e) ──▶ owned by another (epoch > e)
//!   ▲                     │
//!   └── release(e), or the owner's lease ends
//! ```

pub mod authority;
pub mod embedded;
pub mod etcd;
pub(crate) mod events;
pub(crate) mod keys;
pub mod names;
pub(crate) mod over_store;
pub(crate) mod store;
pub mod view;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use purview::scene::Epoch;
use tokio::sync::watch;

use super::{
    Authority, Incarnation, LeaseError, NodeInfo, Owner, RegionKey, Revision, Value, Watch,
};
pub use store::Loss;

use store::Lease;

pub type Result<T, E = LeaseError> = std::result::Result<T, E>;

/// Shortest time to live of a lease.
pub const TTL_MIN: Duration = Duration::from_secs(1);

/// Longest time to live of a lease.
pub const TTL_MAX: Duration = Duration::from_secs(600);

/// The store on which the nodes agree. Every method may be called from any task.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes a lease for a node, publishes the node under it, and keeps it alive in the background
    /// until the [`Membership`] and all its clones are dropped. `ttl` is [`TTL_MIN`] to
    /// [`TTL_MAX`], rounded up to whole seconds; the store may grant more.
    async fn join(&self, node: NodeInfo, ttl: Duration) -> Result<Membership>;

    /// Claims a region without an owner. A node that owns it already gets its grant again.
    /// A region with another owner is not an error.
    async fn claim(&self, by: &Membership, key: &RegionKey) -> Result<Claim>;

    /// Takes a region over from the owner with exactly the epoch `expected`. The owner may be the
    /// asking node itself, which then gets a higher epoch. A node that already owns it with a
    /// higher epoch, by a take-over whose answer was lost, gets that grant again.
    /// Another epoch or no owner is not an error.
    async fn take_over(&self, by: &Membership, key: &RegionKey, expected: Epoch) -> Result<Claim>;

    /// Releases a region that is owned with exactly `epoch`.
    /// Another epoch or no owner is not an error.
    async fn release(&self, by: &Membership, key: &RegionKey, epoch: Epoch) -> Result<Released>;

    /// Ends the lease of a node that is known to be dead before its time to live ran out. True:
    /// this call ended it; false: it had ended already.
    async fn evict(&self, incarnation: Incarnation) -> Result<bool>;

    /// Waits until there is no leader, then becomes the leader, which plans for the whole cluster until
    /// its membership ends. Waits through outages of the store. Fails with [`LeaseError::LostLease`], or
    /// a permanent refusal of the store. Returns the revision at which the leadership began; it grows
    /// from leader to leader.
    async fn campaign(&self, by: &Membership) -> Result<Revision>;

    /// Reads a value, for example the plan, a scene's layout, or the cluster's clock. Keys have 1
    /// to 255 bytes, values at most 512 KiB.
    async fn get(&self, key: &str) -> Result<Option<Value>>;

    /// Sets a value if its revision is still `expected`; `None`: if it does not exist.
    /// Another revision is not an error.
    async fn put_if(&self, key: &str, expected: Option<Revision>, data: Bytes) -> Result<Put>;

    /// Reads a value, and creates it as `data` if it does not exist; the first caller decides.
    async fn get_or_create(&self, key: &str, data: Bytes) -> Result<Value>;

    /// Streams the whole state, then every change in order. Call it on a tokio runtime.
    fn watch(&self) -> Watch;
}

/// The answer to a claim or a take-over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    Granted(Grant),
    /// Nothing changed. The owner; `None`: the region is free (claim it).
    Refused(Option<Owner>),
}

/// The right to a region, valid while the owner's [`Authority`] holds and no other process takes it
/// over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Higher than every earlier one of any region.
    pub epoch: Epoch,
    /// See [`super::Owner::lineage`]; equal to `epoch`, unless the region was taken over.
    pub lineage: Epoch,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    Free,
    /// The asking node does not own the region with that epoch, or no longer: its owner, if it has one.
    /// Nothing changed.
    Not(Option<Owner>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// The new revision.
    Done(Revision),
    /// The value has another revision, or does not exist. Nothing changed.
    Refused(Option<Value>),
}

/// A node's lease. Clones share it; when the last is dropped it is renewed no more and runs out.
#[derive(Clone)]
pub struct Membership {
    pub(super) incarnation: Incarnation,
    pub(super) node: Arc<NodeInfo>,
    pub(super) ttl: Duration,
    pub(super) authority: Authority,
    pub(super) lost: watch::Receiver<Option<Loss>>,
    pub(super) disowned: watch::Sender<bool>,
    pub(super) lease: Arc<dyn Lease>,
}

impl Membership {
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    pub fn node(&self) -> &NodeInfo {
        &self.node
    }

    /// The time to live that the store granted.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Waits until the lease has ended for good. An outage of the store does not end it: meanwhile
    /// only the [`Authority`] ends, and it returns if the lease outlived the outage.
    pub async fn lost(&self) -> Loss {
        let (mut lost, mut disowned) = (self.lost.clone(), self.disowned.subscribe());
        tokio::select! {
            biased;
            loss = lost.wait_for(Option::is_some) => loss.ok().and_then(|loss| *loss).unwrap_or(Loss::Gone),
            // The sender is in `self`, so this never fails.
            _ = disowned.wait_for(|disowned| *disowned) => Loss::Disowned,
        }
    }

    /// Why the lease has ended, if it has.
    pub fn loss(&self) -> Option<Loss> {
        let loss = *self.lost.borrow();
        loss.or(self.disowned.borrow().then_some(Loss::Disowned))
    }

    /// Ends the membership because other nodes report that this node is no longer a member,
    /// whatever the store says.
    pub fn disown(&self) {
        self.authority.end();
        self.disowned.send_replace(true);
    }

    /// Ends the lease: all regions of the node are free at once. A second call does nothing.
    /// [`LeaseError::Unreachable`] when the authority has ended; the lease then runs out by itself.
    pub async fn leave(&self) -> Result<()> {
        self.authority.end();
        self.lease.leave().await
    }

    pub(super) fn lost_lease(&self) -> LeaseError {
        LeaseError::LostLease { node: self.node.name.clone(), incarnation: self.incarnation }
    }
}

impl std::fmt::Debug for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Membership")
            .field("incarnation", &self.incarnation)
            .field("node", &self.node)
            .field("ttl", &self.ttl)
            .field("authority", &self.authority)
            .field("loss", &self.loss())
            .finish_non_exhaustive()
    }
}
