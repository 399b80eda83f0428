//! Each rule by itself: what it refuses, what the reason says, and what just passes.

use super::*;

fn correction(number: u32, x: i32, z: i32) -> Correction {
    Correction { number, motion: Move::stand(at(x, z)), lasts_ms: 0 }
}

#[test]
fn an_honest_walk_is_followed_to_the_centimetre() {
    let mut s = Scene::new(at(150, 150), &[]);
    assert_eq!(s.walk(100, straight(150, 150, 300, 400)), Ok(Accepted::Changed));
    assert_eq!(s.pos(600), (300, 350));
    assert_eq!(s.say(600, 600, Go::On), Ok(Accepted::Kept));
    assert_eq!(s.pos(1_100), (450, 550));
    assert_eq!(s.walk(1_100, path(450, 550, "77")), Ok(Accepted::Changed));
    assert_eq!((s.pos(1_300), s.pos(9_000)), ((550, 550), (650, 550)));
    assert_eq!(s.walk(2_000, Vector::stand(at(650, 550))), Ok(Accepted::Changed));
    assert_eq!(s.walk(3_000, Vector::stand(at(650, 550))), Ok(Accepted::Kept));
}

#[test]
fn a_late_command_counts_from_its_client_time() {
    let mut s = Scene::new(at(150, 150), &[]);
    s.walk(100, straight(150, 150, 500, 0)).unwrap();
    // At 500 the client turned round; the server has shown the entity walking on until 700.
    assert_eq!(s.pos(700), (450, 150));
    let back = straight(350, 150, -500, 0);
    assert_eq!(s.say(700, 500, Go::Walk(back.into())), Ok(Accepted::Changed));
    // By the client's clock, except for the 256th part of 600 ms by which the estimate of the first
    // command's delay has decayed.
    assert_eq!(s.pos(700), (251, 150));
    let trajectory = s.mover.trajectory();
    assert_eq!((trajectory.start, trajectory.motion), (ServerMs(502), back.into()));
}

#[test]
fn an_entity_stops_after_half_a_second_and_grace_without_a_command() {
    let mut s = Scene::new(at(150, 150), &[]);
    s.walk(100, straight(150, 150, 500, 0)).unwrap();
    let mut halted = Vec::new();
    for now in (100..2_000).step_by(100) {
        let on = Footing { tiles: &s.map, plane: PLANE, rules: &s.rules };
        let advanced = s.mover.advance(ServerMs(now), &on);
        if advanced.halted {
            halted.push((now, advanced.pos.x));
        }
    }
    assert_eq!(halted, [(1_000, 550)]);
    let trajectory = s.mover.trajectory();
    assert_eq!((trajectory.lasts_ms, trajectory.position(ServerMs(9_000))), (800, at(550, 150)));
    // A late command moves the entity to where its client is; one from after the end does not.
    assert_eq!(s.say(1_900, 600, Go::On), Ok(Accepted::Changed));
    assert_eq!(s.mover.trajectory().lasts_ms, 1_300);
    assert_eq!(s.say(9_000, 9_000, Go::On), Ok(Accepted::Changed));
    assert_eq!(
        (s.pos(9_000), s.mover.trajectory().motion),
        ((800, 150), Move::stand(at(800, 150)))
    );
}

#[test]
fn a_walk_that_lapsed_is_not_caught_up() {
    // 900 ms of way, of which a command covers 800.
    let mut s = Scene::new(at(0, 150), &[]);
    s.walk(0, path(0, 150, "7777")).unwrap();
    assert_eq!(s.say(1_000, 1_000, Go::On), Ok(Accepted::Changed));
    assert_eq!(s.pos(9_000), (400, 150));
}

#[test]
fn a_move_starts_where_the_last_one_has_come_to() {
    let mut s = Scene::new(at(150, 150), &[]);
    s.walk(100, straight(150, 150, 500, 0)).unwrap();
    // At 600 it was at 400. Up to 25 cm off pass: 50 ms at top speed.
    let off = Go::Walk(Vector::stand(at(426, 150)).into());
    let refused = s.say(700, 600, off).unwrap_err();
    let why = Reason::Displaced { found_cm: 26, allowed_cm: 25, at: at(400, 150) };
    assert_eq!(refused, RefusedCommand { seq: Seq(2), why, correction: correction(1, 450, 150) });
    assert_eq!((s.pos(700), s.pos(9_000)), ((450, 150), (450, 150)));
    assert!(s.walk(1_000, Vector::stand(at(450, 175))).is_ok());
}

#[test]
fn small_start_differences_add_up_to_a_debt() {
    let mut s = Scene::new(at(1_000, 150), &[]);
    // 10 cm ten times a second gain nothing beyond 50 cm and what 0.25 % of top speed pays: 1.25
    // cm/s.
    let mut x = 1_000;
    let mut refused = None;
    for i in 1..100 {
        x += 10;
        if let Err(e) = s.walk(i * 100, Vector::stand(at(x, 150))) {
            refused = Some((i, e.why));
            break;
        }
    }
    assert_eq!(refused, Some((6, Reason::Strayed { found_cm: 60, allowed_cm: 50 })));
    // Time pays: 40 s for 50 cm.
    assert!(s.walk(40_000, Vector::stand(at(1_075, 150))).is_ok());
}

#[test]
fn a_claimed_start_behind_a_wall_is_refused() {
    let mut s = Scene::new(at(299, 150), &[(3, 1)]);
    assert_eq!(s.no_walk(100, Vector::stand(at(310, 150))), Reason::Blocked { tile: (3, 1) });
}

#[test]
fn an_entity_with_a_flag_does_not_move() {
    for (flags, named) in
        [(Flags::ROOTED, "rooted"), (Flags::DEAD, "dead"), (Flags::CUTSCENE, "cutscene")]
    {
        let mut s = Scene::new(at(150, 150), &[]);
        s.walk(100, straight(150, 150, 500, 0)).unwrap();
        assert_eq!(s.flag(300, flags), Some(correction(1, 250, 150)));
        // A command sent before its client knew is dropped without another correction.
        let go = Go::Walk(straight(300, 150, 0, 500).into());
        assert_eq!(s.say_by(400, 400, go, 0), Ok(Accepted::Dropped));
        assert_eq!(s.pos(1_000), (250, 150));
        // Standing is no move.
        assert!(s.walk(900, Vector::stand(at(250, 150))).is_ok());
        let why = s.no_walk(1_000, straight(250, 150, 0, 500));
        assert_eq!(why, Reason::MayNotMove { flags });
        assert_eq!(why.to_string(), format!("the entity may not move: {named}"));
        assert_eq!(s.flag(2_000, Flags::NONE), None);
        assert!(s.walk(2_000, straight(250, 150, 0, 500)).is_ok());
    }
}

#[test]
fn a_path_through_a_blocked_tile_is_refused() {
    let mut s = Scene::new(at(150, 150), &[(4, 1)]);
    assert_eq!(s.no_walk(100, path(150, 150, "7774")), Reason::Blocked { tile: (4, 1) });
    assert!(s.walk(200, path(150, 150, "77404")).is_ok());
}

#[test]
fn no_step_squeezes_between_two_blocked_tiles() {
    let mut s = Scene::new(at(150, 150), &[(2, 1), (1, 2)]);
    assert_eq!(s.no_walk(100, path(150, 150, "0")), Reason::Squeezed { tile: (2, 2) });
    // One blocked side does not hinder an entity that passes exactly through the corner.
    let mut s = Scene::new(at(150, 150), &[(2, 1)]);
    assert!(s.walk(100, path(150, 150, "0")).is_ok());
}

#[test]
fn a_diagonal_step_from_off_the_middle_crosses_a_tile_that_must_be_free() {
    // From (180, 110) to (250, 250) the way crosses (2, 1), and from (110, 180) it crosses (1, 2).
    for (x, z, crossed, free) in [(180, 110, (2, 1), (1, 2)), (110, 180, (1, 2), (2, 1))] {
        let mut s = Scene::new(at(x, z), &[crossed]);
        assert_eq!(s.no_walk(100, path(x, z, "0")), Reason::Blocked { tile: crossed });
        let mut s = Scene::new(at(x, z), &[free]);
        assert!(s.walk(100, path(x, z, "0")).is_ok());
    }
}

#[test]
fn a_vector_ends_at_the_wall_and_no_move_starts_beyond_it() {
    let mut s = Scene::new(at(150, 150), &[(4, 1)]);
    s.walk(100, straight(150, 150, 500, 0)).unwrap();
    assert_eq!(s.mover.trajectory().lasts_ms, 499);
    assert_eq!(s.pos(2_000), (399, 150));
    assert_eq!(s.no_walk(700, Vector::stand(at(450, 150))), Reason::Blocked { tile: (4, 1) });
    // A vector that starts in front of the wall and leads into it stands.
    s.walk(1_000, straight(399, 150, 500, 0)).unwrap();
    assert_eq!(s.pos(1_500), (399, 150));
}

#[test]
fn a_wall_within_reach_only_later_ends_a_vector_too() {
    let mut s = Scene::new(at(150, 150), &[(9, 1)]);
    s.walk(100, straight(150, 150, 500, 0)).unwrap();
    assert_eq!(s.mover.trajectory().lasts_ms, u32::MAX);
    assert_eq!(s.say(600, 600, Go::On), Ok(Accepted::Kept));
    // 750 cm take 1,500 ms: now within the reach of a command.
    assert_eq!(s.say(1_100, 1_100, Go::On), Ok(Accepted::Changed));
    assert_eq!((s.mover.trajectory().lasts_ms, s.pos(3_000)), (1_499, (899, 150)));
}

#[test]
fn a_vector_does_not_squeeze_between_blocked_tiles() {
    let mut s = Scene::new(at(150, 150), &[(2, 1), (1, 2)]);
    s.walk(100, straight(150, 150, 300, 300)).unwrap();
    assert_eq!(s.pos(700), (199, 199));
    assert_eq!(s.no_walk(700, Vector::stand(at(215, 215))), Reason::Squeezed { tile: (2, 2) });
}

#[test]
fn no_move_leaves_the_bounds() {
    let mut s = Scene::new(at(50, 150), &[]);
    s.walk(100, straight(50, 150, -500, 0)).unwrap();
    assert_eq!(s.pos(2_000), (0, 150));
    let why = s.no_walk(300, Vector::stand(at(-10, 150)));
    assert_eq!(why, Reason::OutOfBounds { at: at(-10, 150) });
    let high = Pos { y: 1_000_001, ..at(0, 150) };
    assert_eq!(s.no_walk(400, Vector::stand(high)), Reason::OutOfBounds { at: high });
    let mut s = Scene::new(at(3_950, 150), &[]);
    assert_eq!(s.no_walk(100, path(3_950, 150, "7")), Reason::OutOfBounds { at: at(4_050, 150) });
    let why = s.no_walk(200, Vector::stand(at(3_950, -1)));
    assert!(matches!(why, Reason::Displaced { .. }), "{why}");
    let mut s = Scene::new(at(3_990, 3_999), &[]);
    let why = s.no_walk(100, Vector::stand(at(3_990, 4_000)));
    assert_eq!(why, Reason::OutOfBounds { at: at(3_990, 4_000) });
}

#[test]
fn a_climb_or_descent_that_is_too_steep_is_refused() {
    // A slope of 40 cm a tile to the east and of 120 cm to the south.
    let mut s = Scene::new(at(150, 150), &[]);
    s.map.heights = Some(|tile| 40 * tile.x + 120 * tile.z);
    s.rules.climb = Some(Climb { up_cm: 50, down_cm: 110 });
    let steep = |tile, rise_cm| Reason::TooSteep { tile, rise_cm, up_cm: 50, down_cm: 110 };
    assert_eq!(s.no_walk(100, path(150, 150, "4")), steep((1, 2), 120));
    assert_eq!(s.no_walk(200, path(150, 150, "6")), steep((1, 0), -120));
    assert!(s.walk(300, path(150, 150, "77")).is_ok());
    // Height is the ground's, whatever the client says.
    let on = s.on();
    assert_eq!(s.mover.position(ServerMs(1_000), &on), Pos { x: 350, y: 240, z: 150 });
    assert_eq!(s.mover.position(ServerMs(300), &on), Pos { x: 150, y: 160, z: 150 });
    s.walk(1_000, straight(350, 150, 0, 400)).unwrap();
    assert_eq!(s.pos(2_000), (350, 199));
    assert_eq!(s.no_walk(1_300, Vector::stand(at(350, 210))), steep((3, 2), 120));
}

#[test]
fn a_move_above_the_speed_limit_is_refused() {
    let mut s = Scene::new(at(150, 150), &[]);
    let why = s.no_walk(100, straight(150, 150, 500, 30));
    assert_eq!(why, Reason::TooFast { found_cm_s: 501, allowed_cm_s: 500 });
    let fast = Path::new(at(150, 150), "7".parse().unwrap(), 525, 100);
    assert_eq!(s.no_walk(200, fast), Reason::TooFast { found_cm_s: 525, allowed_cm_s: 500 });
    assert!(s.walk(300, straight(150, 150, 300, 400)).is_ok());
}

#[test]
fn a_granted_speed_is_usable_once_and_for_its_duration() {
    let mut s = Scene::new(at(150, 150), &[]);
    s.mover.grant(ServerMs(0), 2_000, Some(300)).unwrap();
    let dash = Vector { lasts_ms: Some(300), ..straight(150, 150, 2_000, 0) };
    assert!(s.walk(100, dash).is_ok());
    assert_eq!(s.pos(2_000), (750, 150));
    assert!(s.walk(400, straight(750, 150, 500, 0)).is_ok());
    let why = s.no_walk(600, straight(850, 150, 2_000, 0));
    assert_eq!(why, Reason::TooFast { found_cm_s: 2_000, allowed_cm_s: 500 });
}

#[test]
fn a_granted_speed_used_for_too_long_is_neither_shown_nor_accepted() {
    let mut s = Scene::new(at(150, 150), &[]);
    s.mover.grant(ServerMs(0), 2_000, Some(300)).unwrap();
    s.walk(100, straight(150, 150, 2_000, 0)).unwrap();
    assert_eq!(s.pos(900), (750, 150));
    let why = s.no_walk(500, straight(950, 150, 500, 0));
    assert_eq!(why, Reason::Overused { found_cm_s: 2_000, over_ms: 100 });
    // The entity stands where the grant ended, and the grant is used up.
    assert_eq!(s.pos(9_000), (750, 150));
    let why = s.no_walk(9_000, straight(750, 150, 2_000, 0));
    assert_eq!(why, Reason::TooFast { found_cm_s: 2_000, allowed_cm_s: 500 });
}

#[test]
fn a_revoked_mount_speed_ends_once_its_client_has_heard() {
    let mut s = Scene::new(at(150, 150), &[]);
    let mount = s.mover.grant(ServerMs(0), 900, None).unwrap();
    s.walk(100, straight(150, 150, 900, 0)).unwrap();
    s.say(600, 600, Go::On).unwrap();
    assert!(s.mover.revoke(ServerMs(600), mount));
    s.say(1_100, 1_100, Go::On).unwrap();
    s.say(1_600, 1_600, Go::On).unwrap();
    s.say(2_100, 2_100, Go::On).unwrap();
    // 1.1 s of walking after the first command that came after the end.
    assert_eq!(s.why(2_600, 2_600, Go::On), Reason::Overused { found_cm_s: 900, over_ms: 400 });
}

#[test]
fn a_client_clock_that_goes_back_is_refused() {
    let mut s = Scene::new(at(150, 150), &[]);
    s.walk(1_000, straight(150, 150, 500, 0)).unwrap();
    assert_eq!(s.why(1_100, 999, Go::On), Reason::ClockBack { by_ms: 1 });
}

#[test]
fn a_client_clock_that_runs_ahead_is_a_debt() {
    let mut s = Scene::new(at(150, 150), &[]);
    s.walk(0, straight(150, 150, 100, 0)).unwrap();
    // The client's clock at twice the server's: a second is claimed in half a second.
    let mut refused = None;
    for i in 1..20 {
        if let Err(e) = s.say(i * 250, i * 500, Go::On) {
            refused = Some((i, e.why));
            break;
        }
    }
    let why = Reason::ClockAhead { ahead_ms: 1_249, allowed_ms: 1_100 };
    assert_eq!(refused, Some((5, why)));
}

#[test]
fn time_spent_standing_is_not_charged() {
    let mut s = Scene::new(at(150, 150), &[]);
    s.walk(0, Vector::stand(at(150, 150))).unwrap();
    assert!(s.walk(100, straight(150, 150, 100, 0)).is_ok());
    assert!(s.say(600, 600, Go::Walk(Vector::stand(at(200, 150)).into())).is_ok());
    // Ten seconds ahead, but it stood.
    assert!(s.say(700, 10_600, Go::Walk(straight(200, 150, 100, 0).into())).is_ok());
    assert_eq!(s.pos(800), (210, 150));
    // No clock advances by more than a minute beyond the server's.
    let why = s.why(800, 80_000, Go::On);
    assert_eq!(why, Reason::ClockAhead { ahead_ms: 69_300, allowed_ms: 60_000 });
    let why = s.why(900, u64::MAX, Go::On);
    assert!(matches!(why, Reason::ClockAhead { .. }), "{why}");
}

#[test]
fn a_command_that_answers_an_unknown_correction_is_refused() {
    let mut s = Scene::new(at(150, 150), &[]);
    let refused = s.say_by(100, 100, Go::On, 1).unwrap_err();
    assert_eq!(refused.why, Reason::UnknownCorrection { found: 1, last: 0 });
}

#[test]
fn commands_in_flight_before_a_correction_cause_no_other() {
    let mut s = Scene::new(at(150, 150), &[]);
    s.walk(100, straight(150, 150, 500, 0)).unwrap();
    let refused = s.say(500, 500, Go::Walk(straight(900, 150, 500, 0).into())).unwrap_err();
    assert_eq!((refused.seq, refused.correction), (Seq(2), correction(1, 350, 150)));
    for now in [600, 700, 800] {
        let go = Go::Walk(straight(900 + now as i32, 150, 500, 0).into());
        assert_eq!(s.say_by(now, now, go, 0), Ok(Accepted::Dropped));
    }
    assert_eq!(s.mover.correction(), 1);
    assert!(s.walk(900, straight(350, 150, 500, 0)).is_ok());
}

#[test]
fn a_duplicate_input_number_changes_nothing() {
    let mut s = Scene::new(at(150, 150), &[]);
    s.walk(100, straight(150, 150, 500, 0)).unwrap();
    s.walk(200, straight(200, 150, 0, 500)).unwrap();
    let before = s.mover;
    s.seq = 0;
    let far = straight(2_000, 150, 500, 0);
    assert_eq!(s.walk(300, far), Ok(Accepted::Dropped));
    assert_eq!(s.walk(300, far), Ok(Accepted::Dropped));
    assert_eq!(s.mover, before);
}

#[test]
fn commands_are_refused_until_a_push_is_over() {
    let mut s = Scene::new(at(150, 150), &[(6, 1)]);
    s.walk(100, straight(150, 150, 500, 0)).unwrap();
    let push = Vector { lasts_ms: Some(400), ..straight(250, 150, 1_000, 0) };
    let told = s.correct(300, push);
    // The wall at 600 ends the push.
    assert_eq!(told, Correction { number: 1, motion: push.into(), lasts_ms: 349 });
    assert_eq!((s.pos(400), s.pos(2_000)), ((350, 150), (599, 150)));
    assert_eq!(s.no_walk(500, straight(599, 150, -500, 0)), Reason::Pushed { left_ms: 149 });
    let mut s = Scene::new(at(150, 150), &[]);
    s.correct(300, Vector { start: at(150, 150), ..push });
    assert!(s.walk(700, straight(550, 150, 0, 500)).is_ok());
}

#[test]
fn a_closing_door_stops_entities_on_their_way() {
    let mut s = Scene::new(at(150, 150), &[]);
    s.walk(100, path(150, 150, "777777")).unwrap();
    s.say(300, 300, Go::On).unwrap();
    s.map.blocked = vec![(5, 1)];
    let on = Footing { tiles: &s.map, plane: PLANE, rules: &s.rules };
    assert!(s.mover.refresh(ServerMs(400), &on));
    assert!(!s.mover.refresh(ServerMs(400), &on));
    assert_eq!(s.pos(5_000), (450, 150));
    s.say(700, 700, Go::On).unwrap();
    assert_eq!(s.no_walk(1_300, Vector::stand(at(750, 150))), Reason::Blocked { tile: (5, 1) });
    // An entity in the doorway can get out.
    let mut s = Scene::new(at(150, 150), &[(1, 1)]);
    assert!(s.walk(100, path(150, 150, "77")).is_ok());
    assert!(s.walk(800, straight(350, 150, 0, 500)).is_ok());
}

#[test]
fn a_refusal_does_not_grant_the_displayed_lead() {
    // The client's clock stood still while it walked: its walks are shown further at once.
    let mut s = Scene::new(at(150, 150), &[]);
    s.walk(0, Vector::stand(at(150, 150))).unwrap();
    let mut gained = Vec::new();
    let mut now = 5_000;
    for _ in 0..4 {
        let (x, z) = s.pos(now);
        s.say(now, 0, Go::Walk(straight(x, z, 500, 0).into())).unwrap();
        // Then a command that is refused, so as to stand at the displayed position.
        let refused = s.say(now, 0, Go::Walk(straight(0, 0, 9_999, 0).into())).unwrap_err();
        gained.push(refused.correction.motion.start().x - x);
        now += 100;
    }
    // The allowance once, 550 cm, and what time pays: 100 ms each time.
    assert_eq!(gained, [400, 200, 50, 50]);
}

#[test]
fn every_reason_has_its_own_short_name() {
    let mut names = Reason::NAMES.to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Reason::NAMES.len());
    assert_eq!(Reason::UnknownCorrection { found: 1, last: 0 }.name(), "unknown_correction");
    assert_eq!(Reason::blocked(Tile { x: 1, z: 2 }).name(), "blocked");
}

#[test]
fn a_mover_round_trips_whole_and_is_small() {
    let mut s = Scene::new(at(150, 150), &[(9, 1)]);
    s.mover.grant(ServerMs(0), 900, Some(300)).unwrap();
    s.walk(100, path(150, 150, "777")).unwrap();
    let bytes = rmp_serde::to_vec(&s.mover).unwrap();
    assert_eq!(rmp_serde::from_slice::<Mover>(&bytes).unwrap(), s.mover);
    assert!(size_of::<Mover>() <= 448, "{} bytes", size_of::<Mover>());
}

#[test]
fn going_on_at_a_wall_is_refused_with_its_reason() {
    let mut s = Scene::new(Pos::ground(50, 50), &[(2, 0)]);
    let v = Vector { vx_mm_s: 5_000, ..Vector::stand(Pos::ground(50, 50)) };
    s.say(0, 0, Go::Walk(v.into())).unwrap();
    // The walk comes to the wall after 299 ms, and no command is due by then.
    s.say(250, 250, Go::On).unwrap();
    let refused = s.say(500, 500, Go::On).unwrap_err();
    assert_eq!(refused.why, Reason::Blocked { tile: (2, 0) });
    assert_eq!(refused.correction.motion, Move::stand(Pos::ground(199, 50)));
}
