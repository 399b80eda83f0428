//! The console over made-up regions: its JSON, metrics and health over HTTP, and the real page in
//! headless Chromium.

pub mod browser;
mod contract;
mod guard;
mod https;
pub mod schema;
mod schemathesis;
mod world;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use browser::{Page, Screen, with_page};
use purview_server::admin::{Console, ConsoleError, ConsoleState};
use purview_server::config::ConsoleSettings;
use serde_json::{Value, json};
use world::{BELOW, FakeWorld, MEADOW, NPC, PLAYERS, SAILOR, SITTER, WALKER};

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Status, headers (lower case) and body of an answer; `more` are headers of the request.
fn request_bytes(addr: SocketAddr, method: &str, path: &str, more: &str) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_ascii_lowercase(), answer[end + 4..].to_vec())
}

/// The same, of a text.
fn request(addr: SocketAddr, method: &str, path: &str) -> (u16, String, String) {
    let (status, head, body) = request_bytes(addr, method, path, "");
    (status, head, String::from_utf8(body).unwrap())
}

fn get(addr: SocketAddr, path: &str) -> (u16, Value) {
    let (status, _, body) = request(addr, "GET", path);
    (status, serde_json::from_str(&body).unwrap())
}

/// Asks until the status is as wanted.
fn get_until(addr: SocketAddr, path: &str, wanted: u16) -> Value {
    let begin = Instant::now();
    loop {
        let (status, body) = get(addr, path);
        if status == wanted {
            return body;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{path} stays {status}: {body}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn stop(console: Console) {
    futures::executor::block_on(console.stop());
}

#[test]
fn scenes_are_listed_with_regions_and_planes_in_use() {
    let console = FakeWorld::start().console(ANY_PORT);
    let (status, body) = get(console.addr(), "/api/scenes");
    assert_eq!(status, 200);
    assert_eq!(body["node"], "dev");
    let meadow = &body["scenes"][0];
    assert_eq!(meadow["name"], "meadow");
    assert_eq!(meadow["visibility"]["mode"], "circle");
    assert_eq!(meadow["regions"].as_array().unwrap().len(), 4);
    assert_eq!(meadow["regions"][1]["owner"], "dev");
    assert_eq!(
        meadow["planes"],
        json!([
            {"plane": 0, "players": PLAYERS, "entities": MEADOW},
            {"plane": 1, "players": 0, "entities": 0},
            {"plane": 7, "players": 1, "entities": 1},
        ])
    );
    assert_eq!(body["scenes"][1]["visibility"], json!({"mode": "patches"}));
}

#[test]
fn entities_come_once_each_and_ghosts_when_asked_for() {
    let console = FakeWorld::start().console(ANY_PORT);
    let (status, body) = get(console.addr(), "/api/entities?scene=meadow&plane=0&ghosts=1");
    assert_eq!(status, 200);
    let ids: BTreeSet<u64> =
        body["entities"].as_array().unwrap().iter().map(|e| e[0].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), MEADOW);
    assert!(!body["ghosts"].as_array().unwrap().is_empty());
    for ghost in body["ghosts"].as_array().unwrap() {
        assert_ne!(ghost[4], ghost[5], "a region does not mirror its own");
    }
    let (_, body) = get(console.addr(), "/api/entities?scene=meadow&plane=7");
    assert_eq!(body["entities"].as_array().unwrap().len(), 1);
    assert_eq!(body["ghosts"], json!([]));
}

#[test]
fn a_region_that_does_not_answer_is_late_and_holds_nobody_up() {
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
fn a_terrain_is_told_once_and_kept_by_its_tag() {
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
fn doors_are_told_with_the_entities_of_their_plane() {
    let world = FakeWorld::start();
    let console = world.console(ANY_PORT);
    let doors = |plane: i32| {
        // A survey of a plane serves for some milliseconds.
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
fn a_player_is_found_wherever_it_lives() {
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
    assert_eq!(body["range"], json!({"mode": "patches", "bits": 7, "patch_cm": 3_200}));
}

#[test]
fn of_any_two_it_is_told_why_they_see_each_other_or_not() {
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
    for (other, seen, why, words) in all {
        let (status, body) = get(console.addr(), &format!("/api/why?a={SITTER}&b={other}"));
        assert_eq!((status, &body["a"], &body["b"]), (200, &json!(SITTER), &json!(other)));
        assert_eq!((&body["seen"], &body["why"]), (&json!(seen), &json!(why)), "{body}");
        let told: Vec<&str> =
            body["words"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
        assert!(told.join(" ").contains(words), "{body}");
    }
    // The world goes on between two requests: as long as the list before and after is of one length it
    // was of that length meanwhile.
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
fn what_is_wrong_is_said_with_what_would_be_right() {
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
fn figures_health_and_metrics_tell_of_every_region() {
    let console = FakeWorld::start().console(ANY_PORT);
    assert_eq!(get(console.addr(), "/alive"), (200, json!({"alive": true})));
    get_until(console.addr(), "/ready", 200);
    let stats = || get(console.addr(), "/api/stats").1;
    let deadline = Instant::now() + Duration::from_secs(20);
    // The regions are asked now and then.
    while stats()["players"] != json!(PLAYERS * 2 + 1) {
        assert!(Instant::now() < deadline, "{}", stats());
        std::thread::sleep(Duration::from_millis(20));
    }
    let stats = stats();
    assert_eq!(stats["regions"].as_array().unwrap().len(), 8);
    assert!(stats["tick_ms"]["p99"].as_f64().unwrap() >= stats["tick_ms"]["p50"].as_f64().unwrap());
    assert!(stats["cpu_s"].is_number() && stats["peak_rss_bytes"].is_number());
    let (status, head, text) = request(console.addr(), "GET", "/metrics");
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/plain; version=0.0.4"));
    assert!(text.contains("purview_tick_seconds_count{scene=\"meadow\",region=\"0\"}"));
    assert!(text.contains("purview_ghosts{scene=\"harbour\",region=\"7\"}"));
    assert!(text.ends_with("purview_sessions 3\n"));
}

#[test]
fn a_console_without_regions_is_alive_but_not_ready() {
    let directory = std::sync::Arc::new(purview::actor::directory::Directory::new(Vec::new()));
    let (regions, extra_metrics) = (Vec::new().into(), Vec::new());
    let (node, cluster) = ("n".into(), None);
    let (orders, others) = (None, None);
    let readiness = None;
    let state = ConsoleState {
        directory,
        regions,
        extra_metrics,
        node,
        cluster,
        orders,
        others,
        readiness,
    };
    let console = Console::start(state, ANY_PORT, &ConsoleSettings::default()).unwrap();
    assert_eq!(get(console.addr(), "/alive").0, 200);
    assert_eq!(get(console.addr(), "/ready").0, 503);
}

#[test]
fn a_taken_address_is_an_error_and_a_stopped_console_frees_its_own() {
    let world = FakeWorld::start();
    let console = world.console(ANY_PORT);
    let addr = console.addr();
    let directory = std::sync::Arc::new(purview::actor::directory::Directory::new(Vec::new()));
    let (regions, extra_metrics) = (Vec::new().into(), Vec::new());
    let (node, cluster) = ("n".into(), None);
    let (orders, others) = (None, None);
    let readiness = None;
    let state = ConsoleState {
        directory,
        regions,
        extra_metrics,
        node,
        cluster,
        orders,
        others,
        readiness,
    };
    let error = Console::start(state, addr, &ConsoleSettings::default()).unwrap_err();
    assert!(matches!(error, ConsoleError::Listen { .. }), "{error}");
    stop(console);
    assert!(TcpStream::connect(addr).is_err());
    stop(world.console(addr));
}

#[test]
fn the_page_may_load_nothing_from_elsewhere() {
    let console = FakeWorld::start().console(ANY_PORT);
    let (status, head, body) = request(console.addr(), "GET", "/");
    assert_eq!(status, 200);
    assert!(head.contains("content-security-policy: default-src 'none'"));
    assert!(head.contains("x-content-type-options: nosniff"));
    assert!(body.starts_with("<!doctype html>"));
}

/// Everything is drawn, and nothing went wrong on the way.
async fn until_drawn(page: &Page) {
    page.until(&format!("window.purview?.drawn === {MEADOW}")).await;
    page.until("window.purview.ghosts > 0 && window.purview.connected").await;
    assert_eq!(page.eval("window.purview.regions").await, json!(["R0", "R1", "R2", "R3"]));
}

/// A JavaScript expression: whether the camera has come to a player.
fn in_the_middle(id: u64) -> String {
    format!(
        "(() => {{ const p = window.purview.placeOf({id}); \
         const b = document.querySelector('[data-testid=map]').getBoundingClientRect(); \
         return p !== null && Math.hypot(p.x - b.x - b.width / 2, p.y - b.y - b.height / 2) < 25; }})()"
    )
}

#[test]
fn on_a_desktop_a_click_shows_whom_a_player_sees() {
    let console = FakeWorld::start().console(ANY_PORT);
    with_page(format!("http://{}", console.addr()), Screen::Desktop, async |page| {
        until_drawn(&page).await;
        page.until("document.querySelectorAll('[data-testid=region]').length === 4").await;
        page.until("document.querySelector('[data-testid=stat-players]')").await;
        page.picture("-overview").await;

        page.press_entity(SITTER).await;
        page.until(&format!("window.purview.player?.id === {SITTER}")).await;
        assert_eq!(page.text("player-region").await, "R0");
        assert_eq!(page.text("player-id").await, SITTER.to_string());
        assert_eq!(page.text("player-plane").await, "0");
        assert!(page.text("player-range").await.contains("90 m"));
        page.until(
            "document.querySelectorAll('[data-testid=view-list] button').length > 0 && \
             document.querySelector('[data-testid=view-count]').innerText === \
             `${window.purview.player.view.length} / 60`",
        )
        .await;
        page.until("window.purview.drawn < window.purview.entities").await;

        page.press_on("ghosts").await;
        page.until("window.purview.ghosts === 0").await;
        page.press_on("ghosts").await;

        page.eval("document.querySelector('[data-testid=view-list] button').click()").await;
        page.until(&format!("window.purview.player && window.purview.selected !== {SITTER}")).await;
        page.press_on("clear").await;
        page.until("window.purview.selected === null").await;
        page.assert_no_errors().await;
    });
}

#[test]
fn a_player_is_followed_across_a_border() {
    let console = FakeWorld::start().console(ANY_PORT);
    with_page(format!("http://{}", console.addr()), Screen::Desktop, async |page| {
        until_drawn(&page).await;
        page.eval(&format!("window.purview.select({WALKER})")).await;
        for region in ["R0", "R1", "R0"] {
            page.until(&format!("window.purview.player?.region_name === '{region}'")).await;
        }
        page.until(&in_the_middle(WALKER)).await;
        page.picture("").await;
        page.assert_no_errors().await;
    });
}

#[test]
fn the_page_asks_for_the_token_and_shows_all_once_it_has_it() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("console.token");
    let settings = ConsoleSettings { token_file: Some(file.clone()), ..Default::default() };
    let console = FakeWorld::start().console_with(ANY_PORT, &settings);
    let token = std::fs::read_to_string(&file).unwrap();
    with_page(format!("http://{}", console.addr()), Screen::Desktop, async |page| {
        page.until("!document.querySelector('[data-testid=access]').hidden").await;
        page.press_on("token").await;
        page.type_text(token.trim()).await;
        page.press_on("token-show").await;
        until_drawn(&page).await;
        page.until("document.querySelector('[data-testid=access]').hidden").await;
    });
}

/// The row of a view list, as text: rank, id, bond and distance.
const FIRST_ROW: &str =
    "[...document.querySelector('[data-testid=view-list]').rows[0].cells].map((c) => c.innerText)";

#[test]
fn two_players_are_told_why_they_see_each_other_or_not() {
    let console = FakeWorld::start().console(ANY_PORT);
    with_page(format!("http://{}", console.addr()), Screen::Desktop, async |page| {
        until_drawn(&page).await;
        page.press_entity(SITTER).await;
        page.until("document.querySelectorAll('[data-testid=view-list] button').length > 0").await;
        let row = page.eval(FIRST_ROW).await;
        assert_eq!((&row[0], &row[2]), (&json!("1"), &json!("–")), "{row}");
        assert!(row[3].as_str().unwrap().ends_with(" m"), "{row}");

        // From the list, somebody who is seen: a line joins the two.
        page.eval(
            "(() => { const key = document.querySelector('[data-testid=view-list] button'); \
             window.friend = Number(key.textContent); \
             key.dispatchEvent(new MouseEvent('click', { shiftKey: true, bubbles: true })); })()",
        )
        .await;
        page.until("window.purview.why?.seen && window.purview.other === window.friend").await;
        page.until("window.purview.joined").await;
        assert!(page.text("pair-words").await.contains("see each other: no bond, "));
        assert_eq!(page.eval("window.purview.selected").await, json!(SITTER));
        page.picture("-pair").await;

        // On the map: one who walks may be gone from under the pointer, so more than one try.
        page.until(&in_the_middle(SITTER)).await;
        page.eval("window.purview.compare(null)").await;
        page.shift(true).await;
        let begin = Instant::now();
        while page.eval("window.purview.other").await == Value::Null {
            assert!(begin.elapsed() < Duration::from_secs(20), "no click on the map compares");
            let at = page.eval("window.purview.placeOf(window.friend)").await;
            page.press(at["x"].as_f64().unwrap(), at["y"].as_f64().unwrap()).await;
        }
        page.shift(false).await;
        page.until("window.purview.why").await;
        assert_eq!(page.eval("window.purview.selected").await, json!(SITTER));

        // By keys alone, somebody who is not seen.
        page.eval("document.querySelector('[data-testid=map]').focus()").await;
        page.type_text("a").await;
        page.until("document.activeElement.dataset.testid === 'pair'").await;
        page.eval("document.activeElement.select()").await;
        page.type_text(&format!("{BELOW}\u{E007}")).await;
        page.until(&format!("window.purview.why?.b === {BELOW}")).await;
        page.until("!window.purview.joined").await;
        assert!(page.text("pair-words").await.contains("on plane 0 and 900 on plane 7"));
        page.type_text("\u{E00C}").await;
        page.until("window.purview.other === null").await;
        assert_eq!(page.text("pair-words").await, "");

        page.eval("window.purview.compare(424242)").await;
        page.until("window.purview.other === 424242").await;
        page.until(
            "document.querySelector('[data-testid=pair-words]').innerText.includes('No region has')",
        )
        .await;
        page.press_on("pair-clear").await;
        page.until("window.purview.other === null && window.purview.connected").await;
        page.assert_no_errors().await;
    });
}

#[test]
fn keys_alone_are_enough() {
    let console = FakeWorld::start().console(ANY_PORT);
    with_page(format!("http://{}", console.addr()), Screen::Desktop, async |page| {
        until_drawn(&page).await;
        let key = async |name: &str| {
            page.eval(&format!(
                "document.querySelector('[data-testid=map]').dispatchEvent(\
                 new KeyboardEvent('keydown', {{ key: '{name}', cancelable: true }}))"
            ))
            .await
        };
        // One who walks over a border is in no region's list for a moment.
        page.until(&format!(
            "window.purview.playerIds()[0] === {WALKER} && \
             document.querySelector('[data-testid=map]').dispatchEvent(\
             new KeyboardEvent('keydown', {{ key: 'n', cancelable: true }})) !== null"
        ))
        .await;
        page.until(&format!("window.purview.player?.id === {WALKER}")).await;
        key("n").await;
        page.until(&format!("window.purview.player?.id === {SITTER}")).await;
        key("Escape").await;
        page.until("window.purview.selected === null").await;
        key("0").await;
        page.until(&format!("window.purview.drawn === {MEADOW}")).await;
        key("g").await;
        page.until("window.purview.ghosts === 0").await;
        page.assert_no_errors().await;
    });
}

#[test]
fn another_scene_shows_ranges_by_patches() {
    let console = FakeWorld::start().console(ANY_PORT);
    with_page(format!("http://{}", console.addr()), Screen::Desktop, async |page| {
        until_drawn(&page).await;
        page.eval(
            "(() => { const s = document.querySelector('[data-testid=scene]'); \
             s.value = 'harbour'; s.dispatchEvent(new Event('change')); })()",
        )
        .await;
        page.until("window.purview.regions[0] === 'R4' && window.purview.drawn > 0").await;
        page.eval("window.purview.select(10002)").await;
        page.until("window.purview.player?.range.mode === 'patches'").await;
        assert_eq!(page.text("player-range").await, "full, 5 × 5 of 32 m");
        page.until(&in_the_middle(10002)).await;
        page.picture("-patches").await;
        // The user asks for a player of another scene: the page goes there.
        page.eval(&format!("window.purview.select({SITTER})")).await;
        page.until("window.purview.scene === 'meadow' && window.purview.drawn > 0").await;
        page.assert_no_errors().await;
    });
}

/// Colour and opacity of the page's canvas at a place of the world, metres.
async fn pixel(page: &Page, x: f64, z: f64) -> Vec<u64> {
    let pixel = format!(
        "(() => {{ const p = window.purview.pixelOf({x} * 100, {z} * 100); \
         return [...document.querySelector('[data-testid=map]').getContext('2d')\
         .getImageData(p.x, p.y, 1, 1).data]; }})()"
    );
    serde_json::from_value(page.eval(&pixel).await).unwrap()
}

/// Shows the harbour; everything of its terrain that is in view is drawn.
async fn show_harbour(page: &Page) {
    until_drawn(page).await;
    page.eval(
        "(() => { const s = document.querySelector('[data-testid=scene]'); \
         s.value = 'harbour'; s.dispatchEvent(new Event('change')); })()",
    )
    .await;
    page.until("window.purview.regions[0] === 'R4' && window.purview.drawn > 0").await;
    until_walls(page).await;
}

async fn until_walls(page: &Page) {
    let frames = page.eval("window.purview.frames").await;
    page.until(&format!(
        "window.purview.frames > {frames} && window.purview.terrain.shape && \
         window.purview.terrain.pieces > 0 && window.purview.terrain.waiting === 0"
    ))
    .await;
}

/// Looks at a place, metres, with so many pixels to a metre.
async fn look_at(page: &Page, x: f64, z: f64, scale: f64) {
    page.eval(&format!("window.purview.lookAt({x} * 100, {z} * 100, {scale} / 100)")).await;
    until_walls(page).await;
}

#[test]
fn what_is_blocked_is_drawn_at_every_zoom_and_can_be_switched_off() {
    let console = FakeWorld::start().console(ANY_PORT);
    let (water, rock) = (f64::from(world::WATER_M), f64::from(world::ROCK_M));
    with_page(format!("http://{}", console.addr()), Screen::Desktop, async |page| {
        show_harbour(&page).await;
        page.picture("-walls").await;
        // Without names, grid and ghosts there is nothing between a place and its ground.
        for switch in ["names", "grid", "ghosts"] {
            page.press_on(switch).await;
        }
        page.until("window.purview.ghosts === 0").await;
        // Nobody is ever in the water or beyond the rock.
        let places = |scale: f64| {
            [(water - 3.5 / scale, 40.5), (water + 3.5 / scale, 40.5), (rock + 0.5, rock + 0.5)]
        };
        for (scale, level) in [(0.3, 1), (0.9, 0), (6.0, 0), (40.0, 0)] {
            let mut told = Vec::new();
            for walls in [true, false] {
                let mut pixels = Vec::new();
                for (x, z) in places(scale) {
                    look_at(&page, x, z, scale).await;
                    pixels.push(pixel(&page, x, z).await);
                }
                told.push(pixels);
                if walls {
                    assert_eq!(page.eval("window.purview.terrain.level").await, json!(level));
                }
                page.press_on("walls").await;
            }
            let [with, without] = &told[..] else { unreachable!("on and off") };
            assert_eq!(with[1], without[1], "free ground is not drawn over, {scale}");
            for (place, name) in [(0, "water"), (2, "rock")] {
                let lighter = (0..3).all(|c| with[place][c] > without[place][c] + 10);
                // At a third of a pixel to a tile, one tile among its neighbours is faint.
                if place == 0 || scale > 1.0 {
                    assert!(
                        lighter,
                        "{name} at {scale}: {:?} over {:?}",
                        with[place], without[place]
                    );
                }
            }
        }
        page.assert_no_errors().await;
    });
}

#[test]
fn doors_are_drawn_as_they_are() {
    let world = FakeWorld::start();
    let console = world.console(ANY_PORT);
    with_page(format!("http://{}", console.addr()), Screen::Desktop, async |page| {
        show_harbour(&page).await;
        assert_eq!(
            page.eval("window.purview.terrain.doors").await,
            json!([{ "name": "gate", "open": false }, { "name": "bridge", "open": true }])
        );
        assert!(page.text("legend").await.contains("closed door"));
        for (scale, suffix) in [(0.3, "-doors-far"), (8.0, "-doors")] {
            look_at(&page, 202.0, 310.0, scale).await;
            let closed = pixel(&page, 202.0, 310.0).await;
            assert!(closed[0] > closed[1] + 50, "red: {closed:?}");
            world.open_gate(true);
            page.until("window.purview.terrain.doors[0].open").await;
            until_walls(&page).await;
            page.picture(suffix).await;
            let open = pixel(&page, 202.0, 310.0).await;
            assert!(open[1] > open[0] + 10, "green: {open:?}");
            look_at(&page, 202.0, 610.0, scale).await;
            let bridge = pixel(&page, 202.0, 610.0).await;
            assert!(bridge[1] > bridge[0] + 10, "green: {bridge:?}");
            world.open_gate(false);
            page.until("!window.purview.terrain.doors[0].open").await;
        }
        page.assert_no_errors().await;
    });
}

#[test]
fn a_scene_without_a_map_has_no_walls_to_switch() {
    let console = FakeWorld::start().console(ANY_PORT);
    with_page(format!("http://{}", console.addr()), Screen::Phone, async |page| {
        until_drawn(&page).await;
        let hidden = "document.querySelector('[data-testid=walls]').hidden";
        assert_eq!(page.eval(hidden).await, json!(true));
        assert!(!page.text("legend").await.contains("door"));
        show_harbour(&page).await;
        page.until(&format!("!{hidden}")).await;
        page.picture("-phone-walls").await;
        let overlap = "(() => { const box = (c) => document.querySelector(c).getBoundingClientRect(); \
                       return box('.switches').right - box('.zoom').left; })()";
        assert!(page.eval(overlap).await.as_f64().unwrap() < 0.0, "the switches have room");
        page.assert_no_errors().await;
    });
}

#[test]
fn on_a_phone_everything_fits_and_a_tap_selects() {
    let console = FakeWorld::start().console(ANY_PORT);
    with_page(format!("http://{}", console.addr()), Screen::Phone, async |page| {
        until_drawn(&page).await;
        assert_eq!(page.eval("[innerWidth, innerHeight]").await, json!([390, 844]));
        page.until("document.querySelector('[data-testid=stat-players]')").await;
        page.picture("-phone-overview").await;
        page.press_entity(SITTER).await;
        page.until(&format!("window.purview.player?.id === {SITTER}")).await;
        page.until("document.querySelectorAll('[data-testid=view-list] button').length > 0").await;
        page.until(&in_the_middle(SITTER)).await;
        page.picture("-phone").await;
        let too_wide = "[...document.querySelectorAll('body *')].filter((e) => \
             e.getBoundingClientRect().right > 390.5 && !e.closest('.unseen')).map((e) => e.outerHTML)";
        assert_eq!(page.eval(too_wide).await, json!([]));
        assert_eq!(page.eval("document.documentElement.scrollWidth").await, json!(390));
        page.assert_no_errors().await;
    });
}

#[test]
fn the_page_says_when_the_server_is_gone_and_recovers_by_itself() {
    let world = FakeWorld::start();
    let console = world.console(ANY_PORT);
    let addr = console.addr();
    with_page(format!("http://{addr}"), Screen::Desktop, async |page| {
        until_drawn(&page).await;
        console.stop().await;
        page.until("!document.querySelector('[data-testid=banner]').hidden").await;
        assert!(page.text("banner").await.contains("does not answer"));
        assert_eq!(page.eval("window.purview.connected").await, json!(false));
        let polls = page.eval("window.purview.polls").await;
        let console = world.console(addr);
        page.until("document.querySelector('[data-testid=banner]').hidden").await;
        page.until(&format!("window.purview.polls > {polls}")).await;
        until_drawn(&page).await;
        page.assert_no_errors().await;
        console.stop().await;
    });
}

#[test]
fn wheel_drag_and_pinch_move_the_map() {
    let console = FakeWorld::start().console(ANY_PORT);
    let url = format!("http://{}", console.addr());
    with_page(url.clone(), Screen::Desktop, async |page| {
        until_drawn(&page).await;
        let scale = page.eval("window.purview.scale").await;
        page.eval(
            "document.querySelector('[data-testid=map]').dispatchEvent(new WheelEvent('wheel', \
             { deltaY: -600, clientX: 300, clientY: 300, cancelable: true }))",
        )
        .await;
        page.until(&format!("window.purview.scale > {scale} * 1.2")).await;
        let before = page.eval(&format!("window.purview.placeOf({SITTER})")).await;
        page.drag(&[((400.0, 400.0), (520.0, 430.0))]).await;
        let after = page.eval(&format!("window.purview.placeOf({SITTER})")).await;
        for (axis, by) in [("x", 120.0), ("y", 30.0)] {
            let went = after[axis].as_f64().unwrap() - before[axis].as_f64().unwrap();
            assert!((went - by).abs() < 1.0, "{axis} went {went}, not {by}");
        }
        assert_eq!(page.eval("window.purview.selected").await, json!(null));
        page.assert_no_errors().await;
    });
    with_page(url, Screen::Phone, async |page| {
        until_drawn(&page).await;
        let scale = page.eval("window.purview.scale").await;
        page.drag(&[((180.0, 250.0), (100.0, 250.0)), ((220.0, 250.0), (300.0, 250.0))]).await;
        page.until(&format!("window.purview.scale > {scale} * 3")).await;
        assert_eq!(page.eval("window.purview.selected").await, json!(null));
        page.assert_no_errors().await;
    });
}
