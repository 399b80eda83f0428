//! `purview ctl find` and `entity` over a real cluster: each process answers for the whole cluster, and its answers
//! match the OpenAPI document.

use std::collections::BTreeSet;

use purview::scene::{EntityId, Pos};
use purview::wire::CloseCode;
use purview_client::{Client, ClientError, join_at};
use purview_lab::testbed::local_cluster::LocalCluster;
use purview_server::admin::{People, Whereabouts};
use purview_server::http;
use tokio::runtime::Runtime;

use crate::common::{closed, cluster, console, members, runtime, try_for, wait_for};
use crate::console::schema::{document, wrong_with};
use crate::end_to_end::process::{done, purview};
use crate::walkers::{field, token};

const CLIENTS: i32 = 12;

/// Runs `purview ctl ARGS` with a token in the environment.
fn ctl(args: &[&str], console: &str, token: Option<&str>) -> (Option<i32>, String, String) {
    let console = format!("http://{console}");
    let mut command = purview(&[&["ctl"], args, &["--console", &console]].concat());
    let done = done(command.envs(token.map(|token| ("PURVIEW_TOKEN", token))));
    (done.code, done.stdout, done.stderr)
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
    let people = try_for("all players", || {
        let people: People = ask(runtime, console, "/api/players", "/api/players", 200);
        if people.players.len() == ids.len() { Ok(people) } else { Err(people) }
    });
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
    let wrong = ["x", "-x"].map(|wrong| ["find", "--token", wrong]);
    for (args, token) in
        [(&["find"][..], None), (&wrong[0][..], Some(token)), (&wrong[1][..], Some(token))]
    {
        let (code, stdout, stderr) = ctl(args, &consoles[0], token);
        assert_eq!((code, stdout.as_str()), (Some(1), ""));
        assert!(stderr.contains("no token") && stderr.contains("token_file"), "{stderr}");
    }
}

#[test]
fn any_process_knows_where_all_players_are_and_ends_their_sessions() {
    let place = tempfile::tempdir().unwrap();
    let mut config = field("[cluster]\nlease = \"3s\"\n");
    // The first process creates the tokens, the others read them.
    let files = ["console.token", "command.token"].map(|name| place.path().join(name));
    [config.console.token_file, config.console.command_token_file] = files.clone().map(Some);
    let cluster = cluster(&config, 2, 2);
    let [read, command] = files.map(|file| std::fs::read_to_string(file).unwrap());
    let (token, runtime) = (read.trim(), runtime());
    let mut clients = join_all(&cluster, &runtime);
    let ids: Vec<EntityId> = clients.iter().map(|(id, _)| *id).collect();
    let consoles: Vec<String> = members(&cluster).map(console).collect();
    for console in &consoles {
        check_console(&runtime, (console, token), &ids);
    }
    check_ctl(&consoles, token, ids[0]);
    // Their sessions go on meanwhile.
    clients.iter_mut().for_each(|(_, client)| runtime.block_on(client.ping(1)).unwrap());
    let tokens = [token, command.trim()];
    an_operator_ends_the_sessions_of_a_subject_and_bars_it(&runtime, &cluster, tokens);

    // A process that does not answer is named; the others still answer.
    cluster.nodes()[1].pause();
    let (code, stdout, _) = ctl(&["find"], &consoles[2], Some(token));
    cluster.nodes()[1].resume();
    assert_eq!(code, Some(3), "{stdout}");
    assert!(stdout.contains("node-2 does not answer"), "{stdout}");
    assert!(stdout.contains("node-1\n"), "{stdout}");
}

fn an_operator_ends_the_sessions_of_a_subject_and_bars_it(
    runtime: &Runtime,
    cluster: &LocalCluster,
    [reading, command]: [&str; 2],
) {
    let login = |subject: &str, gateway: usize| {
        let (url, token) = (cluster.url(gateway).unwrap(), token(cluster, subject));
        runtime.block_on(async {
            let mut client = Client::connect(&url, &token).await?;
            client.join(join_at("field", Pos::ground(3_000, 3_000))).await?;
            Ok::<_, ClientError>(client)
        })
    };
    let (mut ada, mut bob) = (login("ada", 1).unwrap(), login("bob", 1).unwrap());
    let console = console(&cluster.gateways()[0]);
    // Reading does not permit it, and the session goes on.
    let (code, _, stderr) = ctl(&["kick", "ada"], &console, Some(reading));
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("403") || stderr.contains("command"), "{stderr}");
    let (code, _, stderr) = ctl(&["kick", &"x".repeat(2_000)], &console, Some(command));
    assert_eq!(code, Some(1), "{stderr}");
    // The order is given at one gateway and ends the session at the other one.
    let (code, stdout, stderr) = ctl(&["kick", "ada", "--for", "1h"], &console, Some(command));
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(stdout.contains("\"ada\""), "{stdout}");
    assert_eq!(runtime.block_on(closed(&mut ada)), Some(CloseCode::Kicked));
    for gateway in 0..2 {
        wait_for("the subject is barred at every gateway", || {
            let barred = login("ada", gateway);
            matches!(barred, Err(ClientError::Closed { code: Some(CloseCode::Kicked), .. }))
        });
    }
    // A bar of no time ends it; a subject that was not named has noticed nothing.
    let (code, stdout, _) = ctl(&["kick", "ada", "--for", "0s", "--json"], &console, Some(command));
    let told: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &told["ordered"]), (Some(0), &true.into()));
    wait_for("the bar is over", || login("ada", 1).is_ok());
    runtime.block_on(bob.leave()).unwrap();
}
