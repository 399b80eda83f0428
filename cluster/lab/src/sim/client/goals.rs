//! Where a client goes: anywhere, along borders of regions, up and down stairs, or into a gathering.

use purview::scene::Pos;

use super::super::{REGION_CM, portals, walls};
use super::life::Life;
use super::{CROWD_CM, Walker};
use crate::rng::Rng;

/// How far a client goes between two inputs, centimetres.
pub(super) const STEP_CM: i32 = 240;

/// The greatest height of stairs, centimetres.
const STAIRS_CM: i32 = 2_400;

impl Walker {
    pub(super) fn place(&self, rng: &mut Rng) -> Pos {
        let (width, depth) = self.size;
        // Every third position is near a border or a corner of regions.
        let along = |size: i32, rng: &mut Rng| {
            let free = (f64::from(size - 200) * rng.unit()) as i32 + 100;
            let border =
                (f64::from((size - 1) / REGION_CM) * rng.unit()).round() as i32 * REGION_CM;
            match rng.one_in(3) && border > 0 {
                true => border + (600.0 * rng.unit()) as i32 - 300,
                false => free,
            }
        };
        let ground = Pos::ground(along(width, rng), along(depth, rng));
        self.above(ground, STAIRS_CM, rng)
    }

    /// A position above one of the ground, if the scene has stairs; otherwise nothing is drawn.
    fn above(&self, ground: Pos, most_cm: i32, rng: &mut Rng) -> Pos {
        let has_stairs = self.ground.config.scenes.iter().any(|s| s.spec.height_cm.is_some());
        let y = if has_stairs { (f64::from(most_cm) * rng.unit()) as i32 } else { 0 };
        Pos { y, ..ground }
    }

    pub(super) fn goal(&self, rng: &mut Rng) -> Pos {
        let Some(at) = self.will().meeting(self.number) else {
            return self.portal(rng).or_else(|| self.wall(rng)).unwrap_or_else(|| self.place(rng));
        };
        let near = |at: i32, size: i32, rng: &mut Rng| {
            let off = (f64::from(CROWD_CM) * (rng.unit() - 0.5)) as i32;
            (at + off).clamp(100, size - 100)
        };
        let ground = Pos::ground(near(at.x, self.size.0, rng), near(at.z, self.size.1, rng));
        self.above(ground, CROWD_CM, rng)
    }

    /// Sometimes a place in the area of a portal, or near it; otherwise, and without portals, `None`.
    fn portal(&self, rng: &mut Rng) -> Option<Pos> {
        let near = |middle: i32, rng: &mut Rng| middle + (1_000.0 * rng.unit()) as i32 - 500;
        (self.has_portals() && rng.one_in(3)).then(|| {
            let middle = portals::MIDDLES[rng.below(4)];
            Pos::ground(near(middle.x, rng), near(middle.z, rng))
        })
    }

    pub(super) fn has_portals(&self) -> bool {
        self.ground.config.scenes.iter().any(|scene| !scene.spec.portals.is_empty())
    }

    pub(super) fn has_walls(&self) -> bool {
        self.ground.config.scenes.iter().any(|s| s.spec.kinds.iter().any(|kind| kind.blocks))
    }

    /// Sometimes a place near a wall; otherwise, and without walls, `None`.
    fn wall(&self, rng: &mut Rng) -> Option<Pos> {
        let near = |middle: i32, rng: &mut Rng| middle + (2_000.0 * rng.unit()) as i32 - 1_000;
        (self.has_walls() && !rng.one_in(3)).then(|| {
            let corner = walls::CORNERS[rng.below(2)];
            Pos::ground(near(corner.x, rng), near(corner.z, rng))
        })
    }

    /// The next step towards the goal.
    pub(super) fn walk(&self, life: &mut Life, rng: &mut Rng) -> Pos {
        let (from, goal) = (life.pos, life.goal);
        let (dx, dy, dz) = (goal.x - from.x, goal.y - from.y, goal.z - from.z);
        let far = f64::from(dx).hypot(f64::from(dz)).hypot(f64::from(dy));
        if far < f64::from(STEP_CM) {
            life.goal = self.goal(rng);
            return goal;
        }
        let part = f64::from(STEP_CM) / far;
        let step = |d: i32| (f64::from(d) * part) as i32;
        Pos { x: from.x + step(dx), y: from.y + step(dy), z: from.z + step(dz) }
    }
}
