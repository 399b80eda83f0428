//! What sessions may have, each and together, and what they have together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// What a session may have, and what all may have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most sessions, with and without a stream.
    pub sessions: usize,
    /// Most entities of all sessions together.
    pub entities: usize,
    /// Most pairs.
    pub pairs: Most,
    /// Most events of a tick, and of all ticks whose events are not written yet.
    pub events: Most,
    /// Most bytes of scenes and entities.
    pub bytes: Most,
    /// Bytes of sent updates that a session keeps, so that it can be resumed.
    pub keep_bytes: usize,
    /// Bytes of updates, unread and kept, of all sessions together.
    pub buffer_bytes: usize,
    /// How long a session without a stream can be resumed.
    pub resume_within: Duration,
    /// Threads that the end of a tick may use, at least 1.
    pub threads: usize,
}

/// Most of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// Of one session.
    pub session: usize,
    /// Of all sessions together.
    pub all: usize,
}

#[derive(Debug, Default)]
pub struct Totals {
    pub entities: Total,
    pub pairs: Total,
    pub events: Total,
    pub bytes: Total,
    pub buffers: Total,
}

/// A number to which sessions add.
pub type Total = Arc<AtomicUsize>;

/// What one session adds to a total. It is taken back when it is dropped.
#[derive(Debug)]
pub struct Part {
    of: Total,
    own: usize,
}

impl Part {
    pub fn of(total: &Total) -> Part {
        Part { of: Arc::clone(total), own: 0 }
    }

    pub fn own(&self) -> usize {
        self.own
    }

    pub fn all(&self) -> usize {
        self.of.load(Relaxed)
    }

    pub fn set(&mut self, own: usize) {
        if own >= self.own {
            self.of.fetch_add(own - self.own, Relaxed);
        } else {
            self.of.fetch_sub(self.own - own, Relaxed);
        }
        self.own = own;
    }

    /// How much more the session may have.
    pub fn room(&self, most: Most) -> usize {
        most.session.saturating_sub(self.own).min(most.all.saturating_sub(self.all()))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_room_for_what_it_and_all_together_may_have() {
        let total = Total::default();
        let (mut one, mut other) = (Part::of(&total), Part::of(&total));
        let most = Most { session: 10, all: 15 };
        one.set(8);
        assert_eq!((one.room(most), other.room(most)), (2, 7));
        other.set(6);
        one.set(7);
        assert_eq!((one.room(most), other.room(most), other.all()), (2, 2, 13));
        drop(other);
        assert_eq!((one.all(), one.room(most)), (7, 3));
    }
}
