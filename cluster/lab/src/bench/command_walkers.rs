//! Walkers of a benchmark in a scene that judges moves. Each is its own client: it sends a move command when it
//! turns, about every two seconds, and a keep-alive command every half second.

use purview::scene::movement::{ClientMs, Go, MoveCommand, Vector};
use purview::scene::{Pos, Tick};

use crate::rng::Rng;

/// The least and the greatest number of ticks between two turns.
const STRAIGHT_TICKS: (f64, f64) = (10.0, 30.0);

/// The number of ticks between two keep-alive commands.
const COMMAND_TICKS: u64 = 5;

/// The distance to the edges, centimetres, at which the server does not yet shorten a walk.
const EDGE_CM: f64 = 500.0;

const TICK_MS: u64 = 100;

#[derive(Debug, Clone, Copy)]
struct Walker {
    vector: Vector,
    /// The ticks of the last turn, the next turn, and the last command.
    turned: u64,
    turns: u64,
    command: u64,
}

#[derive(Debug, Clone)]
pub struct CommandWalkers {
    walkers: Vec<Walker>,
    side_cm: f64,
    speed_cm_s: u32,
    now: u64,
    rng: Rng,
}

impl CommandWalkers {
    /// `n` walkers on a square of `side_cm`.
    pub fn new(n: usize, side_cm: f64, speed_cm_s: u32, seed: u64) -> CommandWalkers {
        let mut rng = Rng::new(seed);
        let side_cm = side_cm.max(4.0 * EDGE_CM);
        let along = |rng: &mut Rng| EDGE_CM + rng.unit() * (side_cm - 2.0 * EDGE_CM);
        let walkers = (0..n)
            .map(|_| {
                let at = Pos::ground(along(&mut rng) as i32, along(&mut rng) as i32);
                // The first turns are spread like all later ones.
                let turns = 2 + (rng.unit() * STRAIGHT_TICKS.1) as u64;
                Walker { vector: Vector::stand(at), turned: 0, turns, command: 0 }
            })
            .collect();
        CommandWalkers { walkers, side_cm, speed_cm_s, now: 0, rng }
    }

    pub fn pos(&self, i: usize) -> Pos {
        self.walkers[i].at(self.now)
    }

    pub fn turned(&self, i: usize) -> Tick {
        Tick(self.walkers[i].turned)
    }

    /// Moves all walkers to tick `now`, and gives their commands to `say`.
    pub fn step(&mut self, now: Tick, mut say: impl FnMut(usize, MoveCommand)) {
        self.now = now.0;
        let at = ClientMs(now.0 * TICK_MS);
        for (i, w) in self.walkers.iter_mut().enumerate() {
            let here = w.at(now.0);
            let outside = |v: i32| f64::from(v) < EDGE_CM || f64::from(v) > self.side_cm - EDGE_CM;
            let next = w.at(now.0 + 1);
            let go = if now.0 >= w.turns || outside(next.x) || outside(next.z) {
                w.turn(here, now.0, self.side_cm, self.speed_cm_s, &mut self.rng);
                Go::Walk(w.vector.into())
            } else if now.0 >= w.command + COMMAND_TICKS && w.turned > 0 {
                Go::On
            } else {
                continue;
            };
            w.command = now.0;
            say(i, MoveCommand { correction: 0, at, go });
        }
    }
}

impl Walker {
    fn at(&self, tick: u64) -> Pos {
        self.vector.position((tick.saturating_sub(self.turned) * TICK_MS) as u32)
    }

    /// A new direction; near an edge one that leads away from it.
    fn turn(&mut self, here: Pos, now: u64, side_cm: f64, speed_cm_s: u32, rng: &mut Rng) {
        let angle = rng.unit() * std::f64::consts::TAU;
        let back = |v: i32, d: f64| match f64::from(v) {
            v if v < 3.0 * EDGE_CM => d.abs(),
            v if v > side_cm - 3.0 * EDGE_CM => -d.abs(),
            _ => d,
        };
        let (dx, dz) = (back(here.x, angle.cos()), back(here.z, angle.sin()));
        self.vector = Vector::heading(here, (dx * 1e6) as i32, (dz * 1e6) as i32, speed_cm_s);
        let (least, most) = STRAIGHT_TICKS;
        self.turned = now;
        self.turns = now + (least + rng.unit() * (most - least)) as u64;
    }
}
