//! Shows the counters of logic workers, and how many there are.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use prometheus_client::encoding::DescriptorEncoder;

use super::hub::Hub;
use crate::metrics::{Collector, Families};

/// Shows the counters.
#[derive(Debug)]
pub struct LogicMetrics(pub Arc<Hub>);

impl Collector for LogicMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families::from(encoder);
        let workers = self.0.status();
        let help = "Logic workers by what they are, now";
        let mut now = families.gauges("purview_logic_workers", help)?;
        let count = |of: fn(&crate::admin::WorkerStatus) -> bool| {
            workers.iter().filter(|worker| of(worker)).count() as u64
        };
        now.gauge(&[("state", "connected")], count(|w| w.connected && !w.late))?;
        now.gauge(&[("state", "late")], count(|w| w.connected && w.late))?;
        now.gauge(&[("state", "away")], count(|w| !w.connected))?;
        let bytes: u64 = workers.iter().map(|worker| worker.waiting_bytes).sum();
        let help = "Bytes that wait for workers, or that they have not acknowledged";
        families.gauge("purview_logic_waiting_bytes", help, bytes)?;
        let m = &self.0.metrics;
        for (name, help, counter) in [
            ("sessions", "Sessions of workers that began", &m.sessions),
            ("resumes", "Streams that resumed a session", &m.resumed),
            ("leases", "Leases of regions that began", &m.leases),
            ("takeovers", "Leases that ended since the worker was late or away", &m.taken_over),
            ("late_workers", "Times at which a worker was late", &m.late),
            (
                "malformed_streams",
                "Streams that ended at a malformed request",
                &m.malformed_streams,
            ),
            (
                "replaced_streams",
                "Streams that ended as another one took over the session",
                &m.replaced_streams,
            ),
            ("drops", "Times at which all that waited for a worker was dropped", &m.dropped),
            ("batches", "Batches of commands that were taken", &m.batches),
            ("refused_batches", "Batches of commands that were refused", &m.refused_batches),
            ("commands", "Commands that were taken", &m.commands),
            ("refused_commands", "Commands that were refused", &m.refused_commands),
            ("events", "Events that were sent", &m.events),
            ("missed_actions", "Actions that no worker is told of", &m.missed),
            ("denied_calls", "Calls without a token, or with a wrong one", &m.denied),
        ] {
            families.counter(&format!("purview_logic_{name}"), help, counter.load(Relaxed))?;
        }
        m.connections.encode("purview_logic", &mut families)
    }
}
