//! A client's message, as a gateway decodes it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use purview::wire::ClientMsg;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(msg) = ClientMsg::decode(bytes) {
        assert_eq!(ClientMsg::decode(&msg.encode()), Ok(msg));
    }
});
