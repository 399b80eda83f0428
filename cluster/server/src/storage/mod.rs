//! What the cluster's nodes agree on and what is kept: leases, the owners of regions, the leader,
//! a few versioned values, and checkpoints.
//!
//! ```text
//! node ── dyn Leases ──────┬─ in process                who is there, who owns what, who leads
//!                          └─ etcd
//!      ── dyn Checkpoints ─┬─ redb, one file            snapshots of regions, players' last places
//!                          └─ PostgreSQL
//!      ── Authority                                     asked before every tick: may I still act?
//! ```
//!
//! Every request may be asked again after [`LeaseError::Unreachable`] or
//! [`CheckpointError::Unreachable`]: nothing is done twice, and where the first one was done after
//! all the answer is the same, or a refusal that shows what is there.

pub mod checkpoints;
pub mod error;
pub mod ids;
pub mod leases;
pub mod password;
pub mod restore;

pub use checkpoints::whole::{KeptLayout, Whole};
pub use checkpoints::{Checkpoints, Kept, PlayerPlace, PlayersSaved, Saved, Snapshot};
pub use error::{CheckpointError, LeaseError};
pub use ids::{Incarnation, Revision};
pub use leases::authority::Authority;
pub use leases::events::{Event, Watch};
pub use leases::names::{NodeInfo, Owner, RegionKey, Value};
pub use leases::view::{Change, Leader, View, What};
pub use leases::{Claim, Grant, Leadership, Leases, Loss, Membership, Put, Refusal, Released};
