//! Players who log in again and again: what they have had is neither doubled nor lost.

use std::time::Duration;

use purview::scene::Pos;
use purview::scene::properties::{PropertyId, Value};
use purview::wire::client::Join;
use purview_client::{Client, Event, join_at};
use tokio::time::{sleep, timeout};

use super::process::Served;

const GOLD: PropertyId = PropertyId(1);

const SCENE: &str = r#"
    [[scene]]
    name = "meadow"
    width = "256m"
    depth = "128m"
    land = "64m"
    region = [2, 2]
    patch = "16m"

    [[scene.kind]]
    name = "player"
    properties = [{ name = "gold", id = 1, type = "int", writer = "owner", persist = true }]
"#;

/// How long a message may take that must come.
const PATIENCE: Duration = Duration::from_secs(20);

struct Trial {
    server: Served,
    _folder: tempfile::TempDir,
}

impl Trial {
    fn start() -> Trial {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("scene.toml");
        std::fs::write(&config, SCENE).unwrap();
        let dir = format!("server.data_dir={}", folder.path().join("data").display());
        let config = config.to_str().expect("a temporary folder in UTF-8");
        let server = Served::start(&["--config", config, "--set", &dir]);
        Trial { server, _folder: folder }
    }

    async fn hello(&self) -> Client {
        Client::connect(&self.server.ws, &self.server.token).await.unwrap()
    }
}

/// Joins: the gold that the player begins with.
async fn join(client: &mut Client) -> i64 {
    let join = Join { pos: None, ..join_at("meadow", Pos::default()) };
    let id = client.join(join).await.unwrap().id;
    let begins = async {
        loop {
            if let Event::Frame(frame) = client.next().await.unwrap() {
                let own = frame.properties.iter().filter(|update| update.entity == id);
                let gold = own.filter(|update| update.id == GOLD).last();
                let gold = gold.map(|update| update.value.read().unwrap());
                return gold.unwrap_or(0);
            }
        }
    };
    timeout(PATIENCE, begins).await.expect("the first frame")
}

/// Sets the player's gold, and waits until its client is told.
async fn set(client: &mut Client, gold: i64) {
    client.set(GOLD, Value::of(&gold).unwrap()).await.unwrap();
    let told = async {
        loop {
            if let Event::Frame(frame) = client.next().await.unwrap() {
                let mut updates = frame.properties.iter().filter(|update| update.id == GOLD);
                if updates.any(|update| update.value.read::<i64>().unwrap() == gold) {
                    return;
                }
            }
        }
    };
    timeout(PATIENCE, told).await.expect("the change");
}

fn play(trial: impl AsyncFnOnce(&Trial)) {
    let all = Trial::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(trial(&all));
}

#[test]
fn a_player_who_leaves_and_logs_in_at_once_has_what_it_had() {
    play(async |trial| {
        let mut gold = 0;
        for _ in 0..10 {
            let mut client = trial.hello().await;
            assert_eq!(join(&mut client).await, gold);
            gold += 100;
            set(&mut client, gold).await;
            client.leave().await.unwrap();
        }
    });
}

#[test]
fn a_player_who_greets_before_its_other_session_leaves_has_what_that_session_had_last() {
    play(async |trial| {
        let mut client = trial.hello().await;
        join(&mut client).await;
        for gold in [100, 0, 70, 20, 0] {
            let mut next = trial.hello().await;
            set(&mut client, gold).await;
            client.leave().await.unwrap();
            assert_eq!(join(&mut next).await, gold);
            client = next;
        }
    });
}

#[test]
fn a_second_login_ends_the_first_session_and_begins_with_what_it_spent_last() {
    play(async |trial| {
        let mut first = trial.hello().await;
        join(&mut first).await;
        set(&mut first, 100).await;
        let mut second = trial.hello().await;
        // The state of the first session is stored again and again meanwhile.
        sleep(Duration::from_millis(2_600)).await;
        set(&mut first, 0).await;
        assert_eq!(join(&mut second).await, 0);
    });
}

#[test]
fn a_player_whose_connection_broke_and_who_logs_in_anew_has_what_it_had() {
    play(async |trial| {
        let mut gold = 0;
        for _ in 0..5 {
            let mut client = trial.hello().await;
            assert_eq!(join(&mut client).await, gold);
            gold += 7;
            set(&mut client, gold).await;
            drop(client);
        }
    });
}
