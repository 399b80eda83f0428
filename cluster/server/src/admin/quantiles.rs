//! Quantiles of tick times, from the histogram buckets of the regions.

use purview::actor::region::metrics::{RegionMetrics, TICK_BUCKETS_US};
use serde::{Deserialize, Serialize};

/// Ticks per bucket of [`TICK_BUCKETS_US`]; the last entry is for longer ticks.
pub(super) type Buckets = [u64; TICK_BUCKETS_US.len() + 1];

/// Tick times, in milliseconds; all 0 without ticks.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct TickTimes {
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

/// The tick times of several regions together, since their start.
pub fn tick_times<'a>(regions: impl IntoIterator<Item = &'a RegionMetrics>) -> TickTimes {
    let mut sum = TickSum::default();
    regions.into_iter().for_each(|m| sum.add(m));
    sum.times()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TickSum {
    pub buckets: Buckets,
    pub sum_us: u64,
    pub max_us: u64,
}

impl TickSum {
    pub fn add(&mut self, m: &RegionMetrics) {
        use std::sync::atomic::Ordering::Relaxed;
        for (total, n) in self.buckets.iter_mut().zip(m.tick_buckets()) {
            *total += n;
        }
        self.sum_us += m.tick_us_sum.load(Relaxed);
        self.max_us = self.max_us.max(m.tick_us_max.load(Relaxed));
    }

    /// The ticks after `earlier`. The maximum is known only up to its bucket.
    pub fn since(&self, earlier: &TickSum) -> TickSum {
        let buckets: Buckets =
            std::array::from_fn(|i| self.buckets[i].saturating_sub(earlier.buckets[i]));
        let max_us = match buckets.iter().rposition(|n| *n > 0) {
            None => 0,
            Some(last) => TICK_BUCKETS_US.get(last).map_or(self.max_us, |b| self.max_us.min(*b)),
        };
        TickSum { buckets, sum_us: self.sum_us.saturating_sub(earlier.sum_us), max_us }
    }

    pub fn times(&self) -> TickTimes {
        let count: u64 = self.buckets.iter().sum();
        if count == 0 {
            return TickTimes::default();
        }
        TickTimes {
            mean: self.sum_us as f64 / count as f64 / 1000.0,
            p50: quantile_us(&self.buckets, self.max_us, 0.50) / 1000.0,
            p99: quantile_us(&self.buckets, self.max_us, 0.99) / 1000.0,
            max: self.max_us as f64 / 1000.0,
        }
    }
}

/// The quantile `q` (0 to 1) in microseconds, interpolated within its bucket; at most `max_us`,
/// which also bounds the last bucket. 0 without ticks.
pub(super) fn quantile_us(buckets: &Buckets, max_us: u64, q: f64) -> f64 {
    let count: u64 = buckets.iter().sum();
    let rank = q.clamp(0.0, 1.0) * count as f64;
    let mut below = 0.0;
    let mut low = 0;
    for (i, &n) in buckets.iter().enumerate() {
        let high = TICK_BUCKETS_US.get(i).copied().unwrap_or(max_us).min(max_us).max(low);
        if n > 0 && below + n as f64 >= rank {
            let share = ((rank - below) / n as f64).clamp(0.0, 1.0);
            return low as f64 + (high - low) as f64 * share;
        }
        below += n as f64;
        low = high;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn metrics(ticks_us: &[u64]) -> RegionMetrics {
        let m = RegionMetrics::default();
        ticks_us.iter().for_each(|us| m.tick_took(*us));
        m
    }

    fn sum(ticks_us: &[u64]) -> TickSum {
        let mut sum = TickSum::default();
        sum.add(&metrics(ticks_us));
        sum
    }

    #[test]
    fn no_tick_has_no_time() {
        assert_eq!(tick_times([]), TickTimes::default());
        assert_eq!(tick_times([&metrics(&[])]), TickTimes::default());
    }

    #[test]
    fn a_quantile_is_interpolated_within_its_bucket() {
        // 100 ticks in the bucket from 1000 to 1500 us: the median is in its middle.
        let s = sum(&[vec![1_200; 100], vec![5_000]].concat());
        assert_eq!(quantile_us(&s.buckets, s.max_us, 50.0 / 101.0), 1_250.0);
        assert_eq!(quantile_us(&s.buckets, s.max_us, 1.0), 5_000.0);
    }

    #[test]
    fn no_quantile_exceeds_the_longest_tick() {
        let s = sum(&[1_010, 1_020, 1_030]);
        assert!(s.times().p99 <= 1.030);
        assert_eq!(s.times().max, 1.030);
        assert_eq!(s.times().mean, 1.020);
    }

    #[test]
    fn ticks_beyond_the_last_bound_are_bounded_by_the_longest() {
        let s = sum(&[400_000, 900_000]);
        assert_eq!(quantile_us(&s.buckets, s.max_us, 0.5), 575_000.0);
        assert_eq!(s.times().max, 900.0);
    }

    #[test]
    fn regions_are_added_up() {
        let (fast, slow) = (metrics(&[100; 99]), metrics(&[50_000]));
        let times = tick_times([&fast, &slow]);
        assert_eq!(times.max, 50.0);
        assert_eq!(times.mean, (99.0 * 0.1 + 50.0) / 100.0);
        assert!(times.p50 <= 0.1 && times.p99 <= 0.1);
    }

    #[test]
    fn a_window_excludes_earlier_ticks() {
        let m = metrics(&[90_000]);
        let mut before = TickSum::default();
        before.add(&m);
        (0..10).for_each(|_| m.tick_took(400));
        let mut now = TickSum::default();
        now.add(&m);
        let recent = now.since(&before).times();
        assert_eq!((recent.mean, recent.max), (0.4, 0.5));
        assert_eq!(now.since(&now).times(), TickTimes::default());
    }

    proptest! {
        #[test]
        fn quantiles_lie_in_the_bucket_of_the_exact_answer(
            mut ticks in prop::collection::vec(1_u64..600_000, 1..200),
            q in 0.01_f64..1.0,
        ) {
            let s = sum(&ticks);
            ticks.sort_unstable();
            let rank = (q * ticks.len() as f64).ceil().max(1.0) as usize;
            let exact = ticks[rank - 1];
            let high = TICK_BUCKETS_US.iter().find(|b| exact <= **b).copied().unwrap_or(s.max_us);
            let low = TICK_BUCKETS_US.iter().rev().find(|b| **b < exact).copied().unwrap_or(0);
            let got = quantile_us(&s.buckets, s.max_us, q);
            prop_assert!(got >= low as f64 && got <= high.min(s.max_us) as f64 + 1e-9);
        }
    }
}
