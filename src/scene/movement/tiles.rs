//! What movement asks of the ground.
//!
//! The scene's terrain implements it on the server, the game's map on a client. Both must answer
//! alike.

use crate::scene::{Plane, Pos, Tile};

/// The ground as movement sees it: free and blocked tiles, and their heights.
pub trait Tiles {
    /// Side of a tile, centimetres; at least 1.
    fn tile_cm(&self) -> i32;

    /// Whether an entity can stand on the tile in this plane.
    fn is_free(&self, plane: Plane, tile: Tile) -> bool;

    /// Whether an entity may step from a tile to one beside it, as far as it is free. A body that occupies both tiles
    /// lets the entity out.
    #[inline]
    fn admits(&self, plane: Plane, from: Tile, to: Tile) -> bool {
        let _ = from;
        self.is_free(plane, to)
    }

    /// Height of the tile, centimetres; `None` if the map has no heights, and the client's height
    /// counts.
    fn height_cm(&self, tile: Tile) -> Option<i32>;

    /// The position at the height of the ground; the same if the map has no heights.
    fn grounded(&self, pos: Pos) -> Pos {
        let height = self.height_cm(Tile::of(pos, self.tile_cm().max(1)));
        Pos { y: height.unwrap_or(pos.y), ..pos }
    }
}

/// Ground without a map: every tile is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// Side of a tile, centimetres; at least 1.
    pub tile_cm: i32,
}

impl Tiles for Open {
    fn tile_cm(&self) -> i32 {
        self.tile_cm
    }

    fn is_free(&self, _: Plane, _: Tile) -> bool {
        true
    }

    fn height_cm(&self, _: Tile) -> Option<i32> {
        None
    }
}
