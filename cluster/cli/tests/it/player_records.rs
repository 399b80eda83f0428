//! Records of players, kept by two processes at once and while the store is away.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use purview::actor::player_store::{
    ClaimOver, Claimed, KeptProperty, LastPosition, LastState, NotClaimed, PlayerStore, Stamp,
    StoredPlayer,
};
use purview::scene::properties::{PropertyId, Value};
use purview::scene::views::NamedBond;
use purview::scene::{EntityId, Plane, Pos};

use purview_lab::sim::store::{CheckpointFaults, Memory};
use purview_server::storage::Checkpoints;
use purview_server::storage::checkpoints::player_records::{PlayerRecords, RecordRules};

const A: EntityId = EntityId(1);
const B: EntityId = EntityId(2);

fn at(x: i32) -> LastPosition {
    let value = Value::of(&x).unwrap();
    let properties = vec![KeptProperty { id: PropertyId(3), value }];
    let (scene, bonds) = ("city".into(), vec![NamedBond::new("guild", 7)]);
    LastPosition { scene, plane: Plane(0), pos: Pos::ground(x, 0), properties, bonds }
}

fn last(x: i32, clock_ms: u64) -> Option<LastState> {
    let LastPosition { scene, plane, pos, properties, bonds } = at(x);
    let declared = vec![PropertyId(3)];
    Some(LastState { clock_ms, at: Some((scene, plane, pos)), properties, bonds, declared })
}

fn records(memory: &Memory) -> PlayerRecords {
    let executor = tokio::runtime::Handle::current().into();
    PlayerRecords::new(RecordRules::default(), Arc::new(memory.clone()), executor)
}

/// A claim of this number, and what is kept since when.
fn claimed(kept: Option<(i32, u64)>, number: u64) -> Result<Claimed, NotClaimed> {
    let kept = kept.map(|(x, clock_ms)| StoredPlayer { place: at(x), clock_ms });
    Ok(Claimed { kept, number })
}

#[tokio::test(start_paused = true)]
async fn the_next_entity_begins_with_the_last_state_of_the_one_before() {
    let memory = Memory::new(1);
    let (old, new) = (records(&memory), records(&memory));
    assert_eq!(old.claim("ann", A, ClaimOver::Nobody).await, claimed(None, 1));
    old.keep("ann", A, at(1), Stamp { number: 1, clock_ms: 1_000 });
    old.flush().await;
    // The record tells where a join would lead, and is not to be had.
    assert_eq!(new.read("ann").await.unwrap().map(|kept| kept.place), Some(at(1)));
    let held = Err(NotClaimed::Held(Some(A)));
    assert_eq!(new.claim("ann", B, ClaimOver::Nobody).await, held);
    assert_eq!(new.metrics().held.load(Relaxed), 1);
    // A region of any process saves what the player had last, and a report that comes later is late.
    new.ended(A, last(2, 2_000)).await;
    old.keep("ann", A, at(3), Stamp { number: 1, clock_ms: 1_900 });
    old.flush().await;
    assert_eq!(old.metrics().fenced.load(Relaxed), 1);
    assert_eq!(new.claim("ann", B, ClaimOver::Nobody).await, claimed(Some((2, 2_000)), 2));
    // What is said of the entity before changes nothing any more.
    old.ended(A, last(9, 9_000)).await;
    old.keep("ann", A, at(9), Stamp { number: 1, clock_ms: 9_000 });
    old.flush().await;
    let next = new.claim("ann", EntityId(3), ClaimOver::Gone(B)).await;
    assert_eq!(next, claimed(Some((2, 2_000)), 3));
}

#[tokio::test(start_paused = true)]
async fn a_last_state_from_an_old_checkpoint_does_not_undo_a_later_report() {
    let memory = Memory::new(1);
    let records = records(&memory);
    records.claim("ann", A, ClaimOver::Nobody).await.unwrap();
    records.keep("ann", A, at(5), Stamp { number: 1, clock_ms: 5_000 });
    records.flush().await;
    records.ended(A, last(4, 4_000)).await;
    assert_eq!(records.claim("ann", B, ClaimOver::Nobody).await, claimed(Some((5, 5_000)), 2));
    // An entity that was never in the world leaves the record as it was.
    records.ended(B, None).await;
    let next = records.claim("ann", EntityId(3), ClaimOver::Nobody).await;
    assert_eq!(next, claimed(Some((5, 5_000)), 3));
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_claims_are_refused_and_last_states_wait() {
    let memory = Memory::new(1);
    let records = records(&memory);
    records.claim("ann", A, ClaimOver::Nobody).await.unwrap();
    memory.set_faults(CheckpointFaults { unreachable: true, ..CheckpointFaults::default() });
    assert!(records.read("ann").await.is_err());
    let away = records.claim("ann", B, ClaimOver::Nobody).await;
    assert!(matches!(away, Err(NotClaimed::Away(_))), "{away:?}");
    assert_eq!(records.metrics().unknown.load(Relaxed), 2);
    let ended = records.ended(A, last(7, 7_000));
    let mut ended = std::pin::pin!(ended);
    assert!(tokio::time::timeout(Duration::from_secs(60), &mut ended).await.is_err());
    memory.set_faults(CheckpointFaults::default());
    ended.await;
    assert_eq!(records.claim("ann", B, ClaimOver::Nobody).await, claimed(Some((7, 7_000)), 2));
}

#[tokio::test(start_paused = true)]
async fn a_join_waits_for_the_store_as_long_as_is_configured() {
    let memory = Memory::new(1);
    let executor = tokio::runtime::Handle::current().into();
    let rules = RecordRules { wait: Duration::from_secs(30), ..RecordRules::default() };
    let records = PlayerRecords::new(rules, Arc::new(memory.clone()), executor);
    memory.set_faults(CheckpointFaults { unreachable: true, ..CheckpointFaults::default() });
    let claim = records.claim("ann", A, ClaimOver::Nobody);
    let mut claim = std::pin::pin!(claim);
    assert!(tokio::time::timeout(Duration::from_secs(20), &mut claim).await.is_err());
    memory.set_faults(CheckpointFaults::default());
    assert_eq!(claim.await, claimed(None, 1));
}

#[tokio::test(start_paused = true)]
async fn where_sessions_do_not_exclude_each_other_the_newest_one_has_the_record() {
    let memory = Memory::new(1);
    let executor = tokio::runtime::Handle::current().into();
    let rules = RecordRules { exclusive: false, ..RecordRules::default() };
    let records = PlayerRecords::new(rules, Arc::new(memory.clone()), executor);
    records.claim("ann", A, ClaimOver::Nobody).await.unwrap();
    assert_eq!(records.claim("ann", B, ClaimOver::Nobody).await, claimed(None, 2));
    records.ended(A, last(1, 1_000)).await;
    records.ended(B, last(2, 900)).await;
    assert_eq!(records.read("ann").await.unwrap().map(|kept| kept.place), Some(at(2)));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_cannot_be_stored_affects_no_other_name() {
    let memory = Memory::new(1);
    let records = records(&memory);
    let long = "x".repeat(300);
    assert_eq!(records.claim(&long, A, ClaimOver::Nobody).await, Ok(Claimed::default()));
    records.keep(&long, A, at(2), Stamp { number: 0, clock_ms: 1 });
    records.flush().await;
    assert_eq!(records.metrics().lost.load(Relaxed), 1);
    assert_eq!(memory.load_player("ann").await.unwrap(), None);
}
