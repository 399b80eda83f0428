//! Makes the registers follow the matcher: each change is one legal step of the protocol.
//!
//! Lost links get their NO first, then each new pair asks and answers. Between two players of this region the messages
//! are handed over on the spot; what is for a ghost waits to be sent.

use super::matching::PlaneMatching;
use super::prediction::Part;
use super::range_query::{self, Proximity};
use super::{LocalMessage, ViewEngine};
use crate::scene::prefetch;
use crate::scene::region::entities::{EntityStore, NO_SLOT};
use crate::scene::views::matcher::Pair;
use crate::scene::views::{Addressee, Key, ViewMsgBody};
use crate::scene::{Scene, Visibility};

impl ViewEngine {
    /// Makes the registers of a plane follow the pass.
    pub(super) fn commit_pass(
        &mut self,
        plane: &PlaneMatching,
        entities: &mut EntityStore,
        scene: &Scene,
    ) {
        self.commit_changes(plane, entities, scene);
        let mut tied = plane.matcher.tied().to_vec();
        tied.sort_unstable();
        for (ix, slot) in (0..).zip(&plane.slots) {
            if plane.parts[ix as usize] == Part::Predicted {
                let threshold = plane.matcher.threshold(ix).rank;
                let is_tied = tied.binary_search(&ix).is_ok();
                self.assume(*slot, (threshold, is_tied), entities);
            }
            self.follow_threshold(plane, ix, entities);
        }
    }

    /// Makes the registers of a plane follow a repair. `changed`: players whose lists were read again.
    pub(super) fn commit_repair(
        &mut self,
        plane: &PlaneMatching,
        mut changed: Vec<u32>,
        entities: &mut EntityStore,
        scene: &Scene,
    ) {
        self.commit_changes(plane, entities, scene);
        let pairs = plane.matcher.entered().iter().chain(plane.matcher.left());
        changed.extend(pairs.flat_map(|(a, b)| [*a, *b]));
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().for_each(|ix| self.follow_threshold(plane, ix, entities));
    }

    /// Ends the links that the matcher has ended, and begins those that it has begun.
    fn commit_changes(&mut self, plane: &PlaneMatching, entities: &mut EntityStore, scene: &Scene) {
        let of = |(a, b): &Pair| (plane.slots[*a as usize], plane.slots[*b as usize]);
        let (left, entered) = (plane.matcher.left(), plane.matcher.entered());
        for (i, pair) in left.iter().enumerate() {
            left.get(i + 2 * prefetch::PLAYERS)
                .inspect(|next| self.fetch_viewers(of(next), entities));
            left.get(i + prefetch::PLAYERS).inspect(|next| self.fetch(of(next), entities));
            if let Some((a, b)) = plane.player_first(*pair).filter(|pair| !plane.is_back(*pair)) {
                self.end_link(of(&(a, b)), entities);
            }
        }
        let vis = &scene.spec.visibility;
        for (i, pair) in entered.iter().enumerate() {
            entered
                .get(i + 2 * prefetch::PLAYERS)
                .inspect(|next| self.fetch_viewers(of(next), entities));
            entered.get(i + prefetch::PLAYERS).inspect(|next| self.fetch_ends(of(next), entities));
            let Some((a, b)) = plane.player_first(*pair) else { continue };
            if plane.is_gone((a, b)) {
                continue;
            }
            let knows = |ix: u32| plane.knows_others[ix as usize];
            self.begin_link(of(&(a, b)), (knows(a), knows(b)), vis, entities);
        }
        self.deliver_local(entities, scene);
    }

    /// The threshold of a player, if it lives here, is that of its list.
    fn follow_threshold(&mut self, plane: &PlaneMatching, ix: u32, entities: &mut EntityStore) {
        let (slot, rules) = (plane.slots[ix as usize], self.rules);
        let ViewEngine { viewers, queue, .. } = self;
        let viewer = viewers.get_mut(entities.body(slot).viewer as usize);
        let Some(viewer) = viewer else { return };
        let (standing, cap) = (viewer.registers.standing(), viewer.registers.cap(&rules));
        if standing <= cap && plane.matcher.entries(ix) < standing {
            // The list had no room for all that stood, and has some now.
            Self::mark_dirty(queue, viewer);
        }
        viewer.threshold = match standing > cap {
            true => viewer.registers.threshold(&rules),
            false => plane.matcher.threshold(ix),
        };
        viewer.expecting = viewer.expecting.map(|_| viewer.threshold);
        let rank = viewer.threshold.rank;
        entities.set_threshold(slot, rank);
    }

    /// Asks ahead of time for what says where the registers of a pair are.
    fn fetch_viewers(&self, (a, b): (u32, u32), entities: &EntityStore) {
        for viewer in [a, b].into_iter().filter_map(|slot| self.of(entities, slot)) {
            prefetch::fetch(std::slice::from_ref(&viewer.registers));
        }
    }

    /// The same for where the registers of a pair grow.
    fn fetch_ends(&self, (a, b): (u32, u32), entities: &EntityStore) {
        for viewer in [a, b].into_iter().filter_map(|slot| self.of(entities, slot)) {
            prefetch::fetch(viewer.registers.peers().last_chunk::<1>().map_or(&[], |last| last));
            prefetch::fetch(viewer.registers.yes_ids().last_chunk::<1>().map_or(&[], |last| last));
        }
    }

    /// Asks for the registers of a pair ahead of time.
    fn fetch(&self, (a, b): (u32, u32), entities: &EntityStore) {
        for viewer in [a, b].into_iter().filter_map(|slot| self.of(entities, slot)) {
            prefetch::fetch(viewer.registers.peers());
        }
    }

    /// The player at slot `a` says NO to the one at slot `b`.
    fn end_link(&mut self, (a, b): (u32, u32), entities: &EntityStore) {
        let (id_a, id_b) = (entities.body(a).id, entities.body(b).id);
        let moved = entities.have_moved();
        let Some(viewer) = self.of_mut(entities, a) else { return };
        let Some(at) = viewer.registers.find_at(b, id_b, moved, NO_SLOT) else { return };
        if !viewer.registers.peers()[at].said() {
            return;
        }
        let mut no = None;
        viewer.registers.refuse(at, |_, say| no = Some(say));
        let Some(ViewMsgBody::No { echo, at }) = no else { return };
        match self.of_mut(entities, b) {
            Some(other) => {
                if let Some(known) = other.registers.find_at(a, id_a, moved, NO_SLOT) {
                    other.registers.handle_no(known, echo, at);
                    if other.registers.peers()[known].is_blank() {
                        other.drop_peer(known);
                    }
                }
                self.figures.local += 1;
            }
            None => {
                let to = Addressee { id: id_b, slot: b };
                self.queue.outgoing.push(LocalMessage::new(a, to, ViewMsgBody::No { echo, at }));
            }
        }
    }

    /// The player at slot `a` says YES to the one at slot `b`, which says YES, too, if it lives here. A
    /// ghost that owes the next YES is likely to say it: the player keeps a place for it. `may_know`: whether each of the two may know the other already.
    fn begin_link(
        &mut self,
        (a, b): (u32, u32),
        may_know: (bool, bool),
        vis: &Visibility,
        entities: &EntityStore,
    ) {
        let Some(now) = range_query::of_slots(entities, vis, &self.rules, (a, b), true) else {
            return;
        };
        let rules = self.rules;
        let (id_a, id_b) = (entities.body(a).id, entities.body(b).id);
        let Some(at) = self.know((a, b), may_know.0, now, entities) else { return };
        let mut yes = None;
        let is_ghost = entities.body(b).viewer == u32::MAX;
        let Some(viewer) = self.of_mut(entities, a) else { return };
        if is_ghost && viewer.registers.peers()[at].their_turn() {
            viewer.expecting = Some(Key::WORST);
            return self.queue.expecting.push(a);
        }
        if viewer.registers.peers()[at].linked() {
            // It had no room in the list, which has some again.
            return;
        }
        viewer.registers.ask(at, |_, say| yes = Some(say));
        let Some(yes) = yes else { return };
        let Some(other_at) = self.know((b, a), may_know.1, now, entities) else {
            let to = Addressee { id: id_b, slot: b };
            return self.queue.outgoing.push(LocalMessage::new(a, to, yes));
        };
        let ViewEngine { queue, viewers, figures, .. } = self;
        figures.local += 2;
        let mut answer = None;
        let Some(other) = viewers.get_mut(entities.body(b).viewer as usize) else { return };
        other.registers.handle_yes(&rules, other_at, yes, |to, say| match say {
            ViewMsgBody::Yes(_) if to.id == id_a => answer = Some(say),
            _ => queue.local.push_back(LocalMessage::new(b, to, say)),
        });
        let Some(viewer) = viewers.get_mut(entities.body(a).viewer as usize) else { return };
        if let Some(yes) = answer {
            viewer.registers.handle_yes(&rules, at, yes, |to, say| {
                queue.local.push_back(LocalMessage::new(a, to, say));
            });
        }
    }

    /// Makes the player at slot `of` know how it stands to the one at slot `to`. Gives the index of that peer; `None` if
    /// the player does not live here.
    fn know(
        &mut self,
        (of, to): (u32, u32),
        may_know: bool,
        now: Proximity,
        entities: &EntityStore,
    ) -> Option<usize> {
        let id = entities.body(to).id;
        let registers = &mut self.of_mut(entities, of)?.registers;
        let find = || registers.find_at(to, id, entities.have_moved(), NO_SLOT);
        let known = if may_know { find() } else { None };
        let at = known.unwrap_or_else(|| registers.push(id, to));
        let peer = &mut registers.peers_mut()[at];
        peer.slot = to;
        (peer.dist_cm, peer.class, peer.ring) = (now.dist_cm, now.class, now.ring);
        Some(at)
    }
}
