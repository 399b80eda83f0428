//! The checkpoint store keeps the newest snapshot by epoch and tick, and the one before it.

use bytes::Bytes;
use purview::scene::{EntityId, Epoch, Tick};
use purview_server::launch::PostgresServer;
use purview_server::storage::checkpoints::postgres::Postgres;
use purview_server::storage::checkpoints::redb::{FILE, Redb};
use purview_server::storage::{
    CheckpointError, Checkpoints, ClaimOver, PlayerClaim, PlayerClaimed, PlayersSaved, Saved,
    SavedPlayer, SavedSnapshots, Snapshot,
};

use super::bench::region;
use super::checkpoint_store::CheckpointStore;
use super::over_each;
use super::postgres::server;

over_each!(CheckpointStore: redb, simulated, postgres: {
    the_newest_snapshot_and_the_one_before_are_kept,
    saving_the_same_snapshot_again_changes_nothing,
    an_older_snapshot_never_replaces_a_newer_one,
    a_claim_keeps_earlier_owners_from_saving,
    of_many_concurrent_saves_the_newest_stays,
    the_last_position_of_a_player_is_kept,
    a_record_is_claimed_by_one_entity_at_a_time,
    of_many_claims_of_a_record_one_is_first,
    of_two_positions_of_a_player_session_and_then_clock_decide,
    a_snapshot_that_is_set_aside_is_no_longer_loaded,
    stored_data_survives_closing_and_opening,
    illegal_data_is_refused,
    large_snapshots_are_kept,
});

fn snapshot(epoch: u64, tick: u64, state: &str) -> Snapshot {
    Snapshot { epoch: Epoch(epoch), tick: Tick(tick), state: state.to_owned().into() }
}

async fn save(store: &dyn Checkpoints, n: u32, what: &Snapshot) -> Saved {
    store.save(&region(n), what.epoch, what.tick, what.state.clone()).await.unwrap()
}

fn place(name: &str, epoch: u64, place: &str) -> SavedPlayer {
    placed_at(name, (epoch, 0), place)
}

fn placed_at(name: &str, (epoch, clock): (u64, u64), place: &str) -> SavedPlayer {
    let (name, place) = (name.into(), place.to_owned().into());
    SavedPlayer { name, epoch: Epoch(epoch), clock, holder: None, place }
}

async fn the_newest_snapshot_and_the_one_before_are_kept(bench: &CheckpointStore) {
    let store = bench.open().await;
    assert_eq!(store.load(&region(1)).await.unwrap(), SavedSnapshots::default());
    assert_eq!(store.highest_epoch().await.unwrap(), Epoch(0));
    assert_eq!(store.regions().await.unwrap(), []);
    let steps =
        [snapshot(3, 10, "a"), snapshot(3, 20, "b"), snapshot(7, 5, "c"), snapshot(7, 6, "d")];
    let mut previous = None;
    for step in steps {
        assert_eq!(save(&*store, 1, &step).await, Saved::Ok);
        let kept = store.load(&region(1)).await.unwrap();
        assert_eq!(kept, SavedSnapshots { newest: Some(step.clone()), previous });
        previous = Some(step);
    }
    save(&*store, 0, &snapshot(2, 1, "other")).await;
    assert_eq!(store.regions().await.unwrap(), [region(0), region(1)]);
    assert_eq!(store.highest_epoch().await.unwrap(), Epoch(7));
}

async fn saving_the_same_snapshot_again_changes_nothing(bench: &CheckpointStore) {
    let store = bench.open().await;
    let (first, second) = (snapshot(3, 10, "a"), snapshot(3, 20, "b"));
    for step in [&first, &first, &second, &second, &second] {
        assert_eq!(save(&*store, 1, step).await, Saved::Ok);
    }
    let kept = store.load(&region(1)).await.unwrap();
    assert_eq!(kept, SavedSnapshots { newest: Some(second), previous: Some(first) });
}

async fn an_older_snapshot_never_replaces_a_newer_one(bench: &CheckpointStore) {
    let store = bench.open().await;
    let (first, second) = (snapshot(3, 10, "a"), snapshot(7, 5, "b"));
    save(&*store, 1, &first).await;
    save(&*store, 1, &second).await;
    for late in [snapshot(6, 999, "x"), snapshot(7, 4, "x"), snapshot(0, 0, "x")] {
        let fenced = Saved::Fenced { by: Epoch(7), tick: Tick(5) };
        assert_eq!(save(&*store, 1, &late).await, fenced);
    }
    let kept = store.load(&region(1)).await.unwrap();
    assert_eq!(kept, SavedSnapshots { newest: Some(second), previous: Some(first) });
    // Another region has its own snapshots.
    assert_eq!(save(&*store, 2, &snapshot(1, 1, "y")).await, Saved::Ok);
}

async fn a_claim_keeps_earlier_owners_from_saving(bench: &CheckpointStore) {
    let store = bench.open().await;
    let (first, second) = (snapshot(3, 10, "a"), snapshot(3, 20, "b"));
    save(&*store, 1, &first).await;
    save(&*store, 1, &second).await;
    let kept = SavedSnapshots { newest: Some(second), previous: Some(first) };
    assert_eq!(store.claim(&region(1), Epoch(7)).await.unwrap(), kept);
    assert_eq!(store.claim(&region(1), Epoch(5)).await.unwrap(), kept, "an earlier claim reads");
    assert_eq!(store.highest_epoch().await.unwrap(), Epoch(7));
    let fenced = Saved::Fenced { by: Epoch(7), tick: Tick(0) };
    for late in [snapshot(3, 30, "x"), snapshot(6, 1, "x")] {
        assert_eq!(save(&*store, 1, &late).await, fenced);
    }
    assert_eq!(store.load(&region(1)).await.unwrap(), kept);
    let next = snapshot(7, 21, "c");
    assert_eq!(save(&*store, 1, &next).await, Saved::Ok);
    let kept = SavedSnapshots { newest: Some(next), previous: kept.newest };
    assert_eq!(store.load(&region(1)).await.unwrap(), kept);
    // A region without a snapshot can be claimed, too, and then has none.
    assert_eq!(store.claim(&region(2), Epoch(4)).await.unwrap(), SavedSnapshots::default());
    assert_eq!(store.regions().await.unwrap(), [region(1)]);
    assert!(matches!(save(&*store, 2, &snapshot(3, 9, "x")).await, Saved::Fenced { .. }));
    let first = snapshot(4, 1, "d");
    assert_eq!(save(&*store, 2, &first).await, Saved::Ok);
    let kept = SavedSnapshots { newest: Some(first), previous: None };
    assert_eq!(store.load(&region(2)).await.unwrap(), kept);
}

async fn of_many_concurrent_saves_the_newest_stays(bench: &CheckpointStore) {
    let store = bench.open().await;
    let saves = (1..=20).rev().map(|epoch| {
        let store = store.clone();
        tokio::spawn(async move { save(&*store, 1, &snapshot(epoch, 1, "x")).await })
    });
    let answers = futures::future::join_all(saves).await;
    let kept = store.load(&region(1)).await.unwrap();
    assert_eq!(kept.newest, Some(snapshot(20, 1, "x")));
    let ok = answers.iter().filter(|answer| *answer.as_ref().unwrap() == Saved::Ok).count();
    assert!((1..=20).contains(&ok), "{answers:?}");
    assert!(kept.previous.is_none_or(|previous| previous.epoch < Epoch(20)));
}

async fn the_last_position_of_a_player_is_kept(bench: &CheckpointStore) {
    let store = bench.open().await;
    assert_eq!(store.load_player("ann").await.unwrap(), None);
    assert_eq!(store.save_players(Vec::new()).await.unwrap(), PlayersSaved::default());
    let both = vec![place("ann", 5, "a"), place("bo 'b'\n", 3, "b")];
    let saved = store.save_players(both).await.unwrap();
    assert_eq!(saved, PlayersSaved { kept: 2, fenced: 0 });
    let late = vec![place("ann", 4, "x"), place("bo 'b'\n", 3, "b2"), place("cy", 1, "c")];
    let saved = store.save_players(late).await.unwrap();
    assert_eq!(saved, PlayersSaved { kept: 2, fenced: 1 });
    let twice = vec![place("dee", 2, "x"), place("dee", 3, "d"), place("dee", 1, "x")];
    let saved = store.save_players(twice).await.unwrap();
    assert_eq!(saved, PlayersSaved { kept: 1, fenced: 0 });
    for want in [place("ann", 5, "a"), place("bo 'b'\n", 3, "b2"), place("dee", 3, "d")] {
        assert_eq!(store.load_player(&want.name).await.unwrap(), Some(want));
    }
    // One illegal entry prevents the whole write.
    let bad = vec![place("eve", 1, "e"), place("", 1, "e")];
    assert!(matches!(store.save_players(bad).await, Err(CheckpointError::Illegal { .. })));
    assert_eq!(store.load_player("eve").await.unwrap(), None);
}

/// A claim by an entity, over these.
fn claim(entity: u64, over: ClaimOver) -> PlayerClaim {
    PlayerClaim { entity: EntityId(entity), over }
}

async fn a_record_is_claimed_by_one_entity_at_a_time(bench: &CheckpointStore) {
    let store = bench.open().await;
    let holder = |entity: u64| Some(EntityId(entity));
    let held = |epoch, clock, holder, text: &str| SavedPlayer {
        holder,
        ..placed_at("ann", (epoch, clock), text)
    };
    let claimed = async |by: PlayerClaim| store.claim_player("ann", by).await.unwrap();
    // A record that nobody has written is free, and not held.
    let PlayerClaimed::No(empty) = claimed(claim(7, ClaimOver::Itself)).await else {
        panic!("an entity holds nothing that it has not claimed");
    };
    assert_eq!((empty.epoch, empty.holder), (Epoch(0), None));
    let first = held(1, 0, holder(7), "");
    assert_eq!(claimed(claim(7, ClaimOver::Nobody)).await, PlayerClaimed::Yes(first.clone()));
    assert_eq!(store.player_held_by(EntityId(7)).await.unwrap(), Some(first.clone()));
    for by in [claim(8, ClaimOver::Nobody), claim(8, ClaimOver::Gone(EntityId(6)))] {
        assert_eq!(claimed(by).await, PlayerClaimed::No(first.clone()));
    }
    // The entity's next session: what is saved stays, and what the session before says is late.
    let saved = store.save_players(vec![held(1, 50, holder(7), "a")]).await.unwrap();
    assert_eq!(saved.kept, 1);
    let second = held(2, 50, holder(7), "a");
    assert_eq!(claimed(claim(7, ClaimOver::Itself)).await, PlayerClaimed::Yes(second));
    let late = store.save_players(vec![held(1, 90, holder(7), "x")]).await.unwrap();
    assert_eq!(late, PlayersSaved { kept: 0, fenced: 1 });
    // The last state frees the record, and a report of the same time that comes later does not hold it again.
    let last = held(2, 60, None, "b");
    store.save_players(vec![last.clone()]).await.unwrap();
    let late = store.save_players(vec![held(2, 60, holder(7), "x")]).await.unwrap();
    assert_eq!(late, PlayersSaved { kept: 0, fenced: 1 });
    assert_eq!(store.load_player("ann").await.unwrap(), Some(last));
    assert_eq!(store.player_held_by(EntityId(7)).await.unwrap(), None);
    assert!(matches!(claimed(claim(7, ClaimOver::Itself)).await, PlayerClaimed::No(_)));
    // The next entity begins with it; one that is gone gives way, and so does any where sessions do not exclude
    // each other.
    let next = |epoch, entity| PlayerClaimed::Yes(held(epoch, 0, holder(entity), "b"));
    assert_eq!(claimed(claim(8, ClaimOver::Nobody)).await, next(3, 8));
    assert_eq!(claimed(claim(9, ClaimOver::Gone(EntityId(8)))).await, next(4, 9));
    assert_eq!(claimed(claim(10, ClaimOver::Anybody)).await, next(5, 10));
    assert_eq!(store.player_held_by(EntityId(8)).await.unwrap(), None);
}

async fn of_many_claims_of_a_record_one_is_first(bench: &CheckpointStore) {
    let store = bench.open().await;
    let claims = (1..=20).map(|entity| {
        let store = store.clone();
        async move { store.claim_player("ann", claim(entity, ClaimOver::Nobody)).await.unwrap() }
    });
    let answers = futures::future::join_all(claims).await;
    let won: Vec<_> =
        answers.iter().filter(|answer| matches!(answer, PlayerClaimed::Yes(_))).collect();
    assert_eq!(won.len(), 1, "{answers:?}");
    let PlayerClaimed::Yes(record) = won[0] else { unreachable!() };
    assert_eq!(store.load_player("ann").await.unwrap().as_ref(), Some(record));
}

async fn of_two_positions_of_a_player_session_and_then_clock_decide(bench: &CheckpointStore) {
    let store = bench.open().await;
    let steps = [
        (placed_at("ann", (5, 1_000), "a"), true),
        // An older session, whose gateway's clock is ahead.
        (placed_at("ann", (4, 9_000), "x"), false),
        (placed_at("ann", (5, 999), "x"), false),
        (placed_at("ann", (5, 1_001), "b"), true),
        // A newer session, whose region's clock is behind.
        (placed_at("ann", (6, 7), "c"), true),
    ];
    let mut newest = None;
    for (step, counts) in steps {
        let saved = store.save_players(vec![step.clone()]).await.unwrap();
        assert_eq!(saved.kept, usize::from(counts), "{step:?}");
        newest = if counts { Some(step) } else { newest };
        assert_eq!(store.load_player("ann").await.unwrap(), newest);
    }
    let both = vec![placed_at("bo", (2, 3), "b"), placed_at("bo", (2, 2), "x")];
    store.save_players(both).await.unwrap();
    assert_eq!(store.load_player("bo").await.unwrap(), Some(placed_at("bo", (2, 3), "b")));
}

async fn a_snapshot_that_is_set_aside_is_no_longer_loaded(bench: &CheckpointStore) {
    let store = bench.open().await;
    for tick in 1..=2 {
        save(&*store, 1, &snapshot(3, tick, "damaged")).await;
        save(&*store, 2, &snapshot(4, tick, "sound")).await;
    }
    assert_eq!(store.set_aside(&region(1)).await.unwrap(), 2);
    assert_eq!(store.load(&region(1)).await.unwrap(), SavedSnapshots::default());
    assert_eq!(store.set_aside(&region(1)).await.unwrap(), 0, "nothing is left");
    assert!(store.highest_epoch().await.unwrap() >= Epoch(3));
    let kept = store.load(&region(2)).await.unwrap();
    assert_eq!(kept.newest, Some(snapshot(4, 2, "sound")), "another region has its own");
    let next = snapshot(9, 1, "new");
    assert_eq!(save(&*store, 1, &next).await, Saved::Ok);
    assert_eq!(
        store.load(&region(1)).await.unwrap(),
        SavedSnapshots { newest: Some(next), previous: None }
    );
}

async fn stored_data_survives_closing_and_opening(bench: &mut CheckpointStore) {
    let opened = bench.open().await;
    let (first, second) = (snapshot(3, 10, "a"), snapshot(4, 1, "b"));
    save(&*opened, 1, &first).await;
    save(&*opened, 1, &second).await;
    opened.save_players(vec![place("ann", 5, "a")]).await.unwrap();
    drop(opened);
    bench.restart();
    let opened = bench.open().await;
    let kept = opened.load(&region(1)).await.unwrap();
    assert_eq!(kept, SavedSnapshots { newest: Some(second), previous: Some(first) });
    assert_eq!(opened.load_player("ann").await.unwrap(), Some(place("ann", 5, "a")));
    let late = save(&*opened, 1, &snapshot(3, 11, "x")).await;
    assert_eq!(late, Saved::Fenced { by: Epoch(4), tick: Tick(1) });
}

async fn illegal_data_is_refused(bench: &CheckpointStore) {
    let store = bench.open().await;
    let illegal = |e: CheckpointError| assert!(matches!(e, CheckpointError::Illegal { .. }), "{e}");
    let (epoch, tick, large) = (Epoch(1), Tick(1), Bytes::from(vec![0; (64 << 20) + 1]));
    illegal(store.save(&region(1), epoch, tick, large).await.unwrap_err());
    illegal(store.save(&region(1), Epoch(u64::MAX), tick, Bytes::new()).await.unwrap_err());
    illegal(store.save(&region(1), epoch, Tick(u64::MAX), Bytes::new()).await.unwrap_err());
    let mut key = region(1);
    key.scene = "zero \0 byte".into();
    illegal(store.save(&key, epoch, tick, Bytes::new()).await.unwrap_err());
    illegal(store.load_player(&"x".repeat(256)).await.unwrap_err());
    let large = SavedPlayer { place: vec![0; (64 << 10) + 1].into(), ..place("ann", 1, "") };
    illegal(store.save_players(vec![large]).await.unwrap_err());
    illegal(store.save_players(vec![place("ann", 1, ""); 10_001]).await.unwrap_err());
    assert_eq!(store.regions().await.unwrap(), []);
}

async fn large_snapshots_are_kept(bench: &CheckpointStore) {
    let store = bench.open().await;
    let state: Vec<u8> =
        (0..5_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for tick in 1..=3 {
        let saved =
            store.save(&region(1), Epoch(1), Tick(tick), state.clone().into()).await.unwrap();
        assert_eq!(saved, Saved::Ok);
    }
    let kept = store.load(&region(1)).await.unwrap();
    let (newest, previous) = (kept.newest.unwrap(), kept.previous.unwrap());
    assert_eq!((newest.tick, previous.tick), (Tick(3), Tick(2)));
    assert!(newest.state == state && previous.state == state, "the bytes differ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_goes_away_and_comes_back() {
    let mut server = server().await;
    let store = Postgres::connect(&server.url(), "test").await.unwrap();
    save(&store, 1, &snapshot(1, 1, "a")).await;
    server.kill();
    let away = async || {
        store.save(&region(1), Epoch(1), Tick(2), "b".to_owned().into()).await.unwrap_err()
    };
    let error = away().await;
    assert!(matches!(error, CheckpointError::Unreachable { .. }), "{error}");
    let error = away().await;
    assert!(matches!(error, CheckpointError::Unreachable { .. }), "{error}");
    assert!(!error.to_string().contains("purview:"), "the error contains the password: {error}");
    tokio::task::block_in_place(|| server.restart()).unwrap();
    assert_eq!(save(&store, 1, &snapshot(1, 2, "b")).await, Saved::Ok);
    let kept = store.load(&region(1)).await.unwrap();
    assert_eq!(kept.previous, Some(snapshot(1, 1, "a")));
}

#[tokio::test]
async fn clusters_do_not_see_each_others_checkpoints() {
    let server = server().await;
    // Both create the tables at the same time.
    let url = server.url();
    let (one, other) =
        tokio::join!(Postgres::connect(&url, "one"), Postgres::connect(&url, "other"));
    let (one, other) = (one.unwrap(), other.unwrap());
    save(&one, 1, &snapshot(9, 1, "a")).await;
    one.save_players(vec![place("ann", 5, "a")]).await.unwrap();
    assert_eq!(other.load(&region(1)).await.unwrap(), SavedSnapshots::default());
    assert_eq!(other.load_player("ann").await.unwrap(), None);
    assert_eq!(other.highest_epoch().await.unwrap(), Epoch(0));
    assert_eq!(save(&other, 1, &snapshot(1, 1, "b")).await, Saved::Ok);
}

#[tokio::test]
async fn an_error_of_postgres_names_its_cause() {
    let error = Postgres::connect("mysql://h", "test").await.err().unwrap();
    assert!(matches!(error, CheckpointError::Illegal { .. }), "{error}");
    let error = Postgres::connect("postgres://a:b@127.0.0.1:1/x", "test").await.err().unwrap();
    assert!(matches!(error, CheckpointError::Unreachable { .. }), "{error}");
    let server = PostgresServer::start(None).unwrap();
    let wrong = server.url().replace("purview:", "purview:not");
    let error = Postgres::connect(&wrong, "test").await.err().unwrap();
    assert!(matches!(error, CheckpointError::Refused { .. }), "{error}");
}

#[tokio::test]
async fn an_error_of_the_file_names_its_cause() {
    let dir = tempfile::tempdir().unwrap();
    let first = Redb::open(dir.path()).unwrap();
    let error = Redb::open(dir.path()).err().unwrap();
    assert!(matches!(error, CheckpointError::Refused { .. }), "{error}");
    drop(first);
    std::fs::write(dir.path().join(FILE), "no database at all ".repeat(1_000)).unwrap();
    let error = Redb::open(dir.path()).err().unwrap();
    assert!(matches!(error, CheckpointError::BadData { .. }), "{error}");
    let file = dir.path().join(FILE);
    let error = Redb::open(&file).err().unwrap();
    assert!(matches!(error, CheckpointError::Refused { .. }), "{error}");
}
