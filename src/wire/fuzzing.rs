//! Checks of the readers of bytes, for the fuzz targets in `fuzz/` and for their short run in the tests. Nothing else
//! calls them: they panic where a promise is broken.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::msgpack::fast;
use super::peer::{self, PeerMsg};
use super::{EncodedBatch, SNAPSHOT_VERSION};
use crate::scene::messages::{FrameBatch, Input};
use crate::scene::region::RegionSnapshot;

/// A message from another process is read or refused; what is read is written and read again as the same, and frames in
/// it can be written for their clients. True when it was read.
///
/// # Panics
/// A promise is broken.
pub fn peer_message(bytes: &[u8]) -> bool {
    let Ok(message) = peer::decode(bytes) else { return false };
    let written = bytes_of(&message);
    let again = peer::decode(&written).expect("what was written is read");
    assert_eq!(bytes_of(&again), written, "a message changes when it is read again");
    if let PeerMsg::Frames { batch, .. } = message {
        write_frames(*batch);
    }
    true
}

fn bytes_of(message: &PeerMsg) -> Vec<u8> {
    let mut bytes = Vec::new();
    peer::encode(message, &mut bytes).expect("MessagePack holds all of these types");
    bytes
}

fn write_frames(batch: FrameBatch) {
    let encoded = EncodedBatch::new(batch);
    for session in 0..encoded.batch().sessions.len() {
        encoded.write_frame(session, &mut Vec::new());
    }
}

/// A snapshot whose head is right and whose body is `body` is read or refused; what is read is written and read again
/// as the same. True when it was read.
///
/// # Panics
/// A promise is broken.
pub fn snapshot_body(body: &[u8]) -> bool {
    let mut bytes = b"PVRS".to_vec();
    bytes.extend(SNAPSHOT_VERSION.to_be_bytes());
    bytes.extend((body.len() as u64).to_be_bytes());
    bytes.extend(crc32fast::hash(body).to_be_bytes());
    bytes.extend(body);
    let Ok(snapshot) = RegionSnapshot::decode(&bytes) else { return false };
    let written = snapshot.encode().expect("a snapshot that was read is not too big");
    let again = RegionSnapshot::decode(&written).expect("what was written is read");
    assert_eq!(again.encode().expect("as before"), written, "a snapshot changes");
    true
}

/// The fast codec and `rmp-serde` agree on `bytes` as each of the types that travel between processes, in both
/// directions: what the fast one reads is what `rmp-serde` reads, and both write it alike. True when the fast one read
/// a value.
///
/// # Panics
/// They differ.
pub fn codecs_agree(bytes: &[u8]) -> bool {
    let message = codecs_agree_on::<PeerMsg>(bytes);
    let input = codecs_agree_on::<Input>(bytes);
    let batch = codecs_agree_on::<FrameBatch>(bytes);
    let snapshot = codecs_agree_on::<RegionSnapshot>(bytes);
    message || input || batch || snapshot
}

fn codecs_agree_on<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> bool {
    let fast = fast::read::<T>(bytes);
    let other = rmp_serde::from_slice::<T>(bytes);
    if let Some(fast) = &fast {
        let other = other.as_ref().expect("rmp-serde reads what the fast codec reads");
        assert_eq!(written(fast), written(other), "both read another value");
    }
    if let Ok(other) = &other {
        let bytes = written(other);
        let mut by_fast = Vec::new();
        assert!(fast::write(&mut by_fast, other), "the fast codec writes what rmp-serde reads");
        assert_eq!(by_fast, bytes, "both write one value in two ways");
        let again = fast::read::<T>(&bytes).expect("the fast codec reads what rmp-serde writes");
        assert_eq!(written(&again), bytes, "a value changes when the fast codec reads it");
    }
    fast.is_some()
}

fn written<T: Serialize>(value: &T) -> Vec<u8> {
    rmp_serde::to_vec(value).expect("MessagePack holds all of these types")
}
