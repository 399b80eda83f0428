//! What a new user types and what goes wrong: help, errors with the legal values, exit codes.

use std::net::TcpListener;

use purview::actor::player::Planes;
use purview::scene::Plane;
use purview_server::gateway::Tokens;
use purview_server::gateway::token::Rules;
use purview_server::gateway::token::keys::Files;

use super::process::{Done, Served, run, run_lab};

/// Asserts how a run ended, and that standard error contains these words and no internal types.
fn assert_says(done: &Done, code: i32, words: &[&str]) {
    assert_eq!(done.code, Some(code), "{done:?}");
    for word in words {
        assert!(done.stderr.contains(word), "{word:?} is not said: {done:?}");
    }
    assert!(!done.stderr.contains("panicked"), "{done:?}");
}

#[test]
fn every_command_has_a_help_text() {
    let has_help = |run: fn(&[&str]) -> Done, command: &str| {
        let done = run(&command.split(' ').chain(["--help"]).collect::<Vec<_>>());
        assert_says(&done, 0, &[]);
        assert!(done.stdout.contains("Usage:"), "{done:?}");
    };
    for command in ["check", "dev", "node", "token", "ctl why", "ctl context add"] {
        has_help(run, command);
    }
    for command in ["load walk", "load replay", "load cheat", "sim", "bench scene"] {
        has_help(run_lab, command);
    }
    let done = run(&["--help"]);
    assert!(done.stdout.contains("Exit codes"), "{done:?}");
}

#[test]
fn a_wrong_flag_is_an_error_that_names_the_legal_values() {
    let cases: [(&[&str], &str); 5] = [
        (&["dev", "--bot", "3"], "--bots"),
        (&["dev", "--for", "5"], "needs a unit"),
        (&["node", "--role", "king"], "regions, gateway, all"),
        (&["ctl", "why", "17"], "<B>"),
        (&["ctl", "why", "17", "bob"], "invalid digit"),
    ];
    for (args, word) in cases {
        assert_says(&run(args), 2, &[word]);
    }
    let cases: [(&[&str], &str); 4] = [
        (&["load", "replay", "x.csv", "--speed", "0"], "a number above 0"),
        (&["load", "walk", "--pattern", "fly"], "walk, crowd, border, teleport"),
        (&["load", "walk", "--nodes", "0"], "1..=64"),
        (&["sim", "--for", "5"], "needs a unit"),
    ];
    for (args, word) in cases {
        assert_says(&run_lab(args), 2, &[word]);
    }
}

#[test]
fn a_missing_file_is_named_once_with_its_reason() {
    let done = run_lab(&["load", "replay", "/no/such.csv"]);
    assert_says(&done, 1, &["error: /no/such.csv: No such file or directory"]);
    assert_eq!(done.stderr.matches("No such file").count(), 1, "{done:?}");
    assert_says(&run(&["dev", "--config", "/no/such.toml"]), 1, &["/no/such.toml: cannot be read"]);
    let args = ["load", "walk", "--connect", "ws://127.0.0.1:1/", "--token-file", "/no/token"];
    assert_says(&run_lab(&args), 1, &["/no/token cannot be read: No such file"]);
}

#[test]
fn a_scene_that_judges_moves_or_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = super::trace::plain(folder.path(), true);
    let file = file.to_str().unwrap();
    let scene = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/scenes/dev.toml");
    let done = run_lab(&["load", "replay", file, "--config", scene]);
    assert_says(&done, 1, &["scene \"meadow\" judges moves", "scene.0.moves = \"trusted\""]);
    let server = Served::start(&[]);
    let done = run_lab(&["load", "replay", file, "--speed", "50", "--connect", &server.ws]);
    assert_says(&done, 1, &[]);
    assert!(done.stdout.contains("a scene that trusts positions"), "{done:?}");
    // A server without the scene admits no client, and names it.
    let walk = ["load", "walk", "--connect", &server.ws, "--count", "2", "--for", "1s"];
    let done = run_lab(&[&walk[..], &["--scene", "moon"]].concat());
    assert_says(&done, 1, &[]);
    let mut lines = done.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert!(lines.any(|words| words == ["not_joined", "2"]), "{done:?}");
    assert!(done.stdout.contains("scene"), "{done:?}");
}

#[test]
fn an_invalid_recording_is_an_error_with_line_and_legal_content() {
    let done = run_lab(&["load", "replay", env!("CARGO_MANIFEST_DIR").to_owned().as_str()]);
    assert_says(&done, 1, &["directory"]);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    assert_says(
        &run_lab(&["load", "replay", file]),
        1,
        &["line 1", "expected the header t_s,id,x_m,z_m"],
    );
}

#[test]
fn a_used_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let set = format!("gateway.ws={addr}");
    let args = ["dev", "--bots", "0", "--for", "1s", "--headless", "--set", &set];
    let done = run(&args);
    assert_says(&done, 1, &[&format!("cannot listen on {addr}: Address already in use")]);
    assert_eq!(done.stderr.matches("already in use").count(), 1, "{done:?}");
}

#[test]
fn a_missing_server_is_one_error() {
    let done = run_lab(&["load", "walk", "--connect", "ws://127.0.0.1:1/", "--for", "1s"]);
    assert_says(&done, 1, &["ws://127.0.0.1:1/ does not accept a client", "refused"]);
    assert_eq!(done.stderr.lines().count(), 1, "{done:?}");
    let done = run_lab(&["load", "walk", "--connect", "http://127.0.0.1:1/", "--for", "1s"]);
    assert_says(&done, 1, &["want ws://host:port/, wss://host:port/, tcp://host:port"]);
}

#[test]
fn a_foreign_token_is_one_error() {
    let folder = tempfile::tempdir().unwrap();
    let (secret, token) = (folder.path().join("secret"), folder.path().join("token"));
    std::fs::write(&secret, "0123456789abcdef0123456789abcdef").unwrap();
    std::fs::write(&token, "not.a.token").unwrap();
    let set = format!("token.secret_file={}", secret.display());
    let server = Served::start(&["--set", &set]);
    let args = ["load", "walk", "--connect", &server.ws, "--for", "1s"];
    assert_says(&run_lab(&args), 1, &["does not accept a client", "4002"]);
    let with_token = [&args[..], &["--token-file", token.to_str().unwrap()]].concat();
    assert_says(&run_lab(&with_token), 1, &["does not accept a client", "4002"]);
    std::fs::write(&token, &server.token).unwrap();
    let done = run_lab(&[&with_token[..], &["--count", "2"]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn a_token_admits_a_client_for_its_lifetime() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "0123456789abcdef0123456789abcdef").unwrap();
    let set = format!("token.secret_file={}", secret.display());
    let planes = ["--scene", "meadow", "--plane", "7", "--plane", "-5"];
    let issued = run(&[&["token", "ada", "--for", "1h", "--set", &set][..], &planes].concat());
    assert_eq!(issued.code, Some(0), "{issued:?}");
    let files = Files { secret: Some(secret), set: None };
    let tokens = Tokens::of_files(files, Rules::default()).unwrap();
    let login = tokens.verify(issued.stdout.trim()).unwrap();
    assert_eq!(login.subject, "ada");
    let planes = [7, -5].map(|plane| ("meadow".to_owned(), Plane(plane)));
    assert_eq!(login.planes, Planes::Listed(planes.to_vec()));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let left = login.expires_s.unwrap().saturating_sub(now.as_secs());
    assert!((3_000..=3_600).contains(&left), "{left} s");
    let server = Served::start(&["--set", &set]);
    let login = tokens.verify(&server.token).unwrap();
    assert!(login.expires_s.is_some(), "what dev prints expires, too");
    assert_says(&run(&["token", "ada"]), 2, &["--for"]);
    let nowhere = ["token", "ada", "--for", "1h", "--scene", "moon", "--plane", "1"];
    assert_says(&run(&nowhere), 1, &["no such scene", "\"meadow\""]);
    let public = format!("token.keys_file={}", folder.path().join("no.json").display());
    assert_says(&run(&["token", "ada", "--for", "1h", "--set", &public]), 1, &["token.keys_file"]);
}
