//! Connections that break, and clients that come back.

use super::*;
use crate::scene::messages::{Resume, ResumeFor, Resumed};
use crate::scene::mutants::{Mutant, is_noticed_by};

const FAR: RegionId = RegionId(9);

fn with_grace_period() -> PlayerConfig {
    PlayerConfig { grace_period_ms: 10_000, resend_ms: 1_000, resume_ms: 5_000, ..config() }
}

fn back() -> ClientRequest {
    let (ask, ask_then) = (vec![FIRST, NEXT], vec![FAR]);
    ClientRequest::Resume(Ok(Comeback {
        id: EntityId(40),
        acked: Seq(4),
        ask,
        ask_then,
        all: true,
    }))
}

fn asked(region: RegionId) -> String {
    asked_since(1_000, region)
}

fn asked_since(since_ms: u64, asked: RegionId) -> String {
    let (id, session, acked, region) = (EntityId(40), SessionId(7), Seq(4), asked);
    let (subject, purpose) = (ADA, Default::default());
    let resume = Resume { id, session, subject, acked, asked, since_ms, purpose };
    format!("{region}: {:?}", Input::Resume(resume))
}

fn found(epoch: u64, last: u32) -> Notice {
    Notice::Resumed(Box::new(Resumed {
        subject: ADA,
        scene: SCENE,
        region: NEXT,
        epoch: Epoch(epoch),
        last_applied: Seq(last),
        tick: Tick(20),
        plane: Plane(1),
        pos: Pos::ground(5, 6),
        since_ms: 5,
        ..Resumed::default()
    }))
}

fn greeted() -> Bench {
    let mut b = Bench::with(with_grace_period());
    assert_eq!(b.say(hello()), ["welcome"]);
    b
}

#[test]
fn a_client_that_comes_back_goes_on_with_the_numbers_of_its_player() {
    let mut b = greeted();
    assert_eq!(b.say(back()), [asked(FIRST), asked(NEXT)]);
    assert_eq!(b.say(step(5)), ["refused 5: move is not legal before the joined message"]);
    assert_eq!(b.notice(found(8, 6)), ["take 1", "joined plane 1 tick 20"]);
    assert_eq!((b.player.state(), b.player.id()), (State::InWorld, EntityId(40)));
    // Told twice.
    assert_eq!(b.notice(found(8, 6)), [""; 0]);
    assert_eq!(b.say(step(6)), ["refused 6: the next input must be number 7"]);
    assert_eq!(b.say(step(7)), ["4: move 7"]);
}

#[test]
fn a_region_that_does_not_know_the_player_is_asked_once_and_then_all_others_are() {
    let mut b = asking();
    assert_eq!(b.notice(Notice::Nowhere { asked: FIRST }), [""; 0]);
    // Who has said nothing may be down: the others are asked, too.
    assert_eq!(b.after(1_000), [asked(NEXT), asked(FAR)]);
    b.notice(Notice::Nowhere { asked: FAR });
    let gone = "refused: there is no such player any more: join anew";
    assert_eq!(b.notice(Notice::Nowhere { asked: NEXT }), [gone]);
    assert_eq!((b.player.state(), b.player.id()), (State::Greeted, EntityId::NONE));
    // What it is told late changes nothing, and it may join.
    assert_eq!(b.notice(found(8, 6)), [""; 0]);
    assert_eq!(b.say(arrival(0)), ["3: enter plane 0"]);
}

#[test]
fn a_player_that_is_not_found_in_time_may_be_asked_for_again() {
    let mut b = asking();
    let late = "refused: the player was not found in time: try again, or join anew";
    assert_eq!(b.after(5_000), [late]);
    assert_eq!(b.say(back()), [asked_since(6_000, FIRST), asked_since(6_000, NEXT)]);
}

/// A client that has asked for its player.
fn asking() -> Bench {
    let mut b = greeted();
    b.say(back());
    b
}

fn back_in_world() -> Bench {
    let mut b = asking();
    b.notice(found(8, 6));
    b
}

fn disconnected(region: RegionId, ms: u32) -> String {
    let (id, session) = (EntityId(40), SessionId(7));
    format!("{region}: {:?}", Input::Disconnected { id, session, ms })
}

#[test]
fn a_connection_that_breaks_leaves_an_absent_player_and_one_that_misbehaves_none() {
    assert_eq!(
        back_in_world().input(PlayerInput::Gone),
        ["give back 1", &disconnected(NEXT, 10_000)]
    );
    let drained = back_in_world().input(PlayerInput::Drain);
    assert_eq!(drained, ["close Elsewhere", "give back 1", &disconnected(NEXT, 10_000), "done"]);
    let rude = back_in_world().say(ClientRequest::TooBig(10));
    assert_eq!(rude, ["close TooBig", "4: leave"]);
    let replaced = back_in_world().notice(Notice::Replaced);
    assert_eq!(replaced, ["close Replaced", "give back 1", "done"]);
}

#[test]
fn a_session_without_its_client_presents_its_player_and_says_anew_that_it_is_absent() {
    let mut b = back_in_world();
    b.input(PlayerInput::Gone);
    b.frame(&frame(21, 8, 6, &[], &[]));
    assert_eq!(b.after(1_000), NOTHING);
    let present = "4: present epoch 8 acked 6 at 5";
    assert_eq!(b.input(PlayerInput::Owner(NEXT, Epoch(3))), [present]);
    // Not to one that does not know the player.
    assert_eq!([b.after(500), b.after(500)], [vec![], vec![present.to_owned()]]);
    const LIFE: u64 = 2 << 20;
    assert_eq!(b.notice(route(NEXT, LIFE + 9, 6, true)), [disconnected(NEXT, 8_000)]);
    assert_eq!(
        b.notice(route(FIRST, LIFE + 10, 6, false)),
        [disconnected(FIRST, 8_000)],
        "handed on"
    );
    // Nobody has a client to show anything to, or that could say anything.
    assert_eq!(b.frame(&frame(22, LIFE + 10, 6, &[5], &[])), NOTHING);
    assert_eq!((b.say(step(7)), b.player.shown()), (Vec::new(), &[][..]));
    // Frames are still made: it was not heard.
    b.after(1_000);
    assert_eq!(b.frame(&frame(23, LIFE + 10, 6, &[], &[])), [disconnected(FIRST, 7_000)]);
    let lost = Input::Disconnected { id: EntityId(40), session: SessionId(7), ms: 7_000 };
    assert_eq!(b.input(PlayerInput::Undelivered(lost)), NOTHING);
    assert_eq!(b.after(500), [disconnected(FIRST, 6_500)]);
    assert_eq!(b.player.state(), State::Disconnected);
}

#[test]
fn a_session_without_its_client_is_over_when_its_player_leaves_or_is_anothers_or_its_gateway_stops()
{
    let over = ["done"];
    let disconnected_session = || {
        let mut b = back_in_world();
        b.input(PlayerInput::Gone);
        b
    };
    assert_eq!(disconnected_session().notice(Notice::Replaced), over);
    assert_eq!(disconnected_session().notice(left(30)), over);
    assert_eq!(
        disconnected_session().input(PlayerInput::Drain),
        [&disconnected(NEXT, 10_000), "done"]
    );
    let mut b = disconnected_session();
    assert_eq!([b.after(9_999), b.after(1)], [vec![], over.map(String::from).to_vec()]);
}

#[test]
fn inputs_that_an_earlier_session_had_under_way_count() {
    let mut b = back_in_world();
    // Number 7 of the session before is applied.
    b.frame(&frame(21, 8, 7, &[], &[]));
    assert_eq!(b.say(step(8)), ["4: move 8"]);
}

#[test]
fn repeated_inputs_that_were_applied_meanwhile_are_passed_over() {
    let mut b = back_in_world();
    b.frame(&frame(21, 8, 9, &[], &[]));
    for _ in 0..2 {
        // Each once, and in order.
        assert_eq!(b.say(step(8)), ["refused 8: the next input must be number 10"]);
    }
    assert_eq!(b.say(step(7)), [""; 0]);
    assert_eq!(b.say(step(7)), ["refused 7: the next input must be number 10"]);
    assert_eq!([b.say(step(8)), b.say(step(9))], [vec![], vec![]] as [Vec<String>; 2]);
    assert_eq!(b.say(step(9)), ["refused 9: the next input must be number 10"]);
    assert_eq!(b.say(step(10)), ["4: move 10"]);
}

#[test]
fn a_search_in_vain_proves_nothing_where_not_all_regions_are_known() {
    let mut b = greeted();
    let ClientRequest::Resume(Ok(known)) = back() else { unreachable!() };
    b.say(ClientRequest::Resume(Ok(Comeback { ask_then: Vec::new(), all: false, ..known })));
    b.notice(Notice::Nowhere { asked: FIRST });
    let told = b.notice(Notice::Nowhere { asked: NEXT });
    assert_eq!(told, [format!("refused: {}", Problem::NotFound)], "it is to ask again");
    assert_eq!(b.player.state(), State::Greeted);
}

#[test]
fn frames_of_a_next_owner_that_came_too_early_are_asked_for_anew() {
    let mut b = asking();
    // Handed on at once, and the next owner is heard before the first one.
    assert_eq!(b.frame(&frame(22, 9, 6, &[1], &[])), NOTHING);
    assert_eq!(b.notice(found(8, 6)), ["take 1", "joined plane 1 tick 20"]);
    let first = frame(21, 8, 6, &[], &[]);
    let anew = FrameBatch {
        sessions: first.sessions.iter().map(|s| SessionFrame { resync: true, ..*s }).collect(),
        ..first
    };
    assert_eq!(b.frame(&anew), ["forward"]);
    assert_eq!(b.notice(route(FIRST, 9, 6, false)), NOTHING);
    let told = b.frame(&frame(23, 9, 6, &[], &[1]));
    assert_eq!(told, ["3: resync"], "it makes no sense without the one before");
}

#[test]
fn a_route_that_comes_before_the_player_is_found_counts_once_it_is() {
    let mut b = asking();
    assert_eq!(b.notice(route(FIRST, 9, 6, false)), NOTHING);
    assert_eq!(b.notice(found(8, 6)), ["take 1", "joined plane 1 tick 20"]);
    assert_eq!(b.say(step(7)), ["3: move 7"], "not to where it was found");
}

#[test]
fn a_player_that_an_owner_before_has_found_is_presented_to_the_next_one() {
    let owner = |from: u64| PlayerInput::Owner(NEXT, Epoch(from));
    let mut b = asking();
    assert_eq!(b.input(owner(9)), NOTHING, "it is not known yet where the player is");
    let told = b.notice(found(8, 6));
    let presented = "4: present epoch 8 acked 6 at 5";
    assert_eq!(told, ["take 1", "joined plane 1 tick 20", presented]);
    assert_eq!(b.say(step(7)), NOTHING, "the next owner does not know it yet");

    let mut b = asking();
    b.input(PlayerInput::Owner(FIRST, Epoch(9)));
    assert_eq!(b.notice(found(8, 6)), ["take 1", "joined plane 1 tick 20"], "it is elsewhere");
}

#[test]
fn these_tests_notice_bugs() {
    let presented = a_player_that_an_owner_before_has_found_is_presented_to_the_next_one;
    assert!(is_noticed_by(Mutant::OwnerPassedOver, presented));
}

const BOB: SubjectHash = SubjectHash::new([2; 16]);

#[test]
fn a_client_that_asks_for_another_subjects_player_is_refused_and_may_join() {
    let refused = "refused: the resume ticket is invalid: its player is another subject's";
    let of_bob = || match found(8, 6) {
        Notice::Resumed(found) => Notice::Resumed(Box::new(Resumed { subject: BOB, ..*found })),
        other => other,
    };
    for answer in [Notice::OtherSubject, of_bob()] {
        let mut b = asking();
        assert_eq!(b.notice(answer), [refused]);
        assert_eq!((b.player.state(), b.player.id()), (State::Greeted, EntityId::NONE));
        assert_eq!(b.player.last_position(100), None, "nothing is known that could be stored");
        assert_eq!(b.say(arrival(0)), ["3: enter plane 0"]);
        // Late news of the other player changes nothing.
        assert_eq!((b.notice(of_bob()), b.player.state()), (Vec::new(), State::Joining));
    }
}

#[test]
fn a_route_of_another_subjects_player_is_never_taken() {
    let mut b = Bench::in_world();
    let route = |subject| match route(NEXT, 5, 0, true) {
        Notice::Route(route) => {
            Notice::Route(RouteNotice { subject, pos: Pos::ground(9, 9), ..route })
        }
        other => other,
    };
    let before = b.player.last_position(100);
    assert_eq!(b.notice(route(BOB)), NOTHING);
    assert_eq!(b.player.last_position(100), before);
    assert_eq!(b.say(step(1)), ["3: move 1"], "the player is where it was");
    assert_ne!(b.notice(route(ADA)), NOTHING);
}

#[test]
fn a_session_that_presents_another_subjects_player_ends_and_asks_for_nothing_more() {
    let mut b = back_in_world();
    b.input(PlayerInput::Owner(NEXT, Epoch(3)));
    let ended = ["close Replaced", "give back 1", "done"];
    assert_eq!(b.notice(Notice::OtherSubject), ended);
    assert_eq!((b.after(60_000), b.player.state()), (Vec::new(), State::Closed));
}

#[test]
fn a_join_whose_subject_has_a_player_that_must_stay_takes_it_over() {
    let stays =
        |id| Notice::Stays { id: EntityId(id), epoch: Epoch(8), until: Tick(90), ms: 7_000 };
    let asked = |region: RegionId, purpose| {
        let (id, session, subject) = (EntityId(40), SessionId(7), ADA);
        let (acked, asked, since_ms) = (Seq(0), region, 1_000);
        let resume = Resume { id, session, subject, acked, asked, since_ms, purpose };
        format!("{region}: {:?}", Input::Resume(resume))
    };
    let mut b = greeted();
    assert_eq!(b.input(PlayerInput::Claiming), NOTHING);
    let ClientRequest::Resume(Ok(holder)) = back() else { unreachable!() };
    let holder = Comeback { acked: Seq(0), ask_then: Vec::new(), ..holder };
    let to_leave = [FIRST, NEXT].map(|region| asked(region, ResumeFor::Leave));
    assert_eq!(b.input(PlayerInput::Evict(holder)), to_leave);
    assert_eq!(b.notice(Notice::Nowhere { asked: FIRST }), NOTHING);
    assert_eq!(b.notice(stays(41)), NOTHING, "another player");
    assert_eq!(b.notice(stays(40)), [asked(NEXT, ResumeFor::Play)]);
    assert_eq!((b.player.state(), b.player.id()), (State::Resuming, EntityId(40)));
    assert_eq!(b.notice(found(8, 6)), ["take 1", "joined plane 1 tick 20"]);
    assert_eq!(b.notice(stays(40)), NOTHING, "it was said before");
    assert_eq!(b.say(step(7)), ["4: move 7"], "the numbers of inputs continue");
}
