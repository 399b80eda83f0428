//! A server's message, as a client decodes it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use purview::wire::ServerMsg;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(msg) = ServerMsg::decode(bytes) {
        assert_eq!(ServerMsg::decode(&msg.encode()), Ok(msg));
    }
});
