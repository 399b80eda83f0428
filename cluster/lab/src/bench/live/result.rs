//! The result of a measurement, as a table and as JSON.

use std::fmt;

use purview::actor::region::metrics::TICK_BUCKETS_US;
use serde::{Deserialize, Serialize};

use super::BenchLiveArgs;
use super::usage::Usage;
use crate::load::report::DisplayedErrorCm;
use crate::oracle::{Updates, Violations};

/// What is needed of the bots' report.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct BotsReport {
    violations: Violations,
    updates: Updates,
    displayed_error_cm: DisplayedErrorCm,
    not_joined: u64,
    frames: u64,
    frames_missing: u64,
    examples: Vec<BotsExample>,
}

/// An example of what was wrong, as the bots report it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct BotsExample {
    kind: String,
    tick: u64,
    what: String,
}

/// CPU microseconds per player and tick.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Shares {
    /// The server as a whole.
    total: f64,
    /// The regions' ticks without the delivery of frames.
    scene: f64,
    /// Frames are encoded and given to sessions.
    delivery: f64,
    /// Session actors, connections and runtime.
    sessions: f64,
    /// System calls.
    kernel: f64,
}

/// The result of a measurement.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LiveResult {
    players: u32,
    tick_ms: u64,
    regions: u32,
    threads: u16,
    seconds: f64,
    us_per_player_tick: Shares,
    /// Players whose ticks fill one core.
    players_per_core: f64,
    /// The same for the bots' process.
    bots_us_per_player_tick: f64,
    /// A region's tick: the mean, and the upper bound of the bucket with the 99th percentile.
    tick_mean_ms: f64,
    tick_p99_ms: f64,
    ticks_skipped: u64,
    /// Messages per player and tick: one if no two frames were merged.
    messages_per_player_tick: f64,
    bytes_per_client_s: f64,
    updates: Updates,
    /// How far off the bots showed each other.
    displayed_error_cm: DisplayedErrorCm,
    violations: u64,
    frames: u64,
    frames_missing: u64,
    not_joined: u64,
    /// The first violations of each kind, and why bots have not joined.
    examples: Vec<BotsExample>,
}

impl LiveResult {
    pub(super) fn of(
        args: &BenchLiveArgs,
        before: &Usage,
        after: &Usage,
        bots: BotsReport,
    ) -> LiveResult {
        let seconds = (after.at - before.at).as_secs_f64();
        let player_ticks = f64::from(args.players) * seconds * 1e3 / args.tick as f64;
        let us = |s: f64| s * 1e6 / player_ticks;
        let delivery_s = after.delivery_s - before.delivery_s;
        let tick_s = after.tick_s - before.tick_s;
        let total_s = after.server_s - before.server_s;
        // The regions' time is by the clock; on a core of its own that is CPU time without system calls.
        let kernel_s = after.server.kernel_s - before.server.kernel_s;
        let buckets: [u64; 25] = std::array::from_fn(|i| after.buckets[i] - before.buckets[i]);
        let total = us(total_s);
        LiveResult {
            players: args.players,
            tick_ms: args.tick,
            regions: u32::from(args.regions).pow(2),
            threads: args.threads,
            seconds,
            us_per_player_tick: Shares {
                total,
                scene: us(tick_s - delivery_s),
                delivery: us(delivery_s),
                sessions: us((total_s - kernel_s - tick_s).max(0.0)),
                kernel: us(kernel_s),
            },
            players_per_core: args.tick as f64 * 1e3 / total.max(f64::MIN_POSITIVE),
            bots_us_per_player_tick: us((after.bots.user_s + after.bots.kernel_s)
                - (before.bots.user_s + before.bots.kernel_s)),
            tick_mean_ms: tick_s * 1e3 / (after.ticks - before.ticks).max(1) as f64,
            tick_p99_ms: p99_ms(&buckets),
            ticks_skipped: after.skipped - before.skipped,
            messages_per_player_tick: (after.messages - before.messages) as f64 / player_ticks,
            bytes_per_client_s: (after.bytes - before.bytes) as f64
                / f64::from(args.players.max(1))
                / seconds,
            updates: bots.updates,
            displayed_error_cm: bots.displayed_error_cm,
            violations: bots.violations.total(),
            frames: bots.frames,
            frames_missing: bots.frames_missing,
            not_joined: bots.not_joined,
            examples: bots.examples,
        }
    }

    /// Whether every update was delivered and no view was wrong.
    pub(super) fn is_exact(&self) -> bool {
        let u = &self.updates;
        self.violations == 0 && self.not_joined == 0 && u.delivered == u.expected
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

impl fmt::Display for LiveResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shares { total, scene, delivery, sessions, kernel } = self.us_per_player_tick;
        writeln!(
            f,
            "{} players, {} regions, tick {} ms, {} server threads, {:.1} s\n",
            self.players, self.regions, self.tick_ms, self.threads, self.seconds
        )?;
        writeln!(f, "| CPU us per player and tick | | share |\n|---|---|---|")?;
        let rows = [
            ("scene", scene),
            ("delivery", delivery),
            ("sessions", sessions),
            ("kernel", kernel),
            ("server", total),
        ];
        for (name, us) in rows {
            writeln!(f, "| {name} | {us:.2} | {:.0} % |", us / total.max(1e-9) * 100.0)?;
        }
        writeln!(f, "\nplayers per core: {:.0}", self.players_per_core)?;
        writeln!(f, "bots: {:.2} us per player and tick", self.bots_us_per_player_tick)?;
        let (mean, p99) = (self.tick_mean_ms, self.tick_p99_ms);
        let skipped = self.ticks_skipped;
        writeln!(f, "a region's tick: mean {mean:.2} ms, p99 up to {p99} ms, {skipped} skipped")?;
        let (messages, bytes) = (self.messages_per_player_tick, self.bytes_per_client_s);
        writeln!(
            f,
            "messages per player and tick {messages:.3}, {bytes:.0} bytes per client and second"
        )?;
        let u = &self.updates;
        writeln!(
            f,
            "updates: {} of {} delivered; violations {}; frames {} ({} ticks without); not joined {}",
            u.delivered,
            u.expected,
            self.violations,
            self.frames,
            self.frames_missing,
            self.not_joined
        )?;
        let DisplayedErrorCm { near, middle, far } = self.displayed_error_cm;
        let [near, middle, far] = [near, middle, far].map(|ring| ring.p99 as f64 / 100.0);
        writeln!(f, "error p99: near {near:.2} m, middle {middle:.2} m, far {far:.2} m")?;
        let mut examples = self.examples.iter();
        examples.try_for_each(|e| writeln!(f, "  {} at tick {}: {}", e.kind, e.tick, e.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::report::{ErrorCm, Report};
    use crate::oracle::Example;

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

    #[test]
    fn the_bots_report_has_what_is_read_of_it() {
        let what = "client 1: cut off".to_owned();
        let example = Example { kind: "lost", tick: 7, what: what.clone() };
        let far = ErrorCm { p50: 3, p99: 174 };
        let displayed_error_cm = DisplayedErrorCm { far, ..DisplayedErrorCm::default() };
        let examples = vec![example];
        let report = Report { displayed_error_cm, examples, not_joined: 2, ..Report::default() };
        let read: BotsReport = serde_json::from_str(&report.to_json()).unwrap();
        assert_eq!((read.displayed_error_cm, read.not_joined), (displayed_error_cm, 2));
        assert_eq!(read.examples, [BotsExample { kind: "lost".into(), tick: 7, what }]);
    }
}
