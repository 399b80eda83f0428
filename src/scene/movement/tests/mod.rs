//! Tests of the movement rules one by one, and of what no sequence of commands can do.

mod bounds;
mod rules;

use super::*;
use crate::scene::{Plane, Pos, Rect, Seq};

pub const PLANE: Plane = Plane(0);

/// A metre to a tile, 40 x 40 tiles.
pub const BOUNDS: Rect = Rect { x0: 0, z0: 0, x1: 4_000, z1: 4_000 };

/// Top speed, centimetres per second.
pub const SPEED: u32 = 500;

/// Blocked tiles, and heights.
#[derive(Debug, Clone, Default)]
pub struct Map {
    pub blocked: Vec<(i32, i32)>,
    pub heights: Option<fn(Tile) -> i32>,
}

impl Tiles for Map {
    fn tile_cm(&self) -> i32 {
        100
    }

    fn is_free(&self, plane: Plane, tile: Tile) -> bool {
        plane != PLANE || !self.blocked.contains(&(tile.x, tile.z))
    }

    fn height_cm(&self, tile: Tile) -> Option<i32> {
        self.heights.map(|height| height(tile))
    }
}

/// A mover with its ground and a link without delay: the client's clock is the server's.
pub struct Scene {
    pub map: Map,
    pub rules: Rules,
    pub mover: Mover,
    pub seq: u32,
}

impl Scene {
    pub fn new(pos: Pos, blocked: &[(i32, i32)]) -> Scene {
        Scene {
            map: Map { blocked: blocked.to_vec(), heights: None },
            rules: Rules::within(BOUNDS),
            mover: Mover::new(ServerMs(0), pos, SPEED),
            seq: 0,
        }
    }

    pub fn on(&self) -> Footing<'_, Map> {
        Footing { tiles: &self.map, plane: PLANE, rules: &self.rules }
    }

    /// A command sent at `at` and received at `now`.
    pub fn say(&mut self, now: u64, at: u64, go: Go) -> Result<Accepted, RefusedCommand> {
        self.say_by(now, at, go, self.mover.correction())
    }

    pub fn say_by(
        &mut self,
        now: u64,
        at: u64,
        go: Go,
        correction: u32,
    ) -> Result<Accepted, RefusedCommand> {
        self.seq += 1;
        let order = MoveCommand { correction, at: ClientMs(at), go };
        let on = Footing { tiles: &self.map, plane: PLANE, rules: &self.rules };
        self.mover.accept(ServerMs(now), Seq(self.seq), &order, &on)
    }

    pub fn walk(&mut self, now: u64, motion: impl Into<Move>) -> Result<Accepted, RefusedCommand> {
        self.say(now, now, Go::Walk(motion.into()))
    }

    pub fn no_walk(&mut self, now: u64, motion: impl Into<Move>) -> Reason {
        self.why(now, now, Go::Walk(motion.into()))
    }

    pub fn flag(&mut self, now: u64, flags: Flags) -> Option<Correction> {
        let on = Footing { tiles: &self.map, plane: PLANE, rules: &self.rules };
        self.mover.set_flags(ServerMs(now), flags, &on)
    }

    pub fn correct(&mut self, now: u64, motion: impl Into<Move>) -> Correction {
        let on = Footing { tiles: &self.map, plane: PLANE, rules: &self.rules };
        self.mover.correct(ServerMs(now), motion.into(), &on)
    }

    pub fn why(&mut self, now: u64, at: u64, go: Go) -> Reason {
        self.say(now, at, go).expect_err("the command should be refused").why
    }

    pub fn pos(&self, now: u64) -> (i32, i32) {
        let pos = self.mover.position(ServerMs(now), &self.on());
        (pos.x, pos.z)
    }
}

pub fn at(x: i32, z: i32) -> Pos {
    Pos::ground(x, z)
}

/// Straight on from (x, z), in centimetres per second.
pub fn straight(x: i32, z: i32, vx: i32, vz: i32) -> Vector {
    Vector { vx_mm_s: vx * 10, vz_mm_s: vz * 10, ..Vector::stand(at(x, z)) }
}

pub fn path(x: i32, z: i32, steps: &str) -> Path {
    Path::new(at(x, z), steps.parse().expect("steps"), SPEED, 100)
}
