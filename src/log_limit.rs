//! Errors that can repeat with every message are logged at most once a second.
//!
//! [`crate::log_limited!`] has one [`LogLimit`] for each place in the code. Time is an argument: the scene
//! has no clock and gives the time of its tick.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Shortest time between two lines of one place, milliseconds.
const EVERY_MS: u64 = 1_000;

/// A time that is so much before the last line's is of another clock, for example of the next simulation,
/// milliseconds.
const OTHER_CLOCK_MS: u64 = 10_000;

/// Lets one line a second pass, and counts what it holds back.
#[derive(Debug, Default)]
pub struct LogLimit {
    /// The time of the last line, milliseconds, plus one; 0: there was none.
    last: AtomicU64,
    held_back: AtomicU64,
}

impl LogLimit {
    /// A limit that lets the first line pass.
    pub const fn new() -> LogLimit {
        LogLimit { last: AtomicU64::new(0), held_back: AtomicU64::new(0) }
    }

    /// Whether a line may be logged at `now_ms`; with how many were held back before it.
    pub fn admit(&self, now_ms: u64) -> Option<u64> {
        let (now, last) = (now_ms.saturating_add(1), self.last.load(Relaxed));
        let is_due = last == 0
            || now >= last.saturating_add(EVERY_MS)
            || now.saturating_add(OTHER_CLOCK_MS) < last;
        // Another thread that is first logs its line.
        if is_due && self.last.compare_exchange(last, now, Relaxed, Relaxed).is_ok() {
            return Some(self.held_back.swap(0, Relaxed));
        }
        self.held_back.fetch_add(1, Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_passes_and_tells_how_many_did_not() {
        let limit = LogLimit::new();
        assert_eq!(limit.admit(0), Some(0));
        for ms in [0, 1, 999] {
            assert_eq!(limit.admit(ms), None);
        }
        assert_eq!(limit.admit(1_000), Some(3));
        assert_eq!(limit.admit(1_999), None);
        assert_eq!(limit.admit(50_000), Some(1));
        assert_eq!(limit.admit(49_950), None, "a region that is a tick behind");
        assert_eq!(limit.admit(0), Some(1), "the clock of another simulation");
        assert_eq!(limit.admit(u64::MAX), Some(0));
    }

    #[test]
    fn of_many_threads_one_logs() {
        let limit = LogLimit::new();
        let passed = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let lines = (0..1_000).filter(|_| limit.admit(5).is_some()).count();
                    passed.fetch_add(lines as u64, Relaxed);
                });
            }
        });
        assert_eq!(passed.into_inner(), 1);
        assert_eq!(limit.admit(2_000), Some(3_999));
    }
}
