//! Players who log in again and again: what they have had is neither doubled nor lost.

use std::time::Duration;

use purview::scene::properties::Value;
use purview_client::{Client, Event};
use tokio::time::sleep;

use super::process::Served;
use super::serve::{GOLD, gold};
use crate::common::event;

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
    let id = client.join(purview_client::join("meadow")).await.unwrap().id;
    gold(client, id).await
}

/// Sets the player's gold, and waits until its client is told.
async fn set(client: &mut Client, gold: i64) {
    client.set(GOLD, Value::of(&gold).unwrap()).await.unwrap();
    event(client, |event| {
        let Event::Frame(frame) = event else { return None };
        let mut updates = frame.properties.iter().filter(|update| update.id == GOLD);
        updates.any(|update| update.value.read::<i64>().unwrap() == gold).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_player_who_logs_in_again_in_any_way_has_what_it_had_last() {
    let trial = Trial::start();
    leaves_and_logs_in_at_once(&trial).await;
    greets_before_its_other_session_leaves(&trial).await;
    ends_its_first_session_by_a_second_login(&trial).await;
    logs_in_anew_after_its_connection_broke(&trial).await;
}

async fn leaves_and_logs_in_at_once(trial: &Trial) {
    let mut gold = 0;
    for _ in 0..10 {
        let mut client = trial.hello().await;
        assert_eq!(join(&mut client).await, gold, "after leaving");
        gold += 100;
        set(&mut client, gold).await;
        client.leave().await.unwrap();
    }
}

async fn greets_before_its_other_session_leaves(trial: &Trial) {
    let mut client = trial.hello().await;
    join(&mut client).await;
    for gold in [100, 0, 70, 20, 0] {
        let mut next = trial.hello().await;
        set(&mut client, gold).await;
        client.leave().await.unwrap();
        assert_eq!(join(&mut next).await, gold, "of the session that greeted early");
        client = next;
    }
    client.leave().await.unwrap();
}

async fn ends_its_first_session_by_a_second_login(trial: &Trial) {
    let mut first = trial.hello().await;
    join(&mut first).await;
    set(&mut first, 100).await;
    let mut second = trial.hello().await;
    // The state of the first session is stored again and again meanwhile.
    sleep(Duration::from_millis(2_600)).await;
    set(&mut first, 0).await;
    assert_eq!(join(&mut second).await, 0, "what the first session has spent");
    second.leave().await.unwrap();
}

async fn logs_in_anew_after_its_connection_broke(trial: &Trial) {
    let mut gold = 0;
    for _ in 0..5 {
        let mut client = trial.hello().await;
        assert_eq!(join(&mut client).await, gold, "after the connection broke");
        gold += 7;
        set(&mut client, gold).await;
        drop(client);
    }
}
