//! Small maps, of which the best layout and owners are found by trying all.

use purview::scene::RegionId;
use purview::scene::layout::{Axis, PlaneGroup, Plot};
use serde::Serialize;

use super::cluster::{Cluster, Policy};
use super::field::{Field, LAND};
use crate::rng::Rng;

/// Lands along the side of the map; nodes; the greatest number of regions.
const LANDS: i32 = 4;
const NODES: u64 = 2;
const REGIONS: usize = 5;

/// How long a policy has, seconds.
const SETTLES_S: u64 = 600;

/// A policy against the optimum, over all small maps.
#[derive(Debug, Clone, Serialize)]
pub struct Small {
    pub policy: Policy,
    pub maps: u64,
    /// The busiest node's load by the optimum's: mean and greatest.
    pub by_optimum: f64,
    pub worst_by_optimum: f64,
    /// The load of both nodes by that of a map without borders, mean; and the same of the optimum.
    pub cpu: f64,
    pub optimum_cpu: f64,
}

/// A crowd or several on a map of 4 x 4 lands.
fn field(seed: u64) -> Field {
    let mut rng = Rng::new(seed);
    let side = LANDS * LAND;
    let mut players = vec![0; (side * side) as usize];
    for _ in 0..1 + rng.below(4) {
        let middle = [rng.unit(), rng.unit()].map(|v| v * f64::from(side));
        let sigma = 1.0 + 3.0 * rng.unit();
        for _ in 0..200 + rng.below(700) {
            let at =
                middle.map(|v| (v + sigma * rng.normal()).clamp(0.0, f64::from(side - 1)) as i32);
            players[(at[1] * side + at[0]) as usize] += 1;
        }
    }
    Field::new(side, side, &players)
}

/// All ways to cut a plot into at most so many parts, each by a cut through the whole of a part.
fn cuts(plot: Plot, parts: usize) -> Vec<Vec<Plot>> {
    let mut all = vec![vec![plot]];
    for axis in [Axis::X, Axis::Z] {
        let (from, to) = plot.along(axis);
        for land in from + 1..to {
            let Some((a, b)) = plot.cut(axis, land).filter(|_| parts > 1) else { continue };
            for first in cuts(a, parts - 1) {
                for second in cuts(b, parts - first.len()) {
                    all.push(first.iter().chain(&second).copied().collect());
                }
            }
        }
    }
    all
}

/// The least load of the busiest of two nodes, and then of both, microseconds.
fn optimum(field: &Field) -> (f64, f64) {
    let map = Plot { id: RegionId(0), group: PlaneGroup(0), x0: 0, z0: 0, x1: LANDS, z1: LANDS };
    let mut best = (f64::MAX, f64::MAX);
    for plots in cuts(map, REGIONS) {
        let costs: Vec<f64> = plots.iter().map(|plot| field.cost(plot)).collect();
        let all: f64 = costs.iter().sum();
        for owners in 0..1u32 << (costs.len() - 1) {
            let first = costs.iter().enumerate().filter(|(i, _)| owners >> i & 1 == 1);
            let first: f64 = first.map(|(_, cost)| cost).sum();
            let found = (first.max(all - first), all);
            if found < best {
                best = found;
            }
        }
    }
    best
}

/// Lets each policy settle on small maps of players that stand.
pub(super) fn small(maps: u64) -> Vec<Small> {
    let fields: Vec<Field> = (1..=maps).map(field).collect();
    let best: Vec<(f64, f64)> = fields.iter().map(optimum).collect();
    let of = |policy| {
        let results = fields.iter().zip(&best).zip(1..).map(|((field, best), seed)| {
            let mut cluster = Cluster::new(policy, 2, LANDS / 2, NODES, seed);
            (0..SETTLES_S).for_each(|t| cluster.step(t, field));
            let nodes = cluster.loads(field).0;
            let busiest = nodes.iter().copied().fold(0.0, f64::max) * 1e3;
            let whole = field.whole();
            [busiest / best.0, nodes.iter().sum::<f64>() * 1e3 / whole, best.1 / whole]
        });
        let results: Vec<[f64; 3]> = results.collect();
        let mean = |i: usize| results.iter().map(|r| r[i]).sum::<f64>() / results.len() as f64;
        let most = results.iter().map(|r| r[0]).fold(0.0, f64::max);
        Small {
            policy,
            maps,
            by_optimum: mean(0),
            worst_by_optimum: most,
            cpu: mean(1),
            optimum_cpu: mean(2),
        }
    };
    Policy::ALL.into_iter().map(of).collect()
}
