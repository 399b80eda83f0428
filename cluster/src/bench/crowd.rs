//! Walkers of a benchmark: random waypoints at a steady speed, from a seed.

use purview::scene::Pos;

use crate::rng::Rng;

#[derive(Debug, Clone, Copy)]
struct Walker {
    x: f64,
    z: f64,
    to_x: f64,
    to_z: f64,
}

/// People who walk from one random place to the next.
#[derive(Debug, Clone)]
pub struct Crowd {
    walkers: Vec<Walker>,
    side_cm: f64,
    step_cm: f64,
    rng: Rng,
}

impl Crowd {
    /// `n` people on a square of `side_cm`, who walk `step_cm` in a tick.
    pub fn new(n: usize, side_cm: f64, step_cm: f64, seed: u64) -> Crowd {
        let mut rng = Rng::new(seed);
        let mut somewhere = || rng.unit() * side_cm;
        let walkers = (0..n)
            .map(|_| Walker {
                x: somewhere(),
                z: somewhere(),
                to_x: somewhere(),
                to_z: somewhere(),
            })
            .collect();
        Crowd { walkers, side_cm, step_cm, rng }
    }

    /// Everybody walks for a tick.
    pub fn step(&mut self) {
        for w in &mut self.walkers {
            let (dx, dz) = (w.to_x - w.x, w.to_z - w.z);
            let left = dx.hypot(dz);
            if left <= self.step_cm {
                (w.x, w.z) = (w.to_x, w.to_z);
                w.to_x = self.rng.unit() * self.side_cm;
                w.to_z = self.rng.unit() * self.side_cm;
            } else {
                w.x += dx / left * self.step_cm;
                w.z += dz / left * self.step_cm;
            }
        }
    }

    /// Where walker `i` is.
    pub fn pos(&self, i: usize) -> Pos {
        let w = &self.walkers[i];
        Pos::ground(w.x as i32, w.z as i32)
    }
}
