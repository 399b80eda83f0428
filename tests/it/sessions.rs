//! A region takes what a session says of a player only from the session that has the player.

use purview::scene::messages::{Claim, Input, Order, Spawn};
use purview::scene::{
    EntityId, Epoch, Kind, Pos, Region, RegionId, Scene, SceneId, SceneSpec, SessionId, Tick,
    Visibility,
};

use crate::support::alone::{enter, ordered};
use crate::support::small_scene;

const PLAYER: EntityId = EntityId(1);
const STATUE: EntityId = EntityId(2);
const OWN: SessionId = SessionId(5);
const OTHER: SessionId = SessionId(6);

/// A region with a player of a session, and an entity without a client.
fn region() -> Region {
    let spec = SceneSpec { visibility: Visibility::All, ..small_scene((1, 1), 6_400, 400) };
    let scene = Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap();
    let mut region = Region::new(scene.into(), RegionId(0)).unwrap();
    for (id, session) in [(PLAYER, Some(OWN)), (STATUE, None)] {
        let spawn = Spawn { session, ..Spawn::new(id, Kind::PLAYER, Pos::ground(100, 100)) };
        region.handle(Input::Enter(Box::new(spawn)), &mut Vec::new());
    }
    region.tick(Tick(1), &mut Vec::new());
    region
}

fn walk(session: SessionId) -> Input {
    ordered(PLAYER, session, 1, Order::Move(Pos::ground(200, 100)))
}

#[test]
fn what_another_session_says_of_a_player_changes_nothing() {
    let mut region = region();
    let claim = Claim { id: PLAYER, epoch: Epoch(1 << 45), region: RegionId(7) };
    let said = [
        walk(OTHER),
        Input::Hold { id: PLAYER, session: OTHER },
        Input::Elsewhere { claim, session: OTHER, subject: Default::default() },
        Input::Disconnected { id: PLAYER, session: OTHER, ms: 1 },
        Input::Disconnected { id: PLAYER, session: OTHER, ms: 0 },
        Input::Disconnected { id: STATUE, session: OTHER, ms: 0 },
    ];
    for (tick, input) in (2..).zip(said) {
        let (text, mut fx) = (format!("{input:?}"), Vec::new());
        region.handle(input, &mut fx);
        region.tick(Tick(tick), &mut fx);
        let found = region.find(PLAYER).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(found.pos.x, 100, "{text}");
        assert!(region.find(STATUE).is_some(), "{text}");
    }
    region.handle(walk(OWN), &mut Vec::new());
    region.tick(Tick(20), &mut Vec::new());
    assert_eq!(region.find(PLAYER).map(|found| found.pos.x), Some(200));
    region.handle(Input::Disconnected { id: PLAYER, session: OWN, ms: 0 }, &mut Vec::new());
    region.tick(Tick(21), &mut Vec::new());
    assert!(region.find(PLAYER).is_none() && region.find(STATUE).is_some());
}

#[test]
fn a_session_takes_back_only_its_own_player_before_it_has_entered() {
    let mut region = region();
    region.handle(enter(EntityId(9), OWN, Pos::ground(100, 100)), &mut Vec::new());
    let leave = |session| Input::Disconnected { id: EntityId(9), session, ms: 0 };
    region.handle(leave(OTHER), &mut Vec::new());
    region.tick(Tick(2), &mut Vec::new());
    assert!(region.find(EntityId(9)).is_some(), "another session's leave");
    region.handle(leave(OWN), &mut Vec::new());
    region.tick(Tick(3), &mut Vec::new());
    assert!(region.find(EntityId(9)).is_none());
}
