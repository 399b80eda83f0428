//! Why a process does not become a member of its cluster, or is none any more.

use crate::storage::{CheckpointError, LeaseError, Loss};

/// Why a process does not become a member of its cluster, or is none any more.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error(transparent)]
    Store(#[from] LeaseError),
    /// What keeps checkpoints says no or nothing.
    #[error(transparent)]
    Checkpoints(#[from] CheckpointError),
    #[error("{key} in the store is {found:?}: want {want}")]
    Value { key: &'static str, found: String, want: &'static str },
    #[error("the lease is gone ({0:?}): this process owns no region any more and ends")]
    Lost(Loss),
}
