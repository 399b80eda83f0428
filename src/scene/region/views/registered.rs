//! What the registers of the players of a plane say, as the matcher reads it.

use super::prediction::Part;
use super::{ViewEngine, Viewer, range_query};
use crate::scene::prefetch;
use crate::scene::region::entities::{EntityStore, NO_SLOT, TAG_BONDED};
use crate::scene::views::matcher::ListWriter;
use crate::scene::views::{Key, Peer};
use crate::scene::{Kind, Visibility};

/// What was found in the registers of some players beside their links.
#[derive(Debug, Default)]
pub struct FoundPart {
    /// Players that know peers which are not in their lists: no YES of their own stands, or there was no room.
    pub(super) knows_others: Vec<u32>,
    /// Pairs that were displaced and may still be in range, with their ranks.
    pub(super) displaced: Vec<(u32, u32, u64)>,
    /// Ghosts whose lists are predicted, and the players that they are linked with.
    pub(super) of_ghosts: Vec<(u32, u32, u64)>,
}

/// The registers of the players of a plane.
#[derive(Clone, Copy)]
pub struct Registered<'a> {
    pub(super) views: &'a ViewEngine,
    pub(super) entities: &'a EntityStore,
    pub(super) slots: &'a [u32],
    pub(super) indices: &'a [u32],
    pub(super) parts: &'a [Part],
    /// Whether the list of any ghost is predicted.
    pub(super) predicts: bool,
}

impl Registered<'_> {
    /// Reads the registers of a player: its links and requests into its list, others into `found`.
    #[inline]
    pub(super) fn read(&self, ix: u32, found: &mut FoundPart, list: &mut ListWriter<'_>) {
        let Registered { views, entities, slots, indices, parts, predicts } = *self;
        if let Some(next) = slots.get(ix as usize + prefetch::PLAYERS) {
            views.of(entities, *next).inspect(|v| prefetch::fetch(v.registers.peers()));
        }
        let Some(viewer) = views.of(entities, slots[ix as usize]) else { return };
        let (rules, registers) = (&views.rules, &viewer.registers);
        let entry = |p: &Peer| (indices[p.slot as usize], rules.rank(p.class, p.dist_cm, p.kept()));
        let said = registers.peers().iter().filter(|p| p.said()).map(entry);
        if registers.standing() <= registers.cap(rules) {
            list.link(said);
        } else {
            // More were asked than there is room for.
            let mut all: Vec<_> = said.collect();
            all.sort_unstable_by_key(|(_, rank)| *rank);
            list.link(all.into_iter());
        }
        let predicted = |p: &Peer| parts[indices[p.slot as usize] as usize] == Part::Predicted;
        if predicts {
            let of_ghosts = registers.peers().iter().filter(|p| p.said() && predicted(p));
            found.of_ghosts.extend(of_ghosts.map(entry).map(|(ghost, rank)| (ghost, ix, rank)));
        }
        if registers.peers().len() > registers.standing()
            || registers.standing() > registers.cap(rules)
        {
            found.knows_others.push(ix);
            let displaced = registers.peers().iter().filter(|p| self.is_displaced(p, predicted(p)));
            found.displaced.extend(displaced.map(entry).map(|(with, rank)| (ix, with, rank)));
        }
    }

    /// Whether a peer gave way since the last frame: it is still in range up to the leave radius.
    fn is_displaced(&self, p: &Peer, is_predicted: bool) -> bool {
        let counts = (p.shown() || p.kept()) && !p.said();
        counts && (is_predicted || !is_owed(p.their_turn(), p.slot, self.entities))
    }

    /// The same of a player whose registers have changed since the pass. `expects` says of a ghost whether a place is
    /// kept for its YES.
    pub(super) fn read_again(
        &self,
        ix: u32,
        expects: impl Fn(u32) -> bool,
        list: &mut Vec<(u32, u64)>,
    ) {
        let Some(viewer) = self.views.of(self.entities, self.slots[ix as usize]) else { return };
        for (peer, with, rank) in self.peers(viewer) {
            let may_come =
                viewer.expecting.is_some() && is_owed(peer.their_turn(), peer.slot, self.entities);
            let keeps_place = || may_come && expects(with);
            if peer.said() || keeps_place() {
                list.push((with, rank));
            }
        }
        if list.len() > viewer.registers.cap(&self.views.rules) {
            let id = |ix: u32| self.entities.body(self.slots[ix as usize]).id;
            list.sort_unstable_by_key(|(with, rank)| Key::of(*rank, id(ix), id(*with)));
        }
    }

    /// The peers of a player that gave way since the last frame, with the ranks of their pairs.
    pub(super) fn displaced(&self, ix: u32, found: &mut Vec<(u32, u64)>) {
        let Some(viewer) = self.views.of(self.entities, self.slots[ix as usize]) else { return };
        let displaced = self.peers(viewer).filter(|(peer, ..)| self.is_displaced(peer, false));
        found.extend(displaced.map(|(_, with, rank)| (with, rank)));
    }

    /// The peers of a player that were here in the pass, with their indices and the ranks of the pairs.
    fn peers(&self, viewer: &Viewer) -> impl Iterator<Item = (Peer, u32, u64)> {
        let rank = |p: &Peer| self.views.rules.rank(p.class, p.dist_cm, p.kept());
        let peers = viewer.registers.peers().iter();
        peers.filter_map(move |p| Some((*p, self.index_of(p.slot)?, rank(p))))
    }

    /// The index of the player at a slot, if it was one of these players in the pass.
    fn index_of(&self, slot: u32) -> Option<u32> {
        index_of(self.slots, self.indices, slot)
    }

    /// Companions, who may see each other from farther, with the ranks of their pairs.
    pub(super) fn companions(&self, ix: u32, vis: &Visibility, found: &mut Vec<(u32, u64)>) {
        let (rules, slot, entities) = (&self.views.rules, self.slots[ix as usize], self.entities);
        if entities.place(slot).tag & TAG_BONDED == 0 {
            return;
        }
        let Some(viewer) = self.views.of(entities, slot) else { return };
        let mut companions = Vec::new();
        entities.companions(slot, &mut companions);
        for other in companions {
            let (me, there) = (entities.place(slot), entities.place(other));
            let here = entities.body(other).kind == Kind::PLAYER && me.plane_ix == there.plane_ix;
            let Some(with) = self.index_of(other).filter(|_| here) else { continue };
            if is_settled(viewer, other, entities) {
                continue;
            }
            if let Some(now) = range_query::of_slots(entities, vis, rules, (slot, other), false) {
                found.push((with, rules.rank(now.class, now.dist_cm, false)));
            }
        }
    }
}

/// Whether a peer is a ghost that owes the next YES: it is not asked. Of a player that lives here the threshold is known
/// exactly, so that asking it cannot be in vain.
pub fn is_owed(their_turn: bool, slot: u32, entities: &EntityStore) -> bool {
    their_turn && entities.body(slot).viewer == u32::MAX
}

/// Whether a player has asked another one, or waits for its YES.
fn is_settled(viewer: &Viewer, other: u32, entities: &EntityStore) -> bool {
    let id = entities.body(other).id;
    let known = viewer.registers.find_at(other, id, entities.have_moved(), NO_SLOT);
    let settled = known.map(|at| viewer.registers.peers()[at]);
    settled.is_some_and(|p| p.said() || is_owed(p.their_turn(), other, entities))
}

/// The index of the player at a slot, if it is one of those with these slots.
pub fn index_of(slots: &[u32], indices: &[u32], slot: u32) -> Option<u32> {
    let ix = *indices.get(slot as usize)?;
    (slots.get(ix as usize) == Some(&slot)).then_some(ix)
}
