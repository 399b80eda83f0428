//! A frame of a channel between two processes, and an acknowledgement of any number.
#![no_main]

use libfuzzer_sys::fuzz_target;
use purview_server::peer::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::channel_frame(bytes);
});
