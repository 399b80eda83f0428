//! A region of its own with players, for the tests of its parts.

use std::sync::Arc;

use super::Region;
use crate::scene::messages::{Input, Order, Spawn};
use crate::scene::{
    EntityHandle, EntityId, Kind, Pos, RegionId, Scene, SceneId, SceneSpec, Seq, SessionId,
};

/// A region of a scene.
pub(super) fn region(spec: SceneSpec, id: u32) -> Region {
    let scene = Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap();
    Region::new(Arc::new(scene), RegionId(id)).unwrap()
}

/// A player of the session with its number enters.
pub(super) fn enter(region: &mut Region, player: u64, pos: Pos) {
    let spawn = Spawn::new(EntityId(player), Kind::PLAYER, pos);
    let spawn = Spawn { session: Some(SessionId(player)), ..spawn };
    region.handle(Input::Enter(Box::new(spawn)), &mut Vec::new());
}

/// Its client moves it.
pub(super) fn go(region: &mut Region, player: u64, seq: Seq, to: Pos, handle: EntityHandle) {
    let (id, session, order) = (EntityId(player), SessionId(player), Order::Move(to));
    region.handle(Input::Client { id, session, seq, order, handle }, &mut Vec::new());
}
