//! Errors of maps: the file, what it says, and what would be right.

use std::path::PathBuf;

use purview::scene::terrain::TerrainError;

use super::MAX_FILE_BYTES;

/// Why a map cannot be read. No part of it is used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", .file.display())]
pub struct MapError {
    pub file: PathBuf,
    pub problem: MapProblem,
}

/// Why the tiles of a layer cannot be unpacked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DataProblem {
    #[error(
        "its tiles are in encoding {encoding:?} with compression {compression:?}; it must be csv, or \
         base64 with no compression, zlib, gzip or zstd (Map > Map Properties > Tile Layer Format)"
    )]
    Encoding { encoding: String, compression: String },
    #[error("its tiles are not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    #[error("its tiles cannot be unpacked: {0}")]
    Unpack(String),
    #[error("tile {at} is {found:?}; it must be a whole number from 0 to 4294967295")]
    Tile {
        /// Which tile, from 0, row by row.
        at: usize,
        found: String,
    },
    #[error("{found} tiles where there must be {wanted}")]
    Count { found: u64, wanted: u64 },
    #[error("more tiles than the {wanted} that there must be, or a part of one")]
    More { wanted: u64 },
}

/// Why a file is not a readable Tiled map.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SyntaxProblem {
    #[error("{0}")]
    Xml(#[source] quick_xml::Error),
    #[error("{0}")]
    Json(String),
    #[error("there is no <{wanted}>")]
    NoElement { wanted: &'static str },
    #[error("<{element}> has no attribute `{attribute}`")]
    Missing { element: String, attribute: &'static str },
    #[error("{attribute}={found:?} of <{element}> is not a number that it can have")]
    Number { element: String, attribute: &'static str, found: String },
    #[error("property {property:?} of type {kind} is {found:?}")]
    Value { property: String, kind: String, found: String },
    #[error("&{0}; is unknown")]
    Entity(String),
    #[error("something follows the end of the map")]
    Trailing,
}

/// What is wrong with a file of a map.
#[derive(Debug, thiserror::Error)]
pub enum MapProblem {
    #[error("{object} {problem}")]
    Object {
        object: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    #[error("cannot be read: {0}")]
    Unreadable(#[source] std::io::Error),
    #[error(
        "with the files that it names it has more than {} MiB, which is the most that is read; a Tiled \
         map is smaller with compressed layers (Map > Map Properties > Tile Layer Format)",
        MAX_FILE_BYTES >> 20
    )]
    TooLarge,
    #[error("has an unknown format; the name of a map ends in .tmx, .tmj or .json (Tiled) or .png")]
    UnknownForm,
    #[error(
        "names the file {0:?}, which is not in the folder of the map; move the file there, and name it \
         relative to the map"
    )]
    Outside(String),
    #[error(
        "a scene of {width_cm} cm x {depth_cm} cm is not a whole number of tiles of {tile_cm} cm; choose \
         a tile that divides both"
    )]
    Uneven {
        /// The scene's extent along x.
        width_cm: i32,
        /// The scene's extent along z.
        depth_cm: i32,
        tile_cm: i32,
    },
    #[error(
        "is {} x {} tiles; the scene is {} x {} tiles of {tile_cm} cm", .found.0, .found.1,
        .wanted.0, .wanted.1
    )]
    Size {
        /// Tiles, or pixels of a picture, along x and z.
        found: (u32, u32),
        /// Tiles of the scene.
        wanted: (i32, i32),
        tile_cm: i32,
    },
    #[error(transparent)]
    Terrain(#[from] TerrainError),
    #[error("the parser failed; the file is damaged")]
    Parser,
    #[error("is not a readable PNG: {0}")]
    Png(#[from] png::DecodingError),
    #[error("is a PNG in {found}; it must be grey-scale without transparency, of 1 to 16 bits")]
    Colour { found: &'static str },
    #[error("is an animated PNG; it must be a single picture")]
    Animated,
    #[error("is not a readable Tiled map: {problem} at line {line} column {column}")]
    Syntax {
        problem: SyntaxProblem,
        /// The line, from 1.
        line: usize,
        /// The byte of the line, from 1.
        column: usize,
    },
    #[error("ends within {0}: the file is cut off")]
    CutOff(String),
    #[error("is a Tiled {found}; it must be a {wanted}")]
    Kind { found: String, wanted: &'static str },
    #[error("has more than {most} {what}, which is the most that is read")]
    TooMany { what: &'static str, most: u64 },
    #[error("a template is made from another one; only objects of the map itself may be")]
    NestedTemplate,
    #[error("is {0}; a map must be orthogonal or isometric")]
    Orientation(String),
    #[error(
        "layer {layer:?} is {} x {} tiles and its map {} x {}", .found.0, .found.1, .wanted.0,
        .wanted.1
    )]
    LayerSize {
        layer: String,
        /// Its tiles along x and z.
        found: (u32, u32),
        wanted: (u32, u32),
    },
    #[error("layer {layer:?}: a chunk at ({x}, {z}) of {width} x {depth} tiles is none")]
    Chunk {
        layer: String,
        /// West edge, tiles.
        x: i64,
        /// North edge, tiles.
        z: i64,
        /// Tiles along x.
        width: i64,
        /// Tiles along z.
        depth: i64,
    },
    #[error("layer {layer:?}: {problem}")]
    Data { layer: String, problem: DataProblem },
    #[error("has no tile layer {name:?}; its tile layers are {known:?}")]
    NoLayer {
        name: String,
        /// Those that there are, at most sixteen.
        known: Vec<String>,
    },
    /// The map has nothing that Purview uses.
    #[error(
        "is empty: it has no tile layer \"blocked\" (`layer` names another), no property `blocked` \
         or `height` of a tile or a layer, and no door; its tile layers are {known:?}"
    )]
    Empty {
        /// The tile layers that there are, at most sixteen.
        known: Vec<String>,
    },
    #[error(
        "layer {layer:?} has a tile at ({x}, {z}); the scene's are (0, 0) to ({}, {}): move the map \
         (Map > Offset Map) or change the scene's size", .wanted.0 - 1, .wanted.1 - 1
    )]
    OutsideScene {
        layer: String,
        /// Tiles from the map's origin along x.
        x: i32,
        /// Tiles from the map's origin along z.
        z: i32,
        /// Tiles of the scene.
        wanted: (i32, i32),
    },
    #[error("{of}: property {name:?} is {found}; it must be {wanted}")]
    Property { of: String, name: &'static str, found: String, wanted: &'static str },
    #[error("door {name:?} (object {object}) {problem}")]
    Door {
        name: String,
        /// The object's number in Tiled.
        object: u32,
        /// Why it is none.
        problem: &'static str,
    },
}

impl MapProblem {
    pub(super) fn of(self, file: &std::path::Path) -> MapError {
        MapError { file: file.to_path_buf(), problem: self }
    }
}
