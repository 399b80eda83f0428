//! A player in TypeScript walks in a cluster of two nodes and two gateways: through a gate, over a
//! border, against a wall; it stalls, loses its connection and its gateway. Clients in Rust watch it:
//! where it rests it is exactly where the server has it, and what it shows of another player in each
//! tick is what a client in Rust shows in that tick.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use purview::scene::{EntityId, Pos};
use purview_client::{Client, Clock, Event, View, Walker, join_at};
use purview_lab::testbed::local_cluster::{LocalCluster, Parts};
use purview_server::config::Config;
use serde_json::json;
use tokio::runtime::Builder;

use super::bot::{Bot, Rest, Shown};
use crate::walkers::token;

/// Two regions with a border at x = 128 m. A wall at x = 120 m has an open gate.
const CONFIG: &str = "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\ngrace_period = \"30s\"\n\
    [console]\nlisten = \"off\"\n[cluster]\nlease = \"3s\"\ncheckpoint = \"1s\"\n\
    [[scene]]\nname = \"field\"\nwidth = \"256m\"\ndepth = \"128m\"\nland = \"64m\"\n\
    region = [2, 2]\npatch = \"16m\"\nvisibility = \"circle\"\nenter = \"60m\"\nleave = \"63m\"\n\
    moves = \"judged\"\ntop_speed = \"8m/s\"\nteleports = \"clients\"\nupdate_error = \"off\"\n\
    kind = [{ name = \"player\", speed = \"5m/s\" }]\n\
    rates = { near = \"100ms\", middle = \"100ms\", far = \"100ms\" }\n\
    [scene.map]\ntile = \"1m\"\n\
    [[scene.map.door]]\nname = \"north\"\ntiles = [120, 40, 1, 8]\nopen = false\n\
    [[scene.map.door]]\nname = \"gate\"\ntiles = [120, 48, 1, 2]\nopen = true\n\
    [[scene.map.door]]\nname = \"south\"\ntiles = [120, 50, 1, 10]\nopen = false\n";

/// The east and west sides of the wall, centimetres.
const WALL: (i32, i32) = (12_100, 11_999);

const PATIENCE: Duration = Duration::from_secs(20);

/// What the clients in Rust show.
#[derive(Default)]
struct Watched {
    shown: Shown,
    /// The newest positions.
    now: Vec<(EntityId, Pos)>,
}

type Shared = Arc<Mutex<Watched>>;

/// A client that stands and notes what it is shown.
async fn watch(url: String, token: String, watched: Shared) {
    let mut client = Client::connect(&url, &token).await.unwrap();
    let joined = client.join(join_at("field", Pos::ground(13_050, 5_250))).await.unwrap();
    let mut view = View::of(&joined);
    let (mut sender, mut receiver) = client.split();
    let mut beat = tokio::time::interval(Duration::from_secs(2));
    loop {
        tokio::select! {
            _ = beat.tick() => sender.ping(1).await.unwrap(),
            event = receiver.next() => {
                let Event::Frame(frame) = event.unwrap() else { continue };
                view.apply(&frame).unwrap();
                let at = view.time_of(frame.tick);
                let now: Vec<_> = view.iter().map(|(id, seen)| (id, seen.position(at))).collect();
                let mut watched = watched.lock().unwrap();
                watched.shown.extend(now.iter().map(|(id, pos)| ((frame.tick, *id), *pos)));
                watched.now = now;
            }
        }
    }
}

/// A client that walks to and fro, with turns.
async fn walk(url: String, token: String) {
    let mut client = Client::connect(&url, &token).await.unwrap();
    let joined = client.join(join_at("field", Pos::ground(12_700, 5_400))).await.unwrap();
    let (mut sender, mut receiver) = client.split();
    let clock = Clock::new();
    let mut walker = Walker::new(clock.now(), &joined).unwrap();
    let mut step = tokio::time::interval(Duration::from_millis(50));
    let mut beat = 0;
    loop {
        tokio::select! {
            _ = step.tick() => {
                let ways = [(1, 0), (1, 1), (0, 1), (-1, 0), (-1, -2), (0, 0)];
                let (dx, dz) = ways[beat / 15 % ways.len()];
                walker.walk(dx, dz, 400);
                beat += 1;
                sender.walk(clock.now(), &mut walker).await.unwrap();
            }
            event = receiver.next() => {
                let Event::Frame(frame) = event.unwrap() else { continue };
                walker.frame(clock.now(), &frame);
            }
        }
    }
}

/// The server has the resting player exactly where its own client has it.
fn assert_at(watched: &Shared, rest: &Rest) {
    let begin = Instant::now();
    loop {
        let now = watched.lock().unwrap().now.clone();
        let found = now.iter().find(|(id, _)| *id == rest.id).map(|(_, pos)| *pos);
        if found == Some(rest.at) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{rest:?}: others see it at {found:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Where both show an entity in a tick, they show it at one position.
fn assert_same(watched: &Shared, bot: &Shown) {
    let watched = watched.lock().unwrap();
    let both: Vec<_> = bot.iter().filter(|(key, _)| watched.shown.contains_key(key)).collect();
    let wrong: Vec<_> = both.iter().filter(|(key, pos)| watched.shown[key] != **pos).collect();
    let moves = both.windows(2).filter(|w| w[0].1 != w[1].1).count();
    println!("{} positions compared, {moves} of them changed", both.len());
    assert!(both.len() > 200 && moves > 100, "{} positions, {moves} moves", both.len());
    assert!(wrong.is_empty(), "{} of {}: {:?}", wrong.len(), both.len(), wrong.first());
}

/// No command was refused, and no correction made it stand elsewhere.
fn assert_undisturbed(rest: &Rest, correction: u64) {
    assert_eq!(rest.told["refused"], json!([]), "{rest:?}");
    assert_eq!(rest.told["correction"], correction, "{rest:?}");
}

/// It is the same player, which has resumed so often. While it resumes, a walk of it may be refused.
fn assert_resumed(rest: &Rest, before: &Rest, times: usize) {
    assert_eq!(rest.id, before.id);
    let arrivals = [&["joined"][..], &vec!["resumed"; times]].concat();
    assert_eq!(rest.told["arrivals"], json!(arrivals), "{rest:?}");
}

fn correction(rest: &Rest) -> u64 {
    rest.told["correction"].as_u64().unwrap()
}

#[test]
fn a_player_in_typescript_is_where_the_server_has_it_and_shows_what_others_show() {
    let config = Config::parse(CONFIG).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_purview"));
    let parts = Parts { nodes: 2, gateways: 2 };
    let cluster = LocalCluster::start(program, &config, parts, &mut |_| {}).unwrap();
    let urls = [cluster.url(0).unwrap(), cluster.url(1).unwrap()];
    let watched = Shared::default();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.spawn(watch(urls[1].clone(), token(&cluster, "watcher"), watched.clone()));
    runtime.spawn(walk(urls[1].clone(), token(&cluster, "walker")));
    let mut bot = Bot::start(&json!({
        "addresses": urls, "scene": "field", "size": [256, 128],
        "walls": [[120, 40, 1, 8], [120, 50, 1, 10]],
        "tokens": [token(&cluster, "ann"), token(&cluster, "bob")],
    }));

    let wall = bot.rest("wall");
    assert_undisturbed(&wall, correction(&wall));
    assert_eq!(wall.at.x, WALL.0, "{wall:?}");
    assert!(wall.told["epochs"].as_u64() > Some(1), "it has crossed a border: {wall:?}");
    assert_at(&watched, &wall);

    let stall = bot.rest("stall");
    assert_undisturbed(&stall, correction(&wall));
    assert!(stall.at.dist2(wall.at) > 300 * 300, "it has walked on: {stall:?}");
    assert_at(&watched, &stall);

    bot.wait("kill");
    cluster.gateways()[0].kill();
    let killed = bot.rest("gateway");
    assert_resumed(&killed, &wall, 1);
    assert_at(&watched, &killed);

    let broken = bot.rest("connection");
    assert_resumed(&broken, &wall, 2);
    assert_at(&watched, &broken);

    let blind = bot.rest("blind");
    assert_eq!(blind.at.x, WALL.1, "{blind:?}");
    let refused = blind.told["refused"].as_array().unwrap();
    assert!(!refused.is_empty() && refused.iter().all(|why| why == "blocked"), "{blind:?}");
    assert_at(&watched, &blind);
    let away = bot.rest("away");
    assert_undisturbed(&away, correction(&blind));
    assert_at(&watched, &away);

    bot.wait("done");
    let shown = bot.end();
    assert_same(&watched, &shown);
}
