//! How many messages a client may send: a token bucket.

/// A bucket that fills at a steady rate up to a burst; each message takes one token.
#[derive(Debug, Clone)]
pub struct RateLimit {
    per_second: i64,
    burst: i64,
    // Thousandths of a token: the rate is then a whole number per millisecond. Below zero: a debt.
    level: i64,
    filled_ms: u64,
    // Since when each message has found no token beside its own.
    empty_since_ms: Option<u64>,
}

/// A token.
const TOKEN: i64 = 1_000;

impl RateLimit {
    /// A full bucket.
    pub fn new(now_ms: u64, per_second: u32, burst: u32) -> RateLimit {
        let burst = i64::from(burst.max(1)) * TOKEN;
        let per_second = i64::from(per_second.max(1));
        RateLimit { per_second, burst, level: burst, filled_ms: now_ms, empty_since_ms: None }
    }

    /// Takes a token if there is one; false when there is none.
    pub fn take(&mut self, now_ms: u64) -> bool {
        self.fill(now_ms);
        let has = self.level >= TOKEN;
        self.level -= if has { TOKEN } else { 0 };
        has
    }

    /// Takes a token, on credit if there is none.
    pub fn draw(&mut self, now_ms: u64) {
        self.fill(now_ms);
        if self.level >= 2 * TOKEN {
            self.empty_since_ms = None;
        } else {
            self.empty_since_ms.get_or_insert(now_ms);
        }
        self.level = (self.level - TOKEN).max(-self.burst);
    }

    /// How long it takes until there is a token, milliseconds; 0: there is one.
    pub fn wait_ms(&self, now_ms: u64) -> u64 {
        let passed = i64::try_from(now_ms.saturating_sub(self.filled_ms)).unwrap_or(i64::MAX);
        let level = self.level.saturating_add(passed.saturating_mul(self.per_second));
        let lacks = u64::try_from(TOKEN - level.min(TOKEN)).unwrap_or_default();
        lacks.div_ceil(self.per_second.unsigned_abs())
    }

    /// For how long each message has found no token beside its own, milliseconds.
    pub fn empty_for_ms(&self, now_ms: u64) -> u64 {
        self.empty_since_ms.map_or(0, |since| now_ms.saturating_sub(since))
    }

    fn fill(&mut self, now_ms: u64) {
        let passed = i64::try_from(now_ms.saturating_sub(self.filled_ms)).unwrap_or(i64::MAX);
        self.filled_ms = self.filled_ms.max(now_ms);
        let gain = passed.saturating_mul(self.per_second);
        self.level = self.level.saturating_add(gain).min(self.burst);
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

    #[test]
    fn what_is_drawn_on_credit_is_waited_for() {
        let mut rate_limit = RateLimit::new(0, 10, 2);
        rate_limit.draw(0);
        assert_eq!(rate_limit.wait_ms(0), 0);
        rate_limit.draw(0);
        assert_eq!(rate_limit.wait_ms(0), 100);
        assert_eq!((rate_limit.wait_ms(60), rate_limit.wait_ms(100)), (40, 0));
        rate_limit.draw(0);
        assert_eq!(rate_limit.wait_ms(0), 200);
    }

    #[test]
    fn a_bucket_counts_as_empty_until_a_message_finds_more_than_its_own_token() {
        let mut rate_limit = RateLimit::new(0, 10, 2);
        rate_limit.draw(0);
        assert_eq!(rate_limit.empty_for_ms(0), 0);
        for now_ms in (0..=5_000).step_by(100) {
            rate_limit.draw(now_ms);
            assert_eq!(rate_limit.empty_for_ms(now_ms), now_ms);
        }
        // It pauses for two more tokens.
        rate_limit.draw(5_400);
        assert_eq!(rate_limit.empty_for_ms(5_400), 0);
    }
}
