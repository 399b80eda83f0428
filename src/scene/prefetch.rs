//! Prefetch: the processor is asked for memory that is needed soon.
//!
//! With tens of thousands of players most of a tick is spent on waiting for memory; what was asked for a little before is
//! there when its turn comes. A prefetch changes nothing but time.

/// How many players ahead memory is asked for.
pub const PLAYERS: usize = 3;

/// How many inputs ahead.
pub const INPUTS: usize = 6;

/// Asks for all cache lines of a slice. Changes nothing but the time that a later look takes.
#[inline]
#[allow(unsafe_code)]
pub fn fetch<T>(what: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = what.as_ptr().cast::<i8>();
        for line in (0..std::mem::size_of_val(what)).step_by(64) {
            // SAFETY: a prefetch reads nothing that a program can see and never faults, and `line` is
            // within the slice.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(line)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
}
