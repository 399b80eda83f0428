//! What operators rely on: health, metrics, and an orderly shutdown.

use std::io::Write;
use std::time::{Duration, Instant};

use purview::scene::Pos;
use purview::wire::CloseCode;
use purview_client::{Client, join_at};
use serde_json::Value;

use super::process::{Served, assert_clean, figure, run_lab};
use crate::common::{block_on, closed, http, wait_for};

/// Status and body of an answer of the console.
pub fn get(console: &str, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let (status, _, body) = http(console, &request);
    (status, String::from_utf8(body).unwrap())
}

/// A metric, summed over its labels.
pub fn metric(text: &str, name: &str) -> f64 {
    let of_name =
        |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
    let values: Vec<f64> = text
        .lines()
        .filter(of_name)
        .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(!values.is_empty(), "no metric {name}");
    values.iter().sum()
}

#[test]
fn metrics_and_health_match_the_report() {
    let server = Served::start(&[]);
    let console = server.console.clone();
    let url = server.ws.clone();
    let bots = std::thread::spawn(move || {
        run_lab(&["load", "walk", "--connect", &url, "--count", "40", "--for", "8s", "--json"])
    });
    let metrics = || get(&console, "/metrics").1;
    wait_for("40 bots are 40 players", || metric(&metrics(), "purview_players") >= 40.0);
    for path in ["/alive", "/ready"] {
        assert_eq!(get(&console, path).0, 200, "{path}");
    }
    assert!(metric(&metrics(), "purview_sessions_open") >= 40.0);
    let report = assert_clean(&bots.join().unwrap());
    let text = metrics();
    // A frame may be in flight when its client disconnects, so the server counts no fewer.
    assert!(metric(&text, "purview_frames_total") >= figure(&report, "/frames"), "{text}");
    assert!(metric(&text, "purview_handoffs_total") >= figure(&report, "/handoffs"), "{text}");
    assert!(metric(&text, "purview_updates_total") > 0.0);
    // One more: the connection that tested the server.
    assert_eq!(metric(&text, "purview_sessions_total"), 41.0);
    assert_eq!(metric(&text, "purview_frames_lost_total"), 0.0);
    // The regions hear that a connection ended some ticks after its client does.
    let players = || {
        let stats: Value = serde_json::from_str(&get(&console, "/api/stats").1).unwrap();
        stats["players"].as_u64().unwrap()
    };
    let left = Instant::now();
    wait_for("all have left", || players() == 0);
    assert!(left.elapsed() < Duration::from_secs(10), "before their grace period ends");
}

/// The capacity of a pipe without a reader, bytes.
const PIPE: usize = 65_536;

#[test]
fn ticks_go_on_while_the_log_has_no_reader() {
    let (unread, mut full) = std::io::pipe().unwrap();
    full.write_all(&[b'.'; PIPE]).unwrap();
    let server = Served::logging_to("trace", full);
    let ticks = || metric(&get(&server.console, "/metrics").1, "purview_tick_seconds_count");
    let bots = ["load", "walk", "--connect", &server.ws, "--count", "20", "--for", "2s", "--json"];
    assert_clean(&run_lab(&bots));
    let before = ticks();
    wait_for("ticks go on", || ticks() >= before + 40.0);
    assert_eq!(metric(&get(&server.console, "/metrics").1, "purview_log_lines_dropped_total"), 0.0);
    // The server ends although its last lines cannot be written.
    server.signal("TERM");
    assert!(server.ended().success());
    drop(unread);
}

/// A signal shuts the server down; clients are notified.
fn ends_in_order(signal: &str) {
    let server = Served::start(&[]);
    block_on(async {
        let mut client = Client::connect(&server.ws, &server.token).await.unwrap();
        client.join(join_at("meadow", Pos::ground(1_000, 1_000))).await.unwrap();
        server.signal(signal);
        let begin = Instant::now();
        let code = closed(&mut client).await;
        assert_eq!(code, Some(CloseCode::GoingAway));
        assert_eq!(u16::from(CloseCode::GoingAway), 1001);
        drop(client);
        assert_eq!(server.ended().code(), Some(0));
        assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
    });
}

#[test]
fn ctrl_c_and_sigterm_shut_the_server_down() {
    ["INT", "TERM"].into_iter().for_each(ends_in_order);
}

#[test]
fn a_server_with_its_own_bots_shuts_down() {
    let server = Served::with_bots("30", &[]);
    std::thread::sleep(Duration::from_millis(500));
    server.signal("TERM");
    let begin = Instant::now();
    assert_eq!(server.ended().code(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
}
