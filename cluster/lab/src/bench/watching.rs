//! What watching and changing properties cost: the same scene runs twice, tick by tick in turn, once without them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use purview::scene::messages::LogicEvent;
use purview::scene::region::{Commands, GameLogic};
use purview::scene::spec::WatchSpec;
use purview::scene::{EntityId, Kind, Region, SceneSpec};
use serde::Serialize;

use super::npcs::MONSTER;

const WATCH_CM: (i32, i32) = (2_000, 2_500);

pub(super) fn let_monsters_watch(spec: &mut SceneSpec) {
    let (enter_cm, leave_cm) = WATCH_CM;
    let watch = WatchSpec { kinds: vec![Kind::PLAYER.0], enter_cm, leave_cm };
    if let Some(kind) = spec.kinds.get_mut(usize::from(MONSTER.0)) {
        kind.watch = vec![watch];
    }
}

/// A game's logic that only counts what it is told.
#[derive(Debug, Default)]
struct Counting(Arc<AtomicU64>);

impl GameLogic for Counting {
    fn tick(&mut self, _: &Region, events: &[LogicEvent], _: &mut Commands) {
        let told = |event: &&LogicEvent| {
            matches!(event, LogicEvent::Sighted { .. } | LogicEvent::Lost { .. })
        };
        self.0.fetch_add(events.iter().filter(told).count() as u64, Relaxed);
    }
}

/// Gives the region the logic that counts; the count.
pub(super) fn count_events(region: &mut Region) -> Arc<AtomicU64> {
    let counting = Counting::default();
    let count = counting.0.clone();
    region.set_logic(Box::new(counting), Box::new(|| Some(EntityId(u64::MAX))));
    count
}

/// What a run costs more than the same one without watching and changes.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Added {
    /// CPU microseconds per player and tick of the run without.
    pub base_us_per_player_tick: f64,
    /// What the run costs more, percent.
    pub percent: f64,
    pub watch_events_per_s: f64,
    /// Bytes of frames per change and viewer that is told it; 0 without changes.
    pub bytes_per_change: f64,
}
