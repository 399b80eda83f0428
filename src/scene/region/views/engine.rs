//! Evaluates views: every tick each player's registers are brought up to date, and a player that finds a better
//! candidate than the worst of its view list asks that candidate.
//!
//! [`ViewEngine::evaluate_all`] is called once in a tick, over the positions of that tick. The loops here are the hottest
//! of the server: no allocation, no hashing but of ids that have lost their slots.

use super::range_query::{self, Candidate};
use super::{LocalMessage, ViewEngine, Viewer};
use crate::scene::prefetch;
use crate::scene::region::entities::{EntityStore, NO_SLOT, TAG_BONDED};
use crate::scene::views::{Tally, ViewRules};
use crate::scene::{Scene, Tick, TickStamp};

/// Ticks after which a request that was not answered is said again, and a link:
/// whatever has become of a message between two players, with a region or on its way, they come to agree.
const ASKS_AGAIN: u32 = 20;
const LINKS_AGAIN: u32 = 200;

/// How many more players one player may ask: a few beyond its room, since many of them refuse.
fn places(tally: &Tally, rules: &ViewRules) -> usize {
    let room = rules.cap.saturating_sub(tally.links);
    room.max(8).saturating_sub(tally.asked)
}

impl ViewEngine {
    /// Evaluates every player's view over the positions of this tick.
    pub fn evaluate_all(&mut self, tick: Tick, entities: &mut EntityStore, scene: &Scene) {
        self.view_tick = TickStamp::of(tick);
        for ix in 0..self.viewers.len() {
            if let Some(v) = self.viewers.get(ix + prefetch::PLAYERS) {
                prefetch::fetch(v.registers.peers());
            }
            self.refresh(ix, true, entities, scene);
            self.deliver_local(entities, scene);
        }
        self.match_all(entities, scene);
        entities.reuse_slots();
        self.still = true;
    }

    /// Entities have moved since views were evaluated.
    pub fn positions_change(&mut self) {
        self.still = false;
    }

    /// The tick whose views count, after a restore.
    pub fn restore_tick(&mut self, tick: Tick) {
        self.view_tick = TickStamp::of(tick);
    }

    /// A player that lost a link looks for another one.
    pub fn evaluate_again(&mut self, ix: usize, entities: &mut EntityStore, scene: &Scene) {
        if !self.still {
            return self.evaluate(ix, false, entities, scene);
        }
        // No entity has moved since its view was evaluated in this tick.
        self.viewers[ix].dirty = false;
        let tally = self.recount(ix, entities);
        self.find_better(ix, &tally, entities, scene);
    }

    /// Brings one player's registers up to date and asks better candidates. `fully`: also what
    /// it sees beside players.
    pub fn evaluate(&mut self, ix: usize, fully: bool, entities: &mut EntityStore, scene: &Scene) {
        let tally = self.refresh(ix, fully, entities, scene);
        self.find_better(ix, &tally, entities, scene);
    }

    /// Brings one player's registers up to date: says NO to peers that are out of range, and marks in the
    /// scratch the players that are no candidates.
    fn refresh(
        &mut self,
        ix: usize,
        fully: bool,
        entities: &mut EntityStore,
        scene: &Scene,
    ) -> Tally {
        let ViewEngine { viewers, scratch, queue, rules, view_tick, .. } = self;
        let vis = &scene.spec.visibility;
        let viewer = &mut viewers[ix];
        viewer.dirty = false;
        let slot = viewer.slot;
        let me = entities.place(slot);
        if fully {
            range_query::see_others(entities, vis, viewer, scratch);
        }
        viewer.registers.begin_tick(*view_tick);
        let mut tally = Tally::default();
        scratch.begin(entities.slot_count() as usize);
        // Players take turns. Where there are no borders, nothing is ever lost.
        let turn = if fully { view_tick.bits().wrapping_add(slot) } else { 1 };
        let asks_again = turn.is_multiple_of(ASKS_AGAIN) && scene.map.regions.len() > 1;
        let links_again = asks_again && turn.is_multiple_of(LINKS_AGAIN);
        let mut i = 0;
        while i < viewer.registers.peers().len() {
            let in_range =
                range_query::refresh(entities, vis, rules, slot, me, &mut viewer.registers, i);
            let peer = &viewer.registers.peers()[i];
            if in_range && asks_again {
                if links_again || peer.asked() {
                    viewer.registers.repeat(i, |to, say| {
                        queue.local.push_back(LocalMessage::new(slot, to, say));
                    });
                }
                if links_again {
                    // Perhaps the other one does not know that it owes the next YES.
                    viewer.registers.forget_debt(i);
                }
            }
            let peer = &viewer.registers.peers()[i];
            if in_range && !peer.is_blank() {
                tally.add(rules, i, peer);
                scratch.mark_if_stable(entities, peer);
                i += 1;
                continue;
            }
            if peer.stands() {
                viewer.registers.refuse(i, |to, say| {
                    queue.local.push_back(LocalMessage::new(slot, to, say));
                });
            }
            viewer.drop_peer(i);
        }
        if me.tag & TAG_BONDED != 0 || viewer.reach_ends {
            let reach = range_query::bond_reach(entities, vis, rules, slot, scratch);
            viewer.reach_ends = reach.is_some();
            if reach != entities.record(slot).ties.reach {
                queue.reaches.push((slot, reach));
            }
        }
        viewer.threshold = viewer.registers.threshold_of(rules, &tally);
        entities.set_threshold(rules, slot, viewer.threshold.rank);
        tally
    }

    /// What there is of links and requests, with the marks, as they are now.
    fn recount(&mut self, ix: usize, entities: &EntityStore) -> Tally {
        let ViewEngine { viewers, scratch, rules, .. } = self;
        scratch.begin(entities.slot_count() as usize);
        let mut tally = Tally::default();
        for (i, peer) in viewers[ix].registers.peers().iter().enumerate() {
            tally.add(rules, i, peer);
            scratch.mark_if_stable(entities, peer);
        }
        tally
    }

    /// Asks the candidates that a player prefers to the worst of its list.
    fn find_better(&mut self, ix: usize, tally: &Tally, entities: &mut EntityStore, scene: &Scene) {
        let most = places(tally, &self.rules);
        self.find_candidates(ix, tally, most, entities, scene);
        self.ask_candidates(ix, most, tally.standing(), entities);
    }

    /// Puts into the scratch the candidates that a player prefers to the worst of its list: at
    /// least the `most` best ones.
    fn find_candidates(
        &mut self,
        ix: usize,
        tally: &Tally,
        most: usize,
        entities: &mut EntityStore,
        scene: &Scene,
    ) {
        let ViewEngine { viewers, scratch, rules, .. } = self;
        entities.see_to_crowds(rules, viewers[ix].slot);
        let vis = &scene.spec.visibility;
        range_query::candidates(
            entities,
            vis,
            rules,
            viewers,
            ix,
            (most, tally.displaced > 0),
            scratch,
        );
    }

    /// Asks the candidates that the scan has found, best first, while they are better than what there
    /// is. A request reserves its place.
    fn ask_candidates(
        &mut self,
        ix: usize,
        most: usize,
        standing: usize,
        entities: &mut EntityStore,
    ) {
        let mut candidates = std::mem::take(&mut self.scratch.candidates);
        if candidates.len() > 1 {
            candidates.sort_unstable_by_key(|c| c.key);
        }
        for (asked, c) in candidates.iter().take(most).enumerate() {
            if c.key >= self.viewers[ix].threshold {
                break;
            }
            self.ask(ix, c, entities);
            if standing + asked + 1 >= self.rules.cap {
                self.viewers[ix].threshold = self.viewers[ix].registers.threshold(&self.rules);
            }
        }
        self.scratch.candidates = candidates;
        let viewer = &self.viewers[ix];
        entities.set_threshold(&self.rules, viewer.slot, viewer.threshold.rank);
    }

    /// One player says YES to another.
    fn ask(&mut self, ix: usize, c: &Candidate, entities: &EntityStore) {
        let ViewEngine { viewers, queue, .. } = self;
        let Viewer { slot, registers, .. } = &mut viewers[ix];
        let id = entities.body(c.slot).id;
        let known = registers.find_at(c.slot, id, entities.have_moved(), NO_SLOT);
        let at = known.unwrap_or_else(|| registers.push(id, c.slot));
        let peer = &mut registers.peers_mut()[at];
        peer.slot = c.slot;
        (peer.dist_cm, peer.class, peer.ring) = (c.now.dist_cm, c.now.class, c.now.ring);
        registers.ask(at, |to, say| queue.local.push_back(LocalMessage::new(*slot, to, say)));
    }
}
