//! Casts a move over the tiles: how far it is clear, and what stops it.
//!
//! [`Walk`](super::walk) calls it on both sides. A position that a move can reach must never lie in
//! a blocked tile.

use super::path::Leg;
use super::{Footing, Path, Reason, Tile, Tiles, Vector};
use crate::scene::{Pos, Rect};

/// How far a way is clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clear {
    /// Milliseconds after the start up to which the move can be walked.
    pub ms: u32,
    /// What stops the move then, if anything.
    pub stop: Option<Reason>,
}

/// Checks a step from a tile to an adjacent one.
#[inline]
fn enter<T: Tiles>(on: &Footing<'_, T>, from: Tile, to: Tile) -> Result<(), Reason> {
    if !on.tiles.admits(on.plane, from, to) {
        return Err(Reason::blocked(to));
    }
    if from.x != to.x && from.z != to.z {
        let sides = [Tile { x: to.x, z: from.z }, Tile { x: from.x, z: to.z }];
        if sides.iter().all(|side| !on.tiles.admits(on.plane, from, *side)) {
            return Err(Reason::Squeezed { tile: (to.x, to.z) });
        }
    }
    climb(on, from, to)
}

fn climb<T: Tiles>(on: &Footing<'_, T>, from: Tile, to: Tile) -> Result<(), Reason> {
    let Some(limit) = on.rules.climb else { return Ok(()) };
    let (Some(low), Some(high)) = (on.tiles.height_cm(from), on.tiles.height_cm(to)) else {
        return Ok(());
    };
    let rise_cm = high.saturating_sub(low);
    if rise_cm <= limit.up_cm && rise_cm >= -limit.down_cm {
        return Ok(());
    }
    let (up_cm, down_cm) = (limit.up_cm, limit.down_cm);
    Err(Reason::TooSteep { tile: (to.x, to.z), rise_cm, up_cm, down_cm })
}

fn inside(bounds: &Rect, at: Pos) -> Result<(), Reason> {
    if bounds.contains(at) { Ok(()) } else { Err(Reason::OutOfBounds { at }) }
}

/// Checks every step of a path.
///
/// # Errors
/// What stops the first step that cannot be walked.
pub(super) fn check_path<T: Tiles>(path: &Path, on: &Footing<'_, T>) -> Result<(), Reason> {
    path.legs().enumerate().try_for_each(|(i, leg)| check_leg(path, i, &leg, on))
}

#[inline]
fn check_leg<T: Tiles>(
    path: &Path,
    i: usize,
    leg: &Leg,
    on: &Footing<'_, T>,
) -> Result<(), Reason> {
    inside(&on.rules.bounds, leg.to)?;
    enter(on, leg.tile, leg.next)?;
    match i == 0 && leg.step.is_diagonal() && !path.is_middle(leg) {
        true => check_corner(leg, on),
        false => Ok(()),
    }
}

/// A diagonal step from off the tile's middle passes the corner on one side and crosses the tile
/// there.
fn check_corner<T: Tiles>(leg: &Leg, on: &Footing<'_, T>) -> Result<(), Reason> {
    let tile_cm = on.tile_cm();
    // How much of the step's length is gone when it enters the next column or row.
    let gone = |from: i32, to: i32, tile: i32| {
        let low = i64::from(tile) * i64::from(tile_cm);
        let (from, to) = (i64::from(from), i64::from(to));
        let border = if to > from { low + i64::from(tile_cm) - from } else { from - low + 1 };
        (border * i64::from(leg.length) + (to - from).abs() - 1) / (to - from).abs().max(1)
    };
    let x = gone(leg.from.x, leg.to.x, leg.tile.x);
    let z = gone(leg.from.z, leg.to.z, leg.tile.z);
    let side = match x.cmp(&z) {
        std::cmp::Ordering::Less => Tile { x: leg.next.x, z: leg.tile.z },
        std::cmp::Ordering::Greater => Tile { x: leg.tile.x, z: leg.next.z },
        std::cmp::Ordering::Equal => return Ok(()),
    };
    enter(on, leg.tile, side)?;
    enter(on, side, leg.next)
}

/// How far a path that was legal can still be walked from `from_ms` on: to the middle of the last
/// tile before the first that can no longer be entered.
pub(super) fn clear_path<T: Tiles>(path: &Path, from_ms: u32, on: &Footing<'_, T>) -> Clear {
    let speed = u64::from(path.speed_cm_s().max(1));
    let gone = u64::from(path.speed_cm_s()) * u64::from(from_ms);
    let mut begins = 0_u64;
    for (i, leg) in path.legs().enumerate() {
        let ends = begins + u64::from(leg.length);
        let entered = Tile::of(path.position(from_ms), on.tile_cm()) == leg.next;
        if ends > gone
            && !(begins <= gone && entered)
            && let Err(stop) = check_leg(path, i, &leg, on)
        {
            let ms = u32::try_from(begins / speed).unwrap_or(u32::MAX);
            return Clear { ms: ms.max(from_ms), stop: Some(stop) };
        }
        begins = ends;
    }
    Clear { ms: path.walk_ms(), stop: None }
}

/// When one coordinate of a vector comes to the border of a tile or of the scene.
#[derive(Debug, Clone, Copy)]
struct Axis {
    start: i64,
    v: i64,
    side: i64,
    tile: i64,
}

impl Axis {
    fn new(start: i32, v: i32, tile_cm: i32, at: i32) -> Axis {
        let side = i64::from(tile_cm);
        Axis { start: start.into(), v: v.into(), side, tile: i64::from(at).div_euclid(side) }
    }

    /// The first millisecond in which the coordinate is at `to` or beyond, in its direction.
    fn reaches(&self, to: i64) -> u64 {
        let way = if self.v > 0 { to - self.start } else { self.start - to };
        if self.v == 0 {
            return u64::MAX;
        }
        // Positions are rounded towards the start: the whole way must be gone.
        (way.max(0).unsigned_abs() * 10_000).div_ceil(self.v.unsigned_abs())
    }

    /// The first millisecond in the next tile.
    #[inline]
    fn next(&self) -> u64 {
        let low = self.tile * self.side;
        self.reaches(if self.v > 0 { low + self.side } else { low - 1 })
    }

    fn go(&mut self) -> i32 {
        self.tile += self.v.signum();
        self.tile.clamp(i32::MIN.into(), i32::MAX.into()) as i32
    }

    /// The first millisecond outside `low..high`.
    fn leaves(&self, low: i32, high: i32) -> u64 {
        self.reaches(if self.v > 0 { i64::from(high) } else { i64::from(low) - 1 })
    }
}

/// How far a vector can be walked from `from_ms` (its tile then counts as free) to at most `to_ms`:
/// up to the last millisecond before it enters a blocked tile or leaves the bounds.
pub(super) fn clear_vector<T: Tiles>(
    vector: &Vector,
    (from_ms, to_ms): (u32, u32),
    on: &Footing<'_, T>,
) -> Clear {
    let to_ms = to_ms.min(vector.walk_ms()).max(from_ms);
    let tile_cm = on.tile_cm();
    let here = vector.position(from_ms);
    let mut x = Axis::new(vector.start.x, vector.vx_mm_s, tile_cm, here.x);
    let mut z = Axis::new(vector.start.z, vector.vz_mm_s, tile_cm, here.z);
    let bounds = &on.rules.bounds;
    let out = x.leaves(bounds.x0, bounds.x1).min(z.leaves(bounds.z0, bounds.z1));
    let stopped = |at: u64, stop: Reason| {
        let last = u32::try_from(at.saturating_sub(1)).unwrap_or(u32::MAX);
        Clear { ms: last.max(from_ms), stop: Some(stop) }
    };
    let mut tile = Tile::of(here, tile_cm);
    loop {
        let (next_x, next_z) = (x.next(), z.next());
        let at = next_x.min(next_z);
        if at.min(out) > to_ms.into() {
            return Clear { ms: to_ms, stop: None };
        }
        if out <= at {
            let at = u32::try_from(out).unwrap_or(u32::MAX);
            return stopped(out, Reason::OutOfBounds { at: vector.position(at) });
        }
        let mut next = tile;
        if next_x == at {
            next.x = x.go();
        }
        if next_z == at {
            next.z = z.go();
        }
        if let Err(stop) = enter(on, tile, next) {
            return stopped(at, stop);
        }
        tile = next;
    }
}

/// Checks the straight line from a position to another one near it.
///
/// # Errors
/// What is in the way.
pub(super) fn check_line<T: Tiles>(from: Pos, to: Pos, on: &Footing<'_, T>) -> Result<(), Reason> {
    inside(&on.rules.bounds, to)?;
    // The line takes one second: ten times the centimetres are millimetres per second.
    let along = |a: i32, b: i32| b.saturating_sub(a).saturating_mul(10);
    let (vx_mm_s, vz_mm_s) = (along(from.x, to.x), along(from.z, to.z));
    let line = Vector { start: from, vx_mm_s, vz_mm_s, lasts_ms: None };
    clear_vector(&line, (0, 1_000), on).stop.map_or(Ok(()), Err)
}
