//! Shows the counters of logic workers, and how many there are.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::DescriptorEncoder;

use super::hub::Hub;
use crate::admin::WorkerStatus;
use crate::metrics::{Collector, Families};

#[derive(Debug)]
pub struct LogicMetrics(pub Arc<Hub>);

impl Collector for LogicMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families::from(encoder);
        let workers = self.0.status();
        let help = "Logic workers by what they are, now";
        let mut now = families.gauges("purview_logic_workers", help)?;
        for state in WorkerStatus::STATES {
            let of_state = workers.iter().filter(|worker| worker.state() == state);
            now.gauge(&[("state", state)], of_state.count() as u64)?;
        }
        let bytes: u64 = workers.iter().map(|worker| worker.waiting_bytes).sum();
        let help = "Bytes that wait for workers";
        families.gauge("purview_logic_waiting_bytes", help, bytes)?;
        let m = &self.0.metrics;
        let counters: [(_, _, &AtomicU64); 11] = [
            ("sessions", "Sessions of workers that began", &m.sessions),
            ("leases", "Leases of regions that began", &m.leases),
            ("takeovers", "Leases that ended with a worker late or gone", &m.taken_over),
            ("late_workers", "Times at which a worker was late", &m.late),
            (
                "malformed_streams",
                "Streams that ended at a malformed request",
                &m.malformed_streams,
            ),
            ("answers", "Answers of workers that counted", &m.answers),
            ("late_answers", "Answers of workers whose leases had ended", &m.late_answers),
            ("commands", "Commands that were taken", &m.commands),
            ("refused_commands", "Commands that were refused", &m.refused_commands),
            ("missed_actions", "Actions that no worker is told of", &m.missed),
            ("denied_calls", "Calls without a token, or with a wrong one", &m.denied),
        ];
        families.counters_of("purview_logic", &counters)?;
        m.connections.encode("purview_logic", &mut families)
    }
}
