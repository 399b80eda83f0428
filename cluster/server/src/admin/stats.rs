//! The figures of regions and process as JSON for the page.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use purview::actor::region::metrics::RegionMetrics;
use purview::scene::{RegionId, SceneId};
use serde::Serialize;

use super::process::Usage;
use super::quantiles::{TickSum, TickTimes, tick_times};
use super::sampler::Recent;
use super::shapes;

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

    #[test]
    fn stats_add_the_regions_up() {
        let m = region();
        let usage = Usage { cpu_s: Some(1.5), rss_bytes: Some(4096), peak_rss_bytes: None };
        let regions = [(SceneId(0), RegionId(0), &m), (SceneId(1), RegionId(4), &m)];
        let stats = stats("n1", regions.into_iter(), usage, Duration::ZERO, Recent::default());
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
