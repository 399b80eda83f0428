//! The console over simulated regions: its JSON, metrics and health over HTTP (`api`), and its page in headless Chromium
//! (`page`, `terrain`).

mod api;
pub mod browser;
mod contract;
mod guard;
mod https;
pub mod metrics;
mod page;
pub mod schema;
mod schemathesis;
mod terrain;
mod world;

use std::net::{Ipv4Addr, SocketAddr};

use purview_server::admin::Console;
use serde_json::Value;

use crate::common::{http, try_for};

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Status, headers (lower case) and body of a response; `more` are headers of the request.
fn request_bytes(addr: SocketAddr, method: &str, path: &str, more: &str) -> (u16, String, Vec<u8>) {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    http(addr, &format!("{head}{more}\r\n"))
}

/// As [`request_bytes`], for a text body.
pub fn request(addr: SocketAddr, method: &str, path: &str) -> (u16, String, String) {
    let (status, head, body) = request_bytes(addr, method, path, "");
    (status, head, String::from_utf8(body).unwrap())
}

fn get(addr: SocketAddr, path: &str) -> (u16, Value) {
    let (status, _, body) = request(addr, "GET", path);
    (status, serde_json::from_str(&body).unwrap())
}

/// Repeats the request until the response has this status.
fn get_until(addr: SocketAddr, path: &str, wanted: u16) -> Value {
    try_for(path, || {
        let (status, body) = get(addr, path);
        if status == wanted { Ok(body) } else { Err((status, body)) }
    })
}

/// Repeats the request until the answer satisfies `holds`: regions answer one after another, and an entity may cross
/// their border in between.
fn get_until_so(addr: SocketAddr, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
    try_for(path, || {
        let body = get_until(addr, path, 200);
        if holds(&body) { Ok(body) } else { Err(body) }
    })
}

fn stop(console: Console) {
    futures::executor::block_on(console.stop());
}
