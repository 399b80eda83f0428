//! Tests of what updates by error change against the rates alone: the figures of `benches/updates`, for fewer players.

use clap::Parser;

use super::scene::{BenchSceneArgs, SceneBench, bench_scene};

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    args: BenchSceneArgs,
}

fn figures(crowd: [&str; 2], moves: &str, rates: &str) -> SceneBench {
    let words = ["bench", "--players", "300", "--ticks", "120", "--moves", moves, "--rates", rates];
    let command = Command::parse_from(words.into_iter().chain(crowd));
    bench_scene(&command.args).expect("the arguments make a scene")
}

#[test]
fn both_the_error_and_the_bytes_are_less_than_by_the_rates_alone() {
    for crowd in [["--density", "60"], ["--side", "39"]] {
        for moves in ["positions", "vector"] {
            let [rates, error] = ["default", "error"].map(|by| figures(crowd, moves, by));
            let text = format!("{crowd:?}, {moves}: {rates:?} and {error:?}");
            assert_eq!((rates.faults, error.faults), (0, 0), "{text}");
            assert!(error.bytes_per_player_s < rates.bytes_per_player_s, "{text}");
            let [rates, error] = [rates, error].map(|all| all.displayed_error_cm);
            assert!(error.middle.p99 < rates.middle.p99, "{text}");
            assert!(error.far.p99 <= rates.far.p99, "{text}");
        }
    }
}
