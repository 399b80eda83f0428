//! Keeps this process's clock with the leader's: asks the leader for its time over the links, once
//! a second, as NTP does, and slews. The machine's time of day counts only while there is no
//! leader.
//!
//! ```text
//! joined ── good answer: step ──► set ── every answer: slew ──► set
//!    └───── no answer for a while, or this process leads ───────►┘
//! ```
//!
//! An answer that took `r` says the leader's time to within `r / 2`. Of the last few answers the
//! fastest counts, and a clock that may be right by it is left as it is. A slow answer sets no
//! clock: it only takes away what is surely wrong, and further answers are waited for. What must not
//! happen: a clock that has been set goes back, or steps, while regions or sessions go by it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::RwLock;
use prometheus_client::encoding::DescriptorEncoder;
use purview::actor::cluster_clock::{ClusterClock, RATE_MAX_PPM};
use purview::actor::directory::Directory;
use purview::wire::peer::query::{Answer, Question};
use tokio::sync::watch;

use super::Status;
use super::error::NodeError;
use super::hosted::Hosted;
use super::values::number;
use crate::metrics::{Collector, Families};
use crate::peer::Links;
use crate::storage::{Leases, View};

/// Time between two questions, once the clock is set.
const EVERY: Duration = Duration::from_secs(1);

/// The same before.
const SOON: Duration = Duration::from_millis(50);

/// How long a process waits for the leader's time before it begins to act by its own.
const SET_LIMIT: Duration = Duration::from_secs(3);

/// How long it waits for better answers when some have come.
const ANSWERED_LIMIT: Duration = Duration::from_secs(6);

/// The largest error of an answer that sets a clock alone.
const PRECISE: Duration = Duration::from_millis(20);

/// The smallest offset by which an idle process's clock is stepped and not slewed.
const IDLE_STEP: Duration = Duration::from_millis(50);

/// Of so many answers the fastest counts.
const SAMPLES: usize = 8;

/// How fast an offset is corrected, as far as the greatest rate allows.
const HORIZON: Duration = Duration::from_secs(10);

const NS_PER_S: f64 = 1e9;

/// The value under which the cluster's clock begins: milliseconds of the time of day.
pub(super) const CLOCK: &str = "clock";

/// The value that says what time it was at least: milliseconds of the cluster's clock.
const CLOCK_SEEN: &str = "clock_seen";

/// How often the leader writes that down.
const REMEMBER: Duration = Duration::from_secs(10);

/// The cluster's time for a process that joins at this time of day, until the leader tells it better. It is never
/// before what the cluster has seen, wherever the machine's time of day has gone meanwhile.
pub(super) async fn at_join(store: &dyn Leases, now: Duration) -> Result<Duration, NodeError> {
    let own = Bytes::from(now.as_millis().to_string());
    let began = store.get_or_create(CLOCK, own).await?;
    let began = number(CLOCK, &began.data, "milliseconds of the time of day")?;
    let clock = now.saturating_sub(Duration::from_millis(began));
    let Some(seen) = store.get(CLOCK_SEEN).await? else { return Ok(clock) };
    let seen = number(CLOCK_SEEN, &seen.data, "milliseconds of the cluster's clock")?;
    let seen = Duration::from_millis(seen);
    if clock >= seen {
        return Ok(clock);
    }
    let behind_s = (seen - clock).as_secs_f64();
    tracing::warn!(behind_s, "this machine's time of day is behind the cluster's clock");
    Ok(seen + REMEMBER)
}

/// Saves the time while this process leads, for ever.
pub(super) async fn remember(
    store: Arc<dyn Leases>,
    directory: Arc<Directory>,
    status: watch::Receiver<Status>,
) {
    loop {
        tokio::time::sleep(REMEMBER).await;
        if !status.borrow().leads {
            continue;
        }
        let now = Bytes::from(directory.uptime().as_millis().to_string());
        let written = async {
            let expected = store.get(CLOCK_SEEN).await?.map(|seen| seen.revision);
            store.put_if(CLOCK_SEEN, expected, now).await
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "cannot save the cluster's time now");
        }
    }
}

#[derive(Debug)]
pub(crate) struct ClockStatus {
    clock: Arc<ClusterClock>,
    /// The leader's time minus this process's, nanoseconds.
    offset: AtomicI64,
    /// Largest possible error of it.
    error: AtomicU64,
    answers: AtomicU64,
    /// Whether the process may begin to act by its clock.
    set: watch::Sender<bool>,
}

impl ClockStatus {
    pub(super) fn new(clock: Arc<ClusterClock>) -> Arc<ClockStatus> {
        let (offset, error, answers) = Default::default();
        Arc::new(ClockStatus { clock, offset, error, answers, set: watch::Sender::new(false) })
    }

    /// Whether the process may begin to act by its clock.
    pub(super) fn is_set(&self) -> bool {
        *self.set.borrow()
    }

    /// Waits until it may.
    pub(super) async fn set(&self) {
        let mut set = self.set.subscribe();
        // The sender is here.
        let _set = set.wait_for(|set| *set).await;
    }

    fn is(&self, offset: i64, error: u64) {
        self.offset.store(offset, Relaxed);
        self.error.store(error, Relaxed);
    }
}

impl Collector for ClockStatus {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut out = Families::from(encoder);
        out.gauge(
            "purview_clock_offset_seconds",
            "The leader's clock minus this process's clock.",
            self.offset.load(Relaxed) as f64 / NS_PER_S,
        )?;
        out.gauge(
            "purview_clock_error_seconds",
            "Largest possible error of the offset.",
            self.error.load(Relaxed) as f64 / NS_PER_S,
        )?;
        out.gauge(
            "purview_clock_slew_ratio",
            "How much faster than the machine's clock this process's clock goes now, as a share.",
            self.clock.rate_ppm() as f64 / 1e6,
        )?;
        out.counter(
            "purview_clock_answers",
            "Answers of the leader with its time.",
            self.answers.load(Relaxed),
        )
    }
}

pub(super) fn answer(directory: &Directory) -> Answer {
    let clock_ns = u64::try_from(directory.uptime().as_nanos()).ok();
    Answer { clock_ns, ..Answer::default() }
}

/// One answer. Times are of the machine's clock, which is not corrected, so that an old answer stays true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    /// The leader's time minus the machine's, nanoseconds.
    ahead: i64,
    /// How long the answer took, nanoseconds.
    took: u64,
}

impl Sample {
    fn new(asked: Duration, told: Duration, leader_ns: u64) -> Sample {
        let took = told.saturating_sub(asked);
        let middle = asked + took / 2;
        let ahead = i128::from(leader_ns) - middle.as_nanos() as i128;
        Sample {
            ahead: i64::try_from(ahead).unwrap_or(if ahead < 0 { i64::MIN } else { i64::MAX }),
            took: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// How far it may be from the truth, nanoseconds.
    fn error(self) -> u64 {
        self.took / 2
    }
}

/// The last answers of one leader.
#[derive(Debug, Default)]
struct Samples {
    of: Option<u64>,
    last: VecDeque<Sample>,
}

impl Samples {
    /// Takes an answer of a leader; gives the one that counts.
    fn take(&mut self, of: u64, sample: Sample) -> Sample {
        if self.of.replace(of) != Some(of) {
            self.last.clear();
        }
        self.last.truncate(SAMPLES - 1);
        self.last.push_front(sample);
        self.last.iter().min_by_key(|sample| sample.took).copied().unwrap_or(sample)
    }

    /// Whether the answer that counts is good enough to set a clock by.
    fn suffice(&self, best: Sample) -> bool {
        u128::from(best.error()) <= PRECISE.as_nanos() || self.last.len() >= SAMPLES
    }
}

/// The part of an offset that is no error of the answer. Both in nanoseconds.
fn surely(offset: i64, error: u64) -> i64 {
    let part = offset.unsigned_abs().saturating_sub(error);
    i64::try_from(part).unwrap_or(i64::MAX) * offset.signum()
}

/// By how much a clock is stepped that nothing goes by yet.
fn first_step(offset: i64, error: u64, suffices: bool) -> i64 {
    match (surely(offset, error), suffices) {
        (0, _) => 0,
        (_, true) => offset,
        (part, false) => part,
    }
}

/// The rate that takes an offset away; 0 while the clock may be right. Both in nanoseconds.
fn rate_for(offset: i64, error: u64) -> i64 {
    let surely = i128::from(surely(offset, error).unsigned_abs());
    let ppm = surely * 1_000_000 / (HORIZON.as_nanos() as i128);
    let ppm = i64::try_from(ppm).unwrap_or(RATE_MAX_PPM).min(RATE_MAX_PPM);
    // What is left at last is taken away, too.
    let ppm = if surely > 0 { ppm.max(1) } else { 0 };
    ppm * offset.signum()
}

/// The leader.
enum Leads {
    Nobody,
    This,
    Other(u64),
}

pub(super) struct Follower {
    pub(super) directory: Arc<Directory>,
    pub(super) links: Links,
    pub(super) views: Arc<RwLock<View>>,
    pub(super) hosted: Hosted,
    pub(super) status: Arc<ClockStatus>,
}

impl Follower {
    /// Keeps the clock right, for ever.
    pub(super) async fn run(self) {
        let begun = tokio::time::Instant::now();
        let (mut samples, status) = (Samples::default(), &self.status);
        loop {
            tokio::time::sleep(if status.is_set() { EVERY } else { SOON }).await;
            let mut limit = SET_LIMIT;
            match leads(&self.views, &self.links) {
                Leads::Nobody => status.clock.set_rate(0),
                Leads::This => {
                    // Its clock is the cluster's.
                    status.clock.set_rate(0);
                    status.is(0, 0);
                    status.set.send_replace(true);
                }
                Leads::Other(leader) => match self.ask(leader).await {
                    Some(sample) => {
                        let best = samples.take(leader, sample);
                        self.correct(best, samples.suffice(best));
                        limit = ANSWERED_LIMIT;
                    }
                    // It was slewed by what was known then.
                    None => status.clock.set_rate(0),
                },
            }
            if !status.is_set() && begun.elapsed() > limit {
                tracing::warn!("the leader does not send its time: this process uses its own");
                status.set.send_replace(true);
            }
        }
    }

    async fn ask(&self, leader: u64) -> Option<Sample> {
        let asked = self.status.clock.machine();
        let answer = self.links.ask(leader, Question::Clock).await;
        let told = self.status.clock.machine();
        answer?.clock_ns.map(|leader_ns| Sample::new(asked, told, leader_ns))
    }

    /// Whether no region and no session goes by the clock.
    fn is_idle(&self) -> bool {
        self.hosted.now().is_empty() && !self.directory.has_sessions()
    }

    /// Steps a clock that is not set yet, or that nothing goes by, else slews it.
    fn correct(&self, best: Sample, suffices: bool) {
        let (status, error) = (&self.status, best.error());
        let clock = &status.clock;
        status.answers.fetch_add(1, Relaxed);
        let corrected = i128::from(best.ahead) + clock.machine().as_nanos() as i128;
        let offset = corrected - clock.now().as_nanos() as i128;
        let offset = i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX });
        status.is(offset, error);
        if !status.is_set() {
            self.step(offset, first_step(offset, error, suffices), error);
            if suffices {
                status.set.send_replace(true);
            }
            return;
        }
        let part = surely(offset, error);
        if u128::from(part.unsigned_abs()) > IDLE_STEP.as_nanos() && self.is_idle() {
            clock.set_rate(0);
            return self.step(offset, part, error);
        }
        clock.set_rate(rate_for(offset, error));
    }

    fn step(&self, offset: i64, by: i64, error: u64) {
        if by == 0 {
            return;
        }
        let seconds = |ns: i64| ns as f64 / NS_PER_S;
        tracing::info!(
            offset_s = seconds(offset),
            by_s = seconds(by),
            "the clock is set by the leader's"
        );
        self.status.clock.step(by);
        self.status.is(offset.saturating_sub(by), error);
    }
}

fn leads(views: &RwLock<View>, links: &Links) -> Leads {
    let view = views.read();
    let node = view.leader.as_ref().and_then(|leader| view.nodes.get(&leader.incarnation));
    match node.map(|node| node.process) {
        None => Leads::Nobody,
        Some(process) if process == links.process() => Leads::This,
        Some(process) => Leads::Other(process),
    }
}

#[cfg(test)]
mod tests {
    use purview::scene::Epoch;

    use super::*;
    use crate::storage::leases::embedded::Embedded;

    const MS: i64 = 1_000_000;

    #[test]
    fn an_offset_is_taken_away_beyond_what_may_be_an_error() {
        for (offset, error, ppm) in [
            (0, 0, 0),
            (2 * MS, 2 * MS as u64, 0),
            (-2 * MS, 3 * MS as u64, 0),
            (12 * MS, 2 * MS as u64, 1_000),
            (-12 * MS, 2 * MS as u64, -1_000),
            (60_000 * MS, MS as u64, RATE_MAX_PPM),
            (i64::MIN, 0, -RATE_MAX_PPM),
            (1, 0, 1),
        ] {
            assert_eq!(rate_for(offset, error), ppm, "{offset} {error}");
        }
    }

    #[test]
    fn a_slow_answer_takes_away_what_is_surely_wrong_and_no_more() {
        let ms = |ms: i64| ms * MS;
        let error = |ms: u64| ms * MS as u64;
        for (offset, error, suffices, step) in [
            (ms(887), error(888), false, 0),
            (ms(887), error(800), false, ms(87)),
            (ms(-887), error(800), false, ms(-87)),
            (ms(-887), error(800), true, ms(-887)),
            (ms(30), error(20), true, ms(30)),
            (ms(15), error(20), true, 0),
            (i64::MIN, 0, false, -i64::MAX),
        ] {
            assert_eq!(first_step(offset, error, suffices), step, "{offset} {error} {suffices}");
        }
    }

    #[test]
    fn a_clock_is_set_by_one_precise_answer_or_by_the_best_of_several() {
        let mut samples = Samples::default();
        let slow = Sample { ahead: 5, took: 41 * MS as u64 };
        for n in 1..SAMPLES {
            let best = samples.take(1, slow);
            assert!(!samples.suffice(best), "{n}");
        }
        let mut others = Samples { last: samples.last.clone(), ..Samples::default() };
        let best = samples.take(1, slow);
        assert!(samples.suffice(best));
        let fast = Sample { ahead: 5, took: 40 * MS as u64 };
        let best = others.take(1, fast);
        assert!(others.suffice(best));
        let best = others.take(2, slow);
        assert!(!others.suffice(best), "another leader");
    }

    #[test]
    fn of_the_last_answers_of_one_leader_the_fastest_counts() {
        let mut samples = Samples::default();
        let sample = |ahead, took| Sample { ahead, took };
        assert_eq!(samples.take(1, sample(5, 90)), sample(5, 90));
        assert_eq!(samples.take(1, sample(7, 20)), sample(7, 20));
        for n in 0..SAMPLES as i64 - 1 {
            assert_eq!(samples.take(1, sample(n, 50)), sample(7, 20));
        }
        assert_eq!(samples.take(1, sample(9, 50)).took, 50, "it is too old");
        assert_eq!(samples.take(2, sample(1, 99)), sample(1, 99), "another leader");
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_of_day_that_went_back_does_not_take_the_cluster_back() {
        let store = Embedded::new(Epoch(0));
        let s = Duration::from_secs;
        assert_eq!(at_join(&store, s(1_000)).await.unwrap(), s(0));
        assert_eq!(at_join(&store, s(1_060)).await.unwrap(), s(60));
        store.put_if(CLOCK_SEEN, None, Bytes::from_static(b"70000")).await.unwrap();
        assert_eq!(at_join(&store, s(1_090)).await.unwrap(), s(90));
        assert_eq!(at_join(&store, s(1_060)).await.unwrap(), s(80));
        assert_eq!(at_join(&store, s(0)).await.unwrap(), s(80));
    }

    #[test]
    fn an_answer_tells_the_time_in_the_middle_of_its_way() {
        let ms = Duration::from_millis;
        let sample = Sample::new(ms(100), ms(120), 5_010 * MS as u64);
        assert_eq!(sample, Sample { ahead: 4_900 * MS, took: 20 * MS as u64 });
        let behind = Sample::new(ms(5_000), ms(5_000), 0);
        assert_eq!(behind, Sample { ahead: -5_000 * MS, took: 0 });
    }
}
