//! The messages of `proto/purview/logic/v1/logic.proto`, and a client.

#![allow(missing_docs, reason = "the .proto file documents the messages")]
#![allow(clippy::all, reason = "generated")]

use crate::grpc::bounds::{Bounded, Repeated};

tonic::include_proto!("purview.logic.v1");

/// The compiled .proto file, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/logic.bin"));

/// Largest request, bytes.
pub const MOST_REQUEST_BYTES: usize = 16 << 20;

/// Largest response, bytes.
pub const MOST_RESPONSE_BYTES: usize = 2 << 20;

/// Most commands of an answer.
pub const MOST_COMMANDS: usize = 65_536;

/// Most properties, bonds and subjects of all commands of an answer.
const MOST_PARTS: usize = 262_144;

/// Beyond twice what is legal a request is not even decoded.
impl Bounded for Request {
    const REPEATED: &'static [Repeated] = &[
        Repeated { name: "commands", path: &[2, 3], most: 2 * MOST_COMMANDS },
        Repeated { name: "spawn.properties", path: &[2, 3, 3, 5], most: MOST_PARTS },
        Repeated { name: "set_bonds.bonds", path: &[2, 3, 18, 1], most: MOST_PARTS },
        Repeated { name: "open_plane.subjects", path: &[2, 3, 24, 2], most: MOST_PARTS },
    ];
}
