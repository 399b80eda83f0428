//! The rules of range and rate, as [`JoinRules`] tells them to a client.

use purview::scene::movement::{ServerMs, Trajectory};
use purview::scene::{Heights, Pos, RangeSet, Visibility};
use purview::wire::{Going, JoinRules, TrajectoryUpdate};

/// The ring of patches between two positions: 0 for the same patch, 1 for the next, and so on.
#[inline]
pub(super) fn ring(a: (i32, i32), b: (i32, i32)) -> u32 {
    a.0.abs_diff(b.0).max(a.1.abs_diff(b.1))
}

pub(super) fn patch(pos: Pos, rules: &JoinRules) -> (i32, i32) {
    let [width, depth] = rules.patch_cm.map(|side| side.max(1));
    (pos.x.div_euclid(width), pos.z.div_euclid(depth))
}

/// How two positions lie to each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub ring: u32,
    /// The least and the greatest ring between them if each is moved by up to the margin.
    rings: (u32, u32),
    /// The squared distance, square centimetres.
    pub d2: u64,
    /// Whether the two are near enough in height to come into view, and to stay in view.
    level: (bool, bool),
}

impl Reading {
    pub fn of(a: Pos, b: Pos, rules: &JoinRules) -> Reading {
        let [width, depth] = rules.patch_cm.map(|side| side.max(1));
        let margin = rules.patch_margin_cm;
        // The lower of the two reaches up, the higher one down, and the other way round.
        let apart = |a: i32, b: i32, side: i32| {
            let (low, high) = (a.min(b), a.max(b));
            let patches = |by: i32| (high + by).div_euclid(side) - (low - by).div_euclid(side);
            (patches(-margin).max(0).unsigned_abs(), patches(margin).max(0).unsigned_abs())
        };
        let (x, z) = (apart(a.x, b.x, width), apart(a.z, b.z, depth));
        let rings = (x.0.max(z.0), x.1.max(z.1));
        let heights = Heights::within(rules.height_cm);
        let level = (heights.hold(a.y, b.y, false), heights.hold(a.y, b.y, true));
        Reading { ring: ring(patch(a, rules), patch(b, rules)), rings, d2: a.dist2(b), level }
    }
}

/// The number of ticks between two updates of an entity in `ring`.
pub(super) fn interval(rules: &JoinRules, ring: u32) -> u64 {
    u64::from(rules.rates[ring.min(2) as usize]).max(1)
}

/// A trajectory on the tiles of a scene that judges moves; `None` in a scene that trusts positions.
pub(super) fn trajectory(rules: &JoinRules, going: &Going) -> Option<Trajectory> {
    rules.movement.as_ref().map(|m| going.on_tiles(m.tile_cm))
}

/// A trajectory of a frame of tick `t`; `before` gives where the client showed the entity at a time. `None` in a scene
/// that trusts positions.
pub(super) fn update(
    rules: &JoinRules,
    update: &TrajectoryUpdate,
    t: u64,
    before: impl FnOnce(ServerMs) -> Pos,
) -> Option<Trajectory> {
    let tile_cm = rules.movement.as_ref()?.tile_cm;
    Some(update.trajectory(tile_cm, time(rules, t), before))
}

pub(super) fn time(rules: &JoinRules, t: u64) -> ServerMs {
    let estimated = rules.updates.map_or(0, |u| u.tick_ms);
    let tick_ms = rules.movement.as_ref().map_or(estimated, |m| m.tick_ms);
    ServerMs(t * u64::from(tick_ms))
}

/// The position on a trajectory at tick `t`.
pub(super) fn place(rules: &JoinRules, trajectory: &Trajectory, t: u64) -> Pos {
    trajectory.position(time(rules, t))
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Range {
    Rings,
    Circle { enter2: u64, leave2: u64 },
    All,
}

impl Range {
    pub fn of(rules: &JoinRules) -> Range {
        match rules.visibility {
            Visibility::Patches => Range::Rings,
            Visibility::Circle { enter_cm, leave_cm } => {
                let square = |cm: i32| (i64::from(cm) * i64::from(cm)) as u64;
                Range::Circle { enter2: square(enter_cm), leave2: square(leave_cm) }
            }
            Visibility::All => Range::All,
        }
    }

    /// Whether two entities may see each other: within the leave range.
    #[inline]
    pub fn may(self, both: RangeSet, reading: &Reading) -> bool {
        let near = match self {
            Range::Rings => {
                (reading.rings.0..=reading.rings.1.min(2)).any(|ring| both.has_ring(ring))
            }
            Range::Circle { leave2, .. } => reading.d2 <= leave2,
            Range::All => true,
        };
        near && reading.level.1
    }

    /// Whether two entities that may see each other must: within the enter range.
    #[inline]
    pub fn must(self, both: RangeSet, reading: &Reading) -> bool {
        let near = match self {
            Range::Rings => both.has_ring(reading.ring),
            Range::Circle { enter2, .. } => reading.d2 <= enter2,
            Range::All => true,
        };
        near && reading.level.0
    }
}
