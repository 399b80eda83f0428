//! What a process says when it opens a channel, and what it is answered.
#![no_main]

use libfuzzer_sys::fuzz_target;
use purview_server::peer::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::hello(bytes);
});
