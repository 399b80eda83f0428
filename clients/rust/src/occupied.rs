//! The ground as a [`Walker`](crate::Walker) knows it: the game's map, and the tiles that entities in view occupy.

use purview::scene::movement::{ServerMs, Tiles};
use purview::scene::{Kind, Plane, Tile};
use rustc_hash::FxHashSet;

use crate::view::View;

/// The tiles of a map with those that are occupied.
#[derive(Debug)]
pub struct Occupied<T> {
    pub tiles: T,
    occupied: FxHashSet<Tile>,
}

impl<T: Tiles> Occupied<T> {
    /// The tiles of a map on which nobody stands.
    pub fn nowhere(tiles: T) -> Occupied<T> {
        Occupied { tiles, occupied: FxHashSet::default() }
    }

    /// Entities of these kinds occupy the tiles on which the view has them.
    pub fn see(&mut self, view: &View, kinds: &[Kind]) {
        self.occupied.clear();
        if kinds.is_empty() {
            return;
        }
        let now = view.tick().map_or(ServerMs(0), |tick| view.time_of(tick));
        let tile_cm = self.tiles.tile_cm().max(1);
        let blocking = view.iter().filter(|(_, seen)| kinds.contains(&seen.kind));
        self.occupied.extend(blocking.map(|(_, seen)| Tile::of(seen.position(now), tile_cm)));
    }
}

impl<T: Tiles> Tiles for Occupied<T> {
    fn tile_cm(&self) -> i32 {
        self.tiles.tile_cm()
    }

    fn is_free(&self, plane: Plane, tile: Tile) -> bool {
        self.tiles.is_free(plane, tile) && !self.occupied.contains(&tile)
    }

    fn height_cm(&self, tile: Tile) -> Option<i32> {
        self.tiles.height_cm(tile)
    }
}
