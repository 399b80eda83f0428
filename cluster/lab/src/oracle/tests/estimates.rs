//! Scenes that trust positions and tell velocities: what clients extrapolate is judged by the tolerance.

use purview::scene::{EntityId, Plane, Pos, Seq, Tick, Visibility};
use purview::wire::client::Joined;
use purview::wire::{Frame, JoinRules, UpdateRules};

use super::server::{joined, moved, play_two, rules};
use crate::oracle::{Event, Findings, Sent};

const START: Pos = Pos { x: 1_000, y: 0, z: 1_000 };
/// The ticks in which player 1 takes a step of half a metre.
const WALKS: std::ops::Range<u64> = 12..32;

const WALKER: EntityId = EntityId(1);

fn joins(id: EntityId) -> Joined {
    let updates = Some(UpdateRules { tick_ms: 100, error_min_cm: 25, error_share: 0 });
    // One patch, so that the whole walk is in NEAR.
    let (rates, patch_cm) = ([5, 10, 40], [100_000; 2]);
    let rules = JoinRules { updates, rates, patch_cm, ..rules(Visibility::All, 60) };
    joined(id, 10, (Plane(0), START), rules)
}

/// Player 1 walks east and stops; player 2 stands and is told the start and the stop. `spoil` may change what player
/// 2 receives.
fn play(spoil: impl Fn(&mut Frame)) -> Findings {
    let (mut pos, mut seq) = (START, Seq(0));
    play_two(joins, 10..70, |oracle, walker, viewer| {
        let tick = walker.tick.0;
        if WALKS.contains(&tick) {
            (pos.x, seq) = (pos.x + 50, seq.next());
            oracle.event(Event::Sent { client: 1, seq, what: Sent::Move(pos) });
        }
        walker.ack = seq;
        match tick {
            12 => viewer.moves = vec![moved(WALKER, pos, 500)],
            32 => viewer.moves = vec![moved(WALKER, pos, 0)],
            _ => {}
        }
        spoil(viewer);
    })
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
fn a_stop_that_is_not_told_or_told_a_little_wrong_and_a_wrong_velocity_are_stale() {
    let is_stale = |spoil: &dyn Fn(&mut Frame)| {
        let findings = play(spoil);
        assert!(findings.violations.stale > 0, "{findings:?}");
    };
    is_stale(&|frame| frame.moves.retain(|m| m.vx != 0));
    is_stale(&|frame| frame.moves.iter_mut().filter(|m| m.vx == 0).for_each(|m| m.x += 20));
    for vx in [0, 300, -500] {
        is_stale(&|frame| frame.moves.iter_mut().filter(|m| m.vx != 0).for_each(|m| m.vx = vx));
    }
}

/// Player 2 is told in tick 20 that player 1 is so far from its true position, and how it goes on. In tick `mended` it
/// is told where player 1 is.
fn play_off((dx, dz): (i32, i32), vx: i32, mended: u64) -> Findings {
    play(|frame| {
        let tick = frame.tick.0;
        let x = START.x + 50 * (tick as i32 - 11);
        let at = |x, dz| Pos { x, z: START.z + dz, ..START };
        match tick {
            20 => frame.moves = vec![moved(WALKER, at(x + dx, dz), vx)],
            _ if tick == mended => frame.moves = vec![moved(WALKER, at(x, 0), 500)],
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
fn a_velocity_in_a_scene_that_tells_none_is_a_contradiction() {
    let joins = |id| {
        let mut joined = joins(id);
        joined.rules.updates = None;
        joined
    };
    let findings = play_two(joins, 10..14, |_, walker, viewer| {
        if walker.tick == Tick(12) {
            viewer.moves = vec![moved(WALKER, START, 500)];
        }
    });
    assert_eq!(findings.violations.lost, 1);
}
