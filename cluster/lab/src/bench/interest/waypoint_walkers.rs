//! Walkers of a benchmark: random waypoints at 5 m/s, ten ticks a second, from a seed. The benchmarks
//! of the library (`benches/`) use this file, too.

use purview::scene::Pos;

use super::rng::Rng;

/// How densely the entities stand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Density {
    /// This number of others within 80 m, everywhere.
    Even(u32),
    /// Half of the entities around one point, with a deviation of 60 m; the rest as 40 within 80 m.
    HotSpot,
}

impl Density {
    pub fn name(self) -> String {
        match self {
            Density::Even(others) => format!("{others} within 80 m"),
            Density::HotSpot => "hot spot".into(),
        }
    }
}

const NEAR_CM: f64 = 8_000.0;

/// Entities that walk from one random position to the next.
pub struct WaypointWalkers {
    pub side_cm: i32,
    at: Vec<(f64, f64)>,
    to: Vec<(f64, f64)>,
    /// The first ones stay around the middle, with this deviation.
    hot: (usize, f64),
    step_cm: f64,
    rng: Rng,
}

impl WaypointWalkers {
    pub fn new(people: usize, density: Density) -> WaypointWalkers {
        let (others, hot) = match density {
            Density::Even(others) => (f64::from(others), 0),
            Density::HotSpot => (40.0, people / 2),
        };
        let area = people as f64 * std::f64::consts::PI * NEAR_CM * NEAR_CM / others;
        WaypointWalkers::of(people, (hot, 6_000.0), area.sqrt() as i32, 50.0)
    }

    /// All around the middle of a map of this side with this deviation, at a walk.
    pub fn gathered(people: usize, sigma_cm: f64, side_cm: i32) -> WaypointWalkers {
        WaypointWalkers::of(people, (people, sigma_cm), side_cm, 14.0)
    }

    fn of(people: usize, hot: (usize, f64), side_cm: i32, step_cm: f64) -> WaypointWalkers {
        let (at, to) = (Vec::with_capacity(people), Vec::with_capacity(people));
        let mut walkers = WaypointWalkers { side_cm, at, to, hot, step_cm, rng: Rng::new(7) };
        for i in 0..people {
            let (at, to) = (walkers.somewhere(i), walkers.somewhere(i));
            walkers.at.push(at);
            walkers.to.push(to);
        }
        walkers
    }

    fn somewhere(&mut self, i: usize) -> (f64, f64) {
        let side = f64::from(self.side_cm);
        let rng = &mut self.rng;
        let mut along = || match i < self.hot.0 {
            true => (side / 2.0 + self.hot.1 * rng.normal()).clamp(0.0, side - 1.0),
            false => rng.unit() * side,
        };
        (along(), along())
    }

    pub fn places(&self) -> Vec<Pos> {
        self.at.iter().map(|(x, z)| Pos::ground(*x as i32, *z as i32)).collect()
    }

    pub fn step(&mut self) {
        for i in 0..self.at.len() {
            let ((x, z), (to_x, to_z)) = (self.at[i], self.to[i]);
            let (dx, dz) = (to_x - x, to_z - z);
            let left = dx.hypot(dz);
            if left > self.step_cm {
                self.at[i] = (x + dx / left * self.step_cm, z + dz / left * self.step_cm);
            } else {
                self.at[i] = self.to[i];
                self.to[i] = self.somewhere(i);
            }
        }
    }

    /// All positions in each of `ticks` ticks, forward and back, so that a loop over them has no
    /// jump.
    pub fn walk(&mut self, ticks: usize) -> Vec<Vec<Pos>> {
        let mut places: Vec<_> = (0..ticks)
            .map(|_| {
                self.step();
                self.places()
            })
            .collect();
        let back: Vec<_> = places[1..ticks - 1].iter().rev().cloned().collect();
        places.extend(back);
        places
    }
}
