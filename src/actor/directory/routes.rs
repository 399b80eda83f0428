//! Where regions are, as far as a process knows, and what waits for regions that are on their way.
//!
//! A region that migrates is at two places at once for a moment. The old owner forwards messages
//! that come by the old way, in order. Messages by the new way wait in the [`ArrivalQueue`] of the
//! new owner until the old way is known to be empty. So each sender's messages arrive in order.

use std::collections::VecDeque;
use std::sync::Arc;

use actix::Recipient;
use actix::dev::SendError;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Directory;
use super::migration::{ArrivalQueue, Leaver};
use crate::actor::address::{RegionAddress, RemoteRegion, ToRegion};
use crate::scene::RegionId;
use crate::scene::messages::Input;
use crate::wire::peer::Mark;

/// Most messages that are kept for one region whose address is not known. Each is an entity on its way, or
/// for such an entity; more are under way at once only if the region is lost for long.
const MAX_KEPT: usize = 65_536;

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
    arriving: FxHashMap<RegionId, Arc<ArrivalQueue>>,
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

    /// Another process (`None`: any other) no longer has a region: the region's address is unknown,
    /// unless it is here by now, about to arrive, or in yet another process.
    pub(super) fn lose(&mut self, id: RegionId, process: Option<u64>) {
        let there = |at: &dyn RemoteRegion| process.is_none() || at.process() == process;
        let lost = |at: &RegionAddress| match at {
            RegionAddress::Remote(at) => !at.is_waiting() && there(&**at),
            RegionAddress::Here(_) => false,
        };
        if self.regions.get(&id).is_some_and(lost) {
            self.regions.remove(&id);
        }
    }

    /// A region is given up for good; what was kept for it is dropped.
    pub(super) fn retire(&mut self, id: RegionId) {
        self.regions.remove(&id);
        self.retired.insert(id);
        let lost = self.kept.remove(&id).map_or(0, |kept| kept.len());
        if lost > 0 {
            crate::log_limited!(warn, region = %id, lost, "messages were kept for a region that was given up; they are dropped");
        }
    }

    /// Whether a region was given up for good.
    pub(super) fn is_retired(&self, id: RegionId) -> bool {
        self.retired.contains(&id)
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
        // An entity on its way is never lost: any other message gives way to it.
        crate::log_limited!(error, region = %id, "too many messages wait for a region without an address");
        let carries = |msg: &ToRegion| matches!(msg.input, Input::Handoff(_) | Input::Claims(_));
        if carries(&msg) {
            match kept.iter().position(|old| !carries(old)) {
                Some(oldest) => drop(kept.remove(oldest)),
                None => {
                    // Only entities wait: more than a region can have, and none of them may be lost.
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

    /// Sends a message of this process. A message that was sent before a route changes arrives before that.
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

    /// Where a message of another process to a region goes: a region that arrives or leaves has a place
    /// of its own for it. `None`: the region is not here.
    pub(super) fn for_peers(&self, id: RegionId) -> Option<RegionAddress> {
        if let Some(arrival_queue) = self.arriving.get(&id) {
            return Some(RegionAddress::Remote(arrival_queue.clone()));
        }
        if let Some(leaver) = self.leaving.get(&id) {
            return Some(leaver.address());
        }
        self.regions.get(&id).filter(|at| matches!(at, RegionAddress::Here(_))).cloned()
    }

    /// Whether a region that has left has as much to pass on as it may.
    pub(super) fn is_backed_up(&self, id: RegionId) -> bool {
        !self.arriving.contains_key(&id) && self.leaving.get(&id).is_some_and(Leaver::is_backed_up)
    }

    /// A region is about to arrive here.
    pub(super) fn expect(&mut self, id: RegionId) {
        self.arriving.entry(id).or_default();
    }

    /// From now on messages for a region that is about to arrive wait here. False: no such region arrives.
    pub(super) fn wait_here(&mut self, id: RegionId) -> bool {
        let Some(arrival_queue) = self.arriving.get(&id) else { return false };
        self.regions.insert(id, RegionAddress::Remote(arrival_queue.clone()));
        true
    }

    /// Takes what its old owner has passed on; given back when none is about to arrive.
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    pub(super) fn passed_on(&self, id: RegionId, msg: ToRegion) -> Result<(), SendError<ToRegion>> {
        match self.arriving.get(&id) {
            Some(arrival_queue) => arrival_queue.passed_on(msg),
            None => Err(SendError::Closed(msg)),
        }
    }

    /// A region has arrived; it receives all waiting messages, in order, before any other.
    pub(super) fn arrive(&mut self, id: RegionId, address: Recipient<ToRegion>) {
        let waiting = self.arriving.remove(&id).map(|arrival_queue| arrival_queue.empty());
        for msg in waiting.into_iter().flatten() {
            address.do_send(msg);
        }
        self.set(id, Some(address.into()));
    }

    /// A region does not come after all: what waited for it.
    pub(super) fn give_up(&mut self, id: RegionId) -> Vec<ToRegion> {
        let Some(arrival_queue) = self.arriving.remove(&id) else { return Vec::new() };
        if matches!(self.regions.get(&id), Some(RegionAddress::Remote(at)) if at.is_waiting()) {
            self.regions.remove(&id);
        }
        arrival_queue.empty()
    }

    /// A region leaves: messages of this process go by the new way from now on, and the region's actor
    /// forwards messages that come by the old way.
    pub(super) fn leave(&mut self, id: RegionId, to: RegionAddress, leaver: Leaver) {
        self.leaving.insert(id, leaver);
        self.regions.insert(id, to);
    }

    /// No more messages come by the old way.
    pub(super) fn left(&mut self, id: RegionId) {
        self.leaving.remove(&id);
    }

    /// Tells the actor of a region that has left that a sender's old way is empty. False: there is none.
    pub(super) fn mark(&self, id: RegionId, mark: Mark) -> bool {
        let Some(leaver) = self.leaving.get(&id) else { return false };
        leaver.mark(mark);
        true
    }
}

impl Directory {
    /// Tells the addresses of all regions that there are, once; later calls change nothing.
    pub fn set_regions(&self, regions: FxHashMap<RegionId, Recipient<ToRegion>>) {
        let regions = regions.into_iter().map(|(id, address)| (id, address.into())).collect();
        if !self.routes_mut().set_all(regions) {
            crate::log_limited!(error, "the addresses of all regions were set twice");
        }
    }

    /// Tells where a region is from now on; `None`: it is not known. What was kept for it is sent.
    pub fn set_region(&self, id: RegionId, address: Option<RegionAddress>) {
        self.routes_mut().set(id, address);
    }

    /// Another process (`None`: any other) no longer has a region: its address is unknown, unless the
    /// region is here by now, about to arrive, or has been found in yet another process since.
    pub fn lose_region(&self, id: RegionId, process: Option<u64>) {
        self.routes_mut().lose(id, process);
    }

    /// Sends what was kept for regions that had no room for it. To be called now and then.
    pub fn send_kept(&self) {
        self.routes_mut().send_all_kept();
    }

    /// Keeps a message that has come to the wrong place until the region's address is told anew. Those
    /// that are kept arrive in the order in which they came. Beyond 65,536 for one region the oldest that
    /// is no entity on its way is lost, and counted.
    pub fn keep(&self, id: RegionId, msg: ToRegion) {
        self.routes_mut().keep(id, msg);
    }

    /// Messages that were kept for regions without an address and found no room.
    pub fn kept_lost(&self) -> u64 {
        self.routes().kept_lost()
    }

    /// What is known of where a region is.
    pub fn look_up(&self, id: RegionId) -> Lookup {
        self.routes().look_up(id)
    }

    /// Sends to a region, without waiting. Whatever is sent before a region's address changes is on
    /// its way before it has.
    ///
    /// # Errors
    /// [`NotSent`] says why not, and gives the message back.
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    pub fn send(&self, id: RegionId, msg: ToRegion) -> Result<(), NotSent> {
        self.routes().send(id, msg)
    }

    /// Sends what another process says to a region, without waiting: to the region if it lives here, to
    /// where it passes things on if it has left, to where it is waited for if it is about to arrive.
    ///
    /// # Errors
    /// It is given back: `Nowhere` when the region is none of these.
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    pub fn send_from_peer(&self, id: RegionId, msg: ToRegion) -> Result<(), NotSent> {
        let routes = self.routes();
        match routes.for_peers(id) {
            None => Err(NotSent::Nowhere(msg)),
            Some(_) if routes.is_backed_up(id) => Err(NotSent::Full(msg)),
            Some(address) => address.try_send(msg).map_err(|e| match e {
                SendError::Full(msg) => NotSent::Full(msg),
                SendError::Closed(msg) => NotSent::Closed(msg),
            }),
        }
    }

    /// A region of another process is about to move here: what comes for it waits.
    pub fn expect(&self, id: RegionId) {
        self.routes_mut().expect(id);
    }

    /// From now on what is said here to a region that is about to arrive waits for it. False when none
    /// is.
    pub fn wait_here(&self, id: RegionId) -> bool {
        self.routes_mut().wait_here(id)
    }

    /// Takes what the old owner of a region that is about to arrive passes on.
    ///
    /// # Errors
    /// `Full` when too much waits, `Closed` when none is about to arrive.
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    pub fn passed_on(&self, id: RegionId, msg: ToRegion) -> Result<(), SendError<ToRegion>> {
        self.routes().passed_on(id, msg)
    }

    /// A region has arrived: it receives the forwarded messages, then those sent here, then new
    /// ones.
    pub fn arrive(&self, id: RegionId, address: Recipient<ToRegion>) {
        self.routes_mut().arrive(id, address);
    }

    /// A region that was expected does not come; what waited for it is given back.
    pub fn give_up(&self, id: RegionId) -> Vec<ToRegion> {
        self.routes_mut().give_up(id)
    }

    /// A region's actor leaves for another process.
    pub(in crate::actor) fn leave(&self, id: RegionId, to: RegionAddress, leaver: Leaver) {
        self.routes_mut().leave(id, to, leaver);
    }

    /// No message takes the old way to a region that has left any more.
    pub fn left(&self, id: RegionId) {
        self.routes_mut().left(id);
    }

    /// Tells a region that has left that a sender says nothing more by the old way. False when there is
    /// none.
    pub fn mark(&self, id: RegionId, mark: Mark) -> bool {
        self.routes().mark(id, mark)
    }

    /// The address of a region, where it is known.
    pub fn region(&self, id: RegionId) -> Option<RegionAddress> {
        match self.look_up(id) {
            Lookup::At(address) => Some(address),
            Lookup::Nowhere | Lookup::Gone => None,
        }
    }

    /// A region is no more, and nothing will ever be for it.
    pub fn retire(&self, id: RegionId) {
        self.routes_mut().retire(id);
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
    fn messages_for_a_region_without_an_address_are_bounded_and_give_way_to_entities_on_their_way()
    {
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
