//! Errors of the stores. Each says whether anything changed and what would be right.

use super::ids::Incarnation;

/// Why a request to the lease store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// No answer. The request may or may not have been applied; repeating it is safe.
    #[error("{store} is unreachable (request: {asked}): {cause}")]
    Unreachable {
        /// The store, as configured.
        store: String,
        asked: &'static str,
        cause: String,
    },
    /// The store refused the request for a permanent reason. Nothing changed.
    #[error("{store} refuses to {asked}: {cause}")]
    Refused {
        /// The store, as configured.
        store: String,
        asked: &'static str,
        cause: String,
    },
    /// A gateway has come before the first node. It does not begin a cluster: it does not know where checkpoints end.
    #[error("no node has begun the cluster in this store yet")]
    NotBegun,
    /// Another living process has the name of the one that wants to join. Nothing changed.
    #[error(
        "a process named {name:?} is a member already, at {address}: give each process a name of its own \
         (cluster.node)"
    )]
    NameTaken {
        name: String,
        /// Where peers reach the member.
        address: String,
    },
    /// The lease of the request has ended. Nothing changed.
    #[error("the lease of node {node:?} (incarnation {incarnation}) is lost: join again")]
    LostLease { node: String, incarnation: Incarnation },
    /// The store holds data that this release cannot read. Nothing changed.
    #[error("bad data under {key:?}: {rule}")]
    BadData {
        key: String,
        /// What is wrong with the data, and what would be right.
        rule: String,
    },
    /// The store lost changes that it had confirmed: it was wiped, or restored from an older copy.
    /// Epochs would repeat, so all nodes must stop and the cluster must start anew.
    #[error(
        "the store went back from revision {seen} to {found}: stop all nodes and restart the whole cluster"
    )]
    WentBack {
        /// The highest revision seen so far.
        seen: u64,
        /// The current revision of the store.
        found: u64,
    },
    /// The request is illegal. Nothing changed.
    #[error("{what} ({found}) {rule}")]
    Illegal { what: String, found: String, rule: String },
}

/// Why checkpoints could not be saved or loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// No answer. The save may or may not have been applied; repeating it is safe.
    #[error("{store} is unreachable (request: {asked}): {cause}")]
    Unreachable {
        /// The store, as configured, without passwords.
        store: String,
        asked: &'static str,
        cause: String,
    },
    /// The store refused the request for a permanent reason. Nothing changed.
    #[error("{store} refuses to {asked}: {cause}")]
    Refused {
        /// The store, as configured, without passwords.
        store: String,
        asked: &'static str,
        cause: String,
    },
    #[error("bad data under {key:?}: {rule}")]
    BadData {
        key: String,
        /// What is wrong with the data, and what would be right.
        rule: String,
    },
    /// The request is illegal. Nothing changed.
    #[error("{what} ({found}) {rule}")]
    Illegal { what: String, found: String, rule: String },
}
