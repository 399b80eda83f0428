//! Nodes and gateways as separate processes, with a real etcd: clients see what they see on a single process.

mod down;
mod game;
mod hunt;
mod long_game;

use std::path::{Path, PathBuf};

use purview_server::gateway::token::random_secret;

use super::process::{FREE_PORTS, assert_clean, figure, run, run_lab};

#[test]
fn players_who_walk_across_three_nodes_see_what_they_see_on_one() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/traces");
    let file = PathBuf::from(folder).join("bottleneck_hermes_304.csv.gz");
    if !file.exists() {
        println!("skipped: no {}", file.display());
        return;
    }
    let nodes = ["--engine", "etcd", "--nodes", "3"];
    let played = ["load", "replay", file.to_str().unwrap(), "--speed", "4", "--json"];
    let done = run_lab(&[&played[..], &nodes[..]].concat());
    let report = assert_clean(&done);
    assert_eq!(report["players"], 304);
    assert!(figure(&report, "/handoffs") > 500.0, "{report}");
    assert!(done.stderr.contains("node-3"), "{done:?}");
}

#[test]
fn a_node_without_its_etcd_names_what_is_missing() {
    let unused = "cluster.etcd=http://127.0.0.1:1";
    let folder = tempfile::tempdir().unwrap();
    let secret = secret_in(folder.path());
    let any = "cluster.listen=127.0.0.1:0";
    let patience = "cluster.patience=1s";
    let done = run(&["node", "--set", unused, "--set", any, "--set", &secret, "--set", patience]);
    assert_eq!(done.code, Some(1));
    assert!(done.stderr.contains("127.0.0.1:1"), "{done:?}");
}

/// The setting for a secret, which is created in a folder.
fn secret_in(folder: &Path) -> String {
    let file = folder.join("secret");
    std::fs::write(&file, random_secret().unwrap()).unwrap();
    format!("token.secret_file={}", file.display())
}

#[test]
fn no_process_of_a_cluster_starts_without_a_secret_for_tokens() {
    // The process must stop before it uses this address.
    let unused = ["--set", "cluster.etcd=http://127.0.0.1:1"];
    for role in ["regions", "gateway", "all"] {
        let done = run(&[&["node", "--role", role][..], &unused].concat());
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.stderr.contains("token.secret_file is missing"), "{done:?}");
        assert!(!done.stderr.contains("127.0.0.1:1"), "{done:?}");
    }
}

#[test]
fn the_publicly_known_secret_works_on_loopback_only() {
    for key in ["gateway.ws", "gateway.tcp", "console.listen"] {
        let open = format!("{key}=0.0.0.0:0");
        let args = [&["dev", "--bots", "0", "--for", "1ms"], &FREE_PORTS[..], &["--set", &open]];
        let done = run(&args.concat());
        assert_eq!(done.code, Some(1), "{done:?}");
        let said = format!("{key} = \"0.0.0.0:0\" is not on loopback");
        assert!(
            done.stderr.contains(&said) && done.stderr.contains("token.secret_file"),
            "{done:?}"
        );
        assert!(!done.stdout.contains("token"), "{done:?}");
        let folder = tempfile::tempdir().unwrap();
        let secret = secret_in(folder.path());
        let done = run(&[&args.concat()[..], &["--set", &secret]].concat());
        assert_eq!(done.code, Some(0), "{done:?}");
    }
}
