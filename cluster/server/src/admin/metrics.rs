//! The figures of regions and process: as metrics in Prometheus text format, and as JSON for the
//! page.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use purview::actor::region::metrics::{RegionMetrics, TICK_BUCKETS_US};
use purview::scene::movement::Reason;
use purview::scene::{RegionId, SceneId};
use serde::Serialize;

use super::process::Usage;
use super::quantiles::{TickSum, TickTimes, tick_times};
use super::sampler::Recent;
use super::shapes;

/// A metric that every region has.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    of: fn(&RegionMetrics) -> &AtomicU64,
}

const FAMILIES: [Family; 22] = [
    Family {
        name: "purview_entities",
        kind: "gauge",
        help: "Real entities of the region.",
        of: |m| &m.reals,
    },
    Family {
        name: "purview_players",
        kind: "gauge",
        help: "Players of the region with a session.",
        of: |m| &m.players,
    },
    Family {
        name: "purview_ghosts",
        kind: "gauge",
        help: "Entities of other regions that the region mirrors.",
        of: |m| &m.ghosts,
    },
    Family {
        name: "purview_handoffs_total",
        kind: "counter",
        help: "Entities handed to another region.",
        of: |m| &m.handoffs,
    },
    Family {
        name: "purview_frames_total",
        kind: "counter",
        help: "Frames sent to sessions.",
        of: |m| &m.frames,
    },
    Family {
        name: "purview_updates_total",
        kind: "counter",
        help: "Enters, leaves, moves and actions in frames.",
        of: |m| &m.updates,
    },
    Family {
        name: "purview_frames_lost_total",
        kind: "counter",
        help: "Frames lost because a session's mailbox was full.",
        of: |m| &m.frames_lost,
    },
    Family {
        name: "purview_borders_lost_total",
        kind: "counter",
        help: "Ghost batches lost because a neighbour's mailbox was full.",
        of: |m| &m.borders_lost,
    },
    Family {
        name: "purview_outbox_lost_total",
        kind: "counter",
        help: "Messages for other regions lost because the queue was full.",
        of: |m| &m.outbox_lost,
    },
    Family {
        name: "purview_notices_lost_total",
        kind: "counter",
        help: "Notifications for sessions lost because the queue was full.",
        of: |m| &m.notices_lost,
    },
    Family {
        name: "purview_inputs_refused_total",
        kind: "counter",
        help: "Inputs lost because the region's inbox was full; clients' inputs are sent again.",
        of: |m| &m.inputs_refused,
    },
    Family {
        name: "purview_letters_lost_total",
        kind: "counter",
        help: "View negotiation messages from other regions lost because the inbox was full.",
        of: |m| &m.letters_lost,
    },
    Family {
        name: "purview_implausible_total",
        kind: "counter",
        help: "Messages of other regions with an impossible epoch or tick.",
        of: |m| &m.implausible,
    },
    Family {
        name: "purview_view_messages_total",
        kind: "counter",
        help: "View negotiation messages sent to other regions.",
        of: |m| &m.view_messages,
    },
    Family {
        name: "purview_ticks_skipped_total",
        kind: "counter",
        help: "Ticks skipped because the region, or a neighbour that it waited for, was late.",
        of: |m| &m.skipped_ticks,
    },
    Family {
        name: "purview_forced_closes_total",
        kind: "counter",
        help: "Ticks closed without a late neighbour, after the longest wait.",
        of: |m| &m.forced_closes,
    },
    Family {
        name: "purview_acts_dropped_total",
        kind: "counter",
        help: "Actions lost because a client's frame was full.",
        of: |m| &m.acts_dropped,
    },
    Family {
        name: "purview_border_ticks_total",
        kind: "counter",
        help: "Neighbours whose ghosts were used, summed over ticks.",
        of: |m| &m.border_ticks,
    },
    Family {
        name: "purview_border_ticks_stale_total",
        kind: "counter",
        help: "Neighbours whose ghosts were older than the tick, summed over ticks.",
        of: |m| &m.stale_border_ticks,
    },
    Family {
        name: "purview_ghosts_stalest_ticks",
        kind: "gauge",
        help: "Largest age of ghosts since the region's start, in ticks.",
        of: |m| &m.stalest_ticks,
    },
    Family {
        name: "purview_arrivals_total",
        kind: "counter",
        help: "Entities received from other regions.",
        of: |m| &m.arrivals,
    },
    Family {
        name: "purview_arrivals_late_total",
        kind: "counter",
        help: "Entities received that acted later than in the tick after their last one in the old region.",
        of: |m| &m.late_arrivals,
    },
];

/// The metrics of these regions (each with its scene's name) and of the process.
pub fn text(
    regions: &[(&str, RegionId, &RegionMetrics)],
    usage: Usage,
    uptime: Duration,
) -> String {
    let mut out = String::with_capacity(4096 + regions.len() * 4096);
    let labels: Vec<String> = regions
        .iter()
        .map(|(scene, region, _)| format!("scene=\"{}\",region=\"{region}\"", escaped(scene)))
        .collect();
    head(&mut out, "purview_build_info", "gauge", "Always 1; the version is a label.");
    line(&mut out, "purview_build_info", concat!("version=\"", env!("CARGO_PKG_VERSION"), "\""), 1);
    head(
        &mut out,
        "purview_uptime_seconds",
        "gauge",
        "Time on the scene clock: since the start of a single process, of the cluster, or of the kept data.",
    );
    line(&mut out, "purview_uptime_seconds", "", uptime.as_secs_f64());
    for f in &FAMILIES {
        head(&mut out, f.name, f.kind, f.help);
        for ((.., m), labels) in regions.iter().zip(&labels) {
            line(&mut out, f.name, labels, (f.of)(m).load(Relaxed));
        }
    }
    let name = "purview_moves_refused_total";
    head(&mut out, name, "counter", "Move commands refused, by reason.");
    for ((.., m), labels) in regions.iter().zip(&labels) {
        for (reason, count) in Reason::WORDS.iter().zip(&m.moves_refused) {
            line(&mut out, name, &format!("{labels},reason=\"{reason}\""), count.load(Relaxed));
        }
    }
    head(&mut out, "purview_tick_max_seconds", "gauge", "The longest tick so far.");
    for ((.., m), labels) in regions.iter().zip(&labels) {
        let max_us = m.tick_us_max.load(Relaxed);
        line(&mut out, "purview_tick_max_seconds", labels, seconds(max_us));
    }
    head(&mut out, "purview_tick_seconds", "histogram", "Time of work in a tick of the region.");
    for ((.., m), labels) in regions.iter().zip(&labels) {
        histogram(&mut out, labels, m);
    }
    process(&mut out, usage);
    out
}

fn histogram(out: &mut String, labels: &str, m: &RegionMetrics) {
    let sum_us = m.tick_us_sum.load(Relaxed);
    let mut below = 0;
    for (i, n) in m.tick_buckets().into_iter().enumerate() {
        below += n;
        let bound = match TICK_BUCKETS_US.get(i) {
            Some(us) => seconds(*us).to_string(),
            None => "+Inf".into(),
        };
        line(out, "purview_tick_seconds_bucket", &format!("{labels},le=\"{bound}\""), below);
    }
    line(out, "purview_tick_seconds_sum", labels, seconds(sum_us));
    line(out, "purview_tick_seconds_count", labels, below);
}

fn process(out: &mut String, usage: Usage) {
    let name = "purview_log_lines_dropped_total";
    head(out, name, "counter", "Log lines dropped because the output is not read.");
    line(out, name, "", crate::logs::dropped());
    if let Some(s) = usage.cpu_s {
        let name = "process_cpu_seconds_total";
        head(out, name, "counter", "User and system CPU time, in seconds.");
        line(out, name, "", s);
    }
    if let Some(bytes) = usage.rss_bytes {
        let name = "process_resident_memory_bytes";
        head(out, name, "gauge", "Resident memory, in bytes.");
        line(out, name, "", bytes);
    }
    if let Some(bytes) = usage.peak_rss_bytes {
        let name = "purview_peak_resident_memory_bytes";
        head(out, name, "gauge", "Peak resident memory, in bytes.");
        line(out, name, "", bytes);
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ok = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(out: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ok = match labels {
        "" => writeln!(out, "{name} {value}"),
        labels => writeln!(out, "{name}{{{labels}}} {value}"),
    };
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// `GET /api/stats`. Counters count from the start.
#[derive(Debug, Serialize)]
pub struct Stats {
    pub node: String,
    pub uptime_s: f64,
    pub tick_ms: TickTimes,
    pub cpu_s: Option<f64>,
    pub rss_bytes: Option<u64>,
    pub peak_rss_bytes: Option<u64>,
    #[serde(flatten)]
    pub total: Figures,
    /// The last ten seconds.
    pub recent: Recent,
    pub regions: Vec<RegionStats>,
}

/// The figures of one region or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Figures {
    pub ticks: u64,
    pub skipped_ticks: u64,
    pub forced_closes: u64,
    pub entities: u64,
    pub players: u64,
    pub ghosts: u64,
    pub handoffs: u64,
    pub frames: u64,
    pub updates: u64,
    pub frames_lost: u64,
    pub borders_lost: u64,
    pub view_messages: u64,
}

/// The figures of one region.
#[derive(Debug, Serialize)]
pub struct RegionStats {
    pub scene: SceneId,
    pub region: RegionId,
    pub name: String,
    pub tick_ms: TickTimes,
    #[serde(flatten)]
    pub figures: Figures,
}

impl Figures {
    fn add(&mut self, m: &RegionMetrics) {
        let pairs = [
            (&mut self.ticks, &m.ticks),
            (&mut self.skipped_ticks, &m.skipped_ticks),
            (&mut self.forced_closes, &m.forced_closes),
            (&mut self.entities, &m.reals),
            (&mut self.players, &m.players),
            (&mut self.ghosts, &m.ghosts),
            (&mut self.handoffs, &m.handoffs),
            (&mut self.frames, &m.frames),
            (&mut self.updates, &m.updates),
            (&mut self.frames_lost, &m.frames_lost),
            (&mut self.borders_lost, &m.borders_lost),
            (&mut self.view_messages, &m.view_messages),
        ];
        for (sum, n) in pairs {
            *sum += n.load(Relaxed);
        }
    }
}

/// The figures of these regions and of the process.
pub fn stats<'a>(
    node: &str,
    regions: impl Iterator<Item = (SceneId, RegionId, &'a RegionMetrics)>,
    usage: Usage,
    uptime: Duration,
    recent: Recent,
) -> Stats {
    let mut total = Figures::default();
    let mut ticks = TickSum::default();
    let mut each = Vec::new();
    for (scene, region, m) in regions {
        total.add(m);
        ticks.add(m);
        let mut figures = Figures::default();
        figures.add(m);
        each.push(RegionStats {
            scene,
            region,
            name: shapes::region_name(region),
            tick_ms: tick_times([m]),
            figures,
        });
    }
    Stats {
        node: node.to_owned(),
        uptime_s: uptime.as_secs_f64(),
        tick_ms: ticks.times(),
        cpu_s: usage.cpu_s,
        rss_bytes: usage.rss_bytes,
        peak_rss_bytes: usage.peak_rss_bytes,
        total,
        recent,
        regions: each,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, to_value};

    use super::*;

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

    #[test]
    fn every_figure_has_its_scene_and_region() {
        let m = region();
        let text = text(&[("a", RegionId(0), &m), ("b", RegionId(1), &m)], usage(), Duration::ZERO);
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
        let m = region();
        let text = text(&[("a", RegionId(0), &m)], usage(), Duration::ZERO);
        let of = |le: &str| {
            let start =
                format!("purview_tick_seconds_bucket{{scene=\"a\",region=\"0\",le=\"{le}\"}} ");
            text.lines().find_map(|l| l.strip_prefix(&start)).unwrap().parse::<u64>().unwrap()
        };
        assert_eq!(
            [of("0.00001"), of("0.0003"), of("0.0005"), of("0.25"), of("+Inf")],
            [1, 1, 3, 3, 4]
        );
        assert!(text.contains("purview_tick_seconds_sum{scene=\"a\",region=\"0\"} 0.900805\n"));
        assert!(text.contains("purview_tick_seconds_count{scene=\"a\",region=\"0\"} 4\n"));
    }

    #[test]
    fn the_text_is_well_formed() {
        let m = region();
        let text = text(&[("a \"b\"\\\n", RegionId(0), &m)], usage(), Duration::from_secs(2));
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

    #[test]
    fn stats_add_the_regions_up() {
        let m = region();
        let regions = [(SceneId(0), RegionId(0), &m), (SceneId(1), RegionId(4), &m)];
        let stats = stats("n1", regions.into_iter(), usage(), Duration::ZERO, Recent::default());
        let stats = to_value(stats).unwrap();
        assert_eq!((&stats["players"], &stats["entities"]), (&json!(14), &json!(18)));
        assert_eq!((&stats["ticks"], &stats["tick_ms"]["max"]), (&json!(8), &json!(900.0)));
        assert_eq!((&stats["cpu_s"], &stats["peak_rss_bytes"]), (&json!(1.5), &Value::Null));
        assert_eq!(
            (&stats["regions"][1]["name"], &stats["regions"][1]["scene"]),
            (&json!("R4"), &json!(1))
        );
        assert_eq!(stats["regions"][0]["handoffs"], 3);
        assert_eq!(stats["recent"]["tick_ms"]["p99"], 0.0);
    }
}
