//! Hostile bytes at every boundary: decoding ends, without a panic, and takes bounded memory. Also a
//! short run of the fuzz target `boundaries`.
#![allow(unsafe_code)] // an allocator that counts

#[path = "../../../tests/mutations/mod.rs"]
mod mutations;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use purview::wire::peer::{self, PeerMsg, PlaneNews, PlaneVersion, WorkerMsg};
use purview_server::boundaries::{BOUNDARIES, Boundary};

const MUTATIONS: usize = 60_000;

/// An allocator that counts the bytes that a thread has, and the most that it had.
struct Counting;

thread_local! {
    static HAS: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn count(by: isize) {
    // A thread that is ending has no counter any more.
    let _gone = HAS.try_with(|has| {
        let (now, most) = has.get();
        has.set((now + by, most.max(now + by)));
    });
}

// SAFETY: every call goes to the system's allocator with unchanged arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Decodes bytes at a boundary; the memory must stay within its limit.
fn decode(boundary: &Boundary, bytes: &[u8]) -> bool {
    let before = HAS.get().0;
    HAS.set((before, before));
    let taken = (boundary.decode)(bytes);
    let most = (HAS.get().1 - before) as usize;
    let Boundary { name, .. } = boundary;
    let limit = boundary.most(bytes.len());
    assert!(most <= limit, "{name}: {} bytes took {most}, more than {limit}", bytes.len());
    taken
}

fn boundary(name: &str) -> &'static Boundary {
    BOUNDARIES.iter().find(|boundary| boundary.name == name).expect("there is one")
}

#[test]
fn hostile_bytes_take_bounded_memory_at_every_boundary() {
    let taken = mutations::run("boundaries", MUTATIONS, |bytes| {
        let Some((which, bytes)) = bytes.split_first() else { return false };
        decode(&BOUNDARIES[usize::from(*which) % BOUNDARIES.len()], bytes)
    });
    assert!(taken > MUTATIONS / 200, "only {taken} inputs got past a decoder");
}

#[test]
fn deep_nesting_ends_at_every_boundary() {
    let forms: [&[u8]; 6] = [&[0x91], &[0x81, 0xa1, b'a'], &[0x81], &[0x0a, 0x7f], &[0x12], b"<a>"];
    for boundary in &BOUNDARIES {
        for form in forms {
            for depth in [60, 5_000, 1_000_000] {
                let mut bytes = form.repeat(depth);
                assert!(!decode(boundary, &bytes), "{}", boundary.name);
                // The kind of a map or of a backup's record comes first.
                for kind in 0..4 {
                    bytes[0] = kind;
                    decode(boundary, &bytes);
                }
            }
        }
    }
}

#[test]
fn a_promise_of_four_thousand_million_elements_takes_no_memory() {
    for boundary in &BOUNDARIES {
        for promise in [0xdd, 0xdf, 0xc6, 0xdb] {
            for head in [&[][..], &[0x92, 1], &[0x92, 66, 0x99, 1, 1, 1, 0xc2], &[3]] {
                let bytes = [head, &[promise, 0xff, 0xff, 0xff, 0xff], &[0xc0; 900]].concat();
                decode(boundary, &bytes);
            }
        }
    }
}

#[test]
fn lists_of_the_smallest_elements_take_bounded_memory() {
    let version = PlaneVersion { count: 1, process: 3 };
    let (scene, plane) = (purview::scene::SceneId(0), purview::scene::Plane(9));
    for count in [1_000, 1_000_000, 8_000_000] {
        let subjects = Some(vec![String::new(); count]);
        let news = PlaneNews { scene, plane, version, subjects };
        let mut bytes = Vec::new();
        let message = PeerMsg::Worker(Box::new(WorkerMsg::Planes(vec![news])));
        peer::encode(&message, &mut bytes).unwrap();
        drop(message);
        assert_eq!(decode(boundary("peer"), &bytes), count < 1_000_000, "{count}");
    }
    // Empty commands of a worker, and empty changes: two bytes each.
    for (name, field) in [("worker", 0x1a), ("interest", 0x12)] {
        for count in [1_000, 8_000_000] {
            let elements = [field, 0].repeat(count);
            let mut bytes = vec![0x12];
            prost::encoding::encode_varint(elements.len() as u64, &mut bytes);
            bytes.extend(elements);
            assert_eq!(decode(boundary(name), &bytes), count < 1_000_000, "{name} {count}");
        }
    }
}

/// The last column of the table of the page, in bytes.
fn on_the_page(from: &str) -> usize {
    let page = include_str!("../../../docs/operations.md");
    let row = page.lines().find(|line| line.starts_with(&format!("| {from} |"))).expect("a row");
    let (number, unit) =
        row.rsplit('|').nth(1).and_then(|cell| cell.trim().split_once(' ')).expect("a figure");
    let unit = match unit {
        "MiB" => 20,
        "GiB" => 30,
        _ => panic!("{row}"),
    };
    (number.parse::<f64>().expect("a number") * f64::from(1_u32 << unit)) as usize
}

/// A field that holds bytes.
fn field(number: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost::encoding::encode_varint(number << 3 | 2, &mut bytes);
    prost::encoding::encode_varint(content.len() as u64, &mut bytes);
    bytes.extend(content);
    bytes
}

/// A request with a batch that repeats a part until it is as long as it may be, or has so many.
fn batch_of(part: &[u8], most: usize) -> Vec<u8> {
    let count = most.min(((16 << 20) - 16) / part.len());
    field(2, &part.repeat(count))
}

#[test]
fn the_costliest_legal_messages_take_what_the_page_says() {
    let changes = 65_536;
    // Kinds and planes take a byte each, and four in memory; texts and lists take more than they say.
    let kinds = |len: usize| field(2, &field(5, &field(2, &vec![1; len])));
    let planes = |len: usize| field(2, &field(9, &field(2, &vec![1; len])));
    let observed = field(2, &field(11, &field(2, &field(1, &[1; 200]))));
    let rules = field(2, &field(2, &field(6, &[]).repeat(changes)));
    let interest = [
        field(2, &kinds((16 << 20) - 64)),
        field(2, &planes((16 << 20) - 64)),
        batch_of(&kinds(240), changes),
        batch_of(&observed, changes),
        batch_of(&[0x12, 0], changes),
        field(2, &rules),
    ];
    // Empty commands, and commands with two empty parts.
    let commands = 131_072;
    let worker = [
        batch_of(&[0x32, 0], commands),
        batch_of(&field(6, &field(3, &field(5, &[]))), commands),
        batch_of(&field(6, &field(3, &field(5, &[]).repeat(2))), commands),
        batch_of(&field(6, &field(18, &field(1, &[]).repeat(2))), commands),
        batch_of(&field(6, &field(24, &field(2, b"x").repeat(2))), commands),
        batch_of(&field(6, &field(3, &[])), commands),
    ];
    for (name, from, messages) in [
        ("interest", "an interest client", &interest[..]),
        ("worker", "a logic worker", &worker[..]),
    ] {
        for (number, bytes) in messages.iter().enumerate() {
            let before = HAS.get().0;
            HAS.set((before, before));
            assert!((boundary(name).decode)(bytes), "{name}: message {number} is legal");
            let most = (HAS.get().1 - before) as usize;
            let page = on_the_page(from);
            println!("{name} {number}: {} bytes take {most}", bytes.len());
            assert!(most <= page, "{name} {number}: {most} bytes, and the page says {page}");
        }
    }
}
