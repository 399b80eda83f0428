//! The page's files, scenes and tokens.

use purview::wire::CloseCode;
use purview_client::{Client, join};
use serde_json::Value;

use super::{server, small_meadow, url};
use crate::common::{closed, http};

/// Status, head (lower case) and body.
fn ask(url: &str, request: &str, more: &str, body: &str) -> (u16, String, String) {
    let (host, length) = (host(url), body.len());
    let head = format!("{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    let request = format!("{head}Content-Length: {length}\r\n{more}\r\n{body}");
    let (status, head, body) = http(host, &request);
    (status, head, String::from_utf8(body).unwrap())
}

fn host(url: &str) -> &str {
    url.strip_prefix("http://").unwrap().split('/').next().unwrap()
}

fn get(url: &str, path: &str) -> (u16, String, String) {
    ask(url, &format!("GET {path}"), "", "")
}

/// Asks for a token as the page does.
fn token(url: &str, body: &str) -> (u16, Value) {
    let origin = url.strip_suffix("/play").unwrap();
    let more = format!("Origin: {origin}\r\n");
    let (status, _, body) = ask(url, "POST /play/token", &more, body);
    (status, serde_json::from_str(&body).unwrap())
}

#[test]
fn the_page_and_its_files_are_served_and_may_connect_to_the_gateway_only() {
    let server = server(small_meadow(), 30);
    let url = url(&server);
    let (status, head, body) = get(&url, "/play");
    assert_eq!((status, body.starts_with("<!doctype html>")), (200, true));
    let gateway = server.reach().ws_url().unwrap();
    let policy = format!("connect-src 'self' {gateway};");
    assert!(head.contains(&policy), "{head}");
    for script in ["assets/main.js", "client/index.js", "client/display/index.js"] {
        let (status, head, _) = get(&url, &format!("/play/{script}"));
        assert!(status == 200 && head.contains("text/javascript"), "{script}: {status} {head}");
    }
    assert_eq!(get(&url, "/play/assets/none.js").0, 404);
    assert_eq!(get(&url, "/api/scenes").0, 404, "this is not the console");
    let (_, _, scenes) = get(&url, "/play/scenes");
    let scenes: Value = serde_json::from_str(&scenes).unwrap();
    let meadow = &scenes["scenes"][0];
    assert_eq!(
        (&scenes["join"], &meadow["regions"][3]["owner"]),
        (&"meadow".into(), &"local".into())
    );
    assert_eq!(meadow["kinds"][1]["properties"][0]["name"], "hp");
    let kinds = meadow["kinds"].to_string();
    assert!(!kinds.contains("taken") && !kinds.contains("minted"), "{kinds}");
}

#[tokio::test]
async fn a_visitor_joins_with_the_token_of_the_page_and_stays_the_same() {
    let server = server(small_meadow(), 30);
    let url = url(&server);
    let (status, given) = token(&url, "");
    assert_eq!(status, 200);
    assert_eq!(given["gateway"], server.reach().ws_url().unwrap());
    let text = given["token"].as_str().unwrap();
    let mut client = Client::connect(given["gateway"].as_str().unwrap(), text).await.unwrap();
    let first = client.join(join("meadow")).await.unwrap();
    // The same visitor joins anew: the older session is closed, as of every subject.
    let (_, again) = token(&url, &serde_json::json!({ "token": text }).to_string());
    let second = again["token"].as_str().unwrap();
    let mut newer = Client::connect(given["gateway"].as_str().unwrap(), second).await.unwrap();
    newer.join(join("meadow")).await.unwrap();
    let closed = closed(&mut client).await;
    assert_eq!(closed, Some(CloseCode::Replaced), "entity {}", first.id);
}

#[test]
fn tokens_are_for_the_own_page_and_limited_by_address() {
    let server = server(small_meadow(), 3);
    let url = url(&server);
    let refused = |origin: &str| ask(&url, "POST /play/token", origin, "").0;
    assert_eq!(refused(""), 403, "a program without an origin");
    assert_eq!(refused("Origin: http://evil.example\r\n"), 403);
    assert_eq!(token(&url, "{\"token\": 7}").0, 400);
    let statuses: Vec<u16> = (0..4).map(|_| token(&url, "").0).collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
    let request = "GET /play HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(http(host(&url), request).0, 421, "a page of another site");
}
