//! Distances of eight entities from eight others at a time, as short numbers: only their differences
//! matter, and these are short wherever a pair of clusters is not marked `exact`.
//!
//! There is one test of 64 pairs for every processor, and faster ones for those with AVX2 or AVX-512.
//! [`run`] chooses.

use super::GROUP;
use crate::scene::Pos;

/// The low halves of the coordinates of eight entities: x below, z above.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(32))]
pub struct Lanes([i32; GROUP]);

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
        self.0[lane] = pos.z << 16 | i32::from(pos.x as u16);
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

/// A test of 64 pairs: those whose squared distance is at most each limit.
pub(super) trait Test: Fn(&Lanes, &Lanes, [i32; 2]) -> [u64; 2] + Copy {}

impl<T: Fn(&Lanes, &Lanes, [i32; 2]) -> [u64; 2] + Copy> Test for T {}

/// Work that tests many pairs. `run` and what calls the test must be inlined, so that the test is,
/// too.
pub(super) trait Work {
    /// The result.
    type Output;

    /// Does the work.
    fn run(self, test: impl Test) -> Self::Output;
}

/// Does work with the fastest test that this processor has.
#[allow(unsafe_code)]
pub(super) fn run<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx512f") && has!("avx512bw") {
            // SAFETY: the processor has these instructions.
            return unsafe { avx512::run(work) };
        }
        if has!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { avx2::run(work) };
        }
    }
    work.run(within)
}

/// The test for every processor.
#[inline]
fn within(a: &Lanes, b: &Lanes, most: [i32; 2]) -> [u64; 2] {
    // As wide as the distances, so that no lane is repacked. Only the low 8 bits are used.
    let (mut near, mut far) = ([0_i32; GROUP], [0_i32; GROUP]);
    for i in 0..GROUP {
        for j in 0..GROUP {
            let dx = i32::from(b.0[j].wrapping_sub(a.0[i]) as i16);
            let dz = i32::from((b.0[j] >> 16).wrapping_sub(a.0[i] >> 16) as i16);
            let d2 = (dx * dx).wrapping_add(dz * dz);
            near[j] |= -i32::from(d2 <= most[0]) & 1 << i;
            far[j] |= -i32::from(d2 <= most[1]) & 1 << i;
        }
    }
    [near, far].map(|bits| u64::from_le_bytes(bits.map(|bits| bits as u8)))
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{GROUP, Lanes, Work};

    #[target_feature(enable = "avx2")]
    pub fn run<W: Work>(work: W) -> W::Output {
        work.run(|a, b, most| within(a, b, most))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn within(a: &Lanes, b: &Lanes, most: [i32; 2]) -> [u64; 2] {
        let [a0, a1, a2, a3, a4, a5, a6, a7] = a.0;
        let all = _mm256_setr_epi32(a0, a1, a2, a3, a4, a5, a6, a7);
        let mut squares = [_mm256_setzero_si256(); GROUP];
        for (square, b) in squares.iter_mut().zip(b.0) {
            let apart = _mm256_sub_epi16(all, _mm256_set1_epi32(b));
            *square = _mm256_madd_epi16(apart, apart);
        }
        [at_most(&squares, most[0]), at_most(&squares, most[1])]
    }

    /// A bit for each number that is at most `most`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn at_most(squares: &[__m256i; GROUP], most: i32) -> u64 {
        let most = _mm256_set1_epi32(most);
        let mut halves = [0; 2];
        for (half, four) in halves.iter_mut().zip(squares.chunks_exact(4)) {
            let one = beyond(four[0], four[1], most);
            let other = beyond(four[2], four[3], most);
            // Packing works on halves of 16 bytes: bring the bytes of each number together.
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            let bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(one, other), order);
            *half = !(_mm256_movemask_epi8(bytes) as u32);
        }
        u64::from(halves[1]) << 32 | u64::from(halves[0])
    }

    /// Short numbers that are -1 where a number is larger than `most`, else 0.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn beyond(one: __m256i, other: __m256i, most: __m256i) -> __m256i {
        _mm256_packs_epi32(_mm256_cmpgt_epi32(one, most), _mm256_cmpgt_epi32(other, most))
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::{GROUP, Lanes, Work};

    #[target_feature(enable = "avx512f,avx512bw")]
    pub fn run<W: Work>(work: W) -> W::Output {
        work.run(|a, b, most| within(a, b, most))
    }

    /// Two lanes of `b` at a time.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub fn within(a: &Lanes, b: &Lanes, most: [i32; 2]) -> [u64; 2] {
        let (all, others) = (twice(a), twice(b));
        let (near, far) = (_mm512_set1_epi32(most[0]), _mm512_set1_epi32(most[1]));
        let mut bits = [0; 2];
        for two in 0..GROUP as i32 / 2 {
            let (j, k) = (2 * two, 2 * two + 1);
            let lanes = _mm512_setr_epi32(j, j, j, j, j, j, j, j, k, k, k, k, k, k, k, k);
            let apart = _mm512_sub_epi16(all, _mm512_permutexvar_epi32(lanes, others));
            let square = _mm512_madd_epi16(apart, apart);
            bits[0] |= u64::from(_mm512_cmple_epi32_mask(square, near)) << (16 * two);
            bits[1] |= u64::from(_mm512_cmple_epi32_mask(square, far)) << (16 * two);
        }
        bits
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn twice(lanes: &Lanes) -> __m512i {
        let [a, b, c, d, e, f, g, h] = lanes.0;
        _mm512_setr_epi32(a, b, c, d, e, f, g, h, a, b, c, d, e, f, g, h)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interest::tests::Rng;

    struct One<'a>(&'a Lanes, &'a Lanes, [i32; 2]);

    /// The results of all tests that this processor has.
    #[allow(unsafe_code)]
    fn all_tests(a: &Lanes, b: &Lanes, most: [i32; 2]) -> Vec<[u64; 2]> {
        let mut all = vec![within(a, b, most), run(One(a, b, most))];
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            all.push(unsafe { avx2::run(One(a, b, most)) });
        }
        all
    }

    impl Work for One<'_> {
        type Output = [u64; 2];

        fn run(self, test: impl Test) -> [u64; 2] {
            test(self.0, self.1, self.2)
        }
    }

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
        for bits in all_tests(&a, &b, [limit, limit - 1]) {
            assert_eq!(bits.map(|bits| bits >> bit & 1), [1, 0]);
        }
    }

    #[test]
    fn all_tests_find_the_pairs_within_a_limit() {
        let mut rng = Rng(5);
        for round in 0..2_000 {
            let size = [40, 2_000, 32_768][round % 3];
            let [one, other] =
                [(); 2].map(|()| [(); GROUP].map(|()| (rng.below(size), rng.below(size))));
            let most = [square(size / 2), if round % 2 == 0 { -1 } else { square(size / 3) }];
            let lanes = [&one, &other].map(|places| {
                let mut lanes = Lanes::default();
                for (lane, (x, z)) in places.iter().enumerate() {
                    lanes.set(lane, Pos::ground(x - 90_000, z + 7));
                }
                lanes
            });
            let expected = most.map(|most| {
                (0..64).fold(0, |bits, bit| {
                    let (a, b) = (one[bit % 8], other[bit / 8]);
                    let (dx, dz) = (i64::from(a.0 - b.0), i64::from(a.1 - b.1));
                    bits | u64::from(dx * dx + dz * dz <= i64::from(most)) << bit
                })
            });
            for bits in all_tests(&lanes[0], &lanes[1], most) {
                assert_eq!(bits, expected);
            }
        }
    }
}
