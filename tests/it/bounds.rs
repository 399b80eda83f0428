//! Overfilled queues of a region: each keeps its bound, refusals are counted, and messages that
//! must arrive do. `docs/contributing/architecture.md` lists all queues.

use std::sync::Arc;

use purview::scene::messages::{Effect, Input, Order};
use purview::scene::views::{ViewMsg, ViewMsgBody};
use purview::scene::{
    EntityId, Epoch, Pos, Region, RegionId, Scene, SceneId, SessionId, Tick, Visibility,
};

use crate::support::alone::{enter, handoffs, ordered};
use crate::support::trial;

const PLAYER: EntityId = EntityId(42);
const SESSION: SessionId = SessionId(5);
/// Capacity of the queues of client inputs and of view messages.
const ROOM: u64 = 65_536;

/// A region in the middle of a tick with a player in it, waiting for its eastern neighbour.
fn waiting() -> Region {
    let scene = Scene::new(SceneId(0), trial::scene(Visibility::Patches, 4), 100, RegionId(0));
    let mut region = Region::new(Arc::new(scene.expect("a legal scene")), RegionId(0)).unwrap();
    let mut fx = Vec::new();
    region.handle(enter(PLAYER, SESSION, Pos::ground(3_100, 500)), &mut fx);
    region.tick(Tick(1), &mut fx);
    assert!(!region.is_closed(), "its neighbours are late");
    region
}

fn walk(seq: u32, x: i32) -> Input {
    ordered(PLAYER, SESSION, seq, Order::Move(Pos::ground(x, 500)))
}

#[test]
fn client_inputs_beyond_the_bound_are_refused_and_can_be_sent_again() {
    let (mut region, mut fx) = (waiting(), Vec::new());
    for n in 0..ROOM + 10 {
        region.handle(walk(n as u32 + 2, 3_000), &mut fx);
    }
    assert_eq!(region.counts().inputs_refused, 10);
    // Messages from other senders have the same room of their own.
    for _ in 0..ROOM + 3 {
        region.handle(Input::Hold { id: PLAYER, session: SESSION }, &mut fx);
    }
    assert_eq!(region.counts().inputs_refused, 13);
    region.handle(walk(1, 3_050), &mut fx);
    assert_eq!(region.counts().inputs_refused, 14);
    region.tick(Tick(11), &mut fx);
    region.handle(walk(1, 3_050), &mut fx);
    region.tick(Tick(21), &mut fx);
    assert_eq!(region.counts().inputs_refused, 14);
    assert_eq!(region.find(PLAYER).map(|found| found.pos.x), Some(3_050), "sent again and applied");
}

#[test]
fn view_messages_to_a_region_whose_tick_does_not_end_are_bounded() {
    let (mut region, mut fx) = (waiting(), Vec::new());
    let (from_region, from_epoch, to, say) = (RegionId(1), Epoch(1), PLAYER, ViewMsgBody::Yes(1));
    for n in 0..ROOM + 7 {
        let from = EntityId(1_000 + n);
        region.handle(Input::View(ViewMsg { from, from_region, from_epoch, to, say }), &mut fx);
    }
    assert_eq!(region.counts().view_messages_lost, 7);
    region.tick(Tick(11), &mut fx);
    let answers =
        fx.iter().filter(|effect| matches!(effect, Effect::View(..) | Effect::BorderRound(..)));
    assert!(answers.count() > 0, "queued messages are answered");
}

#[test]
fn no_entity_is_handed_to_a_held_back_region_until_it_is_released() {
    let (mut region, mut fx) = (waiting(), Vec::new());
    region.hold_back(RegionId(1), true);
    region.handle(walk(1, 3_350), &mut fx);
    let mut handed = |region: &mut Region, ticks: std::ops::Range<u64>| {
        ticks.for_each(|tick| region.tick(Tick(tick * 11), &mut fx));
        handoffs(&fx.split_off(0)).len()
    };
    assert_eq!(handed(&mut region, 1..6), 0);
    assert!(region.find(PLAYER).is_some_and(|found| !found.ghost), "the entity stays");
    region.hold_back(RegionId(1), false);
    assert_eq!(handed(&mut region, 6..9), 1);
}
