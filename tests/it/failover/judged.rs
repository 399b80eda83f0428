//! Players whose moves are judged, in regions that go on from checkpoints.

use purview::scene::messages::RouteNotice;
use purview::scene::movement::{Move, Own, ServerMs, Trajectory, Vector};
use purview::scene::region::RegionSnapshot;
use purview::scene::spec::{MoveSpec, Moves};

use super::*;

/// A world with a judged player in region 0, and a checkpoint of the region.
fn a_judged_player() -> (World, SessionId, RegionSnapshot) {
    let moves = MoveSpec { mode: Moves::Judged, ..MoveSpec::default() };
    let spec = SceneSpec { moves, top_speed_cm_s: 600, ..scene(Visibility::Patches, 60) };
    let mut w = World::new(spec, 1);
    let a = w.join(Plane(0), Pos::ground(3_000, 500), RangeSet::FULL);
    w.steps(3);
    let kept = w.regions[0].checkpoint().expect("a closed tick");
    (w, a, kept)
}

/// With judged moves, a player stands where its trajectory had come to when its session last heard
/// of it, and its correction is newer than any that its client knows.
#[test]
fn a_judged_player_stands_where_its_trajectory_had_come_to() {
    let (w, a, kept) = a_judged_player();
    let (id, tick) = (w.clients[&a].entity, w.tick);
    let own = w.clients[&a].own.expect("the client was told its own movement");
    let trajectory = Vector::heading(Pos::ground(2_400, 500), 1, 0, 500);
    let start = ServerMs((tick.0 + 1) * 100);
    let trajectory = Trajectory { motion: Move::Vector(trajectory), start, lasts_ms: u32::MAX };
    let known = Presented {
        own: Some((tick.next(), Box::new(Own { correction: 7, trajectory, ..own }))),
        facing: Facing::SOUTH,
        properties: Properties::with_appearance(b"look").unwrap(),
        ..presented_by(a, id, Pos::ground(3_000, 500), Tick(tick.0 + 11))
    };
    let (mut region, mut fx) = recover(&w.scene, kept, &[], 10);
    fx.clear();
    region.handle(Input::Present(Box::new(known)), &mut fx);
    region.tick(Tick(tick.0 + 40), &mut fx);
    let Some(Effect::Notice(_, Notice::Route(RouteNotice { own: Some(own), pos, .. }))) =
        fx.first()
    else {
        panic!("{fx:?}");
    };
    // A second of walking at 5 m/s.
    assert_eq!((*pos, own.correction), (Pos::ground(2_900, 500), 8));
    assert!(own.trajectory.motion.is_standing());
}

/// Found by simulation: the session and the region of a player died together. The region had the player where its
/// checkpoint had it, under a correction that its client had followed before, so that the client stayed elsewhere.
#[test]
fn a_judged_player_that_only_a_checkpoint_knows_gets_a_correction_that_is_new_to_its_client() {
    let (mut w, a, kept) = a_judged_player();
    let (id, tick) = (w.clients[&a].entity, w.tick.0);
    for x in [2_000, 2_100, 2_200] {
        w.tell(DEAD, order_of(id, Order::Move(Pos::ground(x, 500))));
        w.step();
    }
    let followed = w.clients[&a].own.as_ref().map(|own| own.correction);
    let goes_on = |epoch: Epoch| {
        let how = Recovery { ask: Vec::new(), grace_ticks: 300, owners: Vec::new() };
        let (scene, session, mut fx) = (w.scene.clone(), SessionId(99), Vec::new());
        let region = Region::recover(scene, DEAD, epoch, kept.clone(), how, &mut fx);
        let mut region = region.expect("it fits");
        (tick + 10..tick + 30).for_each(|n| region.tick(Tick(n), &mut fx));
        region.handle(Input::Resume(resume_of(session, id, DEAD, 1)), &mut fx);
        (tick + 30..tick + 40).for_each(|n| region.tick(Tick(n), &mut fx));
        let resumed = notices_for(session, &fx).into_iter().find_map(|notice| match notice {
            Notice::Resumed(resumed) => Some((resumed.pos, resumed.own?.correction)),
            _ => None,
        });
        resumed.expect("the session has the player")
    };
    let (pos, first) = goes_on(Epoch(9));
    assert_eq!(pos, Pos::ground(3_000, 500));
    assert!(followed.is_some_and(|followed| followed < first), "{first} after {followed:?}");
    // The store has lost all later checkpoints.
    let (_, second) = goes_on(Epoch(10));
    assert!(first < second, "{second} after {first}");
}
