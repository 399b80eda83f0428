//! Last positions of players, stored by two gateways at once and while the store is away.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use purview::actor::last_positions::{Found, KeptProperty, LastPosition, LastPositions, Stamp};
use purview::scene::properties::{PropertyId, Value};
use purview::scene::{Plane, Pos};

use purview_lab::sim::store::{CheckpointFaults, Memory};
use purview_server::storage::Checkpoints;
use purview_server::storage::checkpoints::last_positions::LastPositionWriter;

fn at(x: i32) -> LastPosition {
    let value = Value::of(&x).unwrap();
    let properties = vec![KeptProperty { id: PropertyId(3), value }];
    LastPosition { scene: "city".into(), plane: Plane(0), pos: Pos::ground(x, 0), properties }
}

fn book(memory: &Memory) -> LastPositionWriter {
    let executor = tokio::runtime::Handle::current().into();
    LastPositionWriter::new(Duration::from_secs(1), Arc::new(memory.clone()), executor)
}

#[tokio::test(start_paused = true)]
async fn a_position_of_an_older_session_replaces_nothing() {
    let memory = Memory::new(1);
    let (old, new) = (book(&memory), book(&memory));
    let first = old.load("ann").await.unwrap();
    assert_eq!(first, Found { place: None, left_ms: 0, number: 1 });
    old.keep("ann", at(1), Stamp { number: first.number, clock_ms: 1_000 });
    old.flush().await;
    // The player resumes at another gateway, and the first one hears of it late.
    let second = new.load("ann").await.unwrap();
    assert_eq!(second, Found { place: Some(at(1)), left_ms: 1_000, number: 2 });
    new.keep("ann", at(2), Stamp { number: second.number, clock_ms: 2_000 });
    new.flush().await;
    old.keep("ann", at(3), Stamp { number: first.number, clock_ms: 9_000 });
    old.flush().await;
    assert_eq!(old.metrics().fenced.load(Relaxed), 1);
    let third = new.load("ann").await.unwrap();
    assert_eq!(third, Found { place: Some(at(2)), left_ms: 2_000, number: 3 });
    // Within one session the cluster's clock decides.
    new.keep("ann", at(4), Stamp { number: 2, clock_ms: 3_000 });
    new.keep("ann", at(5), Stamp { number: 2, clock_ms: 2_500 });
    new.flush().await;
    assert_eq!(new.load("ann").await.unwrap().place, Some(at(4)));
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_no_position_can_be_read_not_even_a_queued_one() {
    let memory = Memory::new(1);
    let book = book(&memory);
    let found = book.load("ann").await.unwrap();
    book.keep("ann", at(1), Stamp { number: found.number, clock_ms: 1_000 });
    memory.set_faults(CheckpointFaults { unreachable: true, ..CheckpointFaults::default() });
    assert!(book.load("ann").await.is_err(), "another gateway may know better");
    assert_eq!(book.metrics().unknown.load(Relaxed), 1);
    memory.set_faults(CheckpointFaults::default());
    let found = book.load("ann").await.unwrap();
    assert_eq!(found, Found { place: Some(at(1)), left_ms: 1_000, number: 2 }, "it waits here");
    // A name that cannot be stored affects no other name.
    let long = "x".repeat(300);
    assert_eq!(book.load(&long).await.unwrap().place, None);
    book.keep(&long, at(2), Stamp { number: 1, clock_ms: 1 });
    book.flush().await;
    assert_eq!(book.metrics().lost.load(Relaxed), 1);
    assert_eq!(memory.load_player("ann").await.unwrap().unwrap().clock, 1_000);
}
