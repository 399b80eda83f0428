//! A single-process server is killed, and recovers from its stored data.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use purview::scene::{EntityId, Pos};
use purview::wire::client::Join;
use purview_client::{Client, join, join_at};
use purview_server::storage::Checkpoints;
use purview_server::storage::checkpoints::redb::Redb;
use serde_json::Value;

use super::operations::{get, metric};
use super::process::{FREE_PORTS, Served, run};
use crate::common::{PATIENCE, block_on, wait_for};

/// The kinds of the demo NPCs, twelve of each in the scene, and whether they walk.
const KINDS: [(u64, bool); 4] = [(1, true), (2, true), (3, false), (4, false)];

/// The positions of all NPCs, by kind.
pub type Beasts = BTreeMap<u64, BTreeMap<u64, (i64, i64)>>;

pub fn beasts(console: &str, scene: &str) -> Beasts {
    let (status, body) = get(console, &format!("/api/entities?scene={scene}"));
    assert_eq!(status, 200, "{body}");
    let all: Value = serde_json::from_str(&body).unwrap();
    let fields: Vec<&str> =
        all["entity_fields"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
    let place = |name: &str| fields.iter().position(|f| *f == name).expect("a field");
    let (id, kind, x, z) = (place("id"), place("kind"), place("x"), place("z"));
    let mut beasts = Beasts::new();
    for row in all["entities"].as_array().unwrap() {
        let at = (row[x].as_i64().unwrap(), row[z].as_i64().unwrap());
        let kind = row[kind].as_u64().unwrap();
        if kind > 0 {
            beasts.entry(kind).or_default().insert(row[id].as_u64().unwrap(), at);
        }
    }
    beasts
}

/// All NPCs, once all are listed: an NPC in a handoff is in no region.
fn all_beasts(console: &str) -> Beasts {
    let mut all = Beasts::new();
    wait_for("beasts", || {
        all = beasts(console, "meadow");
        KINDS.iter().all(|(kind, _)| all.get(kind).is_some_and(|of| of.len() >= 12))
    });
    all
}

/// Six regions, without a game: demo NPCs stand and walk there.
const SCENE: &str = r#"
    [server]
    demo = true

    [[scene]]
    name = "meadow"
    width = "384m"
    depth = "256m"
    land = "64m"
    region = [2, 2]
    patch = "16m"
    visibility = "circle"
    enter = "40m"
    leave = "44m"
    top_speed = "20m/s"
    moves = "judged"
    teleports = "clients"
    spawn = ["192m", "128m"]
"#;

fn flags(data_dir: &Path) -> Vec<String> {
    let dir = format!("server.data_dir={}", data_dir.display());
    let scene = data_dir.join("scene.toml");
    std::fs::write(&scene, SCENE).unwrap();
    let config = scene.to_str().expect("a temporary folder in UTF-8");
    let flags = ["--config", config, "--set", &dir, "--set", "cluster.checkpoint=200ms"];
    flags.map(str::to_owned).into()
}

fn start(data_dir: &Path) -> Served {
    let flags = flags(data_dir);
    Served::start(&flags.iter().map(String::as_str).collect::<Vec<_>>())
}

fn saved(console: &str) -> f64 {
    metric(&get(console, "/metrics").1, "purview_checkpoints_saved_total")
}

fn positions_saved(console: &str) -> f64 {
    metric(&get(console, "/metrics").1, "purview_player_records_saved_total")
}

/// Lets a client join and stay until its player is stored: its entity and its position.
async fn visit(server: &Served, join: Join) -> (EntityId, Pos) {
    let before = positions_saved(&server.console);
    let mut client = Client::connect(&server.ws, &server.token).await.unwrap();
    let joined = client.join(join).await.unwrap();
    let begin = Instant::now();
    while positions_saved(&server.console) < before + 1.0 {
        assert!(begin.elapsed() < PATIENCE, "its place is not kept");
        // It reads frames in the meantime.
        let _told = tokio::time::timeout(Duration::from_millis(50), client.next()).await;
    }
    (joined.id, joined.pos)
}

#[test]
fn a_killed_server_recovers_with_all_entities_at_their_positions() {
    let folder = tempfile::tempdir().unwrap();
    let place = Pos::ground(5_300, 7_100);
    let mut server = start(folder.path());
    all_beasts(&server.console);
    let (player, stood) = block_on(visit(&server, join_at("meadow", place)));
    assert_eq!(stood, place);
    let mut newest = player.0;
    for round in 0..3 {
        let before = saved(&server.console);
        wait_for("two checkpoints of each region", || saved(&server.console) >= before + 12.0);
        let last = all_beasts(&server.console);
        server.signal("KILL");
        let began = Instant::now();
        server.ended();
        server = start(folder.path());
        let (now, since) = (all_beasts(&server.console), began.elapsed());
        are_where_they_were(&last, &now, since);
        let (id, pos) = block_on(visit(&server, join("meadow")));
        assert_eq!(pos, place, "round {round}: it comes to its last position");
        assert!(id.0 > newest, "round {round}: {id} is a new name");
        newest = id.0;
    }
}

/// The same NPCs exist, each within walking distance of its position before, or at it.
pub fn are_where_they_were(last: &Beasts, now: &Beasts, since: Duration) {
    for (kind, walks) in KINDS {
        let ids = |of: &Beasts| of[&kind].keys().copied().collect::<Vec<_>>();
        assert_eq!(ids(now), ids(last), "of kind {kind}");
        // 1.5 m a second; the checkpoint may be older than the last query.
        let far = if walks { since.as_secs_f64() * 150.0 + 300.0 } else { 0.0 };
        for (id, (x, z)) in &now[&kind] {
            let (was_x, was_z) = last[&kind][id];
            let gone = ((x - was_x) as f64).hypot((z - was_z) as f64);
            assert!(gone <= far, "{id} is {gone} cm from its position before");
        }
    }
}

#[test]
fn a_damaged_file_is_refused_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    wait_for("checkpoints", || saved(&server.console) >= 6.0);
    server.signal("KILL");
    server.ended();
    let path = folder.path().join("checkpoints.redb");
    let flags = flags(folder.path());
    let more: Vec<&str> = flags.iter().map(String::as_str).collect();
    let args = [&["dev", "--bots", "0", "--for", "1s"], &FREE_PORTS[..], &more].concat();
    // Everything behind the header, and then the header.
    let mut file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    let mut whole = Vec::new();
    file.read_to_end(&mut whole).unwrap();
    let torn = whole.len() as u64 / 2;
    file.set_len(torn).unwrap();
    let refused = run(&args);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(!refused.stderr.contains("panicked"), "{refused:?}");
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(b"this is no database").unwrap();
    let refused = run(&args);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("checkpoints.redb"), "{refused:?}");
    assert!(!refused.stderr.contains("panicked"), "{refused:?}");
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_one_before_and_two_damaged_ones_wait_for_an_operator() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let before = saved(&server.console);
    let last = all_beasts(&server.console);
    wait_for("checkpoints", || saved(&server.console) >= before + 12.0);
    server.signal("KILL");
    server.ended();
    let spoil = |how: fn(&mut Vec<u8>)| {
        let store = Redb::open(folder.path()).unwrap();
        block_on(async {
            for key in store.regions().await.unwrap() {
                let newest = store.load(&key).await.unwrap().newest.unwrap();
                let mut state = newest.state.to_vec();
                how(&mut state);
                let (epoch, tick) = (newest.epoch, newest.tick.next());
                store.save(&key, epoch, tick, state.into()).await.unwrap();
            }
        });
    };
    // A version that no release reads any more: the first number of the header.
    spoil(|state| state[4..6].copy_from_slice(&[0, 99]));
    let server = start(folder.path());
    let now = all_beasts(&server.console);
    for (kind, _) in KINDS {
        let ids = |of: &Beasts| of[&kind].keys().copied().collect::<Vec<_>>();
        assert_eq!(ids(&now), ids(&last));
    }
    wait_for("new checkpoints", || saved(&server.console) >= 12.0);
    server.signal("KILL");
    server.ended();
    // The newest checkpoint, and the one before it.
    spoil(|state| state.truncate(state.len() / 2));
    spoil(|state| state.truncate(state.len() / 2));
    // No region starts by itself: an operator gives the damaged checkpoints up, region by region; their bytes stay.
    let server = start(folder.path());
    let console = format!("http://{}", server.console);
    let ctl = |args: &[&str]| run(&[&["ctl"], args, &["--console", &console]].concat());
    let told = ctl(&["status"]);
    assert_eq!(told.code, Some(3), "{told:?}");
    for word in ["0 of 6 regions have an owner", "R0 is down", "truncated", "restore"] {
        assert!(told.stdout.contains(word), "{word}: {told:?}");
    }
    for region in 0..6 {
        let done = ctl(&["region", &format!("R{region}"), "empty"]);
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    wait_for("all regions run", || ctl(&["status"]).code == Some(0));
    wait_for("new checkpoints", || saved(&server.console) >= 6.0);
}
