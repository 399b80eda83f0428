//! The oracle finds faults: a replay through a proxy that hides something from one client ends with exit code 1 and
//! the name of the violation.

use super::process::{Done, Served, assert_clean, figure, run_lab};
use super::proxy::{Sabotage, proxy};
use super::trace::plain;

fn replayed(sabotage: Sabotage) -> Done {
    let folder = tempfile::tempdir().unwrap();
    let file = plain(folder.path(), false);
    let station = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/scenes/station.toml");
    let server = Served::start(&["--config", station]);
    let to = ["--connect", &proxy(&server.ws, sabotage), "--scene", "station", "--json"];
    run_lab(&[&["load", "replay", file.to_str().unwrap(), "--speed", "2"][..], &to].concat())
}

/// Asserts that a run failed with violations of each of these kinds.
fn assert_caught(sabotage: Sabotage, kinds: &[&str]) {
    let done = replayed(sabotage);
    let report = done.report();
    assert_eq!(done.code, Some(1), "{sabotage:?}: {report}");
    for kind in kinds {
        let count = figure(&report, &format!("/violations/{kind}"));
        assert!(count > 0.0, "{sabotage:?} is not seen as {kind}: {report}");
    }
}

#[test]
fn a_proxy_that_hides_nothing_causes_no_violation() {
    assert_clean(&replayed(Sabotage::None));
}

#[test]
fn a_hidden_enter_makes_later_frames_contradict() {
    assert_caught(Sabotage::DropEnter, &["lost"]);
}

#[test]
fn a_hidden_entity_is_missing() {
    assert_caught(Sabotage::Hide, &["missing", "asymmetric"]);
}

#[test]
fn a_hidden_leave_is_extra() {
    assert_caught(Sabotage::DropLeaves, &["extra"]);
}

#[test]
fn hidden_moves_are_stale() {
    assert_caught(Sabotage::DropMoves, &["stale"]);
}

#[test]
fn a_client_without_frames_is_lost() {
    assert_caught(Sabotage::Mute, &["lost"]);
}
