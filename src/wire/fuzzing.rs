//! Checks of the decoders, shared by the fuzz targets in `fuzz/` and their short run in the tests.
//! Nothing else calls them: they panic if a decoder breaks a promise.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::msgpack::fast;
use super::peer::{self, PeerMsg};
use super::{EncodedBatch, SNAPSHOT_VERSION};
use crate::scene::messages::{FrameBatch, Input};
use crate::scene::region::RegionSnapshot;

/// Decodes a message from another process. A decoded message must encode and decode to itself
/// again, and its frames must encode for their clients. Returns whether the message was decoded.
///
/// # Panics
/// A promise is broken.
pub fn peer_message(bytes: &[u8]) -> bool {
    let Ok(message) = peer::decode(bytes) else { return false };
    let written = bytes_of(&message);
    let again = peer::decode(&written).expect("an encoded value decodes");
    assert_eq!(bytes_of(&again), written, "a message changes in a round trip");
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
        encoded.write_frame(session, true, &mut Vec::new());
    }
}

/// Decodes a snapshot with a valid head and this body. Returns whether it was decoded.
pub fn snapshot(body: &[u8]) -> bool {
    RegionSnapshot::decode(&headed(body)).is_ok()
}

fn headed(body: &[u8]) -> Vec<u8> {
    let mut bytes = b"PVRS".to_vec();
    bytes.extend(SNAPSHOT_VERSION.to_be_bytes());
    bytes.extend((body.len() as u64).to_be_bytes());
    bytes.extend(crc32fast::hash(body).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// Decodes a snapshot with a valid head and this body. A decoded snapshot must encode and decode to
/// itself again. Returns whether the snapshot was decoded.
///
/// # Panics
/// A promise is broken.
pub fn snapshot_body(body: &[u8]) -> bool {
    let Ok(snapshot) = RegionSnapshot::decode(&headed(body)) else { return false };
    let written = snapshot.encode().expect("a decoded snapshot is not too big");
    let again = RegionSnapshot::decode(&written).expect("an encoded value decodes");
    assert_eq!(again.encode().expect("as before"), written, "a snapshot changes in a round trip");
    true
}

/// The fast codec and `rmp-serde` must agree on `bytes` for each type that travels between
/// processes, in both directions: both decode the same value, and both encode it alike. Returns
/// whether the fast codec decoded a value.
///
/// # Panics
/// The codecs differ.
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
        let other = other.as_ref().expect("rmp-serde decodes what the fast codec decodes");
        assert_eq!(written(fast), written(other), "the codecs decode different values");
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
