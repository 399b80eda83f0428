//! The terrain for the page: its size and doors as JSON, and the blocked tiles as pictures in
//! pieces, at the level of detail that the zoom needs.
//!
//! At level 0 a pixel is a tile; at each further level it is a square of twice the side, the more
//! opaque the more of it is blocked. A piece is [`PIECE`] pixels wide, so that a page loads only
//! what it shows, however large the map.

use std::hash::{Hash, Hasher};

use purview::scene::terrain::{Door, Terrain, Tile};
use rustc_hash::FxHasher;
use serde::Serialize;

pub const PIECE: i32 = 1_024;

/// Colour of blocked tiles, and the opacity of a fully blocked pixel, of 255.
const COLOUR: [u8; 3] = [148, 163, 184];
const OPACITY: u32 = 105;

/// Bits per pixel: one at level 0 and four at further levels.
const ONE_BIT: u32 = 1;
const FOUR_BITS: u32 = 15;

/// `GET /api/terrain`.
#[derive(Debug, Serialize)]
pub struct TerrainShape {
    pub scene: String,
    pub tile_cm: i32,
    /// Tiles along x and z.
    pub width: i32,
    pub depth: i32,
    /// Side of a piece of `/api/terrain.png`, in pixels.
    pub piece: i32,
    /// Number of levels of detail, at least one; at the last one a single piece shows the whole
    /// map.
    pub levels: u32,
    /// In the order of the map: the index is the door's number.
    pub doors: Vec<DoorShape>,
}

#[derive(Debug, Serialize)]
pub struct DoorShape {
    pub name: String,
    /// Whether the door is open in the map.
    pub open: bool,
    /// Its tiles as runs along x: x and z of the first tile, and their number.
    pub runs: Vec<[i32; 3]>,
}

pub fn shape(scene: &str, terrain: &Terrain) -> TerrainShape {
    let door = |d: &Door| DoorShape { name: d.name.clone(), open: d.open, runs: runs(&d.tiles) };
    TerrainShape {
        scene: scene.into(),
        tile_cm: terrain.tile_cm(),
        width: terrain.width(),
        depth: terrain.depth(),
        piece: PIECE,
        levels: levels(terrain),
        doors: terrain.doors().iter().map(door).collect(),
    }
}

fn runs(tiles: &[Tile]) -> Vec<[i32; 3]> {
    let mut by_row = tiles.to_vec();
    by_row.sort_unstable_by_key(|t| (t.z, t.x));
    let mut runs: Vec<[i32; 3]> = Vec::new();
    for t in by_row {
        match runs.last_mut() {
            Some([x, z, n]) if *z == t.z && *x + *n == t.x => *n += 1,
            _ => runs.push([t.x, t.z, 1]),
        }
    }
    runs
}

pub fn levels(terrain: &Terrain) -> u32 {
    let side = terrain.width().max(terrain.depth()) as u32;
    side.div_ceil(PIECE as u32).next_power_of_two().ilog2() + 1
}

/// A version that changes with the terrain, so that clients can cache pieces.
pub fn version(terrain: &Terrain) -> String {
    let mut hasher = FxHasher::default();
    (terrain.tile_cm(), terrain.width(), terrain.depth()).hash(&mut hasher);
    (0..terrain.depth()).for_each(|z| terrain.row(z).hash(&mut hasher));
    for door in terrain.doors() {
        (&door.name, door.open, &door.tiles).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

#[derive(Debug, Clone, Copy)]
struct Part {
    level: u32,
    /// The first tile, and the number of tiles on the map.
    x: i32,
    z: i32,
    width: i32,
    depth: i32,
}

impl Part {
    /// Piece (`x`, `z`) of a level; `None` if it does not exist.
    fn of(terrain: &Terrain, level: u32, x: u32, z: u32) -> Option<Part> {
        if level >= levels(terrain) {
            return None;
        }
        let along = |n: u32, tiles: i32| {
            let first = i64::from(n) * i64::from(PIECE << level);
            let left = i64::from(tiles) - first;
            (left > 0).then(|| (first as i32, left.min(i64::from(PIECE << level)) as i32))
        };
        let (x, width) = along(x, terrain.width())?;
        let (z, depth) = along(z, terrain.depth())?;
        Some(Part { level, x, z, width, depth })
    }

    fn pixels(&self, tiles: i32) -> usize {
        (tiles as u32).div_ceil(1 << self.level) as usize
    }
}

/// Piece (`x`, `z`) of a level as a PNG; `None` if it does not exist.
pub fn piece(terrain: &Terrain, level: u32, x: u32, z: u32) -> Option<Vec<u8>> {
    let part = Part::of(terrain, level, x, z)?;
    let (width, height) = (part.pixels(part.width), part.pixels(part.depth));
    let counts = blocked(terrain, &part, width, height);
    Some(picture(&counts, width, if level == 0 { ONE_BIT } else { FOUR_BITS }, 1 << (2 * level)))
}

/// The blocked tiles under each pixel, without doors: the page draws those in their current state.
fn blocked(terrain: &Terrain, part: &Part, width: usize, height: usize) -> Vec<u32> {
    let mut counts = vec![0_u32; width * height];
    let side = 1 << part.level;
    for z in part.z..part.z + part.depth {
        let row = terrain.row(z);
        let line = ((z - part.z) >> part.level) as usize * width;
        for (pixel, count) in counts[line..line + width].iter_mut().enumerate() {
            let first = part.x + (pixel as i32) * side;
            *count += ones(row, first as usize, (first + side).min(part.x + part.width) as usize);
        }
    }
    for tile in terrain.doors().iter().flat_map(|d| &d.tiles) {
        let (dx, dz) = (tile.x - part.x, tile.z - part.z);
        if (0..part.width).contains(&dx) && (0..part.depth).contains(&dz) {
            let pixel = (dz >> part.level) as usize * width + (dx >> part.level) as usize;
            counts[pixel] -= 1;
        }
    }
    counts
}

/// The number of bits set from `first` to before `end`.
fn ones(row: &[u64], first: usize, end: usize) -> u32 {
    let mut at = first;
    let mut count = 0;
    while at < end {
        let bits = (64 - at % 64).min(end - at);
        let word = row[at / 64] >> (at % 64);
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        count += (word & mask).count_ones();
        at += bits;
    }
    count
}

/// A picture in one colour with `steps` steps of opacity: a count of `full` has the last step.
fn picture(counts: &[u32], width: usize, steps: u32, full: u32) -> Vec<u8> {
    // Rounded up, so that a single blocked tile is visible.
    let step = |count: u32| (u64::from(count) * u64::from(steps)).div_ceil(u64::from(full)) as u8;
    let bits = if steps == ONE_BIT { 1 } else { 4 };
    let pack = |line: &[u32]| {
        let mut bytes = vec![0_u8; (line.len() * bits).div_ceil(8)];
        for (i, count) in line.iter().enumerate() {
            bytes[i * bits / 8] |= step(*count) << (8 - bits - i * bits % 8);
        }
        bytes
    };
    let raw: Vec<u8> = counts.chunks(width).flat_map(pack).collect();
    let mut out = Vec::new();
    let height = counts.len() / width;
    let mut encoder = png::Encoder::new(&mut out, width as u32, height as u32);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(if bits == 1 { png::BitDepth::One } else { png::BitDepth::Four });
    encoder.set_palette(COLOUR.repeat(steps as usize + 1));
    let opacity: Vec<u8> = (0..=steps).map(|n| (n * OPACITY / steps) as u8).collect();
    encoder.set_trns(opacity);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&raw)?;
        writer.finish()
    });
    if let Err(e) = written {
        // Writing to memory cannot fail, and the format is legal.
        purview::log_limited!(error, "a piece of the terrain cannot be encoded: {e}");
    }
    out
}

#[cfg(test)]
mod tests {
    use purview::scene::terrain::Draft;

    use super::*;

    /// The opacity of every pixel, of 255, and the width of the picture.
    fn decoded(png: &[u8]) -> (usize, Vec<u8>) {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut raw = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut raw).unwrap();
        assert_eq!(info.color_type, png::ColorType::Rgba);
        assert!(raw.chunks(4).all(|p| p[..3] == COLOUR));
        (info.width as usize, raw.chunks(4).map(|p| p[3]).collect())
    }

    /// A map in which tile (x, z) is blocked if `is` returns true, with a door over (0, 0).
    fn terrain(width: i32, depth: i32, is: impl Fn(i32, i32) -> bool) -> Terrain {
        let mut draft = Draft::new(100, width, depth).unwrap();
        for (x, z) in (0..depth).flat_map(|z| (0..width).map(move |x| (x, z))) {
            draft.set_blocked(Tile { x, z }, is(x, z)).unwrap();
        }
        draft.add_door("gate", false, &[Tile { x: 0, z: 0 }, Tile { x: 1, z: 0 }]).unwrap();
        draft.add_door("gate", false, &[Tile { x: 0, z: 1 }, Tile { x: 3, z: 0 }]).unwrap();
        draft.finish()
    }

    #[test]
    fn at_level_0_a_pixel_is_a_tile_and_doors_are_left_out() {
        let is = |x: i32, z: i32| (x + z) % 3 == 0;
        let map = terrain(130, 5, is);
        assert_eq!(levels(&map), 1);
        let (width, pixels) = decoded(&piece(&map, 0, 0, 0).unwrap());
        assert_eq!((width, pixels.len()), (130, 130 * 5));
        for (i, opacity) in pixels.iter().enumerate() {
            let (x, z) = (i as i32 % 130, i as i32 / 130);
            let door = map.door_at(Tile { x, z }).is_some();
            assert_eq!(*opacity, if is(x, z) && !door { 105 } else { 0 }, "({x}, {z})");
        }
    }

    #[test]
    fn further_levels_show_how_much_of_a_square_is_blocked() {
        // The west half of the map, and one tile in the last column and row.
        let map = terrain(2_100, 1_030, |x, z| x < 1_000 || (x, z) == (2_099, 1_029));
        assert_eq!(levels(&map), 3);
        let (width, pixels) = decoded(&piece(&map, 1, 0, 0).unwrap());
        assert_eq!((width, pixels.len()), (1_024, 1_024 * 515));
        // The door covers three tiles of the first pixel and one of the second; a step is 7.
        assert_eq!(pixels[..3], [4 * 7, 12 * 7, 15 * 7]);
        assert_eq!(pixels[1_024 + 499..1_024 + 502], [105, 0, 0]);
        let (width, pixels) = decoded(&piece(&map, 1, 1, 0).unwrap());
        assert_eq!((width, pixels.len()), (26, 26 * 515));
        assert_eq!(*pixels.last().unwrap(), 28, "one tile of four: a step of four, rounded up");
        let (width, pixels) = decoded(&piece(&map, 2, 0, 0).unwrap());
        assert_eq!((width, pixels.len()), (525, 525 * 258));
        assert_eq!(*pixels.last().unwrap(), 7, "one tile of sixteen still shows");
        for none in [(3, 0, 0), (2, 1, 0), (2, 0, 1), (0, u32::MAX, 0), (u32::MAX, 0, 0)] {
            assert!(piece(&map, none.0, none.1, none.2).is_none(), "{none:?}");
        }
    }

    #[test]
    fn bits_are_counted_across_words() {
        let row = [u64::MAX, 0b1011, u64::MAX];
        for (first, end, count) in
            [(0, 0, 0), (0, 64, 64), (60, 68, 7), (64, 128, 3), (65, 67, 1), (0, 192, 131)]
        {
            assert_eq!(ones(&row, first, end), count, "{first}..{end}");
        }
    }

    #[test]
    fn different_terrains_have_different_versions() {
        let map = terrain(10, 10, |_, _| false);
        assert_eq!(version(&map), version(&map.clone()));
        assert_ne!(version(&map), version(&terrain(10, 10, |x, z| (x, z) == (9, 9))));
        assert_ne!(version(&map), version(&terrain(10, 11, |_, _| false)));
    }

    #[test]
    fn doors_are_lists_of_runs() {
        let shape = shape("keep", &terrain(10, 10, |_, _| false));
        assert_eq!(shape.doors[0].runs, [[0, 0, 2], [3, 0, 1], [0, 1, 1]]);
        let told = serde_json::to_value(shape).unwrap();
        assert_eq!(told["piece"], 1_024);
        assert_eq!(told["doors"][0]["name"], "gate");
    }
}
