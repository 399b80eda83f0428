//! Fuzz checks of everything that a process reads from a peer before any message: hellos and
//! channel frames. The fuzz targets in `fuzz/` and their short run in the tests call them; nothing
//! else does, because they panic on a violation.

use bytes::Bytes;
use tonic::metadata::{MetadataMap, MetadataValue};

use super::channel::{Receiving, Sending};
use super::hello::{Hello, Versions, Welcome};

/// The frame before the fuzzed one: one message, which the channel has received.
const BEFORE: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, b'h', b'i'];

/// A channel frame is accepted or refused as a whole, and a refused one changes nothing; an
/// acknowledgement of any number releases only sent messages. True when the frame was accepted.
///
/// # Panics
/// One of these properties is violated.
pub fn channel_frame(bytes: &[u8]) -> bool {
    let mut receiving = Receiving::default();
    let before = receiving.take(Bytes::from_static(BEFORE)).map(Iterator::count);
    assert_eq!((before, receiving.want()), (Ok(1), 2));
    let taken = receiving.take(Bytes::copy_from_slice(bytes));
    match &taken {
        Ok(_) => assert!(receiving.want() >= 2, "a channel goes back"),
        Err(_) => assert_eq!(receiving.want(), 2, "a refused frame changes the channel"),
    }
    let taken = taken.map(|messages| messages.map(|message| message.len()).sum::<usize>());
    assert!(taken.as_ref().is_ok_and(|len| *len <= bytes.len()) || taken.is_err());
    if let Some((number, _)) = bytes.split_first_chunk::<8>() {
        acknowledge(u64::from_be_bytes(*number));
    }
    taken.is_ok()
}

fn acknowledge(upto: u64) {
    let mut sending = Sending::default();
    for message in [&b"a"[..], b"bc"] {
        sending.push(Bytes::from_static(message)).expect("an empty channel has room");
    }
    assert!(sending.next_frame().is_some());
    sending.acknowledged(upto);
    let again = sending.reconnected(upto);
    assert!(again <= 2);
    let left = sending.next_frame().is_some();
    assert!(left || upto > 1, "what was not acknowledged is sent again");
}

/// A hello is read or refused; a hello that was read is the same after writing and reading it
/// again. `bytes` are lines with a metadata key, `=` and a value. True when it was read.
///
/// # Panics
/// One of these properties is violated.
pub fn hello(bytes: &[u8]) -> bool {
    let mut map = MetadataMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let at = line.iter().position(|byte| *byte == b'=').unwrap_or(line.len());
        let (key, value) = (&line[..at], line.get(at + 1..).unwrap_or_default());
        let (Ok(key), Ok(value)) =
            (tonic::metadata::AsciiMetadataKey::from_bytes(key), MetadataValue::try_from(value))
        else {
            continue;
        };
        map.insert(key, value);
    }
    // The answer to a hello is read by the same rules.
    let welcome = Welcome::read(&map);
    let Ok(hello) = Hello::read(&map) else { return welcome.is_ok() };
    let mut written = MetadataMap::new();
    hello.write(&mut written);
    assert_eq!(Hello::read(&written).as_ref(), Ok(&hello), "a hello changes");
    if let Ok(version) = hello.check("c", hello.to, Versions::OURS) {
        assert!((Versions::OURS.lowest..=Versions::OURS.highest).contains(&version));
    }
    true
}
