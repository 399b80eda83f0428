//! Batches and ticks of a session, without a stream.

use prost::Message;

use super::super::proto::create_scene::Mode;
use super::super::proto::{
    Change, Create, Delete, DeleteScene, Everything, Move, Reach, Rect, Refusal, Response,
    SceneUpdate, Tick, Update, reach, response,
};
use super::*;

const MANY: Most = Most { session: 1 << 30, all: 1 << 30 };

const LIMITS: Limits = Limits {
    sessions: 1,
    entities: 1_000,
    pairs: MANY,
    events: MANY,
    bytes: MANY,
    keep_bytes: 1 << 20,
    buffer_bytes: 1 << 30,
    resume_within: Duration::from_secs(1),
    threads: 1,
};

fn state() -> State {
    State::new(Shared::new(LIMITS))
}

fn change(scene: u64, kind: Kind) -> Change {
    Change { scene, change: Some(kind) }
}

fn scene(tick_ms: u32) -> Kind {
    Kind::CreateScene(CreateScene {
        ground: Some(Rect { x0: 0, z0: 0, x1: 1_000, z1: 1_000 }),
        mode: Some(Mode::Everything(Everything {})),
        reach: Some(Reach { reach: Some(reach::Reach::Everything(Everything {})) }),
        tick_ms,
        ..CreateScene::default()
    })
}

fn create(ids: &[u64]) -> Kind {
    let column = vec![5; ids.len()];
    Kind::Create(Create { ids: ids.to_vec(), x: column.clone(), z: column, ..Create::default() })
}

fn tick() -> Kind {
    Kind::Tick(Tick {})
}

fn take(state: &mut State, changes: Vec<Change>) -> Result<(), BatchError> {
    state.take(Batch { sequence: state.applied() + 1, changes, received: 0 })?;
    state.work(Instant::now());
    Ok(())
}

fn sent(state: &mut State) -> Vec<Update> {
    let mut all = Vec::new();
    while let Some(bytes) = state.outbox.unsent() {
        let response = Response::decode(bytes.clone()).unwrap();
        let Some(response::Message::Update(update)) = response.message else { panic!() };
        state.outbox.sent();
        all.push(update);
    }
    all
}

/// Scene, tick, and pairs that appear or disappear.
type Told = (u64, u64, Vec<(u64, u64, bool)>);

fn told(update: &SceneUpdate) -> Told {
    let pairs = update.observers.iter().zip(&update.subjects).zip(&update.appears);
    (update.scene, update.tick, pairs.map(|((a, b), appears)| (*a, *b, *appears)).collect())
}

#[test]
fn a_batch_has_one_update_with_its_ticks_and_refusals() {
    let mut state = state();
    let moved = |ids: &[u64]| {
        let column = vec![7; ids.len()];
        Kind::Move(Move { ids: ids.to_vec(), x: column.clone(), y: vec![], z: column })
    };
    let changes = vec![
        change(3, scene(0)),
        change(3, create(&[1, 2, 1])),
        change(4, tick()),
        change(3, tick()),
        change(3, moved(&[1, 9])),
        change(3, Kind::Delete(Delete { ids: vec![2] })),
        change(3, tick()),
        change(3, scene(0)),
        change(3, Kind::DeleteScene(DeleteScene {})),
        change(3, scene(5)),
    ];
    take(&mut state, changes).unwrap();
    let [update] = &sent(&mut state)[..] else { panic!("one update") };
    assert_eq!((update.sequence, update.applied, update.more), (1, 1, false));
    let ticks: Vec<Told> = update.scenes.iter().map(told).collect();
    let (both, gone) = (vec![(1, 2, true), (2, 1, true)], vec![(1, 2, false), (2, 1, false)]);
    assert_eq!(ticks, [(3, 1, both), (3, 2, gone), (3, 0, vec![])]);
    assert!(update.scenes[2].deleted);
    let place = |r: &Refusal| (r.batch, r.change, r.item, r.entity, r.reason());
    let refused: Vec<_> = update.refused.iter().map(place).collect();
    let wanted = [
        (1, Some(1), Some(2), Some(1), Reason::DuplicateEntity),
        (1, Some(2), None, None, Reason::UnknownScene),
        (1, Some(4), Some(1), Some(9), Reason::UnknownEntity),
        (1, Some(7), None, None, Reason::DuplicateScene),
        (1, Some(9), None, None, Reason::Rules),
    ];
    assert_eq!(refused, wanted);
    assert_eq!(update.refused[4].text, "a tick of 5 ms; 0 and 10 to 60000 are legal");
}

#[test]
fn batches_are_applied_once_and_in_order() {
    let mut state = state();
    let batch = |sequence, kind| Batch { sequence, changes: vec![change(1, kind)], received: 0 };
    state.take(batch(1, scene(0))).unwrap();
    state.work(Instant::now());
    for (found, applied) in [(3, 1), (0, 1)] {
        let missing = Err(BatchError::Missing { found, applied });
        assert_eq!(state.take(batch(found, tick())), missing);
    }
    // A batch that is sent again is ignored, whatever is in it.
    state.take(batch(1, tick())).unwrap();
    assert!(!state.is_pending());
    // A batch that leads to nothing is answered.
    let [update] = &sent(&mut state)[..] else { panic!("one update") };
    assert_eq!((update.applied, update.scenes.len()), (1, 0));
    let early = Batch { received: 2, ..batch(2, tick()) };
    let refused = state.take(early).unwrap_err().to_string();
    assert_eq!(refused, "batch 2: received 2, but the last update that was sent is 1");
    let malformed = Batch { sequence: 2, changes: vec![Change::default()], received: 0 };
    assert!(matches!(state.take(malformed), Err(BatchError::Malformed(_))));
    take(&mut state, vec![change(1, tick())]).unwrap();
    assert_eq!((state.applied(), sent(&mut state).len()), (2, 1));
}

#[test]
fn scenes_tick_by_themselves_and_skip_what_is_late() {
    let (mut state, begin) = (state(), Instant::now());
    let at = |ms| begin + Duration::from_millis(ms);
    let changes = vec![change(2, scene(100)), change(2, create(&[1, 2])), change(2, tick())];
    state.take(Batch { sequence: 1, changes, received: 0 }).unwrap();
    state.work(begin);
    assert_eq!(sent(&mut state)[0].refused[0].reason(), Reason::OwnTick);
    assert_eq!(state.next_due(), Some(at(100)));
    state.tick_due(at(99));
    assert_eq!(sent(&mut state), []);
    state.tick_due(at(100));
    let both = vec![(1, 2, true), (2, 1, true)];
    assert_eq!(sent(&mut state)[0].scenes.iter().map(told).collect::<Vec<_>>(), [(2, 1, both)]);
    // Without events nothing is told.
    state.tick_due(at(200));
    assert_eq!((sent(&mut state).len(), state.next_due()), (0, Some(at(300))));
    state.tick_due(at(750));
    assert_eq!(state.next_due(), Some(at(800)));
    assert_eq!(state.metrics.late_ticks.load(Relaxed), 4);
    take(&mut state, vec![change(2, Kind::DeleteScene(DeleteScene {}))]).unwrap();
    assert_eq!(state.next_due(), None);
}

#[test]
fn a_batch_waits_while_too_much_is_to_be_sent() {
    let mut state = State::new(Shared::new(Limits { entities: 100_000, ..LIMITS }));
    let ids: Vec<u64> = (0..1_000).collect();
    let again = [
        change(1, tick()),
        change(1, Kind::Delete(Delete { ids: ids.clone() })),
        change(1, tick()),
    ];
    let mut changes = vec![change(1, scene(0))];
    (0..4).for_each(|_| {
        changes.push(change(1, create(&ids)));
        changes.extend(again.clone());
    });
    take(&mut state, changes).unwrap();
    assert!(state.is_pending() && state.outbox.is_full());
    assert_eq!(state.applied(), 0);
    let (mut updates, mut rounds) = (sent(&mut state), 0);
    while state.is_pending() {
        state.work(Instant::now());
        updates.extend(sent(&mut state));
        rounds += 1;
    }
    assert!(rounds > 1);
    let pairs = |update: &Update| update.scenes.iter().map(|s| s.observers.len()).sum::<usize>();
    assert_eq!(updates.iter().map(pairs).sum::<usize>(), 8 * 1_000 * 999);
    assert!(updates.is_sorted_by_key(|update| update.sequence));
    let last = updates.last().unwrap();
    assert_eq!((last.applied, last.more), (1, false));
    assert!(updates[..updates.len() - 1].iter().all(|update| update.more && update.applied == 0));
}

#[test]
fn all_sessions_share_a_limit_of_entities() {
    let shared = Shared::new(Limits { entities: 3, ..LIMITS });
    let metrics = Arc::clone(&shared.metrics);
    let mut first = State::new(shared.clone());
    let mut second = State::new(shared.clone());
    take(&mut first, vec![change(1, scene(0)), change(1, create(&[1, 2]))]).unwrap();
    take(&mut second, vec![change(1, scene(0)), change(1, create(&[1, 2]))]).unwrap();
    assert_eq!(sent(&mut second)[0].refused[0].reason(), Reason::Full);
    assert_eq!(metrics.totals.entities.load(Relaxed), 3);
    drop(first);
    take(&mut second, vec![change(1, create(&[2, 3, 4]))]).unwrap();
    let updates = sent(&mut second);
    assert_eq!(updates[0].refused[0].entity, Some(4));
    drop(second);
    let totals = &metrics.totals;
    for total in [&totals.entities, &totals.pairs, &totals.events, &totals.bytes, &totals.buffers] {
        assert_eq!(total.load(Relaxed), 0);
    }
    assert_eq!(metrics.scenes.load(Relaxed), 0);
}

/// A state in which a crowd of 40 stands in scene 1.
fn crowd(limits: Limits, metrics: &Shared) -> State {
    let mut state = State::new(Shared { limits, ..metrics.clone() });
    let ids: Vec<u64> = (0..40).collect();
    take(&mut state, vec![change(1, scene(0)), change(1, create(&ids))]).unwrap();
    sent(&mut state);
    state
}

/// Ticks scene 1: the reason of the refusal, and the number of events.
fn ticked(state: &mut State) -> (Option<Reason>, usize) {
    take(state, vec![change(1, tick())]).unwrap();
    let updates = sent(state);
    let reason = updates.iter().flat_map(|u| &u.refused).map(Refusal::reason).next();
    let events = updates.iter().flat_map(|u| &u.scenes).map(|s| s.observers.len()).sum();
    (reason, events)
}

#[test]
fn a_tick_with_too_many_events_or_pairs_is_refused_and_can_be_tried_again() {
    let shared = Shared::new(LIMITS);
    let most = |session, all| Most { session, all };
    let cases = [
        (Limits { events: most(1_559, 9_999), ..LIMITS }, Reason::TooManyEvents),
        (Limits { events: most(9_999, 1_559), ..LIMITS }, Reason::Busy),
        (Limits { pairs: most(1_559, 9_999), ..LIMITS }, Reason::TooManyPairs),
        (Limits { pairs: most(9_999, 1_559), ..LIMITS }, Reason::TooManyPairs),
    ];
    for (limits, reason) in cases {
        let mut state = crowd(limits, &shared);
        assert_eq!(ticked(&mut state), (Some(reason), 0));
        let fewer = Kind::Delete(Delete { ids: vec![3] });
        take(&mut state, vec![change(1, fewer)]).unwrap();
        sent(&mut state);
        assert_eq!(ticked(&mut state), (None, 39 * 38));
        assert_eq!(shared.metrics.totals.pairs.load(Relaxed), 39 * 38);
        assert_eq!(shared.metrics.totals.events.load(Relaxed), 0);
    }
    assert_eq!(shared.metrics.refused_ticks.load(Relaxed), 4);
}

#[test]
fn a_scene_that_ticks_by_itself_tells_once_that_its_ticks_are_refused() {
    let limits = Limits { pairs: Most { session: 1, all: 1 }, ..LIMITS };
    let (mut state, begin) = (State::new(Shared::new(limits)), Instant::now());
    let changes = vec![change(2, scene(100)), change(2, create(&[1, 2]))];
    state.take(Batch { sequence: 1, changes, received: 0 }).unwrap();
    state.work(begin);
    sent(&mut state);
    for round in 1..4 {
        let now = begin + round * Duration::from_millis(1_100);
        state.tick_due(now);
        assert_eq!(state.next_due(), Some(now + Duration::from_secs(1)));
        let refused: Vec<_> = sent(&mut state).into_iter().flat_map(|u| u.refused).collect();
        assert_eq!(refused.len(), usize::from(round == 1));
        for Refusal { batch, change, item, scene, entity, .. } in refused {
            assert_eq!((batch, change, item, scene, entity), (0, None, None, 2, None));
        }
    }
}

#[test]
fn a_session_and_all_sessions_have_a_limit_of_bytes() {
    let bytes = |session, all| Limits { bytes: Most { session, all }, ..LIMITS };
    for limits in [bytes(20 << 10, 1 << 30), bytes(1 << 30, 20 << 10)] {
        let shared = Shared::new(limits);
        let mut state = State::new(shared.clone());
        let ids: Vec<u64> = (0..40).collect();
        take(&mut state, vec![change(1, scene(0)), change(1, create(&ids))]).unwrap();
        let refused = sent(&mut state).remove(0).refused;
        assert!((10..39).contains(&refused.len()), "{}", refused.len());
        assert!(refused.iter().all(|refusal| refusal.reason() == Reason::Full));
        take(&mut state, vec![change(2, scene(0))]).unwrap();
        assert_eq!(sent(&mut state)[0].refused[0].reason(), Reason::Full);
        assert!(shared.metrics.totals.bytes.load(Relaxed) <= (20 << 10) + 1_024);
    }
}

#[test]
fn many_refused_items_of_a_change_are_told_in_parts() {
    let mut state = state();
    let ids: Vec<u64> = (0..200_000).collect();
    take(&mut state, vec![change(1, scene(0)), change(1, Kind::Delete(Delete { ids }))]).unwrap();
    assert!(state.is_pending() && state.outbox.is_full());
    let mut updates = sent(&mut state);
    while state.is_pending() {
        state.work(Instant::now());
        updates.extend(sent(&mut state));
    }
    let refused = updates.iter().flat_map(|update| &update.refused);
    assert!(refused.map(|refusal| refusal.entity).eq((0..200_000).map(Some)));
}
