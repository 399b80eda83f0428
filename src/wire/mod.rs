//! Bytes to typed messages and back: MessagePack arrays, for clients and between processes.
//!
//! Gateways, clients and the peer links call it. Every client message is `[type, [field, ...]]`.
//! Past this module there are only typed, valid values. The contract for clients is
//! `docs/protocol.md`; tests check the golden vectors in `clients/conformance`. Nothing here may
//! panic or allocate without bound on any bytes.

pub mod client;
#[doc(hidden)]
pub mod fuzzing;
mod msgpack;
pub mod peer;

pub use client::codes::{CloseCode, ErrorCode};
pub use client::frame::{EncodedBatch, Entered, Frame, Moved};
pub use client::logic_message::Message;
pub use client::movement::{Blocker, EntityTrajectory, Form, Going, MoveRules, OwnMove};
pub use client::properties::{ChangedProperty, EnteredProperty, FirstProperty, Turned};
pub use client::trajectories::{NextTrajectory, TrajectoryUpdate};
pub use client::{ClientMsg, JoinRules, ServerMsg, UpdateRules};
pub use msgpack::envelope::{
    DecodeError, MAX_ACT, MAX_CLIENT_FRAME, MAX_SERVER_FRAME, PROTOCOL_VERSION,
};
pub use msgpack::fast::{MAX_RECORD_MEMORY, Unreadable, read_record};
pub use peer::{MAX_SNAPSHOT, SNAPSHOT_VERSION, SNAPSHOT_VERSION_MIN, SnapshotError};
