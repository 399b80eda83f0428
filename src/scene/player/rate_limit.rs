//! How many messages a client may send: a token bucket.

/// A bucket that fills at a steady rate up to a burst; each message takes one token.
#[derive(Debug, Clone)]
pub struct RateLimit {
    per_second: u64,
    burst: u64,
    // Thousandths of a token: the rate is then a whole number per millisecond.
    level: u64,
    filled_ms: u64,
}

impl RateLimit {
    /// A full bucket.
    pub fn new(now_ms: u64, per_second: u32, burst: u32) -> RateLimit {
        let burst = u64::from(burst.max(1)) * 1_000;
        RateLimit { per_second: u64::from(per_second), burst, level: burst, filled_ms: now_ms }
    }

    /// Takes a token; false when there is none.
    pub fn take(&mut self, now_ms: u64) -> bool {
        let passed = now_ms.saturating_sub(self.filled_ms);
        self.filled_ms = self.filled_ms.max(now_ms);
        let gain = passed.saturating_mul(self.per_second);
        self.level = self.level.saturating_add(gain).min(self.burst);
        if self.level < 1_000 {
            return false;
        }
        self.level -= 1_000;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::RateLimit;

    #[test]
    fn a_burst_empties_the_bucket_and_time_fills_it_at_the_rate() {
        let mut rate_limit = RateLimit::new(5_000, 10, 3);
        let taken: Vec<bool> = (0..4).map(|_| rate_limit.take(5_000)).collect();
        assert_eq!(taken, [true, true, true, false]);
        assert!(!rate_limit.take(5_099));
        assert!(rate_limit.take(5_100));
        assert!(!rate_limit.take(5_100));
    }

    #[test]
    fn a_long_silence_saves_up_no_more_than_a_burst_and_a_clock_that_goes_back_gives_nothing() {
        let mut rate_limit = RateLimit::new(0, 10, 2);
        assert!(rate_limit.take(u64::MAX));
        assert!(rate_limit.take(0));
        assert!(!rate_limit.take(0));
    }
}
