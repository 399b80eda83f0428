//! The oracle finds faults: a replay through a proxy that hides something from one client ends with exit code 1 and
//! the name of the violation.

use super::process::{Done, Served, assert_clean, figure, replay};
use super::proxy::{Sabotage, proxy};
use super::trace::{STATION, plain};

fn replayed(sabotage: Sabotage) -> Done {
    let folder = tempfile::tempdir().unwrap();
    let file = plain(folder.path(), false);
    let server = Served::start(&["--config", STATION]);
    let to = ["--connect", &proxy(&server.ws, sabotage), "--scene", "station"];
    replay(&file, &[&["--speed", "2"][..], &to].concat())
}

/// Asserts that a run failed with violations of each of these kinds.
fn assert_caught(sabotage: Sabotage, kinds: &[&str]) {
    let done = replayed(sabotage);
    let report = done.report();
    assert_eq!(done.code, Some(1), "{sabotage:?}: {report}");
    if sabotage == Sabotage::Hide {
        let updates = |of| figure(&report, &format!("/updates/{of}"));
        assert!(updates("delivered") < updates("expected"), "{report}");
    }
    for kind in kinds {
        let count = figure(&report, &format!("/violations/{kind}"));
        assert!(count > 0.0, "{sabotage:?} is not seen as {kind}: {report}");
    }
}

#[test]
fn the_oracle_names_each_fault_and_finds_none_where_nothing_is_hidden() {
    assert_clean(&replayed(Sabotage::None));
    let cases: [(Sabotage, &[&str]); 5] = [
        // Later frames contradict what the client knows.
        (Sabotage::DropEnter, &["lost"]),
        (Sabotage::Hide, &["missing", "asymmetric"]),
        (Sabotage::DropLeaves, &["extra"]),
        (Sabotage::DropMoves, &["stale"]),
        (Sabotage::Mute, &["lost"]),
    ];
    for (sabotage, kinds) in cases {
        assert_caught(sabotage, kinds);
    }
}
