//! Bytes at every boundary of the server, with a limit on the memory of their decoder. The first byte
//! says which boundary.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libfuzzer_sys::fuzz_target;
use purview_server::boundaries::BOUNDARIES;

/// An allocator that counts.
struct Counting;

static HAS: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator with unchanged arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(HAS.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HAS.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fuzz_target!(|bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let boundary = &BOUNDARIES[usize::from(*which) % BOUNDARIES.len()];
    let before = HAS.load(Relaxed);
    MOST.store(before, Relaxed);
    (boundary.decode)(bytes);
    let most = MOST.load(Relaxed).saturating_sub(before);
    let limit = boundary.most(bytes.len());
    assert!(most <= limit, "{}: {most} bytes of memory; at most {limit}", boundary.name);
});
