//! Links between ghosts, as their owners tell them: with a margin, or a range that is left later than it is entered, what
//! two players agree on in a tick depends on whether they were linked before.
//!
//! Each owner tells what has changed in the lists of the players that it mirrors: of two players the owner of the lower
//! id tells, and all links of a player that is mirrored anew. Nothing but predictions depends on them, so a region that is
//! told too little, or late, negotiates more.

use super::prediction::{Part, Players};
use super::{ViewEngine, Viewer, range_query};
use crate::scene::messages::{BorderBatch, GhostLinks};
use crate::scene::region::entities::{EntityStore, Renumbering};
use crate::scene::views::ViewRules;
use crate::scene::views::matcher::Matcher;
use crate::scene::{EntityId, Kind, RegionId, Scene};

/// In one of so many passes the list of a ghost that is not predicted is looked through.
const TURNS: u32 = 8;

/// The links between ghosts that are known here.
#[derive(Debug, Default)]
pub struct KnownLinks {
    /// By slot: the slots of ghosts that the ghost there is linked with. Each of two has the other.
    lists: Vec<Vec<u32>>,
    /// Counts the passes.
    turn: u32,
}

impl KnownLinks {
    /// A ghost's owner tells of its links.
    pub fn note(&mut self, slot: u32, told: &GhostLinks, entities: &EntityStore) {
        if told.all {
            self.forget(slot);
        }
        let ghosts = |ids: &[EntityId]| -> Vec<u32> {
            let known = ids.iter().filter_map(|id| entities.slot(*id));
            known.filter(|other| *other != slot && entities.ghost(*other).is_some()).collect()
        };
        for other in ghosts(&told.ended) {
            self.list(slot).retain(|with| *with != other);
            self.list(other).retain(|with| *with != slot);
        }
        for other in ghosts(&told.linked) {
            for (of, with) in [(slot, other), (other, slot)] {
                let list = self.list(of);
                if !list.contains(&with) {
                    list.push(with);
                }
            }
        }
    }

    fn list(&mut self, slot: u32) -> &mut Vec<u32> {
        let ix = slot as usize;
        if ix >= self.lists.len() {
            self.lists.resize_with(ix + 1, Vec::new);
        }
        &mut self.lists[ix]
    }

    fn forget(&mut self, slot: u32) {
        for other in std::mem::take(self.list(slot)) {
            self.list(other).retain(|with| *with != slot);
        }
    }

    /// Slots are numbered anew.
    pub fn renumber(&mut self, new: &Renumbering) {
        let before = std::mem::take(&mut self.lists);
        for (mut slot, mut list) in (0..).zip(before).filter(|(_, list)| !list.is_empty()) {
            new.apply(&mut slot);
            list.iter_mut().for_each(|with| new.apply(with));
            *self.list(slot) = list;
        }
    }

    /// Tells the matcher of the links of predicted ghosts. Those of players that are no ghosts of this plane any more, or
    /// out of range of each other, are forgotten in time.
    pub fn tell(
        &mut self,
        players: Players<'_>,
        matcher: &mut Matcher,
        entities: &EntityStore,
        scene: &Scene,
        rules: &ViewRules,
    ) {
        let vis = &scene.spec.visibility;
        self.turn = self.turn.wrapping_add(1);
        for (ix, slot) in (0..).zip(players.slots.iter().copied()) {
            let is_predicted = players.part(ix) == Part::Predicted;
            let Some(list) = self.lists.get_mut(slot as usize).filter(|list| !list.is_empty())
            else {
                continue;
            };
            if players.part(ix) == Part::Real {
                list.clear();
            }
            if !is_predicted && !slot.wrapping_add(self.turn).is_multiple_of(TURNS) {
                continue;
            }
            list.retain(|with| {
                let Some(other) = players.ghost(*with) else { return false };
                let Some(now) = range_query::of_slots(entities, vis, rules, (slot, *with), true)
                else {
                    return false;
                };
                let is_other_told = slot > *with && players.part(other) == Part::Predicted;
                if is_predicted && !is_other_told {
                    matcher.presume((ix, other), rules.rank(now.class, now.dist_cm, true));
                }
                true
            });
        }
    }
}

impl ViewEngine {
    /// A neighbour tells of the links of a player that it owns.
    pub fn note_links(&mut self, from: RegionId, told: &GhostLinks, entities: &EntityStore) {
        let owned = |slot: &u32| entities.ghost(*slot).is_some_and(|ghost| ghost.owner == from);
        if let Some(slot) = entities.slot(told.id).filter(owned) {
            self.matching.note_links(slot, told, entities);
        }
    }

    /// Puts into the batches for neighbours the links of players that are mirrored to them: all of those that the batch
    /// mirrors anew, and what has changed of the others. To be called before any message of the tick is handled. `to` has
    /// for each batch the neighbour, and the bit of [`Real::mirrors`] that stands for it.
    ///
    /// [`Real::mirrors`]: crate::scene::region::entities::Real::mirrors
    pub fn tell_links(
        &self,
        to: &[(RegionId, u32)],
        entities: &EntityStore,
        batches: &mut [BorderBatch],
    ) {
        let mut new = Vec::new();
        for ((region, bit), batch) in to.iter().zip(batches.iter_mut()) {
            for ghost in batch.enters.iter().filter(|ghost| ghost.kind == Kind::PLAYER) {
                let Some(slot) = entities.slot(ghost.id) else { continue };
                if let Some(viewer) = self.of(entities, slot) {
                    batch.links.push(all_links(viewer, *region, entities));
                    new.push((slot, *bit));
                }
            }
        }
        new.sort_unstable();
        let mut changes = Vec::new();
        for viewer in self.viewers.iter().filter(|viewer| viewer.registers.has_stirred()) {
            let mirrors = entities.real(viewer.slot).map_or(0, |real| real.mirrors);
            if mirrors == 0 {
                continue;
            }
            changed_links(viewer, entities, &mut changes);
            for ((region, bit), batch) in to.iter().zip(batches.iter_mut()) {
                let is_old = || new.binary_search(&(viewer.slot, *bit)).is_err();
                if mirrors >> bit & 1 == 1 && !changes.is_empty() && is_old() {
                    batch.links.extend(links_for(viewer.registers.me, *region, &changes));
                }
            }
        }
    }
}

/// A link that has changed: the other player, the region that owns it if that is another one, and whether the two are
/// linked now.
type Changed = (EntityId, Option<RegionId>, bool);

/// All links of a player, but those with players of the region that is told.
fn all_links(viewer: &Viewer, to: RegionId, entities: &EntityStore) -> GhostLinks {
    let entries = viewer.registers.entries().filter(|(_, peer)| peer.linked());
    let ids = entries.map(|(yes_ids, _)| yes_ids.id);
    let linked = ids.filter(|id| owner(*id, entities) != Some(to)).collect();
    GhostLinks { id: viewer.registers.me, all: true, linked, ended: Vec::new() }
}

/// What has changed since the last tick began in the links of a player with those of higher ids.
fn changed_links(viewer: &Viewer, entities: &EntityStore, changes: &mut Vec<Changed>) {
    changes.clear();
    let (peers, yes_ids) = (viewer.registers.peers(), viewer.registers.yes_ids());
    for (ix, peer) in peers.iter().enumerate().filter(|(_, peer)| peer.linked() != peer.kept()) {
        let id = yes_ids[ix].id;
        if id > viewer.registers.me {
            let is_there = entities.is_at(peer.slot, id);
            let slot = if is_there { Some(peer.slot) } else { entities.slot(id) };
            let ghost = slot.and_then(|slot| entities.ghost(slot));
            changes.push((id, ghost.map(|ghost| ghost.owner), peer.linked()));
        }
    }
}

/// What a region is told of these changes; nothing of links with its own players.
fn links_for(id: EntityId, to: RegionId, changes: &[Changed]) -> Option<GhostLinks> {
    let of = |is_linked: bool| -> Vec<EntityId> {
        let told = changes.iter().filter(|(_, owner, now)| *owner != Some(to) && *now == is_linked);
        told.map(|(other, ..)| *other).collect()
    };
    let (linked, ended) = (of(true), of(false));
    let any = !linked.is_empty() || !ended.is_empty();
    any.then_some(GhostLinks { id, all: false, linked, ended })
}

/// The region that owns a ghost.
fn owner(id: EntityId, entities: &EntityStore) -> Option<RegionId> {
    entities.ghost(entities.slot(id)?).map(|ghost| ghost.owner)
}
