//! Figures over time: what the last seconds looked like and which regions still tick.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use purview::scene::RegionId;
use serde::Serialize;

use super::RegionHandle;
use super::api::Shared;
use super::quantiles::{TickSum, TickTimes};

/// Time between samples.
const EVERY: Duration = Duration::from_secs(1);
/// Samples kept: what "recent" means, in seconds.
const KEPT: usize = 10;
/// A region that has not ticked for so long is not alive.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(3);

/// Counters of all regions at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    at: Option<Instant>,
    ticks: TickSum,
    frames: u64,
    updates: u64,
    handoffs: u64,
}

/// What the last seconds looked like.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Recent {
    /// How long a time this covers.
    pub seconds: f64,
    /// Tick times within it.
    pub tick_ms: TickTimes,
    /// Frames given to sessions.
    pub frames_per_s: f64,
    /// Enters, leaves, moves and acts in them.
    pub updates_per_s: f64,
    /// Entities handed to another region.
    pub handoffs_per_s: f64,
}

/// Watches the regions' figures. Time is an argument.
#[derive(Debug, Default)]
pub struct Sampler {
    samples: VecDeque<Sample>,
    /// Per region, how many ticks it had done and when that number last changed.
    ticks: Vec<(RegionId, u64, Instant)>,
}

impl Sampler {
    /// Takes a sample.
    pub fn sample(&mut self, now: Instant, regions: &[RegionHandle]) {
        self.observe(now, regions);
        if self.samples.len() == KEPT + 1 {
            self.samples.pop_front();
        }
        self.samples.push_back(take(now, regions));
    }

    /// What happened between the oldest sample and now.
    pub fn recent(&self, now: Instant, regions: &[RegionHandle]) -> Recent {
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

    /// Regions that have not ticked lately, with how long ago they did; `None` for never.
    pub fn silent(
        &mut self,
        now: Instant,
        regions: &[RegionHandle],
    ) -> Vec<(RegionId, Option<Duration>)> {
        self.observe(now, regions);
        let ago = |at: &Instant| now.saturating_duration_since(*at);
        self.ticks
            .iter()
            .filter(|(_, ticks, at)| *ticks == 0 || ago(at) > SILENCE_LIMIT)
            .map(|(id, ticks, at)| (*id, (*ticks > 0).then(|| ago(at))))
            .collect()
    }

    fn observe(&mut self, now: Instant, regions: &[RegionHandle]) {
        for r in regions {
            let ticks = r.metrics.ticks.load(Relaxed);
            match self.ticks.iter_mut().find(|(id, ..)| *id == r.region) {
                Some((_, known, at)) if *known != ticks => (*known, *at) = (ticks, now),
                Some(_) => {}
                None => self.ticks.push((r.region, ticks, now)),
            }
        }
    }
}

fn take(now: Instant, regions: &[RegionHandle]) -> Sample {
    let mut sample = Sample { at: Some(now), ..Sample::default() };
    for m in regions.iter().map(|r| &r.metrics) {
        sample.ticks.add(m);
        sample.frames += m.frames.load(Relaxed);
        sample.updates += m.updates.load(Relaxed);
        sample.handoffs += m.handoffs.load(Relaxed);
    }
    sample
}

/// Takes samples for as long as it runs.
pub async fn run(shared: Arc<Shared>) {
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        shared.sampler().sample(Instant::now(), &shared.state.regions);
    }
}
