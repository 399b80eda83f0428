//! What movement asks of the ground.

use crate::scene::{Plane, Tile};

/// The ground as movement sees it: tiles free or blocked, and how high each lies.
pub trait Tiles {
    /// Side of a tile, centimetres; at least 1.
    fn tile_cm(&self) -> i32;

    /// Whether one can stand on the tile in this plane.
    fn is_free(&self, plane: Plane, tile: Tile) -> bool;

    /// How high the tile lies, centimetres; `None` where heights are not the map's matter and a
    /// client may say what it likes.
    fn height_cm(&self, tile: Tile) -> Option<i32>;
}

/// A ground without a map: everything is free.
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
