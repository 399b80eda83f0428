//! Scenes that judge moves: trajectories determine positions, and a wrong or missing trajectory is found.

use purview::scene::movement::{Flags, Vector};
use purview::scene::{EntityId, Plane, Pos, Seq, Tick, Visibility};
use purview::wire::client::Joined;
use purview::wire::{
    EntityTrajectory, Form, Frame, Going, JoinRules, MoveRules, NextTrajectory, OwnMove,
    TrajectoryUpdate,
};

use super::server::{joined, play_two, rules};
use crate::oracle::{Event, Findings, Sent};

const TICK_MS: u64 = 100;
const START: Pos = Pos { x: 1_000, y: 0, z: 1_000 };

fn judged() -> JoinRules {
    let movement = MoveRules {
        tick_ms: TICK_MS as u32,
        tile_cm: 100,
        top_speed: 1_000,
        command_ms: 500,
        grace_ms: 300,
        leash_ms: 1_000,
        climb: None,
        blocks: Vec::new(),
    };
    JoinRules { movement: Some(movement), ..rules(Visibility::All, 60) }
}

fn going(start: Pos, tick: u64, vx_mm_s: i32) -> Going {
    let form = Form::Vector(Vector { vx_mm_s, ..Vector::stand(start) });
    Going { start_ms: tick * TICK_MS, lasts_ms: None, form }
}

fn own(trajectory: Going) -> OwnMove {
    OwnMove { correction: 0, trajectory, speed: 500, flags: Flags::NONE, grants: vec![] }
}

fn joins(id: EntityId) -> Joined {
    let own = Some(own(going(START, 10, 0)));
    Joined { own, ..joined(id, 10, (Plane(0), START), judged()) }
}

fn whole(trajectory: Going) -> TrajectoryUpdate {
    let (id, facing) = (EntityId(1), Default::default());
    TrajectoryUpdate::Whole(EntityTrajectory { id, trajectory, facing })
}

/// Player 1 walks east for 20 ticks and turns back; player 2 stands and sees it. `spoil` may change what player 2
/// receives.
fn play(spoil: impl Fn(&mut Frame)) -> Findings {
    // The server applies a move command one tick after it was sent.
    let east = going(START, 11, 5_000);
    let turn = Pos { x: START.x + 1_000, ..START };
    let west = going(turn, 31, -5_000);
    play_two(joins, 10..50, |oracle, walker, viewer| {
        let tick = walker.tick.0;
        for me in &mut viewer.enters {
            me.trajectory = Some(going(START, 10, 0));
        }
        for (seq, at, trajectory) in [(1, 12, east), (2, 32, west)] {
            if at == tick {
                let (seq, what) = (Seq(seq), Sent::Other);
                oracle.event(Event::Sent { client: 1, seq, what });
                walker.own = Some(own(trajectory));
                viewer.trajectories = vec![whole(trajectory)];
            }
        }
        walker.ack = Seq(u32::from(tick >= 12) + u32::from(tick >= 32));
        spoil(viewer);
    })
}

#[test]
fn trajectories_told_once_give_the_positions_of_all_players() {
    let found = play(|_| {});
    assert_eq!(found.violations.total(), 0, "{:?}", found.examples);
    // An enter on either side and two changes of trajectory.
    assert_eq!((found.updates.delivered, found.updates.expected), (4, 4));
}

/// The player's turn in tick 32, told as what follows from the walk before.
fn turn(dx: i32) -> TrajectoryUpdate {
    TrajectoryUpdate::Next(NextTrajectory {
        id: EntityId(1),
        ago_ms: TICK_MS as u32,
        dx,
        dy: 0,
        dz: 0,
        vx: -5_000,
        vz: 0,
        lasts_ms: None,
        facing: Default::default(),
    })
}

fn play_turn(dx: i32) -> Findings {
    play(|frame| {
        let told = frame.trajectories.iter_mut().filter(|_| frame.tick == Tick(32));
        told.for_each(|told| *told = turn(dx));
    })
}

#[test]
fn a_trajectory_may_follow_from_the_one_before() {
    let found = play_turn(0);
    assert_eq!(found.violations.total(), 0, "{:?}", found.examples);
    assert_eq!((found.updates.delivered, found.updates.expected), (4, 4));
    let found = play_turn(40);
    assert!(found.violations.stale > 0, "{:?}", found.examples);
}

#[test]
fn a_missing_trajectory_is_found() {
    let found = play(|frame| frame.trajectories.retain(|_| frame.tick != Tick(32)));
    assert_eq!(found.violations.stale, 1, "{:?}", found.examples);
    assert!(found.updates.delivered < found.updates.expected);
}

#[test]
fn a_different_trajectory_is_found() {
    for wrong in [going(START, 11, 4_900), going(START, 10, 5_000)] {
        let found = play(|frame| {
            let told = frame.trajectories.iter_mut().filter(|_| frame.tick == Tick(12));
            told.for_each(|told| *told = whole(wrong));
        });
        assert!(found.violations.stale > 0, "{wrong:?}: {:?}", found.examples);
    }
}
