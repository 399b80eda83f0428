//! The messages of `proto/purview/logic/v1/logic.proto`, and a client.

#![allow(missing_docs, reason = "the .proto file documents the messages")]
#![allow(clippy::all, reason = "generated")]

tonic::include_proto!("purview.logic.v1");

/// The compiled .proto file, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/logic.bin"));

/// Largest request, bytes.
pub const MOST_REQUEST_BYTES: usize = 16 << 20;

/// Largest response, bytes.
pub const MOST_RESPONSE_BYTES: usize = 2 << 20;

/// Most commands of a batch.
pub const MOST_COMMANDS: usize = 65_536;
