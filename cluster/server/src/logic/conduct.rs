//! How a worker behaves: what operators are told, so that one that is outdated or slow is found, and which share of
//! the regions its pace earns it.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::time::Instant;

/// The conduct of a worker, as its process knows it, or as the regions of another process do.
#[derive(Debug, Default)]
pub struct Conduct {
    /// Answers that did not count, since their leases had ended.
    pub late_answers: AtomicU64,
    pub refused_commands: AtomicU64,
}

/// A worker whose answers take more ticks than this on average is slow.
const SLOW_TICKS: f64 = 2.0;

/// A slow worker that answers within so many ticks again gets more regions.
const QUICK_TICKS: f64 = 1.25;

/// The weight of one more answer in the average.
const WEIGHT: f64 = 0.05;

/// An answer counts as so many ticks at most: one pause is no sign of a slow worker.
const COUNTS_MOST: u64 = 10;

/// Between two cuts of a slow worker's share: the average must have followed the last one.
const SLOWER: Duration = Duration::from_secs(5);

/// A quick worker's share grows this seldom, so that it does not swing.
const QUICKER: Duration = Duration::from_secs(30);

/// A slow worker keeps so much of its share at each cut.
const CUT: f64 = 0.75;

/// So much is added to a quick worker's share.
const GROWTH: f64 = 0.125;

const SHARE_MIN: f64 = 0.125;

/// How quickly a worker answers, and the share of regions that this earns it: cut while the worker is slow, grown
/// little by little while it is quick again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// How many ticks an answer takes, on average; 1 is as quick as can be.
    pub ticks: f64,
    /// The weight of the worker when regions are divided, [`SHARE_MIN`] to 1.
    pub share: f64,
    changed: Instant,
}

impl Pace {
    /// The pace of a worker of whom nothing is known yet.
    pub fn new(now: Instant) -> Pace {
        Pace { ticks: 1.0, share: 1.0, changed: now }
    }

    /// An answer has taken so many ticks; true if the worker's share has changed.
    pub fn answered(&mut self, ticks: u64, now: Instant) -> bool {
        self.ticks += (ticks.clamp(1, COUNTS_MOST) as f64 - self.ticks) * WEIGHT;
        let (slow, quick) = (self.ticks > SLOW_TICKS, self.ticks < QUICK_TICKS);
        let since = now.duration_since(self.changed);
        let share = match self.share {
            share if slow && since >= SLOWER => (share * CUT).max(SHARE_MIN),
            share if quick && since >= QUICKER => (share + GROWTH).min(1.0),
            share => share,
        };
        if share == self.share {
            return false;
        }
        (self.share, self.changed) = (share, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_worker_has_a_smaller_share_until_it_is_quick_again() {
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        let mut answer = |pace: &mut Pace, ticks, every: u64| {
            now += Duration::from_millis(every);
            pace.answered(ticks, now)
        };
        // As quick as can be, and one slow answer among many: nothing changes.
        assert!((0..1_000).all(|_| !answer(&mut pace, 1, 100)));
        assert!(!answer(&mut pace, 600, 60_000) && pace.share == 1.0);
        // Four ticks for each answer.
        let cuts = (0..100).filter(|_| answer(&mut pace, 4, 400)).count();
        assert!((6..=8).contains(&cuts), "{cuts} in 40 s");
        let slow = pace;
        assert!(slow.ticks > 3.9 && (SHARE_MIN..0.2).contains(&slow.share), "{slow:?}");
        assert!((0..1_000).all(|_| {
            answer(&mut pace, 4, 400);
            pace.share >= SHARE_MIN
        }));
        // Between slow and quick the share stays.
        for n in 0..100 {
            answer(&mut pace, 1 + n % 2, 150);
        }
        let share = pace.share;
        assert!((0..1_000).all(|n| !answer(&mut pace, 1 + n % 2, 150)) && pace.share == share);
        let growths = (0..6_000).filter(|_| answer(&mut pace, 1, 100)).count();
        assert!((6..=8).contains(&growths) && pace.share == 1.0, "{growths}, {pace:?}");
    }
}
