//! The ground of a scene: its size, its heights and its patches.

use purview::scene::{Plane, Pos, Rect, Scene};

use super::*;

#[test]
fn the_edges_of_a_scene_cut_its_last_lands() {
    let text = "[[scene]]\nwidth = \"1.2km\"\ndepth = \"700m\"\nregion = [2, 1]";
    let scene = Config::parse(text).unwrap().build_scenes().unwrap().remove(0);
    let rects: Vec<_> = scene.map.regions.iter().map(|region| region.rect).collect();
    let rect = |x0, z0, x1, z1| Rect { x0, z0, x1, z1 };
    let want = [
        rect(0, 0, 102_400, 51_200),
        rect(102_400, 0, 120_000, 51_200),
        rect(0, 51_200, 102_400, 70_000),
        rect(102_400, 51_200, 120_000, 70_000),
    ];
    assert_eq!(rects, want);
    assert_eq!((scene.spec.spawn_x_cm, scene.spec.spawn_z_cm), (60_000, 35_000));
    let owner = |x, z| scene.map.at(Plane(0), Pos::ground(x, z)).map(|region| region.id.0);
    assert_eq!(owner(119_999, 69_999), Some(3));
    assert_eq!((owner(120_000, 0), owner(0, 70_000)), (None, None));
    let beyond = format!("{text}\nspawn = [\"1.3km\", \"1m\"]");
    assert_eq!(
        wrong(&beyond),
        "config:5: scene.0.spawn = 1300 m: must lie on the map: from 0 m to below 1200 m"
    );
    // One land, of which there is hardly anything.
    let small = scene_of("width = \"1m\"\ndepth = \"600m\"");
    assert_eq!((small.map.regions.len(), small.map.layout().plots[0].z1), (1, 2));
    assert_eq!(
        wrong("[[scene]]\nwidth = \"99cm\""),
        "config:2: scene.0.width = \"99cm\": must lie between \"1m\" and \"1000km\""
    );
}

fn scene_of(keys: &str) -> Arc<Scene> {
    let config = Config::parse(&format!("[[scene]]\n{keys}")).unwrap();
    config.build_scenes().unwrap().remove(0)
}

/// The Tiled map of the town has 192 x 128 tiles of 2 m: lands of 100 m do not divide it.
#[test]
fn the_size_of_a_map_need_not_be_a_multiple_of_a_land() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/scenes/keep.toml");
    let set = ["scene.0.land=100m", "scene.0.patch=12.5m", "scene.0.region=[1, 1]"];
    let mut set: Vec<Override> = set.iter().map(|o| o.parse().unwrap()).collect();
    let scene = Config::load(Some(&file), [], &set).unwrap().build_scenes().unwrap().remove(0);
    assert_eq!(scene.map.regions.len(), 4 * 3);
    let last = scene.map.regions.last().unwrap();
    assert_eq!(last.rect, Rect { x0: 30_000, z0: 20_000, x1: 38_400, z1: 25_600 });
    let terrain = scene.terrain.as_ref().unwrap();
    assert_eq!((terrain.width_cm(), terrain.depth_cm()), (38_400, 25_600));
    set.push("scene.0.width=386m".parse().unwrap());
    let errors = Config::load(Some(&file), [], &set).unwrap().build_scenes().unwrap_err();
    let text = errors.to_string();
    assert!(text.contains("is 192 x 128 tiles; the scene is 193 x 128 tiles"), "{text}");
}

#[test]
fn heights_count_where_a_scene_says_so() {
    assert_eq!(scene("height = \"8m\"").height_cm, Some(800));
    assert_eq!(scene("height = \"off\"").height_cm, None);
    assert_eq!(scene("visibility = \"all\"\nregion = [4, 4]\nheight = \"1cm\"").height_cm, Some(1));
    assert_eq!(
        wrong("[[scene]]\nheight = \"0m\""),
        "config:2: scene.0.height = \"0m\": must lie between \"1cm\" and \"1000km\""
    );
}

#[test]
fn a_patch_has_one_side_or_two() {
    assert_eq!(scene("patch = [\"16m\", \"10m\"]").layers[0].patch_cm, [1_600, 1_000]);
    assert_eq!(scene("patch = \"16m\"").layers[0].patch_cm, [1_600; 2]);
    let layers = "layer = [{ name = \"people\", patch = [\"16m\", \"10m\"] }, { name = \"huge\", patch = \"64m\" }]";
    let config = Config::parse(&format!("[[scene]]\n{layers}")).unwrap();
    let sides: Vec<_> = config.scenes[0].spec.layers.iter().map(|l| l.patch_cm).collect();
    assert_eq!(sides, [[1_600, 1_000], [6_400; 2]]);
    assert_eq!(Config::parse(&config.to_toml()).unwrap(), config, "{}", config.to_toml());
    assert_eq!(
        wrong("[[scene]]\npatch = [\"16m\"]"),
        "config:2: scene.0.patch = [\"16m\"]: must be a length, or two: [\"16m\", \"10m\"]"
    );
    assert_eq!(
        wrong("[[scene]]\npatch = [\"16m\", \"600m\"]"),
        "config:2: scene.0.patch = 16 m x 600 m (layer \"common\"): both sides must be at least 1 cm and at most \
         that of a land, 512 m"
    );
}
