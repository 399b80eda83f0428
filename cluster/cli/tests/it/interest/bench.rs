//! `purview-lab bench interest` measures all that its page shows.

use crate::end_to_end::process::run_lab;

#[test]
fn every_table_is_measured() {
    let args = ["bench", "interest", "--most", "1000", "--seconds", "0.05", "--json"];
    let done = run_lab(&args);
    assert_eq!(done.code, Some(0), "{done:?}");
    let told: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let positive = |row: &serde_json::Value, keys: &[&str]| {
        for key in keys {
            assert!(row[key].as_f64() > Some(0.0), "{key}: {row}");
        }
    };
    let rows = |name: &str| told[name].as_array().unwrap().clone();
    assert_eq!((rows("local").len(), rows("threads").len(), rows("service").len()), (2, 0, 3));
    rows("local").iter().for_each(|row| positive(row, &["ns", "events", "entities"]));
    let service = rows("service");
    service.iter().for_each(|row| positive(row, &["client", "server", "wall", "events"]));
    let batches: Vec<_> = service.iter().map(|row| row["batch"].as_u64().unwrap()).collect();
    assert_eq!(batches, [1, 100, 10_000]);
}
