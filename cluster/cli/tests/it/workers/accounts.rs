//! A worker knows whose each player is: the subject and the claims of its token. So does the next worker. The
//! simulator moves players between regions and lets them recover (`AccountTold`).

use std::collections::BTreeMap;

use purview::actor::player::Planes;
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::logic::proto::{self, Reason, command::Command as Wanted};
use purview_server::process::Background;
use serde_json::json;

use super::player::Player;
use super::support::{CONFIG, MONSTER, PATIENCE, Worker, with_worker};

/// The claims of an entity that is told.
fn claims(worker: &Worker, id: u64) -> BTreeMap<String, serde_json::Value> {
    rmp_serde::from_slice(&worker.entities[&id].claims).expect("a map")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_told_the_subject_and_the_claims_of_each_player() {
    let text = format!(
        "{CONFIG}\n[logic]\nlisten = \"127.0.0.1:0\"\n[token]\nclaims = [\"guild\", \"level\"]\n"
    );
    let config = Config::parse(&text).expect("a configuration");
    let tokens = Tokens::dev().with_rules(config.token.rules());
    let server = Background::start(config, tokens.clone()).expect("a server");
    let mut worker = Worker::begin_with_all(server.reach(), "one").await;
    let told = BTreeMap::from([
        ("guild".to_owned(), json!("red")),
        ("level".to_owned(), json!(7)),
        ("mail".to_owned(), json!("ada@example.org")),
    ]);
    let token = tokens.mint_with("ada", Some(PATIENCE), &Planes::default(), told).unwrap();
    let player = Player::join_by(server.reach(), &token, 29_000, 5_000).await;
    let id = player.id.0;
    worker.until(|w| w.homes.contains_key(&id)).await;
    assert_eq!(worker.entities[&id].subject, "ada");
    let want = BTreeMap::from([("guild".to_owned(), json!("red")), ("level".to_owned(), json!(7))]);
    assert_eq!(claims(&worker, id), want, "those that the configuration names");
    // For another worker, too.
    drop(worker);
    let mut next = Worker::begin_with_all(server.reach(), "two").await;
    next.until(|w| w.homes.contains_key(&id)).await;
    assert_eq!((next.entities[&id].subject.as_str(), claims(&next, id)), ("ada", want));
    // A player without these claims, and a monster.
    let other = Player::join(server.reach(), 6_000, 5_000).await.id.0;
    let monster = next.spawn(0, MONSTER, 5_000, 5_000);
    next.until(|w| w.homes.contains_key(&other) && w.homes.contains_key(&monster)).await;
    assert_eq!(next.entities[&other].subject, "p6000-5000");
    assert!(next.entities[&other].claims.is_empty());
    assert!(next.entities[&monster].subject.is_empty());
}

/// A command that names both an entity and a subject.
fn give_both(entity: u64, subject: &str, command: Option<Wanted>) -> proto::Command {
    proto::Command { entity, subject: subject.to_owned(), command, ..proto::Command::default() }
}

/// Gives region 0 a command for the player of a subject.
fn give(worker: &mut Worker, subject: &str, command: Wanted) -> u64 {
    let (subject, command) = (subject.to_owned(), Some(command));
    worker.queue(0, proto::Command { subject, command, ..proto::Command::default() })
}

#[test]
fn a_worker_sets_the_bonds_of_a_player_and_kicks_it_by_its_subject() {
    with_worker("", async |server, mut worker| {
        let player = Player::join(server.reach(), 29_000, 5_000).await;
        let (id, subject) = (player.id.0, "p29000-5000");
        worker.until(|w| w.homes.contains_key(&id)).await;
        assert_ne!(worker.homes[&id], 0, "another region than the one that commands");
        let party = |group| {
            let bonds = vec![proto::Bond { kind: "party".into(), group }];
            Wanted::SetBonds(proto::SetBonds { bonds })
        };
        give(&mut worker, subject, party(7));
        let group = |w: &Worker| w.entities[&id].bonds.first().map(|bond| bond.group);
        worker.until(|w| group(w) == Some(7)).await;
        assert!(!worker.entities[&id].disconnected, "told for its bonds' sake");
        let refused = [
            (give(&mut worker, "nobody", party(8)), Reason::NoPlayer),
            (give(&mut worker, subject, Wanted::Despawn(proto::Despawn {})), Reason::NotOfEntity),
            (give(&mut worker, &"a".repeat(129), party(8)), Reason::TooLong),
        ];
        let (entity, subject, command) = (id, subject.to_owned(), Some(party(9)));
        let both = give_both(entity, &subject, command);
        let both = [(worker.queue(0, both), Reason::NotOfEntity)];
        worker.until(|w| w.results.len() == 4).await;
        worker.results.sort_by_key(|(number, _)| *number);
        assert_eq!(worker.results, [&refused[..], &both].concat());
        assert_eq!(group(&worker), Some(7));
        give(&mut worker, &subject, Wanted::Kick(proto::Kick {}));
        worker.until(|w| w.dead.contains(&id)).await;
    });
}
