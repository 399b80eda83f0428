//! Mutations of the committed fuzz corpus from a fixed seed, for short runs of the fuzz targets on the stable toolchain.

use std::path::{Path, PathBuf};

use rng::Rng;

const SEED: u64 = 0x5eed_0001;

#[allow(dead_code)]
#[path = "../../cluster/demo/src/rng.rs"]
mod rng;

/// MessagePack markers at which a decoder branches.
const MARKS: &[u8] = &[
    0x00, 0x7f, 0x80, 0x90, 0x91, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7,
    0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd9, 0xda, 0xdb, 0xdc, 0xdd,
    0xde, 0xdf, 0xe0, 0xff,
];

fn byte(random: &mut Rng) -> u8 {
    random.next() as u8
}

fn mutate(random: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
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
                bytes[at] = bytes[at].wrapping_add(byte(random) % 5).wrapping_sub(2)
            }
            5 => bytes.insert(at, MARKS[random.below(MARKS.len())]),
            _ => {
                let wide = [byte(random), byte(random), byte(random), byte(random)];
                let at = at.min(bytes.len());
                bytes.splice(at..at, [[0xdd; 1].as_slice(), &wide].concat());
            }
        }
    }
    bytes
}

/// The committed inputs of a target, in the order of their names.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let dir =
        folders.find_map(|folder| Some(folder.join("fuzz/corpus")).filter(|dir| dir.is_dir()));
    let dir = dir.expect("the repository has fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", dir.display());
    files.iter().map(|f| std::fs::read(f).unwrap()).collect()
}

/// Runs the corpus of a target and `mutations` of it; returns how many inputs were accepted as messages.
pub fn run(target: &str, mutations: usize, mut check: impl FnMut(&[u8]) -> bool) -> usize {
    let corpus = corpus(target);
    let mut taken = corpus.iter().filter(|input| check(input)).count();
    let mut random = Rng::new(SEED);
    for n in 0..mutations {
        let input = mutate(&mut random, &corpus);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&input)));
        taken += usize::from(caught.unwrap_or_else(|_| panic!("{target} {n}: {input:02x?}")));
    }
    taken
}
