//! The example game and logic workers in a simulated cluster: their promises hold under faults.

use std::ops::Range;
use std::time::Duration;

use purview_lab::sim::{Logic, Options};

use crate::sim::{self, holds};

/// Faults of workers and of nodes.
const TROUBLE: &str = "worker,worker-stop,worker-link,move,crash,drain,stop";

/// A minute with another game.
fn holds_with(logic: Logic, seeds: Range<u64>, faults: &str) {
    for seed in seeds {
        holds(&Options { logic: Some(logic), ..sim::options(seed, faults) });
    }
}

/// A minute and a half of the example game.
fn options(seed: u64, faults: &str) -> Options {
    let (lasts, logic) = (Duration::from_secs(90), Some(Logic::Hunt));
    Options { lasts, logic, ..sim::options(seed, faults) }
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
    holds_with(Logic::Workers, 1..2, "none");
}

#[test]
fn workers_answer_each_action_once_when_they_die_are_silent_and_lose_connections() {
    holds_with(Logic::Workers, 1..4, "worker,worker-stop,worker-link");
}

#[test]
fn workers_answer_each_action_once_when_nodes_die_and_drain_beside_them() {
    holds_with(Logic::Workers, 1..6, TROUBLE);
}

#[test]
fn messages_come_once_in_order_and_all_without_faults() {
    holds_with(Logic::Messages, 1..9, "none");
}

#[test]
fn messages_come_once_in_order_and_all_when_regions_move_and_nodes_drain() {
    holds_with(Logic::Messages, 1..7, "move,drain");
}

#[test]
fn messages_come_once_in_order_and_all_but_what_died_when_nodes_die_and_fall_silent() {
    holds_with(Logic::Messages, 1..7, "crash,stop,partition");
}

#[test]
fn a_stored_value_never_goes_back_when_subjects_log_in_again_and_again() {
    holds_with(Logic::Sessions, 1..7, "none");
}

#[test]
fn a_stored_value_never_goes_back_when_gateways_and_nodes_die_between_logins() {
    holds_with(Logic::Sessions, 1..7, "crash=3,drain,stop,move,partition");
}

#[test]
fn a_stored_value_never_goes_back_when_checkpoints_are_lost_or_the_store_is_away() {
    holds_with(Logic::Sessions, 1..5, "checkpoint,crash");
}

#[test]
fn players_are_shown_the_things_within_their_limits_without_faults() {
    holds_with(Logic::Sights, 1..4, "none");
}

#[test]
fn limits_of_sight_last_when_nodes_die_and_drain_and_regions_move() {
    holds_with(Logic::Sights, 1..6, "crash=3,drain,stop,move,map,partition");
}
