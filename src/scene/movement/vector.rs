//! The straight form of a move: a velocity, for a time.
//!
//! Client, server and viewers compute positions with it, so every result is an integer and must
//! stay equal on all sides and in every client language (`docs/movement.md`).

use serde::{Deserialize, Serialize};

use crate::scene::Pos;

/// Straight on from a position. Direction and speed are given together as a velocity.
///
/// The velocity is a vector of integers and not an angle with a speed. Every language multiplies
/// and divides integers alike, so no table of sines has to be equal on both sides; the speed check
/// is a sum of two squares; and no product comes near 2^53, the end of JavaScript's exact integers.
/// At 5 m/s the finest turn is a hundredth of a degree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vector {
    /// Start position.
    pub start: Pos,
    /// Velocity to the east, millimetres per second.
    pub vx_mm_s: i32,
    /// Velocity to the south, millimetres per second.
    pub vz_mm_s: i32,
    /// Duration, milliseconds; then the entity stands. `None`: until the next command.
    pub lasts_ms: Option<u32>,
}

/// Millimetres per second times milliseconds, per centimetre.
const PER_CM: i64 = 10_000;

impl Vector {
    /// Standing at a position.
    pub fn stand(start: Pos) -> Vector {
        Vector { start, vx_mm_s: 0, vz_mm_s: 0, lasts_ms: None }
    }

    /// From `start` in the direction (`dx`, `dz`) at `speed_cm_s`, rounded so that it is never
    /// faster. (0, 0) stands.
    pub fn heading(start: Pos, dx: i32, dz: i32, speed_cm_s: u32) -> Vector {
        // A scaled vector of the same direction: rounding its length to an integer loses nothing.
        let longer = dx.unsigned_abs().max(dz.unsigned_abs()).leading_zeros().saturating_sub(4);
        let (dx, dz) = (i64::from(dx) << longer, i64::from(dz) << longer);
        let length = ceil_sqrt(dx.unsigned_abs().pow(2) + dz.unsigned_abs().pow(2)).max(1) as i64;
        let top = i64::from(speed_cm_s.min(MAX_SPEED_CM_S)) * 10;
        let along = |d: i64| (d * top / length) as i32;
        Vector { start, vx_mm_s: along(dx), vz_mm_s: along(dz), lasts_ms: None }
    }

    /// Position `elapsed_ms` after the start: `start + trunc(v * elapsed / 10,000)` along each
    /// axis, rounded towards the start. Height stays that of the start.
    #[inline]
    pub fn position(&self, elapsed_ms: u32) -> Pos {
        let t = i64::from(elapsed_ms.min(self.walk_ms()));
        let along = |from: i32, v: i32| {
            let at = i64::from(from).saturating_add(i64::from(v) * t / PER_CM);
            at.clamp(i32::MIN.into(), i32::MAX.into()) as i32
        };
        let Pos { x, y, z } = self.start;
        Pos { x: along(x, self.vx_mm_s), y, z: along(z, self.vz_mm_s) }
    }

    /// Milliseconds after which the entity stands; 0 if it does not move, `u32::MAX` if it moves
    /// until the next command.
    #[inline]
    pub fn walk_ms(&self) -> u32 {
        match (self.vx_mm_s, self.vz_mm_s) {
            (0, 0) => 0,
            _ => self.lasts_ms.unwrap_or(u32::MAX),
        }
    }

    /// Speed, centimetres per second, rounded up.
    pub fn speed_cm_s(&self) -> u32 {
        let square = |v: i32| u64::from(v.unsigned_abs()).pow(2);
        ceil_sqrt(square(self.vx_mm_s) + square(self.vz_mm_s)).div_ceil(10) as u32
    }
}

/// Greatest speed in any computation: 1,000 km/s.
pub const MAX_SPEED_CM_S: u32 = 100_000_000;

/// The square root, rounded up. For numbers up to 2^63.
pub(super) fn ceil_sqrt(n: u64) -> u64 {
    let root = n.isqrt();
    root + u64::from(root * root < n)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_vector_covers_its_velocity_in_a_second() {
        let v = Vector {
            start: Pos { x: 10, y: 7, z: -20 },
            vx_mm_s: 3_000,
            vz_mm_s: -4_000,
            lasts_ms: None,
        };
        assert_eq!(v.speed_cm_s(), 500);
        assert_eq!(v.position(0), v.start);
        assert_eq!(v.position(1_000), Pos { x: 310, y: 7, z: -420 });
        // 3.33 ms to a centimetre along x, 2.5 ms along z; both are rounded towards the start.
        assert_eq!(v.position(3), Pos { x: 10, y: 7, z: -21 });
        assert_eq!(v.position(4), Pos { x: 11, y: 7, z: -21 });
        let short = Vector { lasts_ms: Some(4), ..v };
        assert_eq!(short.position(90_000), v.position(4));
    }

    #[test]
    fn positions_saturate_at_the_ends_of_the_world() {
        let start = Pos { x: i32::MAX, y: 0, z: i32::MIN };
        let v = Vector { start, vx_mm_s: i32::MAX, vz_mm_s: i32::MIN, lasts_ms: None };
        assert_eq!(v.position(u32::MAX), start);
        let back = Vector { vx_mm_s: i32::MIN, vz_mm_s: i32::MAX, ..v };
        assert_eq!(back.position(u32::MAX), Pos { x: i32::MIN, y: 0, z: i32::MAX });
        assert_eq!(v.speed_cm_s(), 303_700_050);
    }

    fn short_or_long() -> impl Strategy<Value = i32> {
        prop_oneof![-3..=3, any::<i32>()]
    }

    proptest! {
        #[test]
        fn a_heading_is_never_faster_than_asked_and_hardly_slower(
            dx in short_or_long(), dz in short_or_long(), speed in 1_u32..100_000,
        ) {
            prop_assume!((dx, dz) != (0, 0));
            let v = Vector::heading(Pos::default(), dx, dz, speed);
            let (vx, vz) = (f64::from(v.vx_mm_s), f64::from(v.vz_mm_s));
            let top = f64::from(speed) * 10.0;
            prop_assert!(v.speed_cm_s() <= speed);
            // Truncation takes less than a millimetre per second along each axis.
            prop_assert!(vx.hypot(vz) >= top - 1.5, "{} of {top}", vx.hypot(vz));
        }

        #[test]
        fn a_vector_never_gets_ahead_of_its_speed(
            vx in -50_000_i32..50_000, vz in -50_000_i32..50_000, t in 0_u32..100_000,
        ) {
            let v = Vector { start: Pos::default(), vx_mm_s: vx, vz_mm_s: vz, lasts_ms: None };
            let at = v.position(t);
            let way = f64::from(at.x).hypot(f64::from(at.z));
            let top = f64::from(vx).hypot(f64::from(vz)) * f64::from(t) / 10_000.0;
            prop_assert!(way <= top + 1e-6 && way >= top - 1.5);
        }
    }
}
