//! Samples of the regions' figures: recent rates, and which regions still tick.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use purview::actor::region::metrics::RegionMetrics;
use purview::scene::RegionId;
use serde::Serialize;

use super::quantiles::{TickSum, TickTimes};

/// Samples kept: what "recent" means, in seconds.
const KEPT: usize = 10;
/// A region without a tick for this long is silent.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(3);

pub trait Regions<'a>: Iterator<Item = (RegionId, &'a RegionMetrics)> + Clone {}

impl<'a, T: Iterator<Item = (RegionId, &'a RegionMetrics)> + Clone> Regions<'a> for T {}

#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    at: Option<Instant>,
    ticks: TickSum,
    frames: u64,
    updates: u64,
    handoffs: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Recent {
    pub seconds: f64,
    pub tick_ms: TickTimes,
    pub frames_per_s: f64,
    /// Enters, leaves, moves and actions in these frames.
    pub updates_per_s: f64,
    /// Entities handed to another region.
    pub handoffs_per_s: f64,
}

/// Collects samples. Time is an argument.
#[derive(Debug, Default)]
pub struct Sampler {
    samples: VecDeque<Sample>,
    /// Per region the number of ticks, and when it last changed.
    ticks: Vec<(RegionId, u64, Instant)>,
}

impl Sampler {
    pub fn sample<'a>(&mut self, now: Instant, regions: impl Regions<'a>) {
        self.observe(now, regions.clone());
        if self.samples.len() == KEPT + 1 {
            self.samples.pop_front();
        }
        self.samples.push_back(take(now, regions));
    }

    /// The figures between the oldest sample and now.
    pub fn recent<'a>(&self, now: Instant, regions: impl Regions<'a>) -> Recent {
        let Some((first, since)) = self.samples.front().and_then(|s| Some((s, s.at?))) else {
            return Recent::default();
        };
        let seconds = now.saturating_duration_since(since).as_secs_f64();
        let last = take(now, regions);
        let rate = |last: u64, first: u64| match seconds {
            s if s > 0.0 => last.saturating_sub(first) as f64 / s,
            _ => 0.0,
        };
        Recent {
            seconds,
            tick_ms: last.ticks.since(&first.ticks).times(),
            frames_per_s: rate(last.frames, first.frames),
            updates_per_s: rate(last.updates, first.updates),
            handoffs_per_s: rate(last.handoffs, first.handoffs),
        }
    }

    /// Silent regions with the time since their last tick; `None` if they have not ticked since
    /// they came.
    pub fn silent<'a>(
        &mut self,
        now: Instant,
        regions: impl Regions<'a>,
    ) -> Vec<(RegionId, Option<Duration>)> {
        self.observe(now, regions);
        let ago = |at: &Instant| now.saturating_duration_since(*at);
        self.ticks
            .iter()
            .filter(|(_, _, at)| ago(at) > SILENCE_LIMIT)
            .map(|(id, ticks, at)| (*id, (*ticks > 0).then(|| ago(at))))
            .collect()
    }

    fn observe<'a>(&mut self, now: Instant, regions: impl Regions<'a>) {
        // A region that migrated away or was released is not silent.
        self.ticks.retain(|(known, ..)| regions.clone().any(|(region, _)| region == *known));
        for (region, m) in regions {
            let ticks = m.ticks.load(Relaxed);
            match self.ticks.iter_mut().find(|(id, ..)| *id == region) {
                Some((_, known, at)) if *known != ticks => (*known, *at) = (ticks, now),
                Some(_) => {}
                None => self.ticks.push((region, ticks, now)),
            }
        }
    }
}

fn take<'a>(now: Instant, regions: impl Regions<'a>) -> Sample {
    let mut sample = Sample { at: Some(now), ..Sample::default() };
    for (_, m) in regions {
        sample.ticks.add(m);
        sample.frames += m.frames.load(Relaxed);
        sample.updates += m.updates.load(Relaxed);
        sample.handoffs += m.handoffs.load(Relaxed);
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_region_that_stops_ticking_is_silent_until_it_ticks_again() {
        let (a, b) = (RegionMetrics::default(), RegionMetrics::default());
        let both = [(RegionId(0), &a), (RegionId(1), &b)];
        let mut sampler = Sampler::default();
        let mut now = Instant::now();
        a.tick_took(10);
        assert_eq!(sampler.silent(now, both.into_iter()), []);
        now += 4 * SECOND;
        a.tick_took(10);
        assert_eq!(sampler.silent(now, both.into_iter()), [(RegionId(1), None)]);
        b.tick_took(10);
        assert_eq!(sampler.silent(now, both.into_iter()), []);
        for _ in 0..4 {
            now += SECOND;
            b.tick_took(10);
            sampler.sample(now, both.into_iter());
        }
        assert_eq!(sampler.silent(now, both.into_iter()), [(RegionId(0), Some(4 * SECOND))]);
        a.tick_took(10);
        assert_eq!(sampler.silent(now, both.into_iter()), []);
    }

    #[test]
    fn a_removed_region_is_not_silent() {
        let (a, b) = (RegionMetrics::default(), RegionMetrics::default());
        let both = [(RegionId(0), &a), (RegionId(1), &b)];
        let (mut sampler, mut now) = (Sampler::default(), Instant::now());
        sampler.sample(now, both.into_iter());
        now += 4 * SECOND;
        b.tick_took(10);
        assert_eq!(sampler.silent(now, both.into_iter()), [(RegionId(0), None)]);
        assert_eq!(sampler.silent(now, both[1..].iter().copied()), []);
        // The region comes back, and has the full time again.
        assert_eq!(sampler.silent(now, both.into_iter()), []);
    }

    #[test]
    fn recent_figures_cover_the_last_seconds_only() {
        let m = RegionMetrics::default();
        let all = [(RegionId(0), &m)];
        let mut sampler = Sampler::default();
        let mut now = Instant::now();
        assert_eq!(sampler.recent(now, all.into_iter()), Recent::default());
        m.frames.fetch_add(1_000_000, Relaxed);
        m.tick_took(90_000);
        sampler.sample(now, all.into_iter());
        for _ in 0..30 {
            now += SECOND;
            m.frames.fetch_add(50, Relaxed);
            m.tick_took(400);
            sampler.sample(now, all.into_iter());
        }
        let recent = sampler.recent(now, all.into_iter());
        assert_eq!((recent.seconds, recent.frames_per_s), (10.0, 50.0));
        assert_eq!((recent.tick_ms.mean, recent.tick_ms.max), (0.4, 0.5));
        assert_eq!(recent.handoffs_per_s, 0.0);
    }
}
