//! The messages of `proto/purview/interest/v1/interest.proto`, and a client.

#![allow(missing_docs, reason = "the .proto file documents the messages")]
#![allow(clippy::all, reason = "generated")]

tonic::include_proto!("purview.interest.v1");

/// The compiled .proto file, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/interest.bin"));

/// Largest request, bytes.
pub const MOST_REQUEST_BYTES: usize = 16 << 20;

/// Largest response, bytes.
pub const MOST_RESPONSE_BYTES: usize = 2 << 20;
