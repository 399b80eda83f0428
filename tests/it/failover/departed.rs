//! Players that went to another region, or left, before a region died that still knows them: they are
//! asked about, and neither come back twice nor get lost.

use super::*;

/// Players whom only their sessions know come back to a region without a checkpoint: the other regions
/// are asked about all of them at once, not about each.
#[test]
fn a_region_asks_once_about_all_players_that_its_checkpoint_does_not_know() {
    let w = World::new(scene(Visibility::Patches, 60), 1);
    let nothing = nothing_of(&w.scene, DEAD);
    let (mut region, mut fx) = recover(&w.scene, nothing, &[DEAD, NEXT], 100);
    let ids: Vec<EntityId> = (1..=50).map(EntityId).collect();
    for id in &ids {
        let presented = Presented {
            subject: Default::default(),
            since_ms: 1,
            ..presented_by(SessionId(id.0), *id, Pos::ground(2_000, 500), Tick(90))
        };
        region.handle(Input::Present(Box::new(presented)), &mut fx);
    }
    (100..120).for_each(|n| region.tick(Tick(n), &mut fx));
    let asked = claims_for(NEXT, &fx).into_iter();
    let asked: Vec<Vec<EntityId>> =
        asked.map(|claims| claims.lives.iter().map(|c| c.id).collect()).collect();
    assert_eq!(asked, [ids]);
}

/// Found by simulation: the session took the next message for stale, or waited for a resync that
/// was never sent.
#[test]
fn a_handoff_to_a_recovering_region_is_reported_under_its_epoch() {
    let (w, ..) = pair_of_players();
    let session = SessionId(5);
    let handoff = a_handoff(&w, session);
    let (mut to, mut fx) = recover(&w.scene, nothing_of(&w.scene, NEXT), &[DEAD, NEXT], 100);
    to.tick(Tick(100), &mut fx);
    assert!(to.is_recovering(), "the region waits for answers");
    to.handle(Input::Handoff(handoff), &mut fx);
    (101..150).for_each(|n| to.tick(Tick(n), &mut fx));
    assert!(!to.is_recovering());
    let told = notices_for(session, &fx).into_iter().rev().find_map(|notice| match notice {
        Notice::Route(route) => Some(route.epoch),
        _ => None,
    });
    let has = to.acting_players().map(|player| player.epoch).last();
    assert_eq!(told, has);
    assert!(has.is_some());
}

/// Found by simulation: the former owner had handed the player over when its link was cut, and the
/// next owner had the player again.
#[test]
pub fn a_handoff_by_a_former_owner_is_not_accepted() {
    let (w, ..) = pair_of_players();
    let handoff = a_handoff(&w, SessionId(5));
    let taken = |owners: Vec<(RegionId, Epoch)>| {
        let nothing = nothing_of(&w.scene, NEXT);
        let how = Recovery { ask: Vec::new(), grace_ticks: 100, owners };
        let scene = w.scene.clone();
        let mut to = Region::recover(scene, NEXT, Epoch(9), nothing, how, &mut Vec::new()).unwrap();
        to.handle(Input::Handoff(handoff.clone()), &mut Vec::new());
        (100..110).for_each(|n| to.tick(Tick(n), &mut Vec::new()));
        (to.acting_players().count(), to.counts().fenced)
    };
    assert_eq!(
        taken(vec![(handoff.from, handoff.from_epoch)]),
        (1, 0),
        "handed over by its present owner"
    );
    assert_eq!(taken(vec![(handoff.from, handoff.from_epoch.next())]), (0, 1));
}

/// Found by simulation: the former owner had died with its knowledge of the player. The region that
/// had handed the player over was restored from a checkpoint twelve seconds later and handed it
/// over again.
#[test]
fn a_player_handed_to_a_dead_region_that_left_unclaimed_stays_away() {
    let (w, ..) = pair_of_players();
    let handoff = *a_handoff(&w, SessionId(5));
    let stays = |leaves: bool| {
        let (mut to, mut fx) = recover(&w.scene, nothing_of(&w.scene, NEXT), &[DEAD], 300);
        let says = |to: &mut Region, answer: Option<Epoch>, tick: u64| {
            let claims = claims(DEAD, answer, tick, Vec::new(), vec![handoff.clone()]);
            to.handle(claims, &mut Vec::new());
        };
        says(&mut to, Some(Epoch(9)), 99);
        if leaves {
            to.handle(Input::Leave(handoff.state.id), &mut fx);
        }
        (100..500).for_each(|n| to.tick(Tick(n), &mut fx));
        assert_eq!(to.counts().unclaimed, 0, "the player has left, or is unclaimed");
        says(&mut to, None, 499);
        (500..520).for_each(|n| to.tick(Tick(n), &mut fx));
        to.find(handoff.state.id).is_none() && to.counts().unclaimed == 0
    };
    assert_eq!([stays(true), stays(false)], [true, true]);
}

/// Found by simulation: a player that had entered just before an old checkpoint, and had moved on
/// since, entered again.
#[test]
fn an_enter_pending_in_a_checkpoint_is_not_repeated_unless_no_one_else_would() {
    let (w, ..) = pair_of_players();
    let mut region = Region::new(w.scene.clone(), DEAD).unwrap();
    region.tick(Tick(50), &mut Vec::new());
    for (id, session) in [(70, Some(SessionId(5))), (71, None)] {
        let player = Spawn::new(EntityId(id), Kind::PLAYER, Pos::ground(500, 500));
        let spawn = Spawn { session, ..player };
        region.handle(Input::Enter(Box::new(spawn)), &mut Vec::new());
    }
    let snapshot = region.checkpoint().expect("between two ticks");
    let (mut next, mut fx) = recover(&w.scene, snapshot, &[], 100);
    (51..70).for_each(|n| next.tick(Tick(n), &mut fx));
    let lives = [70, 71].map(|id| next.find(EntityId(id)).is_some());
    assert_eq!(lives, [false, true]);
}

/// Found by simulation: of two restored regions neither told a third one about a player of which
/// the third had an old copy. The region that had handed the player on knew it as a ghost, and
/// checkpoints hold no ghosts.
#[test]
fn a_restored_region_knows_what_it_handed_on_before_its_checkpoint() {
    let (mut w, a, _) = pair_of_players();
    let id = w.clients[&a].entity;
    for i in 1..8 {
        w.walk(a, Pos::ground(3_000 + i * 60, 500));
        w.step();
    }
    assert_eq!(w.acting_region(id), Some(NEXT));
    let snapshot = w.regions[DEAD.0 as usize].checkpoint().expect("between two ticks");
    let third = RegionId(7);
    let (mut dead, mut fx) = recover(&w.scene, snapshot, &[], 100);
    fx.clear();
    let old = Recovered { region: third, epoch: Epoch(8), map: 1, holds: vec![(id, Epoch(1))] };
    dead.handle(Input::Recovered(Box::new(old)), &mut fx);
    let lives = claims_for(third, &fx).remove(0).lives.into_iter();
    assert_eq!(lives.map(|claim| (claim.id, claim.region)).collect::<Vec<_>>(), [(id, NEXT)]);
}

/// Found by simulation: a region restored without a checkpoint was handed a player again that had
/// moved on since. It asked about the player at the region where the player was about to arrive,
/// which did not know it yet. The client then woke the player in both.
#[test]
pub fn a_question_about_an_arriving_player_is_answered_when_it_arrives() {
    let (w, ..) = pair_of_players();
    let handoff = a_handoff(&w, SessionId(5));
    let (id, third) = (handoff.state.id, RegionId(7));
    let told = |under: Epoch, waits: u64| {
        let (mut region, mut fx) = (Region::new(w.scene.clone(), NEXT).unwrap(), Vec::new());
        let lives = vec![Claim { id, epoch: under, region: third }];
        region.handle(claims(third, None, 99, lives, Vec::new()), &mut fx);
        assert!(fx.is_empty(), "the region does not know the player");
        (100..=100 + waits).for_each(|n| region.tick(Tick(n), &mut Vec::new()));
        region.handle(Input::Handoff(handoff.clone()), &mut fx);
        claims_for(third, &fx).into_iter().next().map(|claims| claims.lives)
    };
    let older = Epoch(handoff.epoch.0 - 1);
    let here = Claim { id, epoch: handoff.epoch, region: NEXT };
    assert_eq!([told(older, 1), told(older, 90)], [Some(vec![here]), Some(vec![here])]);
    assert_eq!(told(handoff.epoch.next(), 1), None, "the player has moved on there");
    assert_eq!(told(older, 110), None, "a player unclaimed for so long has left");
}

/// A handoff that a dead process has left unacknowledged comes again, when the player has long gone on.
#[test]
pub fn a_late_handoff_of_a_player_that_has_gone_on_is_not_taken() {
    let (w, ..) = pair_of_players();
    let session = SessionId(5);
    let handoff = a_handoff(&w, session);
    let id = handoff.state.id;
    let (mut region, mut fx) = (Region::new(w.scene.clone(), NEXT).unwrap(), Vec::new());
    region.handle(Input::Handoff(handoff.clone()), &mut fx);
    region.tick(Tick(100), &mut fx);
    let to = Destination {
        scene: w.scene.id,
        region: DEAD,
        plane: Plane(0),
        pos: Pos::ground(500, 500),
    };
    region.handle(ordered(id, session, 2, Order::Teleport(to)), &mut fx);
    (101..110).for_each(|n| region.tick(Tick(n * 11), &mut fx));
    let is_handed_on =
        |effect: &Effect| matches!(effect, Effect::Handoff(DEAD, on) if on.epoch > handoff.epoch);
    assert!(fx.iter().any(is_handed_on) && region.acting_players().count() == 0);
    region.handle(Input::Handoff(handoff.clone()), &mut fx);
    (110..120).for_each(|n| region.tick(Tick(n * 11), &mut fx));
    assert_eq!(region.acting_players().count(), 0, "it acts where it has gone on from");
}

/// Found by simulation: a client had resumed and left. A region that had died since handed its
/// player over again, as of long ago, under the epoch that the player had when it left.
#[test]
fn a_player_that_left_is_not_handed_back_much_later() {
    let (w, ..) = pair_of_players();
    let came = a_handoff(&w, SessionId(5));
    let (id, session, epoch) = (came.state.id, SessionId(6), came.epoch.next());
    let (mut region, mut fx) = (Region::new(w.scene.clone(), NEXT).unwrap(), Vec::new());
    let go = |region: &mut Region, ticks: std::ops::Range<u64>| {
        ticks.for_each(|n| region.tick(Tick(n * 11), &mut Vec::new()));
        region.find(id).is_some_and(|e| !e.ghost)
    };
    region.handle(Input::Handoff(came.clone()), &mut fx);
    assert!(go(&mut region, 10..15));
    let resume = Resume { subject: came.state.subject, ..resume_of(session, id, NEXT, 9) };
    region.handle(Input::Resume(resume), &mut fx);
    assert!(go(&mut region, 15..20));
    region.handle(Input::Leave(id), &mut fx);
    assert!(!go(&mut region, 20..80), "the player has left");
    let again =
        |epoch| claims(DEAD, None, 900, Vec::new(), vec![Handoff { epoch, ..*came.clone() }]);
    region.handle(again(epoch), &mut fx);
    assert!(!go(&mut region, 80..90));
    // A player that has come since is a different case.
    region.handle(again(epoch.next()), &mut fx);
    assert!(go(&mut region, 90..100));
}

/// Found by simulation: a question that the former owner had forwarded was answered in the name of
/// the region that had been asked, which held the player unclaimed.
#[test]
fn a_restored_region_answers_a_resuming_client_only_for_itself() {
    let (w, ..) = pair_of_players();
    let (id, session, third) = (EntityId(999), SessionId(5), RegionId(7));
    let ask = |region: &mut Region, ticks: std::ops::Range<u64>| {
        let mut fx = Vec::new();
        region.handle(Input::Resume(resume_of(session, id, third, 1)), &mut fx);
        ticks.for_each(|n| region.tick(Tick(n), &mut fx));
        notices_for(session, &fx).into_iter().find_map(|notice| match notice {
            Notice::Nowhere { asked } => Some(asked),
            _ => None,
        })
    };
    let snapshot = w.regions[DEAD.0 as usize].checkpoint().expect("between two ticks");
    let (mut next, mut fx) = recover(&w.scene, snapshot, &[NEXT], 300);
    assert_eq!(ask(&mut next, 100..110), None, "not before all answers have arrived");
    next.handle(claims(NEXT, Some(Epoch(9)), 99, Vec::new(), Vec::new()), &mut fx);
    assert_eq!(ask(&mut next, 110..150), Some(DEAD));
    assert_eq!(ask(&mut Region::new(w.scene.clone(), NEXT).unwrap(), 1..2), Some(third));
}

/// Found by simulation: a region handed an entity over just as its link was cut, stored a
/// checkpoint, and died. No region knew of the entity any more.
#[test]
pub fn an_entity_handed_on_and_never_confirmed_is_handed_on_again() {
    let (mut w, ..) = pair_of_players();
    let (mut other, ..) = pair_of_players();
    let beast = npc(&mut w, 3_100);
    assert_eq!(npc(&mut other, 3_100), beast);
    w.steps(2);
    other.steps(2);
    push(&mut w, DEAD, beast, 3_400);
    w.steps(3);
    assert_eq!(w.acting_region(beast), Some(NEXT));
    let snapshot = w.regions[DEAD.0 as usize].checkpoint().expect("between two ticks");
    let again = |known: Vec<Claim>| {
        let (mut next, mut fx) = recover(&w.scene, snapshot.clone(), &[NEXT], 300);
        let knows = |lives: &[Claim]| lives.iter().any(|claim| claim.id == beast);
        let asks = claims_for(NEXT, &fx).iter().any(|claims| knows(&claims.lives));
        assert!(asks, "the region asks first");
        // Without an answer it resumes after a while, and stays in place until it has reported what
        // may be lost.
        let recovering = (100..140).take_while(|n| {
            next.tick(Tick(*n), &mut fx);
            next.is_recovering()
        });
        assert!(recovering.count() > 1 && next.is_closed() && !next.may_freeze());
        for (answer, lives) in [(None, known), (Some(Epoch(9)), Vec::new())] {
            next.handle(claims(NEXT, answer, 99, lives, Vec::new()), &mut fx);
        }
        (140..180).for_each(|n| next.tick(Tick(n), &mut fx));
        assert!(next.may_freeze());
        let again = claims_for(NEXT, &fx).into_iter().find(|claims| !claims.handed.is_empty());
        again.map(|claims| Input::Claims(Box::new(claims)))
    };
    let elsewhere = Claim { id: beast, epoch: Epoch(1 << 30), region: RegionId(7) };
    assert!(again(vec![elsewhere]).is_none(), "another region knows better");
    let again = again(Vec::new()).expect("the region hands it over again");
    // A region that has received it before recognises it.
    w.tell(NEXT, again.clone());
    w.steps(5);
    assert_eq!(w.acting_region(beast), Some(NEXT));
    // An entity that has left since stays away.
    w.tell(NEXT, Input::Leave(beast));
    w.steps(3);
    w.tell(NEXT, again.clone());
    w.steps(5);
    assert_eq!(w.acting_region(beast), None);
    // A region that has not received it accepts it.
    other.tell(DEAD, Input::Leave(beast));
    other.steps(3);
    other.tell(NEXT, again);
    other.steps(5);
    assert_eq!(other.acting_region(beast), Some(NEXT));
    assert_eq!(other.regions[NEXT.0 as usize].find(beast).unwrap().pos, Pos::ground(3_400, 600));
}
