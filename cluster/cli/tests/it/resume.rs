//! A gateway of a real cluster (etcd, PostgreSQL, two nodes and two gateways, each a process) is killed, started
//! again, or asked to end, while clients walk. Each comes back by another one, or by the same when it is there
//! again: as the same player, with every input applied once, and in the end every client is shown exactly who
//! is near it, where its last input has put it. Nobody has seen anybody leave.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use purview::scene::movement::ServerMs;
use purview::scene::{EntityId, Pos, Seq};
use purview::wire::client::Join;
use purview_client::{ClientError, Event, Player, Retry, View, join_at};
use purview_lab::testbed::local_cluster::{LocalCluster, Parts};
use purview_server::config::Config;
use purview_server::storage::Whole;
use purview_server::storage::checkpoints::postgres::Postgres;
use tokio::runtime::{Builder, Runtime};

use crate::end_to_end::durable::{Beasts, beasts};
use crate::failover::trial::{ctl, survey};

/// Nothing here takes this long, unless it never comes.
const PATIENCE: Duration = Duration::from_secs(90);

const CLIENTS: i32 = 24;

/// Near ones are seen at less than this, centimetres; nobody stands between this and the leave radius.
const ENTER_CM: i32 = 4_000;

/// Six regions; places are trusted, so that where somebody is, is what its last input said.
fn config() -> Config {
    let text = "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\nlinger = \"30s\"\n[console]\nlisten = \"off\"\n\
                [cluster]\nlease = \"3s\"\ncheckpoint = \"1s\"\n\
                [[scene]]\nname = \"field\"\nwidth = \"384m\"\ndepth = \"256m\"\nland = \"64m\"\n\
                region = [2, 2]\npatch = \"16m\"\nvisibility = \"circle\"\nenter = \"40m\"\n\
                leave = \"44m\"\nmoves = \"trusted\"\ntop_speed = \"20m/s\"\n\
                rates = { near = \"100ms\", middle = \"100ms\", far = \"100ms\" }\n";
    Config::parse(text).unwrap()
}

/// A client as the test knows it.
struct Walker {
    id: EntityId,
    view: View,
    /// Where its last input puts it, and that input's number.
    pos: Pos,
    said: Seq,
    /// How often it has come back.
    resumed: u64,
    /// Enters and leaves that it was told of beside what a frame that tells everything anew says.
    comings: u64,
    /// Why it is no client any more.
    fault: Option<String>,
}

type Shared = Arc<Mutex<Walker>>;

/// Where a client walks to and fro: some of them across a border. Neighbours stay near even if one of them stands.
fn way(i: i32, step: i32) -> Pos {
    let (from, row) = (3_700 + i % 12 * 2_900, 1_500 + i / 12 * 9_000);
    let there = (step * 80) % 2_000;
    let along = if there < 1_000 { there } else { 2_000 - there };
    Pos::ground(from + along, row)
}

async fn client(
    (urls, token): (Vec<String>, String),
    (i, began): (i32, Instant),
    walks: Arc<AtomicBool>,
    shared: tokio::sync::oneshot::Sender<Shared>,
) {
    let join = join_at("field", way(i, 0));
    let retry = Retry::default();
    let (mut player, joined) =
        Player::join(&urls, &token, join, retry).await.expect("it is let in");
    let walker = Walker {
        id: joined.id,
        view: View::of(&joined),
        pos: joined.pos,
        said: Seq(0),
        resumed: 0,
        comings: 0,
        fault: None,
    };
    let walker = Arc::new(Mutex::new(walker));
    assert!(shared.send(walker.clone()).is_ok());
    let mut clock = tokio::time::interval(Duration::from_millis(100));
    let fault = loop {
        tokio::select! {
            _ = clock.tick() => {
                if !walks.load(Ordering::Relaxed) {
                    continue;
                }
                // All in step: who is near stays near.
                let pos = way(i, (began.elapsed().as_millis() / 100) as i32);
                match player.send_move(pos).await {
                    Ok(seq) => {
                        let mut walker = walker.lock().unwrap();
                        (walker.pos, walker.said) = (pos, seq);
                    }
                    // It says the rest when it is back.
                    Err(ClientError::Behind(_)) => {}
                    Err(e) => break e.to_string(),
                }
            }
            event = player.next() => match event {
                Ok(Event::Frame(frame)) => {
                    if !frame.refused.is_empty() {
                        break format!("refused: {:?}", frame.refused);
                    }
                    let mut walker = walker.lock().unwrap();
                    if !frame.resync {
                        walker.comings += (frame.enters.len() + frame.leaves.len()) as u64;
                    }
                    if let Err(e) = walker.view.apply(&frame) {
                        break e.to_string();
                    }
                }
                Ok(Event::Resumed(joined)) => {
                    let mut walker = walker.lock().unwrap();
                    if joined.id != walker.id {
                        break format!("came back as {}, not as {}", joined.id, walker.id);
                    }
                    walker.resumed += 1;
                }
                Ok(other) => break format!("was told {other:?}"),
                Err(e) => break e.to_string(),
            },
        }
    };
    walker.lock().unwrap().fault = Some(fault);
}

struct Trial {
    /// Where the clients live.
    _runtime: Runtime,
    cluster: LocalCluster,
    walks: Arc<AtomicBool>,
    walkers: Vec<Shared>,
}

impl Trial {
    /// A cluster on which everybody walks. Those who see each other are at different gateways, and know all.
    fn start(gateways: u16) -> Trial {
        Trial::of(&config(), gateways)
    }

    fn of(config: &Config, gateways: u16) -> Trial {
        let program = Path::new(env!("CARGO_BIN_EXE_purview"));
        let parts = Parts { nodes: 2, gateways };
        let cluster = LocalCluster::start(program, config, parts, &mut |_| {}).unwrap();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let urls: Vec<String> = (0..gateways).map(|i| cluster.url(i.into()).unwrap()).collect();
        let walks = Arc::new(AtomicBool::new(true));
        let began = Instant::now();
        let joined = (0..CLIENTS).map(|i| {
            let (tell, told) = tokio::sync::oneshot::channel();
            let mut urls = urls.clone();
            urls.rotate_left(i as usize % usize::from(gateways));
            let token = cluster
                .tokens()
                .mint(&format!("walker {i}"), Some(Duration::from_secs(3_600)))
                .unwrap();
            runtime.spawn(client((urls, token), (i, began), walks.clone(), tell));
            runtime.block_on(told).expect("it joins")
        });
        let walkers = joined.collect();
        let trial = Trial { _runtime: runtime, cluster, walks, walkers };
        trial.settles("before anything happens");
        trial
    }

    /// What is not as it should be: everybody's last input counts, and everybody is shown exactly those who
    /// are near, where they are.
    fn wrong(&self) -> Vec<String> {
        let all: Vec<_> = self.walkers.iter().map(|w| w.lock().unwrap()).collect();
        let mut wrong = Vec::new();
        for me in &all {
            if let Some(fault) = &me.fault {
                panic!("{} is no client any more: {fault}", me.id);
            }
            if me.view.ack() != me.said {
                wrong.push(format!("{}: input {} of {}", me.id, me.view.ack(), me.said));
            }
            for other in &all {
                let shown = me.view.get(other.id).map(|seen| seen.position(ServerMs(0)));
                let due = is_near(me, other).then_some(other.pos);
                if shown != due {
                    wrong.push(format!("{} shows {} at {shown:?}, not {due:?}", me.id, other.id));
                }
            }
        }
        wrong
    }

    /// Everybody stops, and after a while everything is as it should be; then all go on.
    fn settles(&self, when: &str) {
        self.stand(when);
        self.walks.store(true, Ordering::Relaxed);
    }

    /// Everybody stops, and after a while everything is as it should be.
    fn stand(&self, when: &str) {
        self.walks.store(false, Ordering::Relaxed);
        let begin = Instant::now();
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let wrong = self.wrong();
            if wrong.is_empty() {
                break;
            }
            let first = wrong.first();
            assert!(begin.elapsed() < PATIENCE, "{when}: {} wrong: {first:?}", wrong.len());
        }
    }

    /// Of each client: how often it has come back, and what it was told of comings and goings.
    fn told(&self) -> Vec<(u64, u64)> {
        let told = |w: &Shared| {
            let w = w.lock().unwrap();
            (w.resumed, w.comings)
        };
        self.walkers.iter().map(told).collect()
    }

    /// Everything but PostgreSQL dies, and is started again; the etcd goes on with what it had, or with nothing.
    fn everything_dies(&mut self, etcd_forgets: bool) {
        self.cluster.nodes().iter().for_each(|node| node.kill());
        self.cluster.gateways()[0].kill();
        let etcd = self.cluster.etcd();
        etcd.kill();
        if etcd_forgets {
            std::fs::remove_dir_all(etcd.dir().join("etcd")).unwrap();
        }
        etcd.restart().unwrap();
        for name in ["node-3", "node-4"] {
            self.cluster.add_node(name.into()).unwrap();
        }
        self.cluster.restart_gateway(0).unwrap();
    }

    /// Waits until everybody has come back at least once.
    fn all_come_back(&self) {
        let begin = Instant::now();
        while !self.told().iter().all(|(resumed, _)| *resumed > 0) {
            assert!(begin.elapsed() < PATIENCE, "{:?}: {:?}", self.told(), self.wrong().first());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn walk(&self, seconds: u64) {
        std::thread::sleep(Duration::from_secs(seconds));
    }
}

fn is_near(me: &Walker, other: &Walker) -> bool {
    let (dx, dz) = (i64::from(other.pos.x - me.pos.x), i64::from(other.pos.z - me.pos.z));
    let enter = i64::from(ENTER_CM);
    other.id != me.id && dx * dx + dz * dz <= enter * enter
}

#[test]
fn clients_of_a_gateway_that_is_killed_come_back_by_the_other_one_and_nobody_else_notices() {
    let mut trial = Trial::start(2);
    trial.walk(2);
    let before = trial.told();
    trial.cluster.gateways()[0].kill();
    trial.walk(6);
    trial.settles("after a gateway is killed");
    let after = trial.told();
    for (i, (before, after)) in before.iter().zip(&after).enumerate() {
        // Every other client was at the gateway that died.
        assert_eq!(after.0, before.0 + u64::from(i % 2 == 0), "client {i}");
        assert_eq!(after.1, before.1, "client {i} was told of somebody who came or went");
    }
    // And the other way round.
    trial.cluster.restart_gateway(0).unwrap();
    trial.cluster.gateways()[1].kill();
    trial.walk(6);
    trial.settles("after the other one is killed");
    let last = trial.told();
    assert!(last.iter().zip(&after).all(|(now, then)| now.0 > then.0 && now.1 == then.1));
}

#[test]
fn clients_of_the_only_gateway_come_back_when_it_is_there_again() {
    let mut trial = Trial::start(1);
    trial.walk(2);
    trial.cluster.gateways()[0].kill();
    trial.walk(1);
    trial.cluster.restart_gateway(0).unwrap();
    trial.all_come_back();
    trial.settles("after it was started again");
}

#[test]
fn a_gateway_that_is_asked_to_end_sends_its_clients_elsewhere_and_ends_in_order() {
    let trial = Trial::start(2);
    trial.walk(2);
    let before = trial.told();
    let gateway = &trial.cluster.gateways()[1];
    gateway.terminate();
    trial.walk(4);
    trial.settles("after a gateway has ended");
    for (i, (before, after)) in before.iter().zip(trial.told()).enumerate() {
        assert_eq!(after, (before.0 + u64::from(i % 2 == 1), before.1), "client {i}");
    }
    assert_eq!(gateway.exit_code(), Some(0));
}

#[test]
fn after_a_cold_start_of_everything_players_are_where_they_were() {
    cold_start(false);
}

#[test]
fn after_a_cold_start_with_an_etcd_that_has_lost_everything_players_are_where_they_were() {
    cold_start(true);
}

/// The changes of maps that PostgreSQL has, by scene.
fn kept_layouts(cluster: &mut LocalCluster, name: &str) -> Vec<(String, u64)> {
    let url = cluster.postgres().url();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Postgres::connect(&url, name).await.unwrap();
        let layouts = store.layouts().await.unwrap();
        layouts.into_iter().map(|layout| (layout.scene, layout.change)).collect()
    })
}

#[test]
fn a_changed_layout_outlives_an_etcd_that_loses_everything() {
    let mut config = config();
    config.console.listen = Some(([127, 0, 0, 1], 0).into());
    let mut trial = Trial::of(&config, 1);
    trial.walk(1);
    let scale = ["scene", "scale", "field", "--regions", "3x1"];
    assert_eq!(ctl(&trial.cluster.gateways()[0], &scale)["done"], true);
    trial.stand("with three regions");
    let before = survey(&trial.cluster.gateways()[0]).maps.remove(0);
    assert_eq!((before.version, before.regions), (2, 3));
    let begin = Instant::now();
    while kept_layouts(&mut trial.cluster, &config.cluster.name).is_empty() {
        assert!(begin.elapsed() < PATIENCE, "the layout is not kept");
        std::thread::sleep(Duration::from_millis(100));
    }
    // For checkpoints by the new map to be kept.
    trial.walk(3);
    trial.everything_dies(true);
    trial.all_come_back();
    trial.stand("after the cold start");
    let after = survey(&trial.cluster.gateways()[0]).maps.remove(0);
    assert_eq!((after.version, after.regions), (2, 3), "the configuration has six");
    // It can change again, and no name of a region is given twice.
    let region = survey(&trial.cluster.gateways()[0]).regions.remove(0).region;
    let split = ctl(&trial.cluster.gateways()[0], &["split", &format!("R{region}")]);
    assert_eq!(split["done"], true);
    trial.stand("with four regions");
}

/// Everybody whom no client steers, on the nodes that live, once all are there: one that is just handed over is in
/// no region.
fn fauna(cluster: &LocalCluster) -> Beasts {
    let begin = Instant::now();
    loop {
        let mut all = Beasts::new();
        for node in cluster.nodes().iter().filter(|node| node.ended().is_none()) {
            let console = node.ready().and_then(|ready| ready.console).expect("it has a console");
            for (kind, of) in beasts(&console.to_string(), "field") {
                all.entry(kind).or_default().extend(of);
            }
        }
        if all.len() == 4 && all.values().all(|of| of.len() >= 12) {
            return all;
        }
        assert!(begin.elapsed() < PATIENCE, "{all:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The same ones are there, each as far from where it was as one walks in that time, or where it lay.
fn live_on(before: &Beasts, after: &Beasts, since: Duration) {
    for (kind, of) in before {
        let ids = |of: &BTreeMap<u64, (i64, i64)>| of.keys().copied().collect::<Vec<_>>();
        assert_eq!(ids(&after[kind]), ids(of), "of kind {kind}");
        let far = if *kind <= 2 { since.as_secs_f64() * 150.0 + 300.0 } else { 0.0 };
        for (id, (x, z)) in &after[kind] {
            let (was_x, was_z) = of[id];
            let gone = ((x - was_x) as f64).hypot((z - was_z) as f64);
            assert!(gone <= far, "{id} is {gone} cm from where it was");
        }
    }
}

/// Everybody is where they were after a cold start.
fn cold_start(etcd_forgets: bool) {
    let mut config = config();
    config.server.fauna = true;
    config.console.listen = Some(([127, 0, 0, 1], 0).into());
    let mut trial = Trial::of(&config, 1);
    trial.walk(2);
    trial.stand("before the end");
    // For checkpoints and last places to be kept.
    trial.walk(3);
    let (lived, began) = (fauna(&trial.cluster), Instant::now());
    let urls = [trial.cluster.url(0).unwrap()];
    let placed: Vec<Pos> = trial.walkers.iter().map(|w| w.lock().unwrap().pos).collect();
    trial.everything_dies(etcd_forgets);
    // Whoever knows its player comes back to it.
    trial.all_come_back();
    trial.stand("after the cold start");
    live_on(&lived, &fauna(&trial.cluster), began.elapsed());
    // Whoever knows nothing but its name joins where it was last.
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for i in [0, 5, CLIENTS as usize - 1] {
            let token = trial
                .cluster
                .tokens()
                .mint(&format!("walker {i}"), Some(Duration::from_secs(3_600)))
                .unwrap();
            let join = Join { pos: None, ..join_at("field", Pos::default()) };
            let (mut player, joined) =
                Player::join(&urls, &token, join, Retry::default()).await.unwrap();
            assert_eq!(joined.pos, placed[i], "walker {i}");
            player.leave().await.unwrap();
        }
        let token =
            trial.cluster.tokens().mint("nobody before", Some(Duration::from_secs(3_600))).unwrap();
        let join = Join { pos: None, ..join_at("field", Pos::default()) };
        let (_, joined) = Player::join(&urls, &token, join, Retry::default()).await.unwrap();
        let spec = &config.scenes[0].spec;
        assert_eq!((joined.pos.x, joined.pos.z), (spec.spawn_x_cm, spec.spawn_z_cm));
    });
}
