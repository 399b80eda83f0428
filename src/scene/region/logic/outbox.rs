//! The outbox of a region: commands of its logic for entities that live elsewhere, and what the region knows of those of
//! other regions.
//!
//! ```text
//!  logic ──► entry ──► sent, again and again ──► the entity takes it, once ──► saved ──► outcome ──► the entry is gone
//!             └ saved with the region             └ part of the entity's state
//! ```
//!
//! An entry leaves at once, or, if it is *held*, when the tick in which it was given is saved. Both sides are part of
//! checkpoints, so it does not matter who dies: an entry whose region forgets it was never given there, or is over; an
//! entity that forgets an entry has not been changed by it.
//!
//! *Absent on purpose:* which worker has asked, and what it is told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::super::Region;
use super::commands::{Given, Terms};
use crate::scene::messages::{
    After, Asker, Command, CommandError, CommandId, CommandResult, Effect, Input, LogicEvent, Mark,
    SentCommand, Sight, Taken,
};
use crate::scene::mutants::{self, Mutant};
use crate::scene::{EntityId, RegionId, Tick};

/// Most entries of a region.
const MAX_ENTRIES: usize = 65_536;

/// After so many ticks an entry is sent again: its outcome waits for a checkpoint.
const AGAIN_TICKS: u64 = 20;

/// Most entries that wait for the one before them: further ones come again.
const MAX_EARLY: usize = 4_096;

/// For how many ticks it is known at least which commands an entity has taken that has ended.
const ENDED_TICKS: u64 = 1_200;

/// How often no region may know the entity of an entry until that is its outcome.
const MAX_UNKNOWN: u8 = 2;

/// A command that waits for its outcome.
#[derive(Debug)]
struct Entry {
    entity: EntityId,
    given: Given,
    /// When it was sent last.
    sent: Option<Tick>,
    /// How often no region knew its entity, once after each time that it was sent.
    unknown: u8,
}

/// What a snapshot has of an outbox.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SavedOutbox {
    entries: Vec<(Mark, Given)>,
    ended: Vec<(EntityId, Tick, Taken)>,
}

/// The part of a region.
#[derive(Debug, Default)]
pub struct Outbox {
    entries: BTreeMap<Mark, Entry>,
    of: FxHashMap<EntityId, BTreeSet<Mark>>,
    /// What other regions are told when this tick is saved.
    outcomes: VecDeque<(Tick, CommandResult)>,
    /// Entries of other regions that came before the one before them, and when.
    early: Vec<(Tick, SentCommand)>,
    /// Entities that have ended, when, and which commands they had taken.
    ended: FxHashMap<EntityId, (Tick, Taken)>,
}

impl Outbox {
    /// For a snapshot.
    pub fn save(&self) -> SavedOutbox {
        let mut ended: Vec<_> =
            self.ended.iter().map(|(id, (tick, taken))| (*id, *tick, taken.clone())).collect();
        ended.sort_unstable_by_key(|(id, ..)| *id);
        let entries = self.entries.iter().map(|(mark, entry)| (*mark, entry.given.clone()));
        let keeps = !mutants::has(Mutant::OutboxLost);
        SavedOutbox { entries: entries.filter(|_| keeps).collect(), ended }
    }

    /// As a snapshot has it.
    pub fn restored(saved: SavedOutbox) -> Outbox {
        let mut outbox = Outbox::default();
        saved.entries.into_iter().for_each(|(mark, given)| outbox.insert(mark, given));
        let ended = saved.ended.into_iter();
        outbox.ended = ended.map(|(id, tick, taken)| (id, (tick, taken))).collect();
        outbox
    }

    /// Keeps an entry. One by subject has no entity yet.
    pub(super) fn insert(&mut self, mark: Mark, given: Given) {
        let entity = given.command.entity().unwrap_or(EntityId::NONE);
        self.of.entry(entity).or_default().insert(mark);
        self.entries.insert(mark, Entry { entity, given, sent: None, unknown: 0 });
    }

    fn remove(&mut self, mark: Mark) -> Option<Entry> {
        let entry = self.entries.remove(&mark)?;
        if let Some(of) = self.of.get_mut(&entry.entity) {
            of.remove(&mark);
            if of.is_empty() {
                self.of.remove(&entry.entity);
            }
        }
        Some(entry)
    }

    /// Whether an entry waits for its outcome.
    pub(super) fn has(&self, mark: Mark) -> bool {
        self.entries.contains_key(&mark)
    }

    /// Whether commands for this subject wait for its player to be found.
    pub(super) fn waits_for_subject(&self, subject: &str) -> bool {
        let by_subject = self.of.get(&EntityId::NONE).into_iter().flatten();
        let commands = by_subject.filter_map(|mark| Some(&self.entries.get(mark)?.given.command));
        commands.into_iter().any(|c| matches!(c, Command::OfSubject(of, _) if **of == *subject))
    }

    /// Takes an entry by subject, whose player is found.
    pub(super) fn take_by_subject(&mut self, mark: Mark) -> Option<Given> {
        let entry = self.entries.get(&mark)?;
        (entry.entity == EntityId::NONE).then(|| self.remove(mark))?.map(|entry| entry.given)
    }

    /// Whether no command waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many commands wait.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether commands for an entity wait for their outcomes.
    fn waits_for(&self, id: EntityId) -> bool {
        self.of.contains_key(&id)
    }

    /// Entries that are to be sent now, those for an entity in their order.
    fn due(&self, now: Tick, saved: Tick) -> Vec<Mark> {
        let (mut due, mut blocked) = (Vec::new(), FxHashSet::default());
        for (mark, entry) in &self.entries {
            let (given_in, held) = (entry.given.tick, entry.given.terms.held);
            let waits = held && given_in > saved && !mutants::has(Mutant::HeldEarly);
            if blocked.contains(&entry.entity) || (entry.sent.is_none() && waits) {
                blocked.insert(entry.entity);
                continue;
            }
            if entry.sent.is_none_or(|sent| sent.0 + AGAIN_TICKS <= now.0) {
                due.push(*mark);
            }
        }
        due
    }

    /// The entries for an entity after this one.
    fn later(&self, entity: EntityId, mark: Mark) -> Vec<Mark> {
        let of = self.of.get(&entity).into_iter().flatten();
        of.filter(|of| **of > mark).copied().collect()
    }

    /// An entry waits for the one before it, which may have gone another way.
    fn wait_for_earlier(&mut self, now: Tick, sent: SentCommand) {
        if self.early.len() < MAX_EARLY {
            self.early.push((now, sent));
        }
    }

    fn after(&self, entity: EntityId, mark: Mark) -> After {
        let of = self.of.get(&entity);
        let prev = of.and_then(|of| of.range(..mark).next_back().copied()).unwrap_or_default();
        let oldest = of.and_then(|of| of.first().copied()).unwrap_or_default();
        After { prev, oldest }
    }

    /// An entity has ended that had taken these commands.
    pub fn note_ended(&mut self, id: EntityId, now: Tick, taken: Taken) {
        self.ended.insert(id, (now, taken));
    }

    /// Whether an entity has ended here of late that had taken commands.
    pub fn has_ended(&self, id: EntityId) -> bool {
        self.ended.contains_key(&id)
    }

    /// An entity that had ended is here again: the commands that it had taken.
    pub fn revive(&mut self, id: EntityId) -> Option<Taken> {
        self.ended.remove(&id).map(|(_, taken)| taken)
    }

    fn forget_ended(&mut self, now: Tick) {
        if now.0.is_multiple_of(ENDED_TICKS / 10) {
            self.ended.retain(|_, (since, _)| since.0 + ENDED_TICKS > now.0);
        }
    }
}

impl Region {
    /// How many commands for entities elsewhere wait for their outcomes.
    pub fn outbox_len(&self) -> usize {
        self.outbox.len()
    }

    /// The last command of a region's logic that an entity has taken which lives here.
    pub fn last_taken(&self, id: EntityId, from: RegionId) -> Mark {
        let real = self.entities.real_slot(id).and_then(|slot| self.entities.real(slot));
        let state = real.and_then(|real| real.watch.as_deref());
        state.map_or_else(Mark::default, |state| state.taken.last(from))
    }

    /// A command of this region's logic for an entity: it is applied, after those that wait for the entity, or waits
    /// as an entry.
    pub(super) fn command_entity(
        &mut self,
        (entity, number): (EntityId, u64),
        given: Given,
        fx: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        self.take_waiting_entries(entity, fx);
        if let Some(slot) = self.slot_to_command(entity) {
            return self.apply_to_entity(slot, given.command, fx);
        }
        let ends = matches!(given.command, Command::Despawn(_));
        if ends && self.inbox.cancel(entity, None).is_some() {
            return Ok(());
        }
        self.keep_entry(number, given)
    }

    /// Keeps a command until its outcome is known.
    pub(super) fn keep_entry(&mut self, number: u64, given: Given) -> Result<(), CommandError> {
        if self.outbox.len() >= MAX_ENTRIES {
            return Err(CommandError::Busy);
        }
        let mark = Mark { epoch: self.identity.epoch(), number };
        self.outbox.insert(mark, given);
        Ok(())
    }

    /// The slot of an entity that lives here and is not on its way to another scene.
    pub(super) fn slot_to_command(&self, id: EntityId) -> Option<u32> {
        self.entities.real_slot(id).filter(|slot| !self.is_between_scenes(*slot))
    }

    /// An entity that has come here takes the entries that wait for it.
    fn take_waiting_entries(&mut self, entity: EntityId, fx: &mut Vec<Effect>) {
        if !self.outbox.waits_for(entity) || self.slot_to_command(entity).is_none() {
            return;
        }
        let (now, last) = (self.clock.tick(), self.last_taken(entity, self.identity.id()));
        for mark in self.outbox.later(entity, last) {
            if let (Some(slot), Some(sent)) = (self.slot_to_command(entity), self.sent(mark, now)) {
                let after = self.outbox.after(entity, mark);
                self.take_entry(slot, (sent, after), fx);
            }
        }
    }

    /// An entry that is sent now.
    fn sent(&mut self, mark: Mark, now: Tick) -> Option<SentCommand> {
        let here = self.identity.id();
        let entity = self.outbox.entries.get(&mark)?.entity;
        let after = (entity != EntityId::NONE).then(|| self.outbox.after(entity, mark));
        let entry = self.outbox.entries.get_mut(&mark)?;
        entry.sent = Some(now);
        let id = CommandId { from: Asker::Logic(here, mark.epoch), number: mark.number };
        Some(SentCommand { id, command: entry.given.command.clone(), searches: 0, after })
    }

    /// Sends entries, for the first time or again, and tells other regions the outcomes of theirs.
    pub(super) fn send_entries(&mut self, fx: &mut Vec<Effect>) {
        let now = self.clock.tick();
        for mark in self.outbox.due(now, self.durable_tick()) {
            if mutants::has(Mutant::CommandLost) && mark.number.is_multiple_of(8) {
                self.outbox.remove(mark);
                continue;
            }
            let Some(sent) = self.sent(mark, now) else { continue };
            if let Err(why) = self.apply_command(sent, fx) {
                self.take_outcome(mark, Err(why));
            }
        }
    }

    /// Entries that came too early are tried again, until they come again.
    pub(super) fn try_early_entries(&mut self, fx: &mut Vec<Effect>) {
        let now = self.clock.tick();
        for (since, sent) in std::mem::take(&mut self.outbox.early) {
            if since.0 + AGAIN_TICKS <= now.0 {
                continue;
            }
            let waits = self.outbox.early.len();
            // One that goes nowhere comes again.
            let _gone = self.apply_command(sent, fx).is_err();
            self.outbox.early[waits..].iter_mut().for_each(|early| early.0 = since);
        }
    }

    /// Tells other regions the outcomes that the death of no process undoes.
    pub(super) fn tell_outcomes(&mut self, fx: &mut Vec<Effect>) {
        let saved = self.durable_tick();
        self.outbox.forget_ended(self.clock.tick());
        while self.outbox.outcomes.front().is_some_and(|(tick, _)| *tick <= saved) {
            let Some((_, outcome)) = self.outbox.outcomes.pop_front() else { break };
            self.answer_command(outcome.id, outcome.result, fx);
        }
    }

    /// The entity at `slot` takes an entry, or has taken it before.
    pub(super) fn take_entry(
        &mut self,
        slot: u32,
        (sent, after): (SentCommand, After),
        fx: &mut Vec<Effect>,
    ) {
        let now = self.clock.tick();
        let Some((region, mark)) = named(sent.id) else { return };
        let Some(real) = self.entities.real_mut(slot) else { return };
        let sight = real.watch.get_or_insert_default().taken.see(region, mark, after);
        let result = match sight {
            Sight::Before(result) => {
                if mutants::has(Mutant::CommandTwice) {
                    let _second_time = self.apply_to_entity(slot, sent.command, fx);
                }
                result
            }
            Sight::Early => return self.outbox.wait_for_earlier(now, sent),
            Sight::New => {
                let result = self.apply_to_entity(slot, sent.command, fx);
                let real = self.entities.real_mut(slot);
                if let (Err(why), Some(real)) = (result, real) {
                    real.watch.get_or_insert_default().taken.refuse(mark, why);
                }
                result
            }
        };
        self.note_outcome(CommandResult { id: sent.id, result });
    }

    /// The same for an entity that has ended here; false: it is not known to have.
    pub(super) fn ended_takes_entry(&mut self, entity: EntityId, sent: &SentCommand) -> bool {
        let (Some(after), Some((region, mark))) = (sent.after, named(sent.id)) else {
            return false;
        };
        let now = self.clock.tick();
        if self.custody.has_left(entity, self.identity.id()) && !self.outbox.has_ended(entity) {
            self.outbox.note_ended(entity, now, Taken::default());
        }
        let Some((_, taken)) = self.outbox.ended.get_mut(&entity) else { return false };
        let result = match taken.see(region, mark, after) {
            Sight::Before(result) => result,
            Sight::Early => return true,
            Sight::New => {
                taken.refuse(mark, CommandError::Unknown(entity));
                Err(CommandError::Unknown(entity))
            }
        };
        self.note_outcome(CommandResult { id: sent.id, result });
        true
    }

    fn note_outcome(&mut self, outcome: CommandResult) {
        self.outbox.outcomes.push_back((self.clock.tick(), outcome));
    }

    /// An entry of this region, of this life or an earlier one, has come to an end; false: it is none, or no more.
    pub(super) fn take_outcome(&mut self, mark: Mark, result: Result<(), CommandError>) -> bool {
        let Some(entry) = self.outbox.entries.get_mut(&mark) else { return false };
        match result {
            // It is sent again.
            Err(CommandError::Busy | CommandError::Unanswered) => return true,
            Err(CommandError::Unknown(_) | CommandError::NoSubject)
                if entry.unknown + 1 < MAX_UNKNOWN =>
            {
                entry.unknown += 1;
                return true;
            }
            _ => {}
        }
        let Some(Entry { given, .. }) = self.outbox.remove(mark) else { return true };
        let given = match result {
            Err(CommandError::Unknown(_)) => self.find_again(given),
            _ => Some(given),
        };
        let Some(Given { terms: Terms { asked, .. }, by_subject, .. }) = given else { return true };
        let command = by_subject.map_or(mark.number, |(_, number)| number);
        self.logic.note(match result {
            Ok(()) => LogicEvent::Done { command },
            Err(why) => LogicEvent::Refused { command, asked, why },
        });
        true
    }
}

/// The region of an entry, and its name there.
fn named(id: CommandId) -> Option<(RegionId, Mark)> {
    match id.from {
        Asker::Logic(region, epoch) => Some((region, Mark { epoch, number: id.number })),
        Asker::Process(_) => None,
    }
}

/// What waits in the inbox of a checkpoint: an entry comes again.
pub(super) fn is_entry(input: &Input) -> bool {
    matches!(input, Input::Command(sent) if sent.after.is_some())
}
