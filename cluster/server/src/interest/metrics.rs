//! The counters of the service, and how they are shown.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::encoding::DescriptorEncoder;

use super::limits::Totals;
use crate::admission::Counters;
use crate::metrics::{Collector, Families};

#[derive(Debug, Default)]
pub struct Metrics {
    /// Sessions with a stream, and those without one.
    pub connected: AtomicUsize,
    pub waiting: AtomicUsize,
    pub scenes: AtomicUsize,
    /// Entities, pairs and bytes.
    pub totals: Totals,
    /// Ticks that would have had too many events or pairs.
    pub refused_ticks: AtomicU64,
    /// Waiting sessions that gave way to new ones.
    pub evicted: AtomicU64,
    pub batches: AtomicU64,
    pub items: AtomicU64,
    pub refused: AtomicU64,
    pub ticks: AtomicU64,
    pub late_ticks: AtomicU64,
    pub events: AtomicU64,
    pub positions: AtomicU64,
    pub sent_bytes: AtomicU64,
    pub resumed: AtomicU64,
    pub restarted: AtomicU64,
    pub denied: Arc<AtomicU64>,
    pub connections: Arc<Counters>,
    /// Sessions whose client does not read, now.
    pub blocked: AtomicUsize,
    /// How long sessions were blocked, microseconds.
    pub blocked_us: AtomicU64,
    /// How long batches and ticks took, microseconds.
    pub busy_us: AtomicU64,
}

impl Metrics {
    pub fn ticked(&self, events: usize, positions: usize) {
        self.ticks.fetch_add(1, Relaxed);
        self.events.fetch_add(events as u64, Relaxed);
        self.positions.fetch_add(positions as u64, Relaxed);
    }

    pub fn spent(on: &AtomicU64, time: Duration) {
        on.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }
}

#[derive(Debug)]
pub struct InterestMetrics(pub Arc<Metrics>);

impl Collector for InterestMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families::from(encoder);
        self.gauges(&mut families)?;
        self.counters(&mut families)?;
        self.0.connections.encode("purview_interest", &mut families)
    }
}

impl InterestMetrics {
    fn gauges(&self, families: &mut Families<'_>) -> fmt::Result {
        let of = |gauge: &AtomicUsize| gauge.load(Relaxed) as i64;
        let m = &self.0;
        let help = "Sessions, with a stream and without one";
        let mut sessions = families.gauges("purview_interest_sessions", help)?;
        sessions.gauge(&[("state", "connected")], of(&m.connected))?;
        sessions.gauge(&[("state", "waiting")], of(&m.waiting))?;
        families.gauge("purview_interest_scenes", "Scenes", of(&m.scenes))?;
        for (name, help, total) in [
            ("entities", "Entities", &m.totals.entities),
            ("pairs", "Pairs of observer and subject", &m.totals.pairs),
            ("memory_bytes", "Bytes of scenes and entities, at most", &m.totals.bytes),
            ("buffered_bytes", "Bytes of updates, unread and kept", &m.totals.buffers),
        ] {
            families.gauge(&format!("purview_interest_{name}"), help, of(total))?;
        }
        let help = "Sessions whose client does not read its responses";
        families.gauge("purview_interest_blocked_sessions", help, of(&m.blocked))
    }

    fn counters(&self, families: &mut Families<'_>) -> fmt::Result {
        let m = &self.0;
        let counters: [(_, _, &AtomicU64); 11] = [
            ("batches", "Batches that were taken", &m.batches),
            ("items", "Items of changes, legal or not", &m.items),
            ("refused_items", "Items and changes that were refused", &m.refused),
            ("ticks", "Ticks of scenes", &m.ticks),
            ("late_ticks", "Ticks that were skipped since scenes could not tick", &m.late_ticks),
            ("refused_ticks", "Ticks with too many events or pairs", &m.refused_ticks),
            ("evicted_sessions", "Waiting sessions that gave way to new ones", &m.evicted),
            ("events", "Pairs that appeared or disappeared", &m.events),
            ("positions", "Positions of subjects", &m.positions),
            ("sent_bytes", "Bytes of updates that were sent", &m.sent_bytes),
            ("denied_calls", "Calls without a token, or with a wrong one", &m.denied),
        ];
        families.counters_of("purview_interest", &counters)?;
        for (name, help, counter) in [
            ("blocked_seconds", "Time in which sessions waited for clients to read", &m.blocked_us),
            ("busy_seconds", "Time that batches and ticks took", &m.busy_us),
        ] {
            let seconds = counter.load(Relaxed) as f64 / 1e6;
            families.counter(&format!("purview_interest_{name}"), help, seconds)?;
        }
        let help = "Streams that wanted to resume a session, by outcome";
        let mut resumes = families.counters("purview_interest_resumes", help)?;
        resumes.counter(&[("outcome", "resumed")], m.resumed.load(Relaxed))?;
        resumes.counter(&[("outcome", "restarted")], m.restarted.load(Relaxed))
    }
}
