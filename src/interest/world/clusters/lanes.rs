//! Eight positions at a time, as short numbers: only their differences matter, and these are short
//! wherever a pair of clusters is not marked `exact`. Loops over arrays, for which the compiler uses
//! vector instructions.

use super::GROUP;
use crate::scene::Pos;

/// The low halves of the coordinates of eight entities.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(32))]
pub struct Lanes {
    x: [i16; GROUP],
    z: [i16; GROUP],
}

/// Largest difference along an axis, centimetres.
pub const LONGEST: i64 = 32_767;

/// Pairs within a cluster, each once: bits 8 j + i with i < j.
pub const TRIANGLE: u64 = triangle();

const fn triangle() -> u64 {
    let mut bits = 0;
    let mut j = 0;
    while j < GROUP {
        bits |= ((1 << j) - 1) << (GROUP * j);
        j += 1;
    }
    bits
}

impl Lanes {
    #[inline]
    pub fn set(&mut self, lane: usize, pos: Pos) {
        (self.x[lane], self.z[lane]) = (pos.x as i16, pos.z as i16);
    }
}

/// The square of a radius, or the largest number: no distance of short numbers exceeds it.
#[inline]
pub fn square(cm: i32) -> i32 {
    cm.saturating_mul(cm)
}

/// The pairs of lanes of which both are in the sets: bit 8 j + i for `i` of `a` and `j` of `b`.
#[inline]
pub fn product(a: u8, b: u8) -> u64 {
    // A byte for each bit of `b`, 1 where it is set.
    let spread = u64::from(b).wrapping_mul(0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    let ones = (spread.wrapping_add(0x7f7f_7f7f_7f7f_7f7f) | spread) >> 7 & 0x0101_0101_0101_0101;
    ones * u64::from(a)
}

/// The pairs whose squared distance is at most each limit.
#[inline]
pub fn within(a: &Lanes, b: &Lanes, most: [i32; 2]) -> [u64; 2] {
    // As wide as the distances, so that no lane is repacked. Only the low 8 bits are used.
    let (mut near, mut far) = ([0_i32; GROUP], [0_i32; GROUP]);
    for i in 0..GROUP {
        let (x, z, bit) = (a.x[i], a.z[i], 1 << i);
        for j in 0..GROUP {
            let (dx, dz) = (b.x[j].wrapping_sub(x) as i32, b.z[j].wrapping_sub(z) as i32);
            let d2 = (dx * dx).wrapping_add(dz * dz);
            near[j] |= -i32::from(d2 <= most[0]) & bit;
            far[j] |= -i32::from(d2 <= most[1]) & bit;
        }
    }
    [near, far].map(|bits| u64::from_le_bytes(bits.map(|bits| bits as u8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_has_a_bit_for_each_pair() {
        for a in [0, 1, 0x81, 0x5a, 0xff] {
            for b in [0, 1, 0x80, 0xa5, 0xff] {
                let has = |i: usize, j: usize| (a >> i) & (b >> j) & 1 == 1;
                let bits = product(a as u8, b as u8);
                for bit in 0..64 {
                    assert_eq!(bits >> bit & 1 == 1, has(bit % 8, bit / 8), "{a:x} {b:x} {bit}");
                }
            }
        }
        assert_eq!(TRIANGLE.count_ones(), 28);
    }

    #[test]
    fn distances_are_exact_up_to_the_longest() {
        let far = LONGEST as i32;
        let (mut a, mut b) = (Lanes::default(), Lanes::default());
        a.set(2, Pos::ground(5 - 70_000, 100_000));
        b.set(7, Pos::ground(5 - 70_000 + far, 100_000 - far));
        let limit = 2 * far * far;
        let bit = 8 * 7 + 2;
        assert_eq!(within(&a, &b, [limit, limit - 1]).map(|bits| bits >> bit & 1), [1, 0]);
    }
}
