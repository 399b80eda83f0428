//! What waits for a player's client beside its view: messages of the game's logic.
//!
//! The mailbox travels with its player, so that nothing is told twice or in another order.

use crate::scene::messages::{GroupMessage, Handoff, MessageId, Told};
use crate::scene::mutants::{self, Mutant};

/// Most messages that wait for a client that is held or disconnected; the oldest ones give way.
const MAX_WAITING: usize = 256;

/// Most senders that are known: processes, each in one of its lives. Those heard of last stay.
const MAX_SENDERS: usize = 1_024;

/// The last message for groups of each sender, the sender that was heard of last at the end.
#[derive(Debug, Clone, Default)]
pub struct Heard(Vec<MessageId>);

impl Heard {
    /// Notes a message; false if it, or a later one of its sender, was noted before.
    pub fn note(&mut self, id: MessageId) -> bool {
        let known = self.0.iter().position(|known| known.sender == id.sender);
        if known.is_some_and(|ix| self.0[ix].number >= id.number) {
            return false;
        }
        if let Some(ix) = known {
            self.0.remove(ix);
        } else if self.0.len() >= MAX_SENDERS {
            self.0.remove(0);
        }
        self.0.push(id);
        true
    }

    /// The last message of each sender.
    pub fn ids(&self) -> impl Iterator<Item = MessageId> {
        self.0.iter().copied()
    }
}

impl FromIterator<MessageId> for Heard {
    fn from_iter<I: IntoIterator<Item = MessageId>>(ids: I) -> Heard {
        let mut heard = Heard::default();
        for id in ids {
            heard.note(id);
        }
        heard
    }
}

/// What a player's client is to be told, and which messages for groups it has received.
#[derive(Debug, Clone, Default)]
pub struct Mailbox {
    /// What its client is to be told, in order.
    pub waiting: Vec<Told>,
    /// Which messages for groups it received before it came here, and those since.
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
        let (waiting, heard) = (handoff.told.clone(), handoff.heard.iter().copied().collect());
        Mailbox { waiting, heard, since_ms: known.unwrap_or(self.since_ms) }
    }

    /// Which messages for groups it has received.
    pub fn heard(&self) -> &Heard {
        &self.heard
    }

    /// A message for this player alone.
    pub fn put(&mut self, told: Told) {
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.remove(0);
        }
        self.waiting.push(told);
    }

    /// A message for a group, unless it has come before.
    pub fn put_once(&mut self, message: &GroupMessage) {
        let is_new = message.sent_ms >= self.since_ms && self.heard.note(message.id);
        if is_new || mutants::has(Mutant::ToldAgain) {
            self.put(Told { kind: message.to.kind(), payload: message.payload.clone() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_of_each_sender_is_known_and_old_senders_give_way() {
        let id = |sender, number| MessageId { sender, number };
        let mut heard: Heard = (0..MAX_SENDERS as u64).map(|sender| id(sender, 5)).collect();
        assert!(!heard.note(id(0, 5)) && !heard.note(id(0, 4)) && heard.note(id(0, 6)));
        assert!(heard.note(id(7_777, 0)));
        assert_eq!(heard.ids().count(), MAX_SENDERS);
        assert!(heard.note(id(1, 5)), "it was forgotten");
        assert!(!heard.note(id(0, 6)), "it was heard of later");
    }
}
