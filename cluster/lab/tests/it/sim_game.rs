//! The example game and logic workers in a simulated cluster: their promises hold under faults.

use std::time::Duration;

use purview_lab::sim::report::in_words;
use purview_lab::sim::{Logic, Only, Options, simulate};

/// Faults of workers and of nodes.
const TROUBLE: &str = "worker,worker-stop,worker-link,move,crash,drain,stop";

fn workers(seed: u64, faults: &str) -> Options {
    let lasts = Duration::from_secs(60);
    Options { lasts, logic: Some(Logic::Workers), ..options(seed, faults) }
}

fn messages(seed: u64, faults: &str) -> Options {
    let lasts = Duration::from_secs(60);
    Options { lasts, logic: Some(Logic::Messages), ..options(seed, faults) }
}

fn sessions(seed: u64, faults: &str) -> Options {
    let lasts = Duration::from_secs(60);
    Options { lasts, logic: Some(Logic::Sessions), ..options(seed, faults) }
}

fn options(seed: u64, faults: &str) -> Options {
    Options {
        seed,
        lasts: Duration::from_secs(90),
        nodes: 3,
        gateways: 2,
        players: 24,
        faults: faults.parse().unwrap(),
        at_once: 2,
        view_cap: None,
        plane_groups: 1,
        scenes: 1,
        judged: false,
        cut: false,
        portals: false,
        walls: false,
        stairs: false,
        balance: false,
        npcs: false,
        logic: Some(Logic::Hunt),
        beat: None,
        until: None,
        trace: false,
        mutant: None,
        only: Only::default(),
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
    holds(&workers(1, "none"));
}

#[test]
fn workers_answer_each_action_once_when_they_die_are_silent_and_lose_connections() {
    for seed in 1..4 {
        holds(&workers(seed, "worker,worker-stop,worker-link"));
    }
}

#[test]
fn workers_answer_each_action_once_when_nodes_die_and_drain_beside_them() {
    for seed in 1..6 {
        holds(&workers(seed, TROUBLE));
    }
}

#[test]
fn messages_come_once_in_order_and_all_without_faults() {
    for seed in 1..9 {
        holds(&messages(seed, "none"));
    }
}

#[test]
fn messages_come_once_in_order_and_all_when_regions_move_and_nodes_drain() {
    for seed in 1..7 {
        holds(&messages(seed, "move,drain"));
    }
}

#[test]
fn messages_come_once_in_order_and_all_but_what_died_when_nodes_die_and_fall_silent() {
    for seed in 1..7 {
        holds(&messages(seed, "crash,stop,partition"));
    }
}

#[test]
fn a_stored_value_never_goes_back_when_subjects_log_in_again_and_again() {
    for seed in 1..7 {
        holds(&sessions(seed, "none"));
    }
}

#[test]
fn a_stored_value_never_goes_back_when_gateways_and_nodes_die_between_logins() {
    for seed in 1..7 {
        holds(&sessions(seed, "crash=3,drain,stop,move,partition"));
    }
}

#[test]
fn a_stored_value_never_goes_back_when_checkpoints_are_lost_or_the_store_is_away() {
    for seed in 1..5 {
        holds(&sessions(seed, "checkpoint,crash"));
    }
}
