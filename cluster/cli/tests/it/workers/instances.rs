//! Private instances by the hundred, opened, filled, emptied and closed by a worker.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use purview_client::Trust;
use purview_server::config::Config;
use purview_server::http::Caller;
use purview_server::logic::proto::{self, command};
use purview_server::node::Roles;
use purview_server::process::ClusterProcess;
use purview_server::storage::leases::embedded::Embedded;
use purview_server::storage::{Event, Leases};
use serde_json::Value;

use super::admission::{close_plane, join_by, open_plane};
use super::cluster::{at, whole};
use super::support::{CONFIG, MONSTER, PATIENCE, Worker, at as place};
use crate::common::{GATEWAY, REGIONS, joined, stop, tries, with_store};

/// Instances that are open at once, and how often they are.
const OPEN: i32 = 100;
const WAVES: i32 = 10;

async fn start(name: &str, store: &Embedded, roles: Roles) -> ClusterProcess {
    let text = format!(
        "[cluster]\nnode = {name:?}\nlisten = \"127.0.0.1:0\"\nlease = \"2s\"\n\
         [logic]\nlisten = \"127.0.0.1:0\"\n[server]\narbiters = 1\n{CONFIG}"
    );
    let mut config = Config::parse(&text).expect("a configuration");
    config.gateway.lame_duck = Duration::ZERO;
    config.console.listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    joined(&config, roles, Arc::new(store.another())).await
}

/// What instances may leave behind: keys of the store, series of metrics, planes and entities.
async fn traces(store: &Embedded, processes: &[ClusterProcess]) -> BTreeSet<String> {
    let mut traces = BTreeSet::new();
    let Some(Ok(Event::Snapshot(view))) = store.another().watch().next().await else {
        panic!("the store tells what it has");
    };
    traces.extend(view.values.keys().map(|key| format!("value {key}")));
    traces.extend(view.owners.keys().map(|key| format!("region {key}")));
    let caller = Caller { token: None, trust: Trust::default() };
    for process in processes {
        let url = format!("http://{}", process.console_addr().expect("it has a console"));
        let metrics = caller.get(&url, "/metrics").await.expect("an answer").body;
        let text = String::from_utf8(metrics.to_vec()).expect("text");
        let series = text.lines().filter(|line| !line.starts_with('#'));
        let name = |line: &str| line.rsplit_once(' ').map_or(line, |(name, _)| name).to_owned();
        traces.extend(series.map(|line| format!("{} {}", process.name(), name(line))));
        let scenes = caller.get(&url, "/api/scenes").await.expect("an answer").body;
        let scenes: Value = serde_json::from_slice(&scenes).expect("JSON");
        for plane in scenes["scenes"][0]["planes"].as_array().into_iter().flatten() {
            traces.insert(format!("{} plane {plane}", process.name()));
        }
    }
    traces
}

/// Opens instances, fills some of them, and closes all.
async fn wave(worker: &mut Worker, url: &str, first: i32, count: i32) {
    let planes = first..first + count;
    for plane in planes.clone() {
        worker.give((plane % 4) as u32, 0, open_plane(plane, &["ann"]));
    }
    worker.until(|w| w.planes.len() == count as usize).await;
    let mut monsters = Vec::new();
    for plane in planes.clone().step_by(10) {
        let position = place(5_000, 5_000);
        let spawn = proto::Spawn { kind: MONSTER, position, plane, ..proto::Spawn::default() };
        let monster = worker.next_id;
        worker.next_id += 1;
        worker.give(0, monster, command::Command::Spawn(spawn));
        monsters.push(monster);
    }
    worker.until(|w| monsters.iter().all(|monster| w.has(*monster))).await;
    // The gateway hears of the plane.
    let visit =
        tries("the plane is open", async || join_by(url, "ann", Some(first)).await.map(drop));
    worker.serve_while(visit).await;
    for monster in &monsters {
        worker.give(0, *monster, command::Command::Despawn(proto::Despawn {}));
    }
    for plane in planes {
        worker.give((plane % 4) as u32, 0, close_plane(plane));
    }
    worker.until(|w| w.planes.is_empty() && !monsters.iter().any(|m| w.has(*m))).await;
}

#[test]
fn a_thousand_instances_over_three_nodes_leave_nothing_behind() {
    with_store(async |store, _| {
        let mut processes = Vec::new();
        for (name, roles) in [("a", REGIONS), ("b", REGIONS), ("c", REGIONS), ("g", GATEWAY)] {
            processes.push(start(name, store, roles).await);
        }
        whole(&processes.iter().collect::<Vec<_>>()).await;
        let url = format!("ws://{}/", processes[3].ws_addr().expect("clients can connect"));
        let mut worker = Worker::begin_at(&at(&processes[0]), "instances").await;
        worker.until(|w| w.leases.len() == 4).await;
        // What the first instance makes stays: the player's record, and series that count.
        wave(&mut worker, &url, 1_000, 1).await;
        worker.ticks(100).await;
        let mut before = traces(store, &processes).await;
        // The leader writes it now and then.
        before.insert("value clock_seen".into());
        for n in 0..WAVES {
            wave(&mut worker, &url, 2_000 + n * OPEN, OPEN).await;
        }
        assert!(worker.results.is_empty(), "{:?}", worker.results);
        // The last visitor stays for its grace period.
        let begin = Instant::now();
        loop {
            worker.ticks(20).await;
            let after = traces(store, &processes).await;
            let new: Vec<&String> = after.difference(&before).collect();
            if new.is_empty() {
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "{new:?}");
        }
        stop(processes).await;
    });
}
