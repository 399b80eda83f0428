//! When clients send that send together.

use std::time::Duration;

use tokio::time::Instant;

use super::STEP;

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

/// Parses the interval of common inputs, milliseconds.
///
/// # Errors
/// The text describes the legal values.
pub fn beat_of(ms: u64) -> Result<Duration, String> {
    let fits = ms > 0 && (STEP.as_millis() as u64).is_multiple_of(ms);
    fits.then_some(Duration::from_millis(ms)).ok_or_else(beat_rule)
}

/// The legal values of a beat.
pub fn beat_rule() -> String {
    let step = STEP.as_millis();
    format!("a divisor of the {step} ms between two inputs of a client, such as 50")
}

#[cfg(test)]
mod tests {
    use purview::clock;

    use super::*;

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
