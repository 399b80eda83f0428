//! Access to the console and its time limits: host names, tokens, deadlines, and the audit log, over real sockets
//! and, for commands, with a real cluster.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use purview_server::admin::paths;
use purview_server::config::{Config, ConsoleSettings};
use serde_json::Value;

use super::schema::{document, operation, wrong_with};
use super::world::{FakeWorld, SITTER};
use super::{ANY_PORT, request, request_bytes};
use crate::common::{self, ANY_PORTS, PATIENCE, cluster, http, wait_for};
use crate::end_to_end::process::{done, purview};

/// The status of a `GET` with these headers, one of which is `Host`.
fn status_as(addr: SocketAddr, path: &str, headers: &str) -> u16 {
    http(addr, &format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n")).0
}

#[test]
fn a_page_of_another_site_cannot_use_the_console_under_its_own_name() {
    let world = FakeWorld::start();
    let settings = ConsoleSettings { hosts: vec!["ops.internal".into()], ..Default::default() };
    let console = world.console_with(ANY_PORT, &settings);
    let (addr, port) = (console.addr(), console.addr().port());
    for path in ["/", "/metrics", "/alive", "/api/stats", "/api/nothing"] {
        let status = |host: &str| status_as(addr, path, &format!("Host: {host}\r\n"));
        assert_eq!(status("rebound.example"), 421, "{path}");
        assert_eq!(status(&format!("rebound.example:{port}")), 421, "{path}");
        for own in ["localhost", "127.0.0.1", "[::1]", "ops.internal"] {
            assert_ne!(status(&format!("{own}:{port}")), 421, "{path} at {own}");
        }
        assert_eq!(status_as(addr, path, ""), 400, "{path}");
    }
    let rebound = "http://rebound.example/alive";
    assert_eq!(status_as(addr, rebound, "Host: localhost\r\n"), 421);
    // Without the setting this name belongs to another site, too.
    let plain = world.console(ANY_PORT);
    assert_eq!(status_as(plain.addr(), "/alive", "Host: ops.internal\r\n"), 421);
}

#[test]
fn a_slow_client_is_disconnected_and_blocks_no_other() {
    let console = FakeWorld::start().console(ANY_PORT);
    let addr = console.addr();
    // More than the console serves at once. Some send nothing, some only the beginning of a request.
    let slow: Vec<TcpStream> = (0..300)
        .map(|i| {
            let mut stream = TcpStream::connect(addr).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let said = [&b""[..], b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "][i % 2];
            stream.write_all(said).unwrap();
            stream
        })
        .collect();
    assert_eq!(status_as(addr, "/alive", "Host: localhost\r\n"), 200);
    for mut stream in slow {
        let mut answer = Vec::new();
        // The connection ends, with or without an answer, or by a reset; only a timeout is wrong.
        if let Err(error) = stream.read_to_end(&mut answer) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
    }
}

/// A console with a token for each scope, and the tokens.
fn guarded(world: &FakeWorld, place: &Path) -> (purview_server::admin::Console, [String; 2]) {
    let files = ["read.token", "command.token"].map(|name| place.join(name));
    let [token_file, command_token_file] = files.clone().map(Some);
    let settings = ConsoleSettings { token_file, command_token_file, ..Default::default() };
    let console = world.console_with(ANY_PORT, &settings);
    let shows = files.map(|file| {
        let token = std::fs::read_to_string(file).unwrap();
        format!("Authorization: Bearer {}\r\n", token.trim())
    });
    (console, shows)
}

#[test]
fn the_api_requires_the_right_token_and_other_paths_none() {
    let place = tempfile::tempdir().unwrap();
    let world = FakeWorld::start();
    let (console, [read, command]) = guarded(&world, place.path());
    let (addr, all) = (console.addr(), document());
    for path in paths() {
        let asked = path.replace("{name}", "app.js").replace("{id}", &SITTER.to_string());
        let method = operation(&all, path).0.to_uppercase();
        let (is_api, is_command) = (path.starts_with("/api/"), method == "POST");
        for (shown, status) in [
            ("", if is_api { 401 } else { 200 }),
            (&read[..read.len() - 3], if is_api { 401 } else { 200 }),
            (&read, if is_command { 403 } else { 200 }),
            (&command, 200),
        ] {
            let more = format!("X-Test: 1\r\n{}", shown.trim_end());
            let (got, head, body) = request_bytes(addr, &method, &asked, &format!("{more}\r\n"));
            match status {
                200 => assert!(![401, 403, 405].contains(&got), "{path}: {got}"),
                status => {
                    assert_eq!(got, status, "{path}");
                    assert_eq!(status == 401, head.contains("www-authenticate: bearer"), "{head}");
                    let body: Value = serde_json::from_slice(&body).unwrap();
                    assert_eq!(wrong_with(&all, path, status, &body), Vec::<String>::new());
                }
            }
        }
    }
    assert_eq!(request(addr, "GET", "/api/nothing").0, 404);
    // A console that listens on all addresses requires a token by default.
    let anywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let open = world.console(anywhere);
    let here = SocketAddr::from(([127, 0, 0, 1], open.addr().port()));
    assert_eq!(request(here, "GET", "/api/stats").0, 401);
    assert_eq!(request(here, "GET", "/alive").0, 200);
}

#[test]
fn a_command_is_authorised_before_its_body_is_read() {
    let place = tempfile::tempdir().unwrap();
    let world = FakeWorld::start();
    let (guarded, [read, command]) = guarded(&world, place.path());
    let json = "Content-Type: application/json\r\n";
    // One console without a cluster, which would answer 404, and one without token files.
    let open = world.console(ANY_PORT);
    for (addr, shown, status) in
        [(open.addr(), "", 401), (guarded.addr(), "", 401), (guarded.addr(), &*read, 403)]
    {
        for path in ["/api/cluster/move", "/api/cluster/drain", "/api/cluster/map"] {
            // No body, a body that is no JSON, and a body that is never sent.
            for more in ["", json, "Content-Length: 999999999\r\n"] {
                let (got, _, _) = request_bytes(addr, "POST", path, &format!("{shown}{more}"));
                assert_eq!(got, status, "{path} {more:?}");
            }
        }
    }
    let as_command = |more: &str| {
        let more = format!("{command}{more}");
        request_bytes(guarded.addr(), "POST", "/api/cluster/drain", &more).0
    };
    assert_eq!(as_command(""), 415);
    assert_eq!(as_command(json), 400);
    assert_eq!(as_command(&format!("{json}Content-Length: 2\r\n\r\n{{}}")), 422);
    assert_eq!(as_command("Content-Length: 999999999\r\n"), 408, "the body never comes");
}

fn config(place: &Path) -> Config {
    let text = format!(
        "{ANY_PORTS}token_file = \"{0}/read.token\"\ncommand_token_file = \"{0}/command.token\"\n\
         [log]\nlevel = \"error\"\n\
         [[scene]]\nname = \"field\"\nwidth = \"256m\"\ndepth = \"256m\"\nland = \"64m\"\n\
         region = [4, 4]\npatch = \"16m\"\ntop_speed = \"20m/s\"\n",
        place.display()
    );
    Config::parse(&text).unwrap()
}

#[test]
fn every_command_is_logged_and_ctl_uses_the_right_token() {
    let place = tempfile::tempdir().unwrap();
    let config = config(place.path());
    let file = place.path().join("ctl.toml");
    std::fs::write(&file, config.to_toml()).unwrap();
    let cluster = cluster(&config, 1, 0);
    let node = &cluster.nodes()[0];
    let console = format!("http://{}", common::console(node));
    let ctl = |args: &[&str], token: Option<&str>| {
        let (at, file) = (["--console", &console, "--config"], [file.to_str().unwrap()]);
        let mut command = purview(&[&["ctl"], args, &at, &file].concat());
        let done = done(command.envs(token.map(|token| ("PURVIEW_TOKEN", token))));
        (done.code, done.stderr)
    };
    // With token files ctl uses the right one for each request; a command with the read token is refused.
    let [read, command] = ["read", "command"]
        .map(|name| std::fs::read_to_string(place.path().join(format!("{name}.token"))).unwrap());
    let (read, command) = (read.trim(), command.trim());
    wait_for("a whole cluster", || ctl(&["status"], None).0 == Some(0));
    let (code, told) = ctl(&["drain", "nobody"], None);
    assert!(code == Some(1) && told.contains("nobody"), "{told}");
    let (code, told) = ctl(&["drain", "node-1"], Some(read));
    assert!(code == Some(1) && told.contains("command token"), "{told}");
    assert_eq!(ctl(&["status"], Some(read)).0, Some(0));
    assert_eq!(ctl(&["status"], Some(command)).0, Some(0));
    let (code, told) = ctl(&["split", "R0"], Some(command));
    assert_eq!(code, Some(0), "{told}");

    let said = node.said();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains(" audit: ")).collect();
    let [unknown, denied, split] = lines[..] else { panic!("{lines:#?}") };
    let holds = |line: &str, parts: &[&str]| {
        parts.iter().for_each(|part| assert!(line.contains(part), "{part}: {line}"));
    };
    holds(unknown, &["caller=127.0.0.1:", "token=\"command\"", "command=\"/api/cluster/drain\""]);
    holds(unknown, &["order=\"{\\\"node\\\":\\\"nobody\\\"}\"", "status=404", "result=\"no node"]);
    holds(denied, &["WARN", "token=\"read\"", "/api/cluster/drain", "status=403"]);
    holds(split, &["\\\"op\\\":\\\"split\\\"", "status=202", "result=\"accepted\""]);
    assert!(!said.contains(read) && !said.contains(command), "a token is in the log");
}
