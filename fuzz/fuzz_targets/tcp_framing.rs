//! A TCP stream in pieces; the first byte sets the length of a piece.
#![no_main]

use libfuzzer_sys::fuzz_target;
use purview::wire::client::framing::{Framer, FramingError, write};

const MAX: usize = 64;

fn read(chunks: impl Iterator<Item = impl AsRef<[u8]>>) -> (Vec<Vec<u8>>, Option<FramingError>) {
    let (mut framer, mut out) = (Framer::new(MAX), Vec::new());
    for chunk in chunks {
        let mut input = chunk.as_ref();
        loop {
            match framer.next(&mut input) {
                Ok(Some(message)) => out.push(message),
                Ok(None) => break,
                Err(error) => return (out, Some(error)),
            }
        }
        assert!(input.is_empty() && framer.pending() < MAX + 4);
    }
    (out, None)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&piece, stream)) = bytes.split_first() else { return };
    let (messages, error) = read(std::iter::once(stream));
    let pieces = read(stream.chunks(usize::from(piece).max(1)));
    assert_eq!(pieces, (messages.clone(), error));
    let mut written = Vec::new();
    for message in &messages {
        write(message, MAX, &mut written).unwrap();
    }
    assert!(stream.starts_with(&written));
});
