//! Repairs within a tick: what other regions say changes lists and thresholds, and the matcher brings the lists to what
//! is stable then.
//!
//! So players of one region never ask one another, and are never asked in vain. Only a player and a ghost negotiate: what
//! a repair has found for the two is said across the border, and answered there.

use super::ViewEngine;
use super::matching::{Matching, PlaneMatching};
use super::prediction::Part;
use super::registered::{Registered, index_of};
use crate::scene::Scene;
use crate::scene::region::entities::EntityStore;
use crate::scene::views::Key;

/// Repairs in a row after which what is left waits for the next tick. They end by themselves: only a NO that a message
/// has overtaken makes another one necessary.
const MAX_REPAIRS: usize = 64;

/// What a repair goes out from.
struct Changes {
    /// Slots of players whose registers, or thresholds, have changed, and their least thresholds since.
    changed: Vec<(u32, Key)>,
    /// A player, a ghost that may take it now, and the rank of the two.
    proposed: Vec<(u32, u32, u64)>,
}

impl ViewEngine {
    /// Repairs the lists, while the positions are those of the pass. Later, the next pass looks at all players.
    pub(super) fn repair(&mut self, entities: &mut EntityStore, scene: &Scene) {
        let vis = &scene.spec.visibility;
        for _ in 0..MAX_REPAIRS {
            if !self.still || (self.queue.dirty.is_empty() && self.queue.proposed.is_empty()) {
                return;
            }
            let changes = self.take_changes(entities);
            let mut matching = std::mem::take(&mut self.matching);
            let mut planes = matching.take_planes();
            for plane in &mut planes {
                if let Some(changed) = plane.tell(&changes, &mut matching, self, entities) {
                    let read = (&*self, &*entities);
                    plane.with_pairs(&matching.indices, read, vis, |m, pairs| m.repair(pairs));
                    self.commit_repair(plane, changed, entities, scene);
                }
            }
            matching.put_back(planes);
            self.matching = matching;
        }
    }

    /// What has changed since the pass, or since the last repair.
    fn take_changes(&mut self, entities: &EntityStore) -> Changes {
        let mut changed = std::mem::take(&mut self.queue.changed);
        for slot in std::mem::take(&mut self.queue.dirty) {
            if let Some(viewer) = self.of_mut(entities, slot) {
                viewer.dirty = false;
            }
            changed.push((slot, Key::WORST));
        }
        changed.sort_unstable();
        changed.dedup_by_key(|(slot, _)| *slot);
        Changes { changed, proposed: std::mem::take(&mut self.queue.proposed) }
    }
}

impl PlaneMatching {
    /// Tells the matcher what has changed. Gives the players of this region whose lists were read again; `None` if
    /// nothing has changed in this plane.
    fn tell(
        &mut self,
        changes: &Changes,
        matching: &mut Matching,
        views: &ViewEngine,
        entities: &EntityStore,
    ) -> Option<Vec<u32>> {
        self.end_predictions(entities);
        self.matcher.begin_repair();
        let changed = self.indices_of(&changes.changed, &matching.indices);
        let proposed = changes.proposed.iter().filter_map(|(player, ghost, rank)| {
            let ghost = index_of(&self.slots, &matching.indices, *ghost)?;
            Some((index_of(&self.slots, &matching.indices, *player)?, ghost, *rank))
        });
        let proposed: Vec<_> = proposed.collect();
        if changed.is_empty() && proposed.is_empty() {
            return None;
        }
        let lives_here =
            |(ix, _): &(u32, Key)| views.of(entities, self.slots[*ix as usize]).is_some();
        let (here, elsewhere): (Vec<_>, Vec<_>) = changed.into_iter().partition(lives_here);
        for (ix, _) in elsewhere {
            // A ghost accepts others than before, or a player lives here no more.
            self.parts[ix as usize] = Part::Ghost;
            self.matcher.accept_up_to(ix, accepts(self.slots[ix as usize], entities));
        }
        here.iter().for_each(|(ix, _)| self.parts[*ix as usize] = Part::Real);
        self.read_again(&here, matching, views, entities);
        for (player, ghost, rank) in proposed {
            self.matcher.propose(player, ghost, rank);
        }
        Some(here.into_iter().map(|(ix, _)| ix).collect())
    }

    /// The indices of those of these players, by slot, that are of this plane.
    fn indices_of(&self, players: &[(u32, Key)], indices: &[u32]) -> Vec<(u32, Key)> {
        let index = |slot: u32| index_of(&self.slots, indices, slot);
        players.iter().filter_map(|(slot, least)| Some((index(*slot)?, *least))).collect()
    }

    /// Tells the matcher what the registers of some players of this region say.
    fn read_again(
        &mut self,
        players: &[(u32, Key)],
        matching: &mut Matching,
        views: &ViewEngine,
        entities: &EntityStore,
    ) {
        let Matching { indices, list, .. } = matching;
        let PlaneMatching { matcher, slots, parts, .. } = self;
        let reader = Registered { views, entities, slots, indices, parts, predicts: false };
        for (ix, least) in players.iter().copied() {
            reader.read_again(ix, |ghost| matcher.has(ix, ghost), list);
            matcher.relist(ix, least, list.drain(..));
        }
    }

    /// From the first repair on ghosts accept what their thresholds say, and any player may know any other.
    fn end_predictions(&mut self, entities: &EntityStore) {
        for (ix, part) in (0..).zip(&mut self.parts) {
            if *part == Part::Predicted {
                *part = Part::Ghost;
                self.matcher.accept_up_to(ix, accepts(self.slots[ix as usize], entities));
            }
        }
        self.knows_others.fill(true);
    }
}

/// The rank up to which the ghost at a slot accepts a pair.
fn accepts(slot: u32, entities: &EntityStore) -> u64 {
    if entities.is_free(slot) { 0 } else { entities.body(slot).threshold }
}
