//! The hello of a channel between two processes, and its answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use purview_server::peer::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::hello(bytes);
});
