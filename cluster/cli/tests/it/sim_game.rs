//! The example game in a simulated cluster: its promises hold under faults, and every deliberate bug of the layer that
//! runs it is found.

use std::time::Duration;

use purview::scene::mutants::{GAME, Mutant};
use purview_lab::sim::mutation::try_all;
use purview_lab::sim::report::in_words;
use purview_lab::sim::{Logic, Only, Options, simulate};

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

/// Whether the bug is found at one of four seeds, none of which finds anything without it.
fn is_found(bug: Mutant, faults: &str, first_seed: u64) {
    let trials = try_all(&options(first_seed, faults), (&[bug], 4), |_| {}).unwrap();
    assert!(trials.iter().all(|trial| trial.found.is_some()), "{trials:?}");
}

macro_rules! bugs {
    ($($test:ident: $bug:ident, $faults:literal from seed $seed:literal;)*) => {
        const TRIED: &[Mutant] = &[$(Mutant::$bug),*];

        $(#[test]
        fn $test() {
            is_found(Mutant::$bug, $faults, $seed);
        })*
    };
}

bugs! {
    a_watch_that_is_lost_is_found: WatchLost, "none" from seed 1;
    ghosts_that_are_not_watched_are_found: GhostsUnwatched, "none" from seed 1;
    a_loss_that_is_not_told_is_found: LostUntold, "none" from seed 1;
    a_sight_from_too_far_is_found: SightedFar, "none" from seed 1;
    a_command_that_is_applied_twice_is_found: CommandTwice, "none" from seed 1;
    a_command_that_is_lost_is_found: CommandLost, "none" from seed 1;
    a_result_that_is_lost_is_found: ResultLost, "none" from seed 1;
    a_search_that_is_not_repeated_is_found: SearchedOnce, "none" from seed 1;
    a_tick_that_is_durable_at_once_is_found: DurableAtOnce, "crash" from seed 8;
    properties_that_get_lost_are_found: SecretsLost, "none" from seed 1;
    properties_that_are_told_to_others_are_found: SecretsTold, "none" from seed 1;
    a_change_that_is_not_told_is_found: ChangeUntold, "none" from seed 1;
    events_that_are_lost_are_found: EventsLost, "none" from seed 1;
}

#[test]
fn every_deliberate_bug_of_game_logic_is_tried() {
    assert_eq!(TRIED, GAME);
}
