//! Players that walk over a map on paper, by scenario.

use std::f64::consts::TAU;

use clap::ValueEnum;
use serde::Serialize;

use super::field::{Field, LAND};
use crate::rng::Rng;

/// The side of a patch, metres.
pub(super) const PATCH_M: f64 = 32.0;

/// How fast players run, metres per second.
const SPEED: f64 = 5.0;

/// The share of players that are not there when the wave of logins begins.
const LOG_IN: f64 = 0.9;

/// What the players do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// Eight groups fill a quarter of the map and wander to the opposite one.
    Market,
    /// Three quarters of the players gather within 60 m, wander round, and go home.
    Crowd,
    /// All walk out to eight points and meet in the middle, on the corner of four regions.
    Star,
    /// Nearly all log in within five minutes at two places, and walk home.
    LoginWave,
    /// Two crowds of the same size stand in one quarter of the map.
    TwoCrowds,
}

#[derive(Debug, Clone)]
struct Walker {
    at: [f64; 2],
    home: [f64; 2],
    /// A place in a group, in deviations.
    off: [f64; 2],
    /// Which group: 0 to 1.
    kind: f64,
}

#[derive(Debug)]
pub(super) struct Workload {
    scenario: Scenario,
    rng: Rng,
    patches: i32,
    walkers: Vec<Walker>,
}

impl Workload {
    /// So many players anywhere on a square map of so many lands.
    pub(super) fn new(scenario: Scenario, players: usize, lands: i32, seed: u64) -> Workload {
        let mut rng = Rng::new(seed);
        let side = f64::from(lands * LAND) * PATCH_M;
        let walker = |_| {
            let home = [rng.unit() * side, rng.unit() * side];
            let off = [rng.normal(), rng.normal()];
            let mut walker = Walker { at: home, home, off, kind: rng.unit() };
            if scenario == Scenario::LoginWave && walker.kind < LOG_IN {
                walker.at = walker.town(side).map(|v| v.clamp(0.0, side - 1.0));
            }
            walker
        };
        let walkers = (0..players).map(walker).collect();
        Workload { scenario, rng, patches: lands * LAND, walkers }
    }

    /// A second passes; `t` is the one that it is now.
    pub(super) fn step(&mut self, t: f64) -> Field {
        let side = f64::from(self.patches) * PATCH_M;
        let mut players = vec![0; (self.patches * self.patches) as usize];
        for walker in &mut self.walkers {
            let Some(to) = target(self.scenario, walker, side, t) else { continue };
            walker.step(to, side, &mut self.rng);
            let [x, z] = walker.at.map(|v| (v / PATCH_M) as usize);
            players[z * self.patches as usize + x] += 1;
        }
        Field::new(self.patches, self.patches, &players)
    }
}

impl Walker {
    fn step(&mut self, to: [f64; 2], side: f64, rng: &mut Rng) {
        let way = [to[0] - self.at[0], to[1] - self.at[1]];
        let far = way[0].hypot(way[1]);
        for axis in 0..2 {
            let near = to[axis] + (rng.unit() - 0.5) * 6.0;
            let on = self.at[axis] + way[axis] / far * SPEED;
            self.at[axis] = if far > SPEED { on } else { near }.clamp(0.0, side - 1.0);
        }
    }

    /// A place in the town where it logs in.
    fn town(&self, side: f64) -> [f64; 2] {
        let town = if self.off[0] > 0.0 { [0.2, 0.3] } else { [0.35, 0.3] };
        self.around(town.map(|v| v * side), 90.0)
    }

    fn around(&self, [x, z]: [f64; 2], sigma: f64) -> [f64; 2] {
        [x + sigma * self.off[0], z + sigma * self.off[1]]
    }
}

/// Where a player goes; `None`: it is not there yet.
fn target(scenario: Scenario, walker: &Walker, side: f64, t: f64) -> Option<[f64; 2]> {
    let (middle, k) = (side / 2.0, walker.kind);
    let on_circle =
        |angle: f64, radius: f64| [middle + radius * angle.cos(), middle + radius * angle.sin()];
    let gathers = (120.0..900.0).contains(&t);
    Some(match scenario {
        Scenario::Market if gathers && k < 0.9 => {
            let angle = (k / 0.9 * 8.0).floor() * 0.785;
            let from = 560.0 + 930.0 * ((t - 300.0) / 500.0).clamp(0.0, 1.0);
            walker.around([from + 340.0 * angle.cos(), from + 340.0 * angle.sin()], 130.0)
        }
        Scenario::Crowd if gathers && k < 0.75 => {
            walker.around(on_circle((t - 300.0).max(0.0) / 600.0 * TAU, 600.0), 60.0)
        }
        Scenario::Star if gathers => {
            let radius = if t < 480.0 { 850.0 } else { 40.0 };
            walker.around(on_circle((k * 8.0).floor() * TAU / 8.0, radius), 80.0)
        }
        Scenario::LoginWave if k < LOG_IN => {
            let begins = 120.0 + 300.0 * k / LOG_IN;
            match t {
                t if t < begins => return None,
                t if t < begins + 120.0 => walker.town(side),
                _ => walker.home,
            }
        }
        Scenario::TwoCrowds if gathers && k < 0.8 => {
            let place = if k < 0.4 { [0.15, 0.2] } else { [0.35, 0.2] };
            walker.around(place.map(|v| v * side), 60.0)
        }
        _ => walker.home,
    })
}
