//! Commands for the player of a subject, whichever entity plays it and wherever that lives.
//!
//! ```text
//!  logic ──► entry without an entity ──► search ──► entry for the entity, held until this is saved ──► ...
//!                                          └ nobody plays it: its bonds are kept in the player's record
//! ```
//!
//! From then on the entry is like any other (`outbox.rs`). It has another name there: the entity may have taken entries
//! that are younger than the command. So a command by subject may come after one that was given later by entity; those
//! of one region for one subject come in order.

use super::super::Region;
use super::apply::Applied;
use super::commands::{Given, Terms};
use crate::scene::EntityId;
use crate::scene::account::SUBJECT_MAX;
use crate::scene::messages::{
    Asker, Command, CommandError, CommandId, Effect, Found, Handoff, Input, Mark, SentCommand,
    Sought,
};

/// Whether a command can be given by this subject.
fn check(subject: &str, command: &Command) -> Result<(), CommandError> {
    if !command.is_by_subject() {
        return Err(CommandError::NotBySubject);
    }
    if subject.is_empty() || subject.len() > SUBJECT_MAX {
        return Err(CommandError::NoSubject);
    }
    Ok(())
}

impl Region {
    /// The player of a subject that lives here or is about to. One that is on its way is found by the next search: its
    /// record, if there are records, says that it plays.
    pub(super) fn player_of(&self, subject: &str) -> Option<EntityId> {
        let own = self.views.viewers().iter().filter(|viewer| viewer.account.subject() == subject);
        let mut own = own.filter(|viewer| self.asleep_until(viewer.slot).is_none());
        if let Some(viewer) = own.next() {
            return Some(self.entities.body(viewer.slot).id);
        }
        let is_whose = |handoff: &&Handoff| handoff.state.account.subject() == subject;
        let coming = self.custody.incoming().chain(self.unclaimed()).find(is_whose);
        coming.map(|handoff| handoff.state.id)
    }

    /// A command of this region's logic for a player, by its subject.
    pub(super) fn command_subject(
        &mut self,
        number: u64,
        given: Given,
        fx: &mut Vec<Effect>,
    ) -> Result<(), CommandError> {
        let Command::OfSubject(subject, command) = &given.command else { return Ok(()) };
        check(subject, command)?;
        let here = self.player_of(subject).filter(|id| self.slot_to_command(*id).is_some());
        if let Some(id) = here.filter(|_| !self.outbox.waits_for_subject(subject)) {
            let command = command.clone().of_player(id);
            return self.command_entity((id, number), Given { command, ..given }, fx);
        }
        self.keep_entry(number, given)
    }

    /// Finds the player of a command by subject.
    pub(super) fn find_player(
        &mut self,
        subject: Box<str>,
        sent: SentCommand,
        fx: &mut Vec<Effect>,
    ) -> Result<Applied, CommandError> {
        if let Command::OfSubject(_, command) = &sent.command {
            check(&subject, command)?;
        }
        let sought = Sought::Subject(subject);
        match self.lives(&sought) {
            Some(found) if found.region == self.identity.id() => {
                self.found_player(found, sent, fx);
                Ok(Applied::Sent)
            }
            _ => self.locate(sought, sent, fx),
        }
    }

    /// The player of a command by subject is found: the command is for its entity from now on.
    pub(super) fn found_player(&mut self, found: Found, sent: SentCommand, fx: &mut Vec<Effect>) {
        if let Some(mark) = self.own_entry(sent.id) {
            return self.name_entity(mark, found.id);
        }
        let Command::OfSubject(_, command) = sent.command else { return };
        let sent = SentCommand { command: command.of_player(found.id), searches: 0, ..sent };
        match found.region == self.identity.id() {
            true => self.wait_for_entity(sent),
            false => {
                fx.push(Effect::Forward(found.region, Box::new(Input::Command(Box::new(sent)))));
            }
        }
    }

    /// No region knows the entity of a command. Bonds of a player that does not play go to its record.
    pub(super) fn is_nowhere(
        &mut self,
        sought: &Sought,
        sent: SentCommand,
        fx: &mut Vec<Effect>,
    ) -> Result<Applied, CommandError> {
        let subject = match sought {
            Sought::Entity(id) => return Err(CommandError::Unknown(*id)),
            Sought::Subject(subject) => subject,
        };
        let Command::OfSubject(_, command) = sent.command else {
            return Err(CommandError::NoSubject);
        };
        // What waits no more has been done meanwhile.
        let waits = self.own_entry(sent.id).is_none_or(|mark| self.outbox.has(mark));
        match *command {
            _ if !waits => Ok(Applied::Sent),
            Command::Bonds(_, bonds) => {
                self.check_bonds(&bonds)?;
                fx.push(Effect::KeepBonds(sent.id, subject.clone(), bonds));
                Ok(Applied::Sent)
            }
            _ => Err(CommandError::NoSubject),
        }
    }

    /// The name of an entry of this region.
    fn own_entry(&self, id: CommandId) -> Option<Mark> {
        match id.from {
            Asker::Logic(region, epoch) if region == self.identity.id() => {
                Some(Mark { epoch, number: id.number })
            }
            Asker::Logic(..) | Asker::Process(_) => None,
        }
    }

    /// An entry by subject becomes an entry for an entity. The entry leaves the region when a checkpoint has it under its
    /// new name: otherwise a region that goes on from an older one would give it another name, and the entity take it twice.
    fn name_entity(&mut self, mark: Mark, id: EntityId) {
        let Some(given) = self.outbox.take_by_subject(mark) else { return };
        let Command::OfSubject(subject, command) = given.command else { return };
        let by_subject = given.by_subject.or(Some((subject, mark.number)));
        let command = command.of_player(id);
        self.insert_anew(Given { command, by_subject, ..given });
    }

    /// The entity of an entry is nowhere. If the entry was given by subject, another entity may play that player by now:
    /// the entry looks for the player again. Any other entry is given back.
    pub(super) fn find_again(&mut self, given: Given) -> Option<Given> {
        let Some((subject, number)) = given.by_subject else {
            return Some(given);
        };
        let command = Command::OfSubject(subject.clone(), Box::new(given.command));
        let by_subject = Some((subject, number));
        self.insert_anew(Given { command, by_subject, ..given });
        None
    }

    fn insert_anew(&mut self, given: Given) {
        let tick = self.clock.tick();
        let mark = Mark { epoch: self.identity.epoch(), number: self.logic.new_number(tick) };
        self.outbox
            .insert(mark, Given { terms: Terms { held: true, ..given.terms }, tick, ..given });
    }
}
