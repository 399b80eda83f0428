//! Rate limit for log lines: errors that can repeat with every message are logged at most once a
//! second.
//!
//! [`crate::log_limited!`] creates one [`LogLimit`] per place in the code. Time is an argument: the
//! scene has no clock and passes the time of its tick.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Shortest time between two lines from one place, milliseconds.
const EVERY_MS: u64 = 1_000;

/// A time this much before the last line's belongs to another clock, such as that of the next
/// simulation, milliseconds.
const OTHER_CLOCK_MS: u64 = 10_000;

/// Admits one line a second, and counts the lines that it suppresses.
#[derive(Debug, Default)]
pub struct LogLimit {
    /// Time of the last line, milliseconds, plus one; 0: none yet.
    last: AtomicU64,
    held_back: AtomicU64,
}

impl LogLimit {
    /// A limit that admits the first line.
    pub const fn new() -> LogLimit {
        LogLimit { last: AtomicU64::new(0), held_back: AtomicU64::new(0) }
    }

    /// Whether a line may be logged at `now_ms`: `Some` with the number of lines suppressed before
    /// it.
    pub fn admit(&self, now_ms: u64) -> Option<u64> {
        let (now, last) = (now_ms.saturating_add(1), self.last.load(Relaxed));
        let is_due = last == 0
            || now >= last.saturating_add(EVERY_MS)
            || now.saturating_add(OTHER_CLOCK_MS) < last;
        // If another thread was first, it logs its line.
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
    fn one_line_a_second_is_admitted_with_the_suppressed_count() {
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
    fn only_one_of_many_threads_logs() {
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
