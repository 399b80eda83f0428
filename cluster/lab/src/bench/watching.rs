//! Monsters that watch players, for a game's logic that does nothing.

use purview::scene::messages::LogicEvent;
use purview::scene::region::{Commands, GameLogic};
use purview::scene::spec::WatchSpec;
use purview::scene::{EntityId, Kind, Region, SceneSpec};

use super::npcs::MONSTER;

const WATCH_CM: (i32, i32) = (2_000, 2_500);

pub(super) fn let_monsters_watch(spec: &mut SceneSpec) {
    let (enter_cm, leave_cm) = WATCH_CM;
    let watch = WatchSpec { kinds: vec![Kind::PLAYER.0], enter_cm, leave_cm };
    if let Some(kind) = spec.kinds.get_mut(usize::from(MONSTER.0)) {
        kind.watch = vec![watch];
    }
}

#[derive(Debug)]
struct Idle;

impl GameLogic for Idle {
    fn tick(&mut self, _: &Region, _: &[LogicEvent], _: &mut Commands) {}
}

/// Gives the region a logic that is told what monsters see.
pub(super) fn tell_of_players(region: &mut Region) {
    region.set_logic(Box::new(Idle), Box::new(|| Some(EntityId(u64::MAX))));
}
