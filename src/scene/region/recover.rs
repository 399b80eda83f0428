//! A region that has died without a word goes on from its last checkpoint.
//!
//! ```text
//!                    tick(), answers from all,            everybody is presented,
//!                    or PATIENCE ticks later              or the grace is over
//!   recover -> Rising --------------------------> Risen -------------------------> like any other
//! ```
//!
//! It asks every region what that one knows better: who lives there by now (the highest epoch counts), and
//! whom it has handed here since. Neighbours send all their ghosts. Then everything that no client steers
//! goes on as the checkpoint has it. Players sleep until their sessions present them (the module
//! `present`), since only these know what became of them.
//!
//! What the dead one has said and was not heard before the news of its death is dropped: [`Region`]
//! believes nothing that was said under an epoch before the lineage that it knows of.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::bodies::Role;
use super::snapshot::RegionSnapshot;
use super::{Moved, PATIENCE, Phase, Region, RestoreError};
use crate::scene::border::{Claim, Claims, Handoff, Recovered};
use crate::scene::effects::{Effect, Input, Notice, Presented};
use crate::scene::mutants::{self, Mutant};
use crate::scene::{EntityId, Epoch, Kind, RegionId, Scene, SessionId, Tick};

/// Ticks for which a recovered region waits, with its first tick, for its players' sessions.
const PRESENT_TICKS: u64 = 3;

/// For how many ticks before its checkpoint a region that goes on from it hands over again whom it has handed over: for
/// so long words may have been under way on a link that was cut. Less than the grace, so that whoever was handed to and
/// has died since still asks others about them.
const AGAIN_TICKS: u64 = 150;

/// For how many ticks players may still be presented after a recovered region has moved.
const ESCORT_TICKS: u64 = 300;

/// How a region goes on from a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Whom to ask what they know better; the scene's regions, or those of every scene where entities jump
    /// between them. The region itself is left out.
    pub ask: Vec<RegionId>,
    /// For how many ticks a player of the checkpoint may be presented; after that it has left.
    pub grace_ticks: u64,
    /// Since which of their epochs others have their present owners, as far as is known: whom those before them have handed
    /// here is theirs again.
    pub owners: Vec<(RegionId, Epoch)>,
}

/// What is not yet as it was.
#[derive(Debug)]
pub struct Recovering {
    /// The first tick was not opened yet.
    rising: bool,
    /// Who has not answered. Whoever goes on from a checkpoint itself is asked again.
    asked: Vec<RegionId>,
    /// Whoever was asked.
    all: Vec<RegionId>,
    /// The first tick that was due.
    since: Option<Tick>,
    grace_ticks: u64,
    dormant: FxHashMap<EntityId, Handoff>,
    /// Whom the owner before has handed over of late, and to whom, until all have said whether they know better.
    again: Vec<(RegionId, Handoff)>,
    /// Of whom others say that they live in a third region: under which epoch at most, and when that was heard.
    doubted: FxHashMap<EntityId, (Epoch, Tick)>,
}

impl Region {
    /// The region `id` goes on from a checkpoint after its death, under a higher epoch. `fx` is what it has
    /// to say at once: to all whom it asks, and to its players' sessions.
    ///
    /// # Errors
    /// The snapshot does not fit.
    pub fn recover(
        scene: Arc<Scene>,
        id: RegionId,
        epoch: Epoch,
        snapshot: RegionSnapshot,
        how: Recovery,
        fx: &mut Vec<Effect>,
    ) -> Result<Region, RestoreError> {
        let mut region = Region::begin(scene, id, epoch, &snapshot)?;
        let since = (snapshot.swept, Vec::new());
        region.inbound.restore(snapshot.inbound, since, &region.fences);
        region.inbound.forget_all();
        region.moved = snapshot.moved.into_iter().collect();
        region.arrivals = snapshot.arrivals;
        region.inbox = snapshot.inbox;
        // Sessions say these again; those who have entered, or were presented, may have gone on since.
        region.inbox.retain(|input| match input {
            Input::Client { .. } | Input::Resume(_) | Input::Present(_) => false,
            Input::Enter(spawn) => spawn.session.is_none() || mutants::has(Mutant::EntersAgain),
            _ => true,
        });
        let knows = !mutants::has(Mutant::OwnersUnknown);
        region.owners = how.owners.into_iter().filter(|_| knows).collect();
        let asked: Vec<_> = how.ask.into_iter().filter(|other| *other != id).collect();
        region.recovering = Some(Box::new(Recovering {
            rising: true,
            asked: asked.clone(),
            all: asked.clone(),
            since: None,
            grace_ticks: how.grace_ticks,
            dormant: FxHashMap::default(),
            again: Vec::new(),
            doubted: FxHashMap::default(),
        }));
        let came = snapshot.reals.into_iter().map(|real| real.state);
        for state in came.chain(snapshot.incoming).chain(snapshot.dormant) {
            region.take_back(state, fx);
        }
        // They answer in the order in which they are asked.
        region.ask_about_lent(fx);
        let news = Recovered { region: id, epoch, holds: region.holds() };
        let news = |to| Effect::Forward(to, Box::new(Input::Recovered(Box::new(news.clone()))));
        fx.extend(asked.into_iter().map(news));
        Ok(region)
    }

    /// Asks what became of those whom the owner before has handed over of late: it may have died before that was heard.
    fn ask_about_lent(&mut self, fx: &mut Vec<Effect>) {
        let recent = self.escrow.lent().filter(|(at, ..)| at.0 + AGAIN_TICKS > self.tick.0);
        let unknown = recent.filter(|(.., handoff)| !self.knows_newer(handoff));
        let again: Vec<_> = unknown.map(|(_, to, handoff)| (*to, handoff.clone())).collect();
        let claim =
            |(to, h): &(RegionId, Handoff)| Claim { id: h.state.id, epoch: h.epoch, region: *to };
        self.ask_about(again.iter().map(claim).collect(), fx);
        if let Some(recovering) = self.recovering.as_mut() {
            recovering.again = again;
        }
    }

    /// Whether it is not known yet that somebody who was handed over is where that was to.
    pub(super) fn may_be_lost(&self, id: EntityId) -> bool {
        self.recovering.as_ref().is_some_and(|r| r.again.iter().any(|(_, h)| h.state.id == id))
    }

    /// Says once more whom the owner before has handed over of late, and of whom nobody knows better.
    pub(super) fn hand_over_again(&mut self, fx: &mut Vec<Effect>) {
        if self.is_rising() || !self.have_all_answered() {
            return;
        }
        let again = self.recovering.as_mut().map(|r| std::mem::take(&mut r.again));
        let mut by_region: BTreeMap<RegionId, Vec<Handoff>> = BTreeMap::new();
        for (to, handoff) in again.into_iter().flatten() {
            if !self.knows_newer(&handoff) && !mutants::has(Mutant::HandedOnce) {
                by_region.entry(to).or_default().push(handoff);
            }
        }
        let (from, tick) = (self.id, self.tick);
        for (to, handed) in by_region {
            let claims = Claims { from, answer: None, tick, lives: Vec::new(), handed };
            fx.push(Effect::Forward(to, Box::new(Input::Claims(Box::new(claims)))));
        }
    }

    /// Whether something newer is known of an entity than a handoff that was kept.
    fn knows_newer(&self, handoff: &Handoff) -> bool {
        self.claim(handoff.state.id).is_some_and(|claim| claim.epoch > handoff.epoch)
    }

    /// Who lives here as far as is known.
    fn holds(&self) -> Vec<(EntityId, Epoch)> {
        let slots = self.bodies.slots().filter(|slot| self.is_real(*slot));
        let real =
            slots.map(|s| (self.bodies.hot[s as usize].id, self.bodies.cold[s as usize].epoch));
        let dormant = self.dormant().map(|h| (h.state.id, h.epoch));
        let mut holds: Vec<_> = real.chain(dormant).collect();
        holds.sort_unstable();
        holds
    }

    /// Somebody as it was known last: a player sleeps until it is presented.
    fn take_back(&mut self, state: Handoff, fx: &mut Vec<Effect>) {
        let id = state.state.id;
        if self.epoch_here(id).is_some_and(|known| known >= state.epoch) {
            return;
        }
        if state.state.kind != Kind::PLAYER {
            if let Some(slot) = self.real_slot(id) {
                self.drop_real(slot);
            }
            return self.revive(state);
        }
        let Some(recovering) = &mut self.recovering else { return };
        if let Some(session) = state.state.session {
            let (region, owner, epoch) = (self.id, self.epoch, state.epoch);
            fx.push(Effect::Notice(session, Notice::Present { region, owner, epoch }));
        }
        recovering.dormant.insert(id, state);
        self.counts.dormant = recovering.dormant.len() as u64;
    }

    /// Something that no client steers goes on.
    fn revive(&mut self, state: Handoff) {
        self.still = false;
        let rising = self.is_rising();
        let epoch = if rising { state.epoch } else { state.epoch.next_life(self.lineage) };
        let slot = self.place_real(&state.state, state.ties, epoch);
        self.escrow.note(self.tick, state.state.id, epoch);
        if let Some(mover) = state.mover {
            self.give_mover(slot, Some(mover));
        }
        self.bodies.hot[slot as usize].changed = self.tick.0 as u32;
        self.expect_ends(slot);
    }

    /// Players of the checkpoint whom nobody has presented yet.
    pub(super) fn dormant(&self) -> impl Iterator<Item = &Handoff> {
        self.recovering.iter().flat_map(|r| r.dormant.values())
    }

    /// Goes on to wait for players whom nobody had presented when the region moved.
    pub(super) fn expect(&mut self, dormant: Vec<Handoff>, since: Tick) {
        if dormant.is_empty() {
            return;
        }
        self.counts.dormant = dormant.len() as u64;
        self.recovering = Some(Box::new(Recovering {
            rising: false,
            asked: Vec::new(),
            all: Vec::new(),
            since: Some(since),
            grace_ticks: ESCORT_TICKS,
            dormant: dormant.into_iter().map(|h| (h.state.id, h)).collect(),
            again: Vec::new(),
            doubted: FxHashMap::default(),
        }));
    }

    /// Players who sleep until their sessions present them, with these.
    pub fn sleeping(&self) -> impl Iterator<Item = (EntityId, SessionId)> {
        self.dormant().filter_map(|known| Some((known.state.id, known.state.session?)))
    }

    /// Asks the sessions of all who sleep to present them: it may be that they were not told, or not where.
    pub fn ask_for_sleepers(&self, fx: &mut Vec<Effect>) {
        let (region, owner) = (self.id, self.epoch);
        fx.extend(self.dormant().filter_map(|known| {
            let notice = Notice::Present { region, owner, epoch: known.epoch };
            Some(Effect::Notice(known.state.session?, notice))
        }));
    }

    /// Whether every region has said what it knows better, or had a third of the grace for it: one that says nothing
    /// for so long, since a change of the map has given it up or nobody starts it, knows nobody who still waits.
    pub(super) fn have_all_answered(&self) -> bool {
        self.recovering.as_ref().is_none_or(|r| {
            let late = |since: Tick| self.tick.0 >= since.0.saturating_add(r.grace_ticks / 3);
            r.asked.is_empty() || r.since.is_some_and(late)
        })
    }

    /// Whether a player waits for its session.
    pub(super) fn is_dormant(&self, id: EntityId) -> bool {
        self.asleep(id).is_some()
    }

    /// What is known of a player that waits for its session.
    pub(super) fn asleep(&self, id: EntityId) -> Option<&Handoff> {
        self.recovering.as_ref()?.dormant.get(&id)
    }

    /// A player sleeps no more.
    pub(super) fn wake(&mut self, id: EntityId) -> Option<Handoff> {
        let woken = self.recovering.as_mut()?.dormant.remove(&id);
        self.counts.dormant = self.dormant().count() as u64;
        woken
    }

    /// A player leaves that nobody has presented; false when there is none.
    pub(super) fn forget_dormant(&mut self, id: EntityId, fx: &mut Vec<Effect>) -> bool {
        let Some(gone) = self.wake(id) else { return false };
        let (tick, epoch) = (self.tick, gone.epoch);
        self.moved.insert(id, Moved { region: self.id, epoch, since: tick });
        let epoch = epoch.next_life(self.lineage);
        if let Some(session) = gone.state.session {
            fx.push(Effect::Notice(session, Notice::Left { tick, epoch }));
        }
        true
    }

    /// Whether the first tick after a death was not opened yet.
    pub fn is_rising(&self) -> bool {
        self.recovering.as_ref().is_some_and(|r| r.rising)
    }

    /// Whether tick `now` may be opened. With the first one everything goes on that no client steers.
    pub(super) fn has_risen(&mut self, now: Tick) -> bool {
        let Some(recovering) = self.recovering.as_mut().filter(|r| r.rising) else { return true };
        let since = recovering.since.get_or_insert(now).0;
        let presented: FxHashSet<EntityId> =
            self.inbox.iter().filter_map(Input::presented).collect();
        let asleep = recovering.dormant.keys().any(|id| !presented.contains(id));
        let waits = (!recovering.asked.is_empty() && now.0 < since + PATIENCE)
            || (asleep && now.0 < since + PRESENT_TICKS);
        if waits {
            return false;
        }
        recovering.rising = false;
        for slot in 0..self.bodies.hot.len() as u32 {
            // A player was handed over since: its session was told of it under the epoch that it has.
            let is_player = self.bodies.hot[slot as usize].kind == Kind::PLAYER;
            if self.is_real(slot) && !is_player {
                let cold = &mut self.bodies.cold[slot as usize];
                cold.epoch = cold.epoch.next_life(self.lineage);
                self.bodies.hot[slot as usize].changed = now.0 as u32;
            }
        }
        true
    }

    /// Players whom nobody has presented within the grace have left.
    pub(super) fn give_up_dormant(&mut self) {
        let Some(recovering) = &mut self.recovering else { return };
        let since = recovering.since.unwrap_or(self.tick);
        if self.tick.0 < since.0 + recovering.grace_ticks {
            return;
        }
        self.counts.dormant = 0;
        self.recovering = None;
    }

    /// Whether a region that was another's by then has said something. Such words are counted and nothing
    /// more.
    pub(super) fn is_late(&mut self, from: RegionId, epoch: Epoch) -> bool {
        let since = self.fences.get(&from).max(self.owners.get(&from));
        let late = since.is_some_and(|since| epoch < *since);
        let late = late && !mutants::has(Mutant::AnyEpoch);
        self.counts.fenced += u64::from(late);
        late
    }

    /// Nothing counts any more that the region said before this epoch.
    pub(super) fn fence(&mut self, region: RegionId, since: Epoch) {
        if since > Epoch(1) {
            let known = self.fences.entry(region).or_default();
            *known = since.max(*known);
        }
    }

    /// Tells a region that goes on from a checkpoint what is known here of those whom it believes to have,
    /// and who was handed to it since; and everything that is mirrored to it.
    pub(super) fn answer_recovered(&mut self, news: &Recovered, fx: &mut Vec<Effect>) {
        let Recovered { region, epoch, ref holds } = *news;
        if region == self.id || self.fences.get(&region).is_some_and(|known| epoch <= *known) {
            return;
        }
        self.fence(region, epoch);
        if !self.inbound.outlived(region, epoch) {
            // A neighbour's first batch will say so. What was said by way of any other is lost from now on.
            self.inbound.crashed.push(region);
        }
        if self.recovering.as_ref().is_some_and(|r| r.asked.contains(&region)) {
            // It did not hear the question.
            let mine = Recovered { region: self.id, epoch: self.epoch, holds: self.holds() };
            fx.push(Effect::Forward(region, Box::new(Input::Recovered(Box::new(mine)))));
        }
        let mut lives = Vec::new();
        for (id, under) in holds {
            match self.claim(*id) {
                Some(claim) if claim.epoch > *under && claim.region != region => lives.push(claim),
                _ => {
                    self.outdo(Claim { id: *id, epoch: *under, region });
                }
            }
        }
        let handed = self.escrow.lent().filter(|(_, to, h)| *to == region && !self.knows_newer(h));
        let handed = handed.map(|(.., handoff)| handoff.clone()).collect();
        let closed = self.phase == Phase::Closed;
        let tick = if closed { self.tick } else { Tick(self.tick.0.saturating_sub(1)) };
        let claims = Claims { from: self.id, answer: Some(epoch), tick, lives, handed };
        fx.push(Effect::Forward(region, Box::new(Input::Claims(Box::new(claims)))));
        self.outbound.lost(region);
        if !closed {
            self.send_border_again(region, fx);
        }
    }

    /// What is known here of where an entity lives, and under which epoch.
    pub(super) fn claim(&self, id: EntityId) -> Option<Claim> {
        let here = |epoch| Claim { id, epoch, region: self.id };
        if let Some(h) = self.incoming.iter().find(|h| h.state.id == id) {
            return Some(here(h.epoch));
        }
        if let Some(slot) = self.bodies.slot(id) {
            let cold = &self.bodies.cold[slot as usize];
            let owner = match &cold.role {
                Role::Ghost(ghost) => ghost.owner,
                Role::Real(_) | Role::Free => self.id,
            };
            return Some(Claim { id, epoch: cold.epoch, region: owner });
        }
        if let Some(dormant) = self.asleep(id) {
            return Some(here(dormant.epoch));
        }
        if let Some(moved) = self.moved.get(&id) {
            return Some(Claim { id, epoch: moved.epoch, region: moved.region });
        }
        // It went on as a ghost, which a checkpoint does not know.
        let lent = self.escrow.lent().filter(|(.., handoff)| handoff.state.id == id);
        let (_, region, handoff) = lent.max_by_key(|(.., handoff)| handoff.epoch)?;
        Some(Claim { id, epoch: handoff.epoch, region: *region })
    }

    /// The epoch of who lives here, sleeping or not.
    fn epoch_here(&self, id: EntityId) -> Option<Epoch> {
        self.claim(id).filter(|claim| claim.region == self.id).map(|claim| claim.epoch)
    }

    /// What others know better; and whom they have handed here since the checkpoint.
    pub(super) fn hear_claims(&mut self, claims: Claims, fx: &mut Vec<Effect>) {
        let mut better = Vec::new();
        for claim in claims.lives {
            if let Some(recovering) = &mut self.recovering {
                let older = |h: &Handoff| h.state.id == claim.id && h.epoch < claim.epoch;
                recovering.again.retain(|(_, h)| !older(h));
            }
            let doubts = claim.region != claims.from && !mutants::has(Mutant::Hearsay);
            if doubts && self.doubts(claim, fx) {
                continue;
            }
            if claim.region != self.id && !self.outdo(claim) {
                let known = self.claim(claim.id).filter(|known| known.epoch > claim.epoch);
                better.extend(known.map(|known| (claim.region, known)));
                // Who asks of a third region's wants to know, too.
                better.extend(known.filter(|_| doubts).map(|known| (claims.from, known)));
            }
        }
        for (to, claim) in better {
            let (from, tick) = (self.id, self.tick);
            let (answer, lives, handed) = (None, vec![claim], Vec::new());
            let claims = Claims { from, answer, tick, lives, handed };
            fx.push(Effect::Forward(to, Box::new(Input::Claims(Box::new(claims)))));
        }
        if claims.answer == Some(self.epoch) {
            self.inbound.hear_of(claims.from, claims.tick);
            if let Some(recovering) = &mut self.recovering {
                recovering.asked.retain(|asked| *asked != claims.from);
            }
        }
        if claims.answer.is_none_or(|epoch| epoch == self.epoch) {
            self.take_handed(claims.handed, fx);
        }
    }

    /// Takes whoever was handed here and is not known: this region goes on from a checkpoint that was made before, or it did
    /// not hear of it before whoever handed them here has died.
    fn take_handed(&mut self, handed: Vec<Handoff>, fx: &mut Vec<Effect>) {
        if handed.is_empty() {
            return;
        }
        let came = self.escrow.who_has_come();
        let mut back = Vec::new();
        for handoff in handed {
            let id = handoff.state.id;
            let newer = self.claim(id).is_some_and(|c| {
                c.epoch > handoff.epoch || (c.epoch == handoff.epoch && c.region == self.id)
            });
            let is_known = newer || came.get(&id).is_some_and(|under| *under >= handoff.epoch);
            if is_known || !self.bodies.has_kind(handoff.state.kind) {
                continue;
            }
            if self.recovering.is_some() {
                self.take_back(handoff, fx);
                back.extend(self.claim(id));
            } else {
                tracing::info!(region = %self.id, from = %handoff.from, entity = %id, epoch = %handoff.epoch, "an entity was handed here by who died");
                // What its client was told is not known any more.
                self.receive(Handoff { resync: true, ..handoff }, fx);
            }
        }
        self.ask_about(back, fx);
    }

    /// Whether it is said by hearsay that somebody who is here by the checkpoint lives elsewhere: who is said to have it
    /// may have died, too, and know no more of it than this one does. It is asked itself.
    fn doubts(&mut self, claim: Claim, fx: &mut Vec<Effect>) -> bool {
        let Some(epoch) = self.epoch_here(claim.id).filter(|epoch| *epoch < claim.epoch) else {
            return false;
        };
        let Some(recovering) = &mut self.recovering else { return false };
        let known = recovering.doubted.entry(claim.id).or_insert((epoch, self.tick));
        if claim.region != self.id && known.0 < claim.epoch {
            *known = (claim.epoch, self.tick);
            let lives = vec![Claim { id: claim.id, epoch, region: self.id }];
            let (from, answer, tick, handed) = (self.id, None, self.tick, Vec::new());
            let claims = Claims { from, answer, tick, lives, handed };
            fx.push(Effect::Forward(claim.region, Box::new(Input::Claims(Box::new(claims)))));
        }
        true
    }

    /// Whether somebody who sleeps may wake without being presented: every other region has said what it knows, and
    /// whoever was said to have it was asked and has had time to answer; and its session has had time to present it here, or
    /// elsewhere, where nobody knew of it and others are asked about it.
    pub(super) fn may_wake(&self, id: EntityId) -> bool {
        let Some(recovering) = &self.recovering else { return true };
        let has_had_time = |since: Tick| self.tick.0 >= since.0 + PATIENCE;
        let answered = recovering.doubted.get(&id).is_none_or(|(_, since)| has_had_time(*since));
        answered && recovering.since.is_some_and(has_had_time) && self.have_all_answered()
    }

    /// Tells everybody of those that the checkpoint does not know, of whom nobody was asked: they were handed back, and may
    /// have gone on since, or their sessions alone knew them. Whoever knows better says so.
    pub(super) fn ask_about(&self, back: Vec<Claim>, fx: &mut Vec<Effect>) {
        let Some(recovering) = self.recovering.as_ref().filter(|_| !back.is_empty()) else {
            return;
        };
        for to in &recovering.all {
            let (from, answer, tick) = (self.id, None, self.tick);
            let (lives, handed) = (back.clone(), Vec::new());
            let claims = Claims { from, answer, tick, lives, handed };
            fx.push(Effect::Forward(*to, Box::new(Input::Claims(Box::new(claims)))));
        }
    }

    /// The entity lives elsewhere: whoever was here under a lower epoch is here no more. False when nobody
    /// was.
    pub(super) fn outdo(&mut self, claim: Claim) -> bool {
        let Claim { id, epoch, region } = claim;
        let known = self.epoch_here(id).is_some_and(|known| known < epoch);
        if !known || region == self.id || mutants::has(Mutant::KeepsOld) {
            return false;
        }
        tracing::info!(region = %self.id, entity = %id, %epoch, owner = %region, "an entity lives elsewhere under a higher epoch");
        self.wake(id);
        self.incoming.retain(|h| h.state.id != id || h.epoch >= epoch);
        if let Some(slot) = self.real_slot(id) {
            self.sign_off(slot, Some(region));
            self.displace(slot, region);
            self.drop_real(slot);
        }
        self.moved.insert(id, Moved { region, epoch, since: self.tick });
        true
    }

    /// A session has presented a player here, and knows better by now.
    pub(super) fn take_for_gone(&mut self, claim: Claim) {
        let old = |p: &Presented| p.id == claim.id && p.epoch < claim.epoch;
        self.inbox.retain(|input| !matches!(input, Input::Present(presented) if old(presented)));
        self.outdo(claim);
    }

    fn drop_real(&mut self, slot: u32) {
        self.still = false;
        self.take_viewer(slot);
        self.bodies.remove(slot);
        self.counts.reals -= 1;
    }
}
