//! Grey-scale pictures: their content, and which are refused.

use png::{BitDepth, ColorType};
use purview::scene::terrain::Tile;
use purview_server::maps::{MapSpec, Shade};

use crate::make::*;

const DEPTHS: [(BitDepth, u16); 5] = [
    (BitDepth::One, 1),
    (BitDepth::Two, 3),
    (BitDepth::Four, 15),
    (BitDepth::Eight, 255),
    (BitDepth::Sixteen, 65_535),
];

#[test]
fn dark_pixels_are_blocked_at_every_depth() {
    for (depth, white) in DEPTHS {
        // Nine wide, so that below eight bits no row ends with a byte.
        let levels: Vec<u16> = (0..27).map(|i| if i % 4 == 1 { 0 } else { white }).collect();
        let files = MemoryFiles::of("a.png", picture(9, 3, depth, &levels));
        let terrain = files.load(&map("a.png"), 9, 3).unwrap();
        assert_eq!(rows(&terrain), [".#...#...", "#...#...#", "...#...#."], "{depth:?}");
        let light = MapSpec { blocked: Shade::Light, ..map("a.png") };
        let terrain = files.load(&light, 9, 3).unwrap();
        assert_eq!(rows(&terrain)[0], "#.###.###", "{depth:?}");
    }
}

#[test]
fn a_threshold_separates_dark_from_light_equally_at_8_and_16_bits() {
    let eight = picture(4, 1, BitDepth::Eight, &[0, 99, 100, 255]);
    let sixteen = picture(4, 1, BitDepth::Sixteen, &[0, 25_699, 25_700, 65_535]);
    let files = MemoryFiles::of("8.png", eight).and("16.png", sixteen);
    for file in ["8.png", "16.png"] {
        let spec = MapSpec { threshold: 100, ..map(file) };
        assert_eq!(rows(&files.load(&spec, 4, 1).unwrap()), ["##.."], "{file}");
    }
}

#[test]
fn a_grey_level_is_a_height_step() {
    let eight = picture(3, 2, BitDepth::Eight, &[0, 1, 255, 7, 8, 9]);
    let sixteen = picture(3, 2, BitDepth::Sixteen, &[0, 1, 65_535, 700, 800, 900]);
    let one = picture(3, 2, BitDepth::One, &[0, 1, 1, 0, 0, 1]);
    let files = MemoryFiles::of("8.png", eight).and("16.png", sixteen).and("1.png", one);
    let heights = |file: &str, step, zero| {
        let spec = MapSpec {
            height: Some(file.into()),
            height_step_cm: step,
            height_zero: zero,
            ..MapSpec::default()
        };
        let terrain = files.load(&spec, 3, 2).unwrap();
        assert_eq!(rows(&terrain), ["...", "..."], "heights block nothing");
        (0..6).map(|i| terrain.height_cm(Tile { x: i % 3, z: i / 3 })).collect::<Vec<_>>()
    };
    assert_eq!(heights("8.png", 10, 0), [0, 10, 2_550, 70, 80, 90]);
    assert_eq!(heights("8.png", 25, 8), [-200, -175, 6_175, -25, 0, 25]);
    assert_eq!(heights("16.png", 1, 800), [-800, -799, 64_735, -100, 0, 100]);
    assert_eq!(heights("1.png", 150, 0), [0, 150, 150, 0, 0, 150]);
}

#[test]
fn a_height_picture_replaces_the_heights_of_a_tiled_map() {
    let raised = "<properties><property name=\"height\" type=\"int\" value=\"9\"/></properties>";
    let xml = tmx(2, 1, &layer_with("blocked", 2, Packing::Csv, &[0, 1], raised));
    let files = MemoryFiles::of("a.tmx", xml).and("h.png", picture(2, 1, BitDepth::Eight, &[3, 4]));
    let spec = MapSpec { height: Some("h.png".into()), ..map("a.tmx") };
    let terrain = files.load(&spec, 2, 1).unwrap();
    assert_eq!(rows(&terrain), [".#"]);
    assert_eq!([0, 1].map(|x| terrain.height_cm(Tile { x, z: 0 })), [30, 40]);
}

#[test]
fn pictures_that_are_not_grey_are_errors_that_name_their_form() {
    let all = [
        (ColorType::Rgb, 3, "colour (RGB)"),
        (ColorType::Rgba, 4, "colour with transparency (RGBA)"),
        (ColorType::GrayscaleAlpha, 2, "grey-scale with transparency"),
        (ColorType::Indexed, 1, "indexed colour"),
    ];
    for (colour, samples, name) in all {
        let bytes = colour_picture(2, 2, colour, BitDepth::Eight, &vec![1; 4 * samples]);
        assert_eq!(
            MemoryFiles::of("a.png", bytes).wrong(&map("a.png"), 2, 2),
            format!(
                "a.png: is a PNG in {name}; it must be grey-scale without transparency, of 1 to 16 \
                 bits"
            )
        );
    }
}

#[test]
fn a_picture_of_another_size_is_an_error_that_names_both_sizes() {
    let files = MemoryFiles::of("a.png", picture(3, 2, BitDepth::Eight, &[0; 6]));
    assert_eq!(
        files.wrong(&map("a.png"), 3, 3),
        "a.png: is 3 x 2 tiles; the scene is 3 x 3 tiles of 100 cm"
    );
    let spec = MapSpec { height: Some("a.png".into()), ..MapSpec::default() };
    let told = files.wrong(&spec, 2, 2);
    assert_eq!(told, "a.png: is 3 x 2 tiles; the scene is 2 x 2 tiles of 100 cm");
}

#[test]
fn a_file_that_is_no_picture_is_an_error() {
    let good = picture(4, 4, BitDepth::Eight, &[7; 16]);
    for cut in [0, 7, 20, good.len() - 20] {
        let told = MemoryFiles::of("a.png", &good[..cut]).wrong(&map("a.png"), 4, 4);
        assert!(told.starts_with("a.png: is not a readable PNG: "), "{cut}: {told}");
    }
    let mut damaged = good.clone();
    // A bit within the data of the picture, which its checksum detects.
    let at = good.windows(4).position(|w| w == b"IDAT").unwrap() + 8;
    damaged[at] ^= 1;
    let told = MemoryFiles::of("a.png", damaged).wrong(&map("a.png"), 4, 4);
    assert!(told.starts_with("a.png: is not a readable PNG: "), "{told}");
    let told = MemoryFiles::of("a.png", "<map/>").wrong(&map("a.png"), 4, 4);
    assert!(told.starts_with("a.png: is not a readable PNG: "), "{told}");
}

#[test]
fn animated_pictures_are_errors() {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 2, 2);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_animated(2, 0).unwrap();
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[0; 4]).unwrap();
    writer.write_image_data(&[255; 4]).unwrap();
    writer.finish().unwrap();
    assert_eq!(
        MemoryFiles::of("a.png", bytes).wrong(&map("a.png"), 2, 2),
        "a.png: is an animated PNG; it must be a single picture"
    );
}

#[test]
fn heights_beyond_the_world_are_errors() {
    let files = MemoryFiles::of("a.png", picture(1, 1, BitDepth::Eight, &[0]));
    let spec = |step, zero| MapSpec {
        height: Some("a.png".into()),
        height_step_cm: step,
        height_zero: zero,
        ..MapSpec::default()
    };
    for (step, zero) in [(100_000, 0), (100_000, 65_535), (0, 0), (-5, 3)] {
        let told = files.wrong(&spec(step, zero), 1, 1);
        assert!(told.contains("must lie within 1000 km of 0, and a step must be at least 1 cm"));
    }
}
