//! The example game and logic workers in a simulated cluster: their promises hold under faults, and every deliberate bug
//! of the layers that run them is found.

use std::time::Duration;

use purview::scene::mutants::{GAME, MESSAGES, Mutant, SESSIONS, WORKERS};
use purview_lab::sim::mutation::try_all;
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

/// Whether the bug is found at one of four seeds, none of which finds anything without it.
fn is_found(bug: Mutant, options: &Options) {
    let trials = try_all(options, (&[bug], 4), |_| {}).unwrap();
    assert!(trials.iter().all(|trial| trial.found.is_some()), "{trials:?}");
}

macro_rules! bugs {
    ($tried:ident: $options:ident; $($test:ident: $bug:ident, $faults:expr, from seed $seed:literal;)*) => {
        const $tried: &[Mutant] = &[$(Mutant::$bug),*];

        $(#[test]
        fn $test() {
            is_found(Mutant::$bug, &$options($seed, $faults));
        })*
    };
}

bugs! {
    OF_GAMES: options;
    a_watch_that_is_lost_is_found: WatchLost, "none", from seed 1;
    ghosts_that_are_not_watched_are_found: GhostsUnwatched, "none", from seed 1;
    a_loss_that_is_not_told_is_found: LostUntold, "none", from seed 1;
    a_sight_from_too_far_is_found: SightedFar, "none", from seed 1;
    a_command_that_is_applied_twice_is_found: CommandTwice, "none", from seed 1;
    a_command_that_is_lost_is_found: CommandLost, "none", from seed 1;
    a_result_that_is_lost_is_found: ResultLost, "none", from seed 1;
    a_search_that_is_not_repeated_is_found: SearchedOnce, "none", from seed 1;
    a_tick_that_is_durable_at_once_is_found: DurableAtOnce, "crash=4,checkpoint-store", from seed 5;
    properties_that_get_lost_are_found: SecretsLost, "none", from seed 1;
    properties_that_are_told_to_others_are_found: SecretsTold, "none", from seed 1;
    a_change_that_is_not_told_is_found: ChangeUntold, "none", from seed 1;
    events_that_are_lost_are_found: EventsLost, "none", from seed 1;
}

bugs! {
    OF_WORKERS: workers;
    a_command_that_is_applied_again_is_found: NumberAgain, TROUBLE, from seed 1;
    numbers_that_a_handoff_drops_are_found: NumbersLost, TROUBLE, from seed 1;
    a_command_that_is_durable_too_early_is_found: DurableEarly, TROUBLE, from seed 1;
    batches_of_former_leases_are_found: AnyLease, TROUBLE, from seed 1;
    a_lease_whose_end_is_not_told_is_found: EndUntold, TROUBLE, from seed 8;
    a_recovery_that_is_not_told_is_found: RecoveredUntold, TROUBLE, from seed 5;
    responses_that_are_dropped_in_silence_are_found: DroppedUntold, TROUBLE, from seed 8;
    an_entity_that_comes_before_it_has_left_is_found: EnteredFirst, TROUBLE, from seed 1;
    ids_that_are_given_again_are_found: IdsAgain, TROUBLE, from seed 1;
    actions_that_no_worker_is_told_of_are_found: ActsForgotten, TROUBLE, from seed 1;
    actions_that_are_told_again_are_found: ActsToldAgain, TROUBLE, from seed 1;
}

bugs! {
    OF_MESSAGES: messages;
    messages_that_are_told_again_are_found: ToldAgain, "none", from seed 1;
    messages_that_are_missed_on_the_way_are_found: MissedUntold, "move", from seed 1;
    messages_in_the_wrong_order_are_found: ToldBackwards, "none", from seed 1;
    messages_to_a_bond_that_all_hear_are_found: ToldToAll, "none", from seed 1;
}

bugs! {
    OF_SESSIONS: sessions;
    a_record_that_is_read_before_its_claim_is_found: EarlyRead, "none", from seed 1;
}

#[test]
fn every_deliberate_bug_of_game_logic_of_workers_and_of_messages_is_tried() {
    let all = (&GAME[..], &WORKERS[..], &MESSAGES[..], &SESSIONS[..]);
    assert_eq!((OF_GAMES, OF_WORKERS, OF_MESSAGES, OF_SESSIONS), all);
}
