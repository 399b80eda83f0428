//! Valid Tiled maps and their content.

use purview::scene::Plane;
use purview::scene::terrain::{Ground, Terrain, Tile};
use purview_server::config::Config;
use purview_server::maps::{DoorSpec, MapSpec, ObjectRole, ObjectValue};

use crate::make::*;

/// Five by four tiles, with a wall that could contain a door.
const WALL: [u32; 20] = [
    0, 0, 3, 0, 0, //
    0, 0, 4, 0, 0, //
    0, 0, 3, 0, 9, //
    1, 1, 3, 0, 0,
];
const WALL_ROWS: [&str; 4] = ["..#..", "..#..", "..#.#", "###.."];

/// The bits for the rotation of a tile.
const FLIPPED: [u32; 20] = {
    let mut tiles = WALL;
    tiles[2] |= 0x8000_0000;
    tiles[7] |= 0x4000_0000;
    tiles[12] |= 0x2000_0000;
    tiles[14] |= 0xe000_0000;
    tiles
};

#[test]
fn every_encoding_of_either_form_has_the_same_content() {
    for tiles in [WALL, FLIPPED] {
        for packing in PACKINGS {
            let xml = tmx(5, 4, &layer("blocked", 5, packing, &tiles));
            let json = tmj(5, 4, &[json_layer("blocked", 5, packing, &tiles)], JSON_TILESET);
            let files =
                MemoryFiles::of("a.tmx", xml).and("a.tmj", json.clone()).and("a.json", json);
            for file in ["a.tmx", "a.tmj", "a.json"] {
                let terrain = files.load(&map(file), 5, 4).unwrap();
                assert_eq!(rows(&terrain), WALL_ROWS, "{file} {packing:?}");
            }
        }
    }
}

#[test]
fn comments_character_data_and_entities_change_nothing() {
    let plain = layer("blocked", 5, Packing::Csv, &WALL);
    for (from, to) in [
        ("0,0,3,", "0,<!-- a wall, 3 tiles -->0,3,"),
        ("0,0,3,", "<![CDATA[0,0,]]>3,"),
        ("0,0,3,", "0,0&#44;&#x33;,"),
        ("<layer ", "<?pi?>\n<layer "),
        ("name=\"blocked\"", "name=\"&#98;locked\""),
        ("<data ", "<t:unknown xmlns:t=\"u\"><a/>text</t:unknown><data "),
        (" encoding=\"csv\"", "\n encoding = 'csv' "),
    ] {
        let within = plain.replacen(from, to, 1);
        assert_ne!(within, plain, "{from}");
        let terrain =
            MemoryFiles::of("a.tmx", tmx(5, 4, &within)).load(&map("a.tmx"), 5, 4).unwrap();
        assert_eq!(rows(&terrain), WALL_ROWS, "{to}");
    }
    let marked = format!("\u{feff}{}", tmx(5, 4, &plain));
    let terrain = MemoryFiles::of("a.tmx", marked).load(&map("a.tmx"), 5, 4).unwrap();
    assert_eq!(rows(&terrain), WALL_ROWS, "with a byte order mark");
}

#[test]
fn infinite_maps_are_read_chunk_by_chunk_in_every_encoding() {
    // One chunk within the scene, and one of empty tiles across its edge.
    let pieces: [Piece<'_>; 2] = [(1, 1, 2, &[1, 0, 0, 2]), (-3, -1, 4, &[0; 8])];
    for packing in PACKINGS {
        let files = MemoryFiles::of("a.tmx", infinite_tmx("blocked", packing, &pieces))
            .and("a.tmj", infinite_tmj("blocked", packing, &pieces));
        for file in ["a.tmx", "a.tmj"] {
            let terrain = files.load(&map(file), 4, 3).unwrap();
            assert_eq!(rows(&terrain), ["....", ".#..", "..#."], "{file} {packing:?}");
        }
    }
}

fn property(name: &str, kind: &str, value: &str) -> String {
    let text = format!("<property name=\"{name}\" type=\"{kind}\" value=\"{value}\"/>");
    format!("<properties>{text}</properties>")
}

/// A tileset: tile 0 is blocked, tile 1 is an arch that an entity can walk through, tile 2 is 5 steps high and tile 3
/// is 2 steps low.
fn tsx() -> String {
    let tile = |id, properties: String| format!("<tile id=\"{id}\">{properties}</tile>\n");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<tileset version=\"1.10\" name=\"town\" \
         tilewidth=\"16\" tileheight=\"8\" tilecount=\"4\" columns=\"2\">\n<image \
         source=\"town.png\" width=\"32\" height=\"16\"/>\n{}{}{}{}</tileset>\n",
        tile(0, property("blocked", "bool", "true")),
        tile(1, property("blocked", "bool", "false")),
        tile(2, property("height", "int", "5")),
        tile(3, property("height", "float", "-2")),
    )
}

fn tsj() -> String {
    let tile = |id, name, kind, value| {
        format!(
            r#"{{ "id": {id}, "properties": [{{ "name": "{name}", "type": "{kind}", "value": {value} }}] }}"#
        )
    };
    format!(
        r#"{{ "name": "town", "type": "tileset", "tilecount": 4, "columns": 2, "tiles": [{}, {}, {}, {}] }}"#,
        tile(0, "blocked", "bool", "true"),
        tile(1, "blocked", "bool", "false"),
        tile(2, "height", "int", "5"),
        tile(3, "height", "float", "-2"),
    )
}

/// Three tiles and their properties, in tilesets of every kind: within the map, beside it in XML, and beside it in
/// JSON.
fn town(bottom: [u32; 3], top: [u32; 3]) -> Vec<Terrain> {
    let packing = Packing::Csv;
    let layers = layer("ground", 3, packing, &bottom) + &layer("roofs", 3, packing, &top);
    let outside = "<tileset firstgid=\"100\" source=\"sets/town.tsx\"/>\n";
    let inline =
        tsx().split_once("?>\n").unwrap().1.replace("<tileset ", "<tileset firstgid=\"100\" ");
    let json_layers =
        [json_layer("ground", 3, packing, &bottom), json_layer("roofs", 3, packing, &top)];
    let json = |set: &str| tmj(3, 1, &json_layers, &format!("{JSON_TILESET}, {set}"));
    let files = MemoryFiles::of("maps/outside.tmx", tmx(3, 1, &(outside.to_owned() + &layers)))
        .and("maps/inline.tmx", tmx(3, 1, &(inline + &layers)))
        .and("maps/xml.tmj", json(r#"{ "firstgid": 100, "source": "sets/town.tsx" }"#))
        .and("maps/json.tmj", json(r#"{ "firstgid": 100, "source": "sets/town.tsj" }"#))
        .and("maps/inline.tmj", json(&tsj().replacen('{', r#"{ "firstgid": 100,"#, 1)))
        .and("maps/sets/town.tsx", tsx())
        .and("maps/sets/town.tsj", tsj());
    let maps = ["outside.tmx", "inline.tmx", "xml.tmj", "json.tmj", "inline.tmj"];
    let load = |name| files.load(&map(&format!("maps/{name}")), 3, 1).unwrap();
    maps.into_iter().map(load).collect()
}

#[test]
fn of_several_layers_the_topmost_tile_with_the_property_blocked_counts() {
    // A wall and plain ground; above the second wall an arch, above the ground a roof without the property.
    for terrain in town([100, 100, 1], [0, 101, 2]) {
        assert_eq!(rows(&terrain), ["#.."]);
    }
    // A number beyond its tileset, and one of an earlier tileset: neither has properties.
    for terrain in town([100, 140, 9], [0, 0, 0]) {
        assert_eq!(rows(&terrain), ["#.."]);
    }
}

#[test]
fn tiles_have_heights() {
    for terrain in town([102, 103, 1], [0, 0, 102]) {
        let heights = [0, 1, 2].map(|x| terrain.height_cm(Tile { x, z: 0 }));
        assert_eq!(heights, [50, -20, 50]);
    }
}

#[test]
fn layers_set_properties_for_their_tiles_also_in_groups_and_when_hidden() {
    let raised =
        layer_with("hill", 4, Packing::Csv, &[0, 1, 1, 0], &property("height", "int", "3"));
    let walls =
        layer_with("walls", 4, Packing::Zlib, &[0, 0, 1, 1], &property("blocked", "bool", "true"));
    let hidden = walls.replace("<layer id", "<layer visible=\"0\" id");
    let within = format!(
        "<group id=\"7\" name=\"a\">{raised}<group id=\"8\" name=\"b\">{hidden}</group></group>\n"
    );
    let files = MemoryFiles::of("a.tmx", tmx(4, 1, &within));
    let spec = MapSpec { height_step_cm: 25, ..map("a.tmx") };
    let terrain = files.load(&spec, 4, 1).unwrap();
    assert_eq!(rows(&terrain), ["..##"]);
    let heights = [0, 1, 2, 3].map(|x| terrain.height_cm(Tile { x, z: 0 }));
    assert_eq!(heights, [0, 75, 75, 0]);

    let json = |name: &str, tiles: &[u32], property: &str| {
        let layer = json_layer(name, 4, Packing::Csv, tiles);
        layer.replacen('{', &format!("{{ \"visible\": false, \"properties\": [{property}],"), 1)
    };
    let raised = json("hill", &[0, 1, 1, 0], r#"{ "name": "height", "type": "int", "value": 3 }"#);
    let walls =
        json("walls", &[0, 0, 1, 1], r#"{ "name": "blocked", "type": "bool", "value": true }"#);
    let walls = walls.replace(r#""opacity": 1,"#, "").replace(r#""visible": true,"#, "");
    let raised = raised.replace(r#""visible": true,"#, "");
    let group = format!(
        r#"{{ "type": "group", "name": "a", "layers": [{raised}, {{ "type": "group", "name": "b", "layers": [{walls}] }}] }}"#
    );
    let files = MemoryFiles::of("a.tmj", tmj(4, 1, &[group], JSON_TILESET));
    let same = files.load(&MapSpec { file: Some("a.tmj".into()), ..spec }, 4, 1).unwrap();
    assert_eq!(same, terrain);
}

#[test]
fn a_layer_of_another_name_can_be_chosen() {
    let both =
        layer("walls", 2, Packing::Csv, &[1, 0]) + &layer("blocked", 2, Packing::Csv, &[0, 1]);
    let files = MemoryFiles::of("a.tmx", tmx(2, 1, &both));
    let walls = MapSpec { layer: Some("walls".into()), ..map("a.tmx") };
    assert_eq!(rows(&files.load(&walls, 2, 1).unwrap()), ["#."]);
    assert_eq!(rows(&files.load(&map("a.tmx"), 2, 1).unwrap()), [".#"]);
}

/// A door: its name, whether it is open, and its tiles.
type DoorFacts = (String, bool, Vec<(i32, i32)>);

fn doors(terrain: &Terrain) -> Vec<DoorFacts> {
    let tiles = |tiles: &[Tile]| tiles.iter().map(|t| (t.x, t.z)).collect();
    terrain.doors().iter().map(|d| (d.name.clone(), d.open, tiles(&d.tiles))).collect()
}

/// Doors in XML and JSON: a gate of two rectangles, an open bridge, a hatch that is a door by its layer, and a sign
/// that is no door. Tiles have 16 x 8 pixels.
fn gates() -> (String, String) {
    let open = property("open", "bool", "true");
    let xml = format!(
        "<objectgroup id=\"2\" name=\"things\">\n\
         <object id=\"1\" name=\"gate\" type=\"door\" x=\"32\" y=\"0\" width=\"16\" height=\"8\"/>\n\
         <object id=\"2\" name=\"gate\" type=\"Door\" x=\"31\" y=\"9\" width=\"18\" height=\"6\"/>\n\
         <object id=\"3\" name=\"plank\" class=\"bridge\" x=\"0\" y=\"24\" width=\"30\" \
         height=\"8\">{open}</object>\n\
         <object id=\"4\" name=\"sign\" x=\"0\" y=\"0\" width=\"64\" height=\"64\"/>\n\
         </objectgroup>\n<objectgroup id=\"3\" name=\"Doors\">\n\
         <object id=\"5\" name=\"hatch\" x=\"70\" y=\"10\" width=\"4\" height=\"4\"/>\n\
         <object id=\"6\" name=\"note\" type=\"comment\" x=\"0\" y=\"0\" width=\"64\" height=\"64\"/>\n\
         </objectgroup>\n"
    );
    let object = |id, name, more: &str, [x, y, width, height]: [i32; 4]| {
        format!(
            r#"{{ "id": {id}, "name": "{name}", {more} "rotation": 0, "visible": true, "x": {x}, "y": {y}, "width": {width}, "height": {height} }}"#
        )
    };
    let things = [
        object(1, "gate", r#""type": "door","#, [32, 0, 16, 8]),
        object(2, "gate", r#""type": "Door","#, [31, 9, 18, 6]),
        object(
            3,
            "plank",
            r#""class": "bridge", "properties": [{ "name": "open", "type": "bool", "value": true }],"#,
            [0, 24, 30, 8],
        ),
        object(4, "sign", r#""type": "","#, [0, 0, 64, 64]),
    ];
    let others = [
        object(5, "hatch", r#""type": "","#, [70, 10, 4, 4]),
        object(6, "note", r#""type": "comment","#, [0, 0, 64, 64]),
    ];
    let group = |name, objects: &[String]| {
        format!(
            r#"{{ "type": "objectgroup", "name": "{name}", "objects": [{}] }}"#,
            objects.join(",")
        )
    };
    (xml, format!("{}, {}", group("things", &things), group("Doors", &others)))
}

#[test]
fn rectangles_are_doors_by_their_class_or_their_layer() {
    let (xml, json) = gates();
    let walls = layer("blocked", 5, Packing::Csv, &WALL);
    let json_walls = json_layer("blocked", 5, Packing::Csv, &WALL);
    let files = MemoryFiles::of("a.tmx", tmx(5, 4, &(walls + &xml)))
        .and("a.tmj", tmj(5, 4, &[json_walls, json], JSON_TILESET));
    for file in ["a.tmx", "a.tmj"] {
        let terrain = files.load(&map(file), 5, 4).unwrap();
        assert_eq!(
            doors(&terrain),
            [
                ("gate".into(), false, vec![(2, 0), (2, 1)]),
                ("plank".into(), true, vec![(0, 3), (1, 3)]),
                ("hatch".into(), false, vec![(4, 1)]),
            ],
            "{file}"
        );
        let ground = Ground::new(terrain.into());
        let free: String = (0..5)
            .map(|x| if ground.is_free(Plane(0), Tile { x, z: 3 }) { '.' } else { '#' })
            .collect();
        assert_eq!(free, "..#..", "the bridge lies over what is blocked");
    }
}

#[test]
fn on_isometric_maps_objects_lie_along_the_tiles() {
    let door = "<objectgroup id=\"2\" name=\"doors\"><object id=\"1\" name=\"gate\" x=\"16\" y=\"8\" \
                width=\"8\" height=\"16\"/></objectgroup>";
    let xml = tmx(5, 4, door).replace("\"orthogonal\"", "\"isometric\"");
    let json = r#"{ "type": "objectgroup", "name": "doors", "objects":
        [{ "id": 1, "name": "gate", "x": 16, "y": 8, "width": 8, "height": 16 }] }"#;
    let json = tmj(5, 4, &[json.into()], "").replace("\"orthogonal\"", "\"isometric\"");
    let files = MemoryFiles::of("a.tmx", xml).and("a.tmj", json);
    for file in ["a.tmx", "a.tmj"] {
        let terrain = files.load(&map(file), 5, 4).unwrap();
        assert_eq!(doors(&terrain), [("gate".into(), false, vec![(2, 1), (2, 2)])], "{file}");
    }
}

#[test]
fn objects_can_be_made_from_templates() {
    let tx = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<template>\n<object name=\"gate\" \
              type=\"door\" width=\"16\" height=\"8\"><properties><property name=\"open\" \
              type=\"bool\" value=\"true\"/></properties></object>\n</template>\n";
    let xml = "<objectgroup id=\"2\" name=\"things\">\
               <object id=\"1\" template=\"parts/gate.tx\" x=\"16\" y=\"8\"/>\
               <object id=\"2\" template=\"parts/gate.tx\" name=\"wide\" x=\"32\" y=\"16\" width=\"32\" \
               height=\"8\"/></objectgroup>";
    let tj = r#"{ "type": "template", "object": { "name": "gate", "type": "door", "width": 16, "height": 8,
        "properties": [{ "name": "open", "type": "bool", "value": true }] } }"#;
    let json = r#"{ "type": "objectgroup", "name": "things", "objects": [
        { "id": 1, "template": "parts/gate.tj", "x": 16, "y": 8 },
        { "id": 2, "template": "parts/gate.tj", "name": "wide", "x": 32, "y": 16, "width": 32,
          "height": 8 }] }"#;
    let files = MemoryFiles::of("a.tmx", tmx(5, 4, xml))
        .and("parts/gate.tx", tx)
        .and("a.tmj", tmj(5, 4, &[json.into()], ""))
        .and("parts/gate.tj", tj);
    for file in ["a.tmx", "a.tmj"] {
        let terrain = files.load(&map(file), 5, 4).unwrap();
        assert_eq!(
            doors(&terrain),
            [("gate".into(), true, vec![(1, 1)]), ("wide".into(), true, vec![(2, 2), (3, 2)])],
            "{file}"
        );
    }
}

#[test]
fn doors_can_be_named_beside_the_file() {
    let files = MemoryFiles::of("a.tmx", tmx(5, 4, &layer("blocked", 5, Packing::Gzip, &WALL)));
    let door = |tiles, open| DoorSpec { name: "gate".into(), tiles, open };
    let spec = MapSpec { doors: vec![door([2, 0, 1, 2], true)], ..map("a.tmx") };
    let terrain = files.load(&spec, 5, 4).unwrap();
    assert_eq!(doors(&terrain), [("gate".into(), true, vec![(2, 0), (2, 1)])]);
    for outside in [[4, 0, 2, 1], [-1, 0, 1, 1], [0, 3, 1, i32::MAX]] {
        let spec = MapSpec { doors: vec![door(outside, true)], ..map("a.tmx") };
        let told = files.wrong(&spec, 5, 4);
        assert!(told.contains("is outside the map, whose tiles are (0, 0) to (4, 3)"), "{told}");
    }
}

#[test]
fn the_example_map_is_the_output_of_its_program() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/scenes");
    let config = Config::load(Some(&folder.join("keep.toml")), [], &[]).unwrap();
    let terrain = config.build_scenes().unwrap()[0].terrain.clone().unwrap();
    let drawn = MemoryFiles::of("keep.tmx", crate::keep::map());
    let spec = config.scenes[0].map.clone().unwrap();
    let drawn = drawn.load(&MapSpec { file: Some("keep.tmx".into()), ..spec }, 192, 128).unwrap();
    assert!(*terrain == drawn, "deploy/scenes/keep.tmx is old: run the example again");

    let names: Vec<_> = terrain.doors().iter().map(|d| (d.name.as_str(), d.open)).collect();
    let expected =
        [("north gate", false), ("south gate", true), ("east gate", true), ("bridge", true)];
    assert_eq!(names, expected);
    assert_eq!(terrain.height_cm(Tile { x: 164, z: 40 }), 300, "the top of the hill");
    assert_eq!(terrain.height_cm(Tile { x: 10, z: 10 }), 0);
    // From the town square the far bank is reachable over the bridge and nowhere else.
    let ground = Ground::new(terrain);
    let free = |x, z| ground.is_free(Plane(0), Tile { x, z });
    assert!((64..192).all(|x| free(x, 63)), "through the gate and over the bridge");
    assert!((0..128).filter(|z| (110..150).all(|x| free(x, *z))).eq(60..66));
}

#[test]
fn objects_of_a_layer_of_entities_are_told_with_place_class_and_properties() {
    let objects = r#"<objectgroup name="Entities">
        <object id="3" name="old chest" type="chest" x="8" y="16" width="8" height="8">
          <properties><property name="loot" type="int" value="5"/>
          <property name="respawn" value="30s"/></properties></object>
        <object id="4" type="tree" x="4" y="4"><point/></object>
        <object id="5" gid="1" type="tree" x="8" y="8" width="8" height="8"/>
        <object id="6" name="gate" type="door" x="0" y="0" width="8" height="8"/>
      </objectgroup>"#;
    let text = format!(
        r#"<map orientation="orthogonal" width="4" height="4" tilewidth="8" tileheight="8">{objects}</map>"#
    );
    let files = MemoryFiles::of("a.tmx", text);
    let (terrain, objects) = files.load_all(&map("a.tmx"), 4, 4).unwrap();
    assert_eq!(terrain.doors().len(), 1, "a door is no content");
    let told: Vec<_> =
        objects.iter().map(|o| (o.id, &*o.name, &*o.class, o.at_cm, o.role)).collect();
    let entity = ObjectRole::Entity;
    let want = [
        (3, "old chest", "chest", [150, 250], entity),
        (4, "", "tree", [50, 50], entity),
        (5, "", "tree", [150, 100], entity),
    ];
    assert_eq!(told, want);
    let loot = ("loot".to_owned(), ObjectValue::Number(5.0));
    let respawn = ("respawn".to_owned(), ObjectValue::Text("30s".into()));
    assert_eq!(objects[0].properties, [loot, respawn]);
}
