//! Questions about a world: pairs as the last tick left them, and entities as they are now.

use super::classes::NOBODY;
use super::{Engine, KindSet, Position, View, World, view_of};
use crate::scene::{Pos, Rect};

/// A part of the ground.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// The positions in a rectangle.
    Rect(Rect),
    /// The positions at a distance from a centre, or nearer.
    Circle {
        /// The centre.
        centre: Pos,
        /// The distance on the ground, centimetres.
        radius_cm: u32,
    },
}

impl Area {
    fn has(&self, pos: Pos) -> bool {
        match *self {
            Area::Rect(rect) => rect.contains(pos),
            Area::Circle { centre, radius_cm } => {
                centre.dist2(pos) <= u64::from(radius_cm) * u64::from(radius_cm)
            }
        }
    }

    fn centre(&self) -> Pos {
        let middle = |a: i32, b: i32| ((i64::from(a) + i64::from(b)) / 2) as i32;
        match *self {
            Area::Rect(r) => Pos::ground(middle(r.x0, r.x1), middle(r.z0, r.z1)),
            Area::Circle { centre, .. } => centre,
        }
    }
}

/// Which entities are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Where.
    pub area: Area,
    /// Of these kinds.
    pub kinds: KindSet,
    /// In this plane; `None`: in any.
    pub plane: Option<i32>,
    /// At most so many, those nearest to the centre of the area, nearest first; `None`: all, by
    /// ascending ids.
    pub nearest: Option<usize>,
}

impl World {
    fn view(&self) -> View<'_> {
        let population = self.slots.len();
        view_of(&self.states, &self.ids, &self.classes, &*self.workers, population)
    }

    /// Those whom an entity saw when the last tick ended, by ascending ids; `None`: no entity has
    /// the id. A subject that was deleted since is among them until the tick ends.
    pub fn sees(&self, observer: u64) -> Option<Vec<u64>> {
        self.slots.get(observer).map(|slot| self.seen_ids(slot, false))
    }

    /// Those who saw an entity when the last tick ended, by ascending ids; `None`: no entity has the
    /// id.
    pub fn seen_by(&self, subject: u64) -> Option<Vec<u64>> {
        self.slots.get(subject).map(|slot| self.seen_ids(slot, true))
    }

    fn seen_ids(&self, slot: u32, by: bool) -> Vec<u64> {
        let mut found = Vec::new();
        match &self.engine {
            Engine::Rings(e) => e.seen(self.view(), slot, by, &mut found),
            Engine::Clusters(e) => e.seen(self.view(), slot, by, &mut found),
        }
        if let Some(lists) = &self.lists {
            found.extend_from_slice(lists.of_slot(slot));
        }
        let mut ids: Vec<u64> = found.into_iter().map(|slot| self.ids[slot as usize]).collect();
        ids.sort_unstable();
        ids
    }

    /// Adds the pairs of the observer after the first `from` ones, by ascending ids; returns where
    /// the next observer is, or `None` after the last one. All together are the pairs when the last
    /// tick ended.
    pub fn pairs_from(&self, from: usize, pairs: &mut Vec<(u64, u64)>) -> Option<usize> {
        let (id, slot) = *self.ranks.order().get(from)?;
        // Another entity may have the slot since: it has no pairs yet.
        if self.ids[slot as usize] == id {
            pairs.extend(self.seen_ids(slot, false).into_iter().map(|subject| (id, subject)));
        }
        Some(from + 1)
    }

    /// Entities in a place, as they are now.
    pub fn find(&self, place: &Place) -> Vec<Position> {
        let here = self.states.iter().zip(&self.ids).filter(|(state, _)| {
            state.class != NOBODY
                && place.plane.is_none_or(|plane| plane == state.plane)
                && place.area.has(state.pos)
                && place.kinds.has(self.classes.of(state.class).0)
        });
        let mut found: Vec<_> =
            here.map(|(state, id)| Position { id: *id, pos: state.pos }).collect();
        let Some(most) = place.nearest else {
            found.sort_unstable_by_key(|one| one.id);
            return found;
        };
        let centre = place.area.centre();
        let order = |one: &Position| (centre.dist2(one.pos), one.id);
        if most < found.len() {
            found.select_nth_unstable_by_key(most, order);
            found.truncate(most);
        }
        found.sort_unstable_by_key(order);
        found
    }
}
