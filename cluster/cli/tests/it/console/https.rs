//! The console over HTTPS: `purview ctl` trusts the given authority and no other.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use purview_server::config::ConsoleSettings;

use super::ANY_PORT;
use super::world::{FakeWorld, SITTER};
use crate::end_to_end::process::{Done, run};
use crate::tls::Authority;

fn entity(url: &str, more: &[&str]) -> Done {
    run(&[&["ctl", "find", &SITTER.to_string(), "--console", url], more].concat())
}

#[test]
fn a_console_with_a_certificate_serves_https_only() {
    let (ours, others) = (Authority::here(), Authority::here());
    let tls = Some(ours.server());
    let world = FakeWorld::start();
    let console = world.console_with(ANY_PORT, &ConsoleSettings { tls, ..Default::default() });
    let url = format!("https://localhost:{}", console.addr().port());
    let authority = |of: &Authority| of.file("ca.pem").to_str().unwrap().to_owned();

    let told = entity(&url, &["--ca", &authority(&ours)]);
    assert!(told.code == Some(0) && told.stdout.contains(&SITTER.to_string()), "{told:?}");
    for more in [&["--ca", &authority(&others)][..], &[]] {
        let refused = entity(&url, more);
        assert!(refused.code != Some(0) && refused.stdout.is_empty(), "{refused:?}");
    }
    let mut plain = TcpStream::connect(console.addr()).unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    plain.write_all(b"GET /alive HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // Either end may close first; at most a TLS alert arrives.
    let _reset = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "it answers in plain text");
}
