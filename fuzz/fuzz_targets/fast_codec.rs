//! The fast MessagePack codec beside rmp-serde, in both directions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use purview::wire::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::codecs_agree(bytes);
});
