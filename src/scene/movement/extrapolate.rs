//! The viewer's side: extrapolates other entities from their trajectories, and blends corrections
//! so that the picture does not jump.
//!
//! Called by clients for every drawn frame. Nothing here reads a clock: the caller passes the time.

use super::{ServerMs, Trajectory};
use crate::scene::Pos;

/// Moves the displayed position smoothly to the computed position after a correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blend {
    /// Duration of a blend, milliseconds; 0 shows the computed position at once.
    pub lasts_ms: u32,
    /// Distance from which the displayed position jumps instead of blending, centimetres.
    pub snap_cm: u32,
    off: Pos,
    since_ms: u64,
}

impl Default for Blend {
    fn default() -> Blend {
        Blend::new(200, 300)
    }
}

impl Blend {
    /// A blend over `lasts_ms` milliseconds, for differences below `snap_cm` centimetres.
    pub fn new(lasts_ms: u32, snap_cm: u32) -> Blend {
        Blend { lasts_ms, snap_cm, off: Pos::default(), since_ms: 0 }
    }

    /// Starts a blend at `now_ms`: `shown` was displayed, `is` is the computed position.
    pub fn begin(&mut self, now_ms: u64, shown: Pos, is: Pos) {
        self.since_ms = now_ms;
        let off = Pos {
            x: shown.x.saturating_sub(is.x),
            y: shown.y.saturating_sub(is.y),
            z: shown.z.saturating_sub(is.z),
        };
        let near = shown.dist2(is) < u64::from(self.snap_cm).pow(2);
        self.off = if near { off } else { Pos::default() };
    }

    /// The position to display at `now_ms` when the computed position is `is`.
    pub fn shown(&self, now_ms: u64, is: Pos) -> Pos {
        let lasts = i64::from(self.lasts_ms);
        let passed = i64::try_from(now_ms.saturating_sub(self.since_ms)).unwrap_or(i64::MAX);
        if passed >= lasts {
            return is;
        }
        let part = |off: i32| (i64::from(off) * (lasts - passed) / lasts) as i32;
        Pos {
            x: is.x.saturating_add(part(self.off.x)),
            y: is.y.saturating_add(part(self.off.y)),
            z: is.z.saturating_add(part(self.off.z)),
        }
    }
}

/// One visible entity, extrapolated from its latest trajectory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extrapolator {
    trajectory: Trajectory,
    blend: Blend,
}

impl Extrapolator {
    /// An entity that comes into view.
    pub fn new(trajectory: Trajectory, blend: Blend) -> Extrapolator {
        Extrapolator { trajectory, blend }
    }

    /// Replaces the trajectory. `now` is the server time for which the entity is displayed.
    pub fn told(&mut self, now: ServerMs, trajectory: Trajectory) {
        let shown = self.shown(now);
        self.trajectory = trajectory;
        self.blend.begin(now.0, shown, trajectory.position(now));
    }

    /// The entity's position at `now`, equal to the server's if no trajectory is in flight.
    pub fn position(&self, now: ServerMs) -> Pos {
        self.trajectory.position(now)
    }

    /// The position to display at `now`: the extrapolated position, blended after a change.
    pub fn shown(&self, now: ServerMs) -> Pos {
        self.blend.shown(now.0, self.position(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::movement::{Move, Vector};

    fn east(x: i32, start: u64) -> Trajectory {
        let v = Vector { vx_mm_s: 5_000, ..Vector::stand(Pos::ground(x, 0)) };
        Trajectory { motion: Move::Vector(v), start: ServerMs(start), lasts_ms: u32::MAX }
    }

    #[test]
    fn extrapolation_goes_on_without_messages_and_stops_at_the_trajectorys_end() {
        let e = Extrapolator::new(east(100, 1_000), Blend::default());
        assert_eq!(e.position(ServerMs(500)), Pos::ground(100, 0));
        assert_eq!(e.shown(ServerMs(3_000)), Pos::ground(1_100, 0));
        let short =
            Extrapolator::new(Trajectory { lasts_ms: 400, ..east(100, 1_000) }, Blend::default());
        assert_eq!(short.position(ServerMs(9_000)), Pos::ground(300, 0));
    }

    #[test]
    fn a_new_trajectory_is_blended_in_without_a_jump() {
        let mut e = Extrapolator::new(east(0, 0), Blend::new(200, 500));
        // The entity is at 500; the new trajectory began 40 cm further.
        e.told(ServerMs(1_000), east(40, 0));
        let shown = |e: &Extrapolator, ms| e.shown(ServerMs(ms)).x;
        assert_eq!((shown(&e, 1_000), shown(&e, 1_100), shown(&e, 1_200)), (500, 570, 640));
        // A trajectory that arrives during a blend starts from the displayed position.
        e.told(ServerMs(1_200), east(60, 0));
        e.told(ServerMs(1_250), east(80, 0));
        assert_eq!(shown(&e, 1_250), 685 - 15);
    }

    #[test]
    fn a_difference_of_snap_distance_jumps() {
        let mut e = Extrapolator::new(east(0, 0), Blend::new(200, 500));
        e.told(ServerMs(1_000), east(500, 0));
        assert_eq!(e.shown(ServerMs(1_000)).x, 1_000);
        let mut e = Extrapolator::new(east(0, 0), Blend::new(0, 500));
        e.told(ServerMs(1_000), east(1, 0));
        assert_eq!(e.shown(ServerMs(1_000)).x, 501);
    }
}
