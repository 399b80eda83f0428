//! Watching: which entities come into the radius of others, for the game's logic.
//!
//! The tick calls [`Region::watch`] when positions and ghosts are those of the tick. An entity whose kind watches has the
//! list of what is in its radius; the list goes with it to other regions and into checkpoints, so that nothing is
//! sighted twice. What does not watch costs nothing.

use std::cmp::Ordering;

use super::Region;
use super::entities::EntityStore;
use crate::scene::messages::{LogicEvent, WatchState};
use crate::scene::mutants::{self, Mutant};
use crate::scene::spec::WatchSpec;
use crate::scene::{EntityId, Plane, Pos};

/// What one entity has in its radius, in the order of ids; those of `before` stay up to the leave radius.
fn look_around(
    entities: &EntityStore,
    slot: u32,
    watches: &[WatchSpec],
    before: &[EntityId],
    now: &mut Vec<EntityId>,
) {
    now.clear();
    let me = entities.place(slot);
    let index = entities.plane_at(me.plane_ix);
    if index.plane == Plane::LIMBO {
        return;
    }
    let square = |cm: i32| (i64::from(cm) * i64::from(cm)) as u64;
    let each = watches.iter().flat_map(|watch| watch.kinds.iter().map(move |kind| (watch, kind)));
    for (watch, kind) in each {
        let Some(Some(grid)) = index.grids.get(usize::from(*kind)) else { continue };
        let (mut enter2, leave2) = (square(watch.enter_cm), square(watch.leave_cm));
        if mutants::has(Mutant::SightedFar) {
            enter2 = leave2;
        }
        let reach = Some(grid.rings_of_radius(watch.leave_cm));
        grid.near(Pos::ground(me.x, me.z), reach, leave2, |_, entry, d2| {
            let body = entities.body(entry.slot);
            if entry.slot == slot || (mutants::has(Mutant::GhostsUnwatched) && !body.is_real()) {
                return;
            }
            let (id, there) = (body.id, entities.place(entry.slot));
            let known = before.binary_search(&id).is_ok();
            if (known || d2 <= enter2) && entities.are_level(me, there, known) {
                now.push(id);
            }
        });
    }
    now.sort_unstable();
}

/// Tells the differences of two lists in the order of ids.
fn compare(before: &[EntityId], now: &[EntityId], mut tell: impl FnMut(EntityId, bool)) {
    let (mut old, mut new) = (before.iter().peekable(), now.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.cmp(b),
        };
        match order {
            Ordering::Less => old.next().into_iter().for_each(|id| tell(*id, false)),
            Ordering::Greater => new.next().into_iter().for_each(|id| tell(*id, true)),
            Ordering::Equal => drop((old.next(), new.next())),
        }
    }
}

/// How an entity of a kind with these rules watches.
fn rules<'s>(of_kind: &'s [WatchSpec], state: Option<&'s WatchState>) -> &'s [WatchSpec] {
    state.and_then(|state| state.own.as_deref()).unwrap_or(of_kind)
}

impl Region {
    /// Tells the logic what has come into the radius of entities that watch, and what has gone.
    pub(super) fn watch(&mut self) {
        let spec = &self.identity.scene().spec;
        if !self.logic.is_there() || spec.kinds.iter().all(|kind| kind.watch.is_empty()) {
            return;
        }
        let mut now = Vec::new();
        for slot in 0..self.entities.slot_count() {
            let body = self.entities.body(slot);
            let watcher = body.id;
            let of_kind = spec.kinds.get(usize::from(body.kind.0)).map_or(&[][..], |k| &k.watch);
            if !body.is_real() || of_kind.is_empty() {
                continue;
            }
            let state = self.entities.real(slot).and_then(|real| real.watch.as_deref());
            let before = state.map_or(&[][..], |state| &state.sighted);
            look_around(&self.entities, slot, rules(of_kind, state), before, &mut now);
            if *before == now[..] {
                continue;
            }
            let logic = &mut self.logic;
            compare(before, &now, |id, came| match came {
                true => logic.note(LogicEvent::Sighted { watcher, id }),
                false if mutants::has(Mutant::LostUntold) => {}
                false => logic.note(LogicEvent::Lost { watcher, id }),
            });
            if let Some(real) = self.entities.real_mut(slot) {
                let state = real.watch.get_or_insert_default();
                std::mem::swap(&mut state.sighted, &mut now);
            }
        }
    }

    /// What an entity that lives here has in its radius, in the order of ids.
    pub fn sighted_by(&self, watcher: EntityId) -> &[EntityId] {
        let real = self.entities.real_slot(watcher).and_then(|slot| self.entities.real(slot));
        real.and_then(|real| real.watch.as_deref()).map_or(&[], |state| &state.sighted)
    }

    /// How far logic lets a player that lives here see, centimetres; `None`: as far as its sight.
    pub fn sight_limit(&self, id: EntityId) -> Option<u32> {
        let real = self.entities.real_slot(id).and_then(|slot| self.entities.real(slot));
        real.and_then(|real| real.watch.as_deref()?.sight_cm)
    }

    /// Which entities that live here have which others in their radius, of all planes or of one.
    pub(super) fn all_sighted(&self, plane: Option<Plane>) -> Vec<(EntityId, EntityId)> {
        let on_it = |slot: &u32| plane.is_none_or(|p| self.entities.record(*slot).plane == p);
        let watchers = self.entities.slots().filter(on_it);
        let of = |slot: u32| {
            let id = self.entities.body(slot).id;
            let state = self.entities.real(slot).and_then(|real| real.watch.as_deref());
            state.into_iter().flat_map(move |state| state.sighted.iter().map(move |of| (id, *of)))
        };
        watchers.flat_map(of).collect()
    }

    /// An entity has come with what it watched elsewhere, or before.
    pub(super) fn restore_watch(&mut self, slot: u32, watch: Option<Box<WatchState>>) {
        if let Some(real) = self.entities.real_mut(slot) {
            real.watch = watch;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_told_in_the_order_of_ids() {
        let ids = |ids: &[u64]| ids.iter().map(|id| EntityId(*id)).collect::<Vec<_>>();
        let mut told = Vec::new();
        compare(&ids(&[1, 3, 5, 9]), &ids(&[2, 3, 9, 10]), |id, came| told.push((id.0, came)));
        assert_eq!(told, [(1, false), (2, true), (5, false), (10, true)]);
        compare(&[], &[], |_, _| panic!("nothing has changed"));
    }
}
