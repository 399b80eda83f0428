//! The terrain as a client of a demo or of a load knows it.

use std::sync::Arc;

use purview::scene::movement::Tiles;
use purview::scene::terrain::Ground;
use purview::scene::{Plane, Tile};

/// The terrain as the clients know it.
#[derive(Debug, Clone)]
pub struct Land {
    /// The side of a tile, centimetres.
    pub tile_cm: i32,
    /// The terrain; `None`: everything is free, until the server says otherwise.
    pub map: Option<Arc<Ground>>,
}

impl Tiles for Land {
    fn tile_cm(&self) -> i32 {
        self.tile_cm
    }

    fn is_free(&self, plane: Plane, tile: Tile) -> bool {
        self.map.as_ref().is_none_or(|map| map.is_free(plane, tile))
    }

    fn height_cm(&self, tile: Tile) -> Option<i32> {
        self.map.as_ref().and_then(|map| Tiles::height_cm(&**map, tile))
    }
}
