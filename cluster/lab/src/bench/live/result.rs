//! What server and bots have used and done, and the result of a measurement.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use anyhow::Context;
use purview::actor::region::metrics::{RegionMetrics, TICK_BUCKETS_US};
use purview_server::process::ServerReach;
use serde::{Deserialize, Serialize};

use super::BenchLiveArgs;
use crate::bench::{Shown, cpu_us_of_process};
use crate::load::report::DisplayedErrorCm;
use crate::oracle::{Example, Updates, Violations};
use crate::usage::Cpu;

/// The sums since the start, at one moment.
pub(super) struct Usage {
    at: Instant,
    /// The server's process, and its CPU seconds exactly.
    server: Cpu,
    server_s: f64,
    bots: Cpu,
    /// The regions' work in ticks, seconds; of this, the delivery of frames.
    tick_s: f64,
    delivery_s: f64,
    /// Each region's ticks and tick buckets, summed.
    ticks: u64,
    buckets: [u64; 25],
    skipped: u64,
    pub(super) players: u64,
    /// Messages to clients and their bytes.
    messages: u64,
    bytes: u64,
}

impl Usage {
    pub(super) fn of(reach: &ServerReach, bots: u32) -> anyhow::Result<Usage> {
        let sum = |of: fn(&RegionMetrics) -> &AtomicU64| -> u64 {
            reach.hosted.now().iter().map(|r| of(&r.metrics).load(Relaxed)).sum()
        };
        let mut buckets = [0; 25];
        for region in reach.hosted.now().iter() {
            for (total, n) in buckets.iter_mut().zip(region.metrics.tick_buckets()) {
                *total += n;
            }
        }
        Ok(Usage {
            at: Instant::now(),
            server: Cpu::of("self").context("the CPU time of this process is unknown")?,
            server_s: cpu_us_of_process() / 1e6,
            bots: Cpu::of(bots).unwrap_or_default(),
            tick_s: sum(|m| &m.tick_us_sum) as f64 / 1e6,
            delivery_s: sum(|m| &m.delivery_ns_sum) as f64 / 1e9,
            ticks: sum(|m| &m.ticks),
            buckets,
            skipped: sum(|m| &m.skipped_ticks),
            players: sum(|m| &m.players),
            messages: reach.gateway.messages_out.load(Relaxed),
            bytes: reach.gateway.bytes_out.load(Relaxed),
        })
    }
}

/// What the bots report, as far as it is needed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct BotsReport {
    updates: Updates,
    displayed_error_cm: DisplayedErrorCm,
    violations: Violations,
    frames: u64,
    frames_missing: u64,
    not_joined: u64,
    /// The first violations of each kind, and why bots have not joined.
    examples: Vec<Example>,
}

/// CPU microseconds per player and tick.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Shares {
    total: f64,
    /// The regions' ticks without the delivery of frames.
    scene: f64,
    /// Frames are encoded and given to sessions.
    delivery: f64,
    /// Session actors, connections and runtime.
    sessions: f64,
    kernel: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct LiveBench {
    players: u32,
    seconds: f64,
    us_per_player_tick: Shares,
    /// Players whose ticks fill one core.
    players_per_core: f64,
    bots_us_per_player_tick: f64,
    /// A region's tick: the mean, and the upper bound of the bucket with the 99th percentile.
    tick_mean_ms: f64,
    tick_p99_ms: f64,
    ticks_skipped: u64,
    /// Messages per player and tick: one if no two frames were merged.
    messages_per_player_tick: f64,
    bytes_per_client_s: f64,
    #[serde(flatten)]
    bots: BotsReport,
}

impl LiveBench {
    pub(super) fn of(
        args: &BenchLiveArgs,
        before: &Usage,
        after: &Usage,
        bots: BotsReport,
    ) -> LiveBench {
        let seconds = (after.at - before.at).as_secs_f64();
        let player_ticks = f64::from(args.players) * seconds * 1e3 / args.tick as f64;
        let us = |s: f64| s * 1e6 / player_ticks;
        let delivery_s = after.delivery_s - before.delivery_s;
        let tick_s = after.tick_s - before.tick_s;
        let total_s = after.server_s - before.server_s;
        // The regions' time is by the clock; on a core of its own that is CPU time without system calls.
        let kernel_s = after.server.kernel_s - before.server.kernel_s;
        let buckets: [u64; 25] = std::array::from_fn(|i| after.buckets[i] - before.buckets[i]);
        let bytes = (after.bytes - before.bytes) as f64;
        LiveBench {
            players: args.players,
            seconds,
            us_per_player_tick: Shares {
                total: us(total_s),
                scene: us(tick_s - delivery_s),
                delivery: us(delivery_s),
                sessions: us((total_s - kernel_s - tick_s).max(0.0)),
                kernel: us(kernel_s),
            },
            players_per_core: args.tick as f64 * 1e3 / us(total_s).max(f64::MIN_POSITIVE),
            bots_us_per_player_tick: us(after.bots.total_s() - before.bots.total_s()),
            tick_mean_ms: tick_s * 1e3 / (after.ticks - before.ticks).max(1) as f64,
            tick_p99_ms: p99_ms(&buckets),
            ticks_skipped: after.skipped - before.skipped,
            messages_per_player_tick: (after.messages - before.messages) as f64 / player_ticks,
            bytes_per_client_s: bytes / f64::from(args.players.max(1)) / seconds,
            bots,
        }
    }
}

/// The upper bound of the bucket with the 99th percentile, milliseconds; infinite in the last bucket.
fn p99_ms(buckets: &[u64; 25]) -> f64 {
    let all: u64 = buckets.iter().sum();
    let mut upto = 0;
    let full = buckets.iter().position(|n| {
        upto += n;
        upto * 100 >= all * 99
    });
    let bound = full.and_then(|i| TICK_BUCKETS_US.get(i));
    bound.map_or(f64::INFINITY, |us| *us as f64 / 1e3)
}

impl Shown for LiveBench {
    /// Whether every update was delivered and no view was wrong.
    fn is_valid(&self) -> bool {
        let BotsReport { updates, violations, not_joined, .. } = &self.bots;
        violations.total() == 0 && *not_joined == 0 && updates.delivered == updates.expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_p99_is_the_bound_of_its_bucket() {
        let mut buckets = [0; 25];
        buckets[3] = 98;
        buckets[9] = 1;
        buckets[24] = 1;
        assert_eq!(p99_ms(&buckets), 1.0);
        buckets[24] = 5;
        assert_eq!(p99_ms(&buckets), f64::INFINITY);
    }
}
