//! The messages between processes of a cluster, across releases. The bytes of every kind of message
//! and of a checkpoint are committed as each version wrote them. This release must write the
//! committed bytes, read all versions that it supports, and read or skip what a later release may
//! add.
//!
//! `PURVIEW_GOLDEN=write cargo test -p purview --test it peers` rewrites the files of the present
//! versions: only for messages that no release has used yet.

mod roles;
pub mod samples;

use std::path::PathBuf;

use crate::golden::tree;
use crate::support::alone::recover;
use crate::support::trial::scene;
use crate::support::world::World;
use purview::scene::region::RegionSnapshot;
use purview::scene::{EntityId, Plane, Pos, RangeSet, RegionId, Visibility};
use purview::wire::peer::{self, PEER_VERSION, PEER_VERSION_MIN, PeerError, PeerMsg};
use purview::wire::{SNAPSHOT_VERSION, SNAPSHOT_VERSION_MIN};

fn golden(what: &str, version: u16) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{what}-{version}.txt"))
}

/// The lines of a golden file: name and bytes.
fn lines(what: &str, version: u16) -> Vec<(String, Vec<u8>)> {
    let path = golden(what, version);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let line = |line: &str| {
        let (name, hex) = line.split_once(": ").expect("a name and its bytes");
        (name.to_owned(), tree::unhex(hex))
    };
    text.lines().map(line).collect()
}

/// Writes a golden file, if the environment asks for it.
fn rewrite(what: &str, version: u16, all: &[(String, Vec<u8>)]) {
    if std::env::var_os("PURVIEW_GOLDEN").is_some_and(|how| how == "write") {
        let line = |(name, bytes): &(String, Vec<u8>)| format!("{name}: {}\n", tree::hex(bytes));
        std::fs::write(golden(what, version), all.iter().map(line).collect::<String>()).unwrap();
    }
}

fn bytes_of(message: &PeerMsg) -> Vec<u8> {
    let mut bytes = Vec::new();
    peer::encode(message, &mut bytes).unwrap();
    bytes
}

#[test]
fn every_kind_of_message_is_encoded_as_committed() {
    let all: Vec<_> =
        samples::all().into_iter().map(|(name, message)| (name, bytes_of(&message))).collect();
    rewrite("peers", PEER_VERSION, &all);
    let committed = lines("peers", PEER_VERSION);
    for (now, then) in all.iter().zip(&committed) {
        let rules = "a form in use must not change; see docs/contributing/cluster.md";
        assert_eq!(now, then, "{}: {rules}", now.0);
    }
    assert_eq!(all.len(), committed.len());
    for kind in ["Region Handoff", "Region Claims", "Notice Route", "Frames", "Gone"] {
        assert!(all.iter().any(|(name, _)| name == kind), "{kind}");
    }
}

#[test]
fn messages_of_all_supported_versions_are_decoded() {
    for version in PEER_VERSION_MIN..=PEER_VERSION {
        for (name, bytes) in lines("peers", version) {
            let message = peer::decode(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
            if version == PEER_VERSION {
                assert_eq!(bytes_of(&message), bytes, "{name}: something was lost");
            }
        }
    }
}

/// The arrays of a MessagePack value: the position of each one's marker, and its end.
fn arrays(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let end = value(bytes, 0, &mut found);
    assert_eq!(end, bytes.len());
    found
}

/// The end of the value at `at`.
fn value(bytes: &[u8], at: usize, found: &mut Vec<(usize, usize)>) -> usize {
    let number = |from: usize, len: usize| {
        bytes[from..from + len].iter().fold(0, |n, byte| n << 8 | usize::from(*byte))
    };
    let many = |at: usize, count: usize, found: &mut Vec<(usize, usize)>| {
        (0..count).fold(at, |at, _| value(bytes, at, found))
    };
    match bytes[at] {
        0x00..=0x7f | 0xc0..=0xc3 | 0xe0..=0xff => at + 1,
        marker @ 0x80..=0x8f => many(at + 1, usize::from(marker & 15) * 2, found),
        marker @ 0x90..=0x9f => {
            let end = many(at + 1, usize::from(marker & 15), found);
            found.push((at, end));
            end
        }
        0xdc => {
            let end = many(at + 3, number(at + 1, 2), found);
            found.push((at, end));
            end
        }
        marker @ 0xa0..=0xbf => at + 1 + usize::from(marker & 31),
        0xc4 | 0xd9 => at + 2 + number(at + 1, 1),
        0xcc | 0xd0 => at + 2,
        0xcd | 0xd1 => at + 3,
        0xca | 0xce | 0xd2 => at + 5,
        0xcf | 0xd3 => at + 9,
        other => panic!("a marker {other:#x} that no message has"),
    }
}

/// The same bytes with an additional element at the end of the array at this position.
fn longer(bytes: &[u8], (at, end): (usize, usize), element: &[u8]) -> Vec<u8> {
    let (head, count) = match bytes[at] {
        0xdc => (3, usize::from(bytes[at + 1]) << 8 | usize::from(bytes[at + 2])),
        marker => (1, usize::from(marker & 15)),
    };
    let marker = [0xdc, ((count + 1) >> 8) as u8, (count + 1) as u8];
    [&bytes[..at], &marker, &bytes[at + head..end], element, &bytes[end..]].concat()
}

#[test]
fn fields_that_a_later_release_adds_are_skipped() {
    // Nil, a number, a text, bytes, a struct.
    let added: [&[u8]; 5] =
        [&[0xc0], &[0x07], &[0xa1, b'x'], &[0xc4, 1, 9], &[0x92, 0x91, 0xc3, 0x05]];
    let (mut read, mut refused) = (0, 0);
    for (name, message) in samples::all() {
        let bytes = bytes_of(&message);
        for at in arrays(&bytes) {
            let mut whole = 0;
            for element in added {
                match peer::decode(&longer(&bytes, at, element)) {
                    Ok(there) if bytes_of(&there) == bytes => whole += 1,
                    // A list got another entry, which is valid or not.
                    Ok(_) | Err(_) => {}
                }
            }
            assert!(whole == 0 || whole == added.len(), "{name}: {whole} at {at:?}");
            read += usize::from(whole > 0);
            refused += usize::from(whole == 0);
        }
    }
    assert!(read > 3 * refused && read > 150, "{read} structs, {refused} lists");
}

#[test]
fn every_struct_of_a_message_may_grow() {
    // The outermost array of a message's content is a struct, except for a list of sessions or planes,
    // and a number.
    let plain = |name: &str| ["Gone", "Suspect", "Worker planes", "Worker late"].contains(&name);
    for (name, message) in samples::all().into_iter().filter(|(name, _)| !plain(name)) {
        let bytes = bytes_of(&message);
        let outer = arrays(&bytes).into_iter().max_by_key(|(at, end)| end - at).unwrap();
        let grown = longer(&bytes, outer, &[0xc0]);
        let there = peer::decode(&grown).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(bytes_of(&there), bytes, "{name}");
    }
}

#[test]
fn an_unknown_kind_is_told_from_a_damaged_message() {
    #[derive(serde::Serialize)]
    enum Next {
        Weather { to: u32, how: &'static str },
        Region { to: u32, epoch: u64, input: NextInput },
    }
    #[derive(serde::Serialize)]
    enum NextInput {
        Rain(u8),
    }
    let weather = rmp_serde::to_vec(&Next::Weather { to: 1, how: "wet" }).unwrap();
    let rain = Next::Region { to: 1, epoch: 2, input: NextInput::Rain(3) };
    for bytes in [weather, rmp_serde::to_vec(&rain).unwrap()] {
        assert!(matches!(peer::decode(&bytes), Err(PeerError::Unknown(_))));
        let torn = peer::decode(&bytes[..bytes.len() / 3]);
        assert!(matches!(torn, Err(PeerError::Malformed(_))), "{torn:?}");
    }
}

/// A small region's checkpoint, equal in every run.
fn checkpoint() -> RegionSnapshot {
    let mut world = World::new(scene(Visibility::Patches, 60), 1);
    world.join(Plane(0), Pos::ground(3_000, 500), RangeSet::FULL);
    world.join(Plane(0), Pos::ground(3_150, 500), RangeSet::FULL);
    (0..5).for_each(|_| world.step());
    world.regions[0].checkpoint().expect("a closed tick")
}

fn who(snapshot: &RegionSnapshot) -> Vec<(EntityId, Plane, Pos)> {
    snapshot.entities().map(|e| (e.id, e.plane, e.pos)).collect()
}

#[test]
fn checkpoints_of_all_supported_versions_are_decoded() {
    let now = checkpoint();
    rewrite("checkpoint", SNAPSHOT_VERSION, &[("region".into(), now.encode().unwrap())]);
    for version in SNAPSHOT_VERSION_MIN..=SNAPSHOT_VERSION {
        let [(_, bytes)] = &lines("checkpoint", version)[..] else { panic!("one checkpoint") };
        let then = RegionSnapshot::decode(bytes).unwrap_or_else(|e| panic!("{version}: {e}"));
        assert_eq!((then.region(), who(&then)), (RegionId(0), who(&now)), "version {version}");
        // A region can be restored from it.
        let scene = World::new(scene(Visibility::Patches, 60), 1).scene;
        recover(&scene, then, &[], 9);
    }
}
