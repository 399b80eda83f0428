//! Queues of a region that somebody overfills: each keeps to its bound, what is refused is counted, and what must arrive
//! does. `docs/architecture.md` lists all of them.

use std::sync::Arc;

use bytes::Bytes;
use purview::scene::messages::{Effect, Input, Order, Spawn};
use purview::scene::views::{Say, ViewMsg};
use purview::scene::{
    EntityId, Epoch, Kind, Plane, Pos, RangeSet, Region, RegionId, Scene, SceneId, Seq, SessionId,
    Tick, Visibility,
};

use crate::support::trial;

const PLAYER: EntityId = EntityId(42);
/// Inputs of clients, letters: as many wait.
const ROOM: u64 = 65_536;

/// A region with a neighbour in the east from whom nothing is heard, in the middle of a tick, with a player in it.
fn waiting() -> Region {
    let scene = Scene::new(SceneId(0), trial::scene(Visibility::Patches, 4), 100, RegionId(0));
    let mut region = Region::new(Arc::new(scene.expect("a legal scene")), RegionId(0)).unwrap();
    let spawn = Spawn {
        id: PLAYER,
        kind: Kind::PLAYER,
        plane: Plane(0),
        pos: Pos::ground(3_100, 500),
        range: RangeSet::FULL,
        look: Bytes::new(),
        session: Some(SessionId(5)),
        bonds: Vec::new(),
    };
    let mut fx = Vec::new();
    region.handle(Input::Enter(Box::new(spawn)), &mut fx);
    region.tick(Tick(1), &mut fx);
    assert!(!region.is_closed(), "its neighbours are late");
    region
}

fn walk(seq: u32, x: i32) -> Input {
    Input::Client { id: PLAYER, seq: Seq(seq), order: Order::Move(Pos::ground(x, 500)) }
}

#[test]
fn inputs_of_clients_that_find_no_room_are_refused_and_can_be_sent_again() {
    let (mut region, mut fx) = (waiting(), Vec::new());
    for n in 0..ROOM + 10 {
        region.handle(walk(n as u32 + 2, 3_000), &mut fx);
    }
    assert_eq!(region.counts().inputs_refused, 10);
    // What others say has as much room again.
    for _ in 0..ROOM + 3 {
        region.handle(Input::Hold(PLAYER), &mut fx);
    }
    assert_eq!(region.counts().inputs_refused, 13);
    region.handle(walk(1, 3_050), &mut fx);
    assert_eq!(region.counts().inputs_refused, 14);
    region.tick(Tick(11), &mut fx);
    region.handle(walk(1, 3_050), &mut fx);
    region.tick(Tick(21), &mut fx);
    assert_eq!(region.counts().inputs_refused, 14);
    assert_eq!(region.find(PLAYER).map(|found| found.pos.x), Some(3_050), "sent again, applied");
}

#[test]
fn letters_to_a_region_whose_tick_does_not_end_are_bounded() {
    let (mut region, mut fx) = (waiting(), Vec::new());
    let (from_region, from_epoch, to, say) = (RegionId(1), Epoch(1), PLAYER, Say::Yes(1));
    for n in 0..ROOM + 7 {
        let from = EntityId(1_000 + n);
        region.handle(Input::View(ViewMsg { from, from_region, from_epoch, to, say }), &mut fx);
    }
    assert_eq!(region.counts().letters_lost, 7);
    region.tick(Tick(11), &mut fx);
    let answers =
        fx.iter().filter(|effect| matches!(effect, Effect::View(..) | Effect::Settle(..)));
    assert!(answers.count() > 0, "those that had room are answered");
}

#[test]
fn nobody_is_handed_to_a_region_that_is_held_back_and_everybody_is_when_it_is_not() {
    let (mut region, mut fx) = (waiting(), Vec::new());
    region.hold_back(RegionId(1), true);
    region.handle(walk(1, 3_350), &mut fx);
    let mut handed = |region: &mut Region, ticks: std::ops::Range<u64>| {
        ticks.for_each(|tick| region.tick(Tick(tick * 11), &mut fx));
        fx.drain(..).filter(|effect| matches!(effect, Effect::Handoff(..))).count()
    };
    assert_eq!(handed(&mut region, 1..6), 0);
    assert!(region.find(PLAYER).is_some_and(|found| !found.ghost), "it stays");
    region.hold_back(RegionId(1), false);
    assert_eq!(handed(&mut region, 6..9), 1);
}
