//! A short, repeatable run of the fuzz targets on the stable toolchain: the committed corpus, then
//! mutations of it from a fixed seed. `docs/fuzzing.md` says how to run the real ones for longer.
#![allow(unsafe_code)] // an allocator that counts

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::{Path, PathBuf};

use purview::wire::framing::{Framer, PREFIX_LEN, write};
use purview::wire::{ClientMsg, DecodeError, ServerMsg};

const MUTATIONS: usize = 400_000;
const SEED: u64 = 0x5eed_0001;

/// Counts the bytes that a thread asks for.
struct Counting;

thread_local! {
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator with the arguments as they came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends has no counter any more.
        let _gone = ASKED.try_with(|n| n.set(n.get() + layout.size()));
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `work` returns and how many bytes it asked for.
fn asked<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ASKED.get();
    let out = work();
    (out, ASKED.get() - before)
}

/// A small generator (xorshift64*): the run is the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.next() as u8
    }
}

/// Marks of MessagePack at which a parser decides.
const MARKS: &[u8] = &[
    0x00, 0x7f, 0x80, 0x90, 0x91, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7,
    0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd9, 0xda, 0xdb, 0xdc, 0xdd,
    0xde, 0xdf, 0xe0, 0xff,
];

fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = MARKS[random.below(MARKS.len())],
            2 => bytes.truncate(at),
            3 => {
                let other = &corpus[random.below(corpus.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[random.below(other.len())..]);
            }
            // A length or count grows or shrinks.
            4 if !bytes.is_empty() => {
                bytes[at] = bytes[at].wrapping_add(random.byte() % 5).wrapping_sub(2)
            }
            5 => bytes.insert(at, MARKS[random.below(MARKS.len())]),
            _ => {
                let wide = [random.byte(), random.byte(), random.byte(), random.byte()];
                let at = at.min(bytes.len());
                bytes.splice(at..at, [[0xdd; 1].as_slice(), &wide].concat());
            }
        }
    }
    bytes
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", dir.display());
    files.iter().map(|f| std::fs::read(f).unwrap()).collect()
}

/// Runs the corpus and its mutations; how many inputs were taken as messages.
fn run(target: &str, mut check: impl FnMut(&[u8]) -> bool) -> usize {
    let corpus = corpus(target);
    let mut taken = corpus.iter().filter(|input| check(input)).count();
    let mut random = Random(SEED);
    for n in 0..MUTATIONS {
        let input = mutate(&mut random, &corpus);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&input)));
        taken += usize::from(caught.unwrap_or_else(|_| panic!("{target} {n}: {input:02x?}")));
    }
    taken
}

/// Decodes `bytes`; what it asked for must be a small multiple of them, and what it took must come
/// back from its own bytes.
fn parse<M: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<M, DecodeError>,
    encode: impl Fn(&M) -> Vec<u8>,
) -> bool {
    let (got, asked) = asked(|| decode(bytes));
    assert!(asked <= 2_048 + 80 * bytes.len(), "asked for {asked} bytes");
    let Ok(msg) = got else { return false };
    assert_eq!(decode(&encode(&msg)), Ok(msg));
    true
}

#[test]
fn client_frames() {
    let taken = run("client_frame", |b| parse(b, ClientMsg::decode, ClientMsg::encode));
    assert!(taken > MUTATIONS / 50, "only {taken} inputs got past the parser");
}

#[test]
fn server_frames() {
    let taken = run("server_frame", |b| parse(b, ServerMsg::decode, ServerMsg::encode));
    assert!(taken > MUTATIONS / 50, "only {taken} inputs got past the parser");
}

#[test]
fn a_count_of_entries_asks_for_no_more_than_their_bytes_allow() {
    let head = [0x92, 66, 0x99, 1, 1, 1, 0xc2, 0xdd];
    for count in [10u32, 1_000, 100_000, u32::MAX] {
        let bytes = [&head[..], &count.to_be_bytes(), &[0xc0; 900]].concat();
        assert!(!parse(&bytes, ServerMsg::decode, ServerMsg::encode));
    }
}

#[test]
fn tcp_streams() {
    const MAX: usize = 64;
    let taken = run("tcp_framing", |bytes| {
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
