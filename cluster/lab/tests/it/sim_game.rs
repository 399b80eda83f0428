//! The example game and logic workers in a simulated cluster: their promises hold under faults.

use std::time::Duration;

use purview_lab::sim::report::in_words;
use purview_lab::sim::{Logic, Options, simulate};

/// Faults of workers and of nodes.
const TROUBLE: &str = "worker,worker-stop,worker-link,move,crash,drain,stop";

/// A minute with another game.
fn with(logic: Logic, seed: u64, faults: &str) -> Options {
    let lasts = Duration::from_secs(60);
    Options { lasts, logic: Some(logic), ..options(seed, faults) }
}

fn options(seed: u64, faults: &str) -> Options {
    Options {
        seed,
        lasts: Duration::from_secs(90),
        players: 24,
        faults: faults.parse().unwrap(),
        logic: Some(Logic::Hunt),
        ..Options::default()
    }
}

fn holds(options: &Options) {
    let outcome = simulate(options).unwrap_or_else(|e| panic!("{e}"));
    assert!(outcome.violation.is_none(), "{}", in_words(options, &outcome));
}

#[test]
fn the_game_holds_without_faults() {
    holds(&options(1, "none"));
}

#[test]
fn gold_hit_points_and_commands_hold_when_nodes_die_drain_and_fall_silent() {
    for seed in 1..4 {
        holds(&options(seed, "crash=3,drain,stop,move,partition"));
    }
}

#[test]
fn gold_is_conserved_when_players_teleport_between_scenes() {
    for (seed, faults) in [(1, "none"), (2, "none"), (4, "none"), (1, "crash"), (3, "crash")] {
        holds(&Options { scenes: 2, ..options(seed, faults) });
    }
}

#[test]
fn workers_answer_each_action_once_without_faults() {
    holds(&with(Logic::Workers, 1, "none"));
}

#[test]
fn workers_answer_each_action_once_when_they_die_are_silent_and_lose_connections() {
    for seed in 1..4 {
        holds(&with(Logic::Workers, seed, "worker,worker-stop,worker-link"));
    }
}

#[test]
fn workers_answer_each_action_once_when_nodes_die_and_drain_beside_them() {
    for seed in 1..6 {
        holds(&with(Logic::Workers, seed, TROUBLE));
    }
}

#[test]
fn messages_come_once_in_order_and_all_without_faults() {
    for seed in 1..9 {
        holds(&with(Logic::Messages, seed, "none"));
    }
}

#[test]
fn messages_come_once_in_order_and_all_when_regions_move_and_nodes_drain() {
    for seed in 1..7 {
        holds(&with(Logic::Messages, seed, "move,drain"));
    }
}

#[test]
fn messages_come_once_in_order_and_all_but_what_died_when_nodes_die_and_fall_silent() {
    for seed in 1..7 {
        holds(&with(Logic::Messages, seed, "crash,stop,partition"));
    }
}

#[test]
fn a_stored_value_never_goes_back_when_subjects_log_in_again_and_again() {
    for seed in 1..7 {
        holds(&with(Logic::Sessions, seed, "none"));
    }
}

#[test]
fn a_stored_value_never_goes_back_when_gateways_and_nodes_die_between_logins() {
    for seed in 1..7 {
        holds(&with(Logic::Sessions, seed, "crash=3,drain,stop,move,partition"));
    }
}

#[test]
fn a_stored_value_never_goes_back_when_checkpoints_are_lost_or_the_store_is_away() {
    for seed in 1..5 {
        holds(&with(Logic::Sessions, seed, "checkpoint,crash"));
    }
}
