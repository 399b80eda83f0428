//! View lists of the players that live here: evaluation, and the messages between players, which are
//! answered at once where both live here and travel where one is a ghost.

use std::collections::VecDeque;

use super::Region;
use super::bodies::Role;
use super::scan;
use crate::scene::effects::Effect;
use crate::scene::views::{Heard, Peer, Say, ViewMsg};
use crate::scene::{EntityId, RegionId};

/// Rounds of repair after which what is left waits for the next tick. Repairs end by themselves; a
/// chain this long has not been seen.
const MAX_ROUNDS: usize = 64;

/// A message between two players that are both known here.
#[derive(Debug, Clone, Copy)]
struct Letter {
    from: u32,
    to: u32,
    say: Say,
}

/// Messages on their way.
#[derive(Debug, Default)]
pub struct Mail {
    /// From other regions, not yet heard.
    posted: Vec<ViewMsg>,
    local: VecDeque<Letter>,
    /// For players of other regions.
    afar: Vec<Letter>,
    dirty: Vec<u32>,
}

impl Mail {
    /// Keeps a message from another region until it is read.
    pub fn post(&mut self, msg: ViewMsg) {
        self.posted.push(msg);
    }
}

impl Region {
    /// Evaluates every player's view over the positions of this tick.
    pub(super) fn evaluate_all(&mut self) {
        for ix in 0..self.viewers.len() {
            self.evaluate(ix, true);
            self.carry_letters();
        }
    }

    /// Hears what players of other regions said, and repairs what that broke.
    pub(super) fn read_mail(&mut self, fx: &mut Vec<Effect>) {
        let mut posted = std::mem::take(&mut self.mail.posted);
        for msg in posted.drain(..) {
            self.hear_from_afar(msg, fx);
        }
        self.mail.posted = posted;
        self.carry_letters();
        for _ in 0..MAX_ROUNDS {
            let dirty = std::mem::take(&mut self.mail.dirty);
            if dirty.is_empty() {
                break;
            }
            for slot in dirty {
                let ix = self.bodies.hot[slot as usize].viewer as usize;
                if self.viewers.get(ix).is_some_and(|v| v.dirty && v.slot == slot) {
                    self.evaluate(ix, false);
                    self.carry_letters();
                }
            }
        }
        self.post_letters(fx);
    }

    /// Brings one player's registers up to date and asks whom it would rather see. `fully`: also what
    /// it sees beside players.
    fn evaluate(&mut self, ix: usize, fully: bool) {
        let Region { bodies, viewers, scratch, mail, rules, scene, .. } = self;
        let vis = &scene.spec.visibility;
        let viewer = &mut viewers[ix];
        viewer.dirty = false;
        let slot = viewer.slot;
        let me = &bodies.hot[slot as usize];
        let mut i = 0;
        while i < viewer.registers.peers.len() {
            let peer = &mut viewer.registers.peers[i];
            if scan::refresh(bodies, vis, slot, me, peer) && !peer.is_blank() {
                i += 1;
                continue;
            }
            if (peer.mine != 0 || peer.his != 0) && still_known(bodies, peer) {
                viewer.registers.refuse(i, |p, say| {
                    mail.local.push_back(Letter { from: slot, to: p.slot, say });
                });
            }
            viewer.drop_peer(i);
        }
        if fully {
            scan::see_others(bodies, vis, viewer, scratch);
        }
        viewer.thr = viewer.registers.thr(rules);
        scan::mark_peers(bodies, viewer, scratch);
        scan::candidates(bodies, vis, rules, viewers, ix, scratch);
        self.ask_candidates(ix);
    }

    /// Asks the candidates that the scan has found, best first, while they are better than what there
    /// is. A request reserves its place.
    fn ask_candidates(&mut self, ix: usize) {
        let Region { bodies, viewers, scratch, mail, rules, .. } = self;
        let viewer = &mut viewers[ix];
        let slot = viewer.slot;
        if scratch.candidates.len() > 1 {
            scratch.candidates.sort_unstable_by_key(|c| c.key);
        }
        let links = viewer.registers.links();
        let pending = viewer.registers.pending();
        let most = 8.max(rules.cap.saturating_sub(links)).saturating_sub(pending);
        for (asked, c) in scratch.candidates.iter().take(most).enumerate() {
            if c.key >= viewer.thr {
                break;
            }
            let id = bodies.hot[c.slot as usize].id;
            let at = viewer.registers.find(id).unwrap_or_else(|| {
                viewer.registers.peers.push(Peer::new(id, c.slot));
                viewer.registers.peers.len() - 1
            });
            let peer = &mut viewer.registers.peers[at];
            (peer.dist_cm, peer.class, peer.ring, peer.slot) = (c.dist_cm, c.class, c.ring, c.slot);
            viewer.registers.ask(at, |p, say| {
                mail.local.push_back(Letter { from: slot, to: p.slot, say });
            });
            if links + pending + asked + 1 >= rules.cap {
                viewer.thr = viewer.registers.thr(rules);
            }
        }
        bodies.hot[slot as usize].thr = viewer.thr.rank;
    }

    /// Delivers letters between players of this region until none is left; what is for a ghost waits
    /// for [`Region::post_letters`].
    fn carry_letters(&mut self) {
        while let Some(letter) = self.mail.local.pop_front() {
            let ix = self.bodies.hot[letter.to as usize].viewer as usize;
            if ix < self.viewers.len() {
                self.hear(ix, letter.from, letter.say);
            } else {
                self.mail.afar.push(letter);
            }
        }
    }

    /// Sends the letters that are for players of other regions.
    fn post_letters(&mut self, fx: &mut Vec<Effect>) {
        for letter in std::mem::take(&mut self.mail.afar) {
            let from = self.bodies.hot[letter.from as usize].id;
            let to = self.bodies.hot[letter.to as usize].id;
            if let Role::Ghost(ghost) = &self.bodies.cold[letter.to as usize].role {
                let msg = ViewMsg { from, from_region: self.id, to, say: letter.say };
                self.counts.view_messages += 1;
                fx.push(Effect::View(ghost.owner, msg));
            }
        }
    }

    fn hear_from_afar(&mut self, msg: ViewMsg, fx: &mut Vec<Effect>) {
        if self.incoming.iter().any(|h| h.state.id == msg.to) {
            // It is about to live here.
            self.mail.posted.push(msg);
            return;
        }
        let Some(to) = self.bodies.slot(msg.to) else {
            return self.answer_for_nobody(msg, fx);
        };
        let ix = self.bodies.hot[to as usize].viewer as usize;
        if ix >= self.viewers.len() {
            match &self.bodies.cold[to as usize].role {
                Role::Ghost(ghost) if ghost.owner != self.id => {
                    fx.push(Effect::View(ghost.owner, msg));
                }
                _ => self.answer_for_nobody(msg, fx),
            }
            return;
        }
        match self.bodies.slot(msg.from) {
            Some(from) => self.hear(ix, from, msg.say),
            None => self.hear_of_unknown(ix, msg, fx),
        }
    }

    /// A YES to nobody is answered at once, so that the asker's place is not held for ever.
    fn answer_for_nobody(&mut self, msg: ViewMsg, fx: &mut Vec<Effect>) {
        if let Say::Yes(number) = msg.say {
            self.say_no(msg.to, msg.from, msg.from_region, number, fx);
        }
    }

    /// A message of somebody who is not mirrored here (any more).
    fn hear_of_unknown(&mut self, ix: usize, msg: ViewMsg, fx: &mut Vec<Effect>) {
        match msg.say {
            Say::Yes(number) => self.say_no(msg.to, msg.from, msg.from_region, number, fx),
            Say::No(number) => {
                let viewer = &mut self.viewers[ix];
                let at = viewer.registers.find(msg.from);
                if at.is_some_and(|at| viewer.registers.hear_no(at, number) == Heard::Lost) {
                    Self::soil(&mut self.mail, viewer);
                }
            }
        }
    }

    fn say_no(
        &mut self,
        from: EntityId,
        to: EntityId,
        region: RegionId,
        number: u32,
        fx: &mut Vec<Effect>,
    ) {
        self.counts.view_messages += 1;
        let msg = ViewMsg { from, from_region: self.id, to, say: Say::No(number) };
        fx.push(Effect::View(region, msg));
    }

    fn soil(mail: &mut Mail, viewer: &mut super::viewer::Viewer) {
        if !viewer.dirty {
            viewer.dirty = true;
            mail.dirty.push(viewer.slot);
        }
    }

    /// The player at `ix` hears the entity at slot `from`.
    fn hear(&mut self, ix: usize, from: u32, say: Say) {
        let Region { bodies, viewers, mail, rules, scene, .. } = self;
        let viewer = &mut viewers[ix];
        let slot = viewer.slot;
        let speaker = bodies.hot[from as usize].id;
        let known = viewer.registers.find(speaker);
        match say {
            Say::No(number) => {
                let Some(at) = known else { return };
                if viewer.registers.hear_no(at, number) == Heard::Lost {
                    viewer.thr = viewer.registers.thr(rules);
                    bodies.hot[slot as usize].thr = viewer.thr.rank;
                    Self::soil(mail, viewer);
                }
                if viewer.registers.peers[at].is_blank() {
                    viewer.drop_peer(at);
                }
            }
            Say::Yes(number) => {
                let at = known.unwrap_or_else(|| {
                    viewer.registers.peers.push(Peer::new(speaker, from));
                    viewer.registers.peers.len() - 1
                });
                let me = &bodies.hot[slot as usize];
                let peer = &mut viewer.registers.peers[at];
                peer.slot = from;
                let post = |p: &Peer, say| {
                    mail.local.push_back(Letter { from: slot, to: p.slot, say });
                };
                if scan::refresh(bodies, &scene.spec.visibility, slot, me, peer) {
                    viewer.registers.hear_yes(rules, at, number, post);
                } else {
                    peer.seen = number;
                    viewer.registers.refuse(at, post);
                }
                viewer.registers.peers.retain(|p| !p.is_blank());
                viewer.thr = viewer.registers.thr(rules);
                bodies.hot[slot as usize].thr = viewer.thr.rank;
            }
        }
    }
}

/// Whether the peer's slot still holds the peer.
fn still_known(bodies: &super::bodies::Bodies, peer: &Peer) -> bool {
    bodies.hot.get(peer.slot as usize).is_some_and(|b| b.id == peer.id)
}
