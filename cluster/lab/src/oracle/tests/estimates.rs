//! Scenes that trust positions and tell velocities: what clients extrapolate is judged by the tolerance.

use purview::scene::{EntityId, Facing, Plane, Pos, Seq, Visibility};
use purview::wire::{Frame, JoinRules, Moved, UpdateRules};

use super::server::{empty_frame, entered, joined, rules};
use crate::oracle::{Event, Findings, Options, Oracle, Sent};

const START: Pos = Pos { x: 1_000, y: 0, z: 1_000 };
/// The ticks in which player 1 takes a step of half a metre.
const WALKS: std::ops::Range<u64> = 12..32;

fn joins(id: u64) -> Event {
    let updates = Some(UpdateRules { tick_ms: 100, error_min_cm: 25, error_share: 0 });
    // One patch, so that the whole walk is in NEAR.
    let (rates, patch_cm) = ([5, 10, 40], [100_000; 2]);
    let rules = JoinRules { updates, rates, patch_cm, ..rules(Visibility::All, 60) };
    let joined = joined(EntityId(id), 10, (Plane(0), START), rules);
    Event::Joined(id as u32, Box::new(joined))
}

fn moved(pos: Pos, vx: i32) -> Moved {
    let facing = Facing::EAST;
    Moved { id: EntityId(1), x: pos.x, y: pos.y, z: pos.z, vx, vz: 0, facing }
}

/// Player 1 walks east and stops; player 2 stands and is told the start and the stop. `spoil` may change what player
/// 2 receives.
fn play(spoil: impl Fn(&mut Frame)) -> Findings {
    let mut oracle = Oracle::new(Options::default());
    for client in [1, 2] {
        oracle.event(Event::Joining(client));
        oracle.event(joins(client.into()));
    }
    let (mut pos, mut seq) = (START, Seq(0));
    for tick in 10..70 {
        let (mut walker, mut viewer) = (empty_frame(tick, seq), empty_frame(tick, Seq(0)));
        if tick == 10 {
            walker.enters = vec![entered(EntityId(2), START)];
            viewer.enters = vec![entered(EntityId(1), START)];
        }
        if WALKS.contains(&tick) {
            (pos.x, seq) = (pos.x + 50, seq.next());
            oracle.event(Event::Sent { client: 1, seq, what: Sent::Move(pos) });
        }
        walker.ack = seq;
        match tick {
            12 => viewer.moves = vec![moved(pos, 500)],
            32 => viewer.moves = vec![moved(pos, 0)],
            _ => {}
        }
        spoil(&mut viewer);
        oracle.event(Event::Frame(1, Box::new(walker)));
        oracle.event(Event::Frame(2, Box::new(viewer)));
    }
    oracle.finish()
}

#[test]
fn a_walk_that_is_foreseen_is_no_violation_and_has_an_error_only_where_it_turns() {
    let findings = play(|_| {});
    assert_eq!(findings.violations.total(), 0, "{:?}", findings.examples);
    // All but the first step and the stop are shown where they are.
    assert_eq!((findings.errors.quantile(0, 0.9), findings.errors.quantile(0, 1.0)), (0, 50));
    assert_eq!(findings.errors.count(0), 2 * 59);
}

#[test]
fn a_stop_that_is_never_told_is_stale() {
    let findings = play(|frame| frame.moves.retain(|m| m.vx != 0));
    assert!(findings.violations.stale > 0, "{findings:?}");
}

#[test]
fn a_wrong_velocity_is_stale() {
    for vx in [0, 300, -500] {
        let findings =
            play(|frame| frame.moves.iter_mut().filter(|m| m.vx != 0).for_each(|m| m.vx = vx));
        assert!(findings.violations.stale > 0, "{vx}: {findings:?}");
    }
}

/// Player 2 is told in tick 20 that player 1 is so far from its true position, and how it goes on. In tick `mended` it
/// is told where player 1 is.
fn play_off((dx, dz): (i32, i32), vx: i32, mended: u64) -> Findings {
    play(|frame| {
        let tick = frame.tick.0;
        let x = START.x + 50 * (tick as i32 - 11);
        match tick {
            20 => frame.moves = vec![moved(Pos { x: x + dx, z: START.z + dz, ..START }, vx)],
            _ if tick == mended => frame.moves = vec![moved(Pos { x, ..START }, 500)],
            _ => {}
        }
    })
}

#[test]
fn a_step_ahead_on_its_way_is_no_violation_for_a_tick() {
    for off in [(30, 0), (50, 0), (62, 0), (50, 10)] {
        let findings = play_off(off, 500, 21);
        assert_eq!(findings.violations.total(), 0, "{off:?}: {:?}", findings.examples);
    }
}

#[test]
fn a_step_ahead_for_longer_is_stale() {
    for mended in [23, 26, 99] {
        let findings = play_off((50, 0), 500, mended);
        assert!(findings.violations.stale > 0, "{mended}: {findings:?}");
    }
}

#[test]
fn farther_ahead_than_a_step_or_beside_the_way_is_stale_at_once() {
    for (off, vx) in
        [((100, 0), 500), ((50, 40), 500), ((0, 50), 500), ((50, 0), 0), ((50, 0), -500)]
    {
        let findings = play_off(off, vx, 21);
        assert_eq!(findings.violations.stale, 1, "{off:?}, {vx}: {findings:?}");
    }
}

#[test]
fn an_end_that_is_told_a_little_wrong_is_stale_at_last() {
    let findings =
        play(|frame| frame.moves.iter_mut().filter(|m| m.vx == 0).for_each(|m| m.x += 20));
    assert!(findings.violations.stale > 0, "{findings:?}");
}

#[test]
fn a_velocity_in_a_scene_that_tells_none_is_a_contradiction() {
    let mut oracle = Oracle::new(Options::default());
    for client in [1, 2] {
        oracle.event(Event::Joining(client));
        let Event::Joined(client, mut joined) = joins(client.into()) else { unreachable!() };
        joined.rules.updates = None;
        oracle.event(Event::Joined(client, joined));
    }
    for tick in 10..14 {
        let (mut walker, mut viewer) = (empty_frame(tick, Seq(0)), empty_frame(tick, Seq(0)));
        if tick == 10 {
            walker.enters = vec![entered(EntityId(2), START)];
            viewer.enters = vec![entered(EntityId(1), START)];
        }
        viewer.moves = if tick == 12 { vec![moved(START, 500)] } else { Vec::new() };
        oracle.event(Event::Frame(1, Box::new(walker)));
        oracle.event(Event::Frame(2, Box::new(viewer)));
    }
    assert_eq!(oracle.finish().violations.lost, 1);
}
