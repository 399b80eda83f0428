//! Whom players would rather see than what they have: every tick each player's registers are brought up
//! to date, and whoever finds somebody better asks.

use super::bodies::{NO_SLOT, TAG_BONDED};
use super::negotiate::Letter;
use super::scan::{self, Candidate, Scratch};
use super::viewer::Viewer;
use super::{Region, ahead};
use crate::scene::TickStamp;
use crate::scene::views::{Tally, ViewRules};

/// Of how many candidates at least a player takes part when all of a crowd seek together: more than
/// most find in a tick.
const MOST_TOGETHER: usize = 24;

/// Ticks after which a request that was not answered is said again, and a link:
/// whatever has become of a message between two players, with a region or on its way, they come to agree.
const ASKS_AGAIN: u32 = 20;
const LINKS_AGAIN: u32 = 200;

/// How many more players somebody may ask: a few beyond its room, as many of whom refuse.
fn places(tally: &Tally, rules: &ViewRules) -> usize {
    let room = rules.cap.saturating_sub(tally.links);
    room.max(8).saturating_sub(tally.asked)
}

impl Region {
    /// Evaluates every player's view over the positions of this tick.
    pub(super) fn evaluate_all(&mut self) {
        self.view_tick = TickStamp::of(self.tick);
        let crowded = self.bodies.has_crowds();
        for ix in 0..self.viewers.len() {
            if let Some(v) = self.viewers.get(ix + ahead::PLAYERS) {
                ahead::fetch(v.registers.peers());
            }
            let tally = self.freshen(ix, true);
            if !crowded {
                self.seek(ix, &tally);
            }
            self.carry_letters();
        }
        if crowded {
            self.seek_together();
        }
        self.bodies.reuse_slots();
        self.still = true;
    }

    /// Has somebody who lost a link look for another one.
    pub(super) fn evaluate_again(&mut self, ix: usize) {
        if !self.still {
            return self.evaluate(ix, false);
        }
        // Nobody has moved since it looked around in this tick.
        self.viewers[ix].dirty = false;
        let tally = self.recount(ix);
        self.seek(ix, &tally);
    }

    /// Asks for all players whom they would rather see than what they have, the best pair first. In a
    /// crowd most lists are full: were one player to ask after the other, most links of a tick would be
    /// displaced by better ones in the same tick.
    fn seek_together(&mut self) {
        let mut pairs = std::mem::take(&mut self.scratch.pairs);
        for ix in 0..self.viewers.len() {
            let tally = self.recount(ix);
            let most = places(&tally, &self.rules).max(MOST_TOGETHER);
            self.find_candidates(ix, &tally, most);
            let Region { scratch: Scratch { candidates, .. }, viewers, mail, .. } = self;
            if candidates.len() > most {
                candidates.select_nth_unstable_by_key(most, |c| c.key);
            }
            if candidates.len() >= most {
                // There may be more.
                Self::soil(mail, &mut viewers[ix]);
            }
            pairs.extend(candidates.iter().take(most).map(|c| (viewers[ix].slot, *c)));
        }
        pairs.sort_unstable_by_key(|(_, c)| c.key);
        // Most pairs were found from both ends.
        pairs.dedup_by_key(|(_, c)| c.key);
        for (i, (slot, c)) in pairs.iter().enumerate() {
            if let Some((far, c)) = pairs.get(i + 2 * ahead::PLAYERS) {
                [*far, c.slot].into_iter().for_each(|slot| self.fetch_viewer(slot, false));
            }
            if let Some((near, c)) = pairs.get(i + ahead::PLAYERS) {
                [*near, c.slot].into_iter().for_each(|slot| self.fetch_viewer(slot, true));
            }
            let ix = self.bodies.hot[*slot as usize].viewer as usize;
            let other = &self.bodies.hot[c.slot as usize];
            let theirs = self.viewers.get(other.viewer as usize).is_none_or(|v| c.key < v.thr);
            let lives_here = other.viewer != u32::MAX;
            if theirs && c.key < self.viewers[ix].thr {
                self.ask(ix, c);
                if !lives_here {
                    self.viewers[ix].thr = self.viewers[ix].registers.thr(&self.rules);
                    self.bodies.set_thr(&self.rules, *slot, self.viewers[ix].thr.rank);
                }
                // Who lives here answers at once, and the answer sets the threshold.
                self.carry_letters();
            }
        }
        pairs.clear();
        self.scratch.pairs = pairs;
    }

    /// Asks for what is kept of the player at `slot`: itself, or its registers.
    fn fetch_viewer(&self, slot: u32, registers: bool) {
        let ix = self.bodies.hot[slot as usize].viewer as usize;
        match self.viewers.get(ix) {
            Some(v) if registers => ahead::fetch(v.registers.peers()),
            Some(_) => ahead::fetch(&self.viewers[ix..ix + 1]),
            None => {}
        }
    }

    /// Brings one player's registers up to date and asks whom it would rather see. `fully`: also what
    /// it sees beside players.
    pub(super) fn evaluate(&mut self, ix: usize, fully: bool) {
        let tally = self.freshen(ix, fully);
        self.seek(ix, &tally);
    }

    /// Brings one player's registers up to date: says NO to whom is out of range, and marks in the
    /// scratch who is no candidate.
    fn freshen(&mut self, ix: usize, fully: bool) -> Tally {
        let Region { bodies, viewers, scratch, mail, rules, scene, view_tick, .. } = self;
        let vis = &scene.spec.visibility;
        let viewer = &mut viewers[ix];
        viewer.dirty = false;
        let slot = viewer.slot;
        let me = &bodies.places[slot as usize];
        if fully {
            scan::see_others(bodies, vis, viewer, scratch);
        }
        viewer.registers.begin_tick(*view_tick);
        let mut tally = Tally::default();
        scratch.begin(bodies.hot.len());
        // Players take turns. Where there are no borders, nothing is ever lost.
        let turn = if fully { view_tick.bits().wrapping_add(slot) } else { 1 };
        let asks_again = turn.is_multiple_of(ASKS_AGAIN) && scene.map.regions.len() > 1;
        let links_again = asks_again && turn.is_multiple_of(LINKS_AGAIN);
        let mut i = 0;
        while i < viewer.registers.peers().len() {
            let in_range = scan::refresh(bodies, vis, rules, slot, me, &mut viewer.registers, i);
            let peer = &viewer.registers.peers()[i];
            if in_range && asks_again {
                if links_again || peer.asked() {
                    viewer.registers.repeat(i, |to, say| {
                        mail.local.push_back(Letter::new(slot, to, say));
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
                scratch.mark_if_settled(bodies, peer);
                i += 1;
                continue;
            }
            if peer.stands() {
                viewer.registers.refuse(i, |to, say| {
                    mail.local.push_back(Letter::new(slot, to, say));
                });
            }
            viewer.drop_peer(i);
        }
        if me.tag & TAG_BONDED != 0 || viewer.reach_ends {
            let reach = scan::bond_reach(bodies, vis, rules, slot, scratch);
            viewer.reach_ends = reach.is_some();
            if reach != bodies.cold[slot as usize].ties.reach {
                mail.reaches.push((slot, reach));
            }
        }
        viewer.thr = viewer.registers.thr_of(rules, &tally);
        bodies.set_thr(rules, slot, viewer.thr.rank);
        tally
    }

    /// What there is of links and requests, with the marks, as they are now.
    fn recount(&mut self, ix: usize) -> Tally {
        let Region { bodies, viewers, scratch, rules, .. } = self;
        scratch.begin(bodies.hot.len());
        let mut tally = Tally::default();
        for (i, peer) in viewers[ix].registers.peers().iter().enumerate() {
            tally.add(rules, i, peer);
            scratch.mark_if_settled(bodies, peer);
        }
        tally
    }

    /// Asks whom one player would rather see than what it has.
    fn seek(&mut self, ix: usize, tally: &Tally) {
        let most = places(tally, &self.rules);
        self.find_candidates(ix, tally, most);
        self.ask_candidates(ix, most, tally.standing());
    }

    /// Puts into the scratch whom one player would rather see than what it has: at least the `most`
    /// best ones.
    fn find_candidates(&mut self, ix: usize, tally: &Tally, most: usize) {
        let Region { bodies, viewers, scratch, rules, scene, .. } = self;
        bodies.see_to_crowds(rules, viewers[ix].slot);
        let vis = &scene.spec.visibility;
        scan::candidates(bodies, vis, rules, viewers, ix, (most, tally.displaced > 0), scratch);
    }

    /// Asks the candidates that the scan has found, best first, while they are better than what there
    /// is. A request reserves its place.
    fn ask_candidates(&mut self, ix: usize, most: usize, standing: usize) {
        let mut candidates = std::mem::take(&mut self.scratch.candidates);
        if candidates.len() > 1 {
            candidates.sort_unstable_by_key(|c| c.key);
        }
        for (asked, c) in candidates.iter().take(most).enumerate() {
            if c.key >= self.viewers[ix].thr {
                break;
            }
            self.ask(ix, c);
            if standing + asked + 1 >= self.rules.cap {
                self.viewers[ix].thr = self.viewers[ix].registers.thr(&self.rules);
            }
        }
        self.scratch.candidates = candidates;
        let viewer = &self.viewers[ix];
        self.bodies.set_thr(&self.rules, viewer.slot, viewer.thr.rank);
    }

    /// One player says YES to another.
    fn ask(&mut self, ix: usize, c: &Candidate) {
        let Region { bodies, viewers, mail, .. } = self;
        let Viewer { slot, registers, .. } = &mut viewers[ix];
        let id = bodies.hot[c.slot as usize].id;
        let known = registers.find_at(c.slot, id, bodies.have_moved(), NO_SLOT);
        let at = known.unwrap_or_else(|| registers.push(id, c.slot));
        let peer = &mut registers.peers_mut()[at];
        peer.slot = c.slot;
        (peer.dist_cm, peer.class, peer.ring) = (c.now.dist_cm, c.now.class, c.now.ring);
        registers.ask(at, |to, say| mail.local.push_back(Letter::new(*slot, to, say)));
    }
}
