//! The cheat trial on a real server: a server that judges moves passes it, a server that trusts clients does not.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::ValueEnum;
use purview::scene::spec::Moves;
use purview_lab::cheat::{
    Access, Class, Field, Net, Row, Trial, TrialOptions, TrialServer, Weather, gang, trial,
};
use purview_lab::testbed::local_cluster::{LocalCluster, Parts};
use purview_lab::testbed::program;
use purview_server::config::Config;

use crate::process::{lab, out};

/// Long enough for every trick to be repeated many times.
const LENGTH: Duration = Duration::from_secs(8);

fn built_in() -> (Config, Field) {
    let config = Field::built_in().expect("a legal configuration");
    let scenes = config.build_scenes().expect("legal scenes");
    (config, Field::find(&scenes[0], LENGTH).expect("room"))
}

async fn held(change: impl FnOnce(&mut Config), options: TrialOptions) -> Trial {
    let (mut config, field) = built_in();
    change(&mut config);
    let server = TrialServer::start(config).expect("a server");
    let access = server.access(options.honest).expect("tokens");
    trial(&access, &field, &options).await.expect("a trial is held")
}

/// Cheats within a session.
fn within(nets: &[Net]) -> TrialOptions {
    let nets = nets.to_vec();
    TrialOptions { length: LENGTH, sessions: false, nets, ..TrialOptions::default() }
}

/// The cheats that change their sessions, beside honest pacers.
fn by_sessions() -> TrialOptions {
    let nets = vec![Net::Direct];
    TrialOptions { length: LENGTH, honest: 0, cheats: false, nets, ..TrialOptions::default() }
}

/// The rows of a cheat; at least one.
fn rows<'a>(trial: &'a Trial, class: Class, name: &str) -> Vec<&'a Row> {
    let is = |row: &&Row| row.class == class && row.cheat.starts_with(name);
    let rows: Vec<&Row> = trial.cheats.iter().filter(is).collect();
    assert!(!rows.is_empty(), "no {class:?} {name:?}");
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_judges_moves_refuses_cheats_and_never_honest_players() {
    let trial = held(|_| {}, within(&[Net::Direct, Net::Bad])).await;
    assert!(trial.is_passed(), "{trial}");
    let honest = &trial.honest;
    assert_eq!((honest.players, honest.on_bad, honest.corrected), (30, 25, 0), "{trial}");
    assert!(honest.said > 20 * 10, "{trial}");
    // The cheaters have walked, so a gain was possible.
    for pace in &trial.pace {
        let most_cm = f64::from(trial.speed_cm_s) * LENGTH.as_secs_f64();
        assert!((most_cm * 0.5..=most_cm).contains(&pace.way_cm), "{trial}");
    }
    let tried: BTreeSet<Class> = trial.cheats.iter().map(|row| row.class).collect();
    let alone = Class::value_variants().iter().copied().filter(|class| *class != Class::Session);
    assert!(tried.into_iter().eq(alone), "{trial}");
    for (class, name, code) in [
        (Class::Teleport, "1000 cm", "displaced"),
        (Class::Teleport, "5000 cm", "displaced"),
        (Class::Teleport, "places", "wrong_form"),
        (Class::Teleport, "teleports", "may_not_teleport"),
        (Class::Speed, "x 1.05, stated", "too_fast"),
        (Class::Speed, "x 10, stated", "too_fast"),
        (Class::Speed, "x 2, by paths", "too_fast"),
        (Class::Speed, "x 10, unstated", "displaced"),
        (Class::Wall, "straight on", "blocked"),
        (Class::Wall, "by paths", "blocked"),
        (Class::Wall, "by teleports", "displaced"),
        (Class::Clock, "x 1.5", "clock_ahead"),
        (Class::Clock, "x 2", "clock_ahead"),
        (Class::Clock, "x 10", "clock_ahead"),
        (Class::Clock, "a second back", "clock_back"),
        (Class::Clock, "a second on", "clock_ahead"),
        (Class::Flood, "5 cm", "strayed"),
        (Class::Replay, "each number", "out_of_order"),
        (Class::Replay, "numbers of long ago", "out_of_order"),
        (Class::Replay, "old moves", "clock_back"),
        (Class::Correction, "refused", "displaced"),
        (Class::Correction, "answers", "unknown_correction"),
    ] {
        for row in rows(&trial, class, name) {
            assert!(row.refused.contains_key(code), "{row:?} was not refused as {code}");
        }
    }
    // Cheaters that must go through the wall have reached it.
    for row in trial.cheats.iter().filter(|row| row.class == Class::Wall) {
        assert!(f64::from(row.way_cm) > row.honest_cm / 2.0, "{row:?}");
    }
}

/// Each cheat began several sessions, walked, and gained nothing worth while.
fn gains_nothing_by_sessions(trial: &Trial) {
    assert!(trial.is_passed(), "{trial}");
    assert_eq!(trial.cheats.len(), 12, "{trial}");
    for row in &trial.cheats {
        let repeats = row.cheat.starts_with("repeats teleports");
        assert!(row.class == Class::Session && (repeats || row.sessions > 4), "{row:?}\n{trial}");
        assert!(f64::from(row.way_cm) > row.honest_cm * 0.05, "{row:?}\n{trial}");
        assert_eq!(repeats, row.refused.contains_key("may_not_teleport"), "{row:?}\n{trial}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_of_twenty_fills_eight_places_of_a_list_and_none_where_logic_begins_fights() {
    let (clients, logic) = tokio::join!(gang("clients"), gang("logic"));
    let (clients, logic) = (clients.expect("a trial is held"), logic.expect("a trial is held"));
    assert_eq!((clients.taken, clients.bound), (8, 8), "{clients:?}");
    assert_eq!((logic.taken, logic.bound), (0, 0), "{logic:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_session_gains_nothing() {
    gains_nothing_by_sessions(&held(|_| {}, by_sessions()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_at_another_gateway_gains_nothing() {
    let ((mut config, field), program) = (built_in(), program::purview().expect("the program"));
    TrialServer::prepare(&mut config);
    let parts = Parts { nodes: 2, gateways: 2 };
    let start = || LocalCluster::start(&program, &config, parts, &mut |_| {}).expect("a cluster");
    let cluster = tokio::task::block_in_place(start);
    let urls = (0..2).map(|gateway| cluster.url(gateway).expect("a gateway")).collect();
    let hour = Some(Duration::from_secs(3_600));
    let mint = |n| cluster.tokens().mint(&format!("trial-{n}"), hour).expect("a token");
    let scenes = config.scenes.iter().map(|scene| scene.spec.name.clone()).collect();
    let access = Access { urls, tokens: (0..20).map(mint).collect(), scenes };
    let trial = trial(&access, &field, &by_sessions()).await.expect("a trial is held");
    tokio::task::block_in_place(|| drop(cluster));
    gains_nothing_by_sessions(&trial);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_trusts_positions_fails_the_trial() {
    let trusted = |config: &mut Config| config.scenes[0].spec.moves.mode = Moves::Trusted;
    let trial = held(trusted, within(&[Net::Direct])).await;
    assert!(!trial.is_passed());
    assert!(trial.failures.is_empty() && trial.honest.refused.is_empty(), "{trial}");
    for (class, name) in [
        (Class::Teleport, "1000 cm"),
        (Class::Speed, "x 1.5, stated"),
        (Class::Speed, "x 10, unstated"),
        (Class::Wall, "straight on"),
        (Class::Wall, "by teleports"),
        (Class::Clock, "x 1.5"),
        (Class::Clock, "x 10"),
        (Class::Flood, "24 cm"),
        (Class::Correction, "refused"),
    ] {
        for row in rows(&trial, class, name) {
            assert!(row.gained_too_much, "{row:?}\n{trial}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_trusts_clocks_fails_the_trial() {
    let lenient = |config: &mut Config| config.scenes[0].spec.moves.allowance_ms = 5_000;
    let trial = held(lenient, within(&[Net::Direct])).await;
    let far = |row: &&Row| row.gained_too_much;
    let classes: BTreeSet<Class> = trial.cheats.iter().filter(far).map(|row| row.class).collect();
    assert!(!trial.is_passed() && classes.contains(&Class::Clock), "{trial}");
    assert!(!classes.contains(&Class::Speed) && !classes.contains(&Class::Wall), "{trial}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_not_admitted_is_a_failure() {
    let options = TrialOptions {
        honest: 2,
        length: Duration::from_millis(100),
        bad: Weather { delay_ms: 1, jitter_ms: 0, lost_per_mille: 0 },
        ..within(&[Net::Direct])
    };
    let trial = held(|config| config.scenes[0].spec.name = "elsewhere".into(), options).await;
    assert!(!trial.is_passed() && trial.failures.len() > 40, "{trial}");
    assert!(trial.failures.iter().all(|why| why.contains("unknown_scene")), "{trial}");
}

#[test]
fn the_command_prints_one_json_object_or_a_table() {
    let args = ["load", "cheat", "--for", "4s", "--count", "2"];
    let (code, stdout, stderr) =
        out(&lab(&[&args[..], &["--json"]].concat()).output().expect("it runs"));
    assert_eq!((code, stdout.lines().count()), (0, 1), "{stdout}{stderr}");
    let told: serde_json::Value = serde_json::from_str(&stdout).expect("one object");
    assert_eq!((&told["passed"], &told["honest"]["players"]), (&true.into(), &12.into()), "{told}");
    assert_eq!(told["honest"]["refused"], serde_json::json!({}), "{told}");
    let cheats = told["cheats"].as_array().expect("a list");
    assert!(cheats.len() > 80, "{told}");
    for cheat in cheats {
        assert!(cheat["class"].is_string() && cheat["refused"].is_object(), "{cheat}");
        assert!(cheat["gain_percent"].is_number() && cheat["said"].as_u64() > Some(0), "{cheat}");
    }
    let believes = ["--set", "scene.0.moves=trusted"];
    let (code, stdout, stderr) =
        out(&lab(&[&args[..], &believes[..]].concat()).output().expect("it runs"));
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert!(stdout.contains("TOO FAR") && stdout.ends_with("NOT PASSED\n"), "{stdout}");
}
