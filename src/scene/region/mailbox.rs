//! What waits for a player's client beside its view: messages of the game's logic.
//!
//! The mailbox travels with its player, so that nothing is told twice or in another order.

use crate::scene::messages::{GroupMessage, Handoff, Heard, LogicMessage};
use crate::scene::mutants::{self, Mutant};

/// Most messages that wait for a client that is held or disconnected; the oldest ones give way.
const MAX_WAITING: usize = 256;

/// What a player's client is to be told, and which messages for groups it has received.
#[derive(Debug, Clone, Default)]
pub struct Mailbox {
    /// What its client is to be told, in order.
    pub waiting: Vec<LogicMessage>,
    /// Which messages for groups it received before it came here; which came here since the region knows, for all of
    /// its players.
    heard: Heard,
    /// Messages for groups that were sent before are not for it, milliseconds of the cluster's clock: the player has
    /// joined since, or nobody knows which of them it has received.
    pub since_ms: u64,
}

impl Mailbox {
    /// The mailbox of a player that begins here.
    pub fn since(since_ms: u64) -> Mailbox {
        Mailbox { since_ms, ..Mailbox::default() }
    }

    /// The mailbox of a player that arrives, and has begun so.
    pub fn arrived(self, handoff: &Handoff) -> Mailbox {
        let known = (handoff.heard_since_ms != u64::MAX).then_some(handoff.heard_since_ms);
        // Whatever a handoff says, it is within bounds.
        let mut heard = Heard::default();
        heard.add(&handoff.heard);
        Mailbox { waiting: handoff.told.clone(), heard, since_ms: known.unwrap_or(self.since_ms) }
    }

    /// Which messages for groups it received before it came here.
    pub fn heard(&self) -> &Heard {
        &self.heard
    }

    /// A message for this player alone.
    pub fn put(&mut self, told: LogicMessage) {
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.remove(0);
        }
        self.waiting.push(told);
    }

    /// Of what was received elsewhere forgets what the region here knows as well.
    pub fn forget_known_to(&mut self, region: &Heard) {
        self.heard.forget_known_to(region);
    }

    /// A message for a group, unless it has come before this region received it.
    pub fn put_once(&mut self, message: &GroupMessage) {
        let GroupMessage { id, sent_ms, .. } = *message;
        let is_new = sent_ms >= self.since_ms && self.heard.is_new(id, sent_ms);
        if is_new || mutants::has(Mutant::ToldAgain) {
            self.put(LogicMessage { kind: message.to.kind(), payload: message.payload.clone() });
        }
    }
}
