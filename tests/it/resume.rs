//! Connections break, and clients resume with other sessions: their players are where they were,
//! every input counts once, and no other client notices. Also while regions hand players over,
//! migrate and die.

use crate::support::alone::{nothing_of, notices_for, recover};
use crate::support::commands::order_of;
use crate::support::histories::{self, Sum};
use crate::support::presented_by;
use crate::support::returning::Break;
use crate::support::seeds;
use crate::support::session::{GRACE_PERIOD_MS, neighbours, resume_of};
use crate::support::trial::{CIRCLE, Trial, scene};
use crate::support::world::World;
use purview::scene::messages::{Effect, FIRST_SESSION, Input, Notice, Order, Presented};
use purview::scene::player::State;
use purview::scene::properties::Properties;
use purview::scene::{
    EntityId, Epoch, Facing, Pos, RegionId, SceneSpec, Seq, SessionId, Tick, Visibility,
};

fn every_seed(spec: &SceneSpec, most: u64, go: impl Fn(&mut Trial)) -> Sum {
    let sum = histories::every_seed("resume", spec, seeds(most), go);
    sum.shows(|s| s.returns > 100 && s.handoffs > 50);
    sum
}

#[test]
fn resumed_clients_have_their_players_and_no_input_is_lost() {
    every_seed(&scene(Visibility::Patches, 100), 20, |t| t.breaks(60, false));
    every_seed(&scene(Visibility::Patches, 3), 10, |t| t.breaks(60, false));
}

#[test]
fn clients_resume_in_migrating_regions() {
    let sum = every_seed(&scene(CIRCLE, 3), 15, |t| {
        t.w.restless = 3;
        t.breaks(60, false);
    });
    sum.shows(|s| s.relocations > 100);
}

#[test]
fn clients_resume_in_restored_regions() {
    let sum = every_seed(&scene(Visibility::Patches, 100), 25, |t| t.breaks(60, true));
    sum.shows(|s| s.recovered > 50);
}

/// Seeds that failed once. 53: of two owners the one restored from an older checkpoint had the
/// newer session. 495: view messages for an unclaimed player went back and forth for ever. 68: a
/// late question of an older session, which has a test of its own. The rest failed because of the
/// test as it was then.
const ONCE_FAILED: [u64; 5] = [53, 68, 162, 495, 637];

#[test]
fn clients_come_back_in_the_histories_that_have_failed_once() {
    let spec = scene(Visibility::Patches, 100);
    let seeds = ONCE_FAILED.into_iter();
    histories::every_seed("resume", &spec, seeds, |t| t.breaks(60, true));
}

// One case each.

const HERE: RegionId = RegionId(0);
const NEXT: RegionId = RegionId(1);

/// Two players who see each other across a border.
fn pair_of_players() -> (World, SessionId, SessionId) {
    neighbours(scene(Visibility::Patches, 60))
}

const GRACE_PERIOD: u64 = GRACE_PERIOD_MS as u64 / 100;

#[test]
fn others_notice_nothing_and_the_first_frame_is_a_resync() {
    for how in [Break::Heard, Break::Lost, Break::Unnoticed] {
        let (mut w, a, b) = pair_of_players();
        let (id, other) = (w.clients[&a].entity, w.clients[&b].entity);
        w.walk(a, Pos::ground(2_980, 500));
        w.walk(a, Pos::ground(2_960, 500));
        w.step();
        let before = (w.clients[&b].entered.clone(), w.clients[&b].left.clone());
        let counts = w.regions[0].counts();
        w.break_off(a, how);
        w.steps(GRACE_PERIOD - 1);
        assert_eq!(w.links().len(), 1, "{how:?}: the player is there");
        let a = w.resume(0);
        w.steps(2);
        let me = &w.clients[&a];
        assert_eq!(me.player.as_ref().map(|p| (p.id(), p.state())), Some((id, State::InWorld)));
        assert_eq!((me.resyncs, me.ack), (1, Seq(2)), "{how:?}");
        assert!(me.shown.contains_key(&other), "{how:?}");
        w.walk(a, Pos::ground(2_940, 500));
        w.steps(3);
        assert_eq!(w.clients[&a].ack, Seq(3), "{how:?}: input numbers continue");
        let them = &w.clients[&b];
        assert_eq!((them.entered.clone(), them.left.clone()), before, "{how:?}");
        assert_eq!(them.shown[&id].0, Pos::ground(2_940, 500), "{how:?}");
        let now = w.regions[0].counts();
        assert_eq!((now.players, now.reals), (counts.players, counts.reals), "{how:?}");
        assert_eq!(w.clients.len(), 2, "{how:?}: the old session is over");
    }
}

#[test]
fn a_player_leaves_after_its_grace_period_and_a_late_resume_is_told_so() {
    let (mut w, a, b) = pair_of_players();
    let id = w.clients[&a].entity;
    w.break_off(a, Break::Heard);
    w.steps(GRACE_PERIOD - 1);
    assert!(w.clients[&b].shown.contains_key(&id), "the grace period still runs");
    w.steps(3);
    assert!(!w.clients[&b].shown.contains_key(&id), "the player has left");
    assert_eq!(w.acting_region(id), None);
    let a = w.resume(0);
    // Some regions are asked only after others have said no.
    w.steps(5);
    let back = &w.clients[&a];
    assert!(back.forgotten);
    let player = back.player.as_ref().unwrap();
    assert_eq!(player.state(), State::Greeted, "the client may join");
    assert_ne!(player.id(), id, "the client joins as a new player");
}

#[test]
fn a_resumed_player_does_not_leave_when_the_old_grace_period_ends() {
    let (mut w, a, _) = pair_of_players();
    let id = w.clients[&a].entity;
    w.break_off(a, Break::Heard);
    w.steps(GRACE_PERIOD / 2);
    let a = w.resume(0);
    w.steps(GRACE_PERIOD);
    assert_eq!(w.acting_region(id), Some(HERE));
    // The next absence has a grace period of its own.
    w.break_off(a, Break::Heard);
    w.steps(GRACE_PERIOD - 2);
    assert_eq!(w.acting_region(id), Some(HERE));
    w.steps(4);
    assert_eq!(w.acting_region(id), None);
}

#[test]
fn a_disconnected_player_is_handed_over_with_its_grace_period() {
    let (mut w, a, b) = pair_of_players();
    let id = w.clients[&a].entity;
    w.break_off(a, Break::Heard);
    w.steps(GRACE_PERIOD / 2);
    let to = Pos::ground(3_500, 500);
    w.truth.get_mut(&id).unwrap().pos = to;
    w.tell(HERE, order_of(id, Order::Move(to)));
    w.steps(3);
    assert_eq!(w.acting_region(id), Some(NEXT));
    assert_eq!(w.clients[&b].shown[&id].0, to);
    w.steps(GRACE_PERIOD / 2 - 5);
    assert_eq!(w.acting_region(id), Some(NEXT));
    w.steps(4);
    assert_eq!(w.acting_region(id), None, "the grace period is unchanged");
}

#[test]
fn a_client_that_resumes_during_a_handoff_finds_its_player() {
    for delay in 0..4 {
        let (mut w, a, _) = pair_of_players();
        let id = w.clients[&a].entity;
        w.walk(a, Pos::ground(3_199, 500));
        w.step();
        w.walk(a, Pos::ground(3_390, 500));
        w.break_off(a, Break::Unnoticed);
        // Some messages in flight are late.
        w.weather.delay = 60;
        w.steps(delay);
        let a = w.resume(0);
        w.steps(2);
        w.weather.delay = 0;
        w.steps(15);
        assert_eq!(w.acting_region(id), Some(NEXT));
        let me = &w.clients[&a];
        assert_eq!(me.player.as_ref().map(|p| p.state()), Some(State::InWorld), "{delay}");
        assert_eq!(me.ack, Seq(2), "{delay}");
        assert!(me.unacked.is_empty());
    }
}

#[test]
fn the_newer_of_two_sessions_wins_whatever_the_older_still_sends() {
    let (mut w, a, _) = pair_of_players();
    let id = w.clients[&a].entity;
    w.break_off(a, Break::Unnoticed);
    let newer = w.resume(0);
    w.step();
    assert!(!w.clients.contains_key(&a), "the older one is over");
    // Messages that the older session had sent arrive now.
    let asked = Input::Resume(resume_of(a, id, HERE, 0));
    w.tell(HERE, Input::Disconnected { id, session: a, ms: 0 });
    w.tell(HERE, asked);
    w.steps(3);
    assert_eq!(w.acting_region(id), Some(HERE));
    w.walk(newer, Pos::ground(2_990, 500));
    w.steps(2);
    assert_eq!(w.clients[&newer].ack, Seq(1), "the client gets its frames");
}

#[test]
fn a_region_that_does_not_know_a_player_says_so_for_the_region_that_was_asked() {
    let (mut w, ..) = pair_of_players();
    let (id, session) = (EntityId(999), SessionId(5));
    let question = |asked| Input::Resume(resume_of(session, id, asked, 0));
    let mut fx = Vec::new();
    w.regions[0].handle(question(NEXT), &mut fx);
    w.regions[0].tick(w.tick.next(), &mut fx);
    assert_eq!(notices_for(session, &fx), [Notice::Nowhere { asked: NEXT }]);
    // Found by simulation: the region that had forwarded the question had died, and its next owner
    // held the player unclaimed.
    let (mut risen, _) = recover(&w.scene, nothing_of(&w.scene, HERE), &[], 100);
    risen.tick(Tick(100), &mut fx);
    for (now, asked) in [(101, NEXT), (102, HERE)] {
        fx.clear();
        risen.handle(question(asked), &mut fx);
        risen.tick(Tick(now), &mut fx);
        let told = notices_for(session, &fx);
        assert_eq!(told, [Notice::Nowhere { asked: HERE }], "the region answers for itself");
    }
}

#[test]
fn a_late_question_of_an_older_session_changes_nothing_after_a_handoff() {
    let (mut w, a, _) = pair_of_players();
    let id = w.clients[&a].entity;
    w.break_off(a, Break::Unnoticed);
    let newer = w.resume(0);
    w.step();
    w.walk(newer, Pos::ground(3_190, 500));
    w.step();
    w.walk(newer, Pos::ground(3_390, 500));
    w.steps(3);
    assert_eq!(w.acting_region(id), Some(NEXT));
    let asked = Input::Resume(resume_of(a, id, NEXT, 5_000));
    w.tell(NEXT, asked);
    w.steps(2);
    w.walk(newer, Pos::ground(3_400, 500));
    w.steps(2);
    assert_eq!(w.clients[&newer].ack, Seq(3), "the client gets its frames");
}

#[test]
fn the_later_of_two_sessions_that_claim_a_player_gets_it_in_any_order() {
    let (w, a, _) = pair_of_players();
    let (id, tick, newer) = (w.clients[&a].entity, w.tick, SessionId(77));
    let presented = |session, since_ms| Presented {
        to: HERE,
        epoch: Epoch(2),
        facing: Facing::SOUTH,
        properties: Properties::with_appearance(b"look").unwrap(),
        since_ms,
        ..presented_by(session, id, Pos::ground(3_000, 500), tick)
    };
    let both = [presented(a, FIRST_SESSION), presented(newer, 10_000)];
    for order in [[0, 1], [1, 0]] {
        let kept = w.regions[0].checkpoint().expect("a closed tick");
        let (mut region, mut fx) = recover(&w.scene, kept, &[], 40);
        for i in order {
            region.handle(Input::Present(Box::new(both[i].clone())), &mut fx);
        }
        fx.clear();
        region.tick(tick.next(), &mut fx);
        let told = fx.iter().filter_map(|effect| match effect {
            Effect::Notice(session, notice) => Some((*session, notice)),
            _ => None,
        });
        let replaced = told.clone().filter(|(_, notice)| matches!(notice, Notice::Replaced));
        assert_eq!(replaced.map(|(session, _)| session).collect::<Vec<_>>(), [a], "{order:?}");
        let route = told.filter(|(_, notice)| matches!(notice, Notice::Route(_))).last();
        assert_eq!(route.map(|(session, _)| session), Some(newer), "{order:?}");
    }
}

#[test]
fn a_disconnected_player_of_a_dead_region_is_restored_disconnected_and_leaves_in_time() {
    let (mut w, a, b) = pair_of_players();
    let id = w.clients[&a].entity;
    w.break_off(a, Break::Heard);
    w.kills.checkpoint_every = 1;
    w.steps(2);
    w.kills.checkpoint_every = 0;
    w.kill(HERE, 5);
    w.steps(20);
    assert_eq!(w.acting_region(id), Some(HERE));
    assert!(w.clients[&b].shown.contains_key(&id), "others see it");
    assert!(w.regions[0].counts().unclaimed == 0);
    w.steps(GRACE_PERIOD - 30);
    assert_eq!(w.acting_region(id), Some(HERE), "the grace period still runs");
    w.steps(12);
    assert_eq!(w.acting_region(id), None, "the grace period is unchanged");
    assert!(!w.clients[&b].shown.contains_key(&id));
}
