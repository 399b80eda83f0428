//! The metrics of regions and of the process.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use purview::actor::directory::Directory;
use purview::actor::region::metrics::{RegionMetrics, TICK_BUCKETS_US};
use purview::scene::movement::Reason;
use purview::scene::{RegionId, SceneId};

use super::process::{self, Usage};
use crate::metrics::{Collector, Families};
use crate::node::hosted::Hosted;

/// A metric that every region has.
struct Family {
    /// Without `_total`.
    name: &'static str,
    kind: MetricType,
    help: &'static str,
    of: fn(&RegionMetrics) -> &AtomicU64,
}

const FAMILIES: [Family; 24] = [
    Family {
        name: "purview_entities",
        kind: MetricType::Gauge,
        help: "Real entities of the region.",
        of: |m| &m.reals,
    },
    Family {
        name: "purview_players",
        kind: MetricType::Gauge,
        help: "Players of the region with a session.",
        of: |m| &m.players,
    },
    Family {
        name: "purview_ghosts",
        kind: MetricType::Gauge,
        help: "Entities of other regions that the region mirrors.",
        of: |m| &m.ghosts,
    },
    Family {
        name: "purview_handoffs",
        kind: MetricType::Counter,
        help: "Entities handed to another region.",
        of: |m| &m.handoffs,
    },
    Family {
        name: "purview_frames",
        kind: MetricType::Counter,
        help: "Frames sent to sessions.",
        of: |m| &m.frames,
    },
    Family {
        name: "purview_updates",
        kind: MetricType::Counter,
        help: "Enters, leaves, moves and actions in frames.",
        of: |m| &m.updates,
    },
    Family {
        name: "purview_frames_lost",
        kind: MetricType::Counter,
        help: "Frames lost because the queue of a thread's sessions was full.",
        of: |m| &m.frames_lost,
    },
    Family {
        name: "purview_borders_lost",
        kind: MetricType::Counter,
        help: "Ghost batches lost because a neighbour's mailbox was full.",
        of: |m| &m.borders_lost,
    },
    Family {
        name: "purview_outbox_lost",
        kind: MetricType::Counter,
        help: "Messages for other regions lost because the queue was full.",
        of: |m| &m.outbox_lost,
    },
    Family {
        name: "purview_notices_lost",
        kind: MetricType::Counter,
        help: "Notifications for sessions lost because the queue was full.",
        of: |m| &m.notices_lost,
    },
    Family {
        name: "purview_inputs_refused",
        kind: MetricType::Counter,
        help: "Inputs lost because the region's inbox was full; clients' inputs are sent again.",
        of: |m| &m.inputs_refused,
    },
    Family {
        name: "purview_view_messages_lost",
        kind: MetricType::Counter,
        help: "View negotiation messages from other regions lost because the inbox was full.",
        of: |m| &m.view_messages_lost,
    },
    Family {
        name: "purview_implausible",
        kind: MetricType::Counter,
        help: "Messages of other regions with an impossible epoch or tick.",
        of: |m| &m.implausible,
    },
    Family {
        name: "purview_other_subjects",
        kind: MetricType::Counter,
        help: "Sessions that asked for a player of another subject and were refused.",
        of: |m| &m.other_subjects,
    },
    Family {
        name: "purview_view_messages",
        kind: MetricType::Counter,
        help: "View negotiation messages sent to other regions.",
        of: |m| &m.view_messages,
    },
    Family {
        name: "purview_ticks_skipped",
        kind: MetricType::Counter,
        help: "Ticks skipped because the region, or a neighbour that it waited for, was late.",
        of: |m| &m.skipped_ticks,
    },
    Family {
        name: "purview_forced_closes",
        kind: MetricType::Counter,
        help: "Ticks closed without a late neighbour, after the longest wait.",
        of: |m| &m.forced_closes,
    },
    Family {
        name: "purview_acts_dropped",
        kind: MetricType::Counter,
        help: "Actions lost because a client's frame was full.",
        of: |m| &m.acts_dropped,
    },
    Family {
        name: "purview_moves_waited",
        kind: MetricType::Counter,
        help: "Moves that were due and waited for a byte budget, a tick each.",
        of: |m| &m.moves_waited,
    },
    Family {
        name: "purview_border_ticks",
        kind: MetricType::Counter,
        help: "Neighbours whose ghosts were used, summed over ticks.",
        of: |m| &m.border_ticks,
    },
    Family {
        name: "purview_border_ticks_stale",
        kind: MetricType::Counter,
        help: "Neighbours whose ghosts were older than the tick, summed over ticks.",
        of: |m| &m.stale_border_ticks,
    },
    Family {
        name: "purview_ghosts_stalest_ticks",
        kind: MetricType::Gauge,
        help: "Largest age of ghosts since the region's start, in ticks.",
        of: |m| &m.stalest_ticks,
    },
    Family {
        name: "purview_arrivals",
        kind: MetricType::Counter,
        help: "Entities received from other regions.",
        of: |m| &m.arrivals,
    },
    Family {
        name: "purview_arrivals_late",
        kind: MetricType::Counter,
        help: "Entities received that acted later than in the tick after their last one in the old region.",
        of: |m| &m.late_arrivals,
    },
];

/// A region with its labels.
struct Labelled<'r> {
    scene: &'r str,
    region: String,
    metrics: &'r RegionMetrics,
}

impl Labelled<'_> {
    fn labels(&self) -> [(&str, &str); 2] {
        [("scene", self.scene), ("region", &self.region)]
    }
}

/// The metrics of the regions that run in this process.
#[derive(Debug)]
pub struct RegionCollector {
    pub directory: Arc<Directory>,
    pub regions: Hosted,
}

impl Collector for RegionCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let regions = self.regions.now();
        let scenes: Vec<_> = self.directory.scenes().collect();
        let name = |id: SceneId| {
            scenes.get(usize::from(id.0)).map_or("", |scene| scene.spec.name.as_str())
        };
        let regions = regions.iter().map(|r| (name(r.scene), r.region, &*r.metrics));
        write_regions(&mut encoder.into(), regions)
    }
}

/// Writes the metrics of regions, each with its scene's name.
fn write_regions<'r>(
    out: &mut Families<'_>,
    regions: impl Iterator<Item = (&'r str, RegionId, &'r RegionMetrics)>,
) -> fmt::Result {
    let labelled = |(scene, region, metrics): (&'r str, RegionId, &'r RegionMetrics)| Labelled {
        scene,
        region: region.to_string(),
        metrics,
    };
    let regions: Vec<Labelled<'_>> = regions.map(labelled).collect();
    for family in &FAMILIES {
        let mut samples = out.family(family.name, family.help, family.kind)?;
        for region in &regions {
            let value = (family.of)(region.metrics).load(Relaxed);
            match family.kind {
                MetricType::Counter => samples.counter(&region.labels(), value)?,
                _ => samples.gauge(&region.labels(), value)?,
            }
        }
    }
    write_refusals(out, &regions)?;
    write_tick_times(out, &regions)
}

fn write_refusals(out: &mut Families<'_>, regions: &[Labelled<'_>]) -> fmt::Result {
    let mut refused = out.counters("purview_moves_refused", "Move commands refused, by reason.")?;
    for region in regions {
        let [scene, number] = region.labels();
        for (reason, count) in Reason::NAMES.iter().zip(&region.metrics.moves_refused) {
            refused.counter(&[scene, number, ("reason", reason)], count.load(Relaxed))?;
        }
    }
    Ok(())
}

fn write_tick_times(out: &mut Families<'_>, regions: &[Labelled<'_>]) -> fmt::Result {
    let mut longest = out.gauges("purview_tick_max_seconds", "The longest tick so far.")?;
    for region in regions {
        longest.gauge(&region.labels(), seconds(region.metrics.tick_us_max.load(Relaxed)))?;
    }
    let help = "Time in which frames were encoded and given to sessions, part of the tick's work.";
    let mut delivery = out.counters("purview_frame_delivery_seconds", help)?;
    for region in regions {
        let ns = region.metrics.delivery_ns_sum.load(Relaxed);
        delivery.counter(&region.labels(), ns as f64 / 1e9)?;
    }
    let mut ticks =
        out.histograms("purview_tick_seconds", "Time of work in a tick of the region.")?;
    for region in regions {
        let bounds = TICK_BUCKETS_US.iter().map(|us| seconds(*us)).chain([f64::INFINITY]);
        let buckets: Vec<_> = bounds.zip(region.metrics.tick_buckets()).collect();
        let sum = seconds(region.metrics.tick_us_sum.load(Relaxed));
        ticks.histogram(&region.labels(), sum, &buckets)?;
    }
    Ok(())
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

/// The metrics of the process itself.
#[derive(Debug)]
pub struct ProcessCollector {
    pub directory: Arc<Directory>,
}

impl Collector for ProcessCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        write_process(&mut encoder.into(), process::usage(), self.directory.uptime())
    }
}

fn write_process(out: &mut Families<'_>, usage: Usage, uptime: Duration) -> fmt::Result {
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    out.info("purview_build", "Always 1; the version is a label.", &version)?;
    out.gauge(
        "purview_uptime_seconds",
        "Time on the scene clock: since the start of a single process, of the cluster, or of the kept data.",
        uptime.as_secs_f64(),
    )?;
    out.counter(
        "purview_log_lines_dropped",
        "Log lines dropped because the output is not read.",
        crate::logs::dropped(),
    )?;
    // What the operating system does not report is left out.
    if let Some(s) = usage.cpu_s {
        out.counter("process_cpu_seconds", "User and system CPU time, in seconds.", s)?;
    }
    if let Some(bytes) = usage.rss_bytes {
        out.gauge("process_resident_memory_bytes", "Resident memory, in bytes.", bytes)?;
    }
    if let Some(bytes) = usage.peak_rss_bytes {
        let name = "purview_peak_resident_memory_bytes";
        out.gauge(name, "Peak resident memory, in bytes.", bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::text_of;

    fn region() -> RegionMetrics {
        let m = RegionMetrics::default();
        m.players.store(7, Relaxed);
        m.reals.store(9, Relaxed);
        m.handoffs.store(3, Relaxed);
        for us in [5, 400, 400, 900_000] {
            m.tick_took(us);
        }
        m
    }

    fn usage() -> Usage {
        Usage { cpu_s: Some(1.5), rss_bytes: Some(4096), peak_rss_bytes: None }
    }

    /// Two regions and the process.
    #[derive(Debug)]
    struct Both([(&'static str, RegionId, RegionMetrics); 2]);

    impl Collector for Both {
        fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
            let mut out = encoder.into();
            write_process(&mut out, usage(), Duration::from_secs(2))?;
            write_regions(&mut out, self.0.iter().map(|(scene, id, m)| (*scene, *id, m)))
        }
    }

    /// The metrics of region 0 of scene `a`, region 1 of scene `b`, and the process.
    fn text(a: &'static str, b: &'static str) -> String {
        text_of(Both([(a, RegionId(0), region()), (b, RegionId(1), region())]))
    }

    #[test]
    fn every_figure_has_its_scene_and_region() {
        let text = text("a", "b");
        for line in [
            "# HELP purview_players Players of the region with a session.",
            "# TYPE purview_players gauge",
            "purview_players{scene=\"a\",region=\"0\"} 7",
            "purview_players{scene=\"b\",region=\"1\"} 7",
            "# TYPE purview_handoffs_total counter",
            "purview_handoffs_total{scene=\"a\",region=\"0\"} 3",
            "purview_tick_max_seconds{scene=\"a\",region=\"0\"} 0.9",
            "process_cpu_seconds_total 1.5",
            "process_resident_memory_bytes 4096",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("purview_peak_resident"), "unknown values are left out");
    }

    #[test]
    fn ticks_are_a_cumulative_histogram_in_seconds() {
        let text = text("a", "b");
        let of = |le: &str| {
            let start =
                format!("purview_tick_seconds_bucket{{scene=\"a\",region=\"0\",le=\"{le}\"}} ");
            text.lines().find_map(|l| l.strip_prefix(&start)).unwrap().parse::<u64>().unwrap()
        };
        assert_eq!(
            [of("1e-05"), of("0.0003"), of("0.0005"), of("0.25"), of("+Inf")],
            [1, 1, 3, 3, 4]
        );
        assert!(text.contains("purview_tick_seconds_sum{scene=\"a\",region=\"0\"} 0.900805\n"));
        assert!(text.contains("purview_tick_seconds_count{scene=\"a\",region=\"0\"} 4\n"));
    }

    #[test]
    fn the_text_is_well_formed() {
        let text = text("a \"b\"\\\n", "b");
        assert!(text.contains(r#"scene="a \"b\"\\\n",region="0""#));
        let mut family = String::new();
        let mut seen = std::collections::BTreeSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                family = rest.split(' ').next().unwrap().to_owned();
                assert!(seen.insert(family.clone()), "{family} appears twice");
            } else if !line.starts_with("# HELP ") {
                assert!(line.starts_with(&family), "{line:?} is not of {family}");
                let (_, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line:?}");
            }
        }
    }
}
