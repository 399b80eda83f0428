//! `purview-lab load walk --engine etcd` plays and judges the game in a cluster of processes.

use super::super::process::{assert_clean, figure, run_lab};

#[test]
fn a_cluster_judges_the_game_and_counts_its_gold_at_the_end() {
    let line = "load walk --engine etcd --nodes 2 --count 6 --for 15s --json";
    let report = assert_clean(&run_lab(&line.split(' ').collect::<Vec<_>>()));
    assert!(figure(&report, "/game/checks") > 0.0, "{report}");
    assert!(figure(&report, "/game/minted") > 0.0, "{report}");
    for fault in ["gold", "taken_twice", "hit_points"] {
        assert_eq!(report["game"][fault], 0, "{fault}: {report}");
    }
}
