//! Peers that send the largest and smallest numbers there are: no region panics, and none ignores
//! later valid messages. Every number of every message is tried, alone and in combination.

use std::sync::Arc;

use proptest::prelude::*;
use purview::scene::messages::{BorderBatch, Effect, Handoff, Input, Spawn};
use purview::scene::region::Implausible;
use purview::scene::spec::{MoveSpec, Moves};
use purview::scene::views::PeerState;
use purview::scene::{
    EntityId, Epoch, Kind, Plane, Pos, Region, RegionId, Scene, SceneId, SceneSpec, SessionId,
    Tick, Visibility,
};
use purview::wire::peer::PeerMsg;
use serde_json::{Value, json};

use crate::peers::samples;
use crate::support::handed_over;
use crate::support::trial;

const TICK: Tick = Tick(70_000);
const EPOCH: Epoch = Epoch(1 << 21 | 5);

/// The region that receives everything.
const HERE: RegionId = RegionId(2);
/// A neighbour, in whose name the samples are sent.
const THERE: RegionId = RegionId(1);

fn region(moves: Moves) -> Region {
    let moves = MoveSpec { mode: moves, ..MoveSpec::default() };
    let spec = SceneSpec {
        kinds: SceneSpec::default().kinds,
        moves,
        top_speed_cm_s: 400,
        ..trial::scene(Visibility::Patches, 4)
    };
    let scene = Scene::new(SceneId(1), spec, 100, THERE).expect("a legal scene");
    Region::new(Arc::new(scene), HERE).expect("a region").with_epoch(EPOCH)
}

/// The samples for a region, moved to the ground of the region here.
fn inputs() -> Vec<(String, Value)> {
    let region = |(name, message): (String, PeerMsg)| match message {
        PeerMsg::Region { input, .. } => {
            let mut value = serde_json::to_value(input).expect("a value");
            for_each_number(&mut value, |number| {
                // Position and plane of the samples, replaced by ones where entities can be.
                if number.as_i64() == Some(-5) {
                    *number = json!(3_300);
                }
            });
            Some((name, value))
        }
        _ => None,
    };
    samples::all().into_iter().filter_map(region).collect()
}

fn for_each_number(value: &mut Value, mut visit: impl FnMut(&mut Value)) {
    fn walk(value: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
        match value {
            Value::Number(_) => visit(value),
            Value::Array(all) => all.iter_mut().for_each(|v| walk(v, visit)),
            Value::Object(all) => all.values_mut().for_each(|v| walk(v, visit)),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
    walk(value, &mut visit);
}

fn numbers(value: &Value) -> usize {
    let mut count = 0;
    for_each_number(&mut value.clone(), |_| count += 1);
    count
}

fn with(value: &Value, nth: usize, extreme: &Value) -> Value {
    let (mut value, mut at) = (value.clone(), 0);
    for_each_number(&mut value, |number| {
        if at == nth {
            *number = extreme.clone();
        }
        at += 1;
    });
    value
}

fn extremes() -> Vec<Value> {
    let unsigned = [0, 1, 31, 32, 255, 65_535, 1 << 31, u32::MAX.into(), 1 << 32, 1 << 41, 1 << 61];
    let signed = [-1, i32::MIN.into(), i32::MAX.into(), i64::MIN, i64::MAX];
    let largest = [1 << 63, u64::MAX - 1, u64::MAX];
    let unsigned = unsigned.into_iter().chain(largest).map(|n: u64| json!(n));
    unsigned.chain(signed.into_iter().map(|n: i64| json!(n))).collect()
}

fn tick(region: &mut Region, tick: u64, fx: &mut Vec<Effect>) {
    region.tick(Tick(tick), fx);
    fx.clear();
}

/// A region before any wrong message: in normal operation, with an entity in it.
fn settled(moves: Moves) -> Region {
    let (mut region, mut fx) = (region(moves), Vec::new());
    let spawn = Spawn {
        plane: Plane(3),
        session: Some(SessionId(5)),
        ..Spawn::new(EntityId(42), Kind::PLAYER, Pos::ground(3_400, 500))
    };
    tick(&mut region, TICK.0 - 2, &mut fx);
    region.handle(Input::Enter(Box::new(spawn)), &mut fx);
    tick(&mut region, TICK.0 + 9, &mut fx);
    fx.clear();
    region
}

/// The region must go on for longer than it waits for any message.
fn goes_on(region: &mut Region) {
    let mut fx = Vec::new();
    let last = region.current_tick().0;
    (1..=45).for_each(|n| tick(region, last + n, &mut fx));
    assert!(region.current_tick() > Tick(last), "the region stopped ticking");
}

#[test]
fn no_number_of_any_message_makes_a_region_panic() {
    let (mut received, mut wrong) = (0, Vec::new());
    for (name, input) in inputs() {
        for moves in [Moves::Trusted, Moves::Judged] {
            for nth in 0..numbers(&input) {
                for extreme in extremes() {
                    let changed = with(&input, nth, &extreme);
                    // Values that the types cannot hold are refused by the wire.
                    let Ok(told) = serde_json::from_value::<Input>(changed) else { continue };
                    let mut region = settled(moves);
                    let what = format!("{name}, number {nth} = {extreme}");
                    let run = std::panic::AssertUnwindSafe(|| {
                        region.handle(told.clone(), &mut Vec::new());
                        goes_on(&mut region);
                        region.handle(told, &mut Vec::new());
                        goes_on(&mut region);
                        region.checkpoint();
                    });
                    if std::panic::catch_unwind(run).is_err() {
                        wrong.push(what);
                    }
                    received += 1;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {received}: {wrong:#?}", wrong.len());
    assert!(received > 5_000, "{received}");
}

fn told() -> impl Strategy<Value = Value> {
    let all = inputs();
    let changes = prop::collection::vec(
        (any::<prop::sample::Index>(), prop::sample::select(extremes())),
        0..6,
    );
    (0..all.len(), changes).prop_map(move |(input, changes)| {
        let mut value = all[input].1.clone();
        for (at, extreme) in changes {
            value = with(&value, at.index(numbers(&value)), &extreme);
        }
        value
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_sequence_of_wrong_messages_makes_a_region_panic(
        said in prop::collection::vec((told(), 0u64..4), 1..20),
        judged in any::<bool>(),
    ) {
        let mut region = settled(if judged { Moves::Judged } else { Moves::Trusted });
        let mut fx = Vec::new();
        for (value, ticks) in said {
            if let Ok(input) = serde_json::from_value::<Input>(value) {
                region.handle(input, &mut fx);
            }
            for _ in 0..ticks {
                let next = region.current_tick().0 + 10;
                tick(&mut region, next, &mut fx);
            }
        }
        goes_on(&mut region);
    }
}

fn ghosts(tick: Tick, epoch: Epoch) -> Input {
    let empty = BorderBatch::empty((THERE, epoch, epoch), (tick, Tick(tick.0 - 1)));
    Input::Border(Box::new(BorderBatch { full: true, ..empty }))
}

fn handoff(epoch: Epoch, tick: Tick, id: EntityId, view_counter: u32) -> Handoff {
    let state = Spawn::new(id, Kind::PLAYER, Pos::ground(3_300, 500));
    let scene = Some(SceneId(1));
    Handoff { view_counter, scene, since_ms: 1, ..handed_over(state, epoch, tick) }
}

/// Whether the neighbour's messages are accepted: the region waits for them, and an entity handed
/// over lives here.
fn accepts_the_neighbour(region: &mut Region, epoch: Epoch) -> bool {
    let mut fx = Vec::new();
    let now = region.current_tick().next().max(TICK);
    let fenced = region.counts().fenced;
    region.tick(now, &mut fx);
    let id = EntityId(77);
    region.handle(Input::Handoff(Box::new(handoff(epoch, Tick(now.0 - 1), id, 0))), &mut fx);
    region.handle(ghosts(now, epoch), &mut fx);
    (1..40).for_each(|n| tick(region, now.0 + n, &mut fx));
    let lives = region.find(id).is_some_and(|found| !found.ghost);
    lives && region.counts().fenced == fenced
}

/// Messages with an impossible epoch or tick.
fn lies() -> Vec<(&'static str, Input)> {
    let border = |change: fn(&mut BorderBatch)| {
        let Input::Border(mut batch) = ghosts(TICK, EPOCH) else { unreachable!("ghosts") };
        change(&mut batch);
        Input::Border(batch)
    };
    let lent = |change: fn(&mut Handoff)| {
        let mut lent = handoff(EPOCH, TICK, EntityId(78), 0);
        change(&mut lent);
        Input::Handoff(Box::new(lent))
    };
    vec![
        ("a border's epoch", border(|b| b.epoch = Epoch(u64::MAX))),
        ("a lineage", border(|b| (b.epoch, b.lineage) = (Epoch(u64::MAX), Epoch(u64::MAX)))),
        ("a lineage after its epoch", border(|b| b.lineage = Epoch(b.epoch.0 + 1))),
        ("a border's tick", border(|b| b.tick = Tick(u64::MAX))),
        ("a tick that is far away", border(|b| b.tick = Tick(TICK.0 + (1 << 40)))),
        ("a handoff's region", lent(|h| h.from_epoch = Epoch(u64::MAX))),
        ("a handoff's epoch", lent(|h| (h.epoch, h.state.id) = (Epoch(u64::MAX), EntityId(77)))),
        ("a handoff's tick", lent(|h| (h.tick, h.state.id) = (Tick(u64::MAX), EntityId(77)))),
        (
            "a peer's epoch",
            lent(|h| {
                h.peers.push(PeerState {
                    id: EntityId(42),
                    my_yes: 1,
                    their_yes: 1,
                    seen: 1,
                    shown: true,
                    sent: Tick(u64::MAX),
                    epoch: Epoch(u64::MAX),
                    ..PeerState::default()
                });
            }),
        ),
    ]
}

#[test]
fn an_impossible_epoch_or_tick_does_not_block_later_messages() {
    for (what, lie) in lies() {
        let mut region = settled(Moves::Trusted);
        assert!(region.check_plausible(&lie).is_err(), "{what}");
        region.handle(lie, &mut Vec::new());
        assert_eq!(region.counts().implausible, 1, "{what}");
        assert!(accepts_the_neighbour(&mut region, Epoch(EPOCH.0 + 1)), "{what}");
    }
}

#[test]
fn a_refusal_names_the_value_and_the_limit() {
    let region = settled(Moves::Trusted);
    let (_, lie) = lies().swap_remove(0);
    let why = region.check_plausible(&lie).expect_err("a lie");
    let most = Epoch(EPOCH.0 + (1 << 40));
    assert_eq!(why, Implausible::RegionEpoch { region: THERE, found: Epoch(u64::MAX), most });
    assert_eq!(
        why.to_string(),
        format!("region 1 sends epoch {}; at most {most} is plausible", u64::MAX)
    );
}

/// A region that has just started does not know the tick, and finds out.
#[test]
fn messages_of_far_ticks_before_the_first_tick_are_dropped() {
    let (mut region, mut fx) = (region(Moves::Trusted), Vec::new());
    let far = Tick(1 << 61);
    region.handle(ghosts(far, EPOCH), &mut fx);
    let lent = handoff(EPOCH, far, EntityId(79), 0);
    region.handle(Input::Handoff(Box::new(lent)), &mut fx);
    assert_eq!(region.counts().implausible, 0);
    assert!(accepts_the_neighbour(&mut region, EPOCH));
    assert!(
        region.find(EntityId(79)).is_some_and(|found| !found.ghost),
        "the entity never arrives"
    );
}
