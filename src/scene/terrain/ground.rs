//! A region's terrain: the shared map, and the door states that this region knows.
//!
//! Each region owns one and asks it on the tick path, so [`Ground::is_free`] must not hash for
//! tiles that are free on the map.

use std::sync::Arc;

use super::doors::DoorStates;
use super::{DoorError, DoorId, DoorOrder, DoorState, SavedDoors, Terrain, Tile};
use crate::scene::movement::Tiles;
use crate::scene::{Plane, Pos, Tick};

/// A scene's terrain with the state of its doors. Each region has its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ground {
    terrain: Arc<Terrain>,
    doors: DoorStates,
}

impl Ground {
    /// The terrain with its doors in the map's state.
    pub fn new(terrain: Arc<Terrain>) -> Ground {
        Ground { terrain, doors: DoorStates::default() }
    }

    /// The shared map.
    pub fn terrain(&self) -> &Arc<Terrain> {
        &self.terrain
    }

    /// Side of a tile, centimetres.
    #[inline]
    pub fn tile_cm(&self) -> i32 {
        self.terrain.tile_cm()
    }

    /// The tile at a position, on the map or not.
    #[inline]
    pub fn tile_of(&self, pos: Pos) -> Tile {
        self.terrain.tile_of(pos)
    }

    /// Whether an entity can stand on the tile in this plane. Tiles outside the map are not free.
    #[inline]
    pub fn is_free(&self, plane: Plane, tile: Tile) -> bool {
        !self.terrain.is_walled(tile) || self.is_doorway(plane, tile)
    }

    /// Whether a tile that is blocked or a door's belongs to an open door.
    #[inline(never)]
    fn is_doorway(&self, plane: Plane, tile: Tile) -> bool {
        let door = self.terrain.door_at(tile);
        door.and_then(|door| self.is_open(plane, door)).unwrap_or(false)
    }

    /// Height of the tile, centimetres; 0 if the map has no heights, and outside the map.
    #[inline]
    pub fn height_cm(&self, tile: Tile) -> i32 {
        self.terrain.height_cm(tile)
    }

    /// Whether a door is open in a plane; `None` if the map has no such door.
    pub fn is_open(&self, plane: Plane, door: DoorId) -> Option<bool> {
        Some(self.doors.is_open(plane, door, self.terrain.door(door)?))
    }

    /// Queues a door order; [`Ground::turn`] applies it when it is due.
    ///
    /// # Errors
    /// [`DoorError`]; nothing was changed.
    pub fn order(&mut self, order: DoorOrder) -> Result<(), DoorError> {
        self.doors.order(&self.terrain, order)
    }

    /// Starts tick `now`: applies the orders that are due. Returns whether there were any.
    pub fn turn(&mut self, now: Tick) -> bool {
        self.doors.turn(now)
    }

    /// The doors that orders have set, sorted by plane and door; of one plane or (`None`) of all.
    /// All other doors are in the map's state.
    pub fn doors_set(&self, plane: Option<Plane>) -> Vec<DoorState> {
        self.doors.states(plane)
    }

    /// The state of the doors, for a checkpoint or another node.
    pub fn save(&self) -> SavedDoors {
        self.doors.save(&self.terrain)
    }

    /// The terrain with a saved door state.
    ///
    /// # Errors
    /// [`DoorError::Unknown`] if the map no longer has a door that was saved.
    pub fn restore(terrain: Arc<Terrain>, saved: &SavedDoors) -> Result<Ground, DoorError> {
        let doors = DoorStates::restore(&terrain, saved)?;
        Ok(Ground { terrain, doors })
    }

    /// Merges the door state of another copy: for each door the newest order wins.
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
