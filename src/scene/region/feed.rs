//! What has changed since a tick, for logic that does not read the region itself: positions and properties.
//!
//! These are levels: whoever is told late, or twice, ends with the same.

use rustc_hash::FxHashSet;

use super::Region;
use crate::scene::properties::Level;
use crate::scene::{EntityId, Pos, Tick, TickStamp};

/// Of which entities positions are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Followed {
    /// Those that have sighted something, and what they have sighted.
    #[default]
    Watched,
    /// All that live here, and what they have sighted.
    All,
    /// None.
    Nothing,
}

/// What has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed<'a> {
    /// An entity, which may be a ghost, is elsewhere.
    Place(EntityId, Pos),
    /// A property of an entity that lives here has another value.
    Property(EntityId, &'a Level),
}

impl Region {
    /// Tells what has changed in tick `since` and later, each entity's place at most once.
    pub fn changes(&self, since: Tick, followed: Followed, mut tell: impl FnMut(Changed<'_>)) {
        let since = TickStamp::of(since);
        let is_new = |stamp: TickStamp| !since.is_after(stamp);
        let mut others: FxHashSet<u32> = FxHashSet::default();
        for slot in 0..self.entities.slot_count() {
            let body = self.entities.body(slot);
            if !body.is_real() {
                continue;
            }
            if is_new(body.properties) {
                let levels = self.entities.record(slot).properties.levels().iter();
                let new = levels.filter(|level| is_new(level.changed));
                new.for_each(|level| tell(Changed::Property(body.id, level)));
            }
            if followed == Followed::Nothing {
                continue;
            }
            let sighted = self.entities.real(slot).and_then(|real| real.watch.as_deref());
            let sighted = sighted.map_or(&[][..], |state| &state.sighted);
            let own = followed == Followed::All || !sighted.is_empty();
            if own && self.has_moved(slot, since) {
                tell(Changed::Place(body.id, body.pos));
            }
            others.extend(sighted.iter().filter_map(|id| self.entities.slot(*id)));
        }
        let mut others: Vec<u32> = others.into_iter().collect();
        others.sort_unstable();
        for slot in others {
            let body = self.entities.body(slot);
            let was_told = body.is_real() && {
                let watch = self.entities.real(slot).and_then(|real| real.watch.as_deref());
                followed == Followed::All || watch.is_some_and(|state| !state.sighted.is_empty())
            };
            if !was_told && self.has_moved(slot, since) {
                tell(Changed::Place(body.id, body.pos));
            }
        }
    }

    fn has_moved(&self, slot: u32, since: TickStamp) -> bool {
        let changed = self.entities.body(slot).changed;
        !since.is_after(changed) || self.entities.moving(slot).is_some()
    }
}
