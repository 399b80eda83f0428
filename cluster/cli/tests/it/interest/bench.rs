//! `purview-lab bench interest` measures all that its page shows.

use crate::end_to_end::process::lab;

#[test]
fn the_benchmark_fills_its_page() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("img")).unwrap();
    let page = place.path().join("cost.md");
    std::fs::write(&page, "# Cost\n\n<!-- results begin: x -->\n<!-- results end -->\n").unwrap();
    let mut command = lab(&[]);
    command.args(["bench", "interest", "--most", "1000", "--seconds", "0.05", "--json", "--write"]);
    let output = command.arg(&page).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
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
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.starts_with("# Cost\n\n<!-- results begin: x -->\n\n### In process"), "{text}");
    assert!(text.contains("| circle | 60 within 80 m | 1,000 |"), "{text}");
    let picture = std::fs::read_to_string(place.path().join("img/interest.svg")).unwrap();
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
}
