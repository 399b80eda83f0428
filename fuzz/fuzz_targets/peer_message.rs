//! A message from another process.
#![no_main]

use libfuzzer_sys::fuzz_target;
use purview::wire::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::peer_message(bytes);
});
