//! The terrain of a region as it is just now: the map, and the doors in the state that this region
//! knows.

use std::sync::Arc;

use super::doors::Doors;
use super::{DoorError, DoorId, DoorOrder, DoorState, SavedDoors, Terrain, Tile};
use crate::scene::movement::Tiles;
use crate::scene::{Plane, Pos, Tick};

/// A scene's terrain with the state of its doors. Each region has its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ground {
    terrain: Arc<Terrain>,
    doors: Doors,
}

impl Ground {
    /// The terrain with its doors as the map has them.
    pub fn new(terrain: Arc<Terrain>) -> Ground {
        Ground { terrain, doors: Doors::default() }
    }

    /// The map.
    pub fn terrain(&self) -> &Arc<Terrain> {
        &self.terrain
    }

    /// Side of a tile, centimetres.
    #[inline]
    pub fn tile_cm(&self) -> i32 {
        self.terrain.tile_cm()
    }

    /// The tile of a place, on the map or not.
    #[inline]
    pub fn tile_of(&self, pos: Pos) -> Tile {
        self.terrain.tile_of(pos)
    }

    /// Whether one can stand on the tile in this plane. Outside the map nobody can.
    #[inline]
    pub fn is_free(&self, plane: Plane, tile: Tile) -> bool {
        !self.terrain.is_walled(tile) || self.is_doorway(plane, tile)
    }

    /// Whether the tile, which is blocked or a door's, is an open door's.
    #[inline(never)]
    fn is_doorway(&self, plane: Plane, tile: Tile) -> bool {
        let door = self.terrain.door_at(tile);
        door.and_then(|door| self.is_open(plane, door)).unwrap_or(false)
    }

    /// How high the tile lies, centimetres; 0 where the map has no heights, and outside it.
    #[inline]
    pub fn height_cm(&self, tile: Tile) -> i32 {
        self.terrain.height_cm(tile)
    }

    /// Whether a door is open in a plane; `None` for a door that the map does not have.
    pub fn is_open(&self, plane: Plane, door: DoorId) -> Option<bool> {
        Some(self.doors.is_open(plane, door, self.terrain.door(door)?))
    }

    /// Takes an order about a door; [`Ground::turn`] follows it when it is due.
    ///
    /// # Errors
    /// [`DoorError`]; nothing was changed.
    pub fn order(&mut self, order: DoorOrder) -> Result<(), DoorError> {
        self.doors.order(&self.terrain, order)
    }

    /// Begins tick `now`: follows the orders that are due. Says whether there were any.
    pub fn turn(&mut self, now: Tick) -> bool {
        self.doors.turn(now)
    }

    /// The doors that somebody set, sorted by plane and door, of one plane or (`None`) of all. The
    /// others are as the map has them.
    pub fn doors_set(&self, plane: Option<Plane>) -> Vec<DoorState> {
        self.doors.states(plane)
    }

    /// The state of the doors for a checkpoint or another node.
    pub fn save(&self) -> SavedDoors {
        self.doors.save(&self.terrain)
    }

    /// The terrain with its doors as they were saved.
    ///
    /// # Errors
    /// [`DoorError::Unknown`] when the map does not have a door any more that was set.
    pub fn restore(terrain: Arc<Terrain>, saved: &SavedDoors) -> Result<Ground, DoorError> {
        let doors = Doors::restore(&terrain, saved)?;
        Ok(Ground { terrain, doors })
    }

    /// Takes what another copy has heard of its doors, too.
    ///
    /// # Errors
    /// As [`Ground::restore`].
    pub fn merge(&mut self, saved: &SavedDoors) -> Result<(), DoorError> {
        self.doors.merge(&self.terrain, saved)
    }
}

impl Tiles for Ground {
    #[inline]
    fn tile_cm(&self) -> i32 {
        Ground::tile_cm(self)
    }

    #[inline]
    fn is_free(&self, plane: Plane, tile: Tile) -> bool {
        Ground::is_free(self, plane, tile)
    }

    #[inline]
    fn height_cm(&self, tile: Tile) -> Option<i32> {
        self.terrain.has_heights().then(|| self.terrain.height_cm(tile))
    }
}
