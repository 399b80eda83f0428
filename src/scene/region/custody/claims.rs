//! After a region's death the regions tell each other which entities live where: the highest epoch
//! counts.
//!
//! A region that recovers from a checkpoint asks all others ([`Region::answer_recovered`]), and
//! they answer with what they know better and with the entities that they have handed there since
//! ([`Region::take_claims`]). A statement about an entity of a third region is hearsay; the third
//! region itself is asked about it.

use rustc_hash::FxHashSet;

use super::HandedOn;
use super::handoff::Past;
use crate::scene::messages::{Claim, Claims, Handoff, LeaveCause, Recovered};
use crate::scene::messages::{Effect, Input};
use crate::scene::mutants::{self, Mutant};
use crate::scene::region::entities::Role;
use crate::scene::region::{PATIENCE, Region};
use crate::scene::{EntityId, Epoch, RegionId, SessionId, SubjectHash, Tick};

impl Region {
    /// The entities that live here as far as is known.
    pub(in crate::scene::region) fn holds(&self) -> Vec<(EntityId, Epoch)> {
        let slots = self.entities.slots().filter(|slot| self.entities.is_real(*slot));
        let real = slots.map(|s| (self.entities.body(s).id, self.entities.record(s).epoch));
        let unclaimed = self.unclaimed().map(|h| (h.state.id, h.epoch));
        let mut holds: Vec<_> = real.chain(unclaimed).collect();
        holds.sort_unstable();
        holds
    }

    /// What is known here of where an entity lives, and under which epoch.
    pub(in crate::scene::region) fn claim(&self, id: EntityId) -> Option<Claim> {
        let here = |epoch| Claim { id, epoch, region: self.identity.id() };
        if let Some(h) = self.custody.incoming_of(id) {
            return Some(here(h.epoch));
        }
        if let Some(slot) = self.entities.slot(id) {
            let record = self.entities.record(slot);
            let owner = match &record.role {
                Role::Ghost(ghost) => ghost.owner,
                Role::Real(_) | Role::Free => self.identity.id(),
            };
            return Some(Claim { id, epoch: record.epoch, region: owner });
        }
        if let Some(unclaimed) = self.unclaimed_of(id) {
            return Some(here(unclaimed.epoch));
        }
        if let Some(moved) = self.custody.moved.get(&id) {
            return Some(Claim { id, epoch: moved.epoch, region: moved.region });
        }
        // It went on as a ghost, which a checkpoint does not know.
        let (_, region, handoff) = self.custody.escrow.lent_of(id)?;
        Some(Claim { id, epoch: handoff.epoch, region: *region })
    }

    /// The epoch of an entity that lives here, claimed or not.
    pub(in crate::scene::region) fn epoch_here(&self, id: EntityId) -> Option<Epoch> {
        self.claim(id).filter(|claim| claim.region == self.identity.id()).map(|claim| claim.epoch)
    }

    /// Where an entity is, if something newer is known of it than a handoff that was kept.
    pub(super) fn knows_newer(&self, handoff: &Handoff) -> Option<RegionId> {
        let claim = self.claim(handoff.state.id).filter(|claim| claim.epoch > handoff.epoch);
        claim.map(|claim| claim.region)
    }

    /// Tells a recovering region what is known here of the entities that it believes to own, and
    /// the entities that were handed to it since; and all that is mirrored to it.
    pub(in crate::scene::region) fn answer_recovered(
        &mut self,
        news: &Recovered,
        fx: &mut Vec<Effect>,
    ) {
        let Recovered { region, epoch, .. } = *news;
        if region == self.identity.id()
            || self.custody.fences.get(&region).is_some_and(|known| epoch <= *known)
        {
            return;
        }
        self.fence(region, epoch);
        self.border.outlived(region, epoch);
        if self.custody.recovering.as_ref().is_some_and(|r| r.asked.contains(&region)) {
            // It did not receive the question.
            let recovered = Recovered {
                region: self.identity.id(),
                epoch: self.identity.epoch(),
                map: self.map_version(),
                holds: self.holds(),
            };
            fx.push(Effect::Forward(region, Box::new(Input::Recovered(Box::new(recovered)))));
        }
        if !self.answers_later(news, fx) {
            self.say_what_lives(news, fx);
        }
    }

    /// Tells it, and mirrors to it anew what stands near it.
    pub(in crate::scene::region) fn say_what_lives(
        &mut self,
        news: &Recovered,
        fx: &mut Vec<Effect>,
    ) {
        let Recovered { region, epoch, ref holds, .. } = *news;
        let mut lives = Vec::new();
        for (id, under) in holds {
            match self.claim(*id) {
                Some(claim) if claim.epoch > *under && claim.region != region => lives.push(claim),
                _ => {
                    self.supersede(Claim { id: *id, epoch: *under, region });
                }
            }
        }
        lives.extend(self.contents_of_others(region, holds));
        let handed = self.handed_to(region);
        let closed = self.clock.is_closed();
        let tick =
            if closed { self.clock.tick() } else { Tick(self.clock.tick().0.saturating_sub(1)) };
        let claims = Claims { from: self.identity.id(), answer: Some(epoch), tick, lives, handed };
        fx.push(Effect::Forward(region, Box::new(Input::Claims(Box::new(claims)))));
        self.border.lost(region);
        if !closed {
            let (tick, known) = (self.clock.tick(), (&mut self.entities, &self.views));
            let actions = (&self.actions, &self.recent_actions);
            self.border.send_ghosts_again(region, tick, &self.identity, known, actions, fx);
        }
    }

    /// Entities that a recovering region may have had, as they were when they were handed on here:
    /// what is known of it as it was before it died says nothing of whether it has them still. They
    /// may have been handed to another one that has passed them on to it, and has died, too; they
    /// come under a lower epoch then than that one knows them, so that it has them if its
    /// checkpoint does, and than any region that has handed them on later.
    fn handed_to(&self, region: RegionId) -> Vec<Handoff> {
        let mut seen = FxHashSet::default();
        let lent = self.custody.escrow.lent().rev().filter(|(.., h)| !self.was_reset(h));
        let newest = lent.filter(|(.., h)| seen.insert(h.state.id));
        let may_be_there = newest.filter_map(|(_, to, handoff)| {
            let epoch = match self.claim(handoff.state.id).filter(|c| c.epoch > handoff.epoch) {
                Some(claim) if claim.region != region => return None,
                _ if *to == region => handoff.epoch,
                Some(_) if !mutants::has(Mutant::PassedOnLost) => {
                    Epoch(handoff.epoch.0.saturating_sub(1))
                }
                _ => return None,
            };
            Some(Handoff { epoch, ..handoff.clone() })
        });
        let mut handed: Vec<_> = may_be_there.collect();
        handed.reverse();
        handed
    }

    /// What others know better, and the entities that they have handed here since the checkpoint.
    pub(in crate::scene::region) fn take_claims(&mut self, claims: Claims, fx: &mut Vec<Effect>) {
        let mut better = Vec::new();
        for claim in claims.lives {
            if claim.region == claims.from {
                self.note_content_elsewhere(&claim);
            }
            if let Some(recovering) = &mut self.custody.recovering {
                recovering.again.retain_of(claim.id, |(_, h)| h.epoch >= claim.epoch);
            }
            let doubts = claim.region != claims.from && !mutants::has(Mutant::Hearsay);
            if doubts && self.doubts(claim, fx) {
                continue;
            }
            if claim.region == self.identity.id() {
                continue;
            }
            self.supersede(claim);
            let known = self.claim(claim.id).filter(|known| known.epoch > claim.epoch);
            better.extend(known.map(|known| (claim.region, known)));
            // A region that asks about a third region's entity must be told, too.
            better.extend(known.filter(|_| doubts).map(|known| (claims.from, known)));
            if known.is_none() && claims.answer.is_none() && claim.region == claims.from {
                self.custody.unanswered.insert(claim.id, (claim, None));
            }
        }
        for (to, claim) in better {
            let (from, tick) = (self.identity.id(), self.clock.tick());
            let (answer, lives, handed) = (None, vec![claim], Vec::new());
            let claims = Claims { from, answer, tick, lives, handed };
            fx.push(Effect::Forward(to, Box::new(Input::Claims(Box::new(claims)))));
        }
        if claims.answer == Some(self.identity.epoch()) {
            self.border.note_tick_of(claims.from, claims.tick);
            if let Some(recovering) = &mut self.custody.recovering {
                recovering.asked.remove(&claims.from);
            }
        }
        if claims.answer.is_none_or(|epoch| epoch == self.identity.epoch()) {
            let handed = match claims.answer {
                Some(_) => claims.handed,
                None => self.give_back(claims.from, claims.handed, fx),
            };
            self.take_handed(handed, fx);
        }
    }

    /// An entity comes that another region believes to have, too, since that region goes on from a checkpoint: it has
    /// asked here about the entity before the entity had come.
    pub(in crate::scene::region) fn answer_pending_question(
        &mut self,
        came: &Handoff,
        fx: &mut Vec<Effect>,
    ) {
        let id = came.state.id;
        let Some((asked, _)) = self.custody.unanswered.remove(&id) else { return };
        if asked.epoch >= came.epoch || mutants::has(Mutant::AskedEarly) {
            return;
        }
        let (from, answer, tick, handed) =
            (self.identity.id(), None, self.clock.tick(), Vec::new());
        let lives = vec![Claim { id, epoch: came.epoch, region: from }];
        let claims = Claims { from, answer, tick, lives, handed };
        fx.push(Effect::Forward(asked.region, Box::new(Input::Claims(Box::new(claims)))));
    }

    /// An entity that is handed over again and is unknown here goes on where it was, if that region
    /// is of a later lineage: an owner between may have gone on with it and died without a trace,
    /// above whose epochs that lineage alone is for certain. Returns the entities that the region
    /// could not keep, or that are known.
    fn give_back(
        &self,
        to: RegionId,
        mut handed: Vec<Handoff>,
        fx: &mut Vec<Effect>,
    ) -> Vec<Handoff> {
        let is_later =
            self.custody.fences.get(&to).is_some_and(|theirs| *theirs > self.identity.lineage());
        if !is_later || mutants::has(Mutant::KeptByOlder) {
            return handed;
        }
        let group_of = |region| self.identity.scene().map.get(region).map(|r| r.group);
        // A region that a layout change has given up keeps no entity; and an entity that has
        // teleported from other ground would not come here by itself.
        let near = group_of(to).is_some_and(|group| Some(group) == group_of(self.identity.id()));
        let can_be_there = |h: &Handoff| {
            self.identity.is_of_this_scene(h) && group_of(to).is_some() && (!h.teleported || near)
        };
        let goes_on_there = |h: &mut Handoff| can_be_there(h) && !self.is_known(h);
        let back: Vec<_> = handed.extract_if(.., goes_on_there).collect();
        if !back.is_empty() {
            let (from, tick) = (self.identity.id(), self.clock.tick());
            let claims = Claims { from, answer: None, tick, lives: Vec::new(), handed: back };
            fx.push(Effect::Forward(to, Box::new(Input::Claims(Box::new(claims)))));
        }
        handed
    }

    /// Whether a handoff is known, or something newer.
    fn is_known(&self, handoff: &Handoff) -> bool {
        let id = handoff.state.id;
        let newer = self.claim(id).is_some_and(|c| {
            c.epoch > handoff.epoch || (c.epoch == handoff.epoch && c.region == self.identity.id())
        });
        newer || self.custody.escrow.came_under(id).is_some_and(|under| under >= handoff.epoch)
    }

    /// Takes entities that were handed here and are not known: this region goes on from a
    /// checkpoint that was made before, or it did not learn of the handoff before the region that
    /// handed them here has died.
    fn take_handed(&mut self, handed: Vec<Handoff>, fx: &mut Vec<Effect>) {
        let mut back = Vec::new();
        for handoff in handed {
            let id = handoff.state.id;
            if self.is_known(&handoff) || !self.entities.has_kind(handoff.state.kind) {
                continue;
            }
            if self.custody.recovering.is_some() {
                self.take_back(handoff, fx);
                back.extend(self.claim(id));
            } else {
                tracing::info!(region = %self.identity.id(), from = %handoff.from, entity = %id, epoch = %handoff.epoch, "an entity was handed here by a region that died");
                // What its client was told is not known any more.
                self.receive(Handoff { resync: true, ..handoff }, fx);
            }
        }
        self.ask_about(back, fx);
    }

    /// Whether hearsay has it that an entity which is here by the checkpoint lives elsewhere. The
    /// region that is said to own the entity may have died, too, and know no more than this region:
    /// it is asked itself.
    fn doubts(&mut self, claim: Claim, fx: &mut Vec<Effect>) -> bool {
        let Some(epoch) = self.epoch_here(claim.id).filter(|epoch| *epoch < claim.epoch) else {
            return false;
        };
        let Some(recovering) = &mut self.custody.recovering else { return false };
        let known = recovering.doubted.entry(claim.id).or_insert((epoch, self.clock.tick()));
        if claim.region != self.identity.id() && known.0 < claim.epoch {
            *known = (claim.epoch, self.clock.tick());
            let lives = vec![Claim { id: claim.id, epoch, region: self.identity.id() }];
            let (from, answer, tick, handed) =
                (self.identity.id(), None, self.clock.tick(), Vec::new());
            let claims = Claims { from, answer, tick, lives, handed };
            fx.push(Effect::Forward(claim.region, Box::new(Input::Claims(Box::new(claims)))));
        }
        true
    }

    /// Whether an unclaimed player may return without being presented. Every other region has said what it knows; the region
    /// that was said to have the player was asked and has had time to answer; and the player's session has had time to
    /// present the player here or elsewhere.
    pub(in crate::scene::region) fn may_return(&self, id: EntityId) -> bool {
        let Some(recovering) = &self.custody.recovering else { return true };
        let has_had_time = |since: Tick| self.clock.tick().0 >= since.0.saturating_add(PATIENCE);
        let answered = recovering.doubted.get(&id).is_none_or(|(_, since)| has_had_time(*since));
        answered && recovering.since.is_some_and(has_had_time) && self.have_all_answered()
    }

    /// Asks every region about entities that the checkpoint does not know: they were handed back, and may have gone on
    /// since, or their sessions alone knew them. A region that knows better says so.
    pub(in crate::scene::region) fn ask_about(&self, back: Vec<Claim>, fx: &mut Vec<Effect>) {
        let Some(recovering) = self.custody.recovering.as_ref().filter(|_| !back.is_empty()) else {
            return;
        };
        for to in &recovering.all {
            let (from, answer, tick) = (self.identity.id(), None, self.clock.tick());
            let (lives, handed) = (back.clone(), Vec::new());
            let claims = Claims { from, answer, tick, lives, handed };
            fx.push(Effect::Forward(*to, Box::new(Input::Claims(Box::new(claims)))));
        }
    }

    /// Asks every region, once for all of them, about the players that were presented in this tick and that the
    /// checkpoint does not know.
    pub(in crate::scene::region) fn ask_about_unknown(&mut self, fx: &mut Vec<Effect>) {
        let unasked = std::mem::take(&mut self.custody.unasked);
        self.ask_about(unasked, fx);
    }

    /// The entity lives elsewhere: under a lower epoch it lives here no more. False when it did not.
    pub(in crate::scene::region) fn supersede(&mut self, claim: Claim) -> bool {
        let Claim { id, epoch, region } = claim;
        let known = self.epoch_here(id).is_some_and(|known| known < epoch);
        if !known || region == self.identity.id() || mutants::has(Mutant::KeepsOld) {
            return false;
        }
        tracing::info!(region = %self.identity.id(), entity = %id, %epoch, owner = %region, "an entity lives elsewhere under a higher epoch");
        let mut was = self.take_unclaimed(id);
        self.custody.incoming.retain_of(id, |h| h.epoch >= epoch);
        if let Some(slot) = self.entities.real_slot(id) {
            was = Some(self.describe(slot, Past::Left));
            self.border.sign_off(slot, Some(region), &mut self.entities);
            self.displace(slot, region);
            self.note_left(slot, LeaveCause::Displaced);
            self.drop_real(slot);
        }
        if let Some(was) = was.filter(|_| self.custody.recovering.is_some()) {
            // The owner before has handed it there, which this region does not know; and the
            // receiver may die, too, before a checkpoint of its own has it.
            let (from, from_epoch) = (self.identity.id(), self.identity.epoch());
            self.custody.escrow.lend(
                self.clock.tick(),
                region,
                &Handoff { from, from_epoch, epoch, ..was },
            );
        }
        self.custody.moved.insert(id, HandedOn { region, epoch, since: self.clock.tick() });
        true
    }

    /// A session that has presented its player here knows better by now.
    pub(in crate::scene::region) fn take_elsewhere(
        &mut self,
        claim: Claim,
        (session, subject): (SessionId, SubjectHash),
    ) {
        if self.is_of_other_subject(claim.id, subject) {
            return;
        }
        let presented = self.inbox.drop_presented((claim.id, session), claim.epoch);
        if presented || self.session_here(claim.id) == Some(session) {
            self.supersede(claim);
        }
    }

    /// The session of a player that lives here, comes here, or waits here for its session.
    fn session_here(&self, id: EntityId) -> Option<SessionId> {
        if let Some(slot) = self.entities.real_slot(id) {
            return self.views.of(&self.entities, slot)?.session;
        }
        self.custody.incoming_of(id).or_else(|| self.unclaimed_of(id))?.state.session
    }
}
