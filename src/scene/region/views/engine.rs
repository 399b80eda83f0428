//! Evaluates views: every tick each player's registers are brought up to date, and a player that finds a better
//! candidate than the worst of its view list asks that candidate.
//!
//! [`ViewEngine::evaluate_all`] is called once in a tick, over the positions of that tick. The loops here are the hottest
//! of the server: no allocation, no hashing but of ids that have lost their slots.

use super::range_query::{self, Candidate};
use super::{LocalMessage, ViewEngine, Viewer};
use crate::scene::region::entities::{EntityStore, NO_SLOT};
use crate::scene::views::{Tally, ViewRules};
use crate::scene::workers::Workers;
use crate::scene::{Scene, Tick, TickStamp};

/// How many more players one player may ask: a few beyond its room, since many of them refuse.
fn places(tally: &Tally, rules: &ViewRules) -> usize {
    let room = rules.cap.saturating_sub(tally.links);
    room.max(8).saturating_sub(tally.asked)
}

impl ViewEngine {
    /// Evaluates every player's view over the positions of this tick.
    pub fn evaluate_all(
        &mut self,
        tick: Tick,
        entities: &mut EntityStore,
        scene: &Scene,
        workers: &dyn Workers,
    ) {
        self.view_tick = TickStamp::of(tick);
        self.refresh_all(entities, scene, workers);
        self.deliver_local(entities, scene);
        self.match_all(entities, scene, workers);
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

    /// What there is of links and requests, with the marks, as they are now.
    fn recount(&mut self, ix: usize, entities: &EntityStore) -> Tally {
        let ViewEngine { viewers, refreshed, rules, .. } = self;
        let scratch = &mut refreshed.scratch;
        scratch.begin(entities.slot_count() as usize);
        let mut tally = Tally::of_at_most(viewers[ix].registers.standing(), rules);
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
        let ViewEngine { viewers, refreshed, rules, .. } = self;
        let scratch = &mut refreshed.scratch;
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
        let mut candidates = std::mem::take(&mut self.refreshed.scratch.candidates);
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
        self.refreshed.scratch.candidates = candidates;
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
