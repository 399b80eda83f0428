//! The command that makes certificates, and configurations without all of them.

use super::*;
use crate::end_to_end::process::{done, purview};

/// Runs `purview certs`: exit code, output and errors.
fn certs(folder: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let done = done(purview(&["certs"]).arg(folder).args(more));
    (done.code, done.stdout, done.stderr)
}

#[test]
fn the_command_creates_certificates_and_overwrites_none() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("certs");
    let run = |more: &[&str]| certs(&folder, more);
    let (code, _, stderr) = run(&["--name", "no host"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("\"no host\"") && !folder.exists(), "{stderr}");
    let (code, stdout, stderr) = run(&["--name", "node-1.internal", "--json"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let told: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(told["files"].as_array().unwrap().len(), 10);
    assert!(told["names"].as_array().unwrap().iter().any(|name| name == "node-1.internal"));
    let (code, stdout, stderr) = run(&[]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("is there already and is not overwritten"), "{stderr}");
    let (code, _, stderr) = run(&["--days", "0"]);
    assert_eq!(code, Some(2), "{stderr}");
    // The printed configuration is valid, and its files match.
    let (_, text, _) = certs(&place.path().join("other"), &[]);
    let section = &text[text.find("[cluster.tls]").unwrap()..];
    let config = format!("[cluster]\netcd = \"https://127.0.0.1:2379\"\n{section}");
    Tls::load(&Config::parse(&config).unwrap().cluster.tls.unwrap()).unwrap();
}

#[test]
fn a_configuration_with_partial_tls_is_refused() {
    let errors = |text: &str| Config::parse(text).unwrap_err().to_string();
    let half = errors("[cluster]\netcd = \"https://h:1\"\n[cluster.tls]\nkey = \"a\"\n");
    assert!(half.contains("cluster.tls.certificate: is missing"), "{half}");
    let all = "[cluster.tls]\ncertificate = \"a\"\nkey = \"b\"\nauthority = \"c\"\n";
    let plain = errors(all);
    assert!(plain.contains("cluster.etcd") && plain.contains("https://"), "{plain}");
    let mixed = errors(&format!("[cluster]\netcd = \"https://h:1, http://h:2\"\n{all}"));
    assert!(mixed.contains("must begin with https://"), "{mixed}");
    let without = errors("[cluster]\netcd = \"https://h:1\"\n");
    assert!(without.contains("without [cluster.tls]"), "{without}");
    let whole = format!("[cluster]\netcd = \"https://h:1\"\n{all}");
    let config = Config::parse(&whole).unwrap();
    assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
}

#[test]
fn the_command_makes_a_certificate_for_each_named_process_and_adds_more_later() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("certs");
    let run = |more: &[&str]| certs(&folder, more);
    let own = ["--cluster", "prod", "--node", "node-1", "--node", "node-2", "--gateway", "edge-1"];
    let (code, stdout, stderr) = run(&own);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("name = \"prod\"\nnode = \"node-1\""), "{stdout}");
    let named = |process: &str| {
        let file = folder.join(format!("{process}.pem"));
        let output = Command::new("openssl")
            .args(["x509", "-noout", "-ext", "subjectAltName", "-in"])
            .arg(&file)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(named("node-1").contains("URI:purview://prod/node/node-1"), "{}", named("node-1"));
    assert!(named("node-2").contains("URI:purview://prod/node/node-2"));
    assert!(named("edge-1").contains("URI:purview://prod/gateway/edge-1"));
    let authority = std::fs::read(folder.join("ca.pem")).unwrap();
    // The authority of the folder signs for a process that comes later.
    let (code, _, stderr) = run(&["--more", "--cluster", "prod", "--node", "node-3"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(named("node-3").contains("URI:purview://prod/node/node-3"));
    assert_eq!(std::fs::read(folder.join("ca.pem")).unwrap(), authority);
    let verified = Command::new("openssl")
        .args(["verify", "-CAfile"])
        .args([folder.join("ca.pem"), folder.join("node-3.pem")])
        .output()
        .unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    // No process gets a second certificate, and an empty folder has no authority to use.
    let (code, _, stderr) = run(&["--more", "--cluster", "prod", "--node", "node-1"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("node-1") && stderr.contains("not overwritten"), "{stderr}");
    let (code, _, stderr) = certs(&place.path().join("other"), &["--more"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("ca."), "{stderr}");
}
