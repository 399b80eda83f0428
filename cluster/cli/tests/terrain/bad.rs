//! Errors of maps: each names the legal content, and no memory is allocated before the check.

use std::io::Read;
use std::path::Path;

use purview::scene::SceneSpec;
use purview_server::maps::{MapProblem, MapSpec, load, load_with};

use crate::allocations::asked;
use crate::make::*;

/// The error of a map of 4 x 4 tiles.
fn xml(text: impl Into<Vec<u8>>) -> String {
    MemoryFiles::of("a.tmx", text).wrong(&map("a.tmx"), 4, 4)
}

fn json(text: impl Into<Vec<u8>>) -> String {
    MemoryFiles::of("a.tmj", text).wrong(&map("a.tmj"), 4, 4)
}

/// A map in both forms is wrong in the same way.
fn assert_wrong(text: String, json_text: String, told: &str) {
    assert_eq!(xml(text), format!("a.tmx: {told}"));
    assert_eq!(json(json_text), format!("a.tmj: {told}"));
}

fn blocked(packing: Packing, tiles: &[u32]) -> String {
    layer("blocked", 4, packing, tiles)
}

/// The valid map from which the invalid ones are made.
fn good() -> String {
    tmx(4, 4, &blocked(Packing::Csv, &[1; 16]))
}

fn good_json() -> String {
    tmj(4, 4, &[json_layer("blocked", 4, Packing::Csv, &[1; 16])], JSON_TILESET)
}

#[test]
fn the_valid_maps_are_valid() {
    let files = MemoryFiles::of("a.tmx", good()).and("a.tmj", good_json());
    assert_eq!(rows(&files.load(&map("a.tmx"), 4, 4).unwrap()), ["####"; 4]);
    assert_eq!(rows(&files.load(&map("a.tmj"), 4, 4).unwrap()), ["####"; 4]);
}

#[test]
fn missing_files_and_files_of_unknown_form_are_errors() {
    let told = MemoryFiles::default().wrong(&map("keep.tmx"), 4, 4);
    assert_eq!(told, "keep.tmx: cannot be read: entity not found");
    assert_eq!(
        MemoryFiles::default().wrong(&map("keep.gif"), 4, 4),
        "keep.gif: has an unknown format; the name of a map ends in .tmx, .tmj or .json (Tiled) \
         or .png"
    );
    let error = load(&map("/"), &SceneSpec::default()).unwrap_err();
    assert!(matches!(error.problem, MapProblem::UnknownForm), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("folder.tmx");
    std::fs::create_dir(&named).unwrap();
    let spec = MapSpec { file: Some(named), ..MapSpec::default() };
    let error = load(&spec, &SceneSpec::default()).unwrap_err();
    assert!(error.to_string().ends_with("cannot be read: it is no file"), "{error}");
}

#[test]
fn an_endless_file_is_not_read_to_its_end() {
    let endless = |_: &Path| Ok(Box::new(std::io::repeat(b' ')) as Box<dyn Read>);
    for file in ["a.tmx", "a.tmj", "a.png"] {
        let error = load_with(&map(file), &SceneSpec::default(), &endless).unwrap_err();
        assert!(matches!(error.problem, MapProblem::TooLarge), "{error}");
    }
}

#[test]
fn tiles_that_do_not_divide_the_scene_and_too_many_tiles_are_errors() {
    let spec = MapSpec { tile_cm: 300, ..map("a.tmx") };
    let scene = SceneSpec { width_cm: 1_000, depth_cm: 900, ..SceneSpec::default() };
    let nothing = |_: &Path| Ok(Box::new(std::io::empty()) as Box<dyn Read>);
    assert_eq!(
        load_with(&spec, &scene, &nothing).unwrap_err().to_string(),
        "a.tmx: a scene of 1000 cm x 900 cm is not a whole number of tiles of 300 cm; choose a tile that \
         divides both"
    );
    let spec = MapSpec { tile_cm: 1, ..map("a.png") };
    let (told, bytes) =
        asked(|| load_with(&spec, &SceneSpec::default(), &nothing).unwrap_err().to_string());
    assert_eq!(
        told,
        "a.png: 204800 x 204800 tiles: a map has at least one tile and at most 67108864"
    );
    assert!(bytes < 10_000, "{bytes}");
}

#[test]
fn a_map_of_another_size_than_the_scene_is_an_error() {
    let files = MemoryFiles::of("a.tmx", good()).and("a.tmj", good_json());
    for file in ["a.tmx", "a.tmj"] {
        assert_eq!(
            files.wrong(&map(file), 4, 5),
            format!("{file}: is 4 x 4 tiles; the scene is 4 x 5 tiles of 100 cm")
        );
    }
    let huge = good().replace("width=\"4\"", "width=\"4000000000\"");
    assert_eq!(xml(huge), "a.tmx: is 4000000000 x 4 tiles; the scene is 4 x 4 tiles of 100 cm");
    let wide = layer("blocked", 8, Packing::Csv, &[1; 16]);
    let json_wide = json_layer("blocked", 8, Packing::Csv, &[1; 16]);
    let told = "layer \"blocked\" is 8 x 2 tiles and its map 4 x 4";
    assert_wrong(tmx(4, 4, &wide), tmj(4, 4, &[json_wide], ""), told);
}

#[test]
fn truncated_files_and_files_that_are_no_maps_are_errors() {
    let (text, json_text) = (good(), good_json());
    for cut in [10, text.len() / 3, text.len() / 2, text.len() - 8] {
        let told = xml(&text.as_bytes()[..cut]);
        let cut_off = told.contains("the file is cut off")
            || told.starts_with("a.tmx: is not a readable Tiled map: ");
        assert!(cut_off, "{cut}: {told}");
    }
    assert_eq!(
        xml(&text.as_bytes()[..text.len() - 8]),
        "a.tmx: ends within <map>: the file is cut off"
    );
    for cut in [0, 10, json_text.len() / 2, json_text.len() - 2] {
        let told = json(&json_text.as_bytes()[..cut]);
        assert_eq!(told, "a.tmj: ends within its JSON: the file is cut off", "{cut}");
    }
    for text in ["", "hello", "<map>", "<tileset/>", "{}", "\u{0}\u{1}\u{2}"] {
        assert!(xml(text).starts_with("a.tmx: "), "{text}");
    }
    assert!(json("[]").starts_with("a.tmj: is not a readable Tiled map: "));
    assert!(json("{}").starts_with("a.tmj: is not a readable Tiled map: missing field"));
    let tileset = good_json().replace("\"type\": \"map\"", "\"type\": \"tileset\"");
    assert_eq!(json(tileset), "a.tmj: is a Tiled tileset; it must be a map");
}

#[test]
fn maps_without_square_tiles_are_errors() {
    let hexagonal = |text: String| text.replace("orthogonal", "hexagonal");
    let told = "is hexagonal; a map must be orthogonal or isometric";
    assert_wrong(hexagonal(good()), hexagonal(good_json()), told);
}

#[test]
fn missing_layers_and_empty_layers_are_errors() {
    let ground = layer("ground", 4, Packing::Csv, &[1; 16]);
    let json_ground = json_layer("ground", 4, Packing::Csv, &[1; 16]);
    let files =
        MemoryFiles::of("a.tmx", tmx(4, 4, &ground)).and("a.tmj", tmj(4, 4, &[json_ground], ""));
    for file in ["a.tmx", "a.tmj"] {
        let named = MapSpec { layer: Some("walls".into()), ..map(file) };
        assert_eq!(
            files.wrong(&named, 4, 4),
            format!("{file}: has no tile layer \"walls\"; its tile layers are [\"ground\"]")
        );
        assert_eq!(
            files.wrong(&map(file), 4, 4),
            format!(
                "{file}: is empty: it has no tile layer \"blocked\" (`layer` names another), no \
                 property `blocked` or `height` of a tile or a layer, and no door; its tile layers are \
                 [\"ground\"]"
            )
        );
    }
}

#[test]
fn layers_with_too_few_or_too_many_tiles_are_errors() {
    for packing in PACKINGS {
        for (tiles, found) in [(15, Some(15)), (0, None), (17, None)] {
            // An empty text is one number that is invalid.
            if packing == Packing::Csv && tiles == 0 {
                continue;
            }
            let short = blocked(packing, &vec![1; tiles])
                .replace(&format!("height=\"{}\"", tiles / 4), "height=\"4\"");
            let told = match (packing, tiles) {
                (Packing::Csv, _) => format!("{tiles} tiles where there must be 16"),
                (_, 17) => "more tiles than the 16 that there must be, or a part of one".into(),
                _ => format!("{} tiles where there must be 16", found.unwrap_or(0)),
            };
            let json_short = json_layer("blocked", 4, packing, &vec![1; tiles])
                .replace(&format!("\"height\": {}", tiles / 4), "\"height\": 4");
            let told = format!("layer \"blocked\": {told}");
            assert_wrong(tmx(4, 4, &short), tmj(4, 4, &[json_short], ""), &told);
        }
    }
    let none = " <layer id=\"1\" name=\"blocked\" width=\"4\" height=\"4\"><data encoding=\"csv\"/></layer>";
    assert_eq!(xml(tmx(4, 4, none)), "a.tmx: layer \"blocked\": 0 tiles where there must be 16");
}

#[test]
fn unknown_encodings_of_layers_are_errors() {
    let elements = blocked(Packing::Csv, &[1; 16]).replace(" encoding=\"csv\"", "");
    assert_eq!(
        xml(tmx(4, 4, &elements)),
        "a.tmx: layer \"blocked\": its tiles are in encoding \"\" with compression \"\"; it must be \
         csv, or base64 with no compression, zlib, gzip or zstd (Map > Map Properties > Tile Layer \
         Format)"
    );
    let odd = json_layer("blocked", 4, Packing::Zlib, &[1; 16]).replace("zlib", "lzma");
    assert!(
        json(tmj(4, 4, &[odd], "")).contains("in encoding \"base64\" with compression \"lzma\"")
    );
    for packing in [Packing::Zlib, Packing::Gzip, Packing::Zstd] {
        let other = Packing::Base64.base64(&[0x1234_5678; 16]);
        let right = packing.base64(&[1; 16]);
        let told = xml(tmx(4, 4, &blocked(packing, &[1; 16]).replace(&right, &other)));
        assert!(
            told.starts_with("a.tmx: layer \"blocked\": its tiles cannot be unpacked: "),
            "{told}"
        );
    }
    let told = xml(tmx(4, 4, &blocked(Packing::Base64, &[1; 16]).replace("AQAAAAEA", "AQ*AAAEA")));
    assert!(told.starts_with("a.tmx: layer \"blocked\": its tiles are not base64: "), "{told}");
}

#[test]
fn properties_of_a_wrong_type_are_errors() {
    let with = |name: &str, kind: &str, value: &str| {
        let text = format!(
            "<properties><property name=\"{name}\" type=\"{kind}\" value=\"{value}\"/></properties>"
        );
        xml(tmx(4, 4, &layer_with("walls", 4, Packing::Csv, &[1; 16], &text)))
    };
    assert_eq!(
        with("blocked", "string", "true"),
        "a.tmx: layer \"walls\": property \"blocked\" is the text \"true\"; it must be a bool"
    );
    let steps = "it must be a whole number of steps (`height_step`) from -32767 to 32767";
    for (kind, value, found) in [
        ("float", "1.5", "the number 1.5"),
        ("int", "40000", "the number 40000"),
        ("float", "nan", "the number NaN"),
        ("color", "#ff00ff", "a colour"),
    ] {
        let told = with("height", kind, value);
        assert_eq!(
            told,
            format!("a.tmx: layer \"walls\": property \"height\" is {found}; {steps}")
        );
    }
    let property = r#""properties": [{ "name": "blocked", "value": {"a": [1, {"b": 2}]} }],"#;
    let walls = json_layer("walls", 4, Packing::Csv, &[1; 16]);
    let walls = walls.replacen('{', &format!("{{ {property}"), 1);
    assert_eq!(
        json(tmj(4, 4, &[walls], "")),
        "a.tmj: layer \"walls\": property \"blocked\" is a class; it must be a bool"
    );
}

#[test]
fn invalid_doors_are_errors() {
    let with = |object: &str| {
        let object = format!("<object id=\"9\" {object}</object>");
        let group = format!("<objectgroup id=\"2\" name=\"doors\">{object}</objectgroup>");
        let files = MemoryFiles::of("a.tmx", tmx(4, 4, &group));
        files.wrong(&map("a.tmx"), 4, 4)
    };
    let place = "x=\"0\" y=\"0\" width=\"16\" height=\"8\"";
    for (object, problem) in [
        (
            format!("{place}>"),
            "door \"\" (object 9) has no name; give it one by which it is opened and closed",
        ),
        (
            format!("name=\"a\" gid=\"1\" {place}>"),
            "door \"a\" (object 9) is a tile; draw a rectangle over the tiles that it opens",
        ),
        (format!("name=\"a\" {place}><ellipse/>"), "door \"a\" (object 9) is no rectangle"),
        (format!("name=\"a\" {place}><point/>"), "door \"a\" (object 9) is no rectangle"),
        (
            format!("name=\"a\" rotation=\"45\" {place}>"),
            "door \"a\" (object 9) is turned; draw a rectangle along the tiles",
        ),
        (
            "name=\"a\" x=\"1\" y=\"1\" width=\"4\" height=\"2\">".into(),
            "door \"a\" (object 9) covers the middle of no tile",
        ),
        (
            "name=\"a\" x=\"nan\" y=\"1\" width=\"inf\" height=\"2\">".into(),
            "door \"a\" (object 9) covers the middle of no tile",
        ),
        (
            "name=\"a\" x=\"0\" y=\"0\" width=\"1e9\" height=\"1e9\">".into(),
            "door \"a\" (object 9) covers the middle of no tile",
        ),
        (
            "name=\"a\" x=\"60\" y=\"0\" width=\"16\" height=\"8\">".into(),
            "tile (4, 0) is outside the map, whose tiles are (0, 0) to (3, 3)",
        ),
    ] {
        assert_eq!(with(&object), format!("a.tmx: {problem}"));
    }
    let two = format!("<object id=\"1\" name=\"a\" {place}/><object id=\"2\" name=\"b\" {place}/>");
    let group = format!("<objectgroup id=\"2\" name=\"doors\">{two}</objectgroup>");
    assert_eq!(
        xml(tmx(4, 4, &group)),
        "a.tmx: tile (0, 0) belongs to door \"a\" and to door \"b\"; a tile may belong to one"
    );
}

#[test]
fn files_that_a_map_names_are_checked() {
    let set = "<tileset firstgid=\"10\" source=\"town.tsx\"/>\n";
    let text = tmx(4, 4, &(set.to_owned() + &blocked(Packing::Csv, &[1; 16])));
    assert_eq!(xml(text.clone()), "town.tsx: cannot be read: entity not found");
    let files = MemoryFiles::of("a.tmx", text).and("town.tsx", "{ \"name\": \"town\" }");
    assert_eq!(
        files.wrong(&map("a.tmx"), 4, 4),
        "town.tsx: is not a readable Tiled map: there is no <tileset> at line 1 column 18"
    );
    let set = r#"{ "firstgid": 10, "source": "town.tsj" }"#;
    let layer = json_layer("blocked", 4, Packing::Csv, &[1; 16]);
    let text = tmj(4, 4, &[layer], set);
    assert_eq!(json(text.clone()), "town.tsj: cannot be read: entity not found");
    let files = MemoryFiles::of("a.tmj", text).and("town.tsj", "<tileset/>");
    let told = files.wrong(&map("a.tmj"), 4, 4);
    assert!(told.starts_with("town.tsj: is not a readable Tiled map: "), "{told}");

    let object =
        r#"{ "type": "objectgroup", "name": "doors", "objects": [{ "template": "gate.tx" }] }"#;
    let files =
        MemoryFiles::of("a.tmj", tmj(4, 4, &[object.into()], "")).and("gate.tx", "<template/>");
    assert_eq!(
        files.wrong(&map("a.tmj"), 4, 4),
        "gate.tx: is not a readable Tiled map: there is no <object> at line 1 column 11"
    );
}

#[test]
fn templates_that_refer_to_each_other_end() {
    let object =
        "<objectgroup id=\"2\" name=\"doors\"><object id=\"1\" template=\"a.tx\"/></objectgroup>";
    let round = "<template><object template=\"a.tx\"/></template>";
    let files = MemoryFiles::of("a.tmx", tmx(4, 4, object)).and("a.tx", round);
    let told = "a template is made from another one; only objects of the map itself may be";
    assert_eq!(files.wrong(&map("a.tmx"), 4, 4), format!("a.tx: {told}"));
    let object =
        r#"{ "type": "objectgroup", "name": "doors", "objects": [{ "template": "a.tj" }] }"#;
    let files = MemoryFiles::of("a.tmj", tmj(4, 4, &[object.into()], ""))
        .and("a.tj", r#"{ "object": { "template": "a.tj" } }"#);
    assert_eq!(files.wrong(&map("a.tmj"), 4, 4), format!("a.tj: {told}"));
    // The shape of a tile is not looked at, nor is the template of which it is made.
    let shape = "<tile id=\"0\"><objectgroup><object template=\"a.tx\"/></objectgroup></tile>";
    let set = format!(
        "<tileset name=\"s\" tilewidth=\"1\" tileheight=\"1\" tilecount=\"1\" columns=\"1\">{shape}</tileset>"
    );
    let set_of = "<tileset firstgid=\"10\" source=\"s.tsx\"/>";
    let text = tmx(4, 4, &(set_of.to_owned() + &blocked(Packing::Csv, &[1; 16])));
    let files = MemoryFiles::of("a.tmx", text).and("s.tsx", set);
    assert_eq!(rows(&files.load(&map("a.tmx"), 4, 4).unwrap()), ["####"; 4]);
}

#[test]
fn infinite_maps_beyond_the_scene_are_errors() {
    let pieces: [Piece<'_>; 1] = [(2, 3, 2, &[0, 1, 1, 1])];
    let files = MemoryFiles::of("a.tmx", infinite_tmx("blocked", Packing::Csv, &pieces))
        .and("a.tmj", infinite_tmj("blocked", Packing::Csv, &pieces));
    for file in ["a.tmx", "a.tmj"] {
        assert_eq!(
            files.wrong(&map(file), 4, 4),
            format!(
                "{file}: layer \"blocked\" has a tile at (2, 4); the scene's are (0, 0) to (3, 3): move \
                 the map (Map > Offset Map) or change the scene's size"
            )
        );
    }
    for (x, width) in [(i32::MAX, 1), (i32::MIN, 1), (0, 5_000)] {
        let tiles = vec![0; width as usize];
        let pieces: [Piece<'_>; 1] = [(x, 0, width, &tiles)];
        let told = format!("layer \"blocked\": a chunk at ({x}, 0) of {width} x 1 tiles is none");
        let maps = [infinite_tmx, infinite_tmj].map(|map| map("blocked", Packing::Csv, &pieces));
        let [text, json_text] = maps;
        assert_wrong(text, json_text, &told);
    }
}

#[test]
fn decompression_bombs_are_recognised_before_they_are_unpacked() {
    let megabytes = vec![0_u8; 64 << 20];
    for packing in [Packing::Zlib, Packing::Gzip, Packing::Zstd] {
        use base64::Engine;
        let bomb = base64::engine::general_purpose::STANDARD.encode(packing.packed(&megabytes));
        let right = packing.base64(&[1; 16]);
        let bad = tmx(4, 4, &blocked(packing, &[1; 16]).replace(&right, &bomb));
        let bad_json = json_layer("blocked", 4, packing, &[1; 16]).replace(&right, &bomb);
        let bad_json = tmj(4, 4, &[bad_json], "");
        let most = 1_000_000 + 12 * bad.len();
        for (told, bytes) in [asked(|| xml(bad)), asked(|| json(bad_json))] {
            let all =
                "layer \"blocked\": more tiles than the 16 that there must be, or a part of one";
            assert!(told.ends_with(all) || told.contains("cannot be unpacked"), "{told}");
            assert!(bytes < most, "{packing:?}: asked for {bytes}, at most {most}");
        }
    }
    // A picture that claims more than it contains.
    let small = picture(4, 4, png::BitDepth::Eight, &[7; 16]);
    let (told, bytes) =
        asked(|| MemoryFiles::of("a.png", small).wrong(&map("a.png"), 8_000, 8_000));
    assert!(told.starts_with("a.png: is 4 x 4 tiles"), "{told}");
    assert!(bytes < 9 << 20, "asked for {bytes}: the terrain has 8 MB");
}

#[test]
fn a_false_claim_of_size_takes_no_memory() {
    let set = |count: &str| {
        format!(
            "<tileset firstgid=\"1\" name=\"s\" tilewidth=\"1\" tileheight=\"1\" tilecount=\"{count}\" \
             columns=\"1\"/>"
        )
    };
    let (told, bytes) = asked(|| xml(tmx(4, 4, &set("4294967295"))));
    assert!(told.starts_with("a.tmx: is empty: "), "{told}");
    assert!(bytes < 100_000, "{bytes}");
    let deep = "<group>".repeat(100_000);
    assert_eq!(
        xml(tmx(4, 4, &deep)),
        "a.tmx: has more than 32 elements within each other, which is the most that is read"
    );
    let deep = r#"{"type":"group","name":"","layers":["#.repeat(100_000);
    assert!(json(tmj(4, 4, &[deep], "")).contains("recursion limit exceeded"));
    let many: String = (0..2_000).map(|n| format!(" a{n}=\"\"")).collect();
    assert_eq!(
        xml(good().replace("<data", &format!("<data{many}"))),
        "a.tmx: has more than 64 attributes of one element, which is the most that is read"
    );
    // Single tiles far from each other take the memory of their text.
    let pieces: Vec<Piece<'_>> = (0..70_000).map(|n| (n * 16, 0, 1, &[1_u32][..])).collect();
    let text = infinite_tmx("other", Packing::Csv, &pieces);
    let most = 40 * text.len();
    let (told, bytes) = asked(|| xml(text));
    assert!(told.starts_with("a.tmx: is empty: "), "{told}");
    assert!(bytes < most, "asked for {bytes}, at most {most}");
    // Chunks that claim more tiles than are read, and have none.
    let chunk = "<chunk x=\"0\" y=\"0\" width=\"4096\" height=\"4096\"></chunk>";
    let infinite = infinite_tmx("other", Packing::Csv, &[]);
    let (told, bytes) = asked(|| xml(infinite.replace("</data>", &format!("{chunk}</data>"))));
    assert_eq!(told, "a.tmx: layer \"other\": 0 tiles where there must be 16777216");
    assert!(bytes < 100_000, "{bytes}");
    let two = chunk.replace("4096\"></", "4097\"></");
    let (told, bytes) = asked(|| xml(infinite.replace("</data>", &format!("{two}</data>"))));
    assert!(told.ends_with("a chunk at (0, 0) of 4096 x 4097 tiles is none"), "{told}");
    assert!(bytes < 100_000, "{bytes}");
}
