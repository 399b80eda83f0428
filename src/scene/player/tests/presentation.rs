//! Sessions whose player's region goes on from a checkpoint.

use super::*;

/// A route of an owner of the third lineage.
const LIFE: u64 = 2 << 20;

#[test]
fn a_session_presents_its_player_to_an_owner_that_knows_less_and_sends_what_was_not_applied() {
    let mut b = Bench::in_world();
    b.say(step(1));
    b.say(step(2));
    b.frame(&frame(12, 1, 1, &[5], &[]));
    let owner = || PlayerInput::Owner(FIRST, Epoch(3));
    assert_eq!(b.input(PlayerInput::Owner(NEXT, Epoch(3))), NOTHING, "it does not live there");
    assert_eq!(b.input(owner()), ["3: present epoch 1 acked 1 at 1"]);
    assert_eq!(b.input(owner()), NOTHING, "no news");
    assert_eq!(b.say(step(3)), NOTHING, "it waits");
    // An owner that is none any more goes on.
    assert_eq!(b.frame(&frame(13, 1, 2, &[6], &[])), NOTHING);
    assert_eq!(b.notice(route(FIRST, 1, 2, false)), NOTHING);
    assert_eq!(
        b.notice(Notice::Left { tick: Tick(13), epoch: Epoch(1), properties: Default::default() }),
        NOTHING
    );
    assert_eq!(b.notice(route(FIRST, LIFE + 1, 1, false)), ["3: move 2", "3: move 3"]);
    let resync = {
        let mut batch = frame(20, LIFE + 1, 3, &[5], &[]);
        batch.sessions[0].resync = true;
        batch
    };
    assert_eq!(b.frame(&frame(19, LIFE + 1, 1, &[5], &[])), NOTHING, "it makes no sense yet");
    assert_eq!(b.frame(&resync), ["forward"]);
    assert_eq!(b.player.shown(), [EntityId(5)]);
}

#[test]
fn a_presentation_that_is_not_heard_is_repeated_and_one_that_was_not_delivered_at_once() {
    let mut b = Bench::in_world();
    b.say(step(1));
    b.frame(&frame(12, 1, 1, &[], &[]));
    let text = ["3: present epoch 1 acked 1 at 1"];
    let (region, owner, epoch) = (FIRST, Epoch(3), Epoch(1));
    assert_eq!(b.notice(Notice::Present { region, owner, epoch }), text);
    assert_eq!(b.after(500), NOTHING);
    assert_eq!(b.after(500), text);
    let mut out = Vec::new();
    b.player.handle(b.now_ms, PlayerInput::Owner(FIRST, Epoch(4)), &mut out);
    let Some(PlayerEffect::ToRegion(_, lost)) = out.pop() else { panic!("{out:?}") };
    assert_eq!(b.input(PlayerInput::Undelivered(lost)), NOTHING);
    assert_eq!(b.after(10), text);
}

#[test]
fn a_region_that_knows_of_less_than_was_acknowledged_is_told() {
    let mut b = Bench::in_world();
    for n in 1..4 {
        b.say(step(n));
    }
    b.frame(&frame(12, 1, 3, &[], &[]));
    let told = b.notice(route(FIRST, LIFE + 1, 1, false));
    assert_eq!(told, [format!("3: present epoch {} acked 3 at 3", LIFE + 1)]);
    assert_eq!(b.notice(route(FIRST, LIFE + 2, 3, false)), NOTHING);
    assert_eq!(b.say(step(4)), ["3: move 4"]);
}

#[test]
fn a_player_that_was_handed_to_a_region_which_died_before_its_session_heard_is_presented_there() {
    let mut b = Bench::in_world();
    let (region, owner) = (NEXT, Epoch(3));
    assert_eq!(b.notice(Notice::Present { region, owner, epoch: Epoch(1) }), NOTHING);
    let told = b.notice(Notice::Present { region, owner: Epoch(4), epoch: Epoch(2) });
    assert_eq!(told, ["4: present epoch 2 acked 0 at 1"]);
}

#[test]
fn a_player_that_was_presented_to_a_region_it_had_left_is_taken_back_from_there() {
    let mut b = Bench::in_world();
    let asked = |region, owner, epoch| Notice::Present { region, owner, epoch };
    assert_eq!(b.notice(asked(FIRST, Epoch(3), Epoch(1))), ["3: present epoch 1 acked 0 at 1"]);
    let told = b.notice(asked(NEXT, Epoch(4), Epoch(2)));
    assert_eq!(told, ["3: elsewhere in 4 epoch 2", "4: present epoch 2 acked 0 at 1"]);
    assert_eq!(b.notice(asked(FIRST, Epoch(3), Epoch(1))), NOTHING, "that is older");
}
