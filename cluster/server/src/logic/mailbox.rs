//! What waits for a worker that is connected to this process: of each region one message, since a region says nothing
//! more before it has an answer, and what the process itself says.
//!
//! *Absent on purpose:* streams, locks, time.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use purview::scene::RegionId;
use purview::wire::peer::LeaseName;

/// What a region has said last of its lease.
#[derive(Debug)]
struct Slot {
    /// The process in which the region is; 0: this one.
    by: u64,
    lease: LeaseName,
    /// The number of the message; the highest: the lease has ended.
    seq: u64,
    waits: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Lease(RegionId),
    Refused(RegionId),
}

#[derive(Debug, Default)]
pub struct Mailbox {
    own: VecDeque<Bytes>,
    leases: BTreeMap<RegionId, Slot>,
    /// By region: its process, and what it has refused.
    refused: BTreeMap<RegionId, (u64, Option<Bytes>)>,
    next: VecDeque<Next>,
    bytes: usize,
    /// Those of what the process says.
    own_bytes: usize,
}

impl Mailbox {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Of what the process says: nothing else is without a bound, since a region says one thing.
    pub fn own_bytes(&self) -> usize {
        self.own_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.next.is_empty()
    }

    pub fn regions(&self) -> usize {
        self.leases.values().filter(|slot| slot.seq < u64::MAX).count()
    }

    pub fn say(&mut self, message: Bytes) {
        self.bytes += message.len();
        self.own_bytes += message.len();
        self.own.push_back(message);
    }

    /// A region tells of a lease. What an older lease, or a message before this one, has said is dropped.
    pub fn tell(&mut self, by: u64, (lease, seq): (LeaseName, u64), message: Bytes) {
        let slot = self.leases.entry(lease.region);
        let slot = slot.or_insert(Slot { by, lease, seq: 0, waits: None });
        if (lease, seq) <= (slot.lease, slot.seq) {
            return;
        }
        (slot.by, slot.lease, slot.seq) = (by, lease, seq);
        self.bytes += message.len();
        match slot.waits.replace(message) {
            Some(before) => self.bytes -= before.len(),
            None => self.next.push_back(Next::Lease(lease.region)),
        }
    }

    pub fn end(&mut self, by: u64, lease: LeaseName, message: Bytes) {
        // One of which the worker was told nothing has not begun.
        if self.leases.get(&lease.region).is_some_and(|slot| slot.lease == lease) {
            self.tell(by, (lease, u64::MAX), message);
        }
    }

    pub fn refuse(&mut self, by: u64, region: RegionId, message: Bytes) {
        let slot = self.refused.entry(region).or_default();
        slot.0 = by;
        self.bytes += message.len();
        match slot.1.replace(message) {
            Some(before) => self.bytes -= before.len(),
            None => self.next.push_back(Next::Refused(region)),
        }
    }

    /// The next message. It does not wait any more.
    pub fn take(&mut self) -> Option<Bytes> {
        let own = self.own.pop_front();
        self.own_bytes -= own.as_ref().map_or(0, Bytes::len);
        let message = own.or_else(|| match self.next.pop_front()? {
            Next::Lease(region) => self.leases.get_mut(&region)?.waits.take(),
            Next::Refused(region) => self.refused.get_mut(&region)?.1.take(),
        });
        self.bytes -= message.as_ref().map_or(0, Bytes::len);
        message
    }

    /// The process of a region that has told of this lease last; `None`: another lease is newer.
    pub fn process_of(&self, lease: LeaseName) -> Option<u64> {
        self.leases.get(&lease.region).filter(|slot| slot.lease == lease).map(|slot| slot.by)
    }

    pub fn process_of_refused(&self, region: RegionId) -> Option<u64> {
        self.refused.get(&region).map(|(by, _)| *by)
    }
}

#[cfg(test)]
mod tests {
    use purview::scene::Epoch;

    use super::*;

    fn lease(region: u32, epoch: u64, number: u64) -> LeaseName {
        LeaseName { region: RegionId(region), epoch: Epoch(epoch), number }
    }

    fn text(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn all(mailbox: &mut Mailbox) -> Vec<Bytes> {
        std::iter::from_fn(|| mailbox.take()).collect()
    }

    #[test]
    fn of_each_region_the_newest_message_waits() {
        let mut mailbox = Mailbox::default();
        mailbox.tell(0, (lease(1, 1, 1), 1), text("one"));
        mailbox.tell(7, (lease(2, 1, 1), 1), text("other"));
        mailbox.say(text("own"));
        mailbox.tell(8, (lease(1, 2, 1), 1), text("next"));
        mailbox.tell(0, (lease(1, 1, 2), 1), text("late"));
        mailbox.tell(8, (lease(1, 2, 1), 1), text("again"));
        assert_eq!((mailbox.bytes(), mailbox.own_bytes(), mailbox.regions()), (12, 3, 2));
        assert_eq!(all(&mut mailbox), ["own", "next", "other"]);
        assert!(mailbox.is_empty() && mailbox.bytes() + mailbox.own_bytes() == 0);
        assert_eq!(mailbox.process_of(lease(1, 2, 1)), Some(8));
        assert_eq!(mailbox.process_of(lease(1, 1, 1)), None);
    }

    #[test]
    fn a_lease_that_has_ended_ends_once_and_the_next_one_takes_its_place() {
        let mut mailbox = Mailbox::default();
        mailbox.end(0, lease(1, 1, 1), text("never begun"));
        assert!(mailbox.is_empty());
        mailbox.tell(0, (lease(1, 1, 1), 1), text("one"));
        mailbox.end(0, lease(1, 1, 1), text("end"));
        mailbox.end(0, lease(1, 1, 1), text("end"));
        assert_eq!((all(&mut mailbox), mailbox.regions()), (vec![text("end")], 0));
        mailbox.tell(0, (lease(1, 1, 1), 2), text("late"));
        mailbox.tell(0, (lease(1, 1, 2), 1), text("new"));
        mailbox.end(0, lease(1, 1, 1), text("late"));
        assert_eq!((all(&mut mailbox), mailbox.regions()), (vec![text("new")], 1));
    }

    #[test]
    fn what_a_region_refuses_waits_once() {
        let mut mailbox = Mailbox::default();
        mailbox.refuse(0, RegionId(1), text("a"));
        mailbox.refuse(7, RegionId(1), text("a, b"));
        assert_eq!(all(&mut mailbox), ["a, b"]);
        assert_eq!(mailbox.process_of_refused(RegionId(1)), Some(7));
    }
}
