//! When clients send that send together.

use std::time::Duration;

use tokio::time::Instant;

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

    pub(super) fn at_or_after(&self, at: Instant) -> Instant {
        let since = at.saturating_duration_since(self.first).as_nanos();
        self.first + self.each * since.div_ceil(self.each.as_nanos()) as u32
    }
}

#[cfg(test)]
mod tests {
    use purview::clock;

    use super::*;
    use crate::sim::options::STEP;

    #[test]
    fn a_client_that_starts_between_two_beats_sends_at_the_next_one() {
        const BEAT: Duration = Duration::from_millis(50);
        let now = clock::now();
        let ms = Duration::from_millis;
        for (seed, at, speaks) in
            [(0, 0, 0), (0, 1, 50), (7, 0, 7), (7, 7, 7), (7, 8, 57), (57, 108, 157)]
        {
            let beats = Beats::new(now, seed, BEAT);
            assert_eq!(beats.at_or_after(now + ms(at)), now + ms(speaks), "{seed} {at}");
        }
        assert_eq!(STEP.as_millis() % BEAT.as_millis(), 0, "it stays on the beat");
    }
}
