//! The cluster's clock as a process keeps it: read without a lock by every session and region, corrected
//! by one task that compares it with the clock of the leader.
//!
//! The clock is a line over the machine's monotonic clock. A correction changes the slope of the
//! line from now on, by at most [`RATE_MAX_PPM`]: time never goes back and never skips a tick. Only
//! a process that has not begun to act is put right by a [`ClusterClock::step`].

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use actix_rt::time::Instant;

use crate::clock;

/// The fastest correction, millionths: 5 ms in a second.
pub const RATE_MAX_PPM: i64 = 5_000;

const MILLION: i128 = 1_000_000;

/// A clock that can be corrected.
#[derive(Debug)]
pub struct ClusterClock {
    origin: Instant,
    /// Even: the line is whole. Odd: it is being changed.
    version: AtomicU64,
    /// Nanoseconds since `origin` at which the line begins.
    at: AtomicU64,
    /// The cluster's time there, nanoseconds.
    time: AtomicU64,
    /// How much faster than the machine's clock it goes, millionths.
    ppm: AtomicI64,
    changes: Mutex<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    at: u64,
    time: u64,
    ppm: i64,
}

impl Line {
    /// The cluster's time, so long after the origin.
    fn time_at(self, since: u64) -> u64 {
        let passed = i128::from(since.saturating_sub(self.at));
        let time = i128::from(self.time) + passed + passed * i128::from(self.ppm) / MILLION;
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    /// How long after the origin it is no earlier than `time`.
    fn when(self, time: u64) -> u64 {
        let to_come = i128::from(time.saturating_sub(self.time)) * MILLION;
        let rate = MILLION + i128::from(self.ppm);
        let passed = (to_come + rate - 1) / rate;
        self.at.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }
}

impl ClusterClock {
    /// A clock by which it is `time` now.
    pub fn new(time: Duration) -> ClusterClock {
        ClusterClock {
            origin: clock::now(),
            version: AtomicU64::new(0),
            at: AtomicU64::new(0),
            time: AtomicU64::new(nanos(time)),
            ppm: AtomicI64::new(0),
            changes: Mutex::new(()),
        }
    }

    /// Time on the machine's monotonic clock since this clock was made.
    pub fn machine(&self) -> Duration {
        clock::since(self.origin)
    }

    /// The cluster's time.
    pub fn now(&self) -> Duration {
        let (line, since) = self.line();
        Duration::from_nanos(line.time_at(since))
    }

    /// When it is `time` by this clock, as its rate is now.
    pub fn when(&self, time: Duration) -> Instant {
        self.origin + Duration::from_nanos(self.line().0.when(nanos(time)))
    }

    /// How much faster than the machine's clock it goes, millionths.
    pub fn rate_ppm(&self) -> i64 {
        self.ppm.load(Ordering::Relaxed)
    }

    /// From now on it goes faster by so many millionths, or slower, at most [`RATE_MAX_PPM`].
    pub fn set_rate(&self, ppm: i64) {
        let ppm = ppm.clamp(-RATE_MAX_PPM, RATE_MAX_PPM);
        self.change(|line, since| Line { at: since, time: line.time_at(since), ppm });
    }

    /// Puts it on by so many nanoseconds, or back. Only for a process that has not begun to act.
    pub fn step(&self, by: i64) {
        self.change(|line, since| {
            let time = line.time_at(since).saturating_add_signed(by);
            Line { at: since, time, ppm: line.ppm }
        });
    }

    fn change(&self, to: impl FnOnce(Line, u64) -> Line) {
        let _one = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let (line, _) = self.line();
        // No time is read from the old line after this one, so the new line must begin after it.
        self.version.fetch_add(1, Ordering::SeqCst);
        let line = to(line, nanos(self.machine()));
        self.at.store(line.at, Ordering::SeqCst);
        self.time.store(line.time, Ordering::SeqCst);
        self.ppm.store(line.ppm, Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    /// The line between two changes, and nanoseconds since `origin` at a moment when it held.
    fn line(&self) -> (Line, u64) {
        loop {
            let before = self.version.load(Ordering::SeqCst);
            let line = Line {
                at: self.at.load(Ordering::SeqCst),
                time: self.time.load(Ordering::SeqCst),
                ppm: self.ppm.load(Ordering::SeqCst),
            };
            let since = nanos(self.machine());
            if before.is_multiple_of(2) && self.version.load(Ordering::SeqCst) == before {
                return (line, since);
            }
            std::hint::spin_loop();
        }
    }
}

/// 584 years.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use actix_rt::time::sleep;

    use super::*;

    const S: u64 = 1_000_000_000;

    #[tokio::test(start_paused = true)]
    async fn it_goes_by_the_machine_until_its_rate_changes_and_leaps_at_no_change() {
        let clock = ClusterClock::new(Duration::from_secs(50));
        sleep(Duration::from_secs(10)).await;
        assert_eq!(clock.now(), Duration::from_secs(60));
        clock.set_rate(5_000);
        assert_eq!(clock.now(), Duration::from_secs(60));
        sleep(Duration::from_secs(10)).await;
        assert_eq!(clock.now(), Duration::from_millis(70_050));
        clock.set_rate(-5_000);
        sleep(Duration::from_secs(10)).await;
        assert_eq!(clock.now(), Duration::from_secs(80));
        clock.set_rate(1_000_000);
        assert_eq!(clock.rate_ppm(), RATE_MAX_PPM);
        assert_eq!(clock.machine(), Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tick_has_begun_when_it_is_said_to_begin() {
        let clock = ClusterClock::new(Duration::from_millis(7));
        for ppm in [0, 1, -1, 4_999, -4_999] {
            clock.set_rate(ppm);
            for ms in [100, 250, 99_999] {
                let due = clock.now() + Duration::from_millis(ms);
                let at = nanos(clock.when(due) - clock.origin);
                assert!(clock.line().0.time_at(at) >= nanos(due), "{ppm} {ms}");
                assert!(clock.line().0.time_at(at - 2) < nanos(due), "{ppm} {ms}");
            }
            sleep(Duration::from_millis(333)).await;
        }
        assert_eq!(
            clock.when(Duration::ZERO) - clock.origin,
            clock.machine() - Duration::from_millis(333)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_stepped_both_ways() {
        let clock = ClusterClock::new(Duration::from_secs(50));
        clock.step(-20 * S as i64);
        assert_eq!(clock.now(), Duration::from_secs(30));
        clock.step(S as i64);
        assert_eq!(clock.now(), Duration::from_secs(31));
        clock.step(i64::MIN);
        assert_eq!(clock.now(), Duration::ZERO);
    }

    #[test]
    fn readers_see_no_time_go_back_during_a_change() {
        let clock = ClusterClock::new(Duration::from_secs(1));
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = Duration::ZERO;
                    while !stop.load(Ordering::Relaxed) {
                        let now = clock.now();
                        assert!(now >= last, "{now:?} after {last:?}");
                        last = now;
                    }
                });
            }
            for n in 0..20_000 {
                clock.set_rate(if n % 2 == 0 { RATE_MAX_PPM } else { -RATE_MAX_PPM });
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
