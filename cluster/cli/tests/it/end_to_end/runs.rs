//! Loads and replays with a correct server.

use serde_json::json;

use super::process::{Done, Served, assert_clean, figure, replay, run_lab};
use super::trace::{PEOPLE, STATION, gzipped, plain};

#[test]
fn a_load_ends_with_a_report_that_has_every_key_of_the_contract() {
    // With fewer bots no client of a third region sees a player in a handoff.
    let args = ["load", "walk", "--count", "200", "--for", "12s", "--json"];
    let done = run_lab(&args);
    let report = assert_clean(&done);
    assert_eq!(report["players"], 200);
    for key in [
        "/ticks",
        "/handoffs",
        "/tick_ms/mean",
        "/tick_ms/p50",
        "/tick_ms/p99",
        "/tick_ms/max",
        "/visibility_latency_ms/p50",
        "/visibility_latency_ms/p99",
        "/bytes_per_client_s",
        "/cpu_s",
        "/peak_rss_bytes",
    ] {
        // Times may be rounded to 0; counts may not.
        let least = if key.contains("_ms/") { 0.0 } else { f64::MIN_POSITIVE };
        assert!(figure(&report, key) >= least, "{key}: {report}");
    }
    assert!(report["game"].is_null(), "it is judged in a cluster only: {report}");
    assert_eq!(done.stdout.lines().count(), 1, "with --json nothing but the report: {done:?}");
}

/// Bots in their own process on the demo scene of a server.
fn bots(server: &str, pattern: &str, more: &[&str]) -> Done {
    let args = ["load", "walk", "--connect", server, "--pattern", pattern, "--for", "8s", "--json"];
    run_lab(&[&args[..], more].concat())
}

#[test]
fn bots_of_every_pattern_see_what_they_must() {
    // The pattern, the bots, settings of the server, and the fewest handoffs.
    let cases: [(&str, &str, &[&str], f64); 5] = [
        ("walk", "--count 60", &[], 1.0),
        // Where four regions meet.
        ("crowd", "--count 60", &[], 1.0),
        ("crowd", "--count 60", &["--set", "scene.0.view_cap=20"], 0.0),
        // On a border they are handed off again and again.
        ("border", "--count 40", &[], 40.0),
        // Between positions and planes.
        ("teleport", "--count 60 --seed 3", &[], 1.0),
    ];
    for (pattern, all, set, handoffs) in cases {
        let server = Served::start(set);
        let all: Vec<&str> = all.split(' ').collect();
        let report = assert_clean(&bots(&server.ws, pattern, &all));
        assert_eq!(report["players"].to_string(), all[1], "{pattern}: {report}");
        assert!(figure(&report, "/handoffs") >= handoffs, "{pattern}: {report}");
    }
}

#[test]
fn bots_of_a_script_play_from_two_machines_and_make_one_report() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(&["--config", "../../deploy/scenes/dev.toml"]);
    let run = |first: &str| {
        let script = ["--script", "../../deploy/bots.toml", "--first", first];
        let args = ["load", "walk", "--connect", &server.ws, "--for", "8s", "--json"];
        run_lab(&[&args[..], &script, &["--count", "40"]].concat())
    };
    let runs = std::thread::scope(|scope| {
        let started = ["0", "40"].map(|first| scope.spawn(move || run(first)));
        started.map(|run| run.join().unwrap())
    });
    let files = [0, 1].map(|n| folder.path().join(format!("{n}.json")).display().to_string());
    for (file, done) in files.iter().zip(&runs) {
        assert_clean(done);
        std::fs::write(file, &done.stdout).unwrap();
    }
    let report = assert_clean(&run_lab(&["load", "report", "--json", &files[0], &files[1]]));
    assert_eq!((&report["players"], &report["refused"]), (&json!(80), &json!(0)), "{report}");
    let one = figure(&runs[0].report(), "/updates/expected");
    assert!(figure(&report, "/updates/expected") > one && one > 0.0, "{report}");

    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, "[[bots]]\nspeed = \"5\"\n").unwrap();
    let wrong = wrong.display().to_string();
    let done = run_lab(&["load", "walk", "--connect", &server.ws, "--script", &wrong]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("wrong.toml is no script of bots"), "{done:?}");
    assert!(done.stderr.contains("line 2") && done.stderr.contains("20m/s"), "{done:?}");
}

#[test]
fn bots_over_tcp_see_what_they_must() {
    let server = Served::start(&[]);
    let report = assert_clean(&bots(&server.tcp, "walk", &["--count", "40"]));
    assert_eq!(report["players"], 40);
}

#[test]
fn a_replay_starts_its_own_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = plain(folder.path(), true);
    let report = assert_clean(&replay(&file, &[]));
    assert_eq!(report["players"], PEOPLE);
    assert!(figure(&report, "/handoffs") > 0.0, "{report}");
    assert!(figure(&report, "/tick_ms/max") > 0.0, "its own server says how long ticks take");
}

#[test]
fn a_replay_of_a_gzip_recording_runs_with_another_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = gzipped(folder.path(), true);
    let server = Served::start(&["--config", STATION]);
    let to = ["--connect", &server.ws, "--scene", "station", "--speed", "2"];
    let report = assert_clean(&replay(&file, &to));
    assert_eq!(report["players"], PEOPLE);
    assert!(figure(&report, "/handoffs") > 0.0, "{report}");
}

#[test]
fn a_client_that_stands_still_for_long_stays_connected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("statue.csv");
    let walker = |t: u32| format!("{t},walker,{t},2\n");
    let rows: String = (1..8).map(walker).collect();
    let statue = "8,statue,3,3\n";
    std::fs::write(&file, format!("t_s,id,x_m,z_m\n0,statue,3,3\n{rows}{statue}")).unwrap();
    let done = replay(&file, &["--set", "gateway.heartbeat=2s"]);
    assert_eq!(assert_clean(&done)["players"], 2);
}
