//! A region that has died without notice recovers from its last checkpoint.
//!
//! ```text
//!                    tick(), answers from all,            all are presented,
//!                    or PATIENCE ticks later              or the grace is over
//!   recover -> waiting -------------------------> acting ------------------------> like any other
//! ```
//!
//! It asks every region for newer knowledge: which entities live there by now (the highest epoch
//! counts), and which entities it has handed here since. Neighbours send all their ghosts. Then all
//! entities without a client resume as the checkpoint has them. Players are unclaimed until their
//! sessions present them (`reclaim`), since only sessions know what became of them.
//!
//! Messages of the dead region that did not arrive before the news of its death are dropped:
//! [`Region`] accepts nothing from an epoch before the lineage that it knows.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::scene::messages::{Departed, Effect, Input, Notice};
use crate::scene::messages::{EnterCause, Handoff, Recovered};
use crate::scene::mutants::{self, Mutant};
use crate::scene::region::waiting::Waiting;
use crate::scene::region::{PATIENCE, Region};
use crate::scene::{EntityId, Epoch, Kind, RegionId, SessionId, Tick, TickStamp};

/// Regions of which it is remembered since when they are believed.
const MAX_FENCES: usize = 1 << 17;

/// Ticks for which a recovered region waits, with its first tick, for its players' sessions.
const PRESENT_TICKS: u64 = 3;

/// A recovering region repeats its handoffs of this many ticks before the checkpoint: messages may
/// have been under way for so long on a link that was cut. Less than the grace period, so that a
/// region that received such an entity and has died since still asks others about it.
pub(super) const AGAIN_TICKS: u64 = 150;

/// For how many ticks players may still be presented after a recovered region has moved.
const ESCORT_TICKS: u64 = 300;

/// How a region recovers from a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// The regions to ask for newer knowledge: the scene's, or those of every scene where entities
    /// teleport between them. The region itself is left out.
    pub ask: Vec<RegionId>,
    /// For how many ticks a player of the checkpoint may be presented; after that it has left.
    pub grace_ticks: u64,
    /// Since which of their epochs others have their present owners, as far as is known: entities
    /// that former owners have handed here are theirs again.
    pub owners: Vec<(RegionId, Epoch)>,
}

/// The state of a recovery.
#[derive(Debug, Default)]
pub struct Recovering {
    /// The first tick was not opened yet.
    pub(super) waits: bool,
    /// Regions that have not answered. A region that goes on from a checkpoint itself is asked again.
    pub(super) asked: BTreeSet<RegionId>,
    /// All regions that were asked.
    pub(super) all: Vec<RegionId>,
    /// The first tick that was due.
    pub(super) since: Option<Tick>,
    /// When the last of its players was handed back.
    pub(super) back: Tick,
    grace_ticks: u64,
    pub(super) unclaimed: BTreeMap<EntityId, Handoff>,
    /// Of these, players that leave, and whose sessions were asked to present them first.
    leaving: BTreeSet<EntityId>,
    /// Entities that the owner before has handed over recently, and the receivers, until all
    /// regions have answered.
    pub(super) again: Waiting<(RegionId, Handoff)>,
    /// Entities that, by hearsay, live in a third region: the highest epoch, and when the hearsay
    /// came.
    pub(super) doubted: FxHashMap<EntityId, (Epoch, Tick)>,
}

impl Region {
    /// The region, which is as its checkpoint has it but for its entities, begins to recover. `last_known` are
    /// these. `fx` receives questions to other regions, and notices to the players' sessions.
    pub(in crate::scene::region) fn begin_recovery(
        &mut self,
        how: Recovery,
        last_known: impl Iterator<Item = Handoff>,
        fx: &mut Vec<Effect>,
    ) {
        let (id, epoch) = (self.identity.id(), self.identity.epoch());
        let knows = !mutants::has(Mutant::OwnersUnknown);
        self.custody.owners = how.owners.into_iter().filter(|_| knows).collect();
        let asked: Vec<_> = how.ask.into_iter().filter(|other| *other != id).collect();
        self.custody.recovering = Some(Box::new(Recovering {
            waits: true,
            asked: asked.iter().copied().collect(),
            all: asked.clone(),
            grace_ticks: how.grace_ticks,
            ..Recovering::default()
        }));
        for state in last_known {
            self.take_back(state, fx);
        }
        // Sessions answer in the order in which they are asked.
        self.ask_about_handed_off(fx);
        let (map, holds) = (self.map_version(), self.holds());
        let news = Recovered { region: id, epoch, map, holds };
        let news = |to| Effect::Forward(to, Box::new(Input::Recovered(Box::new(news.clone()))));
        fx.extend(asked.into_iter().map(news));
    }

    /// An entity as it was known last: a player is unclaimed until its session presents it.
    pub(super) fn take_back(&mut self, state: Handoff, fx: &mut Vec<Effect>) {
        let id = state.state.id;
        if self.epoch_here(id).is_some_and(|known| known >= state.epoch) || self.was_reset(&state) {
            return;
        }
        if state.state.kind != Kind::PLAYER {
            if let Some(slot) = self.entities.real_slot(id) {
                self.drop_real(slot);
            }
            return self.revive(state);
        }
        let Some(recovering) = &mut self.custody.recovering else { return };
        if let Some(session) = state.state.session {
            let (region, owner, epoch) = (self.identity.id(), self.identity.epoch(), state.epoch);
            fx.push(Effect::Notice(session, Notice::Present { region, owner, epoch }));
        }
        recovering.unclaimed.insert(id, state);
        recovering.back = self.clock.tick();
        self.counts.unclaimed = recovering.unclaimed.len() as u64;
    }

    /// An entity without a client resumes.
    fn revive(&mut self, state: Handoff) {
        self.views.positions_change();
        let recovering = self.is_recovering();
        let epoch =
            if recovering { state.epoch } else { state.epoch.next_life(self.identity.lineage()) };
        let slot = self.place_real(&state.state, state.ties, epoch);
        self.custody.escrow.note(self.clock.tick(), state.state.id, epoch);
        if let Some(mover) = state.mover {
            self.give_mover(slot, Some(mover));
        }
        self.restore_watch(slot, state.watch);
        self.fall_asleep_again(slot, state.asleep_until);
        if state.asleep_until.is_none() {
            self.logic.entered(state.state.id, EnterCause::Recovered);
        }
        self.entities.set_changed(slot, TickStamp::of(self.clock.tick()));
        self.views.expect_ends(slot, &self.entities);
    }

    /// Players of the checkpoint that no session has presented yet.
    pub(in crate::scene::region) fn unclaimed(&self) -> impl Iterator<Item = &Handoff> {
        self.custody.recovering.iter().flat_map(|r| r.unclaimed.values())
    }

    /// Waits on for players that were still unclaimed when the region moved.
    pub(in crate::scene::region) fn expect(&mut self, unclaimed: Vec<Handoff>, since: Tick) {
        if unclaimed.is_empty() {
            return;
        }
        self.counts.unclaimed = unclaimed.len() as u64;
        self.custody.recovering = Some(Box::new(Recovering {
            since: Some(since),
            grace_ticks: ESCORT_TICKS,
            unclaimed: unclaimed.into_iter().map(|h| (h.state.id, h)).collect(),
            ..Recovering::default()
        }));
    }

    /// Unclaimed players, and players whose last state is not stored yet, and their sessions.
    pub fn unclaimed_sessions(&self) -> impl Iterator<Item = (EntityId, SessionId)> {
        let unclaimed =
            self.unclaimed().filter_map(|known| Some((known.state.id, known.state.session?)));
        unclaimed.chain(self.departing_sessions())
    }

    /// Asks the sessions of all unclaimed players to present them: sessions may not know, or not
    /// know where.
    pub fn ask_for_unclaimed(&self, fx: &mut Vec<Effect>) {
        let (region, owner) = (self.identity.id(), self.identity.epoch());
        fx.extend(self.unclaimed().filter_map(|known| {
            let notice = Notice::Present { region, owner, epoch: known.epoch };
            Some(Effect::Notice(known.state.session?, notice))
        }));
    }

    /// Whether every region has answered, or had a third of the grace period for it: a region that
    /// is silent for so long, since a layout change has given it up or no node starts it, knows no
    /// player that still waits.
    pub(in crate::scene::region) fn have_all_answered(&self) -> bool {
        self.custody.recovering.as_ref().is_none_or(|r| {
            let late =
                |since: Tick| self.clock.tick().0 >= since.0.saturating_add(r.grace_ticks / 3);
            r.asked.is_empty() || r.since.is_some_and(late)
        })
    }

    /// Whether a player waits for its session.
    pub(in crate::scene::region) fn is_unclaimed(&self, id: EntityId) -> bool {
        self.unclaimed_of(id).is_some()
    }

    /// What is known of a player that waits for its session.
    pub(in crate::scene::region) fn unclaimed_of(&self, id: EntityId) -> Option<&Handoff> {
        self.custody.recovering.as_ref()?.unclaimed.get(&id)
    }

    pub(super) fn unclaimed_mut(&mut self, id: EntityId) -> Option<&mut Handoff> {
        self.custody.recovering.as_mut()?.unclaimed.get_mut(&id)
    }

    /// A player is unclaimed no more.
    pub(in crate::scene::region) fn take_unclaimed(&mut self, id: EntityId) -> Option<Handoff> {
        let recovering = self.custody.recovering.as_mut()?;
        let woken = recovering.unclaimed.remove(&id);
        recovering.leaving.remove(&id);
        self.counts.unclaimed = recovering.unclaimed.len() as u64;
        woken
    }

    /// The session of an unclaimed player, which may know more than the checkpoint, makes it leave: the session is asked
    /// to present the player first. False if it was asked before, or is another one.
    pub(in crate::scene::region) fn asks_before_it_leaves(
        &mut self,
        id: EntityId,
        session: Option<SessionId>,
        fx: &mut Vec<Effect>,
    ) -> bool {
        let (region, owner) = (self.identity.id(), self.identity.epoch());
        let Some(session) = session else { return false };
        let Some(recovering) = self.custody.recovering.as_mut() else { return false };
        let known = recovering.unclaimed.get(&id);
        let Some(known) = known.filter(|known| known.state.session == Some(session)) else {
            return false;
        };
        let epoch = known.epoch;
        let asks = recovering.leaving.insert(id);
        if asks {
            fx.push(Effect::Notice(session, Notice::Present { region, owner, epoch }));
        }
        asks
    }

    /// An unclaimed player leaves; a session makes only its own player leave.
    pub(in crate::scene::region) fn forget_unclaimed(
        &mut self,
        id: EntityId,
        session: Option<SessionId>,
        fx: &mut Vec<Effect>,
    ) {
        let own = |known: &Handoff| session.is_none() || known.state.session == session;
        if !self.unclaimed_of(id).is_some_and(own) {
            return;
        }
        let Some(gone) = self.take_unclaimed(id) else { return };
        let (tick, epoch) = (self.clock.tick(), gone.epoch);
        // The region that had handed it here may repeat that, long after the player has left.
        self.custody.note_left(id, epoch, self.identity.id(), tick);
        if let Some(watch) = gone.watch.filter(|watch| !watch.taken.is_empty()) {
            self.outbox.note_ended(id, tick, watch.taken);
        }
        let epoch = epoch.next_life(self.identity.lineage());
        let (as_of, state) = (gone.tick, gone.state);
        let (session, plane, pos) = (state.session, state.plane, state.pos);
        let (properties, bonds) =
            (state.properties, self.kept_bonds(&gone.ties, &state.bonds).named);
        self.depart(
            Departed { id, session, tick, epoch, as_of, plane, pos, properties, bonds },
            fx,
        );
    }

    /// Whether the first tick after a death was not opened yet.
    pub fn is_recovering(&self) -> bool {
        self.custody.recovering.as_ref().is_some_and(|r| r.waits)
    }

    /// Whether tick `now` may be opened. With the first one all entities without a client resume.
    pub(in crate::scene::region) fn may_begin_after_recovery(&mut self, now: Tick) -> bool {
        let Some(recovering) = self.custody.recovering.as_mut().filter(|r| r.waits) else {
            return true;
        };
        let since = recovering.since.get_or_insert(now).0;
        let presented: FxHashSet<EntityId> =
            self.inbox.queued().filter_map(Input::presented).collect();
        let is_unclaimed = recovering.unclaimed.keys().any(|id| !presented.contains(id));
        let waits = (!recovering.asked.is_empty() && now.0 < since + PATIENCE)
            || (is_unclaimed && now.0 < since + PRESENT_TICKS);
        if waits {
            return false;
        }
        recovering.waits = false;
        for slot in 0..self.entities.slot_count() {
            // A player was handed over since: its session was told of it under the epoch that it has.
            let is_player = self.entities.body(slot).kind == Kind::PLAYER;
            if self.entities.is_real(slot) && !is_player {
                let epoch = self.entities.record(slot).epoch;
                self.entities.set_epoch(slot, epoch.next_life(self.identity.lineage()));
                self.entities.set_changed(slot, TickStamp::of(now));
            }
        }
        true
    }

    /// Players that no session has presented within the grace period have left. Their last states are not
    /// stored: they may live elsewhere, where no message has come from, and nothing here proves that they
    /// do not. Their records stay as their sessions reported them last.
    pub(in crate::scene::region) fn end_recovery(&mut self) {
        let Some(recovering) = &mut self.custody.recovering else { return };
        // A player that was handed back last has its full time, too.
        let since = recovering.since.unwrap_or(self.clock.tick()).max(recovering.back);
        if self.clock.tick().0 < since.0.saturating_add(recovering.grace_ticks) {
            return;
        }
        for (id, known) in &recovering.unclaimed {
            self.custody.escrow.note(self.clock.tick(), *id, known.epoch);
        }
        self.counts.unclaimed = 0;
        self.custody.recovering = None;
    }

    /// Whether a message came from a region that had another owner by then. It is counted and dropped.
    pub(in crate::scene::region) fn is_late(&mut self, from: RegionId, epoch: Epoch) -> bool {
        let since = self.custody.fences.get(&from).max(self.custody.owners.get(&from));
        let late = since.is_some_and(|since| epoch < *since);
        let late = late && !mutants::has(Mutant::AnyEpoch);
        self.counts.fenced += u64::from(late);
        late
    }

    /// Messages of the region from before this epoch are refused from now on.
    pub(in crate::scene::region) fn fence(&mut self, region: RegionId, since: Epoch) {
        // As many as there may be regions, of all scenes.
        let room =
            self.custody.fences.len() < MAX_FENCES || self.custody.fences.contains_key(&region);
        if since > Epoch(1) && room {
            let known = self.custody.fences.entry(region).or_default();
            *known = since.max(*known);
        }
    }

    pub(in crate::scene::region) fn drop_real(&mut self, slot: u32) {
        self.views.positions_change();
        self.take_viewer(slot);
        self.entities.remove(slot);
        self.counts.reals -= 1;
    }
}
