//! The displayed error: how far from its true position a client shows an entity.
//!
//! The oracle measures it in every tick for every visible player, right before the frame of the tick is applied: at
//! the end of the time in which the client had to show the entity by what it knew. What no client can know is left out:
//! where an entity teleports to, until the frame that tells it is due.

use hdrhistogram::Histogram;
use purview::scene::Pos;
use purview::scene::movement::{Move, Trajectory};
use purview::wire::{JoinRules, UpdateRules};

/// The displayed errors of entities in NEAR, MIDDLE and FAR, centimetres.
#[derive(Debug, Clone, PartialEq)]
pub struct DisplayedErrors([Histogram<u64>; 3]);

impl Default for DisplayedErrors {
    fn default() -> DisplayedErrors {
        let ring = || Histogram::new_with_max(DisplayedErrors::CM_MAX, 2);
        DisplayedErrors([0; 3].map(|_| ring().expect("the bounds are legal")))
    }
}

impl DisplayedErrors {
    /// A greater error counts as this one: 1 km.
    const CM_MAX: u64 = 100_000;

    /// Counts an entity in `ring` that is shown `cm` centimetres off.
    pub fn record(&mut self, ring: u32, cm: u64) {
        self.0[ring.min(2) as usize].saturating_record(cm.min(DisplayedErrors::CM_MAX));
    }

    /// The least error, centimetres to 1 %, within which `share` (0 to 1) of all entities of a ring (0 NEAR, 1
    /// MIDDLE, 2 FAR) were shown; 0 without any.
    pub fn quantile(&self, ring: usize, share: f64) -> u64 {
        self.0[ring].value_at_quantile(share)
    }

    pub fn count(&self, ring: usize) -> u64 {
        self.0[ring].len()
    }
}

/// The distance of two positions, height included, squared.
pub(super) fn off2(a: Pos, b: Pos) -> u64 {
    a.dist2(b).saturating_add(u64::from(a.y.abs_diff(b.y)).pow(2))
}

/// Whether a client that stands at `eye` may show an entity at `shown` that is at `is`. Positions are told in whole
/// centimetres.
pub(super) fn is_tolerable(rules: &UpdateRules, eye: Pos, shown: Pos, is: Pos) -> bool {
    let share = eye.dist2(is).isqrt() * u64::from(rules.error_share) / 1_000;
    let allowed = share.max(u64::from(rules.error_min_cm.unsigned_abs())) + 3;
    // In a scene that judges moves the ground decides the height.
    shown.dist2(is) <= allowed * allowed
}

/// Whether a client that stands at `eye` may show an entity at `shown`, for a tick, that is at `is`: up to five quarters
/// of a step ahead on the way that the client was told. A message of the entity's client may come a tick late, and only
/// the next tick tells the server whether the entity goes on.
pub(super) fn is_a_step_ahead(rules: &UpdateRules, eye: Pos, shown: &Trajectory, is: Pos) -> bool {
    let Move::Vector(way) = &shown.motion else { return false };
    // Five quarters of a tick, and millimetres in a centimetre.
    let reach_cm = |v_mm_s: i32| f64::from(v_mm_s) * f64::from(rules.tick_ms) * 1.25 / 10_000.0;
    let reach = [reach_cm(way.vx_mm_s), reach_cm(way.vz_mm_s)];
    let off = [f64::from(way.start.x) - f64::from(is.x), f64::from(way.start.z) - f64::from(is.z)];
    let along = off[0] * reach[0] + off[1] * reach[1];
    let share = (along / (reach[0].powi(2) + reach[1].powi(2)).max(1.0)).clamp(0.0, 1.0);
    let [x, z] = [0, 1].map(|i| (share * reach[i]).round() as i32);
    let ahead = Pos { x: is.x.saturating_add(x), z: is.z.saturating_add(z), ..is };
    is_tolerable(rules, eye, way.start, ahead)
}

/// Whether the server estimates how entities move on: clients send positions, and others extrapolate.
pub(super) fn is_estimated(rules: &JoinRules) -> bool {
    rules.updates.is_some() && rules.movement.is_none()
}
