//! The terrain of a scene: tiles free or blocked, how high each lies, and doors and bridges that
//! open and close while the scene runs.
//!
//! ```text
//!   Draft --finish--> Terrain    immutable, one per scene, shared by all its regions
//!                        |
//!   DoorOrder -------> Ground    one per region: the terrain and its doors' state, plane by plane
//!                        |
//!                        v       is_free(plane, tile), height_cm(tile), tile_of(pos)
//!                    movement
//! ```
//!
//! A tile of a door is free while the door is open and blocked while it is closed, whatever else the
//! map says of it. A bridge is a door like any other: open means that one can cross.
//!
//! *Absent on purpose:* files and their formats. Whoever reads a map fills a [`Draft`].

mod doors;
mod draft;
mod fit;
mod ground;

#[cfg(test)]
mod tests;

pub use doors::{DoorChange, DoorError, DoorOrder, DoorState, SavedDoor, SavedDoors, SavedOrder};
pub use draft::{Draft, MAX_DOOR_NAME, MAX_DOOR_TILES, MAX_TILE_CM, MAX_TILES, TerrainError};
pub(super) use fit::misfits;
pub use ground::Ground;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

pub use super::Tile;

use super::Pos;

/// A door of a terrain: its place in [`Terrain::doors`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct DoorId(pub u16);

/// A named group of tiles that are free or blocked together, plane by plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    /// Its name, unique in its terrain, 1 to [`MAX_DOOR_NAME`] bytes.
    pub name: String,
    /// Whether it is open until somebody says otherwise.
    pub open: bool,
    /// Its tiles, at least one, sorted; none belongs to another door.
    pub tiles: Vec<Tile>,
}

/// A door that a terrain does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no door {name:?}; {}", doors_here(known))]
pub struct UnknownDoor {
    /// The name that was asked for.
    pub name: String,
    /// The names that would have been right, at most eight of them.
    pub known: Vec<String>,
}

fn doors_here(known: &[String]) -> String {
    match known {
        [] => "this map has no doors".into(),
        some => format!("doors here: {some:?}"),
    }
}

/// How high the tiles lie: a level each, and what a level is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Heights {
    base_cm: i32,
    step_cm: i32,
    /// Row by row.
    levels: Vec<u16>,
}

/// The immutable part of a scene's terrain. A place outside it is not free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terrain {
    tile_cm: i32,
    width: i32,
    depth: i32,
    row_words: usize,
    /// A bit per tile, row by row; each row begins with a word of its own. The tiles of doors are
    /// set, so that one look is enough for a tile that is free.
    blocked: Vec<u64>,
    heights: Option<Heights>,
    doors: Vec<Door>,
    /// The door of a tile, by its place row by row.
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

    /// The tile of a place, on the map or not.
    #[inline]
    pub fn tile_of(&self, pos: Pos) -> Tile {
        Tile::of(pos, self.tile_cm)
    }

    /// Whether the tile is one of this terrain's.
    #[inline]
    pub fn contains(&self, tile: Tile) -> bool {
        // A negative number is a large one without its sign.
        (tile.x as u32) < self.width as u32 && (tile.z as u32) < self.depth as u32
    }

    /// Whether the tile is blocked or a door's, or outside: free is at once what is not.
    #[inline]
    fn is_walled(&self, tile: Tile) -> bool {
        if !self.contains(tile) {
            return true;
        }
        let word = tile.z as usize * self.row_words + (tile.x as usize >> 6);
        self.blocked[word] >> (tile.x & 63) & 1 != 0
    }

    /// Whether the map itself blocks the tile; the state of its door does not count, and a tile of a
    /// door is not blocked by the map. A tile outside is blocked.
    pub fn is_blocked(&self, tile: Tile) -> bool {
        self.is_walled(tile) && self.door_at(tile).is_none()
    }

    /// How many tiles the map itself blocks.
    pub fn blocked_tiles(&self) -> u64 {
        let set: u64 = self.blocked.iter().map(|word| u64::from(word.count_ones())).sum();
        set - self.door_at.len() as u64
    }

    /// The tiles of row `z` that are blocked or a door's, a bit each, 64 to a word from the west;
    /// empty outside the map. Bits past the last tile are 0.
    pub fn row(&self, z: i32) -> &[u64] {
        match usize::try_from(z) {
            Ok(row) if z < self.depth => {
                &self.blocked[row * self.row_words..(row + 1) * self.row_words]
            }
            _ => &[],
        }
    }

    /// How high the tile lies, centimetres; 0 where the map has no heights, and outside it.
    #[inline]
    pub fn height_cm(&self, tile: Tile) -> i32 {
        match &self.heights {
            Some(h) if self.contains(tile) => {
                h.base_cm + h.step_cm * i32::from(h.levels[self.place(tile) as usize])
            }
            _ => 0,
        }
    }

    /// Whether the map says how high its tiles lie.
    pub fn has_heights(&self) -> bool {
        self.heights.is_some()
    }

    /// The doors, in the order in which they were drawn.
    pub fn doors(&self) -> &[Door] {
        &self.doors
    }

    /// A door of this terrain.
    pub fn door(&self, id: DoorId) -> Option<&Door> {
        self.doors.get(usize::from(id.0))
    }

    /// The door with this name.
    ///
    /// # Errors
    /// There is none, with the names that there are.
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

    /// A tile's place row by row; for one that is contained.
    #[inline]
    fn place(&self, tile: Tile) -> u32 {
        tile.z as u32 * self.width as u32 + tile.x as u32
    }
}
