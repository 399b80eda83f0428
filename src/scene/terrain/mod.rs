//! The terrain of a scene: free and blocked tiles, their heights, and doors and bridges that open
//! and close while the scene runs.
//!
//! Map readers build it, the scene's specification checks it, and movement asks it about tiles.
//!
//! ```text
//!   Draft --finish--> Terrain    immutable, one per scene, shared by all its regions
//!                        |
//!   DoorOrder -------> Ground    one per region: the terrain and the state of its doors per plane
//!                        |
//!                        v       is_free(plane, tile), height_cm(tile), tile_of(pos)
//!                    movement
//! ```
//!
//! A door's tile is free while the door is open and blocked while it is closed, whatever else the
//! map says about the tile. A bridge is a door: open means that entities can cross.
//!
//! *Absent on purpose:* files and their formats. A map reader fills a [`Draft`].

mod doors;
mod draft;
mod fit;
mod ground;

#[cfg(test)]
mod tests;

pub use doors::{DoorChange, DoorError, DoorOrder, DoorState, SavedDoor, SavedDoors, SavedOrder};
pub use draft::{Draft, MAX_DOOR_NAME, MAX_DOOR_TILES, MAX_TILE_CM, MAX_TILES, TerrainError};
pub(super) use fit::{misfits, too_high};
pub use ground::Ground;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

pub use super::Tile;

use super::Pos;

/// A door of a terrain: its index in [`Terrain::doors`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct DoorId(pub u16);

/// A named group of tiles that are free or blocked together, per plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    /// The name, unique in its terrain, 1 to [`MAX_DOOR_NAME`] bytes.
    pub name: String,
    /// Initial state: open or closed.
    pub open: bool,
    /// The tiles, at least one, sorted. No tile belongs to two doors.
    pub tiles: Vec<Tile>,
}

/// The terrain has no door of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no door {name:?}; {}", doors_here(known))]
pub struct UnknownDoor {
    /// The name that was asked for.
    pub name: String,
    /// At most eight of the names that exist.
    pub known: Vec<String>,
}

fn doors_here(known: &[String]) -> String {
    match known {
        [] => "this map has no doors".into(),
        some => format!("doors here: {some:?}"),
    }
}

/// The heights of the tiles: a level per tile, and the height of a level.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Heights {
    base_cm: i32,
    step_cm: i32,
    /// Row by row.
    levels: Vec<u16>,
}

/// The immutable part of a scene's terrain. Tiles outside it are not free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terrain {
    tile_cm: i32,
    width: i32,
    depth: i32,
    row_words: usize,
    /// A bit per tile, row by row; each row starts at a word. The bits of door tiles are set, so
    /// that one test suffices for a free tile.
    blocked: Vec<u64>,
    heights: Option<Heights>,
    doors: Vec<Door>,
    /// The door of a tile, by the tile's index.
    door_at: FxHashMap<u32, DoorId>,
}

impl Terrain {
    /// Side of a tile, centimetres, 1 to [`MAX_TILE_CM`].
    #[inline]
    pub fn tile_cm(&self) -> i32 {
        self.tile_cm
    }

    /// Tiles along x.
    pub fn width(&self) -> i32 {
        self.width
    }

    /// Tiles along z.
    pub fn depth(&self) -> i32 {
        self.depth
    }

    /// Extent along x, centimetres.
    pub fn width_cm(&self) -> i64 {
        i64::from(self.width) * i64::from(self.tile_cm)
    }

    /// Extent along z, centimetres.
    pub fn depth_cm(&self) -> i64 {
        i64::from(self.depth) * i64::from(self.tile_cm)
    }

    /// The tile at a position, on the map or not.
    #[inline]
    pub fn tile_of(&self, pos: Pos) -> Tile {
        Tile::of(pos, self.tile_cm)
    }

    /// Whether the tile is on the map.
    #[inline]
    pub fn contains(&self, tile: Tile) -> bool {
        // As unsigned numbers, negative coordinates are too large.
        (tile.x as u32) < self.width as u32 && (tile.z as u32) < self.depth as u32
    }

    /// Whether the tile is blocked, a door's, or outside. Any other tile is free in every plane.
    #[inline]
    fn is_walled(&self, tile: Tile) -> bool {
        if !self.contains(tile) {
            return true;
        }
        let word = tile.z as usize * self.row_words + (tile.x as usize >> 6);
        self.blocked[word] >> (tile.x & 63) & 1 != 0
    }

    /// Whether the map itself blocks the tile. The tile of a door is never blocked by the map. A
    /// tile outside is blocked.
    pub fn is_blocked(&self, tile: Tile) -> bool {
        self.is_walled(tile) && self.door_at(tile).is_none()
    }

    /// Number of tiles that the map itself blocks.
    pub fn blocked_tiles(&self) -> u64 {
        let set: u64 = self.blocked.iter().map(|word| u64::from(word.count_ones())).sum();
        set - self.door_at.len() as u64
    }

    /// The tiles of row `z` that are blocked or a door's: a bit each, 64 to a word from the west.
    /// Empty outside the map. Bits past the last tile are 0.
    pub fn row(&self, z: i32) -> &[u64] {
        match usize::try_from(z) {
            Ok(row) if z < self.depth => {
                &self.blocked[row * self.row_words..(row + 1) * self.row_words]
            }
            _ => &[],
        }
    }

    /// Height of the tile, centimetres; 0 if the map has no heights, and outside the map.
    #[inline]
    pub fn height_cm(&self, tile: Tile) -> i32 {
        match &self.heights {
            Some(h) if self.contains(tile) => {
                h.base_cm + h.step_cm * i32::from(h.levels[self.place(tile) as usize])
            }
            _ => 0,
        }
    }

    /// How far from height 0 a tile lies at most, centimetres.
    pub fn farthest_height_cm(&self) -> u32 {
        let Some(h) = &self.heights else { return 0 };
        let far = |level: u16| (h.base_cm + h.step_cm * i32::from(level)).unsigned_abs();
        h.levels.iter().map(|level| far(*level)).max().unwrap_or(0)
    }

    /// Whether the map has heights.
    pub fn has_heights(&self) -> bool {
        self.heights.is_some()
    }

    /// The doors, in the order in which they were added.
    pub fn doors(&self) -> &[Door] {
        &self.doors
    }

    /// The door with this id.
    pub fn door(&self, id: DoorId) -> Option<&Door> {
        self.doors.get(usize::from(id.0))
    }

    /// The door with this name.
    ///
    /// # Errors
    /// There is none; the error lists names that exist.
    pub fn door_named(&self, name: &str) -> Result<DoorId, UnknownDoor> {
        match self.doors.iter().position(|d| d.name == name) {
            Some(at) => Ok(DoorId(at as u16)),
            None => {
                let known = self.doors.iter().take(8).map(|d| d.name.clone()).collect();
                Err(UnknownDoor { name: name.into(), known })
            }
        }
    }

    /// The door to which the tile belongs.
    pub fn door_at(&self, tile: Tile) -> Option<DoorId> {
        if self.doors.is_empty() || !self.contains(tile) {
            return None;
        }
        self.door_at.get(&self.place(tile)).copied()
    }

    /// A tile's index, row by row. The tile must be on the map.
    #[inline]
    fn place(&self, tile: Tile) -> u32 {
        tile.z as u32 * self.width as u32 + tile.x as u32
    }
}
