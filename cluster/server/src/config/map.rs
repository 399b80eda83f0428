//! The `[scene.map]` sections: from keys with units to a [`MapSpec`].

use std::path::Path;

use purview::scene::SceneSpec;

use super::Origin;
use super::error::ConfigError;
use super::keys::{self, Key};
use super::read::Section;
use super::tree::Item;
use crate::maps::{DoorSpec, MapError, MapSpec, Shade};

/// Reads the map section of a scene; `None` if there is none. Opens no file.
pub(super) fn read(scene: &mut Section<'_>, spec: &SceneSpec, folder: &Path) -> Option<MapSpec> {
    let said = scene.says(&keys::MAP);
    let mut s = scene.section("map");
    if !said {
        scene.close(s);
        return None;
    }
    let d = MapSpec::default();
    let layer = s.text(&keys::MAP_LAYER, "");
    let map = MapSpec {
        tile_cm: s.quantity(&keys::TILE, d.tile_cm.into()) as i32,
        file: s.path(&keys::FILE, folder),
        layer: (!layer.is_empty()).then_some(layer),
        threshold: s.count(&keys::THRESHOLD, d.threshold.into()) as u8,
        blocked: [Shade::Dark, Shade::Light][s.choice(&keys::BLOCKED, 0)],
        height: s.path(&keys::HEIGHT, folder),
        height_step_cm: s.quantity(&keys::HEIGHT_STEP, d.height_step_cm.into()) as i32,
        height_zero: s.count(&keys::HEIGHT_ZERO, d.height_zero.into()) as u16,
        doors: doors(&mut s),
    };
    check(&mut s, &map, scene, spec);
    scene.close(s);
    Some(map)
}

fn doors(s: &mut Section<'_>) -> Vec<DoorSpec> {
    let mut doors = Vec::new();
    for mut entry in s.list("door").unwrap_or_default() {
        let name = entry.text(&keys::DOOR_NAME, "");
        let open = entry.flag(&keys::OPEN, false);
        let tiles = tiles(&mut entry);
        if name.is_empty() && !entry.is_wrong("name") {
            missing(&mut entry, &keys::DOOR_NAME);
        }
        match tiles {
            Some(tiles) => doors.push(DoorSpec { name, tiles, open }),
            None if entry.is_wrong("tiles") => {}
            None => missing(&mut entry, &keys::TILES),
        }
        s.close(entry);
    }
    doors
}

fn missing(entry: &mut Section<'_>, key: &Key) {
    let problem = ConfigError {
        key: entry.path_of(key.name),
        found: None,
        rule: format!("is missing: write {}", key.form.rule()),
        origin: entry.origin_of(key.name),
    };
    entry.problems.push(problem);
}

fn tiles(entry: &mut Section<'_>) -> Option<[i32; 4]> {
    let node = entry.get(&keys::TILES)?;
    if let Item::Array(list) = &node.item {
        let whole = |n: &Item| match n {
            Item::Integer(n) => i32::try_from(*n).ok(),
            _ => None,
        };
        let numbers: Option<Vec<i32>> = list.iter().map(|n| whole(&n.item)).collect();
        if let Some([x, z, width, depth]) = numbers.as_deref()
            && *x >= 0
            && *z >= 0
            && *width >= 1
            && *depth >= 1
        {
            return Some([*x, *z, *width, *depth]);
        }
    }
    let rule = format!("must be {}: west and north edge, width and depth", keys::TILES.form.rule());
    entry.wrong(keys::TILES.name, node, rule);
    None
}

/// Checks what can be checked before a file is read.
fn check(s: &mut Section<'_>, map: &MapSpec, scene: &Section<'_>, spec: &SceneSpec) {
    let is_tiled = map.file.is_some() && !map.is_picture();
    let only = [
        (&keys::MAP_LAYER, is_tiled, "a Tiled map as `file`"),
        (&keys::THRESHOLD, map.is_picture(), "a picture (.png) as `file`"),
        (&keys::BLOCKED, map.is_picture(), "a picture (.png) as `file`"),
        (&keys::HEIGHT_ZERO, map.height.is_some(), "a picture as `height`"),
    ];
    for (key, fits, with) in only {
        if let (false, Some(node)) = (fits, s.get(key)) {
            s.conflict(key.name, node, format!("has an effect only with {with}"));
        }
    }
    let nothing = map.file.is_none() && map.height.is_none() && map.doors.is_empty();
    if nothing && s.problems.is_empty() {
        let problem = ConfigError {
            key: s.path.clone(),
            found: None,
            rule: "is empty: set a `file`, a picture as `height`, or a `door`".into(),
            origin: scene.origin_of("map"),
        };
        s.problems.push(problem);
    }
    let sizes_wrong = ["width", "depth", "land"].iter().any(|key| scene.is_wrong(key));
    if let (false, false, Err(problem)) = (sizes_wrong, s.is_wrong("tile"), map.check(spec)) {
        let problem = ConfigError {
            key: s.path_of("tile"),
            found: Some(format!("{:?}", super::units::Quantity::Length.text(map.tile_cm.into()))),
            rule: problem.to_string(),
            origin: s.origin_of("tile"),
        };
        s.problems.push(problem);
    }
}

/// The error of the map of scene `i` after its files were read.
pub(super) fn wrong(i: usize, map: &MapSpec, error: &MapError) -> ConfigError {
    let of_height =
        map.height.as_ref() == Some(&error.file) && map.file.as_ref() != map.height.as_ref();
    let (key, named) = match of_height || map.file.is_none() {
        true => ("height", &map.height),
        false => ("file", &map.file),
    };
    // The message already names the map's own file beside the key.
    let rule = match named.as_ref() == Some(&error.file) {
        true => error.problem.to_string(),
        false => error.to_string(),
    };
    ConfigError {
        key: format!("scene.{i}.map.{key}"),
        found: named.as_ref().map(|file| format!("{:?}", file.display().to_string())),
        rule,
        origin: Origin::Default,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// The error message of a map of the default scene, one problem per line.
    fn told(keys: &str) -> String {
        Config::parse(&format!("[[scene]]\n[scene.map]\n{keys}")).unwrap_err().to_string()
    }

    #[test]
    fn a_map_with_every_key_is_read_and_printed_back() {
        let text = r#"
            [[scene]]
            name = "keep"
            [scene.map]
            tile = "2m"
            file = "/maps/keep.tmj"
            layer = "walls"
            height = "/maps/keep.png"
            height_step = "25cm"
            height_zero = 128
            [[scene.map.door]]
            name = "bridge"
            tiles = [0, 0, 1, 3]
            open = true
            [[scene]]
            name = "cave"
            map = { file = "/maps/cave.png", threshold = 9, blocked = "light" }
            [[scene]]
            name = "field"
        "#;
        let config = Config::parse(text).unwrap();
        let keep = config.scenes[0].map.as_ref().unwrap();
        let bridge = DoorSpec { name: "bridge".into(), tiles: [0, 0, 1, 3], open: true };
        assert_eq!(
            *keep,
            MapSpec {
                tile_cm: 200,
                file: Some("/maps/keep.tmj".into()),
                layer: Some("walls".into()),
                height: Some("/maps/keep.png".into()),
                height_step_cm: 25,
                height_zero: 128,
                doors: vec![bridge],
                ..MapSpec::default()
            }
        );
        let cave = config.scenes[1].map.as_ref().unwrap();
        assert_eq!((cave.threshold, cave.blocked, cave.tile_cm), (9, Shade::Light, 100));
        assert_eq!(config.scenes[2].map, None);
        let printed = config.to_toml();
        assert_eq!(Config::parse(&printed).unwrap(), config, "{printed}");
    }

    #[test]
    fn file_paths_are_relative_to_the_folder_of_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("purview.toml");
        std::fs::write(&file, "[[scene]]\nmap = { file = \"maps/keep.tmx\" }").unwrap();
        let set = ["scene.0.map.height=keep.png".parse().unwrap()];
        let config = Config::load(Some(&file), [], &set).unwrap();
        let map = config.scenes[0].map.as_ref().unwrap();
        assert_eq!(map.file, Some(folder.path().join("maps/keep.tmx")));
        assert_eq!(map.height, Some(std::path::absolute("keep.png").unwrap()));
    }

    #[test]
    fn errors_are_reported_before_a_file_is_read() {
        for (keys, message) in [
            (
                "",
                "config:2: scene.0.map: is empty: set a `file`, a picture as `height`, or a `door`",
            ),
            (
                "file = \"a.png\"\ntile = \"3m\"",
                "config:4: scene.0.map.tile = \"3m\": a scene of 204800 cm x 204800 cm is not a whole number \
                 of tiles of 300 cm; choose a tile that divides both",
            ),
            (
                "file = \"a.png\"\ntile = \"5cm\"",
                "config:4: scene.0.map.tile = \"5cm\": 40960 x 40960 tiles: a map has at least one tile \
                 and at most 67108864",
            ),
            (
                "file = \"a.png\"\nlayer = \"walls\"",
                "config:4: scene.0.map.layer = \"walls\": has an effect only with a Tiled map as `file`",
            ),
            (
                "file = \"a.tmx\"\nthreshold = 3",
                "config:4: scene.0.map.threshold = 3: has an effect only with a picture (.png) as `file`",
            ),
            (
                "file = \"a.tmx\"\nheight_zero = 3",
                "config:4: scene.0.map.height_zero = 3: has an effect only with a picture as `height`",
            ),
            (
                "file = \"a.tmx\"\nheight_step = \"0m\"",
                "config:4: scene.0.map.height_step = \"0m\": must lie between \"1cm\" and \"15m\"",
            ),
            (
                "file = \"a.png\"\nblocked = \"drak\"",
                "config:4: scene.0.map.blocked = \"drak\": must be one of \"dark\", \"light\"; did you \
                 mean \"dark\"?",
            ),
            (
                "height = \"a.png\"\nfiel = \"a.png\"",
                "config:4: scene.0.map.fiel: unknown key; did you mean \"file\"?",
            ),
            (
                "door = [{ name = \"gate\", tiles = [1, 2, 0, 1] }]",
                "config:3: scene.0.map.door.0.tiles = [1, 2, 0, 1]: must be four whole numbers, for \
                 example [10, 4, 2, 1]: west and north edge, width and depth",
            ),
            (
                "door = [{ tiles = [1, 2, 1, 1] }, { name = \"gate\" }]",
                "config:3: scene.0.map.door.0.name: is missing: write 1 to 64 bytes of printable text\n\
                 config:3: scene.0.map.door.1.tiles: is missing: write four whole numbers, for example \
                 [10, 4, 2, 1]",
            ),
        ] {
            assert_eq!(told(keys), message, "{keys}");
        }
        let message = Config::parse("[[scene]]\nmap = 3").unwrap_err().to_string();
        assert_eq!(message, "config:2: scene.0.map = 3: must be a section with keys of its own");
    }

    #[test]
    fn errors_in_map_files_name_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keep.png");
        let shown = format!("{:?}", file.display().to_string());
        let build = |keys: &str| {
            let text = format!("[[scene]]\n[scene.map]\ntile = \"64m\"\n{keys}");
            Config::parse(&text).unwrap().build_scenes().unwrap_err().to_string()
        };
        let missing = build(&format!("height = {shown}"));
        let start = format!("scene.0.map.height = {shown}: cannot be read: ");
        assert!(missing.starts_with(&start), "{missing}");
        std::fs::write(&file, "no picture").unwrap();
        let broken = build(&format!("file = {shown}"));
        let start = format!("scene.0.map.file = {shown}: is not a readable PNG: ");
        assert!(broken.starts_with(&start), "{broken}");
        // The middle of 32 x 32 tiles.
        assert_eq!(
            build("door = [{ name = \"gate\", tiles = [15, 15, 3, 3] }]"),
            "scene.0.spawn = [1024 m, 1024 m]: lies on tile (16, 16), which is blocked; the nearest \
             free tile has its middle at [1056 m, 928 m]"
        );
    }
}
