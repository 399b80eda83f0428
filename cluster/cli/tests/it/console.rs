//! The console over simulated regions: its JSON, metrics and health over HTTP (`api`), and its page in headless Chromium
//! (`page`, `terrain`).

mod api;
pub mod browser;
mod contract;
mod guard;
mod https;
mod metrics;
mod page;
pub mod schema;
mod schemathesis;
mod terrain;
mod world;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use purview_server::admin::Console;
use serde_json::Value;

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Status, headers (lower case) and body of a response; `more` are headers of the request.
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

/// As [`request_bytes`], for a text body.
fn request(addr: SocketAddr, method: &str, path: &str) -> (u16, String, String) {
    let (status, head, body) = request_bytes(addr, method, path, "");
    (status, head, String::from_utf8(body).unwrap())
}

fn get(addr: SocketAddr, path: &str) -> (u16, Value) {
    let (status, _, body) = request(addr, "GET", path);
    (status, serde_json::from_str(&body).unwrap())
}

/// Repeats the request until the response has this status.
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

/// Repeats the request until the answer satisfies `holds`: regions answer one after another, and an entity may cross
/// their border in between.
fn get_until_so(addr: SocketAddr, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let begin = Instant::now();
    loop {
        let body = get_until(addr, path, 200);
        if holds(&body) {
            return body;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{path}: {body}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn stop(console: Console) {
    futures::executor::block_on(console.stop());
}
