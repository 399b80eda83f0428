//! The margin of patches: two entities that are in range of each other stay so until they are out of
//! range by more than the margin.
//!
//! Without it two people who walk side by side come and go in each other's views: now the first one is
//! across a border of patches, now both are. Regions ask for both ends of a pair and must get the same
//! answer, so the rule reads nothing but the two positions.

use super::{Pos, RangeSet};

/// How a layer is cut into patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchRule {
    /// Sides of a patch along x and z, centimetres, at least 1.
    pub side_cm: [i32; 2],
    /// How much nearer each of two entities that have been in range may count, centimetres, at most
    /// half the shorter side.
    pub margin_cm: i32,
}

impl PatchRule {
    /// Whether two entities stay in range: with each of them no farther from its position than the
    /// margin, the ring between them may be one that both have.
    pub fn keeps(&self, both: RangeSet, a: Pos, b: Pos) -> bool {
        let [x, z] = [(0, a.x, b.x), (1, a.z, b.z)].map(|(axis, a, b)| self.apart(axis, a, b));
        let (least, most) = (x.0.max(z.0), x.1.max(z.1));
        (least..=most.min(2)).any(|ring| both.has_ring(ring as u32))
    }

    /// Least and most patches between two coordinates along an axis.
    fn apart(&self, axis: usize, a: i32, b: i32) -> (i64, i64) {
        let (side, margin) = (i64::from(self.side_cm[axis]), i64::from(self.margin_cm));
        let patches = |at: i32| {
            let at = i64::from(at);
            ((at - margin).div_euclid(side), (at + margin).div_euclid(side))
        };
        let (a, b) = (patches(a), patches(b));
        ((b.0 - a.1).max(a.0 - b.1).max(0), (b.1 - a.0).max(a.1 - b.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: PatchRule = PatchRule { side_cm: [100; 2], margin_cm: 10 };

    fn keeps(both: RangeSet, a: i32, b: i32) -> bool {
        RULE.keeps(both, Pos::ground(a, 50), Pos::ground(b, 50))
    }

    #[test]
    fn each_axis_has_patches_of_its_own_side() {
        let rule = PatchRule { side_cm: [100, 30], margin_cm: 10 };
        let keeps = |x, z| rule.keeps(RangeSet::FULL, Pos::ground(50, 15), Pos::ground(x, z));
        assert!(keeps(309, 15) && !keeps(310, 15));
        assert!(keeps(50, 99) && !keeps(50, 100));
    }

    /// The first is in the patch from 0 to 100, and FAR ends at 300.
    #[test]
    fn a_pair_stays_in_range_until_both_margins_are_used_up() {
        assert!([299, 300, 309].iter().all(|b| keeps(RangeSet::FULL, 50, *b)));
        assert!(!keeps(RangeSet::FULL, 50, 310));
        assert!(keeps(RangeSet::FULL, 95, 310), "the margin of the first, too");
        assert!([399, 400, 409].iter().all(|b| keeps(RangeSet::FULL, 95, *b)));
        assert!(!keeps(RangeSet::FULL, 95, 410));
        assert!(keeps(RangeSet::FULL, 300, 99) && keeps(RangeSet::FULL, 310, 95));
    }

    #[test]
    fn a_gap_between_rings_has_margins_on_both_sides() {
        let far = RangeSet::FAR;
        assert!([190, 200, 309].iter().all(|b| keeps(far, 50, *b)));
        assert!(!keeps(far, 50, 189) && !keeps(far, 50, 310));
        assert!(!keeps(RangeSet::NONE, 50, 50));
    }

    #[test]
    fn any_two_positions_have_an_answer() {
        let ends = [i32::MIN, i32::MAX].map(|at| Pos::ground(at, at));
        let rule = PatchRule { side_cm: [1; 2], margin_cm: 0 };
        assert!(!rule.keeps(RangeSet::FULL, ends[0], ends[1]));
        assert!(rule.keeps(RangeSet::FULL, ends[1], ends[1]));
    }

    proptest! {
        /// By the definition: every move of the two by up to the margin.
        #[test]
        fn a_pair_is_kept_exactly_if_some_small_moves_bring_it_into_range(
            side_cm in (2i32..12, 2i32..12),
            half in 0i32..6,
            bits in 0u8..8,
            (a, b) in ((-30i32..30, -30i32..30), (-30i32..30, -30i32..30)),
        ) {
            let side_cm: [i32; 2] = side_cm.into();
            let margin_cm = half.min(side_cm[0] / 2).min(side_cm[1] / 2);
            let rule = PatchRule { side_cm, margin_cm };
            let both = RangeSet::from_bits(bits).unwrap();
            let moved = |at: i32| at - rule.margin_cm..=at + rule.margin_cm;
            let rings = |side: i32, a: i32, b: i32| {
                let patch = |at: i32| at.div_euclid(side);
                let all = moved(a).flat_map(|a| moved(b).map(move |b| (a, b)));
                all.map(|(a, b)| patch(a).abs_diff(patch(b))).collect::<std::collections::BTreeSet<_>>()
            };
            let (x, z) = (rings(side_cm[0], a.0, b.0), rings(side_cm[1], a.1, b.1));
            let want = x.iter().any(|x| z.iter().any(|z| both.has_ring(*x.max(z))));
            let [a, b] = [a, b].map(|(x, z)| Pos::ground(x, z));
            prop_assert_eq!(rule.keeps(both, a, b), want);
            prop_assert_eq!(rule.keeps(both, b, a), want);
        }
    }
}
