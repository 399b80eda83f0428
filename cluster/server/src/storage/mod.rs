//! The stores: leases (membership, owners of regions, the leader, a few versioned values) and
//! checkpoints. Nodes and processes use the traits; each has an embedded and a networked engine.
//!
//! ```text
//! node ── dyn Leases ──────┬─ in process                members, owners of regions, the leader
//!                          └─ etcd
//!      ── dyn Checkpoints ─┬─ redb, one file            snapshots of regions, last positions
//!                          └─ PostgreSQL
//!      ── Authority                                     asked before every tick: may this node
//!      act?
//! ```
//!
//! Every request may be repeated after [`LeaseError::Unreachable`] or
//! [`CheckpointError::Unreachable`]: nothing is
//! applied twice. If the first try was applied after all, the answer is the same, or a refusal that
//! shows the current state.

pub mod checkpoints;
pub mod error;
pub mod ids;
pub mod leases;
pub mod password;

pub use checkpoints::whole::{KeptLayout, Whole};
pub use checkpoints::{
    Checkpoints, ClaimOver, PlayerClaim, PlayerClaimed, PlayersSaved, Saved, SavedPlayer,
    SavedSnapshots, Snapshot,
};
pub use error::{CheckpointError, LeaseError};
pub use ids::{ClusterId, Incarnation, Revision};
pub use leases::authority::Authority;
pub use leases::events::{Event, Watch};
pub use leases::names::{About, NodeInfo, Owner, RegionKey, Value};
pub use leases::view::{Change, Leader, View, What};
pub use leases::{Claim, Grant, Leases, Loss, Membership, Put, Released};
