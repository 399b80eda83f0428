//! The messages of `proto/purview/interest/v1/interest.proto`, and a client.

#![allow(missing_docs, reason = "the .proto file documents the messages")]
#![allow(clippy::all, reason = "generated")]

use crate::grpc::bounds::{Bounded, Repeated};

/// Most changes of a batch.
pub const MOST_CHANGES: usize = 1 << 16;

tonic::include_proto!("purview.interest.v1");

/// The compiled .proto file, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/interest.bin"));

/// Largest request, bytes.
pub const MOST_REQUEST_BYTES: usize = 16 << 20;

/// Largest response, bytes.
pub const MOST_RESPONSE_BYTES: usize = 2 << 20;

/// Most pairs of kinds with a reach of their own, of all new scenes of a request.
pub const MOST_PAIR_RULES: usize = 1 << 16;

/// Beyond these a request is not even decoded. What else repeats are numbers.
impl Bounded for Request {
    const REPEATED: &'static [Repeated] = &[
        Repeated { name: "changes", path: &[2, 2], most: MOST_CHANGES },
        Repeated { name: "create_scene.pairs", path: &[2, 2, 2, 6], most: MOST_PAIR_RULES },
    ];
}

impl Bounded for Acknowledgement {
    const REPEATED: &'static [Repeated] = &[];
}
