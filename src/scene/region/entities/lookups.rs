//! For tests: how often entities were looked up by id on this thread.

use std::cell::Cell;

thread_local! {
    static LOOKUPS: Cell<u64> = const { Cell::new(0) };
}

/// An entity is looked up.
pub fn note() {
    LOOKUPS.set(LOOKUPS.get() + 1);
}

/// Lookups since the last call.
pub fn take() -> u64 {
    LOOKUPS.replace(0)
}
