//! Numbered commands: those of logic workers outside of the process, which may send a command twice or lose one.
//!
//! A worker numbers its commands for each entity, from 1 on. The entity keeps the number of the last command of each
//! worker as part of its state, and takes only the next one: so each command is applied once and in order, however often
//! it is sent, and wherever the entity lives by then. The region that applies a command notes what became of it for its own
//! logic, which tells the worker.

use serde::{Deserialize, Serialize};

use super::{Command, CommandError};
use crate::scene::EntityId;

/// Most workers whose numbers an entity keeps; the one that was silent for longest gives way.
pub const MAX_SOURCES: usize = 32;

/// A command of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedCommand {
    /// The entity of the command.
    pub id: EntityId,
    /// The worker's session: a number that no other session has had or will have.
    pub source: u64,
    /// The command's number among those of the session for the entity, from 1 on.
    pub number: u64,
    /// What is to be done; not numbered again. `None`: it was refused on the way, and only counts.
    pub command: Option<Command>,
}

impl NumberedCommand {
    /// The entity that is to live in the region that decides the command; `None`: any region does.
    pub fn entity(&self) -> Option<EntityId> {
        let is_new = matches!(self.command, Some(Command::Spawn(_)));
        (!is_new).then_some(self.id)
    }
}

/// What has become of a numbered command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedResult {
    /// The entity.
    pub id: EntityId,
    /// The worker's session.
    pub source: u64,
    /// The command's number.
    pub number: u64,
    /// What has become of it.
    pub outcome: Outcome,
}

/// What has become of a numbered command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It was applied, now or when it came before.
    Applied,
    /// It was refused and has changed nothing. The entity takes the next number now.
    Refused(CommandError),
    /// An earlier command is missing. Nothing has changed.
    Gap {
        /// The number that the entity takes next.
        expected: u64,
    },
}

/// The last numbers of workers at one entity: those that spoke last are at the end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LastNumbers(Vec<(u64, u64)>);

impl LastNumbers {
    /// The number of the last command of a worker; 0: there was none.
    pub fn of(&self, source: u64) -> u64 {
        self.0.iter().rev().find(|(of, _)| *of == source).map_or(0, |(_, number)| *number)
    }

    /// A command counts from now on.
    pub fn set(&mut self, source: u64, number: u64) {
        match self.0.last_mut() {
            Some(last) if last.0 == source => last.1 = number,
            _ => {
                self.0.retain(|(of, _)| *of != source);
                if self.0.len() >= MAX_SOURCES {
                    self.0.remove(0);
                }
                self.0.push((source, number));
            }
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_that_was_silent_for_longest_is_forgotten_first() {
        let mut numbers = LastNumbers::default();
        assert!(numbers.is_empty() && numbers.of(1) == 0);
        (0..MAX_SOURCES as u64).for_each(|source| numbers.set(source, source + 1));
        numbers.set(0, 9);
        numbers.set(0, 10);
        numbers.set(99, 1);
        assert_eq!((numbers.of(0), numbers.of(1), numbers.of(2), numbers.of(99)), (10, 0, 3, 1));
    }
}
