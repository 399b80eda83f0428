//! Tests of the entries of a grid, eight at once. [`Near`](super::Near) calls [`collect`] for each row of cells.
//!
//! There is one test for every processor and one of AVX2 instructions. *Must never happen here:* the two
//! differ. Both round each operation alike, and a test compares them.

use std::ops::Range;

/// Entries are tested in groups of so many.
pub const LANES: usize = 8;

/// The entries of a grid. Each column is longer by [`LANES`] than there are entries.
#[derive(Debug, Default)]
pub struct Columns {
    /// Position, relative to the corner of all positions.
    pub x: Vec<f32>,
    pub z: Vec<f32>,
    /// Squared horizon when the grid was built, rounded up.
    pub bar: Vec<f32>,
    pub ix: Vec<u32>,
}

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Aim {
    pub at: (f32, f32),
    /// Squared distances are above `low2` and below `high2`.
    pub low2: f32,
    pub high2: f32,
    /// Centre of a rectangle along both axes, and half of its sides: entries are inside.
    pub centre: (f32, f32),
    pub half: (f32, f32),
    /// Bar and index of the player that looks.
    pub bar: f32,
    pub me: u32,
}

impl Columns {
    /// Makes room for so many entries.
    pub fn resize(&mut self, count: usize) {
        for column in [&mut self.x, &mut self.z, &mut self.bar] {
            column.resize(count + LANES, f32::INFINITY);
        }
        self.ix.resize(count + LANES, 0);
    }

    /// The group of entries that begins at `from`.
    #[inline]
    fn group(&self, from: usize) -> Group<'_> {
        const NOWHERE: &[f32; LANES] = &[f32::INFINITY; LANES];
        let lanes = |column: &'_ [f32]| -> [f32; LANES] {
            *column[from..].first_chunk().unwrap_or(NOWHERE)
        };
        let ix = self.ix[from..].first_chunk().unwrap_or(&[0; LANES]);
        Group { x: lanes(&self.x), z: lanes(&self.z), bar: lanes(&self.bar), ix }
    }
}

struct Group<'a> {
    x: [f32; LANES],
    z: [f32; LANES],
    bar: [f32; LANES],
    ix: &'a [u32; LANES],
}

/// Adds to `hits` the indices of the entries of a range that are where `aim` says. With `BARS`, they are also nearer
/// than their own bars, and come after the player that looks by bar and index: of each two players one finds the other.
/// `low2` does not count then.
#[inline]
#[allow(unsafe_code)]
pub fn collect<const BARS: bool>(
    columns: &Columns,
    of: Range<usize>,
    aim: &Aim,
    hits: &mut Vec<u32>,
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { avx2::collect::<BARS>(columns, of, aim, hits) };
    }
    by_groups(columns, of, hits, |group| test::<BARS>(group, aim));
}

#[inline]
fn by_groups(
    columns: &Columns,
    of: Range<usize>,
    hits: &mut Vec<u32>,
    test: impl Fn(&Group<'_>) -> u32,
) {
    let mut from = of.start;
    while from < of.end {
        let group = columns.group(from);
        // The last group reads on into the next row.
        let mut near = test(&group) & (u32::MAX >> (32 - (of.end - from).min(LANES)));
        while near != 0 {
            hits.push(group.ix[near.trailing_zeros() as usize % LANES]);
            near &= near - 1;
        }
        from += LANES;
    }
}

/// A bit for each entry that is found: the test for every processor.
#[inline]
fn test<const BARS: bool>(group: &Group<'_>, aim: &Aim) -> u32 {
    let mut near = 0;
    for lane in 0..LANES {
        let (x, z, bar) = (group.x[lane], group.z[lane], group.bar[lane]);
        let (dx, dz) = (x - aim.at.0, z - aim.at.1);
        let d2 = dx * dx + dz * dz;
        let inside =
            ((x - aim.centre.0).abs() <= aim.half.0) & ((z - aim.centre.1).abs() <= aim.half.1);
        let counts = match BARS {
            true => (d2 < bar) & ((bar > aim.bar) | ((bar == aim.bar) & (group.ix[lane] > aim.me))),
            false => d2 > aim.low2,
        };
        near |= u32::from((d2 < aim.high2) & inside & counts) << lane;
    }
    near
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;
    use std::ops::Range;

    use super::{Aim, Columns, Group, LANES, by_groups};

    #[target_feature(enable = "avx2")]
    pub fn collect<const BARS: bool>(
        columns: &Columns,
        of: Range<usize>,
        aim: &Aim,
        hits: &mut Vec<u32>,
    ) {
        by_groups(columns, of, hits, |group| test::<BARS>(group, aim));
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn lanes([a, b, c, d, e, f, g, h]: [f32; LANES]) -> __m256 {
        _mm256_setr_ps(a, b, c, d, e, f, g, h)
    }

    /// Whether lanes are no farther from `centre` than `half`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn within(lanes: __m256, centre: f32, half: f32) -> __m256 {
        let apart = _mm256_sub_ps(lanes, _mm256_set1_ps(centre));
        let distance = _mm256_andnot_ps(_mm256_set1_ps(-0.0), apart);
        _mm256_cmp_ps::<_CMP_LE_OQ>(distance, _mm256_set1_ps(half))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn test<const BARS: bool>(group: &Group<'_>, aim: &Aim) -> u32 {
        let (x, z) = (lanes(group.x), lanes(group.z));
        let dx = _mm256_sub_ps(x, _mm256_set1_ps(aim.at.0));
        let dz = _mm256_sub_ps(z, _mm256_set1_ps(aim.at.1));
        let d2 = _mm256_add_ps(_mm256_mul_ps(dx, dx), _mm256_mul_ps(dz, dz));
        let near = _mm256_cmp_ps::<_CMP_LT_OQ>(d2, _mm256_set1_ps(aim.high2));
        let columns = within(x, aim.centre.0, aim.half.0);
        let inside = _mm256_and_ps(columns, within(z, aim.centre.1, aim.half.1));
        let counts = if BARS {
            let (bar, mine) = (lanes(group.bar), _mm256_set1_ps(aim.bar));
            let [a, b, c, d, e, f, g, h] = group.ix.map(u32::cast_signed);
            let ix = _mm256_setr_epi32(a, b, c, d, e, f, g, h);
            let later = _mm256_cmpgt_epi32(ix, _mm256_set1_epi32(aim.me.cast_signed()));
            let alike = _mm256_cmp_ps::<_CMP_EQ_OQ>(bar, mine);
            let longer = _mm256_cmp_ps::<_CMP_GT_OQ>(bar, mine);
            let after = _mm256_or_ps(longer, _mm256_and_ps(alike, _mm256_castsi256_ps(later)));
            _mm256_and_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(d2, bar), after)
        } else {
            _mm256_cmp_ps::<_CMP_GT_OQ>(d2, _mm256_set1_ps(aim.low2))
        };
        _mm256_movemask_ps(_mm256_and_ps(_mm256_and_ps(near, inside), counts)) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Few different numbers, so that many are equal, and the ends of what there is.
    fn number() -> impl Strategy<Value = f32> {
        prop_oneof![
            6 => (0..12).prop_map(|n| n as f32),
            2 => (0..40_000_000).prop_map(|n| n as f32),
            1 => Just(f32::INFINITY),
        ]
    }

    fn aim() -> impl Strategy<Value = Aim> {
        let point = || (0..12, 0..12).prop_map(|(x, z)| (x as f32, z as f32));
        (point(), (number(), number()), point(), (number(), number()), (number(), 0..40_u32))
            .prop_map(|(at, (low2, high2), centre, half, (bar, me))| Aim {
                at,
                low2,
                high2,
                centre,
                half,
                bar,
                me,
            })
    }

    proptest! {
        #[test]
        fn the_fast_test_finds_what_the_other_one_finds(
            entries in prop::collection::vec((number(), number(), number()), 0..40),
            (start, len) in (0..40_usize, 0..40_usize),
            aim in aim(),
        ) {
            let mut columns = Columns::default();
            columns.resize(entries.len());
            for (at, (x, z, bar)) in entries.iter().copied().enumerate() {
                (columns.x[at], columns.z[at], columns.bar[at]) = (x, z, bar);
                columns.ix[at] = at as u32;
            }
            let start = start.min(entries.len());
            let of = start..(start + len).min(entries.len());
            let (mut fast, mut plain) = (Vec::new(), Vec::new());
            collect::<true>(&columns, of.clone(), &aim, &mut fast);
            by_groups(&columns, of.clone(), &mut plain, |group| test::<true>(group, &aim));
            prop_assert_eq!(&fast, &plain);
            collect::<false>(&columns, of.clone(), &aim, &mut fast);
            by_groups(&columns, of.clone(), &mut plain, |group| test::<false>(group, &aim));
            prop_assert_eq!(&fast, &plain);
            prop_assert!(plain.iter().all(|ix| of.contains(&(*ix as usize))));
        }
    }
}
