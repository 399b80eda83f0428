//! Updates that wait to be sent, and those that were sent and may have to be sent again.
//!
//! The outbox itself is not bounded: its owner must not add to it while [`Outbox::is_full`].

use std::collections::VecDeque;

use bytes::Bytes;

/// Bytes of unsent updates from which on nothing more is done for a client.
const FULL_BYTES: usize = 32 << 20;

/// The updates of a session, encoded.
#[derive(Debug)]
pub struct Outbox {
    /// The updates from `first` on.
    kept: VecDeque<Bytes>,
    /// The number of the first update that is kept.
    first: u64,
    /// The number of the first update that is not sent.
    next: u64,
    kept_bytes: usize,
    unsent_bytes: usize,
    /// Most bytes of sent updates that are kept.
    most: usize,
}

/// Why updates cannot be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RewindError {
    /// The client says to have what it was never sent.
    #[error("received {received}, but the last update of the session is {last}")]
    Never {
        /// What the client says.
        received: u64,
        /// The number of the last update.
        last: u64,
    },
    /// They are no longer kept.
    #[error("updates from {from} on are needed, but only those from {first} on are kept")]
    Gone {
        /// The first update that the client needs.
        from: u64,
        /// The first update that is kept.
        first: u64,
    },
}

impl Outbox {
    /// Without updates. `most`: bytes of sent updates to keep.
    pub fn new(most: usize) -> Outbox {
        let kept = VecDeque::new();
        Outbox { kept, first: 1, next: 1, kept_bytes: 0, unsent_bytes: 0, most }
    }

    /// The number of the next update to be added.
    pub fn number(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Adds an update.
    pub fn push(&mut self, update: Bytes) {
        self.kept_bytes += update.len();
        self.unsent_bytes += update.len();
        self.kept.push_back(update);
    }

    /// Whether so much waits that nothing should be added.
    pub fn is_full(&self) -> bool {
        self.unsent_bytes >= FULL_BYTES
    }

    /// The first update that is not sent.
    pub fn unsent(&self) -> Option<&Bytes> {
        self.kept.get((self.next - self.first) as usize)
    }

    /// The first update that was not sent is sent now.
    pub fn sent(&mut self) {
        let Some(len) = self.unsent().map(Bytes::len) else { return };
        self.next += 1;
        self.unsent_bytes -= len;
        while self.kept_bytes - self.unsent_bytes > self.most {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some(update) = self.kept.pop_front() {
            self.first += 1;
            self.kept_bytes -= update.len();
        }
    }

    /// The client has applied the updates up to this one. A number that was not sent counts as the
    /// last one that was.
    pub fn forget(&mut self, received: u64) {
        while self.first <= received && self.first < self.next {
            self.drop_first();
        }
    }

    /// The client has applied the updates up to this one, and lost all later ones.
    ///
    /// # Errors
    /// [`RewindError`]. Nothing has changed then.
    pub fn rewind(&mut self, received: u64) -> Result<(), RewindError> {
        if received >= self.number() {
            return Err(RewindError::Never { received, last: self.number() - 1 });
        }
        let from = received + 1;
        if from < self.first {
            return Err(RewindError::Gone { from, first: self.first });
        }
        self.next = from.min(self.number());
        self.forget(received);
        self.unsent_bytes = self.kept_bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox(most: usize, updates: u8) -> Outbox {
        let mut outbox = Outbox::new(most);
        (1..=updates).for_each(|n| outbox.push(Bytes::from(vec![n; 10])));
        outbox
    }

    fn unsent(outbox: &mut Outbox) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(update) = outbox.unsent() {
            all.push(update[0]);
            outbox.sent();
        }
        all
    }

    #[test]
    fn updates_are_sent_in_order_and_again_after_a_rewind() {
        let mut outbox = outbox(1_000, 3);
        assert_eq!((outbox.number(), outbox.unsent_bytes), (4, 30));
        assert_eq!(unsent(&mut outbox), [1, 2, 3]);
        assert_eq!(outbox.unsent_bytes, 0);
        outbox.rewind(1).unwrap();
        assert_eq!(outbox.unsent_bytes, 20);
        assert_eq!(unsent(&mut outbox), [2, 3]);
        assert_eq!(outbox.rewind(0), Err(RewindError::Gone { from: 1, first: 2 }));
        assert_eq!(outbox.rewind(4), Err(RewindError::Never { received: 4, last: 3 }));
        outbox.rewind(3).unwrap();
        assert_eq!(unsent(&mut outbox), [0; 0]);
    }

    #[test]
    fn the_oldest_sent_updates_go_first_and_unsent_ones_never() {
        let mut outbox = outbox(25, 5);
        outbox.sent();
        outbox.sent();
        assert_eq!(outbox.rewind(0), Ok(()));
        assert_eq!(unsent(&mut outbox), [1, 2, 3, 4, 5]);
        assert_eq!(outbox.rewind(2), Err(RewindError::Gone { from: 3, first: 4 }));
        assert_eq!(outbox.rewind(3), Ok(()));
        // What was never sent is not forgotten, whatever the client says.
        outbox.forget(9);
        assert_eq!(unsent(&mut outbox), [4, 5]);
    }
}
