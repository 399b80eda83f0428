//! What waits for a player's client beside its view: messages of the game's logic.
//!
//! The mailbox travels with its player, so that nothing is told twice or in another order.

use std::collections::VecDeque;

use crate::scene::messages::{GroupMessage, Handoff, MessageId, Told};

/// Most messages for groups of which a player takes along that it has received them.
const MAX_HEARD: usize = 256;

/// Most messages that wait for a client that is held or disconnected; the oldest ones give way.
const MAX_WAITING: usize = 256;

/// What a player's client is to be told, and which messages for groups it has received.
#[derive(Debug, Clone, Default)]
pub struct Mailbox {
    /// What its client is to be told, in order.
    pub waiting: Vec<Told>,
    heard: VecDeque<MessageId>,
}

impl Mailbox {
    /// The mailbox of a player that arrives.
    pub fn of(handoff: &Handoff) -> Mailbox {
        let waiting = handoff.told.clone();
        Mailbox { waiting, heard: handoff.heard.iter().copied().collect() }
    }

    /// Which messages for groups it has received of late.
    pub fn heard(&self) -> Vec<MessageId> {
        self.heard.iter().copied().collect()
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
        if self.heard.contains(&message.id) {
            return;
        }
        if self.heard.len() >= MAX_HEARD {
            self.heard.pop_front();
        }
        self.heard.push_back(message.id);
        self.put(Told { kind: message.to.kind(), payload: message.payload.clone() });
    }
}
