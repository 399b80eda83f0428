//! Maps for the tests, as Tiled writes them, in an in-memory file system.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use purview::scene::SceneSpec;
use purview::scene::terrain::{Terrain, Tile};
use purview_server::maps::{MapError, MapObject, MapSpec, load_with};
use ruzstd::encoding::CompressionLevel;

/// Files by their names.
#[derive(Clone, Default)]
pub struct MemoryFiles(pub BTreeMap<PathBuf, Vec<u8>>);

impl MemoryFiles {
    pub fn of(name: &str, text: impl Into<Vec<u8>>) -> MemoryFiles {
        MemoryFiles::default().and(name, text)
    }

    pub fn and(mut self, name: &str, text: impl Into<Vec<u8>>) -> MemoryFiles {
        self.0.insert(name.into(), text.into());
        self
    }

    /// The terrain of a map in these files, for a scene of `width` x `depth` tiles of 1 m.
    pub fn load(&self, map: &MapSpec, width: i32, depth: i32) -> Result<Terrain, MapError> {
        self.load_all(map, width, depth).map(|(terrain, _)| terrain)
    }

    /// The same with the objects that are no doors.
    pub fn load_all(
        &self,
        map: &MapSpec,
        width: i32,
        depth: i32,
    ) -> Result<(Terrain, Vec<MapObject>), MapError> {
        let scene = SceneSpec {
            width_cm: width * map.tile_cm,
            depth_cm: depth * map.tile_cm,
            ..SceneSpec::default()
        };
        load_with(map, &scene, &|path: &Path| match self.0.get(path) {
            Some(bytes) => Ok(Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>),
            None => Err(std::io::ErrorKind::NotFound.into()),
        })
    }

    /// The error of the map.
    pub fn wrong(&self, map: &MapSpec, width: i32, depth: i32) -> String {
        self.load(map, width, depth).unwrap_err().to_string()
    }
}

/// A map in one file.
pub fn map(file: &str) -> MapSpec {
    MapSpec { file: Some(file.into()), ..MapSpec::default() }
}

/// A terrain as rows of `.` and `#`; the state of doors does not count.
pub fn rows(terrain: &Terrain) -> Vec<String> {
    let tile = |x, z| if terrain.is_blocked(Tile { x, z }) { '#' } else { '.' };
    (0..terrain.depth()).map(|z| (0..terrain.width()).map(|x| tile(x, z)).collect()).collect()
}

/// The encoding of a layer's tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Csv,
    Base64,
    Zlib,
    Gzip,
    Zstd,
}

pub const PACKINGS: [Packing; 5] =
    [Packing::Csv, Packing::Base64, Packing::Zlib, Packing::Gzip, Packing::Zstd];

impl Packing {
    /// Encoding and compression by Tiled's names.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Packing::Csv => ("csv", ""),
            Packing::Base64 => ("base64", ""),
            Packing::Zlib => ("base64", "zlib"),
            Packing::Gzip => ("base64", "gzip"),
            Packing::Zstd => ("base64", "zstd"),
        }
    }

    pub fn base64(self, tiles: &[u32]) -> String {
        let bytes: Vec<u8> = tiles.iter().flat_map(|t| t.to_le_bytes()).collect();
        STANDARD.encode(self.packed(&bytes))
    }

    pub fn packed(self, bytes: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::best();
        match self {
            Packing::Csv | Packing::Base64 => bytes.to_vec(),
            Packing::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Packing::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Packing::Zstd => ruzstd::encoding::compress_to_vec(bytes, CompressionLevel::Fastest),
        }
    }

    /// The text between the tags of `<data>` or `<chunk>`.
    fn xml(self, tiles: &[u32]) -> String {
        match self {
            Packing::Csv => tiles.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
            packed => format!("\n   {}\n  ", packed.base64(tiles)),
        }
    }

    fn json(self, tiles: &[u32]) -> String {
        match self {
            Packing::Csv => format!("{tiles:?}"),
            packed => format!("{:?}", packed.base64(tiles)),
        }
    }
}

fn attribute(name: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!(" {name}=\"{value}\"") }
}

/// A finite map around its content.
pub fn tmx(width: i32, depth: i32, within: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<map version=\"1.10\" tiledversion=\"1.11.0\" \
         orientation=\"orthogonal\" renderorder=\"right-down\" width=\"{width}\" height=\"{depth}\" \
         tilewidth=\"16\" tileheight=\"8\" infinite=\"0\">\n{TILESET}{within}</map>\n"
    )
}

/// A tileset of nine tiles without properties.
const TILESET: &str = " <tileset firstgid=\"1\" name=\"plain\" tilewidth=\"16\" tileheight=\"8\" \
                       tilecount=\"9\" columns=\"3\"><image source=\"plain.png\" width=\"48\" \
                       height=\"24\"/></tileset>\n";

/// A finite tile layer.
pub fn layer(name: &str, width: i32, packing: Packing, tiles: &[u32]) -> String {
    layer_with(name, width, packing, tiles, "")
}

/// A finite tile layer with properties.
pub fn layer_with(
    name: &str,
    width: i32,
    packing: Packing,
    tiles: &[u32],
    properties: &str,
) -> String {
    let depth = tiles.len() as i32 / width;
    let (encoding, compression) = packing.words();
    let compression = attribute("compression", compression);
    format!(
        " <layer id=\"1\" name=\"{name}\" width=\"{width}\" height=\"{depth}\">{properties}\n  <data \
         encoding=\"{encoding}\"{compression}>{}</data>\n </layer>\n",
        packing.xml(tiles)
    )
}

/// A chunk of an infinite layer: its position, its width and its tiles.
pub type Piece<'a> = (i32, i32, i32, &'a [u32]);

/// An infinite map of one layer.
pub fn infinite_tmx(name: &str, packing: Packing, pieces: &[Piece<'_>]) -> String {
    let (encoding, compression) = packing.words();
    let compression = attribute("compression", compression);
    let chunk = |(x, z, width, tiles): &Piece<'_>| {
        let depth = tiles.len() as i32 / width;
        format!(
            "<chunk x=\"{x}\" y=\"{z}\" width=\"{width}\" height=\"{depth}\">{}</chunk>\n",
            packing.xml(tiles)
        )
    };
    let chunks: String = pieces.iter().map(chunk).collect();
    tmx(
        30,
        20,
        &format!(
            " <layer id=\"1\" name=\"{name}\" width=\"30\" height=\"20\">\n  <data \
             encoding=\"{encoding}\"{compression}>\n{chunks}</data>\n </layer>\n"
        ),
    )
    .replace("infinite=\"0\"", "infinite=\"1\"")
}

/// The same finite map in JSON.
pub fn tmj(width: i32, depth: i32, layers: &[String], tilesets: &str) -> String {
    format!(
        r#"{{ "compressionlevel": -1, "height": {depth}, "infinite": false, "layers": [{}],
 "nextlayerid": 3, "nextobjectid": 1, "orientation": "orthogonal", "renderorder": "right-down",
 "tiledversion": "1.11.0", "tileheight": 8, "tilesets": [{tilesets}], "tilewidth": 16, "type": "map",
 "version": "1.10", "width": {width} }}"#,
        layers.join(",\n")
    )
}

/// A tileset of nine tiles without properties, in JSON.
pub const JSON_TILESET: &str = r#"{ "firstgid": 1, "name": "plain", "tilecount": 9, "columns": 3,
 "tilewidth": 16, "tileheight": 8, "image": "plain.png", "imagewidth": 48, "imageheight": 24 }"#;

/// A finite tile layer in JSON.
pub fn json_layer(name: &str, width: i32, packing: Packing, tiles: &[u32]) -> String {
    let depth = tiles.len() as i32 / width;
    let (encoding, compression) = packing.words();
    let words = match packing {
        Packing::Csv => String::new(),
        _ => format!(r#""encoding": "{encoding}", "compression": "{compression}","#),
    };
    format!(
        r#"{{ "data": {}, {words} "height": {depth}, "id": 1, "name": "{name}", "opacity": 1,
 "type": "tilelayer", "visible": true, "width": {width}, "x": 0, "y": 0 }}"#,
        packing.json(tiles)
    )
}

/// An infinite map of one layer in JSON.
pub fn infinite_tmj(name: &str, packing: Packing, pieces: &[Piece<'_>]) -> String {
    let (encoding, compression) = packing.words();
    let words = match packing {
        Packing::Csv => String::new(),
        _ => format!(r#""encoding": "{encoding}", "compression": "{compression}","#),
    };
    let chunk = |(x, z, width, tiles): &Piece<'_>| {
        let depth = tiles.len() as i32 / width;
        format!(
            r#"{{ "data": {}, "height": {depth}, "width": {width}, "x": {x}, "y": {z} }}"#,
            packing.json(tiles)
        )
    };
    let chunks: Vec<_> = pieces.iter().map(chunk).collect();
    let layer = format!(
        r#"{{ "chunks": [{}], {words} "height": 20, "id": 1, "name": "{name}", "startx": -16,
 "starty": 0, "type": "tilelayer", "width": 30 }}"#,
        chunks.join(",")
    );
    tmj(30, 20, &[layer], JSON_TILESET).replace("\"infinite\": false", "\"infinite\": true")
}

/// A grey-scale picture; `levels` row by row, each of `depth` bits.
pub fn picture(width: u32, depth_px: u32, depth: png::BitDepth, levels: &[u16]) -> Vec<u8> {
    colour_picture(width, depth_px, png::ColorType::Grayscale, depth, &raw(width, depth, levels))
}

/// A picture of any colour type, from raw rows.
pub fn colour_picture(
    width: u32,
    height: u32,
    colour: png::ColorType,
    depth: png::BitDepth,
    raw: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(colour);
    encoder.set_depth(depth);
    if colour == png::ColorType::Indexed {
        encoder.set_palette(vec![0, 0, 0, 255, 255, 255]);
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(raw).unwrap();
    writer.finish().unwrap();
    bytes
}

fn raw(width: u32, depth: png::BitDepth, levels: &[u16]) -> Vec<u8> {
    let bits = depth as usize;
    let pack_row = |row: &[u16]| -> Vec<u8> {
        if bits == 16 {
            return row.iter().flat_map(|l| l.to_be_bytes()).collect();
        }
        let mut bytes = vec![0_u8; (row.len() * bits).div_ceil(8)];
        for (i, level) in row.iter().enumerate() {
            bytes[i * bits / 8] |= (*level as u8) << (8 - bits - i * bits % 8);
        }
        bytes
    };
    levels.chunks(width as usize).flat_map(pack_row).collect()
}
