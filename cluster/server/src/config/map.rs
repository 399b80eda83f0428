//! The keys of `[scene.map]`: with units in the file, a [`MapSpec`] here.

use purview::scene::SceneSpec;

use super::error::ConfigError;
use super::form::Form;
use super::keys::{Keys, NAME, keys};
use super::read::Section;
use super::tree::{Item, Node};
use super::{Origin, SceneSettings};
use crate::maps::{DoorSpec, MapError, MapSpec, Shade};

/// The section of the map of a scene. No file is opened.
pub(super) fn keys(k: &mut Keys<'_, '_, SceneSettings>) {
    let mut scene = (false, Origin::Default);
    k.check(|s, _| {
        let sizes_wrong = ["width", "depth", "land"].iter().any(|key| s.is_wrong(key));
        scene = (sizes_wrong, s.origin_of("map"));
    });
    let spec = k.value.spec.clone();
    let whole = |k: &mut Keys<'_, '_, MapSpec>| {
        map(k);
        k.check(|s, map| check(s, map, scene, &spec));
    };
    keys! { k;
        "map" optional("a section, [scene.map]", false, whole) map:
            "The walkable area: blocked tiles, heights, doors. Without it the scene is flat and walkable everywhere.";
    }
}

const FILE: &str = "the path of a file, relative to this file's folder: a Tiled map (.tmx, .tmj, .json) or a grey-scale \
                    picture (.png), of a tile or pixel for each tile";
const HEIGHT: &str = "the path of a grey-scale picture (.png), relative to this file's folder, of a pixel for each tile";

/// Keys without effect are read, so that an error names them, and are not printed.
fn map(k: &mut Keys<'_, '_, MapSpec>) {
    keys! { k;
        "tile" length(1, 100_000) tile_cm: "Side of a tile of the map; it divides the scene's sides.";
        "file" path(FILE, "map.tmj") file: "The file of blocked tiles.";
    }
    let (is_picture, all) = (k.value.is_picture(), !k.prints());
    if all || k.value.layer.is_some() && !is_picture {
        keys! { k;
            "layer" optional_text("the name of a tile layer") layer:
                "Tiled maps only: the layer whose tiles are blocked. Default: \"blocked\", if there is one.";
        }
    }
    if all || is_picture {
        keys! { k;
            "threshold" count(1, 255) threshold:
                "Pictures only: the grey level, up to 255, from which a pixel counts as light.";
            "blocked" choice(&[(Shade::Dark, "dark"), (Shade::Light, "light")]) blocked:
                "Pictures only: which pixels are blocked.";
        }
    }
    keys! { k;
        "height" path(HEIGHT, "heights.png") height:
            "Heights of the tiles; replaces heights in a Tiled map.";
        "height_step" length(1, 1_500) height_step_cm:
            "Height of one grey level, or of one step of the Tiled property `height`.";
    }
    if all || k.value.height.is_some() {
        let says = "The grey level of the height picture that means height 0.";
        k.count(("height_zero", says), (0, 65_535), |m| &mut m.height_zero);
    }
    let new = DoorSpec { name: String::new(), tiles: [0; 4], open: false };
    keys! { k;
        "door" sections(new, door) doors: "Doors and bridges, in addition to those of a Tiled map.";
    }
}

const TILES: Form<'static> = Form::Each(&[EDGE, EDGE, SIDE, SIDE]);
const EDGE: Form<'static> = Form::Whole(0, i32::MAX as i64);
const SIDE: Form<'static> = Form::Whole(1, i32::MAX as i64);

fn door(k: &mut Keys<'_, '_, DoorSpec>) {
    let rule = "four whole numbers, for example [10, 4, 2, 1]";
    let read = |node: &Node| {
        let tiles = tiles(node);
        tiles.ok_or_else(|| format!("must be {rule}: west and north edge, width and depth"))
    };
    keys! { k;
        "name" text(NAME) name: "The name by which the logic opens and closes the door.";
        "tiles" other((rule, TILES), read, |tiles: &[i32; 4]| format!("{tiles:?}")) tiles:
            "West and north edge, width and depth, in tiles.";
        "open" flag() open: "Whether the door is open at the start.";
    }
    k.describe_required(&["name", "tiles"]);
    k.check(|s, d| {
        if d.name.is_empty() && !s.is_wrong("name") {
            s.missing("name", &format!("is missing: write {}", NAME.0));
        }
        if !s.says("tiles") {
            s.missing("tiles", &format!("is missing: write {rule}"));
        }
    });
}

fn tiles(node: &Node) -> Option<[i32; 4]> {
    let Item::Array(list) = &node.item else { return None };
    let whole = |n: &Node| match n.item {
        Item::Integer(n) => i32::try_from(n).ok(),
        _ => None,
    };
    let numbers: Option<Vec<i32>> = list.iter().map(whole).collect();
    let numbers: [i32; 4] = numbers?.try_into().ok()?;
    let [x, z, width, depth] = numbers;
    (x >= 0 && z >= 0 && width >= 1 && depth >= 1).then_some(numbers)
}

/// Checks what can be checked before a file is read.
fn check(
    s: &mut Section<'_>,
    map: &MapSpec,
    (sizes_wrong, origin): (bool, Origin),
    spec: &SceneSpec,
) {
    let is_tiled = map.file.is_some() && !map.is_picture();
    let only = [
        ("layer", is_tiled, "a Tiled map as `file`"),
        ("threshold", map.is_picture(), "a picture (.png) as `file`"),
        ("blocked", map.is_picture(), "a picture (.png) as `file`"),
        ("height_zero", map.height.is_some(), "a picture as `height`"),
    ];
    for (key, fits, with) in only {
        if let (false, Some(node)) = (fits, s.get(key)) {
            s.conflict(key, node, format!("has an effect only with {with}"));
        }
    }
    let nothing = map.file.is_none() && map.height.is_none() && map.doors.is_empty();
    if nothing && s.problems.is_empty() {
        let rule = "is empty: set a `file`, a picture as `height`, or a `door`".into();
        s.problems.push(ConfigError { key: s.path.clone(), found: None, rule, origin });
    }
    if let (false, false, Err(problem)) = (sizes_wrong, s.is_wrong("tile"), map.check(spec)) {
        let found = super::units::Quantity::Length.text(map.tile_cm.into());
        s.unfit("tile", &found, problem.to_string());
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
