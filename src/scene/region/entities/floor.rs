//! What entities walk on: the terrain with its doors, or flat and free ground where a scene has no terrain; and what
//! stands in their way there.

use super::blockers::Obstacles;
use crate::scene::movement::{Open, ServerMs, Tiles, Trajectory};
use crate::scene::terrain::Ground;
use crate::scene::{Plane, Pos, Scene, Tile};

/// The map, or flat and free ground.
#[derive(Debug, Clone, Copy)]
enum Land<'a> {
    Map(&'a Ground),
    Flat(Open),
}

/// What one walks on.
#[derive(Debug, Clone, Copy)]
pub struct Floor<'a> {
    land: Land<'a>,
    /// What occupies tiles; `None`: nothing does.
    obstacles: Option<Obstacles<'a>>,
}

impl<'a> Floor<'a> {
    /// The ground as it is without anybody on it.
    pub fn of(scene: &Scene, ground: Option<&'a Ground>) -> Floor<'a> {
        let land = match ground {
            Some(ground) => Land::Map(ground),
            None => Land::Flat(Open { tile_cm: scene.tile_cm() }),
        };
        Floor { land, obstacles: None }
    }

    /// The same with what stands in an entity's way.
    #[inline]
    pub(super) fn among(self, obstacles: Option<Obstacles<'a>>) -> Floor<'a> {
        Floor { obstacles, ..self }
    }

    /// Where an entity with a trajectory is.
    #[inline]
    pub(super) fn place(&self, trajectory: &Trajectory, now: ServerMs) -> Pos {
        trajectory.motion.position_on(self, trajectory.elapsed_ms(now))
    }
}

impl Tiles for Floor<'_> {
    fn tile_cm(&self) -> i32 {
        match self.land {
            Land::Map(ground) => ground.tile_cm(),
            Land::Flat(open) => open.tile_cm,
        }
    }

    fn is_free(&self, plane: Plane, tile: Tile) -> bool {
        match self.land {
            Land::Map(ground) => ground.is_free(plane, tile),
            Land::Flat(open) => open.is_free(plane, tile),
        }
    }

    fn admits(&self, plane: Plane, from: Tile, to: Tile) -> bool {
        let others = self.obstacles;
        self.is_free(plane, to) && others.is_none_or(|others| others.admit(plane, from, to))
    }

    fn height_cm(&self, tile: Tile) -> Option<i32> {
        match self.land {
            Land::Map(ground) => Tiles::height_cm(ground, tile),
            Land::Flat(_) => None,
        }
    }
}
