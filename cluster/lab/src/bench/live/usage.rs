//! What server and bots have used and done so far.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use anyhow::Context;
use purview::actor::region::metrics::RegionMetrics;
use purview_server::process::Reach;
use rustix::time::{ClockId, clock_gettime};

/// CPU seconds of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Cpu {
    /// In the process's own code.
    pub user_s: f64,
    /// In the kernel, for the process.
    pub kernel_s: f64,
}

/// The sums since the start, at one moment.
#[derive(Debug, Clone)]
pub(super) struct Usage {
    pub at: Instant,
    /// The server's process.
    pub server: Cpu,
    /// CPU seconds of the server's process, exactly.
    pub server_s: f64,
    /// The bots' process.
    pub bots: Cpu,
    /// The regions' work in ticks, seconds; of this, the delivery of frames.
    pub tick_s: f64,
    pub delivery_s: f64,
    /// Each region's ticks and tick buckets, summed.
    pub ticks: u64,
    pub buckets: [u64; 25],
    /// Ticks left out.
    pub skipped: u64,
    pub players: u64,
    /// Messages to clients and their bytes.
    pub messages: u64,
    pub bytes: u64,
}

impl Usage {
    /// Reads everything.
    ///
    /// # Errors
    /// The system does not report a process's CPU time.
    pub(super) fn of(reach: &Reach, bots: u32) -> anyhow::Result<Usage> {
        let sum = |of: fn(&RegionMetrics) -> &AtomicU64| -> u64 {
            reach.hosted.now().iter().map(|r| of(&r.metrics).load(Relaxed)).sum()
        };
        let mut buckets = [0; 25];
        for region in reach.hosted.now().iter() {
            for (total, n) in buckets.iter_mut().zip(region.metrics.tick_buckets()) {
                *total += n;
            }
        }
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Ok(Usage {
            at: Instant::now(),
            server: cpu_of("self")?,
            server_s: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
            bots: cpu_of(&bots.to_string()).unwrap_or_default(),
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

/// The CPU time of a process, to a hundredth of a second.
fn cpu_of(process: &str) -> anyhow::Result<Cpu> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))
        .with_context(|| format!("the CPU time of process {process} is unknown"))?;
    parse(&stat).with_context(|| format!("/proc/{process}/stat is not as expected"))
}

fn parse(stat: &str) -> Option<Cpu> {
    let hz = rustix::param::clock_ticks_per_second().max(1) as f64;
    // The name may contain anything; the last bracket ends it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || Some(fields.next()?.parse::<f64>().ok()? / hz);
    Some(Cpu { user_s: next()?, kernel_s: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_kernel_time_are_read_from_proc() {
        let line = "42 (a (b) c) S 7 42 42 0 -1 4194560 1 2 3 4 500 60 0 0 20 0 1 0 9 8 7";
        let hz = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(parse(line), Some(Cpu { user_s: 500.0 / hz, kernel_s: 60.0 / hz }));
        assert_eq!(parse("42 (a"), None);
        assert!(cpu_of("self").is_ok() && cpu_of("none").is_err());
    }
}
