//! When viewers are told of a changed entity before the rate of its ring says so.
//!
//! The frame builder asks [`UpdateError`] for every viewer of a changed entity, and clients are told
//! the same figures.

use serde::{Deserialize, Serialize};

use super::SceneSpec;
use crate::scene::spec_error::{MAX_SIDE_CM, SpecError, err, m};

/// How far from its true position a viewer may show an entity before the viewer is told at once:
/// the greater of `min_cm` and a share of the distance between the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateError {
    /// The tolerance for near entities, centimetres, 1 cm to 50 m.
    pub min_cm: i32,
    /// The tolerance as a share of the distance, thousandths, 0 to 1000.
    pub share_permille: u32,
}

/// Errors and distances beyond this, centimetres, count as this: squares must fit 64 bits.
const FAR_CM: u64 = 1 << 20;

/// The square of [`FAR_CM`]. No error is greater.
const FAR2: u64 = FAR_CM * FAR_CM;

impl Default for UpdateError {
    /// A quarter of a metre, or 3 % of the distance.
    fn default() -> Self {
        UpdateError { min_cm: 25, share_permille: 30 }
    }
}

impl UpdateError {
    /// The square of the tolerance at a squared distance, square centimetres.
    #[inline]
    pub fn tolerance2(&self, distance2: u64) -> u64 {
        let share2 = u64::from(self.share_permille).pow(2);
        let min = u64::from(self.min_cm.unsigned_abs());
        (distance2.min(FAR2) * share2 / 1_000_000).max(min * min)
    }

    /// How many times its tolerance an error is, in 1/256, if it exceeds it. Both are squares,
    /// square centimetres.
    #[inline]
    pub fn excess(&self, error2: u64, distance2: u64) -> Option<u32> {
        let error2 = error2.min(FAR2);
        let tolerance2 = self.tolerance2(distance2);
        (error2 > tolerance2).then(|| (error2 * 65_536 / tolerance2.max(1)).isqrt() as u32)
    }
}

impl SceneSpec {
    /// The tolerance that is in force: none where every viewer is told of every change in its tick
    /// anyway.
    pub fn update_error_in_force(&self) -> Option<UpdateError> {
        let rates = [self.rates.near, self.rates.middle, self.rates.far];
        self.update_error.filter(|_| rates.iter().any(|ticks| *ticks > 1))
    }
}

pub(super) fn check_update_error(s: &SceneSpec, errors: &mut Vec<SpecError>) {
    let Some(UpdateError { min_cm, share_permille }) = s.update_error else { return };
    if !(1..=5_000).contains(&min_cm) {
        let found = if min_cm.abs() <= MAX_SIDE_CM { m(min_cm) } else { format!("{min_cm} cm") };
        err(errors, "update_error.min", found, "must lie between 1 cm and 50 m".into());
    }
    if share_permille > 1_000 {
        let found = format!("{share_permille}/1000");
        err(errors, "update_error.share", found, "must lie between 0 and 1".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tolerance_is_a_share_of_the_distance_and_never_below_the_least() {
        let rule = UpdateError::default();
        let tolerance = |distance_cm: u64| rule.tolerance2(distance_cm * distance_cm).isqrt();
        assert_eq!((tolerance(0), tolerance(800)), (25, 25));
        assert_eq!((tolerance(1_000), tolerance(10_000)), (30, 300));
        assert_eq!(tolerance(u32::MAX.into()), FAR_CM * 3 / 100);
    }

    #[test]
    fn an_error_is_told_as_a_multiple_of_its_tolerance() {
        let rule = UpdateError::default();
        assert_eq!((rule.excess(25 * 25, 0), rule.excess(50 * 50, 0)), (None, Some(512)));
        assert_eq!(rule.excess(290 * 290, 10_000 * 10_000), None);
        assert!(rule.excess(u64::MAX, u64::MAX).is_some_and(|excess| excess > 256));
        let exact = UpdateError { min_cm: 1, share_permille: 0 };
        assert_eq!(exact.excess(4, u64::MAX), Some(512));
    }
}
