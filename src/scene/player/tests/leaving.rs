//! Sessions whose players leave.

use super::*;

#[test]
fn a_client_that_goes_away_is_removed_and_gives_its_places_back() {
    let mut b = Bench::in_world();
    b.say(teleport(1, 5));
    assert_eq!(b.input(PlayerInput::Gone), ["3: leave"]);
    assert_eq!(b.player.state(), State::Parting);
    assert_eq!(b.notice(route_to(NEXT, 2, 1, true, 5)), ["give back 1", "4: leave"]);
    assert_eq!(b.notice(left(14)), ["give back 5", "done"]);
}

#[test]
fn a_leave_that_finds_the_mailbox_full_is_sent_again() {
    let mut b = Bench::in_world();
    b.input(PlayerInput::Gone);
    let leave = Input::Disconnected { id: EntityId(70), session: SessionId(7), ms: 0 };
    assert_eq!(b.input(PlayerInput::Undelivered(leave)), NOTHING);
    assert_eq!(b.after(250), ["3: leave"]);
    assert_eq!(b.after(250), NOTHING);
    assert_eq!(b.after(1_000), ["3: leave"]);
    assert_eq!(b.after(60_000), ["give back 1", "done"]);
}
