//! Recordings of real crowds: every event of the service agrees with brute force.

use std::path::PathBuf;

use crate::end_to_end::process;

use super::support::Service;

/// Replays a recording by the command; `None`: it is not there.
fn replay(name: &str, more: &[&str]) -> Option<serde_json::Value> {
    let file =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces").join(name);
    if !file.exists() {
        println!("skipped: {} is not there", file.display());
        return None;
    }
    let service = Service::start(&[]);
    let done = process::replay(&file, &[&["--interest", &service.url()], more].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    Some(serde_json::from_str(&done.stdout).unwrap())
}

fn judge(report: &serde_json::Value, agents: u64, moves: u64) {
    assert_eq!((&report["agents"], &report["refused"]), (&agents.into(), &0.into()));
    assert!(report["moves"].as_u64() > Some(moves), "{report}");
    let scenes = report["scenes"].as_array().unwrap();
    assert_eq!(scenes.len(), 5, "{report}");
    for scene in scenes {
        assert_eq!(scene["violations"], 0, "{report}");
        assert!(scene["events"].as_u64() > Some(10_000), "{report}");
        assert!(scene["positions"].as_u64() > Some(moves / 4), "{report}");
    }
}

#[test]
fn the_bottleneck_has_no_violation() {
    let Some(report) = replay("bottleneck_hermes_304.csv.gz", &["--step", "100ms"]) else { return };
    judge(&report, 304, 20_000);
}

#[test]
fn grand_central_has_no_violation() {
    let Some(report) = replay("grand_central_12684.csv.gz", &["--step", "1600ms"]) else { return };
    judge(&report, 12_684, 200_000);
}
