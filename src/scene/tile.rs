//! Tiles: the grid of the ground on which paths and walls are defined. Used by movement and
//! terrain.

use serde::{Deserialize, Serialize};

use super::Pos;

/// A tile of the ground, counted from the map's north-west corner.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Tile {
    /// Columns from the west edge.
    pub x: i32,
    /// Rows from the north edge.
    pub z: i32,
}

impl Tile {
    /// The tile at a position, on the map or not; a tile's side is `tile_cm`, at least 1.
    #[inline]
    pub fn of(pos: Pos, tile_cm: i32) -> Tile {
        Tile { x: pos.x.div_euclid(tile_cm), z: pos.z.div_euclid(tile_cm) }
    }

    /// The middle of the tile, at height `y`.
    #[inline]
    pub fn middle(self, tile_cm: i32, y: i32) -> Pos {
        let along = |tile: i32| tile.saturating_mul(tile_cm).saturating_add(tile_cm / 2);
        Pos { x: along(self.x), y, z: along(self.z) }
    }

    /// The position in the tile that is nearest to `to` along each axis.
    pub(super) fn nearest(self, tile_cm: i32, to: Pos) -> Pos {
        let along = |tile: i32, to: i32| {
            let low = tile.saturating_mul(tile_cm);
            to.clamp(low, low.saturating_add(tile_cm - 1))
        };
        Pos { x: along(self.x, to.x), z: along(self.z, to.z), ..to }
    }

    /// The tile `dx` columns and `dz` rows further.
    #[inline]
    pub fn moved(self, (dx, dz): (i32, i32)) -> Tile {
        Tile { x: self.x.saturating_add(dx), z: self.z.saturating_add(dz) }
    }
}

/// A rectangle of tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileRect {
    /// The tile in the north-west corner.
    pub first: Tile,
    /// The tile in the south-east corner, also of the rectangle.
    pub last: Tile,
}

impl TileRect {
    /// Whether a tile is one of the rectangle.
    #[inline]
    pub fn contains(&self, tile: Tile) -> bool {
        let TileRect { first, last } = self;
        (first.x..=last.x).contains(&tile.x) && (first.z..=last.z).contains(&tile.z)
    }

    /// All tiles, row by row.
    pub fn tiles(self) -> impl Iterator<Item = Tile> {
        let TileRect { first, last } = self;
        (first.z..=last.z).flat_map(move |z| (first.x..=last.x).map(move |x| Tile { x, z }))
    }

    /// The tile of the rectangle that is nearest to another along each axis.
    #[inline]
    pub fn nearest(&self, to: Tile) -> Tile {
        let TileRect { first, last } = self;
        Tile { x: to.x.clamp(first.x, last.x), z: to.z.clamp(first.z, last.z) }
    }
}
