//! Where regions are, as far as a process knows, and what waits for those that are on their way.
//!
//! A region that moves is at two places at once for a moment. What comes by the old way is passed on by
//! the old owner, in order; what comes by the new way waits in the [`Anteroom`] of the new one until
//! the old way is known to be empty. So each sender is heard in order.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use actix::dev::SendError;
use actix::{Addr, Recipient};
use rustc_hash::{FxHashMap, FxHashSet};

use super::address::{AwayRegion, Passing, RegionAddress};
use super::messages::ToRegion;
use super::moving::PASSING;
use super::region::RegionActor;
use crate::scene::RegionId;
use crate::scene::messages::Input;
use crate::wire::peer::Mark;

/// Most messages that are kept for one region whose address is not known. Each is an entity on its way
/// or something for one; more of them are under way at once only if the region is lost for long.
const MAX_KEPT: usize = 65_536;

/// Most messages that wait for a region that is about to arrive; then its senders wait.
const MAX_WAITING: usize = 65_536;

/// What became of a region that was looked up.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// It can be reached.
    At(RegionAddress),
    /// Its address is not known now: it is starting, moving or waits for an owner.
    Nowhere,
    /// There is no such region.
    Gone,
}

/// Why a message was not sent; it is given back.
#[derive(Debug)]
pub enum NotSent {
    /// There is no room for it now.
    Full(ToRegion),
    /// The region's actor or process is no more.
    Closed(ToRegion),
    /// The region's address is not known now.
    Nowhere(ToRegion),
    /// There is no such region.
    Gone(ToRegion),
}

impl NotSent {
    /// The message.
    pub fn into_message(self) -> ToRegion {
        match self {
            NotSent::Full(msg)
            | NotSent::Closed(msg)
            | NotSent::Nowhere(msg)
            | NotSent::Gone(msg) => msg,
        }
    }
}

/// Where what is for a region waits that is about to arrive here.
#[derive(Debug, Default)]
pub(super) struct Anteroom {
    /// What its old owner has passed on.
    passed: Mutex<Vec<ToRegion>>,
    /// What was sent here directly.
    direct: Mutex<Vec<ToRegion>>,
}

impl Anteroom {
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    fn add(to: &Mutex<Vec<ToRegion>>, msg: ToRegion) -> Result<(), SendError<ToRegion>> {
        let mut waiting = to.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MAX_WAITING {
            return Err(SendError::Full(msg));
        }
        waiting.push(msg);
        Ok(())
    }

    /// Everything, in the order in which the region is to hear it.
    fn empty(&self) -> Vec<ToRegion> {
        let take = |from: &Mutex<Vec<ToRegion>>| {
            std::mem::take(&mut *from.lock().unwrap_or_else(PoisonError::into_inner))
        };
        let mut all = take(&self.passed);
        all.append(&mut take(&self.direct));
        all
    }
}

impl AwayRegion for Anteroom {
    fn try_send(&self, msg: ToRegion) -> Result<(), SendError<ToRegion>> {
        Anteroom::add(&self.direct, msg)
    }

    fn pass_on(&self, passing: Passing) -> Result<(), SendError<Passing>> {
        let Passing::Message(msg) = passing else { return Ok(()) };
        Anteroom::add(&self.passed, msg).map_err(|e| match e {
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
pub(super) struct Leaver {
    messages: Arc<Recipient<ToRegion>>,
    marks: Recipient<Mark>,
    /// How much waits to be passed on.
    backlog: Arc<AtomicUsize>,
}

impl Leaver {
    /// The actor of a region that leaves, with so much to pass on.
    pub(super) fn new(actor: &Addr<RegionActor>, backlog: &Arc<AtomicUsize>) -> Leaver {
        let (messages, marks) = (Arc::new(actor.clone().recipient()), actor.clone().recipient());
        Leaver { messages, marks, backlog: backlog.clone() }
    }
}

/// Where regions were last known to be.
#[derive(Debug, Default)]
pub(super) struct Routes {
    regions: FxHashMap<RegionId, RegionAddress>,
    /// Every region that there is has its address here.
    whole: bool,
    /// What must arrive at regions whose address is not known.
    kept: FxHashMap<RegionId, VecDeque<ToRegion>>,
    /// Regions that are no more.
    retired: FxHashSet<RegionId>,
    arriving: FxHashMap<RegionId, Arc<Anteroom>>,
    leaving: FxHashMap<RegionId, Leaver>,
    /// Messages that were to be kept and found no room.
    kept_lost: u64,
}

impl Routes {
    /// All regions that there are; false when they were told before.
    pub(super) fn set_all(&mut self, regions: FxHashMap<RegionId, RegionAddress>) -> bool {
        if self.whole {
            return false;
        }
        *self = Routes { regions, whole: true, ..Routes::default() };
        true
    }

    pub(super) fn set(&mut self, id: RegionId, address: Option<RegionAddress>) {
        match address {
            None => drop(self.regions.remove(&id)),
            Some(address) => {
                self.regions.insert(id, address);
                self.send_kept(id);
            }
        }
    }

    /// Another process (`None`: whichever) has a region no more: it is nowhere, unless it is here by now, about to arrive, or in
    /// yet another one.
    pub(super) fn lose(&mut self, id: RegionId, process: Option<u64>) {
        let there = |at: &dyn AwayRegion| process.is_none() || at.process() == process;
        let lost = |at: &RegionAddress| match at {
            RegionAddress::Away(at) => !at.is_waiting() && there(&**at),
            RegionAddress::Here(_) => false,
        };
        if self.regions.get(&id).is_some_and(lost) {
            self.regions.remove(&id);
        }
    }

    /// A region is no more; what was kept for it is nobody's.
    pub(super) fn retire(&mut self, id: RegionId) {
        self.regions.remove(&id);
        self.retired.insert(id);
        let lost = self.kept.remove(&id).map_or(0, |kept| kept.len());
        if lost > 0 {
            crate::log_limited!(warn, region = %id, lost, "something was kept for a region that is no more");
        }
    }

    fn is_gone(&self, id: RegionId) -> bool {
        self.whole || self.retired.contains(&id)
    }

    /// Sends what was kept for a region, in order, as far as there is room.
    fn send_kept(&mut self, id: RegionId) {
        let (Some(address), Some(kept)) = (self.regions.get(&id), self.kept.get_mut(&id)) else {
            return;
        };
        while let Some(msg) = kept.pop_front() {
            if let Err(SendError::Full(msg) | SendError::Closed(msg)) = address.try_send(msg) {
                return kept.push_front(msg);
            }
        }
        self.kept.remove(&id);
    }

    pub(super) fn send_all_kept(&mut self) {
        let waiting: Vec<_> = self.kept.keys().copied().collect();
        waiting.into_iter().for_each(|id| self.send_kept(id));
    }

    pub(super) fn keep(&mut self, id: RegionId, msg: ToRegion) {
        if self.retired.contains(&id) {
            return;
        }
        let kept = self.kept.entry(id).or_default();
        if kept.len() < MAX_KEPT {
            return kept.push_back(msg);
        }
        // An entity on its way is never lost: anything else gives way to it.
        crate::log_limited!(error, region = %id, "too much waits for a region that is nowhere");
        let carries = |msg: &ToRegion| matches!(msg.input, Input::Handoff(_) | Input::Claims(_));
        if carries(&msg) {
            match kept.iter().position(|old| !carries(old)) {
                Some(oldest) => drop(kept.remove(oldest)),
                None => {
                    // As many entities as no region has: there is nobody to blame, and nobody to lose.
                    return kept.push_back(msg);
                }
            }
            kept.push_back(msg);
        }
        self.kept_lost += 1;
    }

    /// Messages that were to be kept and found no room.
    pub(super) fn kept_lost(&self) -> u64 {
        self.kept_lost
    }

    /// All that have an address.
    pub(super) fn known(&self) -> impl Iterator<Item = RegionId> {
        self.regions.keys().copied()
    }

    pub(super) fn look_up(&self, id: RegionId) -> Lookup {
        match self.regions.get(&id) {
            Some(address) => Lookup::At(address.clone()),
            None if self.is_gone(id) => Lookup::Gone,
            None => Lookup::Nowhere,
        }
    }

    /// Sends what somebody here says. What was sent before the route changes is there before it has.
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    pub(super) fn send(&self, id: RegionId, msg: ToRegion) -> Result<(), NotSent> {
        match self.regions.get(&id) {
            Some(address) => address.try_send(msg).map_err(|e| match e {
                SendError::Full(msg) => NotSent::Full(msg),
                SendError::Closed(msg) => NotSent::Closed(msg),
            }),
            None if self.is_gone(id) => Err(NotSent::Gone(msg)),
            None => Err(NotSent::Nowhere(msg)),
        }
    }

    /// Where what another process says to a region goes: one that comes or goes has its own place for
    /// it. `None`: nowhere, or to another process.
    pub(super) fn for_peers(&self, id: RegionId) -> Option<RegionAddress> {
        if let Some(anteroom) = self.arriving.get(&id) {
            return Some(RegionAddress::Away(anteroom.clone()));
        }
        if let Some(leaver) = self.leaving.get(&id) {
            return Some(RegionAddress::Here(leaver.messages.clone()));
        }
        self.regions.get(&id).filter(|at| matches!(at, RegionAddress::Here(_))).cloned()
    }

    /// Whether a region that has left has as much to pass on as it may.
    pub(super) fn is_backed_up(&self, id: RegionId) -> bool {
        let full = |leaver: &Leaver| leaver.backlog.load(Relaxed) >= PASSING;
        !self.arriving.contains_key(&id) && self.leaving.get(&id).is_some_and(full)
    }

    /// A region is about to arrive here.
    pub(super) fn expect(&mut self, id: RegionId) {
        self.arriving.entry(id).or_default();
    }

    /// From now on what is for a region that is about to arrive waits here. False: none is.
    pub(super) fn wait_here(&mut self, id: RegionId) -> bool {
        let Some(anteroom) = self.arriving.get(&id) else { return false };
        self.regions.insert(id, RegionAddress::Away(anteroom.clone()));
        true
    }

    /// Takes what its old owner has passed on; given back when none is about to arrive.
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    pub(super) fn passed_on(&self, id: RegionId, msg: ToRegion) -> Result<(), SendError<ToRegion>> {
        match self.arriving.get(&id) {
            Some(anteroom) => Anteroom::add(&anteroom.passed, msg),
            None => Err(SendError::Closed(msg)),
        }
    }

    /// A region has arrived; it hears everything that waited, in order, before anything else.
    pub(super) fn arrive(&mut self, id: RegionId, address: Recipient<ToRegion>) {
        let waiting = self.arriving.remove(&id).map(|anteroom| anteroom.empty());
        for msg in waiting.into_iter().flatten() {
            address.do_send(msg);
        }
        self.set(id, Some(address.into()));
    }

    /// A region does not come after all: what waited for it.
    pub(super) fn give_up(&mut self, id: RegionId) -> Vec<ToRegion> {
        let Some(anteroom) = self.arriving.remove(&id) else { return Vec::new() };
        if matches!(self.regions.get(&id), Some(RegionAddress::Away(at)) if at.is_waiting()) {
            self.regions.remove(&id);
        }
        anteroom.empty()
    }

    /// A region leaves: what is said here from now on goes by the new way, what comes by the old one is
    /// its actor's to pass on.
    pub(super) fn leave(&mut self, id: RegionId, to: RegionAddress, leaver: Leaver) {
        self.leaving.insert(id, leaver);
        self.regions.insert(id, to);
    }

    /// Nothing comes by the old way any more.
    pub(super) fn left(&mut self, id: RegionId) {
        self.leaving.remove(&id);
    }

    /// Tells the actor of a region that has left that a sender's old way is empty. False: there is none.
    pub(super) fn mark(&self, id: RegionId, mark: Mark) -> bool {
        let Some(leaver) = self.leaving.get(&id) else { return false };
        leaver.marks.do_send(mark);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::messages::{Claim, Claims};
    use crate::scene::{EntityId, Epoch, Tick};

    fn leave(n: u64) -> ToRegion {
        ToRegion { input: Input::Leave(EntityId(n)), client: None }
    }

    fn carries(n: u64) -> ToRegion {
        let (from, answer, tick, handed) = (RegionId(1), None, Tick(1), Vec::new());
        let lives = vec![Claim { id: EntityId(n), epoch: Epoch(1), region: from }];
        let claims = Claims { from, answer, tick, lives, handed };
        ToRegion { input: Input::Claims(Box::new(claims)), client: None }
    }

    #[test]
    fn what_is_kept_for_a_region_that_is_nowhere_is_bounded_and_gives_way_to_who_is_on_its_way() {
        let (mut routes, lost) = (Routes::default(), RegionId(3));
        for n in 0..MAX_KEPT as u64 + 5 {
            routes.keep(lost, leave(n));
        }
        assert_eq!((routes.kept[&lost].len(), routes.kept_lost()), (MAX_KEPT, 5));
        (0..4).for_each(|n| routes.keep(lost, carries(n)));
        assert_eq!((routes.kept[&lost].len(), routes.kept_lost()), (MAX_KEPT, 9));
        let kept = routes.kept[&lost].iter().filter(|m| matches!(m.input, Input::Claims(_)));
        assert_eq!(kept.count(), 4);
        let first = routes.kept[&lost].front().map(|m| m.input.entity());
        assert_eq!(first, Some(Some(EntityId(4))), "the oldest give way");
    }
}
