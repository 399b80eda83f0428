//! The metrics of regions and of the process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use purview::actor::directory::Directory;
use purview::actor::region::metrics::{RegionMetrics, TICK_BUCKETS_US};
use purview::scene::movement::Reason;
use purview::scene::{RegionId, SceneId};

use super::process::{self, Usage};
use super::quantiles::Buckets;
use super::region_series::{Counter, Figures, Sum, Totals, busiest};
use crate::metrics::RegionSeries;
use crate::metrics::{Collector, Families};
use crate::node::hosted::Hosted;

/// A metric of a region: name, kind, help and value.
struct Family {
    name: &'static str,
    kind: MetricType,
    help: &'static str,
    of: fn(&RegionMetrics) -> &AtomicU64,
}

macro_rules! families {
    ($($kind:ident $name:ident $help:literal $field:ident;)*) => {
        [$(Family {
            name: stringify!($name),
            kind: MetricType::$kind,
            help: $help,
            of: |m| &m.$field,
        }),*]
    };
}

const FAMILIES: [Family; 24] = families! {
    Gauge purview_entities "Real entities of the region." reals;
    Gauge purview_players "Players of the region with a session." players;
    Gauge purview_ghosts "Entities of other regions that the region mirrors." ghosts;
    Counter purview_handoffs "Entities handed to another region." handoffs;
    Counter purview_frames "Frames sent to sessions." frames;
    Counter purview_updates "Enters, leaves, moves and actions in frames." updates;
    Counter purview_frames_lost "Frames lost because the queue of a thread's sessions was full." frames_lost;
    Counter purview_borders_lost "Ghost batches lost because a neighbour's mailbox was full." borders_lost;
    Counter purview_outbox_lost "Messages for other regions lost because the queue was full." outbox_lost;
    Counter purview_notices_lost "Notifications for sessions lost because the queue was full." notices_lost;
    Counter purview_inputs_refused "Inputs lost because the region's inbox was full; clients' inputs are sent again." inputs_refused;
    Counter purview_view_messages_lost "View negotiation messages from other regions lost because the inbox was full." view_messages_lost;
    Counter purview_implausible "Messages of other regions with an impossible epoch or tick." implausible;
    Counter purview_other_subjects "Sessions that asked for a player of another subject and were refused." other_subjects;
    Counter purview_view_messages "View negotiation messages sent to other regions." view_messages;
    Counter purview_ticks_skipped "Ticks skipped because the region, or a neighbour that it waited for, was late." skipped_ticks;
    Counter purview_forced_closes "Ticks closed without a late neighbour, after the longest wait." forced_closes;
    Counter purview_acts_dropped "Actions lost because a client's frame was full." acts_dropped;
    Counter purview_moves_waited "Moves that were due and waited for a byte budget, a tick each." moves_waited;
    Counter purview_border_ticks "Neighbours whose ghosts were used, summed over ticks." border_ticks;
    Counter purview_border_ticks_stale "Neighbours whose ghosts were older than the tick, summed over ticks." stale_border_ticks;
    Gauge purview_ghosts_stalest_ticks "Largest age of ghosts since the region's start, in ticks." stalest_ticks;
    Counter purview_arrivals "Entities received from other regions." arrivals;
    Counter purview_arrivals_late "Entities received that acted later than in the tick after their last one in the old region." late_arrivals;
};

fn counters() -> Vec<Counter> {
    let all = FAMILIES.iter().filter(|family| matches!(family.kind, MetricType::Counter));
    all.map(|family| family.of).collect()
}

struct Labelled<'r> {
    scene: &'r str,
    region: String,
    metrics: &'r RegionMetrics,
    buckets: Buckets,
}

/// The label of a sum of regions.
const SUM: &str = "all";
const OTHERS: &str = "others";

impl Labelled<'_> {
    fn labels(&self) -> [(&str, &str); 2] {
        [("scene", self.scene), ("region", &self.region)]
    }
}

#[derive(Debug)]
pub struct RegionCollector {
    pub directory: Arc<Directory>,
    pub regions: Hosted,
    pub series: RegionSeries,
    pub totals: Mutex<Totals>,
}

impl Collector for RegionCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let regions = self.regions.now();
        let scenes: Vec<_> = self.directory.scenes().collect();
        let name = |id: SceneId| {
            scenes.get(usize::from(id.0)).map_or("", |scene| scene.spec.name.as_str())
        };
        match self.series {
            RegionSeries::All => {
                let regions = regions.iter().map(|r| (name(r.scene), r.region, &*r.metrics));
                write_regions(&mut encoder.into(), regions)
            }
            series => {
                let figures = regions.iter().map(|r| (r.scene, r.region, r.metrics.clone()));
                let regions: Vec<Figures> = figures.collect();
                let mut totals = self.totals.lock();
                write_sums(&mut encoder.into(), (&regions, &mut totals), series, name)
            }
        }
    }
}

fn write_regions<'r>(
    out: &mut Families<'_>,
    regions: impl Iterator<Item = (&'r str, RegionId, &'r RegionMetrics)>,
) -> fmt::Result {
    let labelled = |(scene, region, metrics): (&'r str, RegionId, &'r RegionMetrics)| Labelled {
        scene,
        region: region.to_string(),
        metrics,
        buckets: metrics.tick_buckets(),
    };
    let regions: Vec<Labelled<'_>> = regions.map(labelled).collect();
    write_families(out, (&regions, &regions))
}

/// Writes sums of regions: their number is bounded, whatever becomes of the layout.
fn write_sums<'n>(
    out: &mut Families<'_>,
    (regions, totals): (&[Figures], &mut Totals),
    series: RegionSeries,
    name: impl Fn(SceneId) -> &'n str,
) -> fmt::Result {
    let sums = totals.sums(regions, &counters());
    let counted: Vec<Labelled<'_>> = sums
        .iter()
        .map(|(scene, Sum { metrics, buckets })| Labelled {
            scene: name(*scene),
            region: SUM.into(),
            metrics,
            buckets: *buckets,
        })
        .collect();
    let busiest = if series == RegionSeries::Top { busiest(regions) } else { Vec::new() };
    let mut others: BTreeMap<SceneId, RegionMetrics> = BTreeMap::new();
    for (scene, _, metrics) in regions.iter().filter(|(_, region, _)| !busiest.contains(region)) {
        add_gauges(others.entry(*scene).or_default(), metrics);
    }
    let alone = regions.iter().filter(|(_, region, _)| busiest.contains(region));
    let alone = alone.map(|(scene, region, m)| (name(*scene), region.to_string(), &**m));
    let rest = if series == RegionSeries::Top { OTHERS } else { SUM };
    let rest = others.iter().map(|(scene, sum)| (name(*scene), rest.to_owned(), sum));
    let gauges: Vec<Labelled<'_>> = alone
        .chain(rest)
        .map(|(scene, region, metrics)| Labelled { scene, region, metrics, buckets: [0; 25] })
        .collect();
    write_families(out, (&counted, &gauges))
}

fn add_gauges(sum: &RegionMetrics, of: &RegionMetrics) {
    for family in FAMILIES.iter().filter(|family| matches!(family.kind, MetricType::Gauge)) {
        let value = (family.of)(of).load(Relaxed);
        // A sum of ages says nothing.
        match family.name {
            "purview_ghosts_stalest_ticks" => (family.of)(sum).fetch_max(value, Relaxed),
            _ => (family.of)(sum).fetch_add(value, Relaxed),
        };
    }
}

fn write_families(
    out: &mut Families<'_>,
    (counted, gauges): (&[Labelled<'_>], &[Labelled<'_>]),
) -> fmt::Result {
    for family in &FAMILIES {
        let mut samples = out.family(family.name, family.help, family.kind)?;
        let is_counter = matches!(family.kind, MetricType::Counter);
        for region in if is_counter { counted } else { gauges } {
            let value = (family.of)(region.metrics).load(Relaxed);
            match is_counter {
                true => samples.counter(&region.labels(), value)?,
                false => samples.gauge(&region.labels(), value)?,
            }
        }
    }
    write_refusals(out, counted)?;
    write_tick_times(out, counted)
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
    let help = "Time of work in a tick of the region.";
    let mut ticks = out.family("purview_tick_seconds", help, MetricType::Histogram)?;
    for region in regions {
        let bounds = TICK_BUCKETS_US.iter().map(|us| seconds(*us)).chain([f64::INFINITY]);
        let buckets: Vec<_> = bounds.zip(region.buckets).collect();
        let sum = seconds(region.metrics.tick_us_sum.load(Relaxed));
        ticks.histogram(&region.labels(), sum, &buckets)?;
    }
    Ok(())
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

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
mod tests;
