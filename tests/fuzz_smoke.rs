//! A short, repeatable run of the fuzz targets on the stable toolchain: the committed corpus, then
//! mutations of it from a fixed seed. `docs/contributing/testing.md` says how to run the targets for
//! longer.

mod allocations;
mod mutations;

use purview::wire::client::framing::{Framer, PREFIX_LEN, write};
use purview::wire::{ClientMsg, DecodeError, ServerMsg, fuzzing};

use allocations::asked;
use mutations::run;

const MUTATIONS: usize = 400_000;

/// Number of mutations for targets that take longer.
const FEWER: usize = 100_000;

/// Decodes `bytes`. The allocation must be a small multiple of the input, and a decoded message
/// must round-trip.
fn parse<M: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<M, DecodeError>,
    encode: impl Fn(&M) -> Vec<u8>,
) -> bool {
    let (got, asked) = asked(|| decode(bytes));
    // A list reserves room for an entry per byte at most. The largest entry, `Entered`, takes 120 bytes.
    assert!(asked <= 2_048 + 120 * bytes.len(), "allocated {asked} bytes");
    let Ok(msg) = got else { return false };
    assert_eq!(decode(&encode(&msg)), Ok(msg));
    true
}

#[test]
fn client_frames() {
    let taken = run("client_frame", MUTATIONS, |b| parse(b, ClientMsg::decode, ClientMsg::encode));
    assert!(taken > MUTATIONS / 50, "only {taken} inputs got past the decoder");
}

#[test]
fn server_frames() {
    let taken = run("server_frame", MUTATIONS, |b| parse(b, ServerMsg::decode, ServerMsg::encode));
    assert!(taken > MUTATIONS / 50, "only {taken} inputs got past the decoder");
}

#[test]
fn a_count_of_entries_allocates_no_more_than_their_bytes_allow() {
    let head = [0x92, 66, 0x99, 1, 1, 1, 0xc2, 0xdd];
    for count in [10u32, 1_000, 100_000, u32::MAX] {
        let bytes = [&head[..], &count.to_be_bytes(), &[0xc0; 900]].concat();
        assert!(!parse(&bytes, ServerMsg::decode, ServerMsg::encode));
    }
}

#[test]
fn tcp_streams() {
    const MAX: usize = 64;
    let taken = run("tcp_framing", MUTATIONS, |bytes| {
        let Some((&piece, stream)) = bytes.split_first() else { return false };
        let (mut framer, mut written) = (Framer::new(MAX), Vec::new());
        for mut input in stream.chunks(usize::from(piece).max(1)) {
            while let Ok(Some(message)) = framer.next(&mut input) {
                write(&message, MAX, &mut written).unwrap();
            }
            assert!(framer.pending() < MAX + PREFIX_LEN);
        }
        assert!(stream.starts_with(&written));
        !written.is_empty()
    });
    assert!(taken > MUTATIONS / 50, "only {taken} streams had a message");
}

#[test]
fn peer_messages() {
    let taken = run("peer_message", FEWER, |bytes| {
        // For a count that is not backed by bytes serde allocates at most 1 MiB, at each depth of a
        // message.
        let (taken, asked) = asked(|| fuzzing::peer_message(bytes));
        assert!(asked <= (8 << 20) + 4_096 * bytes.len(), "allocated {asked} bytes");
        taken
    });
    assert!(taken > FEWER / 50, "only {taken} inputs got past the decoder");
}

#[test]
fn snapshots() {
    let taken = run("snapshot_body", FEWER / 4, fuzzing::snapshot_body);
    assert!(taken > FEWER / 200, "only {taken} inputs got past the decoder");
}

#[test]
fn the_fast_codec_and_rmp_serde_agree() {
    let taken = run("fast_codec", FEWER, fuzzing::codecs_agree);
    assert!(taken > FEWER / 50, "only {taken} inputs got past the decoder");
}
