//! The OpenAPI document matches the server: it lists exactly the routes of the server, and the answers have exactly
//! the documented fields.

use purview_server::admin::{OPENAPI, paths};
use serde_json::{Value, json};

use super::schema::{at, document, faults, operation, wrong_with};
use super::world::{BELOW, FakeWorld, NPC, SAILOR, SITTER, WALKER};
use super::{ANY_PORT, get, get_until};

#[test]
fn the_document_lists_exactly_the_routes_of_the_server() {
    let all = document();
    let said: Vec<&String> = all["paths"].as_object().unwrap().keys().collect();
    let mut served = paths();
    served.sort_unstable();
    assert_eq!(said, served);
    // Every reference exists, and every definition is referred to.
    let schemas = all["components"]["schemas"].as_object().unwrap();
    for name in schemas.keys() {
        assert!(OPENAPI.contains(&format!("\"#/components/schemas/{name}\"")), "{name}");
    }
    for part in OPENAPI.split("\"#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
    let answers = all["components"]["responses"].as_object().unwrap();
    for name in answers.keys() {
        assert!(OPENAPI.contains(&format!("\"#/components/responses/{name}\"")), "{name}");
    }
    for path in said {
        let (_, operation) = operation(&all, path);
        for answer in operation["responses"].as_object().unwrap().values() {
            assert!(answer.get("$ref").is_none_or(|there| at(&all, there).is_object()), "{path}");
        }
        let responses = operation["responses"].as_object().unwrap();
        assert_eq!(responses.contains_key("401"), path.starts_with("/api/"), "{path}");
        let said = operation["parameters"].as_array().cloned().unwrap_or_default();
        let in_path = said.iter().filter(|p| p["in"] == "path").count();
        assert_eq!(in_path, path.matches('{').count(), "{path}");
    }
}

#[test]
fn answers_match_the_document() {
    let (all, world) = (document(), FakeWorld::start());
    let console = world.console(ANY_PORT);
    let addr = console.addr();
    get_until(addr, "/ready", 200);
    let player = format!("/api/player/{SITTER}");
    let friend = get(addr, &player).1["view"][0]["id"].as_u64().unwrap();
    let why = |a: u64, b: u64| format!("/api/why?a={a}&b={b}");
    let asked = [
        ("/alive", "/alive".to_owned(), 200),
        ("/ready", "/ready".into(), 200),
        ("/whole", "/whole".into(), 200),
        ("/api/scenes", "/api/scenes".into(), 200),
        ("/api/entities", "/api/entities?scene=meadow&plane=0&ghosts=1".into(), 200),
        ("/api/entities", "/api/entities?scene=harbour".into(), 200),
        ("/api/entities", "/api/entities?scene=moon".into(), 404),
        ("/api/entities", "/api/entities".into(), 400),
        ("/api/player/{id}", player, 200),
        ("/api/player/{id}", format!("/api/player/{SAILOR}"), 200),
        ("/api/player/{id}", "/api/player/424242".into(), 404),
        ("/api/player/{id}", "/api/player/bob".into(), 400),
        ("/api/why", why(SITTER, friend), 200),
        ("/api/why", why(SITTER, WALKER), 200),
        ("/api/why", why(SITTER, BELOW), 200),
        ("/api/why", why(SITTER, SAILOR), 200),
        ("/api/why", why(SITTER, NPC), 200),
        ("/api/why", why(SITTER, SITTER), 200),
        ("/api/why", why(SAILOR, SAILOR + 9), 200),
        ("/api/why", "/api/why?a=1".into(), 400),
        ("/api/terrain", "/api/terrain?scene=harbour".into(), 200),
        ("/api/terrain", "/api/terrain?scene=meadow".into(), 404),
        ("/api/terrain.png", "/api/terrain.png?scene=harbour&level=9".into(), 404),
        ("/api/stats", "/api/stats".into(), 200),
        ("/api/cluster", "/api/cluster".into(), 404),
        ("/api/openapi.json", "/api/openapi.json".into(), 200),
    ];
    for (path, query, status) in asked {
        let (got, answer) = get(addr, &query);
        assert_eq!(got, status, "{query}: {answer}");
        let wrong = wrong_with(&all, path, status, &answer);
        assert!(wrong.is_empty(), "{query}: {wrong:#?}");
    }
    assert_eq!(get(addr, "/api/openapi.json").1, all);
    world.set_deaf(true);
    let (status, answer) = get(addr, &format!("/api/player/{SITTER}"));
    let wrong = wrong_with(&all, "/api/player/{id}", status, &answer);
    assert_eq!((status, wrong), (503, Vec::new()));
}

#[test]
fn the_check_finds_missing_additional_and_mistyped_fields() {
    let all = document();
    let told = |value: Value| {
        let mut wrong = Vec::new();
        faults(&all, &all["components"]["schemas"]["Entry"], &value, "", &mut wrong);
        wrong.len()
    };
    let bond = json!({"class": 0, "name": "couple"});
    let right = json!({"id": 1, "bond": bond, "dist_cm": null, "linked": true});
    assert_eq!(told(right.clone()), 0);
    for (name, value) in
        [("id", json!(-1)), ("id", json!("1")), ("bond", json!(3)), ("more", json!(1))]
    {
        let mut wrong = right.clone();
        wrong[name] = value;
        assert!(told(wrong.clone()) > 0, "{wrong}");
    }
    let mut less = right;
    less.as_object_mut().unwrap().remove("dist_cm");
    assert_eq!(told(less), 1);
}
