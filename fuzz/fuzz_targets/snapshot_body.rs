//! What is read from a checkpoint, or from a region that moves, behind a sound head.
#![no_main]

use libfuzzer_sys::fuzz_target;
use purview::wire::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::snapshot_body(bytes);
});
