//! Entities whose movement is known exactly, a server that tells of it, and a network that is late.

use purview::scene::Pos;
use purview::scene::movement::{Move, ServerMs, Trajectory, Vector};
use purview_client::{Motion, Sample};

pub const TICK_MS: u64 = 100;

/// The tolerance of entities told as positions, centimetres.
pub const TOLERANCE_CM: f64 = 25.0;

/// Numbers that look random and are the same in every run.
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % end.max(1)
    }

    fn between(&mut self, from: i64, to: i64) -> i64 {
        from + self.below((to - from) as u64) as i64
    }
}

/// How the server tells of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Each move once.
    Trajectories,
    /// Positions, when a client would be off by more than the tolerance.
    Positions,
}

/// An entity that turns, stops and walks on at random.
pub struct Walker {
    pub told: Told,
    /// Its moves from the first to the last.
    moves: Vec<Trajectory>,
    /// What the server has told so far.
    last: Option<Sample>,
    sent: usize,
}

impl Walker {
    /// A walker of this top speed for so long.
    pub fn new(rng: &mut Rng, told: Told, speed_cm_s: i64, length_ms: u64) -> Walker {
        let mut heading = rng.below(360) as f64;
        let (mut pos, mut at, mut moves) = (Pos::ground(50_000, 50_000), 0, Vec::new());
        while at < length_ms {
            heading += rng.between(-40, 41) as f64;
            let speed = if rng.below(4) == 0 { 0 } else { rng.between(speed_cm_s / 2, speed_cm_s) };
            let (sin, cos) = heading.to_radians().sin_cos();
            let [vx_mm_s, vz_mm_s] = [cos, sin].map(|part| (part * speed as f64 * 10.0) as i32);
            let motion = Move::Vector(Vector { vx_mm_s, vz_mm_s, ..Vector::stand(pos) });
            let trajectory = Trajectory { motion, start: ServerMs(at), lasts_ms: u32::MAX };
            moves.push(trajectory);
            at += 500 + rng.below(3_000);
            if told == Told::Positions {
                at = at.next_multiple_of(TICK_MS);
            }
            pos = trajectory.position(ServerMs(at));
        }
        Walker { told, moves, last: None, sent: 0 }
    }

    fn going(&self, at_ms: u64) -> &Trajectory {
        let next = self.moves.partition_point(|going| going.start.0 <= at_ms);
        &self.moves[next.saturating_sub(1)]
    }

    /// Where it is, centimetres.
    pub fn truth(&self, at_us: u64) -> [f64; 2] {
        let going = self.going(at_us / 1_000);
        let Move::Vector(Vector { start, vx_mm_s, vz_mm_s, .. }) = going.motion else {
            unreachable!("walkers go straight on")
        };
        let s = (at_us as f64 / 1e6) - going.start.0 as f64 / 1e3;
        [(start.x, vx_mm_s), (start.z, vz_mm_s)]
            .map(|(from, v)| f64::from(from) + f64::from(v) / 10.0 * s)
    }

    /// What the frame of a tick tells of it.
    pub fn tell(&mut self, tick: u64) -> Vec<Motion> {
        let at_ms = tick * TICK_MS;
        if self.told == Told::Trajectories {
            let begun = self.moves.partition_point(|going| going.start.0 <= at_ms);
            let new = self.moves[self.sent..begun].iter().map(|going| Motion::Trajectory(*going));
            let new = new.collect();
            self.sent = begun;
            return new;
        }
        let pos = self.going(at_ms).position(ServerMs(at_ms));
        let off = self.last.is_none_or(|last| {
            let passed = (at_ms - last.at_ms) as f64 / 1e3;
            let x = f64::from(last.pos.x) + f64::from(last.vx_cm_s) * passed;
            let z = f64::from(last.pos.z) + f64::from(last.vz_cm_s) * passed;
            (x - f64::from(pos.x)).hypot(z - f64::from(pos.z)) > TOLERANCE_CM
        });
        if !off {
            return Vec::new();
        }
        // The velocity is that of the last tick, as the server estimates it.
        let before = self.going(at_ms.saturating_sub(TICK_MS));
        let before = before.position(ServerMs(at_ms.saturating_sub(TICK_MS)));
        let per_s = |way: i32| way * (1_000 / TICK_MS) as i32;
        let (vx_cm_s, vz_cm_s) = (per_s(pos.x - before.x), per_s(pos.z - before.z));
        let sample = Sample { at_ms, span_ms: TICK_MS as u32, pos, vx_cm_s, vz_cm_s };
        self.last = Some(sample);
        vec![Motion::Sample(sample)]
    }
}

/// A network that is late by 20 ms and a random time up to `jitter_ms`, keeps the order, and with
/// `gaps` brings nothing for half a second every ten seconds.
#[derive(Debug, Clone, Copy)]
pub struct Network {
    pub jitter_ms: u64,
    pub gaps: bool,
}

impl Network {
    /// When the frame of each tick arrives, microseconds.
    pub fn arrivals_us(self, rng: &mut Rng, ticks: u64) -> Vec<u64> {
        let mut before = 0;
        let arrival = |tick: u64| {
            let mut at = (tick * TICK_MS + 20) * 1_000 + rng.below(self.jitter_ms * 1_000 + 1);
            let in_gap = at % 10_000_000;
            if self.gaps && (5_000_000..5_500_000).contains(&in_gap) {
                at += 5_500_000 - in_gap;
            }
            before = at.max(before);
            before
        };
        (1..=ticks).map(arrival).collect()
    }
}
