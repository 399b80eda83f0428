//! `purview ctl` against a running server with real clients.

use std::io::{Read, Write};
use std::net::TcpListener;

use purview::scene::{Plane, Pos};
use purview::wire::client::Join;
use purview_client::{Client, Event, join_at};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::operations::get;
use super::process::{Done, Served, run};
use crate::common::{runtime, try_for};

/// Clients that stand still. They disconnect when this value is dropped.
struct Crowd {
    ids: Vec<u64>,
    _clients: Runtime,
}

impl Crowd {
    /// One client at each of these planes and positions, centimetres.
    fn of(server: &Served, places: &[(i32, i32, i32)]) -> Crowd {
        let runtime = runtime();
        let ids = runtime.block_on(async {
            let mut ids = Vec::new();
            for (plane, x, z) in places {
                let mut client = Client::connect(&server.ws, &server.token).await.unwrap();
                let join = join_at("meadow", Pos::ground(*x, *z));
                let join = Join { plane: Some(Plane(*plane)), ..join };
                ids.push(client.join(join).await.unwrap().id.0);
                tokio::spawn(async move {
                    while !matches!(client.next().await, Ok(Event::Closed { .. }) | Err(_)) {}
                });
            }
            ids
        });
        Crowd { ids, _clients: runtime }
    }
}

/// Runs `purview ctl why` with the server's console.
fn why(server: &Served, a: u64, b: u64, more: &[&str]) -> Done {
    let (a, b, url) = (a.to_string(), b.to_string(), format!("http://{}", server.console));
    run(&[&["ctl", "why", &a, &b, "--console", &url], more].concat())
}

/// Repeats the command until it prints these words: the views need a moment.
fn says(server: &Served, (a, b): (u64, u64), code: i32, words: &[&str]) {
    try_for(&format!("{code}, {words:?}"), || {
        let done = why(server, a, b, &[]);
        let told = words.iter().all(|word| done.stdout.contains(word));
        if told && done.code == Some(code) && done.stderr.is_empty() { Ok(()) } else { Err(done) }
    });
}

#[test]
fn why_names_the_rule_for_every_pair() {
    let server = Served::start(&["--set", "scene.0.view_cap=1"]);
    // The first two stand on the two sides of a border.
    let places = [
        (0, 12_700, 5_000),
        (0, 12_900, 5_000),
        (0, 13_200, 5_000),
        (0, 30_000, 20_000),
        (1, 12_700, 5_000),
        // Two beside all others.
        (0, 5_000, 5_000),
        (0, 5_300, 5_400),
    ];
    let crowd = Crowd::of(&server, &places);
    let [a, b, c, far, below, one, other] = crowd.ids[..] else { panic!("{:?}", crowd.ids) };

    let seen = format!("{a} and {b} see each other: no bond, 2 m apart.");
    let rank = format!("{b} is number 1 of 1 on the view list of {a}, the best first");
    says(&server, (a, b), 0, &[&seen, &rank]);
    let head = format!("{b} and {c} do not see each other though they are in range: no bond, 3 m");
    let kept = format!(
        "The view list of {b} is full (1), and it prefers every player on it, even {a} (no bond, 2 m)."
    );
    says(&server, (b, c), 3, &[&head, &kept, &format!("{c} would see {b}.")]);
    let out = format!("{a} and {far} are out of range: 228.97 m apart");
    says(
        &server,
        (a, far),
        3,
        &[&out, "come into range of each other at 40 m (and leave it beyond 44 m)"],
    );
    says(&server, (a, below), 3, &[&format!("{a} is on plane 0 and {below} on plane 1: ")]);
    says(&server, (a, a), 3, &["one and the same entity"]);

    let (_, entities) = get(&server.console, "/api/entities?scene=meadow");
    let entities: Value = serde_json::from_str(&entities).unwrap();
    let beast = entities["entities"].as_array().unwrap().iter().find(|e| e[1] != json!(0));
    let beast = beast.expect("there are beasts")[0].as_u64().unwrap();
    says(&server, (a, beast), 3, &[&format!("{beast} is of kind "), "players only"]);

    let done = why(&server, b, c, &["--json"]);
    let told: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((done.code, &told["why"], &told["seen"]), (Some(3), &json!("full"), &json!(false)));
    assert_eq!(told["stands"][0]["worst"]["id"], json!(a));
    why_finds_the_console_by_the_configuration(&server, one, other);
    an_unknown_id_is_an_error_with_its_reason(&server, a);
}

/// Without a flag for the console.
fn why_finds_the_console_by_the_configuration(server: &Served, a: u64, b: u64) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("purview.toml");
    std::fs::write(&file, format!("[console]\nlisten = {:?}\n", server.console)).unwrap();
    says(server, (a, b), 0, &["5 m apart"]);
    let [one, other] = [a, b].map(|id| id.to_string());
    let done = run(&["ctl", "why", &one, &other, "--config", file.to_str().unwrap()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.starts_with(&format!("{a} and {b} see each other")), "{done:?}");
}

fn an_unknown_id_is_an_error_with_its_reason(server: &Served, known: u64) {
    for done in [why(server, known, 424_242, &[]), why(server, 424_242, 1, &["--json"])] {
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
        assert!(
            done.stderr.starts_with("error: no region has an entity 424242; expected "),
            "{done:?}"
        );
    }
}

#[test]
fn a_missing_console_is_one_error() {
    let failed = |console: &str| {
        let done = run(&["ctl", "why", "1", "2", "--console", console]);
        assert_eq!((done.code, done.stderr.lines().count()), (Some(1), 1), "{done:?}");
        done.stderr
    };
    let refused = failed("http://127.0.0.1:1");
    assert!(
        refused.contains("http://127.0.0.1:1 does not answer: Connection refused"),
        "{refused}"
    );
    assert!(refused.contains("with --console URL"), "{refused}");
    assert!(failed("ftp://127.0.0.1:1").contains("write http://host:port or https://host:port"));
    let off = run(&["ctl", "why", "1", "2", "--set", "console.listen=off"]);
    assert_eq!(off.code, Some(1), "{off:?}");
    assert!(off.stderr.contains("no console to ask"), "{off:?}");
}

#[test]
fn a_server_that_is_no_console_is_a_different_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let stranger = std::thread::spawn(move || {
        for body in ["<p>hello</p>", "{}"] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 1_024];
            let n = stream.read(&mut asked).unwrap();
            assert!(asked[..n].starts_with(b"GET /api/why?a=1&b=2 HTTP/1.1\r\n"));
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length:";
            write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
        }
    });
    for _ in 0..2 {
        let done = run(&["ctl", "why", "1", "2", "--console", &url]);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.stderr.contains("not as the console of a Purview server does"), "{done:?}");
    }
    stranger.join().unwrap();
}
