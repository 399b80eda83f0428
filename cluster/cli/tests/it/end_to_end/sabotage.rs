//! The oracle bites: a real replay through a middleman who keeps something from one client ends
//! with exit code 1 and the violation by its name.

use super::process::{Done, Served, assert_clean, figure, run};
use super::proxy::{Sabotage, proxy};
use super::trace::plain;

fn replayed(sabotage: Sabotage) -> Done {
    let folder = tempfile::tempdir().unwrap();
    let file = plain(folder.path(), false);
    let station = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/station.toml");
    let server = Served::start(&["--scene", station]);
    let to = ["--connect", &proxy(&server.ws, sabotage), "--scene-name", "station", "--json"];
    run(&[&["replay", file.to_str().unwrap(), "--speed", "2"][..], &to].concat())
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
fn an_honest_middleman_goes_unnoticed() {
    assert_clean(&replayed(Sabotage::None));
}

#[test]
fn an_enter_that_is_dropped_is_a_frame_that_contradicts() {
    assert_caught(Sabotage::DropEnter, &["lost"]);
}

#[test]
fn somebody_kept_from_a_client_is_missing() {
    assert_caught(Sabotage::Hide, &["missing", "asymmetric"]);
}

#[test]
fn somebody_who_is_shown_after_leaving_is_extra() {
    assert_caught(Sabotage::DropLeaves, &["extra"]);
}

#[test]
fn somebody_who_stands_still_only_for_one_client_is_stale() {
    assert_caught(Sabotage::DropMoves, &["stale"]);
}

#[test]
fn a_client_that_is_told_nothing_any_more_is_lost() {
    assert_caught(Sabotage::Mute, &["lost"]);
}
