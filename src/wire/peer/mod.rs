//! Messages between the processes of a cluster, and a region's snapshot as bytes.
//!
//! The links between nodes and the checkpoint stores use this module. A newer release may add fields at
//! the end of a message: this release passes over them.

mod messages;
pub mod query;
pub mod roles;
mod snapshot;
mod workers;

pub use messages::{
    ActorState, KnownMove, MAX_PEER_MEMORY, MAX_PEER_MSG, Mark, MoveMsg, PEER_VERSION,
    PEER_VERSION_MIN, PeerError, PeerMsg, decode, encode, encode_frames, speaker,
};
pub use snapshot::{
    MAX_SNAPSHOT, MAX_SNAPSHOT_MEMORY, SNAPSHOT_VERSION, SNAPSHOT_VERSION_MIN, SnapshotError,
};
pub use workers::{
    LeaseName, PlaneNews, PlaneVersion, WorkerAnswer, WorkerCommand, WorkerGot, WorkerMsg,
    WorkerNotice, WorkerQuestion, WorkerTold, WorkerWish,
};
