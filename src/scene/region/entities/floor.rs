//! What entities walk on: the terrain with its doors, or flat and free ground where a scene has no terrain.

use crate::scene::movement::{Open, ServerMs, Tiles, Trajectory};
use crate::scene::terrain::Ground;
use crate::scene::{Plane, Pos, Scene, Tile};

/// What one walks on: the map, or flat and free where there is none.
#[derive(Debug, Clone, Copy)]
pub enum Floor<'a> {
    Map(&'a Ground),
    Flat(Open),
}

impl<'a> Floor<'a> {
    pub fn of(scene: &Scene, ground: Option<&'a Ground>) -> Floor<'a> {
        match ground {
            Some(ground) => Floor::Map(ground),
            None => Floor::Flat(Open { tile_cm: scene.tile_cm() }),
        }
    }

    /// Where an entity with a trajectory is.
    #[inline]
    pub(super) fn place(&self, trajectory: &Trajectory, now: ServerMs) -> Pos {
        trajectory.motion.position_on(self, trajectory.elapsed_ms(now))
    }
}

impl Tiles for Floor<'_> {
    fn tile_cm(&self) -> i32 {
        match self {
            Floor::Map(ground) => ground.tile_cm(),
            Floor::Flat(open) => open.tile_cm,
        }
    }

    fn is_free(&self, plane: Plane, tile: Tile) -> bool {
        match self {
            Floor::Map(ground) => ground.is_free(plane, tile),
            Floor::Flat(open) => open.is_free(plane, tile),
        }
    }

    fn height_cm(&self, tile: Tile) -> Option<i32> {
        match self {
            Floor::Map(ground) => Tiles::height_cm(*ground, tile),
            Floor::Flat(_) => None,
        }
    }
}
