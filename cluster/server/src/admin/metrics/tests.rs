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
        let start = format!("purview_tick_seconds_bucket{{scene=\"a\",region=\"0\",le=\"{le}\"}} ");
        text.lines().find_map(|l| l.strip_prefix(&start)).unwrap().parse::<u64>().unwrap()
    };
    assert_eq!([of("1e-05"), of("0.0003"), of("0.0005"), of("0.25"), of("+Inf")], [1, 1, 3, 3, 4]);
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

/// A region of a scene with one player that has handed over two entities.
fn handle(scene: u16, region: u32) -> Figures {
    let metrics = RegionMetrics::default();
    metrics.players.store(u64::from(region % 50), Relaxed);
    metrics.handoffs.store(2, Relaxed);
    metrics.tick_took(400);
    (SceneId(scene), RegionId(region), Arc::new(metrics))
}

#[derive(Debug)]
struct Sums(Vec<Figures>, Mutex<Totals>, RegionSeries);

impl Collector for &'static Sums {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut totals = self.1.lock();
        write_sums(&mut encoder.into(), (&self.0, &mut totals), self.2, |_| "field")
    }
}

fn text_of_sums(regions: Vec<Figures>, totals: &mut Totals, series: RegionSeries) -> String {
    let sums = Sums(regions, Mutex::new(std::mem::take(totals)), series);
    let sums: &'static Sums = Box::leak(Box::new(sums));
    let text = text_of(sums);
    *totals = std::mem::take(&mut *sums.1.lock());
    text
}

fn series(text: &str) -> usize {
    text.lines().filter(|line| !line.starts_with('#')).count()
}

#[test]
fn series_are_bounded_with_a_thousand_regions_and_after_five_hundred_splits() {
    for (kind, most) in [(RegionSeries::Top, 200), (RegionSeries::Off, 110)] {
        let (mut totals, mut regions) = (Totals::default(), Vec::new());
        regions.extend((0..1_000).map(|region| handle(0, region)));
        let text = text_of_sums(regions.clone(), &mut totals, kind);
        assert!(series(&text) < most, "{kind:?}: {}", series(&text));
        // Each split ends a region and makes two.
        for split in 0..500 {
            regions.remove(0);
            regions.extend([handle(0, 10_000 + 2 * split), handle(0, 10_001 + 2 * split)]);
            text_of_sums(regions.clone(), &mut totals, kind);
        }
        let text = text_of_sums(regions.clone(), &mut totals, kind);
        assert!(series(&text) < most, "{kind:?}: {}", series(&text));
        // What ended regions have counted stays: 1,000 at first, and 1,000 more.
        let handoffs = "purview_handoffs_total{scene=\"field\",region=\"all\"} 4000";
        assert!(text.lines().any(|line| line == handoffs), "{text}");
        let ticks = "purview_tick_seconds_count{scene=\"field\",region=\"all\"} 2000";
        assert!(text.lines().any(|line| line == ticks), "{text}");
    }
}
