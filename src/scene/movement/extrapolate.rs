//! Where others are, at the viewer's end; and how to show a correction without a leap.

use super::{Course, ServerMs};
use crate::scene::Pos;

/// Lets what is shown catch up with what is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blend {
    /// For how long, milliseconds; 0 shows at once what is so.
    pub lasts_ms: u32,
    /// From how far off it leaps all the same, centimetres.
    pub snap_cm: u32,
    off: Pos,
    since_ms: u64,
}

impl Default for Blend {
    fn default() -> Blend {
        Blend::new(200, 500)
    }
}

impl Blend {
    /// Over `lasts_ms` milliseconds, for differences of less than `snap_cm` centimetres.
    pub fn new(lasts_ms: u32, snap_cm: u32) -> Blend {
        Blend { lasts_ms, snap_cm, off: Pos::default(), since_ms: 0 }
    }

    /// What is so has changed at `now_ms`, from what was shown to another place.
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

    /// What to show at `now_ms` when `is` is so.
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

/// Where another entity is, from what was last told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extrapolator {
    course: Course,
    blend: Blend,
}

impl Extrapolator {
    /// Somebody who comes into view.
    pub fn new(course: Course, blend: Blend) -> Extrapolator {
        Extrapolator { course, blend }
    }

    /// It moves otherwise. `now` is the moment, by the server's clock, for which it is shown.
    pub fn told(&mut self, now: ServerMs, course: Course) {
        let shown = self.shown(now);
        self.course = course;
        self.blend.begin(now.0, shown, course.position(now));
    }

    /// Where it is at `now`, as the server has it if it has told everything.
    pub fn position(&self, now: ServerMs) -> Pos {
        self.course.position(now)
    }

    /// Where to show it at `now`: where it is, reached without a leap.
    pub fn shown(&self, now: ServerMs) -> Pos {
        self.blend.shown(now.0, self.position(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::movement::{Move, Vector};

    fn east(x: i32, start: u64) -> Course {
        let v = Vector { vx_mm_s: 5_000, ..Vector::stand(Pos::ground(x, 0)) };
        Course { course: Move::Vector(v), start: ServerMs(start), lasts_ms: u32::MAX }
    }

    #[test]
    fn a_viewer_walks_on_by_itself_and_stops_where_it_was_told() {
        let e = Extrapolator::new(east(100, 1_000), Blend::default());
        assert_eq!(e.position(ServerMs(500)), Pos::ground(100, 0));
        assert_eq!(e.shown(ServerMs(3_000)), Pos::ground(1_100, 0));
        let short =
            Extrapolator::new(Course { lasts_ms: 400, ..east(100, 1_000) }, Blend::default());
        assert_eq!(short.position(ServerMs(9_000)), Pos::ground(300, 0));
    }

    #[test]
    fn news_are_reached_without_a_leap() {
        let mut e = Extrapolator::new(east(0, 0), Blend::new(200, 500));
        // It is at 500; it turns out that it began 40 cm further.
        e.told(ServerMs(1_000), east(40, 0));
        let shown = |e: &Extrapolator, ms| e.shown(ServerMs(ms)).x;
        assert_eq!((shown(&e, 1_000), shown(&e, 1_100), shown(&e, 1_200)), (500, 570, 640));
        // News during a blend begin from what is shown.
        e.told(ServerMs(1_200), east(60, 0));
        e.told(ServerMs(1_250), east(80, 0));
        assert_eq!(shown(&e, 1_250), 685 - 15);
    }

    #[test]
    fn what_is_too_far_off_leaps() {
        let mut e = Extrapolator::new(east(0, 0), Blend::new(200, 500));
        e.told(ServerMs(1_000), east(500, 0));
        assert_eq!(e.shown(ServerMs(1_000)).x, 1_000);
        let mut e = Extrapolator::new(east(0, 0), Blend::new(0, 500));
        e.told(ServerMs(1_000), east(1, 0));
        assert_eq!(e.shown(ServerMs(1_000)).x, 501);
    }
}
