//! The tile-by-tile form of a move.
//!
//! Client, server and viewers compute positions with it, so every result is an integer and must
//! stay equal on all sides and in every client language (`docs/movement.md`).

use serde::{Deserialize, Serialize};

use super::vector::MAX_SPEED_CM_S;
use super::{Step, Steps, Tile};
use crate::scene::Pos;

/// A walk from a position along a list of steps, at one speed, standing at the end.
///
/// Each step leads to the middle of the next tile. The first step starts wherever the path starts,
/// so an entity off the middle of its tile is back on the grid after it; the others lead from
/// middle to middle. A diagonal step is longer by the square root of 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    start: Pos,
    speed_cm_s: u32,
    tile_cm: i32,
    /// Lengths of the first step and of a diagonal step, in thousandths of a centimetre: the
    /// distance that 1 cm/s covers in 1 ms. `walk_ms` is the duration of the whole path.
    first: u32,
    diagonal: u32,
    walk_ms: u32,
    steps: Steps,
}

/// One step of a path, as positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leg {
    pub step: Step,
    pub from: Pos,
    pub to: Pos,
    /// The tile where the step starts and the tile where it leads.
    pub tile: Tile,
    pub next: Tile,
    /// Length, thousandths of a centimetre.
    pub length: u32,
}

/// Longest side of a tile, centimetres: 1 km.
pub const MAX_TILE_CM: i32 = 100_000;

impl Path {
    /// A path over tiles with sides of `tile_cm`, clamped to 1 cm to 1 km. `speed_cm_s` is limited
    /// to 1,000 km/s. A path without steps or speed stands.
    pub fn new(start: Pos, steps: Steps, speed_cm_s: u32, tile_cm: i32) -> Path {
        let tile_cm = tile_cm.clamp(1, MAX_TILE_CM);
        let speed_cm_s = speed_cm_s.min(MAX_SPEED_CM_S);
        let (first, diagonal, walk_ms) = (0, way((tile_cm, tile_cm)), 0);
        let mut path = Path { start, speed_cm_s, tile_cm, first, diagonal, walk_ms, steps };
        if let Some(leg) = path.legs().next() {
            path.first =
                way((leg.to.x.abs_diff(start.x) as i32, leg.to.z.abs_diff(start.z) as i32));
        }
        let all: u64 = path.legs().map(|leg| u64::from(leg.length)).sum();
        if speed_cm_s > 0 {
            path.walk_ms = u32::try_from(all.div_ceil(speed_cm_s.into())).unwrap_or(u32::MAX);
        }
        path
    }

    /// The same path over tiles with sides of `tile_cm`.
    pub fn with_tile(&self, tile_cm: i32) -> Path {
        match tile_cm == self.tile_cm {
            true => *self,
            false => Path::new(self.start, self.steps, self.speed_cm_s, tile_cm),
        }
    }

    /// The same steps from another position.
    pub(super) fn begun_at(&self, start: Pos) -> Path {
        Path::new(start, self.steps, self.speed_cm_s, self.tile_cm)
    }

    /// Start position.
    pub fn start(&self) -> Pos {
        self.start
    }

    /// The steps.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    /// Speed, centimetres per second.
    pub fn speed_cm_s(&self) -> u32 {
        self.speed_cm_s
    }

    /// Milliseconds until the end is reached; 0 for a path that stands.
    #[inline]
    pub fn walk_ms(&self) -> u32 {
        self.walk_ms
    }

    /// Position `elapsed_ms` after the start. Within a step, after `d` of `length`, the entity has
    /// gone `trunc(delta * d / length)` along each axis. Height stays that of the start.
    ///
    /// A diagonal step from the middle of a tile passes the corner and is never in the tiles beside
    /// it: while one coordinate is in the next tile and the other is not, both stay in the old
    /// tile.
    pub fn position(&self, elapsed_ms: u32) -> Pos {
        if self.walk_ms == 0 {
            return self.start;
        }
        let (leg, gone) = self.leg_at(elapsed_ms);
        let Some(leg) = leg else { return self.end() };
        let along = |from: i32, to: i32| {
            let whole = i64::from(to) - i64::from(from);
            from.saturating_add((whole * gone as i64 / i64::from(leg.length)) as i32)
        };
        let (x, z) = (along(leg.from.x, leg.to.x), along(leg.from.z, leg.to.z));
        let at = Pos { x, z, ..self.start };
        let tile = Tile::of(at, self.tile_cm);
        if tile != leg.tile && tile != leg.next && self.is_middle(&leg) {
            return leg.tile.nearest(self.tile_cm, at);
        }
        at
    }

    /// Whether a step starts in the middle of its tile.
    pub(super) fn is_middle(&self, leg: &Leg) -> bool {
        leg.from == leg.tile.middle(self.tile_cm, self.start.y)
    }

    /// The last position of the path.
    pub fn end(&self) -> Pos {
        match self.walk_ms {
            0 => self.start,
            _ => self.legs().last().map_or(self.start, |leg| leg.to),
        }
    }

    /// The step in progress and how much of its length is gone (less than all of it); `None` at the
    /// end.
    fn leg_at(&self, elapsed_ms: u32) -> (Option<Leg>, u64) {
        let mut left = u64::from(self.speed_cm_s) * u64::from(elapsed_ms);
        for leg in self.legs() {
            if left < leg.length.into() {
                return (Some(leg), left);
            }
            left -= u64::from(leg.length);
        }
        (None, 0)
    }

    /// The steps to the tiles not reached yet after `elapsed_ms`: a new walk from that position
    /// with these steps comes to the same end.
    pub fn rest(&self, elapsed_ms: u32) -> Steps {
        let tile = Tile::of(self.position(elapsed_ms), self.tile_cm);
        let mut left = u64::from(self.speed_cm_s) * u64::from(elapsed_ms);
        for (i, leg) in self.legs().enumerate() {
            if left < leg.length.into() {
                // A diagonal step that started off the middle may be in the tile beside its corner.
                let step = Step::between(tile, leg.next);
                let ahead = step.into_iter().chain(self.steps.iter().skip(i + 1));
                return ahead.collect();
            }
            left -= u64::from(leg.length);
        }
        Steps::default()
    }

    /// The steps as positions.
    pub(super) fn legs(&self) -> Legs<'_> {
        Legs { path: self, i: 0, from: self.start, tile: Tile::of(self.start, self.tile_cm) }
    }
}

/// Length of a way in thousandths of a centimetre, rounded down. Holds ways of up to 1.5 tiles.
fn way((dx, dz): (i32, i32)) -> u32 {
    let square = |d: i32| u64::from(d.unsigned_abs()).saturating_pow(2).saturating_mul(1_000_000);
    u32::try_from(square(dx).saturating_add(square(dz)).isqrt()).unwrap_or(u32::MAX)
}

/// Iterator of [`Path::legs`].
#[derive(Debug)]
pub(super) struct Legs<'a> {
    path: &'a Path,
    i: usize,
    from: Pos,
    tile: Tile,
}

impl Iterator for Legs<'_> {
    type Item = Leg;

    #[inline]
    fn next(&mut self) -> Option<Leg> {
        let step = self.path.steps.get(self.i)?;
        let next = self.tile.moved(step.delta());
        let to = next.middle(self.path.tile_cm, self.path.start.y);
        let length = match self.i {
            0 => self.path.first,
            _ if step.is_diagonal() => self.path.diagonal,
            _ => self.path.tile_cm as u32 * 1_000,
        };
        let leg = Leg { step, from: self.from, to, tile: self.tile, next, length };
        (self.i, self.from, self.tile) = (self.i + 1, to, next);
        Some(leg)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(x: i32, z: i32, steps: &str) -> Path {
        Path::new(Pos { x, y: 9, z }, steps.parse().unwrap(), 500, 100)
    }

    fn at(path: &Path, ms: u32) -> (i32, i32) {
        let pos = path.position(ms);
        assert_eq!(pos.y, 9);
        (pos.x, pos.z)
    }

    #[test]
    fn a_diagonal_step_is_the_root_of_two_longer_than_a_straight_one() {
        let p = path(50, 50, "7704");
        assert_eq!((at(&p, 0), at(&p, 199), at(&p, 200)), ((50, 50), (149, 50), (150, 50)));
        assert_eq!(at(&p, 400), (250, 50));
        // 141.421 cm at 5 m/s.
        assert_eq!((at(&p, 682), at(&p, 683)), ((349, 149), (350, 150)));
        assert_eq!(p.walk_ms(), 883);
        assert_eq!(
            (at(&p, 882), at(&p, 883), at(&p, u32::MAX)),
            ((350, 249), (350, 250), (350, 250))
        );
        assert_eq!(p.end(), p.position(u32::MAX));
    }

    #[test]
    fn a_path_that_starts_off_the_middle_is_back_on_the_grid_after_one_step() {
        let p = path(80, 10, "77");
        // From (80, 10) to (150, 50): 80.622 cm.
        assert_eq!((at(&p, 161), at(&p, 162)), ((149, 49), (150, 50)));
        assert_eq!(p.end(), Pos { x: 250, y: 9, z: 50 });
    }

    #[test]
    fn a_path_without_steps_or_speed_stands() {
        let start = Pos::ground(80, 10);
        for p in [
            Path::new(start, Steps::default(), 500, 100),
            Path::new(start, "7".parse().unwrap(), 0, 100),
        ] {
            assert_eq!((p.walk_ms(), p.position(u32::MAX), p.end()), (0, start, start));
        }
    }

    #[test]
    fn paths_work_with_any_tile_side_and_at_any_position() {
        let far = Pos { x: i32::MAX, y: i32::MIN, z: i32::MIN };
        let steps: Steps = "01234567".repeat(8).parse().unwrap();
        for tile_cm in [i32::MIN, 0, 1, 3, i32::MAX] {
            for speed in [1_000, u32::MAX] {
                let p = Path::new(far, steps, speed, tile_cm);
                assert_eq!(p.position(u32::MAX), p.end());
            }
        }
    }

    proptest! {
        #[test]
        fn a_path_advances_at_its_speed_without_jumps(
            (x, z) in (0_i32..1_000, 0_i32..1_000),
            steps in "[0-7]{0,20}",
            (speed, tile) in (1_u32..3_000, 1_i32..500),
        ) {
            let p = Path::new(Pos::ground(x, z), steps.parse().unwrap(), speed, tile);
            let mut last = p.start();
            for ms in (0..=p.walk_ms().min(60_000)).step_by(7) {
                let now = p.position(ms);
                let way = (last.dist2(now) as f64).sqrt();
                // Positions are rounded to centimetres at both ends.
                prop_assert!(way <= f64::from(speed) * 0.007 + 2.9, "{way} cm in 7 ms");
                last = now;
            }
            prop_assert_eq!(p.position(p.walk_ms()), p.end());
        }

        #[test]
        fn a_walk_restarted_on_its_way_comes_to_the_same_end(
            (x, z) in (0_i32..1_000, 0_i32..1_000), steps in "[0-7]{1,20}", ms in 0_u32..9_000,
        ) {
            let p = Path::new(Pos::ground(x, z), steps.parse().unwrap(), 500, 100);
            let again = Path::new(p.position(ms), p.rest(ms), 500, 100);
            // The ends differ by less than a tile: past a tile border, the rest turns to the next
            // tile from there.
            let off = again.end().dist2(p.end());
            prop_assert_eq!(Tile::of(again.end(), 100), Tile::of(p.end(), 100));
            prop_assert!(off == 0 || again.steps().is_empty());
        }
    }
}
