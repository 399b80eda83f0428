//! Bytes to typed messages and back: MessagePack arrays, for clients and between processes.
//!
//! Gateways, clients and the peer links call it. Every client message is `[type, [field, ...]]`.
//! Past this module there are only typed, valid values. The contract for clients is
//! `docs/protocol.md`; tests check its golden vectors. Nothing here may panic or allocate without
//! bound on any bytes.

pub mod client;
pub mod codec;
pub mod codes;
pub mod enquiry;
mod forms;
pub mod frame;
pub mod framing;
#[doc(hidden)]
pub mod fuzzing;
mod lenient;
pub mod moves;
pub mod peer;
mod shape;
mod snapshot;
mod tight;

pub use client::{ClientMsg, JoinRules, ServerMsg};
pub use codec::{DecodeError, MAX_CLIENT_FRAME, MAX_SERVER_FRAME, PROTOCOL_VERSION};
pub use codes::{CloseCode, ErrorCode};
pub use frame::{EncodedBatch, Entered, Frame, Moved};
pub use moves::{Coursed, Form, Going, MoveRules, OwnMove};
pub use snapshot::{MAX_SNAPSHOT, SNAPSHOT_VERSION, SNAPSHOT_VERSION_MIN, SnapshotError};
