//! The console by HTTPS: `purview ctl` believes the authority that it is given, and no other.

use std::process::{Command, Output};

use purview_cluster::config::{CertificateSettings, ConsoleSettings};
use purview_cluster::tls::make::make;

use super::world::{FakeWorld, SITTER};
use super::{ANY_PORT, request_bytes};

fn entity(url: &str, more: &[&str]) -> Output {
    let mut ctl = Command::new(env!("CARGO_BIN_EXE_purview"));
    let id = SITTER.to_string();
    ctl.args(["ctl", "entity", &id, "--console", url]).args(more).output().expect("purview runs")
}

#[test]
fn with_a_certificate_the_console_answers_by_https_alone() {
    let place = tempfile::tempdir().unwrap();
    let [ours, others] = ["ours", "others"].map(|name| {
        let folder = place.path().join(name);
        make(&folder, &["localhost".into(), "127.0.0.1".into()], 1).unwrap();
        folder
    });
    let (certificate, key) = (ours.join("gateway.pem"), ours.join("gateway.key"));
    let tls = Some(CertificateSettings { certificate, key });
    let world = FakeWorld::start();
    let console = world.console_with(ANY_PORT, &ConsoleSettings { tls, ..Default::default() });
    let url = format!("https://localhost:{}", console.addr().port());
    let authority = |folder: &std::path::Path| folder.join("ca.pem").to_str().unwrap().to_owned();

    let told = entity(&url, &["--ca", &authority(&ours)]);
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success() && text.contains(&SITTER.to_string()), "{told:?}");
    for more in [&["--ca", &authority(&others)][..], &[]] {
        let refused = entity(&url, more);
        assert!(!refused.status.success() && refused.stdout.is_empty(), "{refused:?}");
    }
    let plain = std::panic::catch_unwind(|| request_bytes(console.addr(), "GET", "/alive", ""));
    assert!(plain.is_err(), "it answers in plain text");
}
