//! Positions and rectangles on the ground, in integer centimetres. Distances must not overflow for
//! any positions.

use serde::{Deserialize, Serialize};

/// A position in centimetres: `x` and `z` on the ground, `y` up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Pos {
    /// Ground axis, centimetres from the map's west edge.
    pub x: i32,
    /// Height, centimetres.
    pub y: i32,
    /// Ground axis, centimetres from the map's north edge.
    pub z: i32,
}

impl Pos {
    /// A position on the ground (`y` = 0), in centimetres.
    pub const fn ground(x: i32, z: i32) -> Pos {
        Pos { x, y: 0, z }
    }

    /// Squared ground distance to `other`, in square centimetres.
    #[inline]
    pub fn dist2(self, other: Pos) -> u64 {
        dist2(self.x, self.z, other.x, other.z)
    }
}

/// Squared ground distance of two points, square centimetres. It cannot overflow.
#[inline]
pub fn dist2(ax: i32, az: i32, bx: i32, bz: i32) -> u64 {
    let dx = i64::from(ax) - i64::from(bx);
    let dz = i64::from(az) - i64::from(bz);
    dx.unsigned_abs().pow(2).saturating_add(dz.unsigned_abs().pow(2))
}

/// The distance whose square is `d2`, centimetres, rounded down.
#[inline]
pub fn dist_cm(d2: u64) -> u32 {
    (d2 as f64).sqrt() as u32
}

/// A rectangle on the ground, in centimetres: `x0 <= x < x1`, `z0 <= z < z1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Rect {
    /// West edge, inside.
    pub x0: i32,
    /// North edge, inside.
    pub z0: i32,
    /// East edge, outside.
    pub x1: i32,
    /// South edge, outside.
    pub z1: i32,
}

impl Rect {
    /// Whether the ground position lies inside.
    #[inline]
    pub fn contains(&self, p: Pos) -> bool {
        p.x >= self.x0 && p.x < self.x1 && p.z >= self.z0 && p.z < self.z1
    }

    /// How far outside the rectangle the position lies along the axis where it is farther out
    /// (Chebyshev), centimetres; 0 if inside.
    #[inline]
    pub fn outside_by(&self, p: Pos) -> i32 {
        let beyond = |low: i32, v: i32, high: i32| {
            low.saturating_sub(v).max(v.saturating_sub(high.saturating_sub(1))).max(0)
        };
        beyond(self.x0, p.x, self.x1).max(beyond(self.z0, p.z, self.z1))
    }

    /// The rectangle grown by `by` centimetres on every side.
    pub fn grown(&self, by: i32) -> Rect {
        Rect {
            x0: self.x0.saturating_sub(by),
            z0: self.z0.saturating_sub(by),
            x1: self.x1.saturating_add(by),
            z1: self.z1.saturating_add(by),
        }
    }

    /// Whether two rectangles share any point.
    pub fn intersects(&self, o: &Rect) -> bool {
        self.x0 < o.x1 && o.x0 < self.x1 && self.z0 < o.z1 && o.z0 < self.z1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Pos = Pos { x: i32::MIN, y: 0, z: i32::MAX };

    #[test]
    fn any_two_positions_have_a_distance() {
        let other = Pos { x: i32::MAX, y: 0, z: i32::MIN };
        assert_eq!(FAR.dist2(other), u64::MAX);
        assert_eq!(Pos::ground(0, 0).dist2(Pos::ground(-3, 4)), 25);
    }

    #[test]
    fn distance_outside_counts_from_the_last_centimetre_inside() {
        let rect = Rect { x0: 0, z0: 0, x1: 100, z1: 100 };
        assert_eq!(rect.outside_by(Pos::ground(99, 0)), 0);
        assert_eq!(rect.outside_by(Pos::ground(100, 0)), 1);
        assert_eq!(rect.outside_by(Pos::ground(-1, 102)), 3);
        assert_eq!(rect.outside_by(FAR), i32::MAX);
    }

    #[test]
    fn a_rectangle_grows_no_further_than_the_ends_of_the_world() {
        let rect = Rect { x0: 0, z0: 0, x1: 100, z1: 100 }.grown(i32::MAX);
        assert_eq!((rect.x0, rect.x1), (-i32::MAX, i32::MAX));
    }
}
