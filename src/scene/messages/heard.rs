//! Which messages for groups were received: the last one of each sender that has spoken of late.
//!
//! A sender is a process in one of its lives, so there are more of them with every start of one. What is known stays
//! small, since senders that were silent for longest are forgotten. Each sends its messages in order, so one time is
//! enough for all those: what a sender that is not known has sent before it counts as received. So no message is
//! received twice; lost is one that was under way for longer than its sender and many others were silent.

use serde::{Deserialize, Serialize};

use super::logic_message::MessageId;

/// Senders that are known, however long they have been silent.
const MAX_SILENT: usize = 64;

/// For how long a sender counts as one that speaks, milliseconds.
const SPEAKS_MS: u64 = 10_000;

/// Most senders that are known.
const MAX_SENDERS: usize = 256;

/// Which messages for groups were received.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Heard {
    /// By their senders. None was sent before `since_ms`.
    last: Vec<Last>,
    /// Messages of other senders that were sent before are not new, milliseconds of the cluster's clock.
    since_ms: u64,
}

/// The last message of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Last {
    id: MessageId,
    sent_ms: u64,
}

impl Heard {
    /// Whether neither a message nor a later one of its sender was received.
    pub fn is_new(&self, id: MessageId, sent_ms: u64) -> bool {
        match self.find(id.sender) {
            Ok(at) => self.last[at].id.number < id.number,
            Err(_) => sent_ms >= self.since_ms,
        }
    }

    /// Notes a message; false if it is not new.
    pub fn note(&mut self, id: MessageId, sent_ms: u64) -> bool {
        let is_new = self.is_new(id, sent_ms);
        if is_new {
            self.put(Last { id, sent_ms });
            self.forget();
        }
        is_new
    }

    /// Notes all that was received elsewhere.
    pub fn add(&mut self, other: &Heard) {
        self.since_ms = self.since_ms.max(other.since_ms);
        other.last.iter().for_each(|last| self.put(*last));
        self.forget();
    }

    /// Forgets each sender of which `other` knows as much or more.
    pub fn forget_known_to(&mut self, other: &Heard) {
        self.last.retain(|last| other.is_new(last.id, last.sent_ms));
    }

    /// How many senders are known.
    pub fn senders(&self) -> usize {
        self.last.len()
    }

    fn find(&self, sender: u64) -> Result<usize, usize> {
        self.last.binary_search_by_key(&sender, |last| last.id.sender)
    }

    fn put(&mut self, new: Last) {
        match self.find(new.id.sender) {
            Ok(at) => {
                let last = &mut self.last[at];
                last.id.number = last.id.number.max(new.id.number);
                last.sent_ms = last.sent_ms.max(new.sent_ms);
            }
            Err(at) => self.last.insert(at, new),
        }
    }

    /// Forgets the senders that were silent for longest, as far as there are too many, and those whose known
    /// number may be too low, since they were forgotten elsewhere.
    fn forget(&mut self) {
        if self.last.len() > MAX_SILENT {
            let mut times: Vec<u64> = self.last.iter().map(|last| last.sent_ms).collect();
            times.sort_unstable();
            let newest = times.last().copied().unwrap_or(0);
            let silent = |at: &u64| at.saturating_add(SPEAKS_MS) < newest;
            let spare = times.len() - MAX_SILENT;
            let over = times[..spare].iter().filter(|at| silent(at)).count();
            let over = over.max(times.len().saturating_sub(MAX_SENDERS));
            if let Some(last) = over.checked_sub(1).map(|at| times[at]) {
                self.since_ms = self.since_ms.max(last.saturating_add(1));
            }
        }
        self.last.retain(|last| last.sent_ms >= self.since_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(sender: u64, number: u64) -> MessageId {
        MessageId { sender, number }
    }

    #[test]
    fn a_message_is_new_once_and_so_is_each_later_one_of_its_sender() {
        let mut heard = Heard::default();
        assert!(
            heard.note(id(7, 5), 100) && !heard.note(id(7, 5), 100) && !heard.note(id(7, 4), 90)
        );
        assert!(heard.note(id(3, 0), 50) && heard.note(id(7, 6), 100));
        assert!(!heard.is_new(id(3, 0), 50) && heard.is_new(id(3, 1), 50));
    }

    #[test]
    fn what_is_known_stays_small_and_no_forgotten_message_is_new_again() {
        let mut heard = Heard::default();
        let told: Vec<_> = (0..5_000).map(|n| (id(n, 5), 1_000 * n)).collect();
        for (message, sent_ms) in &told {
            assert!(heard.note(*message, *sent_ms));
            assert!(heard.senders() <= MAX_SILENT + SPEAKS_MS as usize / 1_000);
        }
        assert_eq!(heard.senders(), MAX_SILENT);
        assert!(!told.iter().any(|(message, sent_ms)| heard.is_new(*message, *sent_ms)));
        // One that was forgotten speaks again.
        assert!(heard.note(id(0, 6), 5_000_000) && !heard.note(id(0, 6), 5_000_000));
    }

    #[test]
    fn active_senders_stay_known() {
        let mut heard = Heard::default();
        for round in 0..50 {
            let all = (0..MAX_SENDERS as u64).rev();
            assert!(all.clone().all(|sender| heard.note(id(sender, round), 1_000 * round)));
            assert_eq!(heard.senders(), MAX_SENDERS);
        }
        let more = (0..4 * MAX_SENDERS as u64).all(|n| heard.note(id(1_000 + n, 0), 60_000 + n));
        assert!(more && heard.senders() <= MAX_SENDERS);
        // As many at once are forgotten together: of two with the same time none is known by chance.
        assert!((0..MAX_SENDERS as u64).all(|sender| !heard.is_new(id(sender, 49), 49_000)));
    }

    #[test]
    fn what_one_of_two_has_forgotten_is_not_new_to_both_together() {
        let (mut player, mut region) = (Heard::default(), Heard::default());
        player.note(id(1, 3), 3_000);
        (3..=5).for_each(|number| assert!(region.note(id(1, number), 1_000 * number)));
        (2..1_000).for_each(|sender| assert!(region.note(id(sender, 0), 10_000 + 1_000 * sender)));
        player.add(&region);
        assert!(!player.is_new(id(1, 5), 5_000) && player.is_new(id(1, 6), 2_000_000));
        assert_eq!(player, region);
        region.add(&player);
        assert_eq!(player, region);
        player.forget_known_to(&region);
        assert_eq!(player.senders(), 0);
        assert!(!player.is_new(id(1, 5), 5_000));
    }
}
