//! What faults excuse: the schedule tells the judge of each that it makes.

use std::time::Duration;

use purview::scene::{Epoch, RegionId};

use super::super::network::Host;
use super::rules::overlap;
use super::{EXCUSE, Inner, Judge, LINK_TIME};

impl Inner {
    /// Whether no store has broken a promise so far: no checkpoint was lost or old, and nothing was granted twice.
    pub(super) fn stores_keep_promises(&self) -> bool {
        self.checkpoints_lost.is_none() && self.double_granted.is_empty()
    }
}

impl Judge {
    /// Allows for a while that a client is told that a near entity has left.
    pub fn excuse(&self, lasts: Duration) {
        let until = self.journal.now() + lasts + EXCUSE;
        let mut inner = self.inner();
        inner.excused = inner.excused.max(until);
    }

    /// The same while a fault lasts: messages may be late, or lost with a process.
    pub fn fault_lasts(&self, lasts: Duration) {
        let until = self.journal.now() + lasts;
        let mut inner = self.inner();
        inner.cut = inner.cut.max(until);
        drop(inner);
        self.excuse(lasts);
    }

    pub fn excuse_no_more(&self) {
        self.inner().excused = self.journal.now();
    }

    pub fn checkpoints_are_lost(&self) {
        self.inner().checkpoints_lost = Some(self.journal.now());
    }

    /// Notes that there is no checkpoint store for so long.
    pub fn checkpoints_wait(&self, lasts: Duration) {
        let now = self.journal.now();
        self.inner().without_checkpoints.push((now, now + lasts));
    }

    /// For how much of the last `elapsed` there was no checkpoint store.
    pub fn unkept_since(&self, elapsed: Duration) -> Duration {
        let now = self.journal.now();
        overlap(&self.inner().without_checkpoints, (now.saturating_sub(elapsed), now))
    }

    /// Whether a player whose connection broke so long ago may be unknown, because checkpoints were lost as well.
    pub fn may_be_forgotten(&self, since: Duration) -> bool {
        let (inner, now) = (self.inner(), self.journal.now());
        inner.checkpoints_lost.is_some_and(|at| now.saturating_sub(at) <= since + EXCUSE)
    }

    /// Notes that the store has granted everything of this process to others without telling the process. It may act until
    /// its end, but no other process may believe it.
    pub fn double_granted(&self, process: (Host, u64)) {
        self.inner().double_granted.insert((process, None), Duration::MAX);
    }

    /// As [`Judge::double_granted`], for one region and epoch. The process is told after so long.
    pub fn double_granted_once(
        &self,
        process: (Host, u64),
        one: (RegionId, Epoch),
        lasts: Duration,
    ) {
        let until = self.journal.now() + lasts + LINK_TIME;
        self.inner().double_granted.insert((process, Some(one)), until);
    }
}
