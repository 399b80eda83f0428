//! The ground as a [`Walker`](crate::Walker) knows it: the game's map, and the tiles that bodies in view occupy.

use purview::scene::movement::{ServerMs, Tiles};
use purview::scene::{Footprint, Plane, Tile, TileRect};
use purview::wire::Blocker;

use crate::view::View;

/// The tiles of a map with those that are occupied.
#[derive(Debug)]
pub struct Occupied<T> {
    pub tiles: T,
    bodies: Vec<TileRect>,
}

impl<T: Tiles> Occupied<T> {
    /// The tiles of a map on which nobody stands.
    pub fn nowhere(tiles: T) -> Occupied<T> {
        Occupied { tiles, bodies: Vec::new() }
    }

    /// Entities of these kinds occupy the tiles on which the view has their bodies.
    pub fn see(&mut self, view: &View, kinds: &[Blocker]) {
        self.bodies.clear();
        if kinds.is_empty() {
            return;
        }
        let now = view.tick().map_or(ServerMs(0), |tick| view.time_of(tick));
        let tile_cm = self.tiles.tile_cm();
        self.bodies.extend(view.iter().filter_map(|(_, seen)| {
            let Blocker { size_cm, .. } = kinds.iter().find(|blocker| blocker.kind == seen.kind)?;
            Some(Footprint::new(*size_cm, tile_cm).at(seen.position(now)))
        }));
    }
}

impl<T: Tiles> Tiles for Occupied<T> {
    fn tile_cm(&self) -> i32 {
        self.tiles.tile_cm()
    }

    fn is_free(&self, plane: Plane, tile: Tile) -> bool {
        self.tiles.is_free(plane, tile)
    }

    /// As the server has it: what stands in a body walks in it and leaves it.
    fn admits(&self, plane: Plane, from: Tile, to: Tile) -> bool {
        let stops = |body: &TileRect| body.contains(to) && !body.contains(from);
        self.tiles.admits(plane, from, to) && !self.bodies.iter().any(stops)
    }

    fn height_cm(&self, tile: Tile) -> Option<i32> {
        self.tiles.height_cm(tile)
    }
}
