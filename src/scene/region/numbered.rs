//! Commands of logic workers, which are numbered: each is applied once, in order, by the region where its entity lives.
//!
//! They come to the region as all commands do ([`Command::Numbered`]). What becomes of a command is noted for the logic
//! of the region that has decided it.
//!
//! | the number | the command |
//! |---|---|
//! | is the next one | is applied, or refused; both use the number |
//! | was there before | counts as applied |
//! | leaves one out | is not applied |

use super::Region;
use super::logic::Applied;
use crate::scene::messages::{
    Command, CommandError, CommandId, Effect, Input, LogicEvent, NumberedCommand, NumberedResult,
    Outcome, SentCommand, Spawn,
};
use crate::scene::mutants::{self, Mutant};
use crate::scene::{EntityId, Tick};

/// What the region keeps of numbered commands beside what is part of entities.
#[derive(Debug)]
pub struct NumberedCommands {
    /// Entities that are to be created in this tick, and the workers that create them.
    spawning: Vec<(EntityId, u64)>,
    /// The region goes on from a state of this tick, and has lost all later ones.
    lost_since: Option<Tick>,
    /// What the logic has kept where the region was before.
    saved: Vec<u8>,
}

impl Default for NumberedCommands {
    fn default() -> NumberedCommands {
        NumberedCommands { spawning: Vec::new(), lost_since: Some(Tick(0)), saved: Vec::new() }
    }
}

impl NumberedCommands {
    /// The region goes on from a checkpoint of this tick.
    pub fn recover(&mut self, since: Tick) {
        self.lost_since = Some(since);
    }

    /// The region goes on with all that it had, and what its logic has kept.
    pub fn resume(&mut self, saved: Vec<u8>) {
        (self.lost_since, self.saved) = (None, saved);
    }

    /// What the logic has kept, once.
    pub fn take_saved(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.saved)
    }
}

impl Region {
    /// The tick of the state from which the region began, if later states of it may be lost; `None`: it has
    /// moved, and nothing was lost.
    pub fn lost_since(&self) -> Option<Tick> {
        self.numbered.lost_since
    }

    /// The number of the last command of a worker that was applied to an entity that lives here; 0: none was.
    pub fn last_number(&self, id: EntityId, source: u64) -> u64 {
        let real = self.entities.real_slot(id).and_then(|slot| self.entities.real(slot));
        real.and_then(|real| real.watch.as_deref()).map_or(0, |state| state.applied.of(source))
    }

    fn note_outcome(&mut self, (id, source, number): (EntityId, u64, u64), outcome: Outcome) {
        self.logic.note(LogicEvent::Numbered(NumberedResult { id, source, number, outcome }));
    }

    /// A command for the entity at `slot`.
    pub(super) fn apply_numbered(
        &mut self,
        slot: u32,
        numbered: NumberedCommand,
        fx: &mut Vec<Effect>,
    ) {
        let NumberedCommand { id, source, number, command } = numbered;
        let Some(real) = self.entities.real_mut(slot) else { return };
        let expected = 1 + real.watch.as_deref().map_or(0, |state| state.applied.of(source));
        if number < expected {
            if let Some(command) = command.filter(|_| mutants::has(Mutant::NumberAgain)) {
                let _second_time = self.apply_to_entity(slot, command, fx);
            }
            return self.note_outcome((id, source, number), Outcome::Applied);
        }
        if number > expected {
            return self.note_outcome((id, source, number), Outcome::Gap { expected });
        }
        real.watch.get_or_insert_default().applied.set(source, number);
        let done = match command {
            // It never is: who makes numbered commands numbers them once.
            Some(Command::Numbered(_)) => Err(CommandError::Busy),
            Some(command) => self.apply_to_entity(slot, command, fx),
            None => Ok(()),
        };
        self.note_done((id, source, number), done);
    }

    fn note_done(&mut self, name: (EntityId, u64, u64), done: Result<(), CommandError>) {
        self.note_outcome(name, done.map_or_else(Outcome::Refused, |()| Outcome::Applied));
    }

    /// Creates an entity, unless it was created before: the region decides on whose ground it begins, so that it
    /// does not matter by which region the command comes.
    pub(super) fn spawn_numbered(
        &mut self,
        sent: CommandId,
        numbered: NumberedCommand,
        fx: &mut Vec<Effect>,
    ) -> Result<Applied, CommandError> {
        let Some(Command::Spawn(spawn)) = &numbered.command else { return Ok(Applied::Here) };
        let legal = self.identity.scene().contains(spawn.pos);
        let owner = self.identity.owner_of(spawn.plane, spawn.pos);
        if legal && owner != self.identity.id() {
            if !self.may_pass_on() {
                return Err(CommandError::Busy);
            }
            let command = Command::Numbered(Box::new(numbered));
            let sent = SentCommand { id: sent, command, searches: 0 };
            fx.push(Effect::Forward(owner, Box::new(Input::Command(Box::new(sent)))));
            return Ok(Applied::Sent);
        }
        self.spawn_here(numbered);
        Ok(Applied::Here)
    }

    fn spawn_here(&mut self, numbered: NumberedCommand) {
        let NumberedCommand { id, source, number, command } = numbered;
        let name = (id, source, number);
        let Some(Command::Spawn(spawn)) = command else { return };
        let lives = self.entities.real_slot(id).is_some();
        if number != 1 {
            let expected = 1 + self.last_number(id, source);
            return self.note_outcome(name, Outcome::Gap { expected });
        }
        let was_here = self.custody.knows_moved(id) || self.custody.is_incoming(id);
        if was_here || (lives && self.last_number(id, source) > 0) || self.inbox.is_announced(id) {
            return self.note_outcome(name, Outcome::Applied);
        }
        self.create_numbered(name, spawn);
    }

    fn create_numbered(&mut self, name: (EntityId, u64, u64), spawn: Box<Spawn>) {
        let may = self.may_spawn(&spawn);
        if may.is_ok() {
            self.inbox.announce(*spawn);
            self.numbered.spawning.push((name.0, name.1));
        }
        self.note_done(name, may);
    }

    /// Entities that were created in this tick live here now: their creation was their first command.
    pub(super) fn number_spawned(&mut self) {
        for (id, source) in std::mem::take(&mut self.numbered.spawning) {
            let Some(slot) = self.entities.real_slot(id) else { continue };
            if let Some(real) = self.entities.real_mut(slot) {
                real.watch.get_or_insert_default().applied.set(source, 1);
            }
        }
    }
}
