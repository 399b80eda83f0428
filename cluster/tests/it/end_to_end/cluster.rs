//! Nodes and gateways as processes of their own, with a real etcd: what clients see is what they see of
//! one process.

mod down;

use std::path::PathBuf;

use super::process::{assert_clean, figure, run};

#[test]
fn people_who_walk_across_three_nodes_are_seen_as_within_one() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/traces");
    let file = PathBuf::from(folder).join("bottleneck_hermes_304.csv.gz");
    if !file.exists() {
        println!("skipped: no {}", file.display());
        return;
    }
    let nodes = ["--engine", "etcd", "--nodes", "3"];
    let played = ["replay", file.to_str().unwrap(), "--speed", "4", "--json"];
    let done = run(&[&played[..], &nodes[..]].concat());
    let report = assert_clean(&done);
    assert_eq!(report["players"], 304);
    assert!(figure(&report, "/handoffs") > 500.0, "{report}");
    assert!(done.stderr.contains("node-3"), "{done:?}");
}

#[test]
fn a_node_without_its_etcd_says_what_it_misses() {
    let unused = "cluster.etcd=http://127.0.0.1:1";
    let done = run(&["node", "--set", unused, "--set", "cluster.listen=127.0.0.1:0"]);
    assert_eq!(done.code, Some(1));
    assert!(done.stderr.contains("127.0.0.1:1"), "{done:?}");
}
