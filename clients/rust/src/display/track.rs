//! What one entity does over time, and the error that is left to spread.
//!
//! [`Display`](super::Display) has one for each entity in view. The picture is a little in the
//! past, so a motion usually arrives before it is due, and the one before it is still needed.

use std::collections::VecDeque;

use purview::scene::Pos;
use purview::scene::movement::{Blend, ServerMs, Trajectory};

/// Most motions that wait for their time.
const MOTIONS_MAX: usize = 8;

/// A correction is spread over this time, milliseconds.
pub const SPREAD_MS: u32 = 200;

/// From this distance on the entity jumps, centimetres.
pub const SNAP_CM: u32 = 300;

/// What the server has told of an entity's movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Motion {
    /// A function of time, which is evaluated.
    Trajectory(Trajectory),
    /// A position, which the entity reaches from the one before.
    Sample(Sample),
}

/// A position at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// When, server's clock, milliseconds.
    pub at_ms: u64,
    /// The entity comes here within this time before, milliseconds.
    pub span_ms: u32,
    /// Where.
    pub pos: Pos,
    /// Velocity to the east from then on, centimetres per second.
    pub vx_cm_s: i32,
    /// The same to the south.
    pub vz_cm_s: i32,
}

impl Motion {
    fn begins_ms(&self) -> u64 {
        match self {
            Motion::Trajectory(trajectory) => trajectory.start.0,
            Motion::Sample(sample) => sample.at_ms,
        }
    }

    fn position(&self, at_ms: u64) -> Pos {
        match self {
            Motion::Trajectory(trajectory) => trajectory.position(ServerMs(at_ms)),
            Motion::Sample(sample) => sample.position(at_ms),
        }
    }
}

impl Sample {
    /// Where the entity is at a later time, if nothing else is told.
    fn position(&self, at_ms: u64) -> Pos {
        let passed = i64::try_from(at_ms.saturating_sub(self.at_ms)).unwrap_or(i64::MAX);
        let along = |from: i32, v: i32| {
            let at = i64::from(from).saturating_add(i64::from(v).saturating_mul(passed) / 1_000);
            at.clamp(i32::MIN.into(), i32::MAX.into()) as i32
        };
        let Pos { x, y, z } = self.pos;
        Pos { x: along(x, self.vx_cm_s), y, z: along(z, self.vz_cm_s) }
    }
}

/// The motions of one entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    /// By their beginning; never empty.
    motions: VecDeque<Motion>,
    blend: Blend,
}

impl Track {
    /// An entity that comes into view.
    pub fn new(motion: Motion) -> Track {
        Track { motions: VecDeque::from([motion]), blend: Blend::new(SPREAD_MS, SNAP_CM) }
    }

    /// Where the entity was at a time, by what is known.
    pub fn position(&self, at_ms: u64) -> Pos {
        let due = self.motions.iter().rposition(|motion| motion.begins_ms() <= at_ms);
        let Some(due) = due else {
            return self.motions.front().map_or(Pos::default(), |motion| motion.position(at_ms));
        };
        let motion = &self.motions[due];
        match self.motions.get(due + 1) {
            Some(Motion::Sample(next)) => between(motion, next, at_ms),
            _ => motion.position(at_ms),
        }
    }

    /// Where the entity is drawn: there, and the part of the error that is left.
    pub fn shown(&self, at_ms: u64) -> Pos {
        self.blend.shown(at_ms, self.position(at_ms))
    }

    /// The server has told a motion, while the picture of `at_ms` is drawn.
    pub fn told(&mut self, at_ms: u64, motion: Motion) {
        let (shown, was) = (self.shown(at_ms), self.position(at_ms));
        let begins_ms = motion.begins_ms();
        while self.motions.back().is_some_and(|last| last.begins_ms() >= begins_ms) {
            self.motions.pop_back();
        }
        if self.motions.len() == MOTIONS_MAX {
            self.motions.pop_front();
        }
        self.motions.push_back(motion);
        let is = self.position(at_ms);
        if is != was {
            self.blend.begin(at_ms, shown, is);
        }
    }

    /// The picture goes on to `at_ms`. If the display time has jumped, what was shown is `shown`.
    pub fn advance(&mut self, at_ms: u64, shown: Option<Pos>) {
        while self.motions.get(1).is_some_and(|next| next.begins_ms() <= at_ms) {
            self.motions.pop_front();
        }
        if let Some(shown) = shown {
            self.blend.begin(at_ms, shown, self.position(at_ms));
        }
    }

    /// Forgets the error: nothing of it was drawn.
    pub fn snap(&mut self, at_ms: u64) {
        let is = self.position(at_ms);
        self.blend.begin(at_ms, is, is);
    }
}

/// The way from a motion to the next sample, in the sample's span.
fn between(motion: &Motion, next: &Sample, at_ms: u64) -> Pos {
    let span = u64::from(next.span_ms).min(next.at_ms.saturating_sub(motion.begins_ms()));
    let from_ms = next.at_ms - span;
    if at_ms <= from_ms {
        return motion.position(at_ms);
    }
    let (from, gone) = (motion.position(from_ms), at_ms - from_ms);
    let along = |from: i32, to: i32| {
        let way = (i64::from(to) - i64::from(from)) * gone as i64 / span as i64;
        (i64::from(from) + way) as i32
    };
    Pos { x: along(from.x, next.pos.x), y: along(from.y, next.pos.y), z: along(from.z, next.pos.z) }
}

#[cfg(test)]
mod tests {
    use purview::scene::movement::{Move, Vector};

    use super::*;

    fn walk(start_ms: u64, x: i32, vx_mm_s: i32) -> Motion {
        let motion = Move::Vector(Vector { vx_mm_s, ..Vector::stand(Pos::ground(x, 0)) });
        Motion::Trajectory(Trajectory { motion, start: ServerMs(start_ms), lasts_ms: u32::MAX })
    }

    fn sample(at_ms: u64, x: i32, vx_cm_s: i32) -> Motion {
        let pos = Pos::ground(x, 0);
        Motion::Sample(Sample { at_ms, span_ms: 100, pos, vx_cm_s, vz_cm_s: 0 })
    }

    #[test]
    fn a_trajectory_that_arrives_in_time_leaves_no_error() {
        let mut track = Track::new(walk(0, 0, 5_000));
        track.told(900, walk(1_000, 500, -5_000));
        let x: Vec<i32> = [900, 1_000, 1_100].map(|at| track.shown(at).x).into();
        assert_eq!(x, [450, 500, 450]);
        track.advance(1_100, None);
        assert_eq!(track.motions.len(), 1);
    }

    #[test]
    fn a_trajectory_that_arrives_late_is_spread_over_200_ms() {
        let mut track = Track::new(walk(0, 0, 5_000));
        track.told(1_100, walk(1_000, 500, -5_000));
        assert_eq!(track.position(1_100).x, 450);
        let x: Vec<i32> = [1_100, 1_200, 1_300].map(|at| track.shown(at).x).into();
        assert_eq!(x, [550, 450, 350]);
    }

    #[test]
    fn an_error_of_three_metres_snaps() {
        let mut track = Track::new(walk(0, 0, 0));
        track.told(10, walk(0, 299, 0));
        assert_eq!(track.shown(10).x, 0);
        track.told(10, walk(0, 300, 0));
        assert_eq!(track.shown(10).x, 300);
    }

    #[test]
    fn a_sample_is_reached_in_its_span_and_its_velocity_continues() {
        let mut track = Track::new(sample(1_000, 0, 100));
        track.told(1_050, sample(1_500, 70, 0));
        let x: Vec<i32> = [1_000, 1_400, 1_450, 1_500, 9_000].map(|at| track.shown(at).x).into();
        assert_eq!(x, [0, 40, 55, 70, 70]);
        // Before the first motion the entity stands where it begins.
        assert_eq!(track.shown(0).x, 0);
    }

    #[test]
    fn motions_that_wait_are_bounded() {
        let mut track = Track::new(walk(0, 0, 10));
        (1..100).for_each(|n| track.told(0, walk(n * 10, 0, 10)));
        assert_eq!(track.motions.len(), MOTIONS_MAX);
    }
}
