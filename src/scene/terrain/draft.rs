//! Builds a terrain: a map reader fills a [`Draft`], which accepts only what makes a legal terrain.
//!
//! The map readers of the server, examples and tests call it. It must not know any file format.

use rustc_hash::FxHashMap;

use super::{Door, DoorId, Heights, Terrain, Tile};
use crate::scene::names::is_name;

/// Longest side of a tile: 1 km, in centimetres.
pub const MAX_TILE_CM: i32 = 100_000;

/// Most tiles of a terrain: 8,192 x 8,192. They take 8 MiB, or 136 MiB with heights.
pub const MAX_TILES: i64 = 1 << 26;

/// Most tiles of all doors together.
pub const MAX_DOOR_TILES: usize = 1 << 20;

/// Longest name of a door, bytes.
pub const MAX_DOOR_NAME: usize = 64;

/// Greatest height above or below 0: 1,000 km, in centimetres.
const MAX_HEIGHT_CM: i64 = 100_000_000;

/// Why a call on the draft is refused. The draft is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TerrainError {
    /// The tile's side is out of range.
    #[error("a tile of {0} cm: its side must lie between 1 cm and 1 km")]
    TileSide(i32),
    /// The map has too few or too many tiles.
    #[error("{width} x {depth} tiles: a map has at least one tile and at most {MAX_TILES}")]
    Size {
        /// Tiles along x.
        width: i32,
        /// Tiles along z.
        depth: i32,
    },
    /// The tile is not on the map.
    #[error(
        "tile ({}, {}) is outside the map, whose tiles are (0, 0) to ({}, {})",
        .tile.x, .tile.z, .width - 1, .depth - 1
    )]
    Outside {
        /// The tile.
        tile: Tile,
        /// Tiles along x.
        width: i32,
        /// Tiles along z.
        depth: i32,
    },
    /// The number of heights differs from the number of tiles.
    #[error("{found} heights for {tiles} tiles: give one height per tile")]
    HeightCount {
        /// Number of heights given.
        found: usize,
        /// Tiles of the map.
        tiles: usize,
    },
    /// The heights are out of range.
    #[error(
        "heights from {lowest_cm} cm to {highest_cm} cm: must lie within 1000 km of 0, and a step \
         must be at least 1 cm"
    )]
    HeightRange {
        /// Level 0, centimetres.
        lowest_cm: i64,
        /// Level 65,535, centimetres.
        highest_cm: i64,
    },
    /// The door's name is none.
    #[error("a door named {0:?}: a name has 1 to {MAX_DOOR_NAME} bytes of printable text")]
    DoorName(String),
    /// The door has no tiles.
    #[error("door {0:?} has no tile")]
    DoorEmpty(String),
    /// The tile would belong to two doors.
    #[error("tile ({}, {}) belongs to door {one:?} and to door {other:?}; a tile may belong to one", .tile.x, .tile.z)]
    DoorsOverlap {
        /// The tile.
        tile: Tile,
        /// The door that has the tile.
        one: String,
        /// The door that would get it, too.
        other: String,
    },
    /// Two parts of one door have different initial states.
    #[error("door {0:?} is open in one place and closed in another; give both the same state")]
    DoorStates(String),
    /// There are more doors than ids, or more door tiles than [`MAX_DOOR_TILES`].
    #[error("more than {} doors, or more than {MAX_DOOR_TILES} tiles of doors", u16::MAX)]
    TooManyDoors,
}

/// A terrain under construction. All tiles are free at first.
#[derive(Debug, Clone)]
pub struct Draft {
    terrain: Terrain,
    by_name: FxHashMap<String, DoorId>,
}

impl Draft {
    /// An empty map of `width` x `depth` tiles with sides of `tile_cm`.
    ///
    /// # Errors
    /// [`TerrainError::TileSide`] and [`TerrainError::Size`], before any memory is allocated.
    pub fn new(tile_cm: i32, width: i32, depth: i32) -> Result<Draft, TerrainError> {
        if !(1..=MAX_TILE_CM).contains(&tile_cm) {
            return Err(TerrainError::TileSide(tile_cm));
        }
        if width < 1 || depth < 1 || i64::from(width) * i64::from(depth) > MAX_TILES {
            return Err(TerrainError::Size { width, depth });
        }
        let row_words = (width as usize).div_ceil(64);
        let terrain = Terrain {
            tile_cm,
            width,
            depth,
            row_words,
            blocked: vec![0; row_words * depth as usize],
            heights: None,
            doors: Vec::new(),
            door_at: FxHashMap::default(),
        };
        Ok(Draft { terrain, by_name: FxHashMap::default() })
    }

    /// Tiles along x.
    pub fn width(&self) -> i32 {
        self.terrain.width
    }

    /// Tiles along z.
    pub fn depth(&self) -> i32 {
        self.terrain.depth
    }

    /// Makes a tile blocked or free.
    ///
    /// # Errors
    /// [`TerrainError::Outside`].
    pub fn set_blocked(&mut self, tile: Tile, blocked: bool) -> Result<(), TerrainError> {
        self.check(tile)?;
        let t = &mut self.terrain;
        let word = &mut t.blocked[tile.z as usize * t.row_words + (tile.x as usize >> 6)];
        let bit = 1_u64 << (tile.x & 63);
        *word = if blocked { *word | bit } else { *word & !bit };
        Ok(())
    }

    /// Sets the heights: `base_cm` + `step_cm` x the tile's level, row by row from the north-west
    /// corner.
    ///
    /// # Errors
    /// [`TerrainError::HeightCount`] and [`TerrainError::HeightRange`].
    pub fn set_heights(
        &mut self,
        base_cm: i32,
        step_cm: i32,
        levels: Vec<u16>,
    ) -> Result<(), TerrainError> {
        let tiles = self.terrain.width as usize * self.terrain.depth as usize;
        if levels.len() != tiles {
            return Err(TerrainError::HeightCount { found: levels.len(), tiles });
        }
        let lowest_cm = i64::from(base_cm);
        let highest_cm = lowest_cm + i64::from(step_cm) * i64::from(u16::MAX);
        if step_cm < 1 || lowest_cm < -MAX_HEIGHT_CM || highest_cm > MAX_HEIGHT_CM {
            return Err(TerrainError::HeightRange { lowest_cm, highest_cm });
        }
        self.terrain.heights = Some(Heights { base_cm, step_cm, levels });
        Ok(())
    }

    /// Adds a door, or adds tiles to the door of that name. `open` is its initial state.
    ///
    /// # Errors
    /// The errors of doors, and [`TerrainError::Outside`].
    pub fn add_door(
        &mut self,
        name: &str,
        open: bool,
        tiles: &[Tile],
    ) -> Result<DoorId, TerrainError> {
        if !is_name(name, MAX_DOOR_NAME) {
            return Err(TerrainError::DoorName(name.into()));
        }
        if tiles.is_empty() {
            return Err(TerrainError::DoorEmpty(name.into()));
        }
        let known = self.by_name.get(name).copied();
        if known.and_then(|id| self.terrain.door(id)).is_some_and(|d| d.open != open) {
            return Err(TerrainError::DoorStates(name.into()));
        }
        let full = known.is_none() && self.terrain.doors.len() >= usize::from(u16::MAX);
        if full || self.terrain.door_at.len() + tiles.len() > MAX_DOOR_TILES {
            return Err(TerrainError::TooManyDoors);
        }
        for tile in tiles {
            self.check(*tile)?;
            if let Some(other) = self.terrain.door_at(*tile).filter(|id| Some(*id) != known) {
                let one = self.terrain.doors[usize::from(other.0)].name.clone();
                return Err(TerrainError::DoorsOverlap { tile: *tile, one, other: name.into() });
            }
        }
        let t = &mut self.terrain;
        let id = known.unwrap_or(DoorId(t.doors.len() as u16));
        if known.is_none() {
            t.doors.push(Door { name: name.into(), open, tiles: Vec::new() });
            self.by_name.insert(name.into(), id);
        }
        for tile in tiles {
            t.door_at.insert(t.place(*tile), id);
        }
        let door = &mut t.doors[usize::from(id.0)];
        door.tiles.extend(tiles);
        door.tiles.sort_unstable();
        door.tiles.dedup();
        Ok(id)
    }

    /// The finished terrain.
    pub fn finish(mut self) -> Terrain {
        let t = &mut self.terrain;
        for tile in t.doors.iter().flat_map(|d| &d.tiles) {
            let word = tile.z as usize * t.row_words + (tile.x as usize >> 6);
            t.blocked[word] |= 1 << (tile.x & 63);
        }
        self.terrain
    }

    fn check(&self, tile: Tile) -> Result<(), TerrainError> {
        let (width, depth) = (self.terrain.width, self.terrain.depth);
        match self.terrain.contains(tile) {
            true => Ok(()),
            false => Err(TerrainError::Outside { tile, width, depth }),
        }
    }
}
