//! Connections break, and clients come back by other sessions: their players are where they were, every input
//! counts once, and nobody else notices. Also while regions hand players over, move and die.

use crate::support::histories;
use crate::support::returning::Break;
use crate::support::session::LINGER_MS;
use crate::support::trial::{CIRCLE, Trial, scene};
use crate::support::world::World;
use crate::support::{seeds, seeds_are_given};
use purview::scene::effects::{Effect, FIRST_SESSION, Input, Notice, Order, Presented, Resume};
use purview::scene::player::State;
use purview::scene::region::{Recovery, RegionSnapshot};
use purview::scene::{
    EntityId, Epoch, Plane, Pos, RangeSet, Region, RegionId, SceneSpec, Seq, SessionId, Tick,
    Visibility,
};

/// What has happened in all histories.
#[derive(Debug, Default)]
struct Sum {
    returns: u64,
    handoffs: u64,
    relocations: u64,
    recovered: u64,
}

fn every_seed(spec: &SceneSpec, most: u64, go: impl Fn(&mut Trial)) -> Sum {
    let mut sum = Sum::default();
    histories::every_seed("resume", spec, seeds(most), go, |t| {
        sum.returns += t.w.clients.values().map(|c| c.returns).sum::<u64>();
        sum.handoffs += t.w.handoffs;
        sum.relocations += t.w.relocations;
        sum.recovered += t.w.kills.recovered;
    });
    println!("{sum:?}");
    assert!((sum.returns > 100 && sum.handoffs > 50) || seeds_are_given(), "{sum:?}");
    sum
}

#[test]
fn clients_that_come_back_have_their_players_and_no_input_is_lost() {
    every_seed(&scene(Visibility::Patches, 100), 20, |t| t.breaks(60, false));
    every_seed(&scene(Visibility::Patches, 3), 10, |t| t.breaks(60, false));
}

#[test]
fn clients_come_back_to_regions_that_move() {
    let sum = every_seed(&scene(CIRCLE, 3), 15, |t| {
        t.w.restless = 3;
        t.breaks(60, false);
    });
    assert!(sum.relocations > 100 || seeds_are_given(), "{sum:?}");
}

#[test]
fn clients_come_back_to_regions_that_go_on_from_checkpoints() {
    let sum = every_seed(&scene(Visibility::Patches, 100), 25, |t| t.breaks(60, true));
    assert!(sum.recovered > 50 || seeds_are_given(), "{sum:?}");
}

/// Seeds that failed once: of two owners the one that went on from an older checkpoint had the newer session (53);
/// letters for a player who slept went to and fro for ever (495); the rest as the test was then. 68, the first one, was
/// a late question of an older session, and has a test of its own.
const ONCE_FAILED: [u64; 5] = [53, 68, 162, 495, 637];

#[test]
fn clients_come_back_in_the_histories_that_have_failed_once() {
    let spec = scene(Visibility::Patches, 100);
    let seeds = ONCE_FAILED.into_iter();
    histories::every_seed("resume", &spec, seeds, |t| t.breaks(60, true), |_| {});
}

// One case each.

const HERE: RegionId = RegionId(0);
const NEXT: RegionId = RegionId(1);

/// Two players who see each other across a border.
fn pair_of_players() -> (World, SessionId, SessionId) {
    let mut w = World::new(scene(Visibility::Patches, 60), 1);
    w.sessions = true;
    let a = w.join(Plane(0), Pos::ground(3_000, 500), RangeSet::FULL);
    let b = w.join(Plane(0), Pos::ground(3_300, 500), RangeSet::FULL);
    (0..3).for_each(|_| w.step());
    assert_eq!(w.links().len(), 1);
    (w, a, b)
}

fn steps(w: &mut World, n: u64) {
    (0..n).for_each(|_| w.step());
}

const LINGER: u64 = LINGER_MS as u64 / 100;

#[test]
fn others_notice_nothing_and_the_first_frame_tells_everything() {
    for how in [Break::Heard, Break::Lost, Break::Unnoticed] {
        let (mut w, a, b) = pair_of_players();
        let (id, other) = (w.clients[&a].entity, w.clients[&b].entity);
        w.walk(a, Pos::ground(2_980, 500));
        w.walk(a, Pos::ground(2_960, 500));
        w.step();
        let before = (w.clients[&b].entered.clone(), w.clients[&b].left.clone());
        let counts = w.regions[0].counts();
        w.break_off(a, how);
        steps(&mut w, LINGER - 1);
        assert_eq!(w.links().len(), 1, "{how:?}: it is there");
        let a = w.come_back(0);
        steps(&mut w, 2);
        let me = &w.clients[&a];
        assert_eq!(me.player.as_ref().map(|p| (p.id(), p.state())), Some((id, State::InWorld)));
        assert_eq!((me.resyncs, me.ack), (1, Seq(2)), "{how:?}");
        assert!(me.shown.contains_key(&other), "{how:?}");
        w.walk(a, Pos::ground(2_940, 500));
        steps(&mut w, 3);
        assert_eq!(w.clients[&a].ack, Seq(3), "{how:?}: the numbers go on");
        let them = &w.clients[&b];
        assert_eq!((them.entered.clone(), them.left.clone()), before, "{how:?}");
        assert_eq!(them.shown[&id].0, Pos::ground(2_940, 500), "{how:?}");
        let now = w.regions[0].counts();
        assert_eq!((now.players, now.reals), (counts.players, counts.reals), "{how:?}");
        assert_eq!(w.clients.len(), 2, "{how:?}: the session before is over");
    }
}

#[test]
fn whoever_does_not_come_back_in_time_leaves_then_and_is_told_so_if_it_asks() {
    let (mut w, a, b) = pair_of_players();
    let id = w.clients[&a].entity;
    w.break_off(a, Break::Heard);
    steps(&mut w, LINGER - 1);
    assert!(w.clients[&b].shown.contains_key(&id), "it has time yet");
    steps(&mut w, 3);
    assert!(!w.clients[&b].shown.contains_key(&id), "it has left");
    assert_eq!(w.home_of(id), None);
    let a = w.come_back(0);
    // Some are asked when the others have said no.
    steps(&mut w, 5);
    let back = &w.clients[&a];
    assert!(back.forgotten);
    let player = back.player.as_ref().unwrap();
    assert_eq!(player.state(), State::Greeted, "it may join");
    assert_ne!(player.id(), id, "as another");
}

#[test]
fn whoever_has_come_back_does_not_leave_when_the_time_of_its_absence_is_over() {
    let (mut w, a, _) = pair_of_players();
    let id = w.clients[&a].entity;
    w.break_off(a, Break::Heard);
    steps(&mut w, LINGER / 2);
    let a = w.come_back(0);
    steps(&mut w, LINGER);
    assert_eq!(w.home_of(id), Some(HERE));
    // Its next absence has a time of its own.
    w.break_off(a, Break::Heard);
    steps(&mut w, LINGER - 2);
    assert_eq!(w.home_of(id), Some(HERE));
    steps(&mut w, 4);
    assert_eq!(w.home_of(id), None);
}

#[test]
fn an_absent_player_is_handed_over_with_its_absence() {
    let (mut w, a, b) = pair_of_players();
    let id = w.clients[&a].entity;
    w.break_off(a, Break::Heard);
    steps(&mut w, LINGER / 2);
    let to = Pos::ground(3_500, 500);
    w.truth.get_mut(&id).unwrap().pos = to;
    w.tell(HERE, Input::Logic { id, order: Order::Move(to) });
    steps(&mut w, 3);
    assert_eq!(w.home_of(id), Some(NEXT));
    assert_eq!(w.clients[&b].shown[&id].0, to);
    steps(&mut w, LINGER / 2 - 5);
    assert_eq!(w.home_of(id), Some(NEXT));
    steps(&mut w, 4);
    assert_eq!(w.home_of(id), None, "its time is what it was");
}

#[test]
fn a_client_that_asks_while_its_player_is_handed_over_finds_it() {
    for delay in 0..4 {
        let (mut w, a, _) = pair_of_players();
        let id = w.clients[&a].entity;
        w.walk(a, Pos::ground(3_199, 500));
        w.step();
        w.walk(a, Pos::ground(3_390, 500));
        w.break_off(a, Break::Unnoticed);
        // Some of what is under way is late.
        w.weather.delay = 60;
        steps(&mut w, delay);
        let a = w.come_back(0);
        steps(&mut w, 2);
        w.weather.delay = 0;
        steps(&mut w, 15);
        assert_eq!(w.home_of(id), Some(NEXT));
        let me = &w.clients[&a];
        assert_eq!(me.player.as_ref().map(|p| p.state()), Some(State::InWorld), "{delay}");
        assert_eq!(me.ack, Seq(2), "{delay}");
        assert!(me.unacked.is_empty());
    }
}

#[test]
fn of_two_sessions_of_one_player_the_newer_counts_whatever_the_older_still_says() {
    let (mut w, a, _) = pair_of_players();
    let id = w.clients[&a].entity;
    w.break_off(a, Break::Unnoticed);
    let newer = w.come_back(0);
    w.step();
    assert!(!w.clients.contains_key(&a), "the older one is over");
    // What the older one had asked or said arrives now.
    let asked = Resume { id, session: a, acked: Seq(0), asked: HERE, since_ms: 0 };
    w.tell(HERE, Input::Absent { id, session: a, ms: 0 });
    w.tell(HERE, Input::Resume(asked));
    steps(&mut w, 3);
    assert_eq!(w.home_of(id), Some(HERE));
    w.walk(newer, Pos::ground(2_990, 500));
    steps(&mut w, 2);
    assert_eq!(w.clients[&newer].ack, Seq(1), "it hears its frames");
}

#[test]
fn a_region_that_knows_nothing_says_so_in_the_name_of_whom_was_asked() {
    let (mut w, ..) = pair_of_players();
    let (id, session) = (EntityId(999), SessionId(5));
    let asked = Resume { id, session, acked: Seq(0), asked: NEXT, since_ms: 0 };
    w.regions[0].handle(Input::Resume(asked), &mut Vec::new());
    let said = |fx: &[Effect]| {
        fx.iter().find_map(|e| match e {
            Effect::Notice(session, notice) => Some((*session, notice.clone())),
            _ => None,
        })
    };
    let mut fx = Vec::new();
    w.regions[0].tick(w.tick.next(), &mut fx);
    assert_eq!(said(&fx), Some((session, Notice::Nowhere { asked: NEXT })));
    // Found by simulation: whoever had passed it on had died since, and the next owner had the player asleep.
    let nothing = RegionSnapshot::nothing(w.scene.id, HERE, Epoch(8));
    let how = Recovery { ask: Vec::new(), grace_ticks: 100, owners: Vec::new() };
    let mut risen =
        Region::recover(w.scene.clone(), HERE, Epoch(9), nothing, how, &mut fx).unwrap();
    risen.tick(Tick(100), &mut fx);
    for (now, asked) in [(101, NEXT), (102, HERE)] {
        fx.clear();
        risen.handle(
            Input::Resume(Resume { id, session, acked: Seq(0), asked, since_ms: 0 }),
            &mut fx,
        );
        risen.tick(Tick(now), &mut fx);
        assert_eq!(said(&fx), Some((session, Notice::Nowhere { asked: HERE })), "for itself");
    }
}

#[test]
fn a_question_of_an_older_session_that_comes_where_the_player_has_been_handed_to_changes_nothing() {
    let (mut w, a, _) = pair_of_players();
    let id = w.clients[&a].entity;
    w.break_off(a, Break::Unnoticed);
    let newer = w.come_back(0);
    w.step();
    w.walk(newer, Pos::ground(3_190, 500));
    w.step();
    w.walk(newer, Pos::ground(3_390, 500));
    steps(&mut w, 3);
    assert_eq!(w.home_of(id), Some(NEXT));
    let asked = Resume { id, session: a, acked: Seq(0), asked: NEXT, since_ms: 5_000 };
    w.tell(NEXT, Input::Resume(asked));
    steps(&mut w, 2);
    w.walk(newer, Pos::ground(3_400, 500));
    steps(&mut w, 2);
    assert_eq!(w.clients[&newer].ack, Seq(3), "it hears its frames");
}

#[test]
fn of_two_sessions_that_present_a_player_the_later_one_has_it_whichever_comes_first() {
    let (w, a, _) = pair_of_players();
    let (id, tick, newer) = (w.clients[&a].entity, w.tick, SessionId(77));
    let presented = |session, since_ms| Presented {
        id,
        session,
        to: HERE,
        epoch: Epoch(2),
        acked: Seq(0),
        plane: Plane(0),
        pos: Pos::ground(3_000, 500),
        placed_by: Seq(0),
        own: None,
        tick,
        range: RangeSet::FULL,
        look: "look".into(),
        leap: None,
        since_ms,
    };
    let both = [presented(a, FIRST_SESSION), presented(newer, 10_000)];
    for order in [[0, 1], [1, 0]] {
        let kept = w.regions[0].checkpoint().expect("a closed tick");
        let (how, mut fx) =
            (Recovery { ask: Vec::new(), grace_ticks: 40, owners: Vec::new() }, Vec::new());
        let region = Region::recover(w.scene.clone(), HERE, Epoch(9), kept, how, &mut fx);
        let mut region = region.expect("it fits");
        for i in order {
            region.handle(Input::Present(Box::new(both[i].clone())), &mut fx);
        }
        fx.clear();
        region.tick(tick.next(), &mut fx);
        let replaced = fx.iter().filter_map(|e| match e {
            Effect::Notice(session, Notice::Replaced) => Some(*session),
            _ => None,
        });
        assert_eq!(replaced.collect::<Vec<_>>(), [a], "{order:?}");
        let route = fx.iter().rev().find_map(|e| match e {
            Effect::Notice(session, Notice::Route { .. }) => Some(*session),
            _ => None,
        });
        assert_eq!(route, Some(newer), "{order:?}");
    }
}

#[test]
fn whoever_is_away_when_its_region_dies_is_there_and_away_as_it_was_and_leaves_in_time() {
    let (mut w, a, b) = pair_of_players();
    let id = w.clients[&a].entity;
    w.break_off(a, Break::Heard);
    w.kills.checkpoint_every = 1;
    steps(&mut w, 2);
    w.kills.checkpoint_every = 0;
    w.kill(HERE, 5);
    steps(&mut w, 20);
    assert_eq!(w.home_of(id), Some(HERE));
    assert!(w.clients[&b].shown.contains_key(&id), "others see it");
    assert!(w.regions[0].counts().dormant == 0);
    steps(&mut w, LINGER - 30);
    assert_eq!(w.home_of(id), Some(HERE), "it has time yet");
    steps(&mut w, 12);
    assert_eq!(w.home_of(id), None, "its time is what it was");
    assert!(!w.clients[&b].shown.contains_key(&id));
}
