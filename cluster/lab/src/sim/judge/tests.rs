//! Each invariant: the judge reports a violation, and accepts what is legal.

use purview::scene::{Plane, Pos, SessionId};
use purview::wire::Frame;

use super::quiescence::FRESH;
use super::rules::{shown_are_near, views_are_stable};
use super::*;
use crate::oracle::tests::server::{acted, empty_frame, entered};

/// What a case does to a judge.
type Change = fn(&Judge);

fn player(id: u64, epoch: u64, applied: u32) -> ActingPlayer {
    ActingPlayer {
        id: EntityId(id),
        epoch: Epoch(epoch),
        plane: Plane(0),
        pos: Pos::ground(0, 0),
        last_applied: Seq(applied),
        session: Some(SessionId(1)),
    }
}

fn acting(epoch: u64, region: u32, region_epoch: u64, host: Host) -> Acting {
    Acting {
        player: player(1, epoch, 0),
        scene: SceneId(0),
        region: RegionId(region),
        region_epoch: Epoch(region_epoch),
        process: (host, u64::from(host)),
        tick: Tick(1),
        at: Duration::ZERO,
    }
}

fn frame(tick: u64) -> Frame {
    empty_frame(tick, Seq(0))
}

/// A frame in which player 2 does an action.
fn acts(tick: u64, number: u64) -> Frame {
    Frame { acts: vec![acted(EntityId(2), &number.to_be_bytes())], ..frame(tick) }
}

const SCOPE: Scope = Scope {
    near_cm: 4_000,
    far_cm: 4_400,
    height_cm: None,
    margin_cm: 200,
    crowded: false,
    judged: false,
};

fn ground(x: i32) -> PlacedAt {
    (Floor::default(), Pos::ground(x, 0))
}

/// A judge of a scene in which two players stand near each other.
fn judge() -> Judge {
    let judge = Judge::new(Journal::new(false, None), SCOPE);
    for id in [1, 2] {
        judge.joined((EntityId(id), 60), ground(0), Seq(0));
        let now = Acting { player: player(id, 1, 0), ..acting(1, 0, 5, 1) };
        judge.entity_acted(now);
        judge.inner().regions.insert(
            RegionId(0),
            Authority { epoch: Epoch(5), process: (1, 1), tick: Tick(1), at: Duration::ZERO },
        );
    }
    for (id, other) in [(1, 2), (2, 1)] {
        judge.shown(EntityId(id), &frame(1), [(EntityId(other), Pos::ground(0, 0))]);
    }
    judge
}

fn found(judge: &Judge) -> Option<Invariant> {
    judge.violation().map(|violation| violation.invariant)
}

#[test]
fn a_second_real_is_a_violation_but_a_handoff_or_a_migration_is_not() {
    let before = acting(7, 0, 5, 1);
    assert_eq!(one_real(&before, &acting(7, 0, 5, 1)), Ok(()));
    assert_eq!(one_real(&before, &acting(8, 1, 3, 2)), Ok(()), "a handoff");
    assert_eq!(one_real(&before, &acting(7, 0, 6, 2)), Ok(()), "its region has moved");
    let second = [acting(7, 1, 9, 1), acting(7, 0, 5, 2), acting(6, 1, 9, 2), acting(7, 0, 4, 1)];
    for second in second {
        assert!(one_real(&before, &second).is_err(), "{second:?}");
    }
    let judge = judge();
    judge.entity_acted(acting(1, 3, 9, 2));
    assert_eq!(found(&judge), Some(Invariant::OneReal));
}

#[test]
fn a_second_authority_and_an_older_one_are_violations() {
    let before = Authority { epoch: Epoch(5), process: (1, 1), tick: Tick(9), at: Duration::ZERO };
    let next = |epoch, process| one_authority(Some(&before), Epoch(epoch), process);
    assert_eq!(one_authority(None, Epoch(5), (1, 1)), Ok(()));
    assert_eq!([next(5, (1, 1)), next(6, (2, 1))], [Ok(()), Ok(())]);
    assert!(next(5, (2, 1)).is_err());
    assert!(next(5, (1, 2)).is_err(), "the host's next life");
    assert!(next(4, (1, 1)).is_err());
}

#[test]
fn inputs_go_back_only_after_a_crash() {
    let before = player(1, 7, 10);
    assert_eq!(input_order(&before, &player(1, 7, 10)), Ok(()));
    assert!(input_order(&before, &player(1, 8, 9)).is_err());
    let recovered = Epoch(7).next_life(Epoch(1)).0;
    assert_eq!(input_order(&before, &player(1, recovered, 9)), Ok(()));
    let judge = judge();
    judge.entity_acted(Acting { player: player(1, 1, 5), ..acting(1, 0, 5, 1) });
    judge.entity_acted(Acting { player: player(1, 1, 4), ..acting(1, 0, 5, 1) });
    assert_eq!(found(&judge), Some(Invariant::InputOrder));
}

#[tokio::test(start_paused = true)]
async fn an_action_shown_twice_is_a_violation_unless_its_owner_has_crashed() {
    // Its tick is as late as the time at which it is shown.
    let show = |judge: &Judge, number| judge.shown(EntityId(1), &acts(60, number), []);
    let dead = judge();
    tokio::time::sleep(LATE * 2).await;
    show(&dead, 1);
    show(&dead, 2);
    assert_eq!(found(&dead), None);
    let recovered = Epoch(1).next_life(Epoch(1)).0;
    let at = dead.journal.now();
    dead.entity_acted(Acting { player: player(2, recovered, 0), at, ..acting(recovered, 0, 6, 2) });
    show(&dead, 2);
    assert_eq!(found(&dead), None);
    // The next owner of the region hands the region over at once: it has not acted so far.
    let handed = judge();
    tokio::time::sleep(LATE * 2).await;
    show(&handed, 2);
    let owner = Authority { epoch: Epoch(6), process: (2, 2), tick: Tick(61), at };
    handed.inner().regions.insert(RegionId(0), owner);
    show(&handed, 2);
    assert_eq!(found(&handed), None);
    let judge = judge();
    tokio::time::sleep(LATE * 2).await;
    show(&judge, 2);
    show(&judge, 2);
    assert_eq!(found(&judge), Some(Invariant::ActOrder));
}

#[test]
fn an_older_position_and_a_wrong_one_are_violations() {
    let walks = |judge: &Judge, x| {
        let mut inner = judge.inner();
        inner.trails.entry(EntityId(2)).or_default().note(Epoch(1), Pos::ground(x, 0));
    };
    let shown = |judge: &Judge, x| {
        judge.shown(EntityId(1), &frame(2), [(EntityId(2), Pos::ground(x, 0))]);
    };
    let (back, elsewhere) = (judge(), judge());
    (0..5).for_each(|x| walks(&back, x));
    [1, 2, 2, 4].into_iter().for_each(|x| shown(&back, x));
    assert_eq!(found(&back), None);
    shown(&back, 3);
    assert_eq!(found(&back), Some(Invariant::PlaceOrder));
    walks(&elsewhere, 0);
    shown(&elsewhere, 7);
    assert_eq!(found(&elsewhere), Some(Invariant::PlaceOrder));
}

/// Found by simulation: the client resumed at a process whose regions the store had granted to others without telling
/// it.
#[test]
fn an_older_position_shown_by_one_of_two_owners_is_no_violation() {
    let walked = || {
        let judge = judge();
        for x in 0..3 {
            let mut inner = judge.inner();
            inner.trails.entry(EntityId(2)).or_default().note(Epoch(1), Pos::ground(x, 0));
        }
        judge.shown(EntityId(1), &frame(2), [(EntityId(2), Pos::ground(2, 0))]);
        judge.inner().acting.get_mut(&EntityId(1)).unwrap().player.epoch = Epoch(2);
        judge
    };
    let back = |judge: &Judge| {
        let old = Frame { ack: Seq(9), ..frame(2) };
        judge.shown(EntityId(1), &old, [(EntityId(2), Pos::ground(0, 0))]);
        found(judge)
    };
    assert_eq!(back(&walked()), Some(Invariant::PlaceOrder));
    let double_granted = walked();
    double_granted.double_granted((1, 1));
    assert_eq!(back(&double_granted), None);
    assert_eq!(
        double_granted.inner().clients[&EntityId(1)].acked,
        Seq(0),
        "the crash also loses what it acknowledged"
    );
}

#[tokio::test(start_paused = true)]
async fn a_missing_action_is_a_violation_unless_its_player_was_told() {
    let show = |judge: &Judge, number| judge.shown(EntityId(1), &acts(2, number), []);
    let (quiet, told, silent, taken_over) = (judge(), judge(), judge(), judge());
    tokio::time::sleep(LATE).await;
    for judge in [&quiet, &told, &silent, &taken_over] {
        (1..=5).for_each(|number| judge.acts(EntityId(2), number));
        [1, 2].into_iter().for_each(|number| show(judge, number));
        judge.fault_lasts(LATE);
    }
    show(&quiet, 3);
    [&told, &silent, &taken_over].into_iter().for_each(|judge| show(judge, 5));
    told.unconfirmed(EntityId(2), [3, 4]);
    silent.unconfirmed(EntityId(2), [4]);
    tokio::time::sleep(EXCUSE * 2).await;
    taken_over.joined((EntityId(2), 60), ground(0), Seq(5));
    [&quiet, &told, &silent, &taken_over].into_iter().for_each(Judge::judge_missed_actions);
    assert_eq!(found(&taken_over), None, "the next client did not do it");
    assert_eq!(found(&quiet), None);
    assert_eq!(found(&told), None, "its player was told");
    assert_eq!(found(&silent), Some(Invariant::ActReceived));
}

#[tokio::test(start_paused = true)]
async fn a_resync_excuses_no_missing_action_but_a_resumed_connection_and_a_recovered_region_do() {
    let resync = |epoch: Epoch, shows: bool| {
        let two = entered(EntityId(2), Pos::ground(0, 0));
        let enters = if shows { vec![two] } else { Vec::new() };
        Frame { resync: true, enters, epoch, ..frame(2) }
    };
    let show = |judge: &Judge, frame: &Frame| {
        let shown = frame.enters.iter().map(|entered| (entered.id, Pos::ground(0, 0)));
        judge.shown(EntityId(1), frame, shown);
    };
    let next_life = Epoch(1).next_life(Epoch(1));
    let cases: [(&str, Epoch, bool, Change, bool); 4] = [
        ("lost frames", Epoch(1), true, |_| (), true),
        ("a new connection", Epoch(1), true, |judge| judge.resumed(EntityId(1)), false),
        ("a recovered region", next_life, true, |_| (), false),
        ("it was away", Epoch(1), false, |_| (), false),
    ];
    for (why, epoch, stays, change, is_violation) in cases {
        let judge = judge();
        tokio::time::sleep(LATE).await;
        judge.acts(EntityId(2), 1);
        show(&judge, &acts(2, 1));
        judge.acts(EntityId(2), 2);
        change(&judge);
        if !stays {
            show(&judge, &resync(Epoch(1), false));
        }
        tokio::time::sleep(LATE).await;
        show(&judge, &resync(epoch, true));
        judge.acts(EntityId(2), 3);
        show(&judge, &Frame { epoch, ..acts(3, 3) });
        let violation = found(&judge);
        assert_eq!(violation, is_violation.then_some(Invariant::ActReceived), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_near_player_that_is_not_shown_soon_is_a_violation_unless_it_is_excused() {
    let nobody = Frame { resync: true, ..frame(2) };
    let cases: [(&str, Change, u32, bool); 4] = [
        ("both stay near", |_| (), 6, true),
        ("for a moment", |_| (), 3, false),
        ("a link is cut", |judge| judge.fault_lasts(LATE), 6, false),
        ("it is far", |judge| judge.placed(EntityId(2), ground(5_000)), 6, false),
    ];
    for (why, change, ticks, is_violation) in cases {
        let judge = judge();
        tokio::time::sleep(EXCUSE * 2).await;
        change(&judge);
        judge.shown(EntityId(1), &nobody, []);
        tokio::time::sleep(TICK * ticks).await;
        judge.shown(EntityId(1), &frame(3), []);
        assert_eq!(found(&judge), is_violation.then_some(Invariant::ViewComplete), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_near_entity_that_leaves_a_view_is_a_violation() {
    let leave = Frame { leaves: vec![EntityId(2)], ..frame(2) };
    let tell = |judge: &Judge, frame: &Frame| judge.shown(EntityId(1), frame, []);
    let excused = judge();
    tell(&excused, &leave);
    assert_eq!(found(&excused), None, "it has just joined");
    tokio::time::sleep(EXCUSE * 2).await;
    tell(&excused, &Frame { resync: true, ..leave.clone() });
    assert_eq!(found(&excused), None, "the client receives a resync");
    tell(&excused, &leave);
    assert_eq!(found(&excused), Some(Invariant::ViewContinuity));
    let far = judge();
    tokio::time::sleep(EXCUSE * 2).await;
    far.said(EntityId(2), Seq(1), ground(9_000), false);
    tell(&far, &leave);
    assert_eq!(found(&far), None, "it goes away");
}

#[test]
fn only_the_time_without_a_checkpoint_store_counts() {
    let secs = Duration::from_secs;
    let unkept = [(secs(10), secs(14)), (secs(20), secs(30))];
    let part = |since, now| rules::overlap(&unkept, (secs(since), secs(now)));
    assert_eq!([part(0, 10), part(14, 20), part(31, 40)], [Duration::ZERO; 3]);
    assert_eq!([part(0, 40), part(12, 25), part(21, 22)], [secs(14), secs(7), secs(1)]);
}

#[test]
fn at_rest_every_entity_is_shown_to_exactly_those_near() {
    assert_eq!(judge().not_at_rest(&[RegionId(0)]), None);
    let shows = |at: &[(u64, i32)]| -> BTreeMap<EntityId, Pos> {
        at.iter().map(|(id, x)| (EntityId(*id), Pos::ground(*x, 0))).collect()
    };
    let me = (EntityId(1), ground(0));
    let lives =
        [(1, 0), (2, 3_000), (3, 4_200), (4, 9_000)].map(|(id, x)| (EntityId(id), ground(x)));
    let mut all = BTreeMap::from(lives);
    let elsewhere = |scene, plane| Floor { scene: SceneId(scene), plane: Plane(plane) };
    all.insert(EntityId(6), (elsewhere(0, 1), Pos::ground(0, 0)));
    all.insert(EntityId(7), (elsewhere(1, 0), Pos::ground(0, 0)));
    let near = |shown: &[(u64, i32)]| shown_are_near(me, &shows(shown), &all, &SCOPE);
    assert_eq!([near(&[(2, 3_000)]), near(&[(2, 3_000), (3, 4_200)])], [Ok(()), Ok(())]);
    assert!(near(&[]).is_err(), "a near entity is not shown");
    assert!(near(&[(2, 2_999)]).is_err(), "one is shown elsewhere");
    assert!(near(&[(2, 3_000), (4, 9_000)]).is_err(), "a distant entity is shown");
    assert!(near(&[(2, 3_000), (5, 0)]).is_err(), "an entity that does not exist is shown");
    assert!(near(&[(2, 3_000), (6, 0)]).is_err(), "one on another plane is shown");
    assert!(near(&[(2, 3_000), (7, 0)]).is_err(), "one in another scene is shown");
    let crowded = Scope { crowded: true, ..SCOPE };
    assert_eq!(shown_are_near(me, &shows(&[]), &all, &crowded), Ok(()), "there was no room");
}

#[test]
fn at_rest_views_are_symmetric_and_stable() {
    let all: BTreeMap<EntityId, PlacedAt> =
        [(1, 0), (2, 500), (3, 1_000), (4, 1_600)].map(|(id, x)| (EntityId(id), ground(x))).into();
    let bonded = |views: [&[u64]; 4], cap, bonds: &[[u64; 2]]| {
        let of = |view: &[u64]| -> BTreeMap<EntityId, Pos> {
            view.iter().map(|id| (EntityId(*id), all[&EntityId(*id)].1)).collect()
        };
        let views = views.map(of);
        let shown = (1..).map(EntityId).zip(views).collect();
        let is_bonded = |a: &EntityId, b: &EntityId| bonds.contains(&[a.0.min(b.0), a.0.max(b.0)]);
        views_are_stable(&shown, |_| cap, is_bonded, &all, &Scope { crowded: true, ..SCOPE })
    };
    let stable = |views, cap| bonded(views, cap, &[]);
    assert_eq!(bonded([&[4], &[3], &[2], &[1]], 1, &[[1, 4]]), Ok(()), "the bonded come first");
    assert!(bonded([&[2], &[1], &[4], &[3]], 1, &[[1, 4]]).is_err(), "1 and 4 prefer each other");
    assert_eq!(stable([&[2], &[1], &[4], &[3]], 1), Ok(()));
    assert_eq!(stable([&[], &[3], &[2], &[]], 1).map_err(|(a, b, _)| (a.0, b.0)), Err((1, 4)));
    assert_eq!(stable([&[4], &[3], &[2], &[1]], 1), Ok(()), "2 sees 3, who is as near as 1");
    assert!(stable([&[3], &[4], &[1], &[2]], 1).is_err(), "1 and 2 are a blocking pair");
    assert!(stable([&[2], &[], &[], &[]], 4).is_err(), "1 is shown 2, and not the other way round");
    assert!(stable([&[2, 3, 4], &[1, 3, 4], &[1, 2, 4], &[1, 2]], 3).is_err());
    assert_eq!(stable([&[2, 3, 4], &[1, 3, 4], &[1, 2, 4], &[1, 2, 3]], 3), Ok(()));
}

#[test]
fn a_view_above_the_cap_is_a_violation() {
    let judge = Judge::new(Journal::new(false, None), SCOPE);
    judge.joined((EntityId(1), 1), ground(0), Seq(0));
    let shown = |n: u64| (2..2 + n).map(|id| (EntityId(id), Pos::ground(0, 0)));
    judge.shown(EntityId(1), &frame(1), shown(1));
    assert_eq!(found(&judge), None);
    judge.shown(EntityId(1), &frame(2), shown(2));
    assert_eq!(found(&judge), Some(Invariant::ViewCap));
}

#[test]
fn at_rest_every_input_is_applied_and_acknowledged() {
    let judge = judge();
    judge.said(EntityId(1), Seq(1), ground(0), false);
    let (who, text) = judge.not_at_rest(&[RegionId(0)]).unwrap();
    assert_eq!(who, [EntityId(1)]);
    assert!(text.contains("has sent 1, 0 is applied"), "{text}");
    judge.acks_hold();
    assert_eq!(found(&judge), None);
    let acked = Frame { ack: Seq(1), ..frame(2) };
    judge.shown(EntityId(1), &acked, []);
    judge.acks_hold();
    assert_eq!(found(&judge), Some(Invariant::AckHolds));
}

#[test]
fn a_player_that_lingers_is_taken_over_by_a_new_login() {
    for (next, is_legal) in [(1, true), (3, false)] {
        let judge = judge();
        judge.lingers(7, EntityId(1));
        judge.returns(7, EntityId(next));
        assert_eq!(found(&judge), (!is_legal).then_some(Invariant::Lingers));
        judge.returns(7, EntityId(4));
        assert_eq!(found(&judge).is_some(), !is_legal, "it is asked once");
    }
}

/// What is wrong at rest contains this text.
fn is_restless(judge: &Judge, regions: &[RegionId], why: &str) {
    let wrong = judge.not_at_rest(regions);
    assert!(wrong.as_ref().is_some_and(|(_, text)| text.contains(why)), "{why}: {wrong:?}");
}

#[test]
fn at_rest_no_player_is_left_over_and_none_is_missing() {
    let left_over = judge();
    assert!(!left_over.is_current(EntityId(2), 1));
    left_over.gone(EntityId(2), 2);
    is_restless(&left_over, &[RegionId(0)], "has no client");
    let missing = judge();
    missing.joined((EntityId(3), 60), ground(0), Seq(0));
    is_restless(&missing, &[RegionId(0)], "acts nowhere");
    let npc = judge();
    npc.inner().npcs.insert(EntityId(9));
    is_restless(&npc, &[RegionId(0)], "NPC 9 acts");
    let beast_acts = Acting { player: player(9, 1, 0), ..acting(1, 0, 5, 1) };
    npc.entity_acted(beast_acts);
    assert_eq!(npc.not_at_rest(&[RegionId(0)]), None, "it has no client and is no player");
    let gone = judge();
    gone.set_disconnected(EntityId(1), true);
    is_restless(&gone, &[RegionId(0)], "no connection");
}

#[tokio::test(start_paused = true)]
async fn at_rest_every_region_acts() {
    let judge = judge();
    is_restless(&judge, &[RegionId(0), RegionId(7)], "region 7 does not act");
    tokio::time::sleep(FRESH * 2).await;
    is_restless(&judge, &[RegionId(0)], "does not act");
}
