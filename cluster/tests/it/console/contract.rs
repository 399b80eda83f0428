//! The OpenAPI document against the server: every route is in it and the reverse, and what is really
//! answered is what it says, no field more and none less.

use purview_cluster::console::{OPENAPI, paths};
use serde_json::{Value, json};

use super::schema::{document, faults, operation, wrong_with};
use super::world::{BELOW, FakeWorld, NPC, SAILOR, SITTER, WALKER};
use super::{ANY_PORT, get, get_until, request, request_bytes};

#[test]
fn every_route_is_in_the_document_and_everything_in_it_is_a_route() {
    let all = document();
    let said: Vec<&String> = all["paths"].as_object().unwrap().keys().collect();
    let mut served = paths();
    served.sort_unstable();
    assert_eq!(said, served);
    // Whatever is referred to is there, and whatever is there is referred to.
    let schemas = all["components"]["schemas"].as_object().unwrap();
    for name in schemas.keys() {
        assert!(OPENAPI.contains(&format!("\"#/components/schemas/{name}\"")), "{name}");
    }
    for part in OPENAPI.split("\"#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
    for path in said {
        let (_, operation) = operation(&all, path);
        let responses = operation["responses"].as_object().unwrap();
        assert_eq!(responses.contains_key("401"), path.starts_with("/api/"), "{path}");
        let said = operation["parameters"].as_array().cloned().unwrap_or_default();
        let in_path = said.iter().filter(|p| p["in"] == "path").count();
        assert_eq!(in_path, path.matches('{').count(), "{path}");
    }
}

#[test]
fn what_is_answered_is_what_the_document_says() {
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
fn the_check_finds_what_is_missing_too_much_or_of_another_type() {
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

#[test]
fn the_api_asks_for_the_token_and_nothing_else_does() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("console.token");
    let world = FakeWorld::start();
    let console = world.guarded_console(ANY_PORT, &file);
    let addr = console.addr();
    let token = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    let shows = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let all = document();
    for path in paths() {
        let asked = path.replace("{name}", "app.js").replace("{id}", &SITTER.to_string());
        let method = operation(&all, path).0.to_uppercase();
        let (status, head, body) = request_bytes(addr, &method, &asked, "");
        assert_eq!(status == 401, path.starts_with("/api/"), "{path}: {status}");
        if status == 401 {
            assert!(head.contains("www-authenticate: bearer"), "{head}");
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(wrong_with(&all, path, 401, &body), Vec::<String>::new());
        }
        let (status, _, _) = request_bytes(addr, &method, &asked, &shows(&token));
        assert!(status != 401 && status != 405, "{path}: {status}");
        let (status, _, _) = request_bytes(addr, &method, &asked, &shows(&token[1..]));
        assert_eq!(status == 401, path.starts_with("/api/"), "{path}");
    }
    assert_eq!(request(addr, "GET", "/api/nothing").0, 404);
    // On every address of the machine a token is asked for by default.
    let anywhere = std::net::SocketAddr::from(([0, 0, 0, 0], 0));
    let open = world.console(anywhere);
    let here = std::net::SocketAddr::from(([127, 0, 0, 1], open.addr().port()));
    assert_eq!(request(here, "GET", "/api/stats").0, 401);
    assert_eq!(request(here, "GET", "/alive").0, 200);
}
