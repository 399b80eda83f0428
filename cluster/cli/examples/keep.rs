//! Draws the map of `deploy/scenes/keep.toml`: a walled town by a river, with gates, a bridge and a hill.
//!
//! ```text
//! cargo run -p purview-cli --example keep -- deploy/scenes
//! ```
//!
//! writes `keep.tmx` and its tiles, `keep.png`, into the folder; Tiled opens them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Tiles of 2 m along x and z: 384 m x 256 m.
const WIDTH: i32 = 192;
const DEPTH: i32 = 128;

/// The width and height of a tile, pixels.
const TILE_PX: u32 = 16;

/// The tiles by their numbers in the map; 0 is none.
const GRASS: u32 = 1;
const WATER: u32 = 2;
const WALL: u32 = 3;
const HOUSE: u32 = 4;
const PLANKS: u32 = 5;
const SLOPE: u32 = 6;

/// The steps of the hill, of 50 cm each (`height_step` in `deploy/scenes/keep.toml`).
const STEPS: u32 = 6;

/// The west, north, east and south edges of the town wall.
const TOWN: [i32; 4] = [24, 28, 104, 100];

/// The gates and the bridge: name, class, whether it is open, and west, north, width and depth in tiles.
type Opening = (&'static str, &'static str, bool, [i32; 4]);
const OPENINGS: [Opening; 4] = [
    ("north gate", "door", false, [60, 28, 6, 2]),
    ("south gate", "door", true, [60, 98, 6, 2]),
    ("east gate", "door", true, [102, 60, 2, 6]),
    ("bridge", "bridge", true, [118, 60, 20, 6]),
];

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "deploy/scenes".into()));
    std::fs::write(folder.join("keep.tmx"), map())?;
    std::fs::write(folder.join("keep.png"), tiles()?)?;
    println!("wrote {0}/keep.tmx and {0}/keep.png", folder.display());
    let spec =
        purview_server::config::Config::load(Some(Path::new("deploy/scenes/keep.toml")), [], &[]);
    match spec.and_then(|config| config.build_scenes()) {
        Ok(_) => println!("deploy/scenes/keep.toml is in order"),
        Err(e) => println!("{e}"),
    }
    Ok(())
}

/// A layer's tiles, row by row.
fn layer(tile: impl Fn(i32, i32) -> u32) -> Vec<u32> {
    (0..DEPTH).flat_map(|z| (0..WIDTH).map(move |x| (x, z))).map(|(x, z)| tile(x, z)).collect()
}

/// The west bank of the river in row `z`.
fn bank(z: i32) -> i32 {
    122 + ((f64::from(z) / 17.0).sin() * 4.0).round() as i32
}

fn ground(x: i32, z: i32) -> u32 {
    let river = (bank(z)..bank(z) + 12).contains(&x);
    let (dx, dz) = (f64::from(x - 164), f64::from(z - 40));
    let hill = (STEPS as f64 - dx.hypot(dz) / 4.0).ceil() as i32;
    match (river, hill) {
        (true, _) => WATER,
        (false, ..=0) => GRASS,
        (false, step) => SLOPE + (step as u32).min(STEPS) - 1,
    }
}

/// Walls of two tiles, houses in rows with lanes between them, and two streets to the gates.
fn blocked(x: i32, z: i32) -> u32 {
    let [west, north, east, south] = TOWN;
    let inside = x >= west && x < east && z >= north && z < south;
    if !inside {
        return 0;
    }
    if x < west + 2 || x >= east - 2 || z < north + 2 || z >= south - 2 {
        return WALL;
    }
    let (lane_x, lane_z) = ((x - west - 2) % 15, (z - north - 2) % 13);
    let street = (58..68).contains(&x) || (58..68).contains(&z);
    let house = (4..12).contains(&lane_x) && (3..10).contains(&lane_z) && !street;
    if house { HOUSE } else { 0 }
}

fn bridge(x: i32, z: i32) -> u32 {
    let [west, north, width, depth] = OPENINGS[3].3;
    let on = (west..west + width).contains(&x) && (north..north + depth).contains(&z);
    if on { PLANKS } else { 0 }
}

/// The map as Tiled writes it.
pub fn map() -> String {
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<map version=\"1.10\" orientation=\"orthogonal\" \
         renderorder=\"right-down\" width=\"{WIDTH}\" height=\"{DEPTH}\" tilewidth=\"{TILE_PX}\" \
         tileheight=\"{TILE_PX}\" infinite=\"0\" nextlayerid=\"5\" nextobjectid=\"9\">\n"
    );
    out += &tileset();
    for (id, name, tiles) in
        [(1, "ground", layer(ground)), (2, "blocked", layer(blocked)), (3, "planks", layer(bridge))]
    {
        let _ = write!(
            out,
            " <layer id=\"{id}\" name=\"{name}\" width=\"{WIDTH}\" height=\"{DEPTH}\">\n  <data \
             encoding=\"base64\" compression=\"zlib\">\n   {}\n  </data>\n </layer>\n",
            packed(&tiles)
        );
    }
    out += " <objectgroup id=\"4\" name=\"doors\">\n";
    for (n, (name, class, open, tiles)) in (1..).zip(OPENINGS) {
        let [x, y, width, height] = tiles.map(|t| t * TILE_PX as i32);
        let _ = write!(
            out,
            "  <object id=\"{n}\" name=\"{name}\" type=\"{class}\" x=\"{x}\" y=\"{y}\" \
             width=\"{width}\" height=\"{height}\">\n   <properties>\n    <property name=\"open\" \
             type=\"bool\" value=\"{open}\"/>\n   </properties>\n  </object>\n"
        );
    }
    out + " </objectgroup>\n</map>\n"
}

/// Water is blocked, planks are not, and slopes have heights.
fn tileset() -> String {
    let count = SLOPE - 1 + STEPS;
    let mut out = format!(
        " <tileset firstgid=\"1\" name=\"keep\" tilewidth=\"{TILE_PX}\" tileheight=\"{TILE_PX}\" \
         tilecount=\"{count}\" columns=\"{count}\">\n  <image source=\"keep.png\" width=\"{}\" \
         height=\"{TILE_PX}\"/>\n",
        TILE_PX * count
    );
    let mut says = |tile: u32, property: &str| {
        let _ = write!(
            out,
            "  <tile id=\"{}\">\n   <properties>\n    <property {property}/>\n   </properties>\n  \
             </tile>\n",
            tile - 1
        );
    };
    says(WATER, "name=\"blocked\" type=\"bool\" value=\"true\"");
    for step in 0..STEPS {
        says(SLOPE + step, &format!("name=\"height\" type=\"int\" value=\"{}\"", step + 1));
    }
    out + " </tileset>\n"
}

fn packed(tiles: &[u32]) -> String {
    let bytes: Vec<u8> = tiles.iter().flat_map(|t| t.to_le_bytes()).collect();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let packed = zlib.write_all(&bytes).and_then(|()| zlib.finish());
    STANDARD.encode(packed.expect("memory takes what is written"))
}

/// A picture of the tiles, each in one colour.
fn tiles() -> std::io::Result<Vec<u8>> {
    let flat = [[96, 140, 72], [64, 110, 168], [120, 116, 110], [150, 96, 70], [176, 142, 92]];
    let slope = |step: u32| [110 + 14 * step as u8, 130 + 10 * step as u8, 70 + 12 * step as u8];
    let colours: Vec<[u8; 3]> = flat.into_iter().chain((0..STEPS).map(slope)).collect();
    let row: Vec<u8> = colours.iter().flat_map(|colour| colour.repeat(TILE_PX as usize)).collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, TILE_PX * colours.len() as u32, TILE_PX);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&row.repeat(TILE_PX as usize))?;
    writer.finish()?;
    Ok(bytes)
}
