//! What can go wrong with the stores: each says whether anything changed and what would be right.

use super::ids::Incarnation;

/// Why the lease store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// No answer. Whether it was done is not known; asking the same again is safe.
    #[error("{store} is out of reach, asked to {asked}: {cause}")]
    Unreachable {
        /// The store, as configured.
        store: String,
        /// What it was asked.
        asked: &'static str,
        /// What went wrong at the bottom.
        cause: String,
    },
    /// The store said no, for a reason that asking again does not change. Nothing changed.
    #[error("{store} refuses to {asked}: {cause}")]
    Refused {
        /// The store, as configured.
        store: String,
        /// What it was asked.
        asked: &'static str,
        /// The store's own words.
        cause: String,
    },
    /// The lease under which it was asked is no more. Nothing changed.
    #[error("the lease of node {node:?} (incarnation {incarnation}) is lost: join again")]
    LostLease {
        /// The node's name.
        node: String,
        /// Which join of it.
        incarnation: Incarnation,
    },
    /// The store holds what nobody here can read. Nothing changed.
    #[error("bad data under {key:?}: {rule}")]
    BadData {
        /// The key.
        key: String,
        /// What is wrong with it, and what would be right.
        rule: String,
    },
    /// The store forgot what it had promised: it was wiped, or restored from an older copy. Epochs
    /// would repeat: stop all nodes and start the cluster anew.
    #[error("the store went back from revision {seen} to {found}: restart the whole cluster")]
    WentBack {
        /// The highest revision that was seen.
        seen: u64,
        /// Where the store stands now.
        found: u64,
    },
    /// What was asked can never be done. Nothing changed.
    #[error("{what} ({found}) {rule}")]
    Illegal {
        /// What is wrong.
        what: String,
        /// Its value.
        found: String,
        /// What would be right.
        rule: String,
    },
}

/// Why checkpoints were not saved or loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// No answer. Whether it was saved is not known; saving the same again is safe.
    #[error("{store} is out of reach, asked to {asked}: {cause}")]
    Unreachable {
        /// The store, as configured, without passwords.
        store: String,
        /// What it was asked.
        asked: &'static str,
        /// What went wrong at the bottom.
        cause: String,
    },
    /// The store said no, for a reason that asking again does not change. Nothing changed.
    #[error("{store} refuses to {asked}: {cause}")]
    Refused {
        /// The store, as configured, without passwords.
        store: String,
        /// What it was asked.
        asked: &'static str,
        /// The store's own words.
        cause: String,
    },
    /// The store holds what nobody here can read.
    #[error("bad data under {key:?}: {rule}")]
    BadData {
        /// The key.
        key: String,
        /// What is wrong with it, and what would be right.
        rule: String,
    },
    /// What was asked can never be done. Nothing changed.
    #[error("{what} ({found}) {rule}")]
    Illegal {
        /// What is wrong.
        what: String,
        /// Its value.
        found: String,
        /// What would be right.
        rule: String,
    },
}
