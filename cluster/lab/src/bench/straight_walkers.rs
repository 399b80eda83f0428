//! Walkers of a benchmark, from a seed: each walks straight on at a constant speed and turns after a while. They stay
//! evenly spread for any length of time, which people on their way to random places do not.

use purview::scene::Pos;

use crate::rng::Rng;

/// The least and the greatest number of ticks between two turns.
const STRAIGHT_TICKS: (f64, f64) = (50.0, 200.0);

#[derive(Debug, Clone, Copy)]
struct Walker {
    x: f64,
    z: f64,
    dx: f64,
    dz: f64,
    turns_in: u32,
}

/// Walkers on a square that turn back at its edges.
#[derive(Debug, Clone)]
pub struct StraightWalkers {
    walkers: Vec<Walker>,
    side_cm: f64,
    step_cm: f64,
    rng: Rng,
}

impl StraightWalkers {
    /// `n` walkers on a square of `side_cm`, which walk `step_cm` in a tick.
    pub fn new(n: usize, side_cm: f64, step_cm: f64, seed: u64) -> StraightWalkers {
        let mut rng = Rng::new(seed);
        let walkers = (0..n)
            .map(|_| {
                let (x, z) = (rng.unit() * side_cm, rng.unit() * side_cm);
                let mut walker = Walker { x, z, dx: 0.0, dz: 0.0, turns_in: 0 };
                walker.turn(step_cm, &mut rng);
                walker
            })
            .collect();
        StraightWalkers { walkers, side_cm, step_cm, rng }
    }

    pub fn step(&mut self) {
        for w in &mut self.walkers {
            if w.turns_in == 0 {
                w.turn(self.step_cm, &mut self.rng);
            }
            w.turns_in -= 1;
            (w.x, w.dx) = reflected(w.x + w.dx, w.dx, self.side_cm);
            (w.z, w.dz) = reflected(w.z + w.dz, w.dz, self.side_cm);
        }
    }

    pub fn pos(&self, i: usize) -> Pos {
        let w = &self.walkers[i];
        Pos::ground(w.x as i32, w.z as i32)
    }
}

impl Walker {
    fn turn(&mut self, step_cm: f64, rng: &mut Rng) {
        let angle = rng.unit() * std::f64::consts::TAU;
        (self.dx, self.dz) = (angle.cos() * step_cm, angle.sin() * step_cm);
        let (least, most) = STRAIGHT_TICKS;
        self.turns_in = (least + rng.unit() * (most - least)) as u32;
    }
}

/// Position and step along one axis, after reflection at an edge.
fn reflected(at: f64, step: f64, side: f64) -> (f64, f64) {
    match at {
        at if at < 0.0 => ((-at).min(side), -step),
        at if at > side => ((2.0 * side - at).max(0.0), -step),
        at => (at, step),
    }
}
