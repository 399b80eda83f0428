//! The failed tokens of sources: what a source costs does not grow with the number of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::source::Source;

/// The time window in which failed tokens are counted.
pub(super) const FAILURES_OVER: Duration = Duration::from_secs(60);

/// Most sources whose failed tokens are remembered. One more makes the source be forgotten whose
/// time ends first.
pub(super) const FAILURES_MAX: usize = 16_384;

#[derive(Debug, Clone, Copy)]
struct Failed {
    count: u32,
    is_blocked: bool,
    /// When the source is forgotten.
    ends: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Failures {
    of: BTreeMap<Source, Failed>,
    /// The same sources in the order in which they are forgotten.
    ends: BTreeSet<(Instant, Source)>,
}

impl Failures {
    /// How long the source is blocked; `None`: it is not.
    pub(super) fn blocked(&mut self, source: Source, now: Instant) -> Option<Duration> {
        let failed = *self.of.get(&source)?;
        if failed.ends <= now {
            self.forget(source, failed.ends);
            return None;
        }
        failed.is_blocked.then(|| failed.ends - now)
    }

    /// Counts a failed token; true when it blocks the source, which has failed `most` times by now.
    pub(super) fn add(&mut self, source: Source, now: Instant, most: u32, block: Duration) -> bool {
        let known = self.of.get(&source).copied();
        if let Some(known) = known {
            self.forget(source, known.ends);
        }
        let new = Failed { count: 0, is_blocked: false, ends: now + FAILURES_OVER };
        let mut failed = known.filter(|known| known.ends > now).unwrap_or(new);
        failed.count = failed.count.saturating_add(1);
        let blocks = failed.count >= most && !failed.is_blocked;
        if blocks {
            (failed.is_blocked, failed.ends) = (true, now + block);
        }
        if self.of.len() >= FAILURES_MAX
            && let Some((ends, first)) = self.ends.first().copied()
        {
            self.forget(first, ends);
        }
        self.of.insert(source, failed);
        self.ends.insert((failed.ends, source));
        blocks
    }

    fn forget(&mut self, source: Source, ends: Instant) {
        self.of.remove(&source);
        self.ends.remove(&(ends, source));
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn source(number: u32) -> Source {
        Source::of(Some(Ipv4Addr::from(number).into()))
    }

    /// The shortest time of some rounds, each of which counts failures of 500 new sources.
    fn shortest(failures: &mut Failures, next: &mut u32, began: Instant) -> Duration {
        let round = |_| {
            let start = std::time::Instant::now();
            for _ in 0..500 {
                *next += 1;
                let at = began + Duration::from_micros((*next).into());
                assert!(!failures.add(source(*next), at, 30, FAILURES_OVER));
            }
            start.elapsed()
        };
        (0..10).map(round).min().unwrap()
    }

    #[test]
    fn a_failing_source_costs_the_same_however_many_have_failed() {
        let (mut failures, mut next, began) = (Failures::default(), 0, Instant::now());
        let few = shortest(&mut failures, &mut next, began);
        while failures.of.len() < FAILURES_MAX {
            shortest(&mut failures, &mut next, began);
        }
        let many = shortest(&mut failures, &mut next, began);
        // A scan of all others costs a thousand times as much.
        assert!(many < few * 20, "{few:?} and {many:?}");
        assert_eq!((failures.of.len(), failures.ends.len()), (FAILURES_MAX, FAILURES_MAX));
        let oldest = next + 1 - FAILURES_MAX as u32;
        assert!(failures.of.contains_key(&source(oldest)));
        assert!(!failures.of.contains_key(&source(oldest - 1)));
    }

    #[test]
    fn a_source_is_blocked_for_its_time_and_then_forgotten() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        let block = Duration::from_secs(90);
        assert!(!failures.add(source(1), now, 2, block));
        // The first failure is over.
        let later = now + FAILURES_OVER;
        assert!(!failures.add(source(1), later, 2, block));
        assert!(failures.add(source(1), later, 2, block));
        assert!(!failures.add(source(1), later, 2, block));
        assert_eq!(failures.blocked(source(1), later), Some(block));
        assert_eq!(failures.blocked(source(2), later), None);
        assert_eq!(failures.blocked(source(1), later + block), None);
        assert!(failures.of.is_empty() && failures.ends.is_empty());
    }
}
