//! `purview-lab bench prediction`: the loads that balancing predicts for regions of other ground, against what such regions
//! cost. A crowd walks on one region, on two and on four; each layout predicts the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::ensure;
use clap::Args;
use purview::scene::layout::{FIRST_NEW_REGION, Layout, PlaneGroup, Plot};
use purview::scene::load::RegionReport;
use purview::scene::{RegionId, Scene, SceneSpec, Visibility};
use purview_server::node::balance::{Input, Limits, SceneInput, Settings, predict_us};
use serde::Serialize;

use super::interest::waypoint_walkers::WaypointWalkers;
use super::regions::{Clock, scene};
use super::views::Walk;
use super::{Shown, cpu_us, percentile};
use crate::args::positive;
use crate::shown::table;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab bench prediction\n  \
    purview-lab bench prediction --players 3000 --sigma 60 --json\n\n\
    All players walk at 1.4 m/s between places that are normally distributed around one point, 10 ticks per second. \
    Borders go through that point, and past it by its deviation.\n\n\
    Exit codes: 0 done, 1 failed, 2 invalid command line.")]
pub struct BenchPredictionArgs {
    /// The number of players.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub players: u32,
    /// The deviations of the crowds along each axis, metres.
    #[arg(long, value_name = "METRES", value_delimiter = ',', default_value = "20,60,120,250", value_parser = positive)]
    pub sigma: Vec<f64>,
    /// The measured virtual time, seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
}

const LAND_CM: i32 = 3_200;

/// Lands along the side of the map: crowds reach nine deviations.
fn lands(sigma_m: f64) -> i32 {
    (18.0 * sigma_m * 100.0 / f64::from(LAND_CM)).ceil().max(16.0) as i32 / 2 * 2
}

/// Where the map is cut: `x` in two, and `z` in four.
type Cut = (Option<i32>, Option<i32>);

fn layout(lands: i32, (x, z): Cut) -> Layout {
    let sides = |cut: Option<i32>| match cut {
        Some(at) => vec![(0, at), (at, lands)],
        None => vec![(0, lands)],
    };
    let mut plots = Vec::new();
    for (z0, z1) in sides(z) {
        for (x0, x1) in sides(x) {
            let id = RegionId(plots.len() as u32);
            plots.push(Plot { id, group: PlaneGroup(0), x0, z0, x1, z1 });
        }
    }
    Layout { version: 1, next: RegionId(FIRST_NEW_REGION), plots }
}

/// A layout, and what its regions cost and report.
struct Measured {
    layout: Layout,
    us: Vec<f64>,
    reports: BTreeMap<RegionId, RegionReport>,
    /// What the reports took to make, microseconds.
    report_us: f64,
}

/// How far the loads of a layout are from those predicted by another one.
#[derive(Debug, Clone, Serialize)]
struct Row {
    sigma_m: f64,
    /// Where the first border is, metres from the middle of the crowd.
    off_m: f64,
    /// The numbers of regions of both.
    from: usize,
    to: usize,
    /// The sum of the loads of all regions, microseconds per tick.
    measured_us: f64,
    predicted_us: f64,
    /// The error of this sum, and the greatest one of a region by the greatest load.
    error_percent: f64,
    worst_percent: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct PredictionBench {
    rows: Vec<Row>,
    /// The cost of a second's reports by that of the ticks in it, percent: of each layout.
    reports_percent: Vec<f64>,
}

impl Shown for PredictionBench {
    fn text(&self) -> serde_json::Result<String> {
        let errors = self.rows.iter().map(|row| row.error_percent.abs()).collect::<Vec<_>>();
        let [half, most] = [0.5, 1.0].map(|share| percentile(errors.clone(), share));
        let reports = self.reports_percent.iter().copied().fold(0.0, f64::max);
        Ok(format!(
            "{}\nerror of the sum {half:.0} % (p50), {most:.0} % at most\n\
             reports cost at most {reports:.2} % of the ticks of the second that they tell of\n",
            table(&self.rows)?
        ))
    }
}

/// Runs the benchmark.
///
/// # Errors
/// There is no such scene.
pub fn bench_prediction(args: &BenchPredictionArgs) -> anyhow::Result<PredictionBench> {
    let (mut rows, mut reports_percent) = (Vec::new(), Vec::new());
    for &sigma_m in &args.sigma {
        let lands = lands(sigma_m);
        let middle = lands / 2;
        let past = middle + ((sigma_m * 100.0 / f64::from(LAND_CM)).round() as i32).max(1);
        let cuts: [Cut; 5] = [
            (None, None),
            (Some(middle), None),
            (Some(past), None),
            (Some(middle), Some(middle)),
            (Some(past), Some(middle)),
        ];
        let mut all = Vec::new();
        for cut in cuts {
            let layout = layout(lands, cut);
            eprintln!("bench: sigma {sigma_m} m, {} regions", layout.plots.len());
            all.push(measure(args, (sigma_m, lands), layout)?);
        }
        let percent = |of: &Measured| 100.0 * of.report_us / (10.0 * of.us.iter().sum::<f64>());
        reports_percent.extend(all.iter().map(percent));
        for (at, to) in all.iter().enumerate() {
            for from in all.iter().filter(|from| from.us.len() != to.us.len()) {
                let cut = cuts[at].0.unwrap_or(middle);
                let predicted = predicted(lands, from, &to.layout)?;
                let [measured_us, predicted_us] =
                    [&to.us, &predicted].map(|us| us.iter().sum::<f64>());
                let off = predicted.iter().zip(&to.us).map(|(p, m)| (p - m).abs());
                let most = to.us.iter().copied().fold(0.0, f64::max);
                rows.push(Row {
                    sigma_m,
                    off_m: f64::from((cut - middle) * LAND_CM) / 100.0,
                    from: from.us.len(),
                    to: to.us.len(),
                    measured_us,
                    predicted_us,
                    error_percent: 100.0 * (predicted_us / measured_us - 1.0),
                    worst_percent: 100.0 * off.fold(0.0, f64::max) / most,
                });
            }
        }
    }
    Ok(PredictionBench { rows, reports_percent })
}

/// The scene with these regions.
fn scene_of(lands: i32, layout: &Layout) -> anyhow::Result<Arc<Scene>> {
    let spec = SceneSpec {
        name: "bench".into(),
        width_cm: lands * LAND_CM,
        depth_cm: lands * LAND_CM,
        land_cm: LAND_CM,
        region_lands_x: lands,
        region_lands_z: lands,
        visibility: Visibility::Circle { enter_cm: 8_000, leave_cm: 8_500 },
        spawn_x_cm: 0,
        spawn_z_cm: 0,
        ..SceneSpec::default()
    };
    Ok(Arc::new(scene(spec)?.with_layout(layout)?))
}

/// Lets the crowd walk on a layout.
fn measure(
    args: &BenchPredictionArgs,
    (sigma_m, lands): (f64, i32),
    layout: Layout,
) -> anyhow::Result<Measured> {
    let side_cm = lands * LAND_CM;
    let walkers = WaypointWalkers::gathered(args.players as usize, sigma_m * 100.0, side_cm);
    let mut walk = Walk::on(scene_of(lands, &layout)?, walkers)?;
    for _ in 0..30 {
        walk.step();
    }
    walk.regions.clock = Some(Clock::default());
    let ticks = args.seconds * 10;
    for _ in 0..ticks {
        walk.step();
    }
    let clock = walk.regions.clock.take().unwrap_or_default();
    let us = |plot: &Plot| clock.us.get(&plot.id).copied().unwrap_or(0.0) / ticks as f64;
    let us: Vec<f64> = layout.plots.iter().map(us).collect();
    let (begin, mut reports) = (cpu_us(), BTreeMap::new());
    for (plot, us) in layout.plots.iter().zip(&us) {
        let us = *us as f32;
        reports.extend(walk.regions.all.get(&plot.id).map(|r| (plot.id, r.load((us, us), true))));
    }
    let report_us = cpu_us() - begin;
    ensure!(reports.len() == us.len(), "a region is missing");
    Ok(Measured { layout, us, reports, report_us })
}

/// The loads of the regions of a layout, as those of another one report.
fn predicted(lands: i32, from: &Measured, to: &Layout) -> anyhow::Result<Vec<f64>> {
    let band_cm = scene_of(lands, &from.layout)?.border_band_cm();
    let scene = SceneInput {
        name: "bench".into(),
        tick_us: 100_000,
        land_cm: LAND_CM,
        band_cm,
        layout: from.layout.clone(),
        changing: false,
        limits: Limits::default(),
        whole: Vec::new(),
        reserved: Vec::new(),
    };
    let reports = from.reports.clone();
    let input = Input { scenes: vec![scene], reports, ..Input::default() };
    Ok(predict_us(&input, &Settings::default(), "bench", &to.plots))
}
