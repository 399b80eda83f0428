//! Errors of maps: the file, what it says, and what would be right.

use std::path::PathBuf;

use purview::scene::terrain::TerrainError;

use super::MAX_FILE_BYTES;

/// Why a map cannot be read. No part of it is used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", .file.display())]
pub struct MapError {
    /// The file at fault, which may be one that the map names.
    pub file: PathBuf,
    /// What is wrong with it.
    pub problem: MapProblem,
}

/// Why the tiles of a layer cannot be unpacked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DataProblem {
    /// A form that Tiled does not write any more, or none.
    #[error(
        "its tiles are in encoding {encoding:?} with compression {compression:?}; it must be csv, or \
         base64 with no compression, zlib, gzip or zstd (Map > Map Properties > Tile Layer Format)"
    )]
    Encoding {
        /// What the layer says.
        encoding: String,
        /// What the layer says.
        compression: String,
    },
    /// No base64.
    #[error("its tiles are not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// Damaged.
    #[error("its tiles cannot be unpacked: {0}")]
    Unpack(String),
    /// Not the number of a tile.
    #[error("tile {at} is {found:?}; it must be a whole number from 0 to 4294967295")]
    Tile {
        /// Which tile, from 0, row by row.
        at: usize,
        /// What the layer says.
        found: String,
    },
    /// Not one tile for each place.
    #[error("{found} tiles where there must be {wanted}")]
    Count {
        /// Tiles that there are.
        found: u64,
        /// Tiles that there must be.
        wanted: u64,
    },
    /// More tiles than places; how many is not looked at.
    #[error("more tiles than the {wanted} that there must be, or a part of one")]
    More {
        /// Tiles that there must be.
        wanted: u64,
    },
}

/// Why a file is not a readable Tiled map.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SyntaxProblem {
    /// It is no XML.
    #[error("{0}")]
    Xml(#[source] quick_xml::Error),
    /// It is no JSON, or not that of a map; in the parser's words.
    #[error("{0}")]
    Json(String),
    /// An element that must be there is not.
    #[error("there is no <{wanted}>")]
    NoElement {
        /// Its name.
        wanted: &'static str,
    },
    /// An attribute that must be there is not.
    #[error("<{element}> has no attribute `{attribute}`")]
    Missing {
        /// The element.
        element: String,
        /// The attribute.
        attribute: &'static str,
    },
    /// An attribute is not the number that it must be.
    #[error("{attribute}={found:?} of <{element}> is not a number that it can have")]
    Number {
        /// The element.
        element: String,
        /// The attribute.
        attribute: &'static str,
        /// What it says.
        found: String,
    },
    /// A custom property does not have the type that it claims.
    #[error("property {property:?} of type {kind} is {found:?}")]
    Value {
        /// The property.
        property: String,
        /// Its type.
        kind: String,
        /// What it says.
        found: String,
    },
    /// An entity that XML does not define.
    #[error("&{0}; is unknown")]
    Entity(String),
    /// Something follows the outermost element.
    #[error("something follows the end of the map")]
    Trailing,
}

/// What is wrong with a file of a map.
#[derive(Debug, thiserror::Error)]
pub enum MapProblem {
    /// An object is not what the scene needs.
    #[error("{object} {problem}")]
    Object {
        /// Which object.
        object: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// The operating system cannot read the file.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] std::io::Error),
    /// The map and the files that it names are too large.
    #[error(
        "with the files that it names it has more than {} MiB, which is the most that is read; a Tiled \
         map is smaller with compressed layers (Map > Map Properties > Tile Layer Format)",
        MAX_FILE_BYTES >> 20
    )]
    TooLarge,
    /// Its name does not say which form it has.
    #[error("has an unknown format; the name of a map ends in .tmx, .tmj or .json (Tiled) or .png")]
    UnknownForm,
    /// It names a file that is not its own.
    #[error(
        "names the file {0:?}, which is not in the folder of the map; move the file there, and name it \
         relative to the map"
    )]
    Outside(String),
    /// The scene's size is not a whole number of tiles.
    #[error(
        "a scene of {width_cm} cm x {depth_cm} cm is not a whole number of tiles of {tile_cm} cm; choose \
         a tile that divides both"
    )]
    Uneven {
        /// The scene's extent along x.
        width_cm: i32,
        /// The scene's extent along z.
        depth_cm: i32,
        /// Side of a tile.
        tile_cm: i32,
    },
    /// It has another size than the scene.
    #[error(
        "is {} x {} tiles; the scene is {} x {} tiles of {tile_cm} cm", .found.0, .found.1,
        .wanted.0, .wanted.1
    )]
    Size {
        /// Tiles, or pixels of a picture, along x and z.
        found: (u32, u32),
        /// Tiles of the scene.
        wanted: (i32, i32),
        /// Side of a tile.
        tile_cm: i32,
    },
    /// Something that it draws is not legal.
    #[error(transparent)]
    Terrain(#[from] TerrainError),
    /// The parser of its form failed.
    #[error("the parser failed; the file is damaged")]
    Parser,
    /// It is no picture that can be read.
    #[error("is not a readable PNG: {0}")]
    Png(#[from] png::DecodingError),
    /// It is a picture in colour.
    #[error("is a PNG in {found}; it must be grey-scale without transparency, of 1 to 16 bits")]
    Colour {
        /// Its form.
        found: &'static str,
    },
    /// It is a moving picture.
    #[error("is an animated PNG; it must be a single picture")]
    Animated,
    /// It is not a readable Tiled map.
    #[error("is not a readable Tiled map: {problem} at line {line} column {column}")]
    Syntax {
        /// Why not.
        problem: SyntaxProblem,
        /// The line, from 1.
        line: usize,
        /// The byte of the line, from 1.
        column: usize,
    },
    /// It ends within something.
    #[error("ends within {0}: the file is cut off")]
    CutOff(String),
    /// It is not what its name says, or what the file that names it wants.
    #[error("is a Tiled {found}; it must be a {wanted}")]
    Kind {
        /// What it is.
        found: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// It has more of something than is read.
    #[error("has more than {most} {what}, which is the most that is read")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many are read.
        most: u64,
    },
    /// A template, or the shape of a tile, is made from a template.
    #[error("a template is made from another one; only objects of the map itself may be")]
    NestedTemplate,
    /// Its tiles are no squares.
    #[error("is {0}; a map must be orthogonal or isometric")]
    Orientation(String),
    /// A layer has another size than its map.
    #[error(
        "layer {layer:?} is {} x {} tiles and its map {} x {}", .found.0, .found.1, .wanted.0,
        .wanted.1
    )]
    LayerSize {
        /// The layer.
        layer: String,
        /// Its tiles along x and z.
        found: (u32, u32),
        /// Those of its map.
        wanted: (u32, u32),
    },
    /// A part of a layer of an infinite map lies farther out than any map, or has no size.
    #[error("layer {layer:?}: a chunk at ({x}, {z}) of {width} x {depth} tiles is none")]
    Chunk {
        /// The layer.
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
    /// The tiles of a layer cannot be unpacked.
    #[error("layer {layer:?}: {problem}")]
    Data {
        /// The layer.
        layer: String,
        /// Why.
        problem: DataProblem,
    },
    /// A tile layer that was asked for is not there.
    #[error("has no tile layer {name:?}; its tile layers are {known:?}")]
    NoLayer {
        /// The layer's name.
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
    /// A tile that counts lies outside the scene (infinite maps).
    #[error(
        "layer {layer:?} has a tile at ({x}, {z}); the scene's are (0, 0) to ({}, {}): move the map \
         (Map > Offset Map) or change the scene's size", .wanted.0 - 1, .wanted.1 - 1
    )]
    OutsideScene {
        /// The layer.
        layer: String,
        /// Tiles from the map's origin along x.
        x: i32,
        /// Tiles from the map's origin along z.
        z: i32,
        /// Tiles of the scene.
        wanted: (i32, i32),
    },
    /// A custom property of another type than it must have.
    #[error("{of}: property {name:?} is {found}; it must be {wanted}")]
    Property {
        /// What has the property.
        of: String,
        /// Its name.
        name: &'static str,
        /// What it says.
        found: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// A door that is none.
    #[error("door {name:?} (object {object}) {problem}")]
    Door {
        /// Its name.
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
