//! The two ends of a region's migration, as senders of this process and of peers see them.
//!
//! [`ArrivalQueue`]: the region is about to arrive here, and messages for it wait. [`Leaver`]: the
//! region has left, and its actor passes messages on.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use actix::Recipient;
use actix::dev::SendError;

use crate::actor::address::{Passing, RegionAddress, RemoteRegion, ToRegion};
use crate::wire::peer::Mark;

/// Most messages that wait for a region that is about to arrive; then its senders wait.
const MAX_WAITING: usize = 65_536;

/// Messages that wait to be passed on; while there are as many, peers keep theirs.
pub(in crate::actor) const PASSING: usize = 65_536;

/// Where what is for a region waits that is about to arrive here.
#[derive(Debug, Default)]
pub(super) struct ArrivalQueue {
    /// What its old owner has passed on.
    passed: Mutex<Vec<ToRegion>>,
    /// What was sent here directly.
    direct: Mutex<Vec<ToRegion>>,
}

impl ArrivalQueue {
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    fn add(to: &Mutex<Vec<ToRegion>>, msg: ToRegion) -> Result<(), SendError<ToRegion>> {
        let mut waiting = to.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MAX_WAITING {
            return Err(SendError::Full(msg));
        }
        waiting.push(msg);
        Ok(())
    }

    /// Takes what the region's old owner has passed on.
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    pub(super) fn passed_on(&self, msg: ToRegion) -> Result<(), SendError<ToRegion>> {
        ArrivalQueue::add(&self.passed, msg)
    }

    /// All messages, in the order in which the region must receive them.
    pub(super) fn empty(&self) -> Vec<ToRegion> {
        let take = |from: &Mutex<Vec<ToRegion>>| {
            std::mem::take(&mut *from.lock().unwrap_or_else(PoisonError::into_inner))
        };
        let mut all = take(&self.passed);
        all.append(&mut take(&self.direct));
        all
    }
}

impl RemoteRegion for ArrivalQueue {
    fn try_send(&self, msg: ToRegion) -> Result<(), SendError<ToRegion>> {
        ArrivalQueue::add(&self.direct, msg)
    }

    fn pass_on(&self, passing: Passing) -> Result<(), SendError<Passing>> {
        let Passing::Message(msg) = passing else { return Ok(()) };
        self.passed_on(msg).map_err(|e| match e {
            SendError::Full(msg) => SendError::Full(Passing::Message(msg)),
            SendError::Closed(msg) => SendError::Closed(Passing::Message(msg)),
        })
    }

    fn is_waiting(&self) -> bool {
        true
    }
}

/// A region that has left and passes on what still comes.
#[derive(Debug)]
pub(in crate::actor) struct Leaver {
    messages: Arc<Recipient<ToRegion>>,
    marks: Recipient<Mark>,
    /// How much waits to be passed on.
    backlog: Arc<AtomicUsize>,
}

impl Leaver {
    /// The mailbox of an actor whose region leaves, and how much the actor has to pass on.
    pub(in crate::actor) fn new(
        messages: Recipient<ToRegion>,
        marks: Recipient<Mark>,
        backlog: Arc<AtomicUsize>,
    ) -> Leaver {
        Leaver { messages: Arc::new(messages), marks, backlog }
    }

    /// Where peers send what comes by the old way.
    pub(super) fn address(&self) -> RegionAddress {
        RegionAddress::Here(self.messages.clone())
    }

    /// Whether as much waits to be passed on as may.
    pub(super) fn is_backed_up(&self) -> bool {
        self.backlog.load(Relaxed) >= PASSING
    }

    /// A sender's old way is empty.
    pub(super) fn mark(&self, mark: Mark) {
        self.marks.do_send(mark);
    }
}
