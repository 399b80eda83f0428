//! Updates that wait to be sent, and those that were sent and may have to be sent again.
//!
//! The outbox itself is not bounded: its owner must not add to it while [`Outbox::is_full`]. All
//! outboxes share a limit of bytes: each may have as many as are left, so that one more session
//! always has room. A session without unsent updates is never full.

use std::collections::VecDeque;

use bytes::Bytes;

use super::limits::{Part, Total};

/// Bytes of unsent updates from which on nothing more is done for a client.
const FULL_BYTES: usize = 8 << 20;

/// Bytes of updates that a client which acknowledges is always sent beyond what it has acknowledged.
pub const WINDOW_BYTES: usize = 512 << 10;

/// Updates that the transport may hold. These are kept whatever they take.
const IN_TRANSPORT: usize = 4;

#[derive(Debug)]
pub struct Outbox {
    /// The updates from `first` on.
    kept: VecDeque<Bytes>,
    /// The number of the first update that is kept.
    first: u64,
    /// The number of the first update that is not sent.
    next: u64,
    kept_bytes: Part,
    unsent_bytes: usize,
    /// Most bytes of sent updates that are kept.
    most: usize,
    most_of_all: usize,
    window: usize,
    /// The client acknowledges: what it has not acknowledged is never forgotten.
    is_acknowledged: bool,
}

/// Why updates cannot be sent again, or not be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RewindError {
    #[error("received {received}, but the last update that was sent is {last}")]
    Never { received: u64, last: u64 },
    /// They are no longer kept.
    #[error("updates from {from} on are needed, but only those from {first} on are kept")]
    Gone {
        /// The first update that the client needs.
        from: u64,
        first: u64,
    },
}

impl Outbox {
    /// Without updates. `most`: bytes of sent updates to keep; `all`: what all outboxes have, and
    /// may have.
    pub fn new(most: usize, all: (&Total, usize)) -> Outbox {
        Outbox {
            kept: VecDeque::new(),
            first: 1,
            next: 1,
            kept_bytes: Part::of(all.0),
            unsent_bytes: 0,
            most,
            most_of_all: all.1,
            window: WINDOW_BYTES,
            is_acknowledged: false,
        }
    }

    /// Whether the client acknowledges what it has received.
    pub fn acknowledge(&mut self, is_acknowledged: bool) {
        self.is_acknowledged = is_acknowledged;
    }

    pub fn number(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    pub fn push(&mut self, update: Bytes) {
        self.kept_bytes.set(self.kept_bytes.own() + update.len());
        self.unsent_bytes += update.len();
        self.kept.push_back(update);
    }

    /// Bytes that are left of those of all outboxes.
    fn left(&self) -> usize {
        self.most_of_all.saturating_sub(self.kept_bytes.all())
    }

    /// Whether so much waits that nothing should be added.
    pub fn is_full(&self) -> bool {
        self.unsent_bytes > 0 && self.unsent_bytes >= FULL_BYTES.min(self.left())
    }

    /// The first update that is not sent.
    pub fn unsent(&self) -> Option<&Bytes> {
        self.kept.get((self.next - self.first) as usize)
    }

    /// Whether the next update must wait until the client has acknowledged others.
    pub fn waits(&self) -> bool {
        let sent = self.sent_bytes();
        let next = self.unsent().map_or(0, Bytes::len);
        let most = self.most.min(self.left()).max(self.window);
        self.is_acknowledged && sent > 0 && sent + next > most
    }

    fn sent_bytes(&self) -> usize {
        self.kept_bytes.own() - self.unsent_bytes
    }

    /// The first update that was not sent is sent now.
    pub fn sent(&mut self) {
        let Some(len) = self.unsent().map(Bytes::len) else { return };
        self.next += 1;
        self.unsent_bytes -= len;
        while !self.is_acknowledged
            && self.next - self.first > IN_TRANSPORT as u64
            && self.sent_bytes() > self.most.min(self.left())
        {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some(update) = self.kept.pop_front() {
            self.first += 1;
            self.kept_bytes.set(self.kept_bytes.own() - update.len());
        }
    }

    /// The client has applied the updates up to this one; 0: it does not say.
    ///
    /// # Errors
    /// [`RewindError::Never`]. Nothing has changed then.
    pub fn forget(&mut self, received: u64) -> Result<(), RewindError> {
        if received >= self.next {
            return Err(RewindError::Never { received, last: self.next - 1 });
        }
        while self.first <= received {
            self.drop_first();
        }
        Ok(())
    }

    /// The client has applied the updates up to this one, and lost all later ones.
    ///
    /// # Errors
    /// [`RewindError`]. Nothing has changed then.
    pub fn rewind(&mut self, received: u64) -> Result<(), RewindError> {
        let from = received + 1;
        if received < self.next && from < self.first {
            return Err(RewindError::Gone { from, first: self.first });
        }
        self.forget(received)?;
        self.next = from;
        self.unsent_bytes = self.kept_bytes.own();
        Ok(())
    }

    /// The client has lost everything, and no update is sent again.
    pub fn skip(&mut self) {
        while !self.kept.is_empty() {
            self.drop_first();
        }
        (self.next, self.unsent_bytes) = (self.first, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: usize = 1 << 30;

    fn empty(most: usize) -> Outbox {
        Outbox::new(most, (&Total::default(), ALL))
    }

    fn fill(outbox: &mut Outbox, updates: u8) {
        (1..=updates).for_each(|n| outbox.push(Bytes::from(vec![n; 10])));
    }

    fn outbox(most: usize, updates: u8) -> Outbox {
        let mut outbox = empty(most);
        fill(&mut outbox, updates);
        outbox
    }

    fn unsent(outbox: &mut Outbox) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(update) = outbox.unsent()
            && !outbox.waits()
        {
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
    fn the_oldest_sent_updates_go_first_and_unsent_ones_and_those_in_the_transport_never() {
        let mut outbox = outbox(25, 9);
        (0..4).for_each(|_| outbox.sent());
        assert_eq!(outbox.rewind(0), Ok(()));
        assert_eq!(unsent(&mut outbox), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(outbox.rewind(4), Err(RewindError::Gone { from: 5, first: 6 }));
        assert_eq!(outbox.rewind(5), Ok(()));
        // What was not sent cannot have come.
        assert_eq!(outbox.forget(9), Err(RewindError::Never { received: 9, last: 5 }));
        assert_eq!(unsent(&mut outbox), [6, 7, 8, 9]);
    }

    #[test]
    fn a_client_that_acknowledges_is_sent_what_is_kept_and_can_always_go_back() {
        let mut outbox = empty(25);
        outbox.acknowledge(true);
        outbox.window = 10;
        fill(&mut outbox, 9);
        assert_eq!(unsent(&mut outbox), [1, 2]);
        assert!(outbox.waits());
        outbox.forget(1).unwrap();
        assert_eq!(unsent(&mut outbox), [3]);
        assert_eq!(outbox.rewind(1), Ok(()));
        assert_eq!(unsent(&mut outbox), [2, 3]);
        // An update that is larger than all that is kept goes alone.
        outbox.forget(3).unwrap();
        (outbox.most, outbox.window) = (5, 5);
        assert_eq!(unsent(&mut outbox), [4]);
        // There is a window whatever other clients leave.
        (outbox.most_of_all, outbox.window) = (0, 30);
        assert_eq!(unsent(&mut outbox), [5, 6]);
    }

    #[test]
    fn outboxes_share_a_limit_and_one_more_always_has_room() {
        let total = Total::default();
        let mut all: Vec<_> = (0..4).map(|_| Outbox::new(ALL, (&total, 1_000))).collect();
        for outbox in &mut all {
            while !outbox.is_full() {
                outbox.push(Bytes::from(vec![0; 10]));
            }
        }
        let bytes: Vec<_> = all.iter().map(|outbox| outbox.unsent_bytes).collect();
        assert_eq!(bytes, [500, 250, 130, 60]);
        // What was sent is kept only while there is room for it.
        let first = &mut all[0];
        while first.unsent().is_some() {
            first.sent();
        }
        let kept = first.kept_bytes.own();
        assert!((200..=400).contains(&kept), "{kept}");
        drop(all);
        assert_eq!(total.load(std::sync::atomic::Ordering::Relaxed), 0);
    }

    #[test]
    fn a_client_that_has_lost_everything_is_sent_what_comes_next() {
        let mut outbox = outbox(1_000, 3);
        outbox.sent();
        outbox.skip();
        assert_eq!((outbox.number(), outbox.unsent_bytes, outbox.kept_bytes.own()), (4, 0, 0));
        fill(&mut outbox, 1);
        assert_eq!(unsent(&mut outbox), [1]);
        assert_eq!(outbox.rewind(3), Ok(()));
    }
}
