//! View lists of the players that live here: evaluation, and the messages between players, which are
//! answered at once where both live here and travel where one is a ghost.

use std::collections::VecDeque;

use super::Region;
use super::bodies::{Role, TAG_BONDED};
use super::border_in::EXPIRY;
use super::layout::Renumbering;
use super::scan;
use crate::scene::effects::Effect;
use crate::scene::views::{Heard, Peer, Registers, Say, ViewMsg, ViewRules};
use crate::scene::{EntityId, RegionId, Tick};

/// Rounds of repair after which what is left waits for the next tick. Repairs end by themselves; a
/// chain this long has not been seen.
const MAX_ROUNDS: usize = 64;

/// Messages that are kept for players who are not known here and may be on their way.
const MAX_EARLY: usize = 65_536;

/// A message between two players that are both known here.
#[derive(Debug, Clone, Copy)]
struct Letter {
    from: u32,
    to: u32,
    /// Who was in slot `to` when the letter was written: it may be another's since.
    to_id: EntityId,
    say: Say,
}

impl Letter {
    fn new(from: u32, to: &Peer, say: Say) -> Letter {
        Letter { from, to: to.slot, to_id: to.id, say }
    }
}

/// Messages on their way.
#[derive(Debug, Default)]
pub struct Mail {
    /// From other regions, not yet heard.
    posted: Vec<ViewMsg>,
    /// From other regions, for somebody who is not known here: it may be on its way. With the tick
    /// in which each came.
    early: Vec<(Tick, ViewMsg)>,
    /// Thresholds of players of other regions, not yet heard.
    thrs: Vec<(EntityId, u64)>,
    local: VecDeque<Letter>,
    /// For players of other regions.
    afar: Vec<Letter>,
    /// For players that are not mirrored here any more: from, to.
    farewells: Vec<(EntityId, EntityId, Say)>,
    dirty: Vec<u32>,
    /// How far players' bonds reach from the next tick on.
    reaches: Vec<(u32, Option<u64>)>,
}

impl Mail {
    /// Keeps a message from another region until it is read.
    pub fn post(&mut self, msg: ViewMsg) {
        self.posted.push(msg);
    }

    /// Keeps thresholds of players of another region until they are read.
    pub fn post_thrs(&mut self, thrs: Vec<(EntityId, u64)>) {
        self.thrs.extend(thrs);
    }

    /// Forgets how far bonds of the last tick would have reached.
    pub fn forget_reaches(&mut self) {
        self.reaches.clear();
    }

    /// Follows slots that were given out anew.
    pub fn renumber(&mut self, new: &Renumbering) {
        for letter in self.local.iter_mut().chain(&mut self.afar) {
            new.apply(&mut letter.from);
            new.apply(&mut letter.to);
        }
        self.dirty.iter_mut().for_each(|slot| new.apply(slot));
    }

    /// Copies of all that is still to be heard here, or said to players of other regions. `id` names
    /// the entity in a slot.
    pub fn waiting(&self, here: RegionId, id: impl Fn(u32) -> Option<EntityId>) -> Vec<ViewMsg> {
        let mut all = self.posted.clone();
        all.extend(self.early.iter().map(|(_, msg)| *msg));
        let letters = self.local.iter().chain(&self.afar).map(|l| (id(l.from), l.to_id, l.say));
        let farewells = self.farewells.iter().map(|(from, to, say)| (Some(*from), *to, *say));
        for (from, to, say) in letters.chain(farewells) {
            all.extend(from.map(|from| ViewMsg { from, from_region: here, to, say }));
        }
        all
    }

    /// Whether anything is to be said to players of other regions.
    pub fn has_letters(&self) -> bool {
        !self.afar.is_empty() || !self.farewells.is_empty()
    }
}

/// How many more players somebody may ask: a few beyond its room, as many of whom refuse.
fn places(registers: &Registers, rules: &ViewRules) -> usize {
    let room = rules.cap.saturating_sub(registers.links());
    room.max(8).saturating_sub(registers.pending())
}

impl Region {
    /// Evaluates every player's view over the positions of this tick.
    pub(super) fn evaluate_all(&mut self) {
        self.viewers.iter_mut().for_each(|v| v.registers.begin_tick());
        for ix in 0..self.viewers.len() {
            self.evaluate(ix, true);
            self.carry_letters();
        }
    }

    /// Puts into force how far bonds reach over the positions of this tick: with the next tick, on
    /// both sides of a border alike.
    pub(super) fn apply_reaches(&mut self) {
        for (slot, reach) in std::mem::take(&mut self.mail.reaches) {
            if let Some(real) = self.bodies.real_mut(slot) {
                real.restate = true;
                self.bodies.cold[slot as usize].ties.reach = reach;
            }
        }
    }

    /// Hears and answers at once, outside of settling.
    pub(super) fn read_mail(&mut self, fx: &mut Vec<Effect>) {
        self.hear_mail(fx);
        fx.extend(self.take_letters().into_iter().map(|(to, msg)| Effect::View(to, msg)));
    }

    /// Hears what players of other regions said, and repairs what that broke.
    pub(super) fn hear_mail(&mut self, fx: &mut Vec<Effect>) {
        if !self.mail.early.is_empty() {
            self.read_early();
        }
        for (id, thr) in std::mem::take(&mut self.mail.thrs) {
            self.hear_thr(id, thr);
        }
        for msg in std::mem::take(&mut self.mail.posted) {
            self.hear_from_afar(msg, fx);
        }
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
    }

    /// Brings one player's registers up to date and asks whom it would rather see. `fully`: also what
    /// it sees beside players.
    pub(super) fn evaluate(&mut self, ix: usize, fully: bool) {
        let Region { bodies, viewers, scratch, mail, rules, scene, .. } = self;
        let vis = &scene.spec.visibility;
        let viewer = &mut viewers[ix];
        viewer.dirty = false;
        let slot = viewer.slot;
        let me = &bodies.hot[slot as usize];
        let mut i = 0;
        while i < viewer.registers.peers.len() {
            let peer = &mut viewer.registers.peers[i];
            if scan::refresh(bodies, vis, rules, slot, me, peer) && !peer.is_blank() {
                i += 1;
                continue;
            }
            if peer.mine != 0 || peer.wanted {
                viewer.registers.refuse(i, |p, say| {
                    mail.local.push_back(Letter::new(slot, p, say));
                });
            }
            viewer.drop_peer(i);
        }
        if fully {
            scan::see_others(bodies, vis, viewer, scratch);
        }
        if me.tag & TAG_BONDED != 0 || viewer.reach_ends {
            let reach = scan::bond_reach(bodies, vis, rules, slot, scratch);
            viewer.reach_ends = reach.is_some();
            if reach != bodies.cold[slot as usize].ties.reach {
                mail.reaches.push((slot, reach));
            }
        }
        viewer.thr = viewer.registers.thr(rules);
        scan::mark_peers(bodies, viewer, scratch);
        bodies.see_to_crowds(rules, slot);
        let most = places(&viewer.registers, rules);
        scan::candidates(bodies, vis, rules, viewers, ix, most, scratch);
        self.ask_candidates(ix, most);
    }

    /// Asks the candidates that the scan has found, best first, while they are better than what there
    /// is. A request reserves its place.
    fn ask_candidates(&mut self, ix: usize, most: usize) {
        let Region { bodies, viewers, scratch, mail, rules, .. } = self;
        let viewer = &mut viewers[ix];
        let slot = viewer.slot;
        if scratch.candidates.len() > 1 {
            scratch.candidates.sort_unstable_by_key(|c| c.key);
        }
        let standing = viewer.registers.links() + viewer.registers.pending();
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
            peer.slot = c.slot;
            (peer.dist_cm, peer.class, peer.ring) = (c.now.dist_cm, c.now.class, c.now.ring);
            viewer.registers.ask(at, |p, say| {
                mail.local.push_back(Letter::new(slot, p, say));
            });
            if standing + asked + 1 >= rules.cap {
                viewer.thr = viewer.registers.thr(rules);
            }
        }
        bodies.set_thr(rules, slot, viewer.thr.rank);
    }

    /// Delivers letters between players of this region until none is left; what is for a ghost waits
    /// for [`Region::take_letters`].
    fn carry_letters(&mut self) {
        while let Some(letter) = self.mail.local.pop_front() {
            let to = self.bodies.hot.get(letter.to as usize);
            let Some(to) = to.filter(|b| b.id == letter.to_id) else {
                let from = self.bodies.hot[letter.from as usize].id;
                self.mail.farewells.push((from, letter.to_id, letter.say));
                continue;
            };
            let ix = to.viewer as usize;
            if ix < self.viewers.len() {
                self.counts.letters += 1;
                self.hear(ix, letter.from, letter.say);
            } else {
                self.mail.afar.push(letter);
            }
        }
    }

    /// The letters that are for players of other regions, and where these live.
    pub(super) fn take_letters(&mut self) -> Vec<(RegionId, ViewMsg)> {
        let mut letters = Vec::new();
        for letter in std::mem::take(&mut self.mail.afar) {
            let from = self.bodies.hot[letter.from as usize].id;
            let to = self.bodies.hot[letter.to as usize].id;
            if let Role::Ghost(ghost) = &self.bodies.cold[letter.to as usize].role {
                let msg = ViewMsg { from, from_region: self.id, to, say: letter.say };
                letters.push((ghost.owner, msg));
            }
        }
        for (from, to, say) in std::mem::take(&mut self.mail.farewells) {
            // Whoever was never mirrored here is known where the speaker came from, unless it is gone
            // altogether and needs no farewell.
            let home = self.whereabouts(to).or_else(|| self.came_from(from));
            if let Some(region) = home.filter(|r| *r != self.id) {
                letters.push((region, ViewMsg { from, from_region: self.id, to, say }));
            }
        }
        self.counts.view_messages += letters.len() as u64;
        letters
    }

    /// A ghost's threshold has changed. When it has risen, players who would rather see it than what
    /// they have look around again.
    fn hear_thr(&mut self, id: EntityId, thr: u64) {
        let Some(slot) = self.bodies.slot(id).filter(|s| !self.is_real(*s)) else { return };
        let Region { bodies, viewers, mail, rules, scene, scratch, .. } = self;
        let before = bodies.hot[slot as usize].thr;
        bodies.set_thr(rules, slot, thr);
        if thr <= before {
            return;
        }
        bodies.see_to_crowds(rules, slot);
        scan::interested(bodies, &scene.spec.visibility, rules, viewers, slot, scratch);
        for ix in scratch.interested.drain(..) {
            Self::soil(mail, &mut viewers[ix as usize]);
        }
    }

    fn came_from(&self, id: EntityId) -> Option<RegionId> {
        let viewer = self.bodies.hot[self.bodies.slot(id)? as usize].viewer;
        self.viewers.get(viewer as usize)?.came_from
    }

    fn hear_from_afar(&mut self, msg: ViewMsg, fx: &mut Vec<Effect>) {
        if self.is_incoming(msg.to) {
            // It is about to live here.
            self.mail.posted.push(msg);
            return;
        }
        let viewer =
            self.bodies.slot(msg.to).map(|to| self.bodies.hot[to as usize].viewer as usize);
        let Some(ix) = viewer.filter(|ix| *ix < self.viewers.len()) else {
            match self.whereabouts(msg.to).filter(|owner| *owner != self.id) {
                Some(owner) => fx.push(Effect::View(owner, msg)),
                None if self.has_left(msg.to) => self.answer_for_nobody(msg, fx),
                None if self.mail.early.len() < MAX_EARLY => self.mail.early.push((self.tick, msg)),
                None => {
                    tracing::warn!(region = %self.id, to = %msg.to, "too much is said to players who are not known here; this is lost");
                }
            }
            return;
        };
        match self.bodies.slot(msg.from) {
            Some(from) => self.hear(ix, from, msg.say),
            None => self.hear_of_unknown(ix, msg, fx),
        }
    }

    /// Reads again what came for somebody who was not known here; what has waited for too long is for
    /// nobody.
    pub(super) fn read_early(&mut self) {
        let now = self.tick.0;
        let early = std::mem::take(&mut self.mail.early);
        let (known, unknown): (Vec<_>, Vec<_>) = early
            .into_iter()
            .filter(|(came, _)| came.0 + EXPIRY > now)
            .partition(|(_, msg)| self.bodies.slot(msg.to).is_some() || self.knows_moved(msg.to));
        self.mail.posted.extend(known.into_iter().map(|(_, msg)| msg));
        self.mail.early = unknown;
    }

    /// Says NO to every peer of another region and looks for others: a neighbour has crashed, and what
    /// was said by way of it is lost. Whoever is still wanted is asked anew.
    pub(super) fn begin_anew_afar(&mut self) {
        let Region { bodies, viewers, mail, .. } = self;
        for viewer in viewers {
            let slot = viewer.slot;
            for i in 0..viewer.registers.peers.len() {
                let peer = &viewer.registers.peers[i];
                let known = bodies.hot.get(peer.slot as usize).filter(|b| b.id == peer.id);
                let spoken = peer.mine != 0 || peer.wanted || peer.owed;
                if spoken && known.is_some_and(|b| b.viewer == u32::MAX) {
                    viewer.registers.refuse(i, |p, say| {
                        mail.local.push_back(Letter::new(slot, p, say));
                    });
                }
            }
        }
        self.carry_letters();
    }

    /// A YES to nobody is answered at once, so that the asker's place is not held for ever.
    fn answer_for_nobody(&mut self, msg: ViewMsg, fx: &mut Vec<Effect>) {
        if let Say::Yes(number) = msg.say {
            // Nothing that it ever said stands.
            self.say_no(&msg, Say::No { echo: number, at: u32::MAX }, fx);
        }
    }

    /// A message of somebody who is not mirrored here (any more).
    fn hear_of_unknown(&mut self, ix: usize, msg: ViewMsg, fx: &mut Vec<Effect>) {
        let viewer = &mut self.viewers[ix];
        let at = viewer.registers.find(msg.from);
        match msg.say {
            // Withdrawn since.
            Say::Yes(number) if at.is_some_and(|i| number <= viewer.registers.peers[i].seen) => {}
            Say::Yes(number) => {
                if let Some(at) = at {
                    viewer.registers.peers[at].seen = number;
                    viewer.registers.refuse(at, |_, _| {});
                    viewer.drop_peer(at);
                    Self::soil(&mut self.mail, viewer);
                }
                let at = viewer.registers.counter;
                self.say_no(&msg, Say::No { echo: number, at }, fx);
            }
            Say::No { echo, at: said } => {
                let heard = at.map(|at| viewer.registers.hear_no(at, echo, said));
                if heard.is_some_and(|h| h != Heard::NothingLost) {
                    Self::soil(&mut self.mail, viewer);
                }
            }
        }
    }

    /// Answers a message from afar in the name of whom it was for.
    fn say_no(&mut self, to: &ViewMsg, say: Say, fx: &mut Vec<Effect>) {
        self.counts.view_messages += 1;
        let answer = ViewMsg { from: to.to, from_region: self.id, to: to.from, say };
        fx.push(Effect::View(to.from_region, answer));
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
        let post = |p: &Peer, say| {
            mail.local.push_back(Letter::new(slot, p, say));
        };
        let mut lost = false;
        match say {
            Say::No { echo, at: said } => {
                let Some(at) = known else { return };
                match viewer.registers.hear_no(at, echo, said) {
                    Heard::NothingLost => {}
                    Heard::Lost => lost = true,
                    Heard::Overtaken => {
                        lost = true;
                        let standing = viewer.registers.peers[at].seen;
                        viewer.registers.answer(rules, at, standing, post);
                    }
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
                if number <= peer.seen {
                    return;
                }
                if scan::refresh(bodies, &scene.spec.visibility, rules, slot, me, peer) {
                    viewer.registers.hear_yes(rules, at, number, post);
                } else {
                    peer.seen = number;
                    viewer.registers.refuse(at, post);
                }
                // Others that are blank now go with the next evaluation.
                if viewer.registers.peers[at].is_blank() {
                    viewer.drop_peer(at);
                }
            }
        }
        viewer.thr = viewer.registers.thr(rules);
        bodies.set_thr(rules, slot, viewer.thr.rank);
        if lost {
            Self::soil(mail, viewer);
        }
    }
}
