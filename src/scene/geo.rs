//! Positions and rectangles, in integer centimetres.

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
    pub fn ground(x: i32, z: i32) -> Pos {
        Pos { x, y: 0, z }
    }

    /// Squared ground distance to `other`, in square centimetres.
    #[inline]
    pub fn dist2(self, other: Pos) -> u64 {
        dist2(self.x, self.z, other.x, other.z)
    }
}

/// Squared ground distance of two points, in square centimetres; never overflows.
#[inline]
pub fn dist2(ax: i32, az: i32, bx: i32, bz: i32) -> u64 {
    let dx = i64::from(ax) - i64::from(bx);
    let dz = i64::from(az) - i64::from(bz);
    (dx * dx + dz * dz) as u64
}

/// A rectangle on the ground, in centimetres: `x0 <= x < x1`, `z0 <= z < z1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

    /// How far outside the rectangle the position lies along its worse axis (Chebyshev), in
    /// centimetres; 0 when inside.
    #[inline]
    pub fn outside_by(&self, p: Pos) -> i32 {
        let dx = (self.x0 - p.x).max(p.x - (self.x1 - 1)).max(0);
        let dz = (self.z0 - p.z).max(p.z - (self.z1 - 1)).max(0);
        dx.max(dz)
    }

    /// The rectangle grown by `by` centimetres on every side.
    pub fn grown(&self, by: i32) -> Rect {
        Rect { x0: self.x0 - by, z0: self.z0 - by, x1: self.x1 + by, z1: self.z1 + by }
    }

    /// Whether two rectangles share any point.
    pub fn intersects(&self, o: &Rect) -> bool {
        self.x0 < o.x1 && o.x0 < self.x1 && self.z0 < o.z1 && o.z0 < self.z1
    }

    /// The shorter side, in centimetres.
    pub fn short_side(&self) -> i32 {
        (self.x1 - self.x0).min(self.z1 - self.z0)
    }
}
