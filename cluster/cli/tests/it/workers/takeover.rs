//! Worker processes that are killed and stopped: the others take over, and nothing is lost or done twice.

use serde_json::Value;

use crate::end_to_end::process::run_lab;

#[test]
fn actions_are_counted_once_although_worker_processes_are_killed_and_stopped() {
    let done = run_lab(&["bench", "takeover", "--faults", "4", "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let told: Value = serde_json::from_str(&done.stdout).unwrap();
    let rows = told["rows"].as_array().unwrap();
    let faults: Vec<_> = rows.iter().map(|row| (row["what"].as_str(), &row["faults"])).collect();
    assert_eq!(faults, [(Some("killed"), &2.into()), (Some("stopped"), &2.into())]);
    assert_eq!((&told["lost"], &told["repeated"]), (&0.into(), &0.into()));
    // 16 players have acted in each of some ticks around each fault.
    assert!(told["actions"].as_u64().unwrap() > 16 * 4 * 8, "{told}");
}
