//! `purview ctl find` and `entity` over a real cluster: each process answers for the whole cluster, and its answers
//! match the OpenAPI document.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::console::schema::{document, wrong_with};
use crate::walkers::token;
use purview::scene::{EntityId, Pos};
use purview::wire::CloseCode;
use purview_client::{Client, ClientError, Event, join_at};
use purview_lab::testbed::local_cluster::{LocalCluster, Parts};
use purview_server::admin::{People, Whereabouts};
use purview_server::config::Config;
use purview_server::http;
use tokio::runtime::{Builder, Runtime};

/// How long a test waits for a state that must come.
const PATIENCE: Duration = Duration::from_secs(60);

const CLIENTS: i32 = 12;

fn config() -> Config {
    let text = "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n[console]\nlisten = \"127.0.0.1:0\"\n\
                [cluster]\nlease = \"3s\"\n\
                [[scene]]\nteleports = \"clients\"\n\
                name = \"field\"\nwidth = \"384m\"\ndepth = \"256m\"\nland = \"64m\"\n\
                region = [2, 2]\npatch = \"16m\"\nmoves = \"trusted\"\ntop_speed = \"20m/s\"\n";
    Config::parse(text).unwrap()
}

/// Runs `purview ctl ARGS` with a token in the environment.
fn ctl(args: &[&str], console: &str, token: Option<&str>) -> (Option<i32>, String, String) {
    let console = format!("http://{console}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_purview"));
    command.env_remove("PURVIEW_CONFIG").env_remove("PURVIEW_TOKEN");
    command.envs(token.map(|token| ("PURVIEW_TOKEN", token)));
    let output = command.arg("ctl").args(args).args(["--console", &console]).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A console and its token.
type Asked<'a> = (&'a str, &'a str);

/// An answer with this status, compared with the document.
fn ask<T: serde::de::DeserializeOwned>(
    runtime: &Runtime,
    (console, token): Asked<'_>,
    route: &str,
    path: &str,
    status: u16,
) -> T {
    let base = format!("http://{console}");
    let answer = runtime.block_on(http::get_as(&base, path, Some(token))).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.status, status, "{path}: {body}");
    assert_eq!(wrong_with(&document(), route, status, &body), Vec::<String>::new(), "{path}");
    serde_json::from_value(body).unwrap()
}

/// The position of client `i`: six clients in each half of the scene.
fn position(i: i32) -> Pos {
    Pos::ground(1_000 + i * 3_200, 3_000 + i % 2 * 15_000)
}

/// Lets all clients join; their entities, in order.
fn join_all(cluster: &LocalCluster, runtime: &Runtime) -> Vec<(EntityId, Client)> {
    let url = cluster.url(0).unwrap();
    let join = async |i| {
        let token = token(cluster, &format!("player {i}"));
        let mut client = Client::connect(&url, &token).await.expect("the gateway accepts it");
        let joined = client.join(join_at("field", position(i))).await.expect("there is room");
        (joined.id, client)
    };
    (0..CLIENTS).map(|i| runtime.block_on(join(i))).collect()
}

/// Waits until this console lists all players, and compares each with what `/api/entity` says.
fn check_console(runtime: &Runtime, console: (&str, &str), ids: &[EntityId]) {
    let begin = Instant::now();
    let people = loop {
        let people: People = ask(runtime, console, "/api/players", "/api/players", 200);
        if people.players.len() == ids.len() {
            break people;
        }
        assert!(begin.elapsed() < PATIENCE, "{people:?}");
    };
    let listed: BTreeSet<_> = people.players.iter().map(|p| p.id).collect();
    assert_eq!(listed, ids.iter().copied().collect());
    assert_eq!((people.late.len(), people.silent.len()), (0, 0));
    let nodes: BTreeSet<&str> = people.players.iter().map(|p| p.node.as_str()).collect();
    assert_eq!(nodes, BTreeSet::from(["node-1", "node-2"]), "both nodes have players");
    for (i, id) in ids.iter().enumerate() {
        let path = format!("/api/entity/{id}");
        let there: Whereabouts = ask(runtime, console, "/api/entity/{id}", &path, 200);
        assert_eq!((there.id, there.pos, &*there.scene), (*id, position(i as i32), "field"));
        assert_eq!(people.players.iter().find(|p| p.id == *id), Some(&there));
    }
    let _: serde_json::Value = ask(runtime, console, "/api/entity/{id}", "/api/entity/424242", 404);
    let _: serde_json::Value = ask(runtime, console, "/api/cluster", "/api/cluster", 200);
}

/// What `purview ctl` prints, with and without a valid token.
fn check_ctl(consoles: &[String], token: &str, first: EntityId) {
    let (code, stdout, stderr) = ctl(&["find"], &consoles[2], Some(token));
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(stdout.ends_with("12 player(s)\n") && stdout.contains("node-2"), "{stdout}");
    let id = first.to_string();
    let (code, stdout, stderr) =
        ctl(&["find", &id, "--json", "--token", token], &consoles[2], None);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    let there: Whereabouts = serde_json::from_str(&stdout).unwrap();
    assert_eq!(there.pos, position(0));
    let (code, stdout, stderr) = ctl(&["find", "424242"], &consoles[0], Some(token));
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("no process has an entity 424242"), "{stderr}");
    for (args, token) in [(&["find"][..], None), (&["find", "--token", "x"], Some(token))] {
        let (code, stdout, stderr) = ctl(args, &consoles[0], token);
        assert_eq!((code, stdout.as_str()), (Some(1), ""));
        assert!(stderr.contains("no token") && stderr.contains("token_file"), "{stderr}");
    }
}

#[test]
fn every_process_knows_the_positions_of_all_entities_of_the_cluster() {
    let program = Path::new(env!("CARGO_BIN_EXE_purview"));
    let parts = Parts { nodes: 2, gateways: 1 };
    let place = tempfile::tempdir().unwrap();
    let mut config = config();
    // The first process creates the token, the others read it.
    let token_file = place.path().join("console.token");
    config.console.token_file = Some(token_file.clone());
    // Without this file ctl would find the command token of the run, which may read, too.
    config.console.command_token_file = Some(place.path().join("command.token"));
    let cluster = LocalCluster::start(program, &config, parts, &mut |_| {}).unwrap();
    let token = std::fs::read_to_string(token_file).unwrap().trim().to_owned();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let clients = join_all(&cluster, &runtime);
    let ids: Vec<EntityId> = clients.iter().map(|(id, _)| *id).collect();
    let members = cluster.nodes().iter().chain(cluster.gateways());
    let consoles: Vec<String> = members.map(|m| m.ready().unwrap().console.unwrap()).collect();
    for console in &consoles {
        check_console(&runtime, (console, &token), &ids);
    }
    check_ctl(&consoles, &token, ids[0]);

    // A process that does not answer is named; the others still answer.
    cluster.nodes()[1].pause();
    let (code, stdout, _) = ctl(&["find"], &consoles[2], Some(&token));
    cluster.nodes()[1].resume();
    assert_eq!(code, Some(3), "{stdout}");
    assert!(stdout.contains("node-2 does not answer"), "{stdout}");
    assert!(stdout.contains("node-1\n"), "{stdout}");
}

#[test]
fn an_operator_ends_the_sessions_of_a_subject_and_bars_it() {
    let program = Path::new(env!("CARGO_BIN_EXE_purview"));
    let parts = Parts { nodes: 1, gateways: 2 };
    let place = tempfile::tempdir().unwrap();
    let mut config = config();
    let token_file = place.path().join("command.token");
    config.console.token_file = Some(place.path().join("console.token"));
    config.console.command_token_file = Some(token_file.clone());
    let cluster = LocalCluster::start(program, &config, parts, &mut |_| {}).unwrap();
    let token = std::fs::read_to_string(token_file).unwrap().trim().to_owned();
    let reading = std::fs::read_to_string(place.path().join("console.token")).unwrap();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let hour = Some(Duration::from_secs(3_600));
    let login = |subject: &str, gateway: usize| {
        let (url, token) = (cluster.url(gateway).unwrap(), cluster.tokens().mint(subject, hour));
        runtime.block_on(async {
            let mut client = Client::connect(&url, &token.unwrap()).await?;
            client.join(join_at("field", Pos::ground(3_000, 3_000))).await?;
            Ok::<_, ClientError>(client)
        })
    };
    let ended = |client: &mut Client| {
        runtime.block_on(async {
            loop {
                match client.next().await.unwrap() {
                    Event::Closed { code, .. } => return code,
                    _ => continue,
                }
            }
        })
    };
    let (mut ada, mut bob) = (login("ada", 1).unwrap(), login("bob", 1).unwrap());
    let console = cluster.gateways()[0].ready().unwrap().console.unwrap();
    // Reading does not permit it, and the session goes on.
    let (code, _, stderr) = ctl(&["kick", "ada"], &console, Some(reading.trim()));
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("403") || stderr.contains("command"), "{stderr}");
    let (code, _, stderr) = ctl(&["kick", &"x".repeat(2_000)], &console, Some(&token));
    assert_eq!(code, Some(1), "{stderr}");
    // The order is given at one gateway and ends the session at the other one.
    let (code, stdout, stderr) = ctl(&["kick", "ada", "--for", "1h"], &console, Some(&token));
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(stdout.contains("\"ada\""), "{stdout}");
    assert_eq!(ended(&mut ada), Some(CloseCode::Kicked));
    for gateway in 0..2 {
        let begin = Instant::now();
        while !matches!(
            login("ada", gateway),
            Err(ClientError::Closed { code: Some(CloseCode::Kicked), .. })
        ) {
            assert!(begin.elapsed() < PATIENCE, "the subject is barred at every gateway");
        }
    }
    // A bar of no time ends it; a subject that was not named has noticed nothing.
    let (code, stdout, _) = ctl(&["kick", "ada", "--for", "0s", "--json"], &console, Some(&token));
    let told: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &told["ordered"]), (Some(0), &true.into()));
    let begin = Instant::now();
    while login("ada", 1).is_err() {
        assert!(begin.elapsed() < PATIENCE, "the bar is over");
    }
    runtime.block_on(bob.leave()).unwrap();
}
