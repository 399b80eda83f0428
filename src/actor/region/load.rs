//! What a region's ticks cost lately, and its report of that.

use std::collections::VecDeque;

use actix::{Handler, MessageResult};

use super::RegionActor;
use crate::actor::messages::Weigh;
use crate::scene::load::RegionReport;

/// The time over which the mean is taken, milliseconds.
const MEAN_MS: f64 = 7_000.0;

/// The time of which the 99th percentile is taken, milliseconds.
const LATELY_MS: u32 = 10_000;

/// Most ticks of which the 99th percentile is taken.
const MOST: usize = 200;

/// A region with less than this share of a tick does not say by lands what it has to do.
const LANDS_FROM: f64 = 0.02;

/// What the last ticks cost.
#[derive(Debug)]
pub(super) struct TickCosts {
    tick_ms: u32,
    mean_us: f64,
    /// Ticks so far, as long as they count for the mean.
    ticks: f64,
    last_us: VecDeque<u32>,
}

impl TickCosts {
    pub(super) fn new(tick_ms: u32) -> TickCosts {
        TickCosts { tick_ms: tick_ms.max(1), mean_us: 0.0, ticks: 0.0, last_us: VecDeque::new() }
    }

    /// Counts a tick.
    pub(super) fn took(&mut self, us: u64) {
        let us = u32::try_from(us).unwrap_or(u32::MAX);
        // The first ticks have equal weights.
        self.ticks = (self.ticks + 1.0).min(MEAN_MS / f64::from(self.tick_ms)).max(1.0);
        self.mean_us += (f64::from(us) - self.mean_us) / self.ticks;
        let most = (LATELY_MS / self.tick_ms).clamp(1, MOST as u32) as usize;
        while self.last_us.len() >= most {
            self.last_us.pop_front();
        }
        self.last_us.push_back(us);
    }

    /// The 99th percentile of the last ticks, microseconds.
    fn p99_us(&self) -> u32 {
        let mut last: Vec<u32> = self.last_us.iter().copied().collect();
        last.sort_unstable();
        let rank = (last.len() * 99).div_ceil(100).max(1);
        last.get(rank - 1).copied().unwrap_or_default()
    }

    /// Whether the region has so much to do that it says where.
    fn is_worth_lands(&self) -> bool {
        self.mean_us >= LANDS_FROM * 1_000.0 * f64::from(self.tick_ms)
    }
}

impl Handler<Weigh> for RegionActor {
    type Result = MessageResult<Weigh>;

    fn handle(&mut self, _: Weigh, _: &mut Self::Context) -> MessageResult<Weigh> {
        let costs = &self.costs;
        let tick = (costs.mean_us as f32, costs.p99_us() as f32);
        let report: RegionReport = self.region.load(tick, costs.is_worth_lands());
        MessageResult(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_follows_the_last_seconds_and_the_percentile_leaves_single_ticks_out() {
        let mut costs = TickCosts::new(50);
        assert_eq!((costs.mean_us, costs.p99_us()), (0.0, 0));
        costs.took(1_000);
        costs.took(3_000);
        assert_eq!((costs.mean_us, costs.p99_us()), (2_000.0, 3_000));
        for _ in 0..1_000 {
            costs.took(500);
        }
        assert!((costs.mean_us - 500.0).abs() < 5.0, "{}", costs.mean_us);
        assert!(!costs.is_worth_lands());
        for us in [90_000, 80_000, 70_000] {
            costs.took(us);
        }
        // Of 200 ticks the two longest are left out.
        assert_eq!(costs.p99_us(), 70_000);
        assert!(costs.is_worth_lands(), "{}", costs.mean_us);
        for _ in 0..200 {
            costs.took(500);
        }
        assert_eq!(costs.p99_us(), 500);
    }

    #[test]
    fn a_tick_of_any_length_is_counted() {
        for tick_ms in [0, 1, u32::MAX] {
            let mut costs = TickCosts::new(tick_ms);
            costs.took(u64::MAX);
            costs.took(7);
            assert!(costs.mean_us.is_finite() && costs.last_us.len() <= MOST);
        }
    }
}
