//! What waits for the next tick: inputs, and entities that are about to enter.
//!
//! While a neighbour is late the inbox grows. An input of a client is refused first: the client's session
//! keeps it until it is acknowledged, and sends it again. Other inputs have as much room again.

use crate::scene::messages::{Input, Spawn};
use crate::scene::{EntityId, SessionId, Tick};

/// Inputs of clients that wait for the next tick; of others as many again.
const MAX_QUEUED: usize = 65_536;

/// The tick inbox.
#[derive(Debug, Default)]
pub struct TickInbox {
    queued: Vec<Input>,
    entering: Vec<Spawn>,
    /// The tick in which a refused implausible message was logged last.
    implausible_at: Option<Tick>,
}

impl TickInbox {
    /// Keeps an input for the next tick. False when there is no room, and the input is lost.
    #[must_use]
    pub fn accept(&mut self, input: Input) -> bool {
        let client = matches!(input, Input::Client { .. });
        let room = if client { MAX_QUEUED } else { 2 * MAX_QUEUED };
        let accepted = self.queued.len() < room;
        if accepted {
            self.queued.push(input);
        }
        accepted
    }

    /// Keeps an input for the next tick, whatever waits.
    pub fn push(&mut self, input: Input) {
        self.queued.push(input);
    }

    /// Takes all inputs, to apply them.
    pub fn take(&mut self) -> Vec<Input> {
        std::mem::take(&mut self.queued)
    }

    /// Gives the memory of taken inputs back, for use in the next tick. What was pushed since stays.
    pub fn reuse(&mut self, mut taken: Vec<Input>) {
        taken.append(&mut self.queued);
        self.queued = taken;
    }

    /// Keeps only some inputs.
    pub fn retain(&mut self, keep: impl FnMut(&Input) -> bool) {
        self.queued.retain(keep);
    }

    /// The inputs that wait.
    pub fn queued(&self) -> impl Iterator<Item = &Input> {
        self.queued.iter()
    }

    /// An entity enters at the end of the tick's inputs.
    pub fn announce(&mut self, spawn: Spawn) {
        self.entering.push(spawn);
    }

    /// Whether an entity is about to enter.
    pub fn is_announced(&self, id: EntityId) -> bool {
        self.entering.iter().any(|spawn| spawn.id == id)
    }

    /// An entity does not enter after all; with `session` only if it is the player of that session.
    pub fn cancel(&mut self, id: EntityId, session: Option<SessionId>) -> Option<Spawn> {
        let is_it =
            |spawn: &Spawn| spawn.id == id && (session.is_none() || spawn.session == session);
        let at = self.entering.iter().position(is_it)?;
        Some(self.entering.swap_remove(at))
    }

    /// Takes the entities that enter now.
    pub fn take_entering(&mut self) -> Vec<Spawn> {
        std::mem::take(&mut self.entering)
    }

    /// The entities that are about to enter, for a snapshot.
    pub fn entering(&self) -> &[Spawn] {
        &self.entering
    }

    /// The inbox of a snapshot.
    pub fn restore(&mut self, queued: Vec<Input>, entering: Vec<Spawn>) {
        (self.queued, self.entering) = (queued, entering);
    }

    /// Notes that an implausible message was refused. Says whether it is the first one in this tick.
    pub fn note_implausible(&mut self, tick: Tick) -> bool {
        self.implausible_at.replace(tick) != Some(tick)
    }

    /// The last input, for a test that feeds it to another region.
    #[cfg(test)]
    pub fn pop(&mut self) -> Option<Input> {
        self.queued.pop()
    }
}
