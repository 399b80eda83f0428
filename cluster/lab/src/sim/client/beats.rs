//! When clients send that send together.

use std::time::Duration;

use tokio::time::Instant;

/// The common moments at which clients send their inputs.
#[derive(Debug, Clone, Copy)]
pub struct Beats {
    first: Instant,
    each: Duration,
}

impl Beats {
    /// The first moment is a time of the seed in the first interval, so that ticks of regions fall anywhere between
    /// two moments.
    pub fn new(now: Instant, seed: u64, each: Duration) -> Beats {
        let each = each.max(Duration::from_millis(1));
        let first = Duration::from_millis(seed % each.as_millis() as u64);
        Beats { first: now + first, each }
    }

    /// The next moment that is not in the past.
    pub(super) fn at_or_after(&self, at: Instant) -> Instant {
        let since = at.saturating_duration_since(self.first).as_nanos();
        self.first + self.each * since.div_ceil(self.each.as_nanos()) as u32
    }
}
