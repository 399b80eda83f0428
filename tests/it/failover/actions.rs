//! The actions of players whose regions die.

use super::{DEAD, later, pair_of_players};
use purview::scene::messages::Input;
use purview::scene::player::PlayerInput;
use purview::scene::{Pos, Seq, SessionId, Tick};

use crate::support::histories::{wave, waves_of};
use crate::support::world::World;

fn act(w: &mut World, session: SessionId, number: u32) {
    w.order(session, wave(number));
    w.step();
}

#[test]
fn a_client_is_told_once_which_actions_a_dead_region_may_have_kept_to_itself() {
    let (mut w, a, b) = pair_of_players();
    (1..=10).for_each(|number| act(&mut w, a, number));
    later(&mut w);
    (11..=14).for_each(|number| act(&mut w, a, number));
    assert_eq!(w.clients[&a].ack, Seq(14));
    w.kill(DEAD, 12);
    w.steps(40);
    assert_eq!(w.clients[&a].unconfirmed, [(Seq(11), Seq(14))], "since the checkpoint");
    act(&mut w, a, 15);
    w.steps(5);
    assert_eq!(w.clients[&a].unconfirmed.len(), 1);
    assert_eq!(w.clients[&b].unconfirmed, []);
    let want: Vec<u32> = (1..=15).collect();
    assert_eq!(waves_of(&w, b), want, "each once, those of the checkpoint too");
}

#[test]
fn nothing_is_told_of_inputs_that_are_no_actions_or_that_the_checkpoint_has() {
    let (mut w, a, _) = pair_of_players();
    act(&mut w, a, 1);
    later(&mut w);
    for i in 1..4 {
        w.walk(a, Pos::ground(3_000 - i * 20, 500));
        w.step();
    }
    w.kill(DEAD, 12);
    w.steps(40);
    assert_eq!((w.clients[&a].ack, w.clients[&a].unconfirmed.len()), (Seq(4), 0));
}

#[test]
fn a_client_that_reads_again_is_told_what_others_did_meanwhile() {
    let (mut w, a, b) = pair_of_players();
    act(&mut w, b, 1);
    let (id, session) = (w.clients[&a].entity, a);
    w.tell(DEAD, Input::Hold { id, session });
    (2..=6).for_each(|number| act(&mut w, b, number));
    assert_eq!(waves_of(&w, a), [1]);
    w.tell(DEAD, Input::Release { id, session });
    act(&mut w, b, 7);
    w.step();
    assert_eq!(waves_of(&w, a), (1..=7).collect::<Vec<_>>());
}

#[test]
fn a_client_whose_frames_were_lost_is_told_once_what_they_told() {
    let (mut w, a, b) = pair_of_players();
    act(&mut w, b, 1);
    w.clients.get_mut(&a).unwrap().loses_frames = true;
    (2..=6).for_each(|number| act(&mut w, b, number));
    w.clients.get_mut(&a).unwrap().loses_frames = false;
    assert_eq!(waves_of(&w, a), [1]);
    let (id, session, told) = (w.clients[&a].entity, a, *w.clients[&a].frames.last().unwrap());
    w.receive(a, PlayerInput::Lost);
    act(&mut w, b, 7);
    w.step();
    let all: Vec<u32> = (1..=7).collect();
    assert_eq!(waves_of(&w, a), all);
    // The question has come by way of another region, too; and nobody knows what the client has missed.
    for (told, question) in [(told, 1), (Tick(0), 0)] {
        w.tell(DEAD, Input::Resync { id, session, told, question });
        w.steps(3);
        assert_eq!(waves_of(&w, a), all, "{told}");
    }
}
