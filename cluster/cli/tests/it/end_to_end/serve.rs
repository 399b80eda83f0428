//! `purview serve`: one machine is a cluster of one, and what it keeps goes on in a cluster of many.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use purview::scene::properties::{PropertyId, Value};
use purview::scene::{EntityId, Pos};
use purview::wire::client::Joined;
use purview_client::{Client, Event, join};
use purview_server::gateway::Tokens;
use purview_server::launch::{EtcdServer, PostgresServer};
use purview_server::node::ready::{READY, Ready};

use super::process::{Done, FREE_PORTS, purview, run};
use crate::common::{self, PATIENCE, try_for};

pub const GOLD: PropertyId = PropertyId(1);

/// A folder with a configuration and a secret: a scene of four regions, whose players keep their gold.
struct Place {
    folder: tempfile::TempDir,
    more: Vec<String>,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let config = "[token]\nsecret_file = \"secret\"\n[[scene]]\nname = \"meadow\"\nwidth = \"256m\"\n\
                      depth = \"256m\"\nland = \"64m\"\nregion = [2, 2]\npatch = \"16m\"\n\
                      teleports = \"clients\"\nmoves = \"trusted\"\nspawn = [\"40m\", \"40m\"]\n\
                      [[scene.kind]]\nname = \"player\"\n\
                      properties = [{ name = \"gold\", id = 1, type = \"int\", writer = \"owner\", persist = true }]\n";
        std::fs::write(folder.path().join("my.toml"), config).unwrap();
        std::fs::write(folder.path().join("secret"), "a secret of at least 32 bytes, for tests")
            .unwrap();
        let more = FREE_PORTS.map(str::to_owned).into();
        Place { folder, more }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self) -> String {
        self.file("my.toml").display().to_string()
    }

    fn token(&self, subject: &str) -> String {
        let tokens = Tokens::new(&std::fs::read(self.file("secret")).unwrap()).unwrap();
        tokens.mint(subject, Some(PATIENCE * 10)).unwrap()
    }

    /// A process of these words, as soon as it is ready.
    fn start(&self, words: &[&str]) -> Running {
        let config = self.config();
        let more: Vec<&str> = self.more.iter().map(String::as_str).collect();
        let args = [words, &["--config", &config], &more].concat();
        let mut child =
            purview(&args).current_dir(&self.folder).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = Vec::new();
        for line in lines.by_ref().map_while(Result::ok) {
            if let Some(ready) = line.strip_prefix(READY) {
                let ready: Ready = serde_json::from_str(ready).unwrap();
                std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
                return Running { child, ready, said };
            }
            said.push(line);
        }
        panic!("{words:?} is never ready: {:?} {said:?}", child.wait());
    }
}

struct Running {
    child: Child,
    ready: Ready,
    said: Vec<String>,
}

impl Running {
    fn url(&self) -> String {
        format!("ws://{}/", self.ready.ws.as_ref().expect("a gateway"))
    }

    fn ctl(&self, args: &[&str]) -> Done {
        let console = format!("http://{}", self.ready.console.as_ref().expect("a console"));
        run(&[&["ctl"], args, &["--console", &console]].concat())
    }

    /// Asks the process to end: it ends by itself, and says that all went well.
    fn end(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill().and_then(|()| self.child.wait()));
    }
}

async fn enter(url: &str, token: &str) -> (Client, Joined) {
    let mut client = Client::connect(url, token).await.unwrap();
    let joined = client.join(join("meadow")).await.unwrap();
    (client, joined)
}

/// The gold of a player that has just joined.
pub async fn gold(client: &mut Client, id: EntityId) -> i64 {
    loop {
        let Event::Frame(frame) = client.next().await.unwrap() else { continue };
        let own = frame.properties.iter().filter(|update| update.entity == id);
        let gold = own.filter(|update| update.id == GOLD).last();
        return gold.map_or(0, |update| update.value.read().unwrap());
    }
}

/// Where ann leaves, and with how much gold.
const LEFT: (i64, Pos) = (70, Pos { x: 20_030, y: 0, z: 20_040 });

/// The player of ann joins, gets gold, moves, and leaves.
fn play(server: &Running, token: &str) {
    block_on(async {
        let (mut client, _) = enter(&server.url(), token).await;
        client.set(GOLD, Value::of(&LEFT.0).unwrap()).await.unwrap();
        client.send_move(LEFT.1).await.unwrap();
        client.leave().await.unwrap();
        while !matches!(client.next().await.unwrap(), Event::Left(_)) {}
    });
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let limited = async { tokio::time::timeout(PATIENCE, future).await.expect("in time") };
    common::block_on(limited)
}

/// The player of ann comes back with its gold, where it was.
fn comes_back(url: &str, token: &str) {
    block_on(async {
        let (mut client, joined) = enter(url, token).await;
        assert_eq!((gold(&mut client, joined.id).await, joined.pos), LEFT);
    });
}

#[test]
fn what_a_server_of_one_machine_keeps_goes_on_after_a_restart_and_in_a_cluster_of_many() {
    let mut place = Place::new();
    let token = place.token("ann");
    let server = place.start(&["serve"]);
    let data = server.said.iter().find_map(|line| line.strip_prefix("data "));
    assert_eq!(data.map(str::trim), place.file("purview-data").to_str(), "{:?}", server.said);
    play(&server, &token);
    // The layout changes as in a cluster of many, while a player walks.
    let split = server.ctl(&["split", "R0"]);
    assert_eq!(split.code, Some(0), "{split:?}");
    let told = server.ctl(&["status"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.contains("5 of 5 regions have an owner; leader: local"), "{told:?}");
    let alone = server.ctl(&["drain", "local"]);
    assert_eq!(alone.code, Some(1), "{alone:?}");
    comes_back(&server.url(), &token);
    server.end();
    let server = place.start(&["serve"]);
    let told = server.ctl(&["status"]);
    assert!(told.stdout.contains("5 of 5 regions"), "{told:?}");
    comes_back(&server.url(), &token);
    // This time ann leaves.
    play(&server, &token);
    server.end();
    goes_on_in_a_cluster_of_many(&mut place, &token);
}

/// From a backup of the server.
fn goes_on_in_a_cluster_of_many(place: &mut Place, token: &str) {
    let (config, backup) = (place.config(), place.file("b.purview").display().to_string());
    let data = format!("server.data_dir={}", place.file("purview-data").display());
    let saved = run(&["backup", &backup, "--config", &config, "--set", &data]);
    assert_eq!(saved.code, Some(0), "{saved:?}");
    assert!(saved.stdout.contains("1 players, 1 changed layouts"), "{saved:?}");
    // The same configuration, with etcd and PostgreSQL.
    let (etcd, postgres) = (EtcdServer::start(None).unwrap(), PostgresServer::start(None).unwrap());
    let stores = [
        format!("cluster.etcd={}", etcd.url()),
        format!("cluster.postgres={}", postgres.address()),
        format!("cluster.postgres_password_file={}", postgres.password_file().display()),
        "cluster.listen=127.0.0.1:0".to_owned(),
    ];
    for set in stores {
        place.more.extend(["--set".to_owned(), set]);
    }
    let more: Vec<&str> = place.more.iter().map(String::as_str).collect();
    let restored = run(&[&["restore", &backup, "--config", &config][..], &more].concat());
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let nodes = [place.start(&["node"]), place.start(&["node"])];
    let gateway = place.start(&["node", "--role", "gateway"]);
    // A process learns of a restored layout when it has joined.
    try_for("the restored layout", || {
        let told = gateway.ctl(&["status"]);
        if told.stdout.contains("5 of 5 regions have an owner") { Ok(()) } else { Err(told) }
    });
    comes_back(&gateway.url(), token);
    drop((gateway, nodes));
}

#[test]
fn a_server_wants_a_secret_and_the_data_of_its_own_scenes() {
    let place = Place::new();
    let config = place.config();
    let free = FREE_PORTS;
    let refused = run(&[&["serve"][..], &free].concat());
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("token.secret_file is missing"), "{refused:?}");
    place.start(&["serve"]).end();
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("\"meadow\"", "\"moor\"")).unwrap();
    let other = run(&[&["serve", "--config", &config][..], &free].concat());
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.stderr.contains("meadow, but the configuration has no such region"), "{other:?}");
}
