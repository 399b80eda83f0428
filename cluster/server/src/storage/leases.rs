//! Who is there, who owns which region, who leads: granted by compare-and-swap, held by leases.
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

use bytes::Bytes;
use futures::future::BoxFuture;
use purview::scene::Epoch;
use tokio::sync::watch;

use super::{
    Authority, Incarnation, LeaseError, NodeInfo, Owner, RegionKey, Revision, Value, Watch,
};
pub use store::Loss;

use store::Lease;

/// Shortest time to live of a lease.
pub const TTL_MIN: Duration = Duration::from_secs(1);

/// Longest time to live of a lease.
pub const TTL_MAX: Duration = Duration::from_secs(600);

/// The store in which the nodes agree. All of it may be asked from any task; every answer names
/// what was asked, so that a late one is recognised.
pub trait Leases: Send + Sync {
    /// Takes a lease for a node, makes the node known under it and keeps it alive in the background
    /// until the [`Membership`] and all its clones are dropped. `ttl` is [`TTL_MIN`] to [`TTL_MAX`],
    /// rounded up to whole seconds; the store may grant more.
    ///
    /// # Errors
    /// [`LeaseError`].
    fn join(&self, node: NodeInfo, ttl: Duration) -> BoxFuture<'_, Result<Membership, LeaseError>>;

    /// Asks for a region that nobody owns. Who owns it already gets its grant again.
    ///
    /// # Errors
    /// [`LeaseError`]; that another owns it is none.
    fn claim<'a>(
        &'a self,
        by: &'a Membership,
        key: &'a RegionKey,
    ) -> BoxFuture<'a, Result<Claim, LeaseError>>;

    /// A planned move: takes the region from whoever owns it under exactly the epoch `expected`
    /// (which may be the asker itself, who then gets a higher epoch). Who owns it under a higher
    /// one already, by a take-over whose answer was lost, gets that grant again.
    ///
    /// # Errors
    /// [`LeaseError`]; that it has another epoch or no owner is none.
    fn take_over<'a>(
        &'a self,
        by: &'a Membership,
        key: &'a RegionKey,
        expected: Epoch,
    ) -> BoxFuture<'a, Result<Claim, LeaseError>>;

    /// Gives a region up that is owned under exactly `epoch`.
    ///
    /// # Errors
    /// [`LeaseError`]; that it has another epoch or no owner is none.
    fn release<'a>(
        &'a self,
        by: &'a Membership,
        key: &'a RegionKey,
        epoch: Epoch,
    ) -> BoxFuture<'a, Result<Released, LeaseError>>;

    /// Ends the lease of a node whose death was seen before its time to live ran out. True: it is
    /// gone by this; false: it was gone.
    ///
    /// # Errors
    /// [`LeaseError`].
    fn evict(&self, incarnation: Incarnation) -> BoxFuture<'_, Result<bool, LeaseError>>;

    /// Waits until nobody leads and leads then. Waits through outages of the store.
    ///
    /// # Errors
    /// [`LeaseError::LostLease`], or what the store can never do.
    fn campaign<'a>(&'a self, by: &'a Membership) -> BoxFuture<'a, Result<Leadership, LeaseError>>;

    /// Leads no more; the next in waiting takes it. True: by this; false: it had ended.
    ///
    /// # Errors
    /// [`LeaseError`].
    fn resign<'a>(&'a self, leadership: &'a Leadership) -> BoxFuture<'a, Result<bool, LeaseError>>;

    /// A value, for example the plan, a scene's layout, or the cluster's clock. Keys have 1 to 255
    /// bytes, values at most 512 KiB.
    ///
    /// # Errors
    /// [`LeaseError`].
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Value>, LeaseError>>;

    /// Sets a value if its revision is still `expected`; `None`: if it is absent.
    ///
    /// # Errors
    /// [`LeaseError`]; that it has another revision is none.
    fn put_if<'a>(
        &'a self,
        key: &'a str,
        expected: Option<Revision>,
        data: Bytes,
    ) -> BoxFuture<'a, Result<Put, LeaseError>>;

    /// A value, made to be `data` if it is absent: whoever asks first decides.
    ///
    /// # Errors
    /// [`LeaseError`].
    fn get_or_create<'a>(
        &'a self,
        key: &'a str,
        data: Bytes,
    ) -> BoxFuture<'a, Result<Value, LeaseError>>;

    /// Everything as it is, then every change in order. Must be called on a tokio runtime.
    fn watch(&self) -> Watch;
}

/// The answer to a claim or a take-over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The asker owns it.
    Granted(Grant),
    /// Nothing changed.
    Refused(Refusal),
}

/// The right to a region, valid while the owner's [`Authority`] holds and nobody takes it over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The region that was asked for.
    pub key: RegionKey,
    /// Who asked.
    pub incarnation: Incarnation,
    /// The epoch that a take-over named.
    pub expected: Option<Epoch>,
    /// The epoch of this grant: higher than every earlier one of any region.
    pub epoch: Epoch,
    /// See [`super::Owner::lineage`]: this grant's epoch, unless the region was taken over.
    pub lineage: Epoch,
}

/// A region that was not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The region that was asked for.
    pub key: RegionKey,
    /// Who asked.
    pub incarnation: Incarnation,
    /// The epoch that a take-over named.
    pub expected: Option<Epoch>,
    /// Who owns it, and under which epoch; none: nobody does (claim it).
    pub owner: Option<Owner>,
}

/// The answer to a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// The region is free.
    Free {
        /// The region that was given up.
        key: RegionKey,
        /// Under which epoch.
        epoch: Epoch,
    },
    /// The asker does not own it under that epoch (any more). Nothing changed.
    Not(Refusal),
}

/// The answer to setting a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// It is set.
    Done {
        /// The key that was asked for.
        key: String,
        /// The revision that it has now.
        revision: Revision,
    },
    /// It is another already. Nothing changed.
    Refused {
        /// The key that was asked for.
        key: String,
        /// The revision that was expected.
        expected: Option<Revision>,
        /// What it is; none: absent.
        found: Option<Value>,
    },
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
    /// Which join this is.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// What the node said of itself.
    pub fn node(&self) -> &NodeInfo {
        &self.node
    }

    /// The time to live that the store granted.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// What to ask before acting.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Waits until the lease is gone for good. An outage of the store is no loss: while it lasts
    /// only the [`Authority`] ends, and comes back if the lease outlived it.
    pub async fn lost(&self) -> Loss {
        let (mut lost, mut disowned) = (self.lost.clone(), self.disowned.subscribe());
        tokio::select! {
            biased;
            loss = lost.wait_for(Option::is_some) => loss.ok().and_then(|loss| *loss).unwrap_or(Loss::Gone),
            // Its sender is here.
            _ = disowned.wait_for(|disowned| *disowned) => Loss::Disowned,
        }
    }

    /// Whether and why the lease is gone for good.
    pub fn loss(&self) -> Option<Loss> {
        let loss = *self.lost.borrow();
        loss.or(self.disowned.borrow().then_some(Loss::Disowned))
    }

    /// The others say that this is no member any more: nothing is held here from now on, whatever the store says.
    pub fn disown(&self) {
        self.authority.end();
        self.disowned.send_replace(true);
    }

    /// Ends the lease: everything that the node owned is free at once. Leaving twice is as good.
    ///
    /// # Errors
    /// [`LeaseError::Unreachable`]: the authority has ended, and the lease runs out by itself.
    pub async fn leave(&self) -> Result<(), LeaseError> {
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

/// The right to plan for all. It ends with the membership.
#[derive(Debug, Clone)]
pub struct Leadership {
    pub(super) membership: Membership,
    pub(super) revision: Revision,
}

impl Leadership {
    /// Under which membership, whose [`Authority`] must hold.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// The revision at which it began; grows from leader to leader.
    pub fn revision(&self) -> Revision {
        self.revision
    }
}
