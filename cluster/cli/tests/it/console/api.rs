//! The JSON, the health and the metrics of the console over HTTP.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use purview::actor::directory::Directory;
use purview_server::admin::{Console, ConsoleError, ConsoleState};
use purview_server::config::ConsoleSettings;
use serde_json::{Value, json};

use super::world::{BELOW, FakeWorld, MEADOW, NPC, PLAYERS, SAILOR, SITTER, WALKER};
use super::{ANY_PORT, get, get_until, get_until_so, request, request_bytes, stop};
use crate::common::try_for;

fn empty_state() -> ConsoleState {
    ConsoleState {
        directory: Arc::new(Directory::new(Vec::new())),
        regions: Vec::new().into(),
        collectors: Vec::new(),
        node: "n".into(),
        cluster: None,
        orders: None,
        others: None,
        balance: None,
        readiness: None,
        whole: None,
        workers: None,
    }
}

#[test]
fn scenes_are_listed_with_regions_and_planes_in_use() {
    let console = FakeWorld::start().console(ANY_PORT);
    let planes = json!([
        {"plane": 0, "players": PLAYERS, "entities": MEADOW},
        {"plane": 1, "players": 0, "entities": 0},
        {"plane": 7, "players": 1, "entities": 1},
    ]);
    let all = |body: &Value| body["scenes"][0]["planes"] == planes;
    let body = get_until_so(console.addr(), "/api/scenes", all);
    assert_eq!(body["node"], "dev");
    let meadow = &body["scenes"][0];
    assert_eq!(meadow["name"], "meadow");
    assert_eq!(meadow["visibility"]["mode"], "circle");
    assert_eq!(meadow["regions"].as_array().unwrap().len(), 4);
    assert_eq!(meadow["regions"][1]["owner"], "dev");
    assert_eq!(body["scenes"][1]["visibility"], json!({"mode": "patches"}));
}

#[test]
fn entities_are_listed_once_each_and_ghosts_on_request() {
    let console = FakeWorld::start().console(ANY_PORT);
    let ids = |body: &Value| -> BTreeSet<u64> {
        body["entities"].as_array().unwrap().iter().map(|e| e[0].as_u64().unwrap()).collect()
    };
    let path = "/api/entities?scene=meadow&plane=0&ghosts=1";
    let body = get_until_so(console.addr(), path, |body| ids(body).len() == MEADOW);
    assert!(!body["ghosts"].as_array().unwrap().is_empty());
    for ghost in body["ghosts"].as_array().unwrap() {
        assert_ne!(ghost[4], ghost[5], "a region does not mirror its own");
    }
    let (_, body) = get(console.addr(), "/api/entities?scene=meadow&plane=7");
    assert_eq!(body["entities"].as_array().unwrap().len(), 1);
    assert_eq!(body["ghosts"], json!([]));
}

#[test]
fn a_silent_region_is_reported_late_and_delays_nothing() {
    let world = FakeWorld::start();
    let console = world.console(ANY_PORT);
    world.set_deaf(true);
    let begin = Instant::now();
    let (status, body) = get(console.addr(), "/api/entities?scene=meadow&plane=0");
    assert_eq!((status, &body["late"]), (200, &json!([0])));
    assert_eq!(body["ticks"].as_array().unwrap().len(), 3);
    assert!(begin.elapsed() < Duration::from_secs(3));
    let (status, body) = get(console.addr(), &format!("/api/player/{SITTER}"));
    assert_eq!((status, &body["expected"]), (503, &json!("try again")));
    let (status, body) = get(console.addr(), &format!("/api/why?a={SITTER}&b={WALKER}"));
    assert_eq!((status, &body["expected"]), (503, &json!("try again")));
    world.set_deaf(false);
    get_until(console.addr(), &format!("/api/player/{SITTER}"), 200);
}

#[test]
fn a_terrain_is_sent_once_and_cached_by_its_tag() {
    let world = FakeWorld::start();
    let console = world.console(ANY_PORT);
    let addr = console.addr();
    let (_, scenes) = get(addr, "/api/scenes");
    assert_eq!(scenes["scenes"][0]["terrain"], json!(null));
    let version = scenes["scenes"][1]["terrain"].as_str().unwrap().to_owned();
    let (status, body) = get(addr, "/api/terrain?scene=harbour");
    assert_eq!(status, 200);
    assert_eq!(
        (&body["width"], &body["tile_cm"], &body["levels"]),
        (&json!(2_048), &json!(100), &json!(2))
    );
    assert_eq!(
        body["doors"][1],
        json!({
            "name": "bridge", "open": true,
            "runs": (600..620).map(|z| [200, z, 4]).collect::<Vec<_>>(),
        })
    );
    for path in ["/api/terrain?scene=harbour", "/api/terrain.png?scene=harbour&level=0&x=1&z=1"] {
        let (status, head, body) = request_bytes(addr, "GET", path, "");
        let tag = head.lines().find_map(|l| l.strip_prefix("etag: ")).unwrap();
        assert!(status == 200 && !body.is_empty() && tag.contains(&version), "{head}");
        let known = format!("If-None-Match: \"other\", {tag}\r\n");
        let (status, head, body) = request_bytes(addr, "GET", path, &known);
        assert_eq!((status, body.len()), (304, 0), "{head}");
        assert!(head.contains(tag));
        let (status, _, _) = request_bytes(addr, "GET", path, "If-None-Match: \"other\"\r\n");
        assert_eq!(status, 200);
    }
    let (_, head, png) = request_bytes(addr, "GET", "/api/terrain.png?scene=harbour&level=1", "");
    assert!(head.contains("content-type: image/png"));
    assert!(png.starts_with(b"\x89PNG") && png.len() < 20_000, "{} bytes", png.len());
}

#[test]
fn doors_are_sent_with_the_entities_of_their_plane() {
    let world = FakeWorld::start();
    let console = world.console(ANY_PORT);
    let doors = |plane: i32| {
        // A survey of a plane is cached for some milliseconds.
        std::thread::sleep(Duration::from_millis(100));
        get(console.addr(), &format!("/api/entities?scene=harbour&plane={plane}")).1["doors"]
            .clone()
    };
    assert_eq!(doors(0), json!([]));
    world.open_gate(true);
    assert_eq!((doors(0), doors(1)), (json!([[0, true]]), json!([])));
    world.open_gate(false);
    assert_eq!(doors(0), json!([]));
}

#[test]
fn a_player_is_found_in_any_region() {
    let console = FakeWorld::start().console(ANY_PORT);
    let (status, body) = get(console.addr(), &format!("/api/player/{SITTER}"));
    assert_eq!((status, &body["id"], &body["region"]), (200, &json!(SITTER), &json!(0)));
    assert_eq!(body["range"], json!({"mode": "circle", "enter_cm": 9_000, "leave_cm": 10_500}));
    let view = body["view"].as_array().unwrap();
    assert!(!view.is_empty());
    for (place, entry) in (1..).zip(view) {
        assert_eq!((&entry["place"], &entry["bond"]), (&json!(place), &Value::Null));
    }
    assert!(view.is_sorted_by_key(|e| e["dist_cm"].as_u64().unwrap()), "{view:?}");
    let (_, body) = get(console.addr(), &format!("/api/player/{SAILOR}"));
    assert_eq!(body["scene"], "harbour");
    assert_eq!(body["range"], json!({"mode": "patches", "bits": 7, "patch_cm": [3_200, 3_200]}));
}

#[test]
fn why_explains_for_any_two_entities_whether_they_see_each_other() {
    let console = FakeWorld::start().console(ANY_PORT);
    let (_, sitter) = get(console.addr(), &format!("/api/player/{SITTER}"));
    let friend = sitter["view"][0]["id"].as_u64().unwrap();
    let all = [
        (friend, true, "seen", "see each other"),
        (WALKER, false, "out_of_range", "at 90 m (and leave it beyond 105 m)"),
        (BELOW, false, "other_plane", "on plane 0 and 900 on plane 7"),
        (SAILOR, false, "other_scene", "in scene \"harbour\""),
        (NPC, false, "not_a_player", "of kind \"npc\""),
        (SITTER, false, "same_entity", "one and the same"),
    ];
    for (other, seen, why, sentences) in all {
        let (status, body) = get(console.addr(), &format!("/api/why?a={SITTER}&b={other}"));
        assert_eq!((status, &body["a"], &body["b"]), (200, &json!(SITTER), &json!(other)));
        assert_eq!((&body["seen"], &body["why"]), (&json!(seen), &json!(why)), "{body}");
        let told: Vec<&str> =
            body["sentences"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
        assert!(told.join(" ").contains(sentences), "{body}");
    }
    // The world goes on between two requests. If the list before and the list after have the same length, it had that
    // length in between, too.
    let listed = || {
        let (_, sitter) = get(console.addr(), &format!("/api/player/{SITTER}"));
        sitter["view"].as_array().unwrap().len()
    };
    let at_rest = (0..100).find_map(|_| {
        let before = listed();
        let (_, body) = get(console.addr(), &format!("/api/why?a={SITTER}&b={friend}"));
        (listed() == before).then_some((before, body))
    });
    let (length, body) = at_rest.expect("a list that stays as long for three requests");
    assert_eq!(body["places"][0]["of"], json!(length));
}

#[test]
fn an_invalid_request_is_an_error_that_names_the_legal_values() {
    let console = FakeWorld::start().console(ANY_PORT);
    let all = [
        ("/api/entities?plane=0", 400, "scene is missing", "\"meadow\", \"harbour\""),
        ("/api/entities?scene=moon", 404, "no scene \"moon\"", "\"meadow\""),
        ("/api/entities?scene=meadow&plane=x", 400, "plane is \"x\"", "whole number"),
        ("/api/entities?scene=meadow&ghosts=yes", 400, "ghosts is \"yes\"", "ghosts=1"),
        ("/api/entities?scene=meadow&ghost=1", 400, "no argument \"ghost\"", "ghosts"),
        ("/api/player/bob", 400, "\"bob\"", "whole number"),
        ("/api/player/424242", 404, "no region has an entity 424242", "/api/entities"),
        ("/api/player/261", 404, "entity 261 is of kind \"npc\"", "/api/entities"),
        ("/api/why?a=1", 400, "b is missing", "/api/why?a=17&b=42"),
        ("/api/why?a=1&b=-2", 400, "b is \"-2\"", "whole number"),
        ("/api/why?a=99999999999999999999&b=1", 400, "a is \"9999", "whole number"),
        ("/api/why?a=1&b=2&c=3", 400, "no argument \"c\"", "a, b"),
        ("/api/why?a=1&b=424242", 404, "no region has an entity 424242", "/api/entities"),
        ("/api/terrain?scene=meadow", 404, "\"meadow\" has no map", "one of \"harbour\""),
        ("/api/terrain.png?scene=harbour&level=x", 400, "level is \"x\"", "level=0"),
        ("/api/terrain.png?scene=harbour&level=2", 404, "(0, 0) of level 2", "level from 0 to 1"),
        (
            "/api/terrain.png?scene=harbour&x=2",
            404,
            "(2, 0) of level 0",
            "x from 0 to 1, z from 0 to 1",
        ),
        ("/api/nothing", 404, "no /api/nothing", "/api/scenes"),
        ("/assets/x.js", 404, "no asset \"x.js\"", "app.js"),
    ];
    for (path, status, error, expected) in all {
        let (got, body) = get(console.addr(), path);
        assert_eq!(got, status, "{path}");
        assert!(body["error"].as_str().unwrap().contains(error), "{path}: {body}");
        assert!(body["expected"].as_str().unwrap().contains(expected), "{path}: {body}");
    }
    assert_eq!(request(console.addr(), "POST", "/api/stats").0, 405);
}

#[test]
fn stats_health_and_metrics_cover_every_region() {
    let console = FakeWorld::start().console(ANY_PORT);
    assert_eq!(get(console.addr(), "/alive"), (200, json!({"alive": true})));
    get_until(console.addr(), "/ready", 200);
    let stats = || get(console.addr(), "/api/stats").1;
    // The console asks the regions from time to time.
    let stats = try_for("all players are counted", || {
        let now = stats();
        if now["players"] == json!(PLAYERS * 2 + 1) { Ok(now) } else { Err(now) }
    });
    assert_eq!(stats["regions"].as_array().unwrap().len(), 8);
    assert!(stats["tick_ms"]["p99"].as_f64().unwrap() >= stats["tick_ms"]["p50"].as_f64().unwrap());
    assert!(stats["cpu_s"].is_number() && stats["peak_rss_bytes"].is_number());
    let (status, head, text) = request(console.addr(), "GET", "/metrics");
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/plain; version=0.0.4"));
    assert!(text.contains("purview_tick_seconds_count{scene=\"meadow\",region=\"0\"}"));
    assert!(text.contains("purview_ghosts{scene=\"harbour\",region=\"7\"}"));
    assert!(text.contains("\npurview_sessions_open 3\n"));
}

#[test]
fn a_console_without_regions_is_alive_but_not_ready() {
    let console = Console::start(empty_state(), ANY_PORT, &ConsoleSettings::default()).unwrap();
    assert_eq!(get(console.addr(), "/alive").0, 200);
    assert_eq!(get(console.addr(), "/ready").0, 503);
}

#[test]
fn a_used_address_is_an_error_and_a_stopped_console_frees_its_own() {
    let world = FakeWorld::start();
    let console = world.console(ANY_PORT);
    let addr = console.addr();
    let error = Console::start(empty_state(), addr, &ConsoleSettings::default()).unwrap_err();
    assert!(matches!(error, ConsoleError::Listen { .. }), "{error}");
    stop(console);
    assert!(TcpStream::connect(addr).is_err());
    stop(world.console(addr));
}

#[test]
fn the_page_may_load_nothing_from_other_hosts() {
    let console = FakeWorld::start().console(ANY_PORT);
    let (status, head, body) = request(console.addr(), "GET", "/");
    assert_eq!(status, 200);
    assert!(head.contains("content-security-policy: default-src 'none'"));
    assert!(head.contains("x-content-type-options: nosniff"));
    assert!(body.starts_with("<!doctype html>"));
}
