//! Valid files with random damage: the reader never panics and never takes more memory than a file of that length may
//! cost.

use purview_lab::rng::Rng;
use purview_server::maps::{MapProblem, MapSpec};

use crate::allocations::asked;
use crate::make::*;

const MUTATIONS: usize = 6_000;
const SEED: u64 = 0x5eed_0002;

/// The greatest memory of a map: that of the claimed tilesets, and so many bytes for each byte of the files.
const MOST_BYTES: usize = 48 << 20;
const MOST_PER_BYTE: usize = 256;

/// Texts that change the reader's decisions.
const PIECES: &[&str] = &[
    "0",
    "1",
    "-1",
    "4294967295",
    "2147483648",
    "99999999999999999999",
    "1e308",
    "nan",
    "true",
    "null",
    "\"",
    "<",
    ">",
    "/>",
    "</",
    "&amp;",
    "&#0;",
    "<![CDATA[",
    "]]>",
    "<!--",
    "<group>",
    "</layer>",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "csv",
    "base64",
    "zlib",
    "gzip",
    "zstd",
    " width=\"65536\"",
    " infinite=\"1\"",
    " template=\"part\"",
    " source=\"part\"",
    " tilecount=\"100000\"",
    "<chunk x=\"0\" y=\"0\" width=\"1\" height=\"1\">1</chunk>",
    "\u{0}",
    "\u{feff}",
];

fn mutate(random: &mut Rng, good: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=random.below(5) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes.truncate(at.max(1)),
            2 => {
                let piece = PIECES[random.below(PIECES.len())].bytes();
                bytes.splice(at..at, piece);
            }
            3 => {
                let end = (at + random.below(40)).min(bytes.len());
                bytes.drain(at..end.min(bytes.len() - 1).max(at));
            }
            4 => {
                // A part of the file is doubled.
                let end = (at + random.below(200)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            5 => {
                // A digit is replaced.
                if let Some(digit) = bytes[at..].iter().position(u8::is_ascii_digit) {
                    bytes[at + digit] = b'0' + random.below(10) as u8;
                }
            }
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                let end = (at + piece.len()).min(bytes.len());
                bytes.splice(at..end, piece.bytes());
            }
        }
    }
    bytes
}

/// Damages one file again and again. Returns how many of the maps were still valid.
fn run(files: &MemoryFiles, damaged: &str, spec: &MapSpec, (width, depth): (i32, i32)) -> usize {
    let good = &files.0[std::path::Path::new(damaged)];
    files.load(spec, width, depth).unwrap_or_else(|e| panic!("{damaged}: {e}"));
    let mut random = Rng::new(SEED);
    let mut read = 0;
    for n in 0..MUTATIONS {
        let bytes = mutate(&mut random, good);
        let length: usize = bytes.len() + files.0.values().map(Vec::len).sum::<usize>();
        let files = files.clone().and(damaged, bytes.clone());
        let (loaded, asked) = asked(|| files.load(spec, width, depth));
        let text = || String::from_utf8_lossy(&bytes).into_owned();
        match loaded {
            Ok(_) => read += 1,
            Err(e) => {
                let parser = matches!(e.problem, MapProblem::Parser);
                assert!(
                    !parser,
                    "{damaged} {n}: what the parser cannot bear came through: {}",
                    text()
                );
                assert!(!e.to_string().is_empty());
            }
        }
        let most = MOST_BYTES + MOST_PER_BYTE * length;
        assert!(asked <= most, "{damaged} {n}: asked for {asked} bytes: {}", text());
    }
    read
}

const TILES: [u32; 16] = [0, 1, 2, 0x8000_0003, 0, 0, 1, 1, 9, 10, 11, 0, 0, 0, 0, 5];

#[test]
fn damaged_tmx_maps() {
    let door = "<objectgroup id=\"2\" name=\"doors\" color=\"#ff00ff\"><object id=\"1\" name=\"gate\" \
                x=\"16\" y=\"8\" width=\"16\" height=\"8\"/><object id=\"2\" template=\"part\" x=\"0\" \
                y=\"0\"/><object id=\"3\" type=\"x\"><polygon points=\"0,0 1,1\"/></object></objectgroup>";
    let sets = "<tileset firstgid=\"10\" source=\"part.tsx\"/>";
    let mut within = sets.to_owned() + door;
    for packing in PACKINGS {
        within += &layer("blocked", 4, packing, &TILES);
    }
    let files = MemoryFiles::of("a.tmx", tmx(4, 4, &format!("<group name=\"g\">{within}</group>{within}")))
        .and("part", "<template><object name=\"x\" type=\"door\" width=\"16\" height=\"8\"/></template>")
        .and(
            "part.tsx",
            "<tileset name=\"s\" tilewidth=\"1\" tileheight=\"1\" tilecount=\"2\" columns=\"1\"><tile \
             id=\"1\"><properties><property name=\"blocked\" type=\"bool\" value=\"true\"/><property \
             name=\"c\" type=\"class\"><properties><property name=\"l\" type=\"list\"><item \
             value=\"1\"/></property></properties></property></properties></tile><wangsets><wangset \
             name=\"w\" type=\"corner\" tile=\"-1\"><wangcolor name=\"\" color=\"#ff0000\" tile=\"-1\" \
             probability=\"1\"/><wangtile tileid=\"0\" wangid=\"0,1,0,1,0,1,0,1\"/></wangset></wangsets>\
             </tileset>",
        );
    let spec = map("a.tmx");
    for file in ["a.tmx", "part", "part.tsx"] {
        let read = run(&files, file, &spec, (4, 4));
        assert!(read > MUTATIONS / 100, "{file}: only {read} were read");
        assert!(read < MUTATIONS * 9 / 10, "{file}: {read} were read");
    }
}

#[test]
fn damaged_infinite_maps() {
    for packing in [Packing::Csv, Packing::Zlib, Packing::Zstd] {
        let pieces: [Piece<'_>; 2] = [(0, 0, 4, &TILES), (-2, -2, 2, &[0, 0, 0, 0])];
        let files = MemoryFiles::of("a.tmx", infinite_tmx("blocked", packing, &pieces))
            .and("a.tmj", infinite_tmj("blocked", packing, &pieces));
        for file in ["a.tmx", "a.tmj"] {
            let read = run(&files, file, &map(file), (4, 4));
            assert!(read > MUTATIONS / 100, "{file}: only {read} were read");
        }
    }
}

#[test]
fn damaged_tmj_maps() {
    let mut layers: Vec<_> =
        PACKINGS.iter().map(|packing| json_layer("blocked", 4, *packing, &TILES)).collect();
    layers.push(
        r#"{ "type": "objectgroup", "name": "doors", "objects": [
            { "id": 1, "name": "gate", "x": 16, "y": 8, "width": 16, "height": 8 },
            { "id": 2, "template": "part.tj", "x": 0, "y": 0 }] }"#
            .into(),
    );
    let tileset = r#"{ "name": "s", "tiles": [{ "id": 1, "properties":
        [{ "name": "blocked", "value": true }, { "name": "c", "value": {"l": [1, 2]} }] }] }"#;
    let sets = format!(r#"{JSON_TILESET}, {{ "firstgid": 10, "source": "part.tsj" }}"#);
    let files = MemoryFiles::of("a.tmj", tmj(4, 4, &layers, &sets)).and("part.tsj", tileset).and(
        "part.tj",
        r#"{ "object": { "name": "x", "type": "door", "width": 16, "height": 8 } }"#,
    );
    for file in ["a.tmj", "part.tsj", "part.tj"] {
        let read = run(&files, file, &map("a.tmj"), (4, 4));
        assert!(read > MUTATIONS / 100, "{file}: only {read} were read");
    }
}

#[test]
fn damaged_pictures() {
    let levels: Vec<u16> = (0..16 * 9).map(|i| i * 17 % 256).collect();
    for depth in [png::BitDepth::One, png::BitDepth::Eight, png::BitDepth::Sixteen] {
        let levels: Vec<u16> =
            levels.iter().map(|l| l >> (8_u32.saturating_sub(depth as u32))).collect();
        let files = MemoryFiles::of("a.png", picture(16, 9, depth, &levels));
        let spec = MapSpec { height: Some("a.png".into()), ..map("a.png") };
        run(&files, "a.png", &spec, (16, 9));
    }
}
