//! The body of a checkpoint or of a migrating region, behind a valid head.
#![no_main]

use libfuzzer_sys::fuzz_target;
use purview::wire::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::snapshot_body(bytes);
});
