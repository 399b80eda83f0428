//! Why a process does not become a member of its cluster, or is none any more.

use crate::storage::{CheckpointError, LeaseError, Loss};

/// Why a process does not become a member of its cluster, or is none any more.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The store says no or nothing.
    #[error(transparent)]
    Store(#[from] LeaseError),
    /// What keeps checkpoints says no or nothing.
    #[error(transparent)]
    Checkpoints(#[from] CheckpointError),
    /// A value of the store that cannot be what a cluster keeps there.
    #[error("{key} in the store is {found:?}: want {want}")]
    Value {
        /// Which.
        key: &'static str,
        /// What stands there.
        found: String,
        /// What should.
        want: &'static str,
    },
    /// The lease is gone: others may own by now what this process owned.
    #[error("the lease is gone ({0:?}): this process owns no region any more and ends")]
    Lost(Loss),
}
