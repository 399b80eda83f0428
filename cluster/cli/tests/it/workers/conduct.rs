//! Workers that are slow, wrong, old or doubled affect nobody else, and operators are told which ones they are.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::logic::client::Stream;
use purview_server::logic::proto::{self, command, request};
use purview_server::process::Background;
use serde_json::Value;

use super::player::Player;
use super::support::{CONFIG, HP, Happened, MONSTER, Worker, address, open, place, runtime, set};
use crate::common::waits;
use crate::console::browser::{Page, Screen, with_page};
use crate::end_to_end::operations::{get, metric};
use crate::end_to_end::process::run;

/// A server with a console, and its address.
pub fn server(logic: &str) -> (Background, SocketAddr) {
    let text = format!("{CONFIG}\n[logic]\nlisten = \"127.0.0.1:0\"\n{logic}");
    let mut config = Config::parse(&text).expect("a configuration");
    config.console.listen = Some((Ipv4Addr::LOCALHOST, 0).into());
    let server = Background::start(config, Tokens::dev()).expect("a server");
    let console = server.reach().console.expect("it has a console");
    (server, console)
}

/// The output and the exit code of `purview ctl status workers`.
fn ctl(console: SocketAddr, args: &[&str]) -> (String, Option<i32>) {
    let at = ["--console", &format!("http://{console}")];
    let done = run(&[&["ctl", "status", "workers"], &at[..], args].concat());
    (done.stdout, done.code)
}

/// What `purview ctl status workers` says of the worker of a name.
pub fn told_of(console: SocketAddr, name: &str) -> Value {
    let (json, _) = ctl(console, &["--json"]);
    let all: Value = serde_json::from_str(&json).unwrap();
    let workers = all["workers"].as_array().unwrap();
    workers.iter().find(|worker| worker["name"] == name).expect("it is listed").clone()
}

fn counter(console: SocketAddr, name: &str) -> f64 {
    metric(&get(&console.to_string(), "/metrics").1, name)
}

/// A region of the first worker, whatever others have come.
async fn both_have_regions(one: &mut Worker, server: &Background) -> Worker {
    let mut others = Vec::new();
    loop {
        let mut other = Worker::begin(server.reach(), "fast").await;
        let end = one.ticks + 24;
        while one.ticks < end && other.ticks < 24 {
            let steps = [Box::pin(one.step()), Box::pin(other.step())];
            let (step, ..) = futures::future::select_all(steps).await;
            assert!(step.expect("a response"));
        }
        if !one.leases.is_empty() && !other.leases.is_empty() {
            return other;
        }
        // Which regions a worker has the number of its session says.
        others.push(other);
        others.pop().unwrap().stream.close().await.expect("the stream is open");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_reads_nothing_delays_no_region_and_little_waits_for_it() {
    let (server, console) = server("takeover = \"60s\"\n");
    let mut slow = Worker::begin_with_all(server.reach(), "slow").await;
    let mut fast = both_have_regions(&mut slow, &server).await;
    let region = *slow.leases.keys().next().unwrap();
    let own = *fast.leases.keys().next().unwrap();
    let at = |region: u32| 5_000 + 30_000 * region as i32;
    let monster = fast.spawn(own, MONSTER, at(region % 2), at(region / 2));
    fast.until(|w| w.dead.is_empty() && w.counted.len() == 1).await;
    // It acts in the region of the worker that reads nothing from now on.
    let payload = Bytes::from_static(&[7; 1_000]);
    for _ in 0..40 {
        let mut last = 0;
        for _ in 0..1_000 {
            let act = proto::Act { payload: payload.clone(), aim: 0 };
            last = fast.give(own, monster, command::Command::Act(act));
        }
        fast.until(|w| w.counted.contains(&last)).await;
        let waits = told_of(console, "slow")["waiting_bytes"].as_u64().unwrap();
        assert!(waits < 4 << 20, "{waits} bytes wait");
    }
    // It reads again, and is told what there is now, and of the actions that were not too many.
    let number = slow.give(region, monster, set(HP, 7));
    let reads = slow.until(|w| w.counted.contains(&number) && w.property(monster, HP) == Some(7));
    fast.serve_while(reads).await;
    let reads = slow.until(|w| w.acts.len() >= 10_000);
    fast.serve_while(reads).await;
    assert!(counter(console, "purview_logic_missed_actions_total") > 10_000.0);
}

/// A worker that says something that is malformed, and is told so.
async fn is_malformed(server: &Background) {
    let mut stream = Stream::begin(&address(server.reach()), open("malformed")).await.unwrap();
    let commands = vec![proto::Command { entity: 5, ..proto::Command::default() }];
    let lease = Some(proto::Lease::default());
    let answer = proto::Answer { lease, seq: 1, commands };
    stream.send_raw(request::Message::Answer(answer)).await.unwrap();
    while let Ok(told) = stream.next().await {
        assert!(told.is_some(), "the stream ends with a status");
    }
}

/// A worker that speaks for a lease of another time.
async fn is_outdated(server: &Background, console: SocketAddr) -> Stream {
    let stream = Stream::begin(&address(server.reach()), open("outdated")).await.unwrap();
    let lease = Some(proto::Lease { region: 0, epoch: 1 << 40, number: 1 });
    let answer = proto::Answer { lease, seq: 1, commands: Vec::new() };
    stream.send_raw(request::Message::Answer(answer)).await.unwrap();
    waits("the answer is late", || told_of(console, "outdated")["late_answers"] != 0).await;
    stream
}

/// The page shows each worker, the player that a monster chases, and a player's state.
async fn shows_each(page: &Page, player: u64) {
    let row = |name: &str| {
        format!(
            "[...document.querySelectorAll('[data-testid=worker]')]\
             .find((row) => row.cells[0].textContent.startsWith('{name}'))"
        )
    };
    let shows = |name: &str, what: &str| format!("{}?.{what}", row(name));
    page.until(&shows("late", "querySelector('.late')?.hidden === false")).await;
    page.until(&shows("outdated", "title.includes('1 late answers')")).await;
    page.until(&shows("honest", "querySelector('.late')?.hidden === true")).await;
    // Its monster chases the player: a line to it, and the radius in which it watches.
    page.until("window.purview.chases === 1").await;
    page.until("window.purview.radii.length === 1 && window.purview.radii[0][2] > 0").await;
    page.eval(&format!("window.purview.select({player})")).await;
    page.until("document.getElementById('p-state').textContent.includes('hp = 42')").await;
}

#[test]
fn operators_are_told_which_worker_is_late_or_outdated_and_whom_monsters_chase() {
    let (server, console) = server("takeover = \"500ms\"\n");
    let runtime = runtime();
    let (guards, player) = runtime.block_on(async {
        // It has all regions, and answers nothing.
        let late = Worker::begin_with_all(server.reach(), "late").await;
        let mut honest = Worker::begin(server.reach(), "honest").await;
        honest.until(|w| w.leases.len() == 4).await;
        is_malformed(&server).await;
        let outdated = is_outdated(&server, console).await;
        let region = *honest.leases.keys().next().unwrap();
        let monster = honest.spawn(region, MONSTER, 5_000, 5_000);
        honest.give(region, monster, place(5_200, 5_000));
        honest.until(|w| w.has(monster)).await;
        let mut player = Player::join(server.reach(), 5_100, 5_000).await;
        honest.give(region, player.id.0, set(HP, 42));
        let sighted = Happened::Sighted(monster, player.id.0);
        honest
            .until(|w| w.property(player.id.0, HP) == Some(42) && w.happened.contains(&sighted))
            .await;
        player.until(|p| p.view.own().properties.len() == 1).await;
        let id = player.id.0;
        // They go on while operators look.
        tokio::spawn(async move { honest.until(|_| false).await });
        tokio::spawn(async move { player.until(|_| false).await });
        ((late, outdated), id)
    });
    let of = |name| told_of(console, name);
    assert_eq!(of("late")["late"], true);
    assert_eq!(of("outdated")["late_answers"], 1);
    let honest = of("honest");
    assert_eq!((&honest["refused_commands"], &honest["late"]), (&0.into(), &false.into()));
    let (text, code) = ctl(console, &[]);
    assert_eq!(code, Some(3), "some worker is late");
    let line = |name: &str| text.lines().find(|line| line.contains(name)).expect("it is listed");
    assert!(line(" late ").contains(" late "), "{text}");
    for name in [
        "purview_logic_late_workers_total",
        "purview_logic_malformed_streams_total",
        "purview_logic_late_answers_total",
        "purview_logic_workers{state=\"late\"}",
    ] {
        assert!(counter(console, name) >= 1.0, "{name}");
    }
    with_page(format!("http://{console}/"), Screen::Desktop, async |page| {
        shows_each(&page, player).await;
        page.assert_no_errors().await;
    });
    drop(guards);
}
