//! Frames that a view accepts, and frames that contradict it.

use purview::scene::movement::Vector;
use purview::wire::client::frame::Acted;
use purview::wire::{
    ChangedProperty, Entered, EnteredProperty, EntityTrajectory, Form, Moved, NextTrajectory,
    TrajectoryUpdate, Turned,
};

use super::*;

fn frame(tick: u64) -> Frame {
    Frame::empty(Tick(tick), Seq(0), Epoch(1))
}

fn enter(id: u64) -> Entered {
    let look = Value::binary(&[7]).unwrap();
    Entered {
        id: EntityId(id),
        kind: Kind::PLAYER,
        x: 1,
        y: 2,
        z: 3,
        facing: Facing::SOUTH,
        properties: vec![EnteredProperty { id: APPEARANCE, version: 1, value: look }],
        trajectory: None,
    }
}

fn moved(id: u64) -> Moved {
    Moved { id: EntityId(id), x: 4, y: 5, z: 6, vx: 0, vz: 0, facing: Facing::WEST }
}

fn turned(id: u64) -> Turned {
    Turned { id: EntityId(id), facing: Facing::NORTH }
}

fn changed(id: u64) -> ChangedProperty {
    let (entity, value) = (EntityId(id), Value::of(&9).unwrap());
    ChangedProperty { entity, id: PropertyId(3), version: 2, value }
}

#[test]
fn turns_and_properties_are_those_of_entities_in_view_or_of_the_player() {
    let own = OwnState { id: Some(EntityId(7)), ..OwnState::default() };
    let mut view = View { own, ..seeing(&[1]) };
    let turns = vec![turned(1), turned(7)];
    let properties = vec![changed(1), changed(7)];
    view.apply(&Frame { turns, properties, ..frame(2) }).unwrap();
    let nine = Value::of(&9).unwrap();
    let seen = view.get(EntityId(1)).unwrap();
    assert_eq!((seen.facing, seen.properties.get(&PropertyId(3))), (Facing::NORTH, Some(&nine)));
    assert_eq!(view.own().facing, Facing::NORTH);
    assert_eq!(view.own().properties, [(PropertyId(3), nine)].into());
    view.apply(&Frame { resync: true, ..frame(3) }).unwrap();
    assert!(view.own().properties.is_empty());
}

fn seeing(ids: &[u64]) -> View {
    let mut view = View::default();
    let enters = ids.iter().map(|&id| enter(id)).collect();
    view.apply(&Frame { enters, ..frame(1) }).unwrap();
    view
}

#[test]
fn enters_moves_and_leaves_are_followed() {
    let mut view = seeing(&[1, 2]);
    view.apply(&Frame {
        leaves: vec![EntityId(1)],
        moves: vec![moved(2)],
        ack: Seq(9),
        epoch: Epoch(3),
        ..frame(2)
    })
    .unwrap();
    let pos = Pos { x: 4, y: 5, z: 6 };
    let properties = [(APPEARANCE, Value::binary(&[7]).unwrap())].into();
    let (kind, facing) = (Kind::PLAYER, Facing::WEST);
    let seen = Seen { kind, pos, trajectory: None, facing, properties };
    assert_eq!(seen.appearance(), Some(&[7][..]));
    assert_eq!(view.iter().collect::<Vec<_>>(), [(EntityId(2), &seen)]);
    assert_eq!((view.tick(), view.ack(), view.epoch()), (Some(Tick(2)), Seq(9), Epoch(3)));
}

#[test]
fn trajectories_go_on_until_a_position_or_another_trajectory_arrives() {
    let mut view = View { tick_ms: 100, tile_cm: 100, ..seeing(&[1, 2]) };
    let going = |vx_mm_s, start_ms| Going {
        start_ms,
        lasts_ms: Some(400),
        form: Form::Vector(Vector { vx_mm_s, ..Vector::stand(Pos::ground(0, 0)) }),
    };
    let entity_trajectory = |id, trajectory| {
        let (id, facing) = (EntityId(id), Facing::NORTH);
        TrajectoryUpdate::Whole(EntityTrajectory { id, trajectory, facing })
    };
    let trajectories = vec![entity_trajectory(1, going(5_000, 200))];
    view.apply(&Frame { trajectories, ..frame(2) }).unwrap();
    let at = |view: &View, id, ms| view.position(EntityId(id), ServerMs(ms)).unwrap().x;
    assert_eq!((at(&view, 1, 200), at(&view, 1, 500), at(&view, 1, 9_000)), (0, 150, 200));
    assert_eq!(at(&view, 2, 500), 1);
    let trajectories = vec![entity_trajectory(1, going(-5_000, 400))];
    view.apply(&Frame { trajectories, ..frame(4) }).unwrap();
    assert_eq!(at(&view, 1, 500), -50);
    view.apply(&Frame { moves: vec![moved(1)], ..frame(5) }).unwrap();
    assert_eq!(at(&view, 1, 9_000), 4);
    let unseen = vec![entity_trajectory(9, going(1, 1))];
    let (tick, id) = (Tick(6), EntityId(9));
    let got = view.apply(&Frame { trajectories: unseen, ..frame(6) });
    assert_eq!(got, Err(ViewError::MoveUnseen(tick, id)));
}

#[test]
fn a_next_trajectory_starts_where_the_one_before_leads() {
    let mut view = View { tick_ms: 100, tile_cm: 100, ..seeing(&[1]) };
    let next = NextTrajectory {
        id: EntityId(1),
        ago_ms: 50,
        dx: 9,
        dy: -1,
        dz: 0,
        vx: 5_000,
        vz: 0,
        lasts_ms: None,
        facing: Facing::NORTH,
    };
    let told =
        |next, tick| Frame { trajectories: vec![TrajectoryUpdate::Next(next)], ..frame(tick) };
    let at = |view: &View, ms| view.position(EntityId(1), ServerMs(ms)).unwrap();
    // The entity stands where it entered.
    view.apply(&told(next, 4)).unwrap();
    assert_eq!(at(&view, 350), Pos { x: 10, y: 1, z: 3 });
    assert_eq!(at(&view, 550), Pos { x: 110, y: 1, z: 3 });
    let turn = NextTrajectory { ago_ms: 0, dx: 0, dy: 0, vx: 0, vz: -2_000, ..next };
    view.apply(&told(NextTrajectory { lasts_ms: Some(300), ..turn }, 5)).unwrap();
    assert_eq!(at(&view, 500), Pos { x: 85, y: 1, z: 3 });
    assert_eq!(at(&view, 9_000), Pos { x: 85, y: 1, z: -57 });
    let (tick, id) = (Tick(6), EntityId(2));
    let got = view.apply(&told(NextTrajectory { id, ..turn }, 6));
    assert_eq!(got, Err(ViewError::MoveUnseen(tick, id)));
}

#[test]
fn a_position_with_a_velocity_goes_on_until_the_next_position() {
    let mut view = View { tick_ms: 100, ..seeing(&[1]) };
    let moves = vec![Moved { vx: 600, vz: -100, ..moved(1) }];
    view.apply(&Frame { moves, ..frame(2) }).unwrap();
    let at = |view: &View, ms| view.position(EntityId(1), ServerMs(ms)).unwrap();
    assert_eq!(at(&view, 200), Pos { x: 4, y: 5, z: 6 });
    assert_eq!(at(&view, 1_200), Pos { x: 604, y: 5, z: -94 });
    view.apply(&Frame { turns: vec![turned(1)], ..frame(4) }).unwrap();
    assert_eq!(view.get(EntityId(1)).unwrap().facing, Facing::NORTH);
    assert_eq!(at(&view, 1_200), Pos { x: 604, y: 5, z: -94 }, "it goes on as before");
    view.apply(&Frame { moves: vec![moved(1)], ..frame(12) }).unwrap();
    assert_eq!(at(&view, 9_000), Pos { x: 4, y: 5, z: 6 });
}

#[test]
fn a_resync_forgets_all_other_entities() {
    let mut view = seeing(&[1, 2]);
    view.apply(&Frame { resync: true, enters: vec![enter(2), enter(3)], ..frame(2) }).unwrap();
    let mut ids: Vec<_> = view.iter().map(|(id, _)| id.0).collect();
    ids.sort();
    assert_eq!(ids, [2, 3]);
}

#[test]
fn a_contradiction_is_named_and_changes_nothing() {
    let (tick, id) = (Tick(2), EntityId(1));
    let unseen = EntityId(5);
    let acted = Acted { id: unseen, payload: vec![].into(), logic: false };
    let twice = vec![EntityId(1), EntityId(1)];
    for (bad, want) in [
        (Frame { enters: vec![enter(1)], ..frame(2) }, ViewError::EnterTwice(tick, id)),
        (
            Frame { enters: vec![enter(5), enter(5)], ..frame(2) },
            ViewError::EnterTwice(tick, unseen),
        ),
        (Frame { leaves: vec![unseen], ..frame(2) }, ViewError::LeaveUnseen(tick, unseen)),
        (Frame { leaves: twice, ..frame(2) }, ViewError::LeaveUnseen(tick, id)),
        (Frame { moves: vec![moved(5)], ..frame(2) }, ViewError::MoveUnseen(tick, unseen)),
        (
            Frame { leaves: vec![id], moves: vec![moved(1)], ..frame(2) },
            ViewError::MoveUnseen(tick, id),
        ),
        (
            Frame { resync: true, moves: vec![moved(1)], ..frame(2) },
            ViewError::MoveUnseen(tick, id),
        ),
        (Frame { acts: vec![acted], ..frame(2) }, ViewError::ActUnseen(tick, unseen)),
        (Frame { turns: vec![turned(5)], ..frame(2) }, ViewError::TurnUnseen(tick, unseen)),
        (Frame { properties: vec![changed(5)], ..frame(2) }, ViewError::ChangeUnseen(tick, unseen)),
        (frame(1), ViewError::TickBack(Tick(1), Tick(1))),
    ] {
        let mut view = seeing(&[1]);
        assert_eq!(view.apply(&bad), Err(want));
        assert_eq!((view.len(), view.tick()), (1, Some(Tick(1))));
    }
}

#[test]
fn an_action_and_a_leave_in_one_tick_are_accepted() {
    let mut view = seeing(&[1]);
    let acts = vec![Acted { id: EntityId(1), payload: vec![1].into(), logic: false }];
    view.apply(&Frame { leaves: vec![EntityId(1)], acts, ..frame(2) }).unwrap();
    assert!(view.is_empty());
}
