//! The benchmarks print what their pages show.

use serde_json::Value;

use crate::process::{lab, out, words};

fn run(line: &str) -> (i32, String, String) {
    out(&lab(&words(line)).output().unwrap())
}

/// The one JSON object that a benchmark prints.
fn told(line: &str) -> Value {
    let (code, stdout, stderr) = run(&format!("{line} --json"));
    assert_eq!((code, stdout.lines().count()), (0, 1), "{stdout} {stderr}");
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn bench_views_prints_one_json_object_or_a_table() {
    let line = "bench views --players 150 --sigma 8 --margins 0,1 --seconds 2 --warm-up 1";
    let told = told(line);
    let rows = told["rows"].as_array().unwrap();
    let of = |key: &str| rows.iter().map(|row| row[key].as_f64().unwrap()).collect::<Vec<_>>();
    assert_eq!((of("regions"), of("margin_m")), (vec![1., 1., 4., 4.], vec![0., 1., 0., 1.]));
    assert_eq!(of("faults"), [0.0; 4]);
    assert!(of("messages").iter().chain(&of("us")).all(|n| *n > 0.0), "{told}");
    let (code, stdout, _) = run(line);
    assert_eq!((code, stdout.lines().count()), (0, 2 + 4), "{stdout}");
    let refused = run("bench views --players 0");
    assert_eq!((refused.0, refused.2.contains("--players must be")), (1, true), "{refused:?}");
}

#[test]
fn bench_live_measures_a_server_with_bots_and_loses_nothing() {
    let line = "bench live --players 20 --side 240 --seconds 2 --warm-up 1";
    for carrier in ["ws", "tcp"] {
        let told = told(&format!("{line} --carrier {carrier}"));
        let us = |of: &str| told["us_per_player_tick"][of].as_f64().unwrap();
        let parts: f64 = ["scene", "delivery", "sessions", "kernel"].map(us).iter().sum();
        assert!(us("scene") > 0.0 && us("delivery") > 0.0 && us("total") > 0.0, "{told}");
        // System calls are counted in hundredths of a second.
        assert!(parts > 0.0 && us("total") < parts * 10.0, "{told}");
        assert_eq!(told["updates"]["delivered"], told["updates"]["expected"], "{told}");
        assert_eq!(told["not_joined"], 0, "{told}");
        assert!(told["messages_per_player_tick"].as_f64().unwrap() > 0.5, "{told}");
    }
}

#[test]
fn bench_scene_with_vectors_is_exact_and_sends_a_fifth_or_less() {
    let moves = |moves: &str| {
        let result =
            told(&format!("bench scene --players 300 --ticks 60 --rates full --moves {moves}"));
        assert!(result["expected"].as_u64() > Some(1_000), "{result}");
        assert_eq!((&result["expected"], &result["faults"]), (&result["delivered"], &0.into()));
        result["moves_per_player_s"].as_f64().unwrap()
    };
    let (positions, vectors) = (moves("positions"), moves("vector"));
    assert!(vectors * 5.0 <= positions, "{vectors} against {positions} a second");
}

#[test]
fn bench_scene_with_npcs_is_exact_and_shows_those_that_walk() {
    let told = |npcs: &str| {
        let result =
            told(&format!("bench scene --players 60 --side 90 --ticks 20 --rates full {npcs}"));
        (result["expected"].as_u64().unwrap(), result["visible"].as_f64().unwrap())
    };
    let none = told("");
    let standing = told("--npcs 120 --npcs-standing 1");
    let half = told("--npcs 120 --npcs-standing 0.5");
    assert_eq!(standing.0, none.0, "an NPC that stands is told once");
    assert!(half.0 > none.0 && standing.1 > none.1 + 50.0, "{none:?} {standing:?} {half:?}");
}

#[test]
fn bench_scene_puts_players_on_a_square_of_any_side() {
    let seen = |side: &str| {
        told(&format!("bench scene --players 30 --ticks 3 --side {side}"))["visible"]
            .as_f64()
            .unwrap()
    };
    assert_eq!(seen("20"), 29.0, "all players are in range of each other");
    assert!(seen("2000") < 3.0);
    for line in ["--side 0", "--side x", "--side 10 --density 3"] {
        assert_eq!(run(&format!("bench scene --players 2 --ticks 1 {line}")).0, 2, "{line}");
    }
}
