//! A region with too much input, with duplicate input, and with input that makes no sense.

use purview::scene::properties::Properties;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::alone::{handoffs, ordered};
use crate::support::commands::order_of;
use crate::support::session::neighbours_in;
use crate::support::small_scene;
use crate::support::whose;
use crate::support::world::World;
use purview::scene::messages::{
    Bond, Destination, Effect, EntityAction, Input, Notice, Order, Spawn,
};
use purview::scene::{
    EntityId, Kind, Plane, Pos, RangeSet, RegionId, SceneId, SceneSpec, Seq, Tick, Visibility,
};
use purview::wire::{EncodedBatch, MAX_SERVER_FRAME};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

fn scene(width_cm: i32, visibility: Visibility) -> SceneSpec {
    SceneSpec { visibility, view_cap: 1_000, ..small_scene((width_cm / 3_200, 1), 3_200, 400) }
}

fn alone() -> World {
    World::new(scene(3_200, Visibility::All), 1)
}

fn npc(id: u64, appearance: usize) -> Spawn {
    Spawn {
        properties: Properties::with_appearance(&vec![7; appearance]).unwrap(),
        ..Spawn::new(EntityId(id), Kind(1), Pos::ground(100, 100))
    }
}

/// Counts log lines.
#[derive(Clone, Default)]
struct Lines(Arc<AtomicU64>);

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if *event.metadata().level() <= Level::WARN {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn repeated_refusals_are_logged_once_a_second() {
    let (lines, mut w) = (Lines::default(), alone());
    tracing::subscriber::with_default(lines.clone(), || {
        // Two seconds.
        for _ in 0..20 {
            for id in 1..=50 {
                let far = Spawn { pos: Pos::ground(-1, -1), ..npc(id, 1) };
                w.regions[0].handle(Input::Enter(Box::new(far)), &mut Vec::new());
            }
            tick(&mut w);
        }
    });
    // Other tests of this process may have logged the same line.
    let lines = lines.0.load(Ordering::Relaxed);
    assert!(lines <= 3, "{lines} lines for 1,000 messages");
}

/// Ticks the only region; returns bytes, enters, leaves and actions per frame.
fn tick(w: &mut World) -> Vec<(usize, u32, u32, u32)> {
    w.tick = w.tick.next();
    let mut fx = Vec::new();
    w.regions[0].tick(w.tick, &mut fx);
    let mut frames = Vec::new();
    for effect in fx {
        let Effect::Frames(batch) = effect else { continue };
        let mut encoded = EncodedBatch::default();
        encoded.replace(batch);
        for (i, s) in encoded.batch().sessions.iter().enumerate() {
            let mut bytes = Vec::new();
            encoded.write_frame(i, true, &mut bytes);
            assert!(bytes.len() < MAX_SERVER_FRAME, "a frame of {} bytes", bytes.len());
            frames.push((bytes.len(), s.enters, s.leaves, s.acts));
        }
    }
    frames
}

#[test]
fn thousands_of_enters_are_spread_over_several_ticks() {
    let mut w = alone();
    w.join(Plane(0), Pos::ground(100, 100), RangeSet::FULL);
    (0..20_000).for_each(|i| w.tell(RegionId(0), Input::Enter(Box::new(npc(i + 100, 256)))));
    let enters: Vec<u32> = (0..40).map(|_| tick(&mut w)[0].1).collect();
    assert_eq!(enters.iter().sum::<u32>(), 20_000);
    assert_eq!(enters[39], 0);
    (0..20_000).for_each(|i| w.tell(RegionId(0), Input::Leave(EntityId(i + 100))));
    let leaves: Vec<u32> = (0..4).map(|_| tick(&mut w)[0].2).collect();
    assert_eq!(leaves, [10_000, 10_000, 0, 0]);
}

#[test]
fn thousands_of_actions_in_a_tick_fill_a_frame_and_the_rest_is_counted() {
    let mut w = alone();
    w.join(Plane(0), Pos::ground(100, 100), RangeSet::FULL);
    w.tell(RegionId(0), Input::Enter(Box::new(npc(100, 0))));
    tick(&mut w);
    let order = Order::Act(EntityAction::new(vec![1; 1_024]));
    let act = order_of(EntityId(100), order);
    (0..3_000).for_each(|_| w.tell(RegionId(0), act.clone()));
    let told = tick(&mut w)[0].3;
    assert!(told > 100);
    assert_eq!(w.regions[0].counts().acts_dropped, u64::from(3_000 - told));
}

#[test]
fn refused_inputs_of_a_held_client_take_bounded_memory() {
    let mut w = alone();
    let s = w.join(Plane(0), Pos::ground(100, 100), RangeSet::FULL);
    w.step();
    let id = w.clients[&s].entity;
    w.tell(RegionId(0), Input::Hold { id, session: s });
    (0..1_000).for_each(|_| w.order(s, Order::Move(Pos::ground(-1, 0))));
    w.step();
    w.tell(RegionId(0), Input::Release { id, session: s });
    w.step();
    assert_eq!((w.clients[&s].refused, w.clients[&s].ack), (256, Seq(256)));
}

#[test]
fn orders_to_positions_off_the_map_change_nothing() {
    let mut w = alone();
    let id = EntityId(100);
    w.tell(RegionId(0), Input::Enter(Box::new(npc(100, 0))));
    w.step();
    let far = Pos { x: i32::MIN, y: i32::MAX, z: i32::MAX };
    let teleport = |plane, pos| Destination { scene: SceneId(0), region: RegionId(0), plane, pos };
    for order in [
        Order::Move(far),
        Order::Move(Pos::ground(3_200, 0)),
        Order::Teleport(teleport(Plane(0), far)),
        Order::Teleport(teleport(Plane::LIMBO, Pos::ground(0, 0))),
        Order::Act(EntityAction::new(vec![0; 1_025])),
    ] {
        w.tell(RegionId(0), order_of(id, order));
        w.step();
        assert_eq!(w.regions[0].find(id).unwrap().pos, Pos::ground(100, 100));
    }
    assert_eq!(w.regions[0].within(Plane(0), Kind(1), far, i32::MAX).len(), 0);
    let edge = Pos::ground(3_199, 3_199);
    w.tell(RegionId(0), order_of(id, Order::Move(edge)));
    w.step();
    assert_eq!(w.regions[0].in_patch(Plane(0), Kind(1), edge).len(), 1);
}

#[test]
fn a_duplicate_enter_has_no_effect_and_keeps_the_session() {
    let mut w = alone();
    let s = w.join(Plane(0), Pos::ground(100, 100), RangeSet::FULL);
    w.step();
    let subject = whose(EntityId(1));
    let player = Spawn { session: Some(s), subject, kind: Kind::PLAYER, ..npc(1, 0) };
    w.tell(RegionId(0), Input::Enter(Box::new(player)));
    w.tick = w.tick.next();
    let mut fx = Vec::new();
    w.regions[0].tick(w.tick, &mut fx);
    assert!(!fx.iter().any(|e| matches!(e, Effect::Notice(_, Notice::Refused(_)))));
    assert_eq!(w.regions[0].counts().reals, 1);
}

#[test]
fn messages_for_an_entity_that_is_entering_wait_for_it() {
    let mut w = alone();
    let mut players = Vec::new();
    for _ in 0..2 {
        let s = w.join(Plane(0), Pos::ground(100, 100), RangeSet::FULL);
        let id = w.clients[&s].entity;
        w.tell(RegionId(0), Input::Bonds { id, bonds: vec![Bond { class: 1, group: 5 }] });
        let order = Order::Move(Pos::ground(500, 500));
        w.tell(RegionId(0), order_of(id, order));
        players.push(id);
    }
    w.steps(2);
    for id in players {
        assert_eq!(w.regions[0].find(id).unwrap().pos, Pos::ground(500, 500));
    }
}

#[test]
fn inputs_between_two_scenes_have_no_effect() {
    let mut w = alone();
    let s = w.join(Plane(0), Pos::ground(100, 100), RangeSet::FULL);
    w.step();
    let pos = Pos::ground(9_999, 9_999);
    let to = Destination { scene: SceneId(1), region: RegionId(77), plane: Plane(0), pos };
    let id = w.clients[&s].entity;
    let mut fx = Vec::new();
    for (seq, order) in [(1, Order::Teleport(to)), (2, Order::Move(Pos::ground(5, 5)))] {
        w.regions[0].handle(ordered(id, s, seq, order), &mut fx);
    }
    w.regions[0].tick(Tick(w.tick.0 + 1), &mut fx);
    let handed = handoffs(&fx).into_iter().map(|(to, h)| (to, h.state.pos, h.last_applied));
    assert_eq!(handed.collect::<Vec<_>>(), [(RegionId(77), pos, Seq(1))]);
}

#[test]
fn empty_planes_leave_nothing_behind() {
    let mut w = alone();
    let s = w.join(Plane(0), Pos::ground(100, 100), RangeSet::FULL);
    let t = w.join(Plane(0), Pos::ground(200, 100), RangeSet::FULL);
    w.step();
    for plane in 1..300 {
        w.teleport(s, Plane(plane), Pos::ground(100, 100));
        w.step();
        assert_eq!(w.links().len(), 0);
        w.teleport(t, Plane(plane), Pos::ground(300, 100));
        w.step();
        assert_eq!(w.links().len(), 1);
    }
}

/// A region that stood still for long resumes. Its neighbour has dropped its ghosts and requests
/// all of them, although it missed no batch.
#[test]
fn a_region_that_stood_still_is_mirrored_again() {
    let (mut w, ..) = neighbours_in(World::new(scene(6_400, Visibility::Patches), 1));
    w.stopped = Some(RegionId(1));
    w.steps(45);
    w.stopped = None;
    w.steps(6);
    assert_eq!(w.links().len(), 1);
}

/// An entity that leaves right after its handoff is gone for all regions, whichever owner's message
/// arrives first.
#[test]
fn an_entity_that_leaves_right_after_a_handoff_leaves_no_ghost() {
    for (from, to) in [(3_100, 3_400), (6_500, 6_250)] {
        let mut w = World::new(scene(9_600, Visibility::Patches), 1);
        let s = w.join(Plane(0), Pos::ground(from, 500), RangeSet::FULL);
        w.steps(2);
        let id = w.clients[&s].entity;
        w.walk(s, Pos::ground(to, 500));
        w.step();
        assert_eq!(w.handoffs, 1);
        w.leave(s);
        w.steps(2);
        assert!(w.regions.iter().all(|r| r.find(id).is_none()), "a ghost of {id} stays");
    }
}
