//! View lists of the players that live here: evaluation, and the messages between players, which are
//! answered at once where both live here and travel where one is a ghost.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::bodies::{NO_SLOT, Role};
use super::border_in::EXPIRY;
use super::layout::Renumbering;
use super::scan;
use super::snapshot::SavedMail;
use super::viewer::Viewer;
use super::{Region, ahead};
use crate::scene::effects::Effect;
use crate::scene::views::{Addressee, Heard, PeerState, Say, ViewMsg};
use crate::scene::{EntityId, Epoch, RegionId, Tick};

/// Rounds of repair after which what is left waits for the next tick. Repairs end by themselves; a
/// chain this long has not been seen.
const MAX_ROUNDS: usize = 64;

/// Messages that are kept for players who are not known here and may be on their way.
const MAX_EARLY: usize = 65_536;

/// Messages from other regions, and thresholds, that wait until they are read.
const MAX_POSTED: usize = 65_536;

/// A message between two players that are both known here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Letter {
    from: u32,
    to: u32,
    /// Who was in slot `to` when the letter was written: it may be another's since.
    to_id: EntityId,
    say: Say,
}

impl Letter {
    pub(super) fn new(from: u32, to: Addressee, say: Say) -> Letter {
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
    pub(super) local: VecDeque<Letter>,
    /// For players of other regions.
    afar: Vec<Letter>,
    /// For players that are not mirrored here any more: from, to.
    farewells: Vec<(EntityId, EntityId, Say)>,
    dirty: Vec<u32>,
    /// Players that go on from a checkpoint, or from where it was not known that they live, and know
    /// nothing of what was said to them.
    pub(super) reborn: FxHashSet<EntityId>,
    /// How far players' bonds reach from the next tick on.
    pub(super) reaches: Vec<(u32, Option<u64>)>,
}

impl Mail {
    /// Keeps a message from another region until it is read. Returns how many were lost: where [`MAX_POSTED`] wait, since
    /// this region's tick does not end, it is said anew.
    #[must_use]
    pub fn post(&mut self, msg: ViewMsg) -> u64 {
        let room = self.posted.len() < MAX_POSTED;
        if room {
            self.posted.push(msg);
        }
        u64::from(!room)
    }

    /// Keeps thresholds of players of another region until they are read, the newest of each player. Returns how many
    /// were lost: a later one comes with the player's ghost.
    #[must_use]
    pub fn post_thrs(&mut self, thrs: Vec<(EntityId, u64)>) -> u64 {
        self.thrs.extend(thrs);
        if self.thrs.len() <= MAX_POSTED {
            return 0;
        }
        let mut newest = FxHashSet::default();
        self.thrs.reverse();
        self.thrs.retain(|(id, _)| newest.insert(*id));
        let lost = self.thrs.len().saturating_sub(MAX_POSTED);
        self.thrs.truncate(MAX_POSTED);
        self.thrs.reverse();
        lost as u64
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
    pub fn waiting(
        &self,
        (here, epoch): (RegionId, Epoch),
        id: impl Fn(u32) -> Option<EntityId>,
    ) -> Vec<ViewMsg> {
        let mut all = self.posted.clone();
        all.extend(self.early.iter().map(|(_, msg)| *msg));
        let letters = self.local.iter().chain(&self.afar).map(|l| (id(l.from), l.to_id, l.say));
        let farewells = self.farewells.iter().map(|(from, to, say)| (Some(*from), *to, *say));
        for (from, to, say) in letters.chain(farewells) {
            all.extend(from.map(|from| ViewMsg {
                from,
                from_region: here,
                from_epoch: epoch,
                to,
                say,
            }));
        }
        all
    }

    /// What waits here, for a snapshot. Between ticks nothing is on its way inside.
    pub(super) fn save(&self) -> SavedMail {
        debug_assert!(self.local.is_empty(), "letters are carried at once");
        let (posted, early, thrs) = (self.posted.clone(), self.early.clone(), self.thrs.clone());
        SavedMail { posted, early, thrs, unsent: Vec::new() }
    }

    /// Goes on from a snapshot.
    pub(super) fn restore(&mut self, saved: SavedMail) {
        (self.posted, self.early, self.thrs) = (saved.posted, saved.early, saved.thrs);
    }

    /// Whether anything is to be said to players of other regions.
    pub fn has_letters(&self) -> bool {
        !self.afar.is_empty() || !self.farewells.is_empty()
    }
}

impl Region {
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
        if self.is_rising() {
            // Who speaks is not known yet.
            return;
        }
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
                    self.evaluate_again(ix);
                    self.carry_letters();
                }
            }
        }
    }

    /// Delivers letters between players of this region until none is left; what is for a ghost waits
    /// for [`Region::take_letters`].
    pub(super) fn carry_letters(&mut self) {
        while let Some(letter) = self.mail.local.pop_front() {
            if let Some(next) = self.mail.local.front() {
                let viewer = self.bodies.hot.get(next.to as usize).map_or(u32::MAX, |b| b.viewer);
                if let Some(v) = self.viewers.get(viewer as usize) {
                    ahead::fetch(v.registers.peers());
                }
            }
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
        self.bring_letters_home();
        let mut letters = Vec::new();
        for letter in std::mem::take(&mut self.mail.afar) {
            let from = self.bodies.hot[letter.from as usize].id;
            match &self.bodies.cold[letter.to as usize].role {
                Role::Ghost(ghost) if self.bodies.hot[letter.to as usize].id == letter.to_id => {
                    letters.push((ghost.owner, self.letter(from, letter.to_id, letter.say)));
                }
                // It is mirrored no more since.
                _ => self.mail.farewells.push((from, letter.to_id, letter.say)),
            }
        }
        for (from, to, say) in std::mem::take(&mut self.mail.farewells) {
            // Whoever was never mirrored here is known where the speaker came from, unless it is gone
            // altogether and needs no farewell.
            let home = self.whereabouts(to).or_else(|| self.came_from(from));
            if let Some(region) = home.filter(|r| *r != self.id) {
                letters.push((region, self.letter(from, to, say)));
            }
        }
        self.counts.view_messages += letters.len() as u64;
        letters
    }

    /// Whoever has come to live here since something was said to it hears it here.
    fn bring_letters_home(&mut self) {
        let hot = &self.bodies.hot;
        let lives_here = |letter: &Letter| {
            let to = &hot[letter.to as usize];
            to.id == letter.to_id && to.viewer != u32::MAX
        };
        if self.mail.afar.iter().any(lives_here) {
            let afar = std::mem::take(&mut self.mail.afar);
            let (home, away): (Vec<_>, Vec<_>) = afar.into_iter().partition(lives_here);
            self.mail.local.extend(home);
            self.mail.afar = away;
            self.carry_letters();
        }
    }

    fn letter(&self, from: EntityId, to: EntityId, say: Say) -> ViewMsg {
        ViewMsg { from, from_region: self.id, from_epoch: self.epoch, to, say }
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
        if self.is_late(msg.from_region, msg.from_epoch) {
            return;
        }
        if self.is_incoming(msg.to) {
            // It is about to live here.
            self.mail.posted.push(msg);
            return;
        }
        let viewer =
            self.bodies.slot(msg.to).map(|to| self.bodies.hot[to as usize].viewer as usize);
        let Some(ix) = viewer.filter(|ix| *ix < self.viewers.len()) else {
            match self.whereabouts(msg.to).filter(|owner| *owner != self.id) {
                Some(_) if !self.may_pass_on() => {}
                Some(owner) => fx.push(Effect::View(owner, msg)),
                None if self.has_left(msg.to) => self.answer_for_nobody(msg, fx),
                None if self.mail.early.len() < MAX_EARLY => self.mail.early.push((self.tick, msg)),
                None => {
                    crate::log_limited!(at self.log_ms(); warn, region = %self.id, to = %msg.to, "too much is said to players who are not known here; this is lost");
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
            .filter(|(came, _)| came.0.saturating_add(EXPIRY) > now)
            .partition(|(_, msg)| self.bodies.slot(msg.to).is_some() || self.knows_moved(msg.to));
        self.mail.posted.extend(known.into_iter().map(|(_, msg)| msg));
        self.mail.early = unknown;
    }

    /// Says NO to every peer of another region and looks for others: these regions have crashed, and what
    /// was said by way of them is lost. Whoever is still wanted is asked anew. The same of those who have
    /// come from there: what they and others said to each other before may have been on its way.
    pub(super) fn begin_anew_afar(&mut self, crashed: &[RegionId]) {
        let Region { bodies, viewers, mail, .. } = self;
        let came = |v: &Viewer| v.came_from.is_some_and(|from| crashed.contains(&from));
        let newcomers: FxHashSet<u32> =
            viewers.iter().filter(|v| came(v)).map(|v| v.slot).collect();
        for viewer in viewers {
            let slot = viewer.slot;
            let is_newcomer = newcomers.contains(&slot);
            for i in 0..viewer.registers.peers().len() {
                let (peer, id) = (&viewer.registers.peers()[i], viewer.registers.words()[i].id);
                let there = bodies.hot.get(peer.slot as usize).is_some_and(|b| b.id == id);
                let at = if there { Some(peer.slot) } else { bodies.slot(id) };
                let afar = at.is_some_and(|at| bodies.hot[at as usize].viewer == u32::MAX);
                let newcomer = is_newcomer || at.is_some_and(|at| newcomers.contains(&at));
                if (peer.stands() || peer.owed()) && (afar || newcomer) {
                    viewer.registers.refuse(i, |to, say| {
                        mail.local.push_back(Letter::new(slot, to, say));
                    });
                }
            }
        }
        self.carry_letters();
    }

    /// Everybody says NO to players that have forgotten what was said, and looks for them anew.
    pub(super) fn begin_anew_with_reborn(&mut self) {
        let reborn = std::mem::take(&mut self.mail.reborn);
        if reborn.is_empty() {
            return;
        }
        for ix in 0..self.viewers.len() {
            self.begin_anew_where(ix, |id| reborn.contains(&id));
        }
        self.carry_letters();
    }

    /// The same of one who has come and dealt with players before these went on from a checkpoint.
    pub(super) fn begin_anew_with_older(&mut self, slot: u32, peers: &[PeerState]) {
        let older = |p: &&PeerState| {
            let known = self.bodies.slot(p.id).map(|s| self.bodies.cold[s as usize].epoch);
            p.epoch > Epoch(0) && known.is_some_and(|known| p.epoch.is_of_a_life_before(known))
        };
        let older: FxHashSet<EntityId> = peers.iter().filter(older).map(|p| p.id).collect();
        if !older.is_empty() {
            let ix = self.bodies.hot[slot as usize].viewer as usize;
            self.begin_anew_where(ix, |id| older.contains(&id));
        }
    }

    pub(super) fn begin_anew_where(&mut self, ix: usize, which: impl Fn(EntityId) -> bool) {
        let Region { viewers, mail, .. } = self;
        let Some(viewer) = viewers.get_mut(ix) else { return };
        for i in 0..viewer.registers.peers().len() {
            let (peer, id) = (&viewer.registers.peers()[i], viewer.registers.words()[i].id);
            if (peer.stands() || peer.owed()) && which(id) {
                let slot = viewer.slot;
                viewer.registers.refuse(i, |to, say| {
                    mail.local.push_back(Letter::new(slot, to, say));
                });
            }
        }
    }

    /// A YES to nobody is answered at once, so that the asker's place is not held for ever.
    fn answer_for_nobody(&mut self, msg: ViewMsg, fx: &mut Vec<Effect>) {
        if let Say::Yes(number) | Say::Again(number) = msg.say {
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
            Say::Yes(_) | Say::Again(_)
                if at.is_some_and(|i| !viewer.registers.wants_answer(i, msg.say)) => {}
            Say::Yes(number) | Say::Again(number) => {
                if let Some(at) = at {
                    viewer.registers.refuse_yes(at, number, |_, _| {});
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
        let answer = self.letter(to.to, to.from, say);
        fx.push(Effect::View(to.from_region, answer));
    }

    pub(super) fn soil(mail: &mut Mail, viewer: &mut super::viewer::Viewer) {
        if !viewer.dirty {
            viewer.dirty = true;
            mail.dirty.push(viewer.slot);
        }
    }

    /// The player at `ix` hears the entity at slot `from`.
    fn hear(&mut self, ix: usize, from: u32, say: Say) {
        let Region { bodies, viewers, mail, rules, scene, view_tick, .. } = self;
        let viewer = &mut viewers[ix];
        viewer.registers.begin_tick(*view_tick);
        let slot = viewer.slot;
        let speaker = bodies.hot[from as usize].id;
        let known = viewer.registers.find_at(from, speaker, bodies.have_moved(), NO_SLOT);
        let post = |to: Addressee, say| {
            mail.local.push_back(Letter::new(slot, to, say));
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
                        let standing = viewer.registers.words()[at].seen;
                        viewer.registers.answer(rules, at, standing, post);
                    }
                }
                if viewer.registers.peers()[at].is_blank() {
                    viewer.drop_peer(at);
                }
            }
            Say::Yes(number) | Say::Again(number) => {
                let registers = &mut viewer.registers;
                let at = known.unwrap_or_else(|| registers.push(speaker, from));
                let me = &bodies.places[slot as usize];
                registers.peers_mut()[at].slot = from;
                if !registers.wants_answer(at, say) {
                    return;
                }
                if scan::refresh(bodies, &scene.spec.visibility, rules, slot, me, registers, at) {
                    registers.hear_yes(rules, at, say, post);
                } else {
                    registers.refuse_yes(at, number, post);
                }
                // Others that are blank now go with the next evaluation.
                if registers.peers()[at].is_blank() {
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
