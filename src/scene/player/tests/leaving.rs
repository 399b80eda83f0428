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

#[test]
fn a_player_that_leaves_is_presented_first_where_its_region_has_died() {
    for goes in [PlayerInput::Gone, PlayerInput::Dismiss(End::Replaced, "a test")] {
        let mut b = Bench::in_world();
        b.input(goes);
        let present = b.input(PlayerInput::Owner(FIRST, Epoch(3)));
        assert_eq!(present, ["3: present epoch 1 acked 0 at 1"]);
        assert_eq!(b.after(250), NOTHING);
        assert_eq!(b.notice(route(FIRST, 3 << 20, 0, false)), ["3: leave"]);
    }
}

fn stays(epoch: u64, ms: u32) -> Notice {
    Notice::Stays { id: EntityId(70), epoch: Epoch(epoch), until: Tick(200), ms }
}

fn disconnected(ms: u32) -> String {
    format!("3: {:?}", Input::Disconnected { id: EntityId(70), session: SessionId(7), ms })
}

#[test]
fn a_client_whose_player_stays_is_told_at_once_and_its_session_lives_as_long() {
    let mut b = Bench::in_world();
    assert_eq!(b.say(ClientRequest::Leave), ["3: leave"]);
    assert_eq!(b.notice(stays(0, 8_000)), NOTHING, "a former owner says so");
    assert_eq!(b.notice(stays(1, 8_000)), ["left tick 200", "close Normal", "give back 1"]);
    assert_eq!(b.player.state(), State::Disconnected);
    assert_eq!(b.after(3_000), NOTHING);
    // The region dies: only the session knows that the player has left.
    let present = b.input(PlayerInput::Owner(FIRST, Epoch(3)));
    assert_eq!(present, ["3: present epoch 1 acked 0 at 1"]);
    assert_eq!(b.notice(route(FIRST, 3 << 20, 0, false)), [disconnected(5_000)]);
    assert_eq!(b.notice(stays(3 << 20, 20_000)), NOTHING, "logic holds it longer");
    assert_eq!([b.after(19_999), b.after(1)], [vec![], vec!["done".to_owned()]]);
}

#[test]
fn a_session_that_is_dismissed_lives_as_long_as_its_player_stays_unless_it_is_kicked() {
    let kicked = Input::Kicked { id: EntityId(70), session: SessionId(7) };
    for was_gone in [false, true] {
        let mut b = Bench::in_world();
        let dismiss = |end| PlayerInput::Dismiss(end, "a test");
        if was_gone {
            b.input(PlayerInput::Gone);
        } else {
            assert_eq!(b.input(dismiss(End::Replaced)), ["close Replaced", "3: leave"]);
        }
        assert_eq!(b.notice(stays(1, 8_000)), ["give back 1"]);
        assert_eq!(b.input(dismiss(End::Replaced)), ["3: leave"]);
        assert_eq!(b.notice(stays(1, 7_000)), NOTHING);
        assert_eq!(b.player.state(), State::Disconnected);
        assert_eq!(b.input(dismiss(End::Kicked)), [format!("3: {kicked:?}")]);
        assert_eq!(b.notice(stays(1, 7_000)), NOTHING, "it was said before");
        assert_eq!((b.player.state(), b.notice(left(30))), (State::Parting, vec!["done".into()]));
    }
}
