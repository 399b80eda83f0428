//! `cost(R)`: the predicted load of any rectangle of lands, with its ghosts.
//!
//! `cost(R) = W(R) + g * band(R)`. `W(R)` is the weight of the entities on R, `band(R)` that of the entities around it
//! that R would mirror. Where the band ends inside of a land, the land's report says how much of its weight it covers.

use purview::scene::layout::Plot;
use purview::scene::load::RegionReport;
use purview::scene::mutants::{self, Mutant};

use super::state::{RegionState, SceneState, meets};

/// What is summed up: weight, weight near each of four borders, players.
const SUMS: usize = 6;
const PLAYERS: usize = 5;

/// The lands around some regions, as sums over all rectangles that begin at its corner.
#[derive(Debug)]
pub(super) struct Window {
    ground: Plot,
    /// Whole lands that the band covers.
    whole: i32,
    ghost: f64,
    sums: Vec<[f64; SUMS]>,
}

impl Window {
    /// The lands of a plot and those that matter to it.
    pub(super) fn new(
        plot: &Plot,
        scene: &SceneState<'_>,
        regions: &[RegionState<'_>],
        ghost: f64,
    ) -> Window {
        let whole = scene.input.band_cm.max(0) / scene.input.land_cm.max(1);
        let by = whole + 1;
        let (x0, z0) = ((plot.x0 - by).max(0), (plot.z0 - by).max(0));
        let ground = Plot { x0, z0, x1: plot.x1 + by, z1: plot.z1 + by, ..*plot };
        let across = (ground.x1 - x0 + 1) as usize;
        let down = (ground.z1 - z0 + 1) as usize;
        let mut window = Window { ground, whole, ghost, sums: vec![[0.0; SUMS]; across * down] };
        let its = scene.regions.iter().map(|i| &regions[*i]);
        let part = f64::from(scene.input.band_cm.max(0) % scene.input.land_cm.max(1))
            / f64::from(scene.input.land_cm.max(1));
        for region in its.filter(|r| r.plot.group == plot.group && meets(&r.plot, &ground, 0)) {
            if let Some(report) = region.report {
                window.add(&region.plot, report, part);
            }
        }
        for at in across..window.sums.len() {
            if at % across != 0 {
                for sum in 0..SUMS {
                    let (left, up) = (window.sums[at - 1][sum], window.sums[at - across][sum]);
                    window.sums[at][sum] += left + up - window.sums[at - across - 1][sum];
                }
            }
        }
        window
    }

    /// Adds the lands of a region; `part` of each is near a border if nothing else is known.
    fn add(&mut self, plot: &Plot, report: &RegionReport, part: f64) {
        if report.lands.is_none() {
            let lands = f64::from(plot.x1 - plot.x0) * f64::from(plot.z1 - plot.z0);
            let weight = f64::from(report.tick_us) / lands;
            let near = weight * part;
            let even = [weight, near, near, near, near, f64::from(report.players) / lands];
            let (from, to) = (plot.x0.max(self.ground.x0), plot.x1.min(self.ground.x1));
            for z in plot.z0.max(self.ground.z0)..plot.z1.min(self.ground.z1) {
                (from..to).for_each(|x| self.put(x, z, even));
            }
        }
        for land in report.lands.iter().flatten() {
            let inside =
                (plot.x0..plot.x1).contains(&land.x) && (plot.z0..plot.z1).contains(&land.z);
            let here = (self.ground.x0..self.ground.x1).contains(&land.x)
                && (self.ground.z0..self.ground.z1).contains(&land.z);
            if inside && here {
                let near = land.near_us.map(f64::from);
                let [w, e, n, s] = near;
                let (weight, players) = (f64::from(land.weight_us), f64::from(land.players));
                self.put(land.x, land.z, [weight, w, e, n, s, players]);
            }
        }
    }

    fn put(&mut self, x: i32, z: i32, values: [f64; SUMS]) {
        let at = self.index(x + 1, z + 1);
        for (sum, value) in self.sums[at].iter_mut().zip(values) {
            *sum += if value.is_finite() { value.max(0.0) } else { 0.0 };
        }
    }

    fn index(&self, x: i32, z: i32) -> usize {
        let ground = &self.ground;
        let (x, z) = (x.clamp(ground.x0, ground.x1), z.clamp(ground.z0, ground.z1));
        ((z - ground.z0) * (ground.x1 - ground.x0 + 1) + x - ground.x0) as usize
    }

    fn sum(&self, what: usize, (x0, x1): (i32, i32), (z0, z1): (i32, i32)) -> f64 {
        let at = |x, z| self.sums[self.index(x, z)][what];
        at(x1, z1) - at(x0, z1) - at(x1, z0) + at(x0, z0)
    }

    /// The predicted load of a plot, microseconds per tick.
    pub(super) fn cost(&self, plot: &Plot) -> f64 {
        let own = self.sum(0, (plot.x0, plot.x1), (plot.z0, plot.z1));
        let by = self.whole;
        let (x, z) = ((plot.x0 - by, plot.x1 + by), (plot.z0 - by, plot.z1 + by));
        let (west, east) = ((x.0 - 1, x.0), (x.1, x.1 + 1));
        let (north, south) = ((z.0 - 1, z.0), (z.1, z.1 + 1));
        let rings = self.sum(0, x, z) - own;
        let sides = self.sum(2, west, z) + self.sum(1, east, z);
        let sides = sides + self.sum(4, x, north) + self.sum(3, x, south);
        // Of a land at a corner those near both borders count: as if these were independent.
        let corner = |(near_x, x), (near_z, z)| {
            let all = self.sum(0, x, z);
            let both = self.sum(near_x, x, z) * self.sum(near_z, x, z);
            if all > 0.0 { both / all } else { 0.0 }
        };
        let above = corner((2, west), (4, north)) + corner((1, east), (4, north));
        let below = corner((2, west), (3, south)) + corner((1, east), (3, south));
        let ghost = if mutants::has(Mutant::GhostsFree) { 0.0 } else { self.ghost };
        own + ghost * (rings + sides + above + below)
    }

    pub(super) fn players(&self, plot: &Plot) -> f64 {
        self.sum(PLAYERS, (plot.x0, plot.x1), (plot.z0, plot.z1))
    }
}
