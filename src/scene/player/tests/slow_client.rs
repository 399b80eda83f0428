//! Clients that read slowly, and frames that are lost.

use super::*;

#[test]
fn a_half_full_queue_holds_and_a_quarter_releases() {
    let mut b = Bench::in_world();
    b.queued = 3;
    assert_eq!(b.frame(&frame(12, 1, 0, &[], &[])), ["forward"]);
    b.queued = 4;
    assert_eq!(b.frame(&frame(13, 1, 0, &[], &[])), ["forward", "3: hold"]);
    b.queued = 5;
    assert_eq!(b.frame(&frame(14, 1, 0, &[], &[])), ["forward"]);
    b.queued = 3;
    assert_eq!(b.after(250), NOTHING);
    b.queued = 2;
    assert_eq!(b.after(250), ["3: release"]);
}

#[test]
fn a_resync_that_does_not_come_is_asked_for_again() {
    let mut b = Bench::in_world();
    let patience = config().resend_ms;
    assert_eq!(b.input(PlayerInput::Lost), ["3: resync"]);
    assert_eq!(b.frame(&frame(12, 1, 0, &[5], &[])), NOTHING);
    assert_eq!(b.after(patience - 1), NOTHING);
    assert_eq!(b.after(1), ["3: resync"]);
    let mut anew = frame(13, 1, 0, &[5], &[]);
    anew.sessions[0].resync = true;
    assert_eq!(b.frame(&anew), ["forward"]);
    assert_eq!(b.after(patience), NOTHING);
}

#[test]
fn a_lost_frame_leads_to_a_resync_before_which_no_frame_is_passed_on() {
    let mut b = Bench::in_world();
    b.queued = 8;
    assert_eq!(b.frame(&frame(12, 1, 0, &[5], &[])), ["3: resync", "3: hold"]);
    b.queued = 0;
    assert_eq!(b.after(250), ["3: release"]);
    assert_eq!(b.frame(&frame(13, 1, 0, &[6], &[])), NOTHING);
    let mut anew = frame(14, 1, 0, &[5, 6], &[]);
    anew.sessions[0].resync = true;
    assert_eq!(b.frame(&anew), ["forward"]);
    assert_eq!(b.frame(&frame(15, 1, 0, &[], &[])), ["forward"]);
}

#[test]
fn a_resync_goes_on_from_the_last_frame_that_was_passed_on() {
    let resync = |tick, after| {
        let mut anew = frame(tick, 1, 0, &[5], &[]);
        (anew.sessions[0].resync, anew.sessions[0].after) = (true, Tick(after));
        anew
    };
    let mut b = Bench::in_world();
    assert_eq!(b.frame(&frame(12, 1, 0, &[5], &[])), ["forward"]);
    assert_eq!(b.input(PlayerInput::Lost), ["3: resync"]);
    for after in [0, 11, 13] {
        assert_eq!(b.frame(&resync(15, after)), NOTHING, "{after}: no answer");
    }
    assert_eq!(b.frame(&resync(16, 12)), ["forward"]);
    assert_eq!(b.frame(&frame(17, 1, 0, &[], &[])), ["forward"]);
    assert_eq!(b.frame(&resync(18, 12)), ["3: resync"], "it tells again what was told since");
    assert_eq!(b.frame(&resync(19, 17)), ["forward"]);
    // The region knows by itself that its frame of tick 20 was lost, or only that the client sees something else.
    assert_eq!(b.frame(&resync(21, 19)), ["forward"]);
    assert_eq!(b.frame(&resync(23, 22)), ["forward"]);
    assert_eq!(b.frame(&resync(24, 0)), ["forward"]);
}

#[test]
fn a_silent_region_that_no_one_holds_is_told_to_go_on() {
    let mut b = Bench::in_world();
    b.frame(&frame(13, 1, 0, &[], &[]));
    assert_eq!(b.after(2_900), [""; 0]);
    // A word to hold, passed on by a region where the player was before, came after the one to go on.
    assert_eq!(b.after(200), ["3: release"]);
    assert_eq!(b.after(2_900), [""; 0]);
    assert_eq!(b.after(200), ["3: release"]);
    b.frame(&frame(75, 1, 0, &[], &[]));
    assert_eq!(b.after(2_900), [""; 0]);
}

#[test]
fn a_release_that_may_have_been_lost_in_a_handoff_is_told_to_the_new_region() {
    let mut b = Bench::in_world();
    b.queued = 4;
    b.frame(&frame(12, 1, 0, &[], &[]));
    b.queued = 0;
    assert_eq!(b.after(250), ["3: release"]);
    assert_eq!(b.notice(route(NEXT, 2, 0, false)), ["4: release"]);
    assert_eq!(b.frame(&frame(13, 2, 0, &[], &[])), ["forward"]);
    assert_eq!(b.notice(route(FIRST, 3, 0, false)), NOTHING);
}

#[test]
fn a_client_that_does_not_read_is_closed() {
    let mut b = Bench::in_world();
    b.queued = 6;
    b.frame(&frame(12, 1, 0, &[], &[]));
    assert_eq!(b.after(9_999), NOTHING);
    assert_eq!(b.after(1), ["close Slow", "3: leave"]);
    let mut b = Bench::in_world();
    assert_eq!(b.input(PlayerInput::Choked), ["close Slow", "3: leave"]);
}
