//! Errors of damaged Tiled files name the file, the line and the column.

use purview_server::maps::{MapProblem, SyntaxProblem};

use crate::make::*;

/// A map of 4 x 4 tiles whose line 4 is the layer and line 5 its tiles.
fn good() -> String {
    tmx(4, 4, &layer("blocked", 4, Packing::Csv, &[1; 16]))
}

/// The problem of `good` with one text in place of another, with its line and column.
fn syntax(from: &str, to: &str) -> (SyntaxProblem, usize, usize) {
    let text = good().replacen(from, to, 1);
    assert_ne!(text, good(), "{from}");
    match MemoryFiles::of("a.tmx", text).load(&map("a.tmx"), 4, 4).unwrap_err().problem {
        MapProblem::Syntax { problem, line, column } => (problem, line, column),
        other => panic!("{other}"),
    }
}

#[test]
fn a_damaged_tag_is_reported_where_it_is() {
    let (problem, line, _) = syntax("</layer>", "</lair>");
    assert!(matches!(problem, SyntaxProblem::Xml(_)), "{problem}");
    assert_eq!(line, 6);
    let (problem, line, _) = syntax("name=\"blocked\"", "name=\"blocked");
    assert!(matches!(problem, SyntaxProblem::Xml(_)), "{problem}");
    assert_eq!(line, 4);
    let (problem, line, column) = syntax("1,1,1,", "1,&tile;,1,");
    assert!(matches!(&problem, SyntaxProblem::Entity(name) if name == "tile"), "{problem}");
    assert_eq!((line, column), (5, "  <data encoding=\"csv\">1,&tile;".len()));
}

#[test]
fn a_missing_or_wrong_attribute_is_reported_with_its_element() {
    let (problem, line, _) = syntax(" orientation=\"orthogonal\"", "");
    assert_eq!(problem.to_string(), "<map> has no attribute `orientation`");
    assert_eq!(line, 2);
    let (problem, line, _) = syntax(" firstgid=\"1\"", "");
    assert_eq!(problem.to_string(), "<tileset> has no attribute `firstgid`");
    assert_eq!(line, 3);
    let (problem, line, _) =
        syntax("name=\"blocked\" width=\"4\"", "name=\"blocked\" width=\"4m\"");
    assert_eq!(problem.to_string(), "width=\"4m\" of <layer> is not a number that it can have");
    assert_eq!(line, 4);
    let flag = "<properties><property name=\"blocked\" type=\"bool\" value=\"1\"/></properties>";
    let (problem, line, _) = syntax("\n  <data", &format!("\n{flag}\n  <data"));
    assert_eq!(problem.to_string(), "property \"blocked\" of type bool is \"1\"");
    assert_eq!(line, 5);
}

#[test]
fn what_is_no_map_is_reported() {
    let wrong = |text: &str| MemoryFiles::of("a.tmx", text).wrong(&map("a.tmx"), 4, 4);
    let no_map = "a.tmx: is not a readable Tiled map: there is no <map> at line 1";
    assert_eq!(wrong(""), format!("{no_map} column 1"));
    assert_eq!(wrong("hello"), format!("{no_map} column 5"));
    assert_eq!(wrong("<html></html>"), format!("{no_map} column 6"));
    assert_eq!(wrong("<tileset/>"), "a.tmx: is a Tiled tileset; it must be a map");
    let twice = good() + "<map/>";
    assert_eq!(
        wrong(&twice),
        "a.tmx: is not a readable Tiled map: something follows the end of the map at line 8 column 6"
    );
    let latin = good().replace("name=\"blocked\"", "name=\"b\u{fffd}\"").into_bytes();
    let latin: Vec<u8> = latin.into_iter().filter(|byte| *byte != 0xbf).collect();
    let error = MemoryFiles::of("a.tmx", latin).wrong(&map("a.tmx"), 4, 4);
    assert!(error.starts_with("a.tmx: is not a readable Tiled map: "), "{error}");
    assert!(error.contains(" at line 4 column "), "{error}");
}

#[test]
fn a_tile_that_is_no_number_is_named_by_its_position() {
    let wrong = |tile: &str| {
        let text = good().replacen(">1,1,1,", &format!(">1,1,{tile},"), 1);
        MemoryFiles::of("a.tmx", text).wrong(&map("a.tmx"), 4, 4)
    };
    for tile in ["x", "-1", "4294967296", "1.5", ""] {
        assert_eq!(
            wrong(tile),
            format!(
                "a.tmx: layer \"blocked\": tile 2 is {tile:?}; it must be a whole number from 0 to \
                 4294967295"
            )
        );
    }
}

#[test]
fn a_damaged_json_file_is_reported_where_it_is() {
    let good = tmj(4, 4, &[json_layer("blocked", 4, Packing::Csv, &[1; 16])], JSON_TILESET);
    let text = good.replacen("\"orientation\": \"orthogonal\"", "\"orientation\": 4", 1);
    let error = MemoryFiles::of("a.tmj", text).load(&map("a.tmj"), 4, 4).unwrap_err();
    let MapProblem::Syntax { problem: SyntaxProblem::Json(text), line: 3, .. } = &error.problem
    else {
        panic!("{error}");
    };
    assert!(text.starts_with("invalid type: integer `4`, expected a string"), "{text}");
    assert!(!text.contains(" at line "), "the position is told once: {text}");
    assert!(error.to_string().contains(" at line 3 column "), "{error}");
}

#[test]
fn a_file_that_the_map_names_is_the_one_at_fault() {
    let within = "<tileset firstgid=\"10\" source=\"sets/town.tsx\"/>";
    let set = "<tileset name=\"town\">\n <tile id=\"many\"/>\n</tileset>";
    let files = MemoryFiles::of("maps/a.tmx", tmx(4, 4, within)).and("maps/sets/town.tsx", set);
    assert_eq!(
        files.wrong(&map("maps/a.tmx"), 4, 4),
        "maps/sets/town.tsx: is not a readable Tiled map: id=\"many\" of <tile> is not a number that \
         it can have at line 2 column 18"
    );
}

#[test]
fn maps_of_either_form_name_files_of_the_other() {
    let layer_xml = layer("walls", 4, Packing::Csv, &[10; 16]);
    let set = "<tileset firstgid=\"10\" source=\"town.tsj\"/>";
    let object = "<objectgroup id=\"2\" name=\"x\"><object id=\"1\" template=\"gate.tj\" x=\"0\" \
                  y=\"0\"/></objectgroup>";
    let tsj = r#"{ "name": "town", "tiles": [{ "id": 0, "properties":
        [{ "name": "blocked", "type": "bool", "value": true }] }] }"#;
    let tj = r#"{ "object": { "name": "gate", "type": "door", "width": 16, "height": 8 } }"#;
    let files = MemoryFiles::of("a.tmx", tmx(4, 4, &format!("{set}{layer_xml}{object}")))
        .and("town.tsj", tsj)
        .and("gate.tj", tj);
    let terrain = files.load(&map("a.tmx"), 4, 4).unwrap();
    assert_eq!(rows(&terrain)[1], "####");
    assert_eq!(terrain.doors()[0].name, "gate");
}
