//! The load of a map on paper: players per patch, what they cost, and what regions would report of it.
//!
//! The model is fitted to the figures of the page of benchmarks: a player costs
//! more with those in range, up to sixty, and a ghost costs [`GHOST`] times a player.

use purview::scene::layout::Plot;
use purview::scene::load::GHOST;
use purview_server::node::balance::{LandReport, NeighbourReport, RegionReport};

/// Patches along the side of a land, of 32 m each.
pub(super) const LAND: i32 = 4;

/// Patches that the mirrored band covers.
const REACH: i32 = 3;

/// A player with nobody in range, microseconds per tick.
const PLAYER_US: f64 = 8.6;

pub(super) const TICK_US: f64 = 100_000.0;

/// Sums over all rectangles of patches that begin at the map's corner.
#[derive(Debug, Clone)]
struct Sums(Vec<f64>);

/// The load of a map.
#[derive(Debug, Clone)]
pub(super) struct Field {
    /// Patches from west to east, and from north to south.
    wide: i32,
    deep: i32,
    players: Sums,
    weights: Sums,
}

type Patches = [i32; 4];

impl Sums {
    fn new(wide: i32, values: &[f64]) -> Sums {
        let row = wide as usize + 1;
        let mut sums = vec![0.0; row];
        for line in values.chunks(row - 1) {
            let mut all = 0.0;
            sums.push(0.0);
            for value in line {
                all += value;
                sums.push(all + sums[sums.len() - row]);
            }
        }
        Sums(sums)
    }
}

impl Field {
    /// The load of players, counted by patch from west to east and row by row.
    pub(super) fn new(wide: i32, deep: i32, players: &[u32]) -> Field {
        let counts: Vec<f64> = players.iter().map(|n| f64::from(*n)).collect();
        let sums = Sums::new(wide, &counts);
        let mut field = Field { wide, deep, players: sums.clone(), weights: sums };
        let weight = |(at, players): (usize, &f64)| {
            let (x, z) = (at as i32 % wide, at as i32 / wide);
            let others = field.players([x - 2, z - 2, x + 3, z + 3]) - 1.0;
            let crowd = if others > 60.0 { 0.45 * (others / 60.0).log2() } else { 0.0 };
            if *players > 0.0 {
                players * PLAYER_US * (1.0 + 0.022 * others.min(60.0) + crowd)
            } else {
                0.0
            }
        };
        let weights: Vec<f64> = counts.iter().enumerate().map(weight).collect();
        field.weights = Sums::new(wide, &weights);
        field
    }

    fn sum(&self, of: &Sums, [x0, z0, x1, z1]: Patches) -> f64 {
        let row = self.wide as usize + 1;
        let at = |x: i32, z: i32| {
            of.0[z.clamp(0, self.deep) as usize * row + x.clamp(0, self.wide) as usize]
        };
        at(x1, z1) - at(x0, z1) - at(x1, z0) + at(x0, z0)
    }

    fn players(&self, patches: Patches) -> f64 {
        self.sum(&self.players, patches)
    }

    fn weight(&self, patches: Patches) -> f64 {
        self.sum(&self.weights, patches)
    }

    /// The load without any border, microseconds per tick.
    pub(super) fn whole(&self) -> f64 {
        self.weight([0, 0, self.wide, self.deep])
    }

    /// What a region costs, microseconds per tick.
    pub(super) fn cost(&self, plot: &Plot) -> f64 {
        let own = self.weight(patches(plot, 0));
        own + f64::from(GHOST) * (self.weight(patches(plot, REACH)) - own)
    }

    pub(super) fn players_of(&self, plot: &Plot) -> f64 {
        self.players(patches(plot, 0))
    }

    /// What a region reports whose measured load is `tick_us`, among these.
    pub(super) fn report(&self, plot: &Plot, others: &[Plot], tick_us: f64) -> RegionReport {
        let near =
            |other: &&Plot| other.id != plot.id && meet(patches(plot, REACH), patches(other, 0));
        RegionReport {
            tick_us: tick_us as f32,
            tick_us_p99: tick_us as f32,
            players: self.players_of(plot) as u32,
            lands: Some(self.lands(plot)),
            neighbours: others.iter().filter(near).map(|other| self.shares(plot, other)).collect(),
        }
    }

    fn lands(&self, plot: &Plot) -> Vec<LandReport> {
        let mut lands = Vec::new();
        for (x, z) in (plot.z0..plot.z1).flat_map(|z| (plot.x0..plot.x1).map(move |x| (x, z))) {
            let [x0, z0, x1, z1] = [x * LAND, z * LAND, (x + 1) * LAND, (z + 1) * LAND];
            let players = self.players([x0, z0, x1, z1]);
            if players > 0.0 {
                let near = [
                    [x0, z0, x0 + REACH, z1],
                    [x1 - REACH, z0, x1, z1],
                    [x0, z0, x1, z0 + REACH],
                    [x0, z1 - REACH, x1, z1],
                ];
                lands.push(LandReport {
                    x,
                    z,
                    players: players as u32,
                    weight_us: self.weight([x0, z0, x1, z1]) as f32,
                    near_us: near.map(|patches| self.weight(patches) as f32),
                });
            }
        }
        lands
    }

    /// What two regions share: of the sixty links of a ghost, a quarter cross the border.
    fn shares(&self, plot: &Plot, other: &Plot) -> NeighbourReport {
        let in_both = |a: &Plot, b: &Plot| self.players(both(patches(a, 0), patches(b, REACH)));
        let (here, there) = (in_both(plot, other), in_both(other, plot));
        let pairs = (here * there).min(15.0 * here.min(there));
        NeighbourReport { region: other.id, pairs: pairs as u32, ghosts: there as u32 }
    }
}

fn patches(plot: &Plot, grown: i32) -> Patches {
    let [x0, z0, x1, z1] = [plot.x0, plot.z0, plot.x1, plot.z1].map(|land| land * LAND);
    [x0 - grown, z0 - grown, x1 + grown, z1 + grown]
}

fn both(a: Patches, b: Patches) -> Patches {
    [
        a[0].max(b[0]),
        a[1].max(b[1]),
        a[2].min(b[2]).max(a[0].max(b[0])),
        a[3].min(b[3]).max(a[1].max(b[1])),
    ]
}

fn meet(a: Patches, b: Patches) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}
