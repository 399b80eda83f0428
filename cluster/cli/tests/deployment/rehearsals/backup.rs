//! A backup of a running cluster is restored onto an empty etcd and an empty PostgreSQL.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::chown;
use std::path::Path;
use std::time::Instant;

use purview_server::backup::file::{FileError, Record, read};
use purview_server::storage::{KeptLayout, RegionKey, SavedPlayer, SavedSnapshots};
use serde_json::{Value, json};

use crate::world::{World, pause, with_world};

const BOTS: u32 = 200;

/// The property `gold`, and how much of it each bot is given, in the one byte of MessagePack.
const GOLD: (u32, [u8; 1]) = (2, [7]);

/// The rules of the game, which also give each player its gold, once.
const GIVER: &str = "import hunt
entered = hunt.Hunt.on_entered
def give(self, entity):
    entered(self, entity)
    if entity.kind == hunt.PLAYER and not self.get(entity, hunt.GOLD):
        self.set(entity.id, hunt.GOLD, 7)
hunt.Hunt.on_entered = give
import worker";

/// What a backup holds.
#[derive(Default, PartialEq)]
struct Stored {
    regions: Vec<(RegionKey, SavedSnapshots)>,
    players: BTreeMap<String, SavedPlayer>,
    layouts: Vec<KeptLayout>,
}

impl Stored {
    fn read(file: &Path) -> Stored {
        let mut stored = Stored::default();
        let take = |record| {
            match record {
                Record::About(_) => {}
                Record::Region(key, kept) => stored.regions.push((key, kept)),
                Record::Layout(layout) => stored.layouts.push(layout),
                Record::Players(players) => {
                    stored.players.extend(players.into_iter().map(|p| (p.name.clone(), p)));
                }
            }
            Ok::<(), FileError>(())
        };
        read(BufReader::new(File::open(file).unwrap()), take).unwrap();
        stored
    }

    /// Where each player was last, and what it had. All of them have left.
    fn places(&self) -> BTreeMap<&str, Value> {
        let place = |player: &SavedPlayer| {
            assert_eq!(player.holder, None, "{} has not left", player.name);
            serde_json::from_slice::<Value>(&player.place).unwrap()["place"].clone()
        };
        self.players.iter().map(|(name, player)| (name.as_str(), place(player))).collect()
    }
}

/// A folder for backups.
struct Backups<'a> {
    world: &'a World,
    folder: tempfile::TempDir,
}

impl Backups<'_> {
    fn new(world: &World) -> Backups<'_> {
        let folder = tempfile::tempdir().unwrap();
        chown(folder.path(), Some(65532), Some(65532)).unwrap();
        Backups { world, folder }
    }

    /// Runs a command of `purview` with the configuration and the volumes of a node.
    fn purview(&self, command: &[&str]) -> String {
        let volume = format!("--volume={}:/backups", self.folder.path().display());
        let said = self.world.run_as("node-1", &[&volume], command);
        println!("purview {}: {}", command.join(" "), said.trim());
        said
    }

    fn make(&self, name: &str) -> Stored {
        let file = format!("/backups/{name}");
        self.purview(&["backup", &file]);
        self.purview(&["restore", "--check", &file]);
        Stored::read(&self.folder.path().join(name))
    }
}

/// A cluster with a changed layout, whose players have walked, have gold, and have left.
fn play(world: &World) {
    world.up(&[]);
    world.docker(&["stop", "purview-worker-1"]);
    let rules = ["-c", GIVER, "dns:///nodes:7795", "/run/purview/logic.token"];
    let giver = ["--detach", "--name=giver", "--entrypoint=python3"];
    world.run_as("worker", &giver, &[&rules[..], &["/run/purview/ca.pem"]].concat());
    world.wait_whole("gateway-1");
    let merge = ["purview", "ctl", "merge", "R2", "R3", "--within", "60s"];
    println!("{}", world.exec("node-1", &merge).unwrap().trim());
    world.walk(20, |_| ());
    // Their last states are on their way.
    pause(5);
    world.docker(&["rm", "-f", "giver"]);
}

/// Only the stores, without any data.
fn lose_everything(world: &World) {
    world.compose(&["down"]);
    world.docker(&["volume", "rm", "purview_etcd-data", "purview_postgres-data"]);
    world.up(&["etcd", "postgres"]);
    let ready = ["pg_isready", "--host=127.0.0.1"];
    world.wait_for("PostgreSQL", |world| world.exec("postgres", &ready).is_ok());
}

#[test]
#[ignore = "takes minutes: deploy/rehearse/backup"]
fn a_backup_is_restored_onto_empty_stores() {
    with_world("rehearsals::backup", |world| {
        let backups = Backups::new(world);
        play(world);
        let before = backups.make("before");
        let gold = json!({ "id": GOLD.0, "value": GOLD.1 });
        let places = before.places();
        assert_eq!((places.len(), before.layouts.len()), (BOTS as usize, 1));
        for (name, place) in &places {
            let has = place["properties"].as_array().is_some_and(|all| all.contains(&gold));
            assert!(has, "{name}: {place}");
        }
        let begin = Instant::now();
        lose_everything(world);
        backups.purview(&["restore", "/backups/before", "--skip-etcd"]);
        assert!(backups.make("restored") == before, "what was restored is not what was saved");
        world.up(&[]);
        let whole = begin.elapsed() + world.wait_whole("gateway-1");
        println!("== whole {:.1} s after everything was lost", whole.as_secs_f64());
        // Who joins and leaves at once was where its record is, and has what it had.
        let (is_clean, report) = world.bots(BOTS, 0, &[], |_| ());
        assert!(is_clean, "{report}\n{}", world.logs());
        pause(5);
        let after = backups.make("after");
        assert_eq!(after.places(), places);
        assert!(after.layouts == before.layouts, "another layout");
        println!("== {BOTS} players are where they were, with their gold; then:");
        println!("{}", world.walk(20, |_| ()));
    });
}
