//! Complete recordings of real people, played by real clients. The recordings are not part of the project; a test
//! without its recording is skipped.

use std::path::PathBuf;

use serde_json::Value;

use super::process::{assert_clean, figure, run_lab};

fn replayed(name: &str, speed: &str) -> Option<Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/traces");
    let file = PathBuf::from(folder).join(name);
    if !file.exists() {
        println!("skipped: no {}", file.display());
        return None;
    }
    let done = run_lab(&["load", "replay", file.to_str().unwrap(), "--speed", speed, "--json"]);
    eprintln!("{}", done.stdout);
    Some(assert_clean(&done))
}

#[test]
fn recording_bottleneck_is_seen_by_everybody_as_it_was() {
    let Some(report) = replayed("bottleneck_hermes_304.csv.gz", "1") else { return };
    assert_eq!(report["players"], 304);
    assert!(figure(&report, "/handoffs") > 0.0, "{report}");
    assert!(figure(&report, "/flicker_per_player_s") <= 0.5, "{report}");
}

#[test]
fn recording_grand_central_is_seen_by_everybody_as_it_was() {
    let Some(report) = replayed("grand_central_12684.csv.gz", "20") else { return };
    assert_eq!(report["players"], 12_684);
    assert!(figure(&report, "/handoffs") > 0.0, "{report}");
}
